"""The kinetic environment: near sets that are maintained from step to step instead of being found anew."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tropel._kernels.arrays import Csr
from tropel.agents.state import Floats
from tropel.contracts import Environment, EnvironmentDeclaration, Moment, Near
from tropel.contracts.offers import Neighbourhood, OfferedTriangulation
from tropel.environment.kinetic.lists import APPROACHABLE, NEAR, VISIBLE
from tropel.environment.kinetic.plane import InPlane
from tropel.environment.kinetic.report import MeshReport
from tropel.environment.kinetic.space import InSpace
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
    """

    @checked_arguments
    def __init__(self, *, visibility: Visibility = "near") -> None:
        self.declares = EnvironmentDeclaration()
        self.parameters = {"visibility": visibility}
        self.visibility = visibility
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
        return KineticNear(moment, crowd, hidden_left_out=self.visibility == "visible" and moment.world.dim == 2)


class KineticNear(Near):
    """Lists of who is near, from those that are maintained."""

    def __init__(self, moment: Moment, crowd: InPlane | InSpace, *, hidden_left_out: bool) -> None:
        super().__init__(moment)
        self._crowd = crowd
        self.hidden_left_out = hidden_left_out

    def lists(self, radius: Floats) -> Csr:
        return self._crowd.lists(self, radius)
