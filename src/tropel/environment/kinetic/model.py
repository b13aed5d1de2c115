"""The kinetic environment: near sets that are maintained from step to step instead of being found anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Ragged
from tropel._kernels.neighbours import Neighbours
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Environment, EnvironmentDeclaration, Moment, Near
from tropel.contracts.offers import Neighbourhood, OfferedTriangulation
from tropel.environment.kinetic.invariants import check_near_sets, check_structure
from tropel.environment.kinetic.lists import Work
from tropel.environment.kinetic.plane import APPROACHABLE, NEAR, VISIBLE, InPlane
from tropel.environment.kinetic.report import MeshReport
from tropel.environment.kinetic.space import InSpace
from tropel.environment.kinetic.tracked import tracked_rows
from tropel.foundation.arguments import checked_arguments
from tropel.world import World

Visibility = Literal["near", "approachable", "visible"]
_KNOWS = {"near": NEAR, "approachable": APPROACHABLE, "visible": VISIBLE}


class Kinetic(Environment):
    """A Delaunay triangulation of all agents that moves with them, and near sets that hold for many steps.

    With `visibility="near"` all agents within the sense radius are near, as on a grid. With "approachable" walls are
    edges of the triangulation, and those behind a wall with both ends outside of the disk are not near. With "visible"
    only those are near whom no wall hides. Round obstacles hide nobody; in 2D their centres are vertices. In 3D the
    sides of a box hide nobody either.

    `track` names the groups whose agents have neighbours, all groups if left out. The others can be neighbours and have
    none, so their models must not sense. `check_always` checks everything by brute force in every step, and raises a
    ModelError if anything is wrong; it is slow.
    """

    @checked_arguments
    def __init__(
        self, *, visibility: Visibility = "near", track: Sequence[str] | None = None, check_always: bool = False
    ) -> None:
        self.declares = EnvironmentDeclaration(tracks=None if track is None else tuple(track))
        self.parameters = {"visibility": visibility, "track": self.declares.tracks}
        self.visibility = visibility
        self.check_always = check_always
        self.crowd: InPlane | InSpace | None = None  #: the triangulation and the lists, once there is a world
        self._world: World | None = None

    @property
    def last(self) -> MeshReport:
        """What the last step took: how many certificates exist, were looked at and failed, …"""
        return MeshReport() if self.crowd is None else self.crowd.last

    @property
    def total(self) -> MeshReport:
        """What all steps took so far."""
        return MeshReport() if self.crowd is None else self.crowd.total

    @property
    def work(self) -> Work:
        """What the near lists of the last step took."""
        return Work() if self.crowd is None else self.crowd.work

    def tally(self) -> dict[str, int | str]:
        total = self.total
        return {
            "certificates now": total.certificates,
            "certificates looked at": total.looked_at,
            "certificates that failed": total.failed,
            "triangulations built anew": total.rebuilds,
        }

    def prepare(self, moment: Moment) -> None:
        self._begin(moment.world)

    def _begin(self, world: World) -> InPlane | InSpace:
        self._world = world
        self.crowd = InPlane(world, _KNOWS[self.visibility]) if world.dim == 2 else InSpace()
        return self.crowd

    def offers(self) -> tuple[object, ...]:
        if isinstance(self.crowd, InSpace):
            return ()
        return (OfferedTriangulation(edges=self._edges, walls=self._walls, around=self._around),)

    def _edges(self) -> Floats:
        return self.crowd.edges(constrained=False) if isinstance(self.crowd, InPlane) else np.empty((0, 2, 2))

    def _walls(self) -> Floats:
        return self.crowd.edges(constrained=True) if isinstance(self.crowd, InPlane) else np.empty((0, 2, 2))

    def _around(self, agent: int) -> Neighbourhood | None:
        return self.crowd.around(agent) if isinstance(self.crowd, InPlane) else None

    def sense(self, moment: Moment) -> Near:
        crowd = self.crowd
        if crowd is None or self._world is not moment.world:
            crowd = self._begin(moment.world)
        crowd.follow(moment)
        near = KineticNear(moment, crowd, self)
        if self.check_always:
            check_structure(crowd)
            near.csr()
        return near

    def pairs_within(
        self, purpose: str, state: AgentState, before: Floats, extent: Floats
    ) -> NDArray[np.uint32] | None:
        return None if self.crowd is None else self.crowd.pairs_within(purpose, state, before, extent)

    def known_to(self, row: int, state: AgentState, world: World) -> NDArray[np.int64]:
        rows, tracked = super().known_to(row, state, world), tracked_rows(self.declares.tracks, state)
        if tracked is not None and row not in tracked:
            return rows[:0]
        if not isinstance(self.crowd, InPlane):
            return rows
        return self.crowd.known_to(row, rows, state, world, float(state.sense_radius[row]))


class KineticNear(Near):
    """Lists of who is near, from those that are maintained."""

    def __init__(self, moment: Moment, crowd: InPlane | InSpace, environment: Kinetic) -> None:
        super().__init__(moment)
        self._crowd = crowd
        self._tracked = tracked_rows(environment.declares.tracks, moment.state)
        self._check = environment.check_always
        self._is_near_all = environment.visibility == "near" or moment.world.dim == 3
        self.hidden_left_out = environment.visibility == "visible" and moment.world.dim == 2

    def neighbours(self, radius: Floats | None = None) -> Neighbours:
        if not self._is_near_all:
            return super().neighbours(radius)
        # Whoever is within a radius is in the cells around, and steering kernels walk those faster than any table.
        return self.cell_runs()

    def lists(self, radius: Floats) -> Ragged:
        found = self._crowd.lists(self, radius, self._tracked)
        if self._check:
            check_near_sets(self._crowd, self, radius, found, self._tracked)
        return found
