"""The kinetic environment: near sets that are maintained from step to step instead of being found anew."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tropel._kernels.arrays import Csr
from tropel.agents.state import Floats
from tropel.contracts import Environment, EnvironmentDeclaration, Moment, Near
from tropel.environment.kinetic.lists import APPROACHABLE, NEAR, VISIBLE, NearLists
from tropel.environment.kinetic.moving_mesh import MovingMesh
from tropel.environment.kinetic.wall_pieces import WallPieces, split_walls
from tropel.errors import ModelError
from tropel.foundation.arguments import checked_arguments
from tropel.world import World

Visibility = Literal["near", "approachable", "visible"]
_KNOWS = {"near": NEAR, "approachable": APPROACHABLE, "visible": VISIBLE}


class Kinetic(Environment):
    """A Delaunay triangulation of all agents that moves with them, and near sets that hold for many steps.

    With `visibility="near"` all agents within the sense radius are near, as on a grid. With "approachable" walls are
    edges of the triangulation, and those behind a wall with both ends outside of the disk are not near. With "visible"
    only those are near whom no wall hides. Round obstacles hide nobody. In 2D.
    """

    @checked_arguments
    def __init__(self, *, visibility: Visibility = "near") -> None:
        self.declares = EnvironmentDeclaration()
        self.parameters = {"visibility": visibility}
        self.visibility = visibility
        self.moving = MovingMesh()
        self._world: World | None = None
        self._pieces: WallPieces | None = None
        # For the sense radii, and for others that a model may ask for.
        self._usual, self._other = NearLists(), NearLists()
        self._built = 0

    def prepare(self, moment: Moment) -> None:
        self._begin(moment.world)

    def _begin(self, world: World) -> None:
        """Triangulate anew, with the walls of the world if they hide anybody."""
        if world.dim != 2:
            raise ModelError('Kinetic is for worlds in 2D so far; use the environment "grid" in 3D')
        self._world = world
        self._pieces = None if self.visibility == "near" else split_walls(world.wall_grid(1.0).segments)
        self.moving = MovingMesh(None if self._pieces is None else self._pieces.segments)
        self._built = 0

    def sense(self, moment: Moment) -> Near:
        if self._world is not moment.world:
            self._begin(moment.world)
        state, moving = moment.state, self.moving
        if self._pieces is not None and len(moving.set_walls(self._pieces.blocking(moment.world.blocking))):
            for kept in (self._usual, self._other):
                kept.expire_all()
        known = moving.ids
        moving.update(state.id, state.position)
        anew = moving.total.rebuilds != self._built
        self._built = moving.total.rebuilds
        fresh = np.empty(0, dtype=np.int64) if anew else np.setdiff1d(moving.ids, known, assume_unique=True)
        for kept in (self._usual, self._other):
            if anew:
                kept.forget(len(moving.mesh.x))
            elif len(fresh):
                kept.announce(moving.mesh, moving.vertices_of(fresh))
        return KineticNear(moment, self)

    def lists(self, near: Near, radius: Floats) -> Csr:
        """Rows of those that each agent knows of within a radius."""
        moving, walls = self.moving, near.world.wall_grid(near.reach)
        vertices = moving.vertices_of(near.state.id)
        order = near.cells.cell_list.order
        place = np.zeros(len(moving.mesh.x), dtype=np.int64)
        place[vertices[order]] = np.arange(len(order))
        kept = self._usual if radius is near.state.sense_radius else self._other
        kept.update(moving, vertices, place, radius)
        return kept.near(moving, vertices, place, radius, _KNOWS[self.visibility], walls)


class KineticNear(Near):
    """Lists of who is near, from those that the environment maintains."""

    def __init__(self, moment: Moment, environment: Kinetic) -> None:
        super().__init__(moment)
        self._environment = environment

    def lists(self, radius: Floats) -> Csr:
        return self._environment.lists(self, radius)
