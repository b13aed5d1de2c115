"""Neighbourhoods in the plane: a triangulation with the walls that hide people, and lists of who is near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Moment, Near
from tropel.contracts.offers import Neighbourhood
from tropel.environment.kinetic.lists import NEAR, NearLists
from tropel.environment.kinetic.moving_mesh import MovingMesh
from tropel.environment.kinetic.report import MeshReport
from tropel.environment.kinetic.shown import edges_of, neighbourhood_of
from tropel.environment.kinetic.wall_pieces import split_walls
from tropel.world import World


class InPlane:
    """The neighbourhoods of all agents of a world in 2D; `knows` says what an agent knows of those in its disk."""

    def __init__(self, world: World, knows: int) -> None:
        self.pieces = None if knows == NEAR else split_walls(world.wall_grid(1.0).segments)
        self.moving = MovingMesh(None if self.pieces is None else self.pieces.segments)
        self._knows = knows
        # For the sense radii, and for others that a model may ask for.
        self._usual, self._other = NearLists(), NearLists()
        self._built = -1
        self._state: AgentState | None = None

    @property
    def last(self) -> MeshReport:
        return self.moving.last

    @property
    def total(self) -> MeshReport:
        return self.moving.total

    def follow(self, moment: Moment) -> None:
        """Agents have moved, come or gone, and doors have opened or closed."""
        state, moving, both = moment.state, self.moving, (self._usual, self._other)
        self._state = state
        if self.pieces is not None and len(moving.set_walls(self.pieces.blocking(moment.world.blocking))):
            for kept in both:
                kept.expire_all()
        known = moving.ids
        moving.update(*_points(state, moment.world))
        anew = moving.total.rebuilds != self._built
        self._built = moving.total.rebuilds
        same = anew or moving.ids is known
        fresh = np.empty(0, dtype=np.int64) if same else np.setdiff1d(moving.ids, known, assume_unique=True)
        for kept in both:
            if anew:
                kept.forget(len(moving.mesh.x))
            elif len(fresh):
                kept.announce(moving.mesh, moving.vertices_of(fresh))

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
        order = near.cells.cell_list.order
        place = np.zeros(len(moving.mesh.x), dtype=np.int64)
        place[vertices[order]] = np.arange(len(order))
        kept = self._usual if radius is state.sense_radius else self._other
        kept.update(moving, vertices, place, radius)
        return kept.near(moving, vertices, place, radius, self._knows, near.world.wall_grid(near.reach))


def _points(state: AgentState, world: World) -> tuple[NDArray[np.int64], Floats]:
    """The vertices besides walls: agents by their ids, and the centres of round obstacles with ids below zero."""
    centres = world.obstacles.position
    if not len(centres):
        return state.id, state.position
    return np.concatenate([state.id, -1 - np.arange(len(centres))]), np.concatenate([state.position, centres])
