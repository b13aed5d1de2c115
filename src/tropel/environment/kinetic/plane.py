"""Neighbourhoods in the plane: a triangulation with the walls that hide people, and lists of who is near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Moment, Near
from tropel.contracts.offers import Neighbourhood
from tropel.environment.kinetic.flood import Flood
from tropel.environment.kinetic.hiding import without_hidden, without_unapproachable
from tropel.environment.kinetic.lists import NearLists, Work
from tropel.environment.kinetic.moving_mesh import MovingMesh
from tropel.environment.kinetic.report import MeshReport
from tropel.environment.kinetic.shown import edges_of, neighbourhood_of
from tropel.environment.kinetic.wall_pieces import split_walls
from tropel.world import World

#: What an agent knows of those in its disk.
NEAR, APPROACHABLE, VISIBLE = 0, 1, 2


class InPlane:
    """The neighbourhoods of all agents of a world in 2D; `knows` says what an agent knows of those in its disk."""

    def __init__(self, world: World, knows: int) -> None:
        self.pieces = None if knows == NEAR else split_walls(world.wall_grid(1.0).segments)
        self.moving = MovingMesh(None if self.pieces is None else self.pieces.segments)
        self._knows = knows
        # For the sense radii, and for others that a model may ask for.
        self._usual, self._other = NearLists(), NearLists()
        self._flood = Flood()
        self._state: AgentState | None = None

    @property
    def last(self) -> MeshReport:
        return self.moving.last

    @property
    def total(self) -> MeshReport:
        return self.moving.total

    @property
    def work(self) -> Work:
        return self._usual.work

    def follow(self, moment: Moment) -> None:
        """Agents have moved, come or gone, and doors have opened or closed."""
        self._state = moment.state
        if self.pieces is not None:
            self.moving.set_walls(self.pieces.blocking(moment.world.blocking))
        self.moving.update(*_points(moment.state, moment.world))

    def edges(self, *, constrained: bool) -> Floats:
        """(E, 2, 2): ordinary edges, or those that are walls [m]."""
        return edges_of(self.moving.mesh, constrained=constrained)

    def around(self, agent: int) -> Neighbourhood | None:
        """Whom an agent can approach, as of the last step; some of them may be hidden from it."""
        state, moving = self._state, self.moving
        row = -1 if state is None else int(state.row_of(np.array([agent]))[0])
        if state is None or row < 0 or agent not in moving.ids:
            return None
        vertex = int(moving.vertices_of(np.array([agent]))[0])
        agents = moving.vertices_of(moving.ids[moving.ids >= 0])
        return neighbourhood_of(moving.mesh, vertex, float(state.sense_radius[row]), agents)

    def lists(self, near: Near, radius: Floats) -> Csr:
        """Rows of those that each agent knows of within a radius."""
        moving, state = self.moving, near.state
        vertices = moving.vertices_of(state.id)
        row_of = np.full(len(moving.mesh.x), -1, dtype=np.int32)
        row_of[vertices] = np.arange(len(state), dtype=np.int32)

        def around(rows: NDArray[np.int32], reach: Floats) -> Csr:
            return self._flood.around(moving.mesh, vertices[rows], reach + moving.slack, row_of)

        kept = self._usual if radius is state.sense_radius else self._other
        found = kept.near(near, radius, around)
        if self._knows == NEAR:
            return found
        walls = near.world.wall_grid(min(float(radius.max(initial=0.0)), moving.breadth))
        if self._knows == VISIBLE:
            return without_hidden(found, state.position, walls)
        return without_unapproachable(found, moving, vertices, row_of, radius, walls)


def _points(state: AgentState, world: World) -> tuple[NDArray[np.int64], Floats]:
    """The vertices besides walls: agents by their ids, and the centres of round obstacles with ids below zero."""
    centres = world.obstacles.position
    if not len(centres):
        return state.id, state.position
    return np.concatenate([state.id, -1 - np.arange(len(centres))]), np.concatenate([state.position, centres])
