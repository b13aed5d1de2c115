"""Charts for bodies of each radius and each part of the world, made when they are first needed."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import Floats
from tropel.contracts import Planner
from tropel.errors import ParameterError
from tropel.planning.roadmap.chart import Chart, rounded_radius
from tropel.planning.roadmap.parameters import RoadmapParameters
from tropel.planning.roadmap.space import FreeSpace, Known
from tropel.planning.roadmap.sweeps import Solid
from tropel.planning.roadmap.travellers import Traveller
from tropel.world import World
from tropel.world.shapes import Polygonal

#: What doors shut is remembered for so many sets of them.
_REMEMBERED = 64


class ChartKeeper(Planner):
    """What a roadmap planner knows of the world; see the module."""

    parameters: RoadmapParameters
    spent: Counter[str]  #: units of work and happenings so far, by kind

    def _begin(self, dim: int, seed: int) -> None:
        self._seed = seed
        self._world: World | None = None
        self._charts: dict[tuple[float, int], Chart] = {}
        self._spaces: dict[float, FreeSpace] = {}
        self._solids: dict[tuple[float, bytes], Solid] = {}

    @property
    def world(self) -> World:
        if self._world is None:
            raise ParameterError("a roadmap belongs to a simulation: build one with it first")
        return self._world

    @property
    def charts(self) -> dict[tuple[float, int], Chart]:
        """Roadmaps so far, by the radius that they keep free [m] and the part of the world that they are of."""
        return self._charts

    @property
    def seed(self) -> int:
        return self._seed

    def radius_of(self, radius: float) -> float:
        """The radius that paths of a body keep free [m]: its own with the clearance, rounded up."""
        return rounded_radius(radius + self.parameters.clearance)

    def space_of(self, radius: float, known: Known | None = None) -> FreeSpace:
        """The free space for bodies that keep this radius free; with `known`, of the obstacles that stood still."""
        if radius not in self._spaces:
            self._spaces[radius] = FreeSpace.of(self.world, radius, known=known)
        return self._spaces[radius]

    def chart_of(self, person: Traveller) -> Chart:
        """The chart that a traveller plans on now; if there was none, it begins to grow."""
        key = (person.radius, person.place)
        if key not in self._charts:
            given = self.parameters
            space = self.space_of(person.radius).within(self.region_of(*key))
            self._charts[key] = Chart.begin(
                space, samples=given.samples, neighbours=given.neighbours, sampling=given.sampling,
                seed=self._seed + person.place, given=self.given_nodes(*key),
            )  # fmt: skip
            self.spent["charts"] += 1
        return self._charts[key]

    def region_of(self, radius: float, place: int) -> Polygonal | None:
        """The part of the world that a chart is of; None for all of it."""
        return None

    def given_nodes(self, radius: float, place: int) -> Floats | None:
        """Nodes that a chart has besides its samples."""
        return None

    def solid_of(self, radius: float, shut: NDArray[np.bool_]) -> Solid:
        """What stands still for bodies of a radius, with the doors that are shut."""
        key = (radius, shut.tobytes())
        if key not in self._solids:
            if len(self._solids) > _REMEMBERED:
                self._solids.clear()
            self._solids[key] = self.space_of(radius).with_doors(shut)
        return self._solids[key]
