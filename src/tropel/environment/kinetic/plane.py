"""Neighbourhoods in the plane: a triangulation with the walls that hide people, and lists of who is near."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Moment, Near
from tropel.contracts.offers import Neighbourhood
from tropel.environment.kinetic.known import cut_off_by, hidden_by
from tropel.environment.kinetic.lists import NEAR, VISIBLE, NearLists
from tropel.environment.kinetic.meetings import SteadyRadii, pairs_of
from tropel.environment.kinetic.moving_mesh import MovingMesh
from tropel.environment.kinetic.report import MeshReport
from tropel.environment.kinetic.shown import edges_of, neighbourhood_of
from tropel.environment.kinetic.tracked import spread_over_rows
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
        # For pairs that come close, by what they are wanted for.
        self._meeting: dict[str, tuple[NearLists, SteadyRadii]] = {}
        self._world = world
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
        state, moving = moment.state, self.moving
        both = (self._usual, self._other, *(kept for kept, _ in self._meeting.values()))
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
        """Whom an agent knows of, as of the last step, and the edges across its circle."""
        state, moving = self._state, self.moving
        row = -1 if state is None else int(state.row_of(np.array([agent]))[0])
        if state is None or row < 0 or agent not in moving.ids:
            return None
        vertex = int(moving.vertices_of(np.array([agent]))[0])
        agents = moving.vertices_of(moving.ids[moving.ids >= 0])
        found = neighbourhood_of(moving.mesh, vertex, float(state.sense_radius[row]), agents)
        if self._knows != VISIBLE:
            return found
        return replace(found, known=found.known[~hidden_by(found.here, found.known, self.closed_pieces())])

    def pairs_within(
        self, purpose: str, state: AgentState, before: Floats, extent: Floats
    ) -> NDArray[np.uint32] | None:
        """Pairs of rows whose extents reach each other; None if the mesh is elsewhere, or has walls that cut lists."""
        moving = self.moving
        if self._knows != NEAR or not np.array_equal(moving.ids[: len(state)], state.id):
            return None
        vertices = moving.vertices_of(state.id)
        if not all(np.array_equal(x[vertices], before[:, axis]) for axis, x in enumerate(moving.true_positions)):
            return None
        kept, steady = self._meeting.setdefault(purpose, (NearLists(), SteadyRadii()))
        if kept.vertices != len(moving.mesh.x):
            kept.forget(len(moving.mesh.x))
        radius = steady.radii(vertices, extent, len(moving.mesh.x))
        place = np.zeros(len(moving.mesh.x), dtype=np.int64)
        place[vertices] = np.arange(len(vertices))
        kept.update(moving, vertices, place, radius)
        lists = kept.near(moving, vertices, place, radius, NEAR, self._world.wall_grid(1.0), vertices)
        return pairs_of(lists, before, radius, extent)

    def closed_pieces(self) -> Floats:
        """(W, 4): the pieces of walls and closed doors that are edges now [m]."""
        return np.empty((0, 4)) if self.pieces is None else self.pieces.segments[self.moving.closed]

    def known_to(
        self, row: int, rows: NDArray[np.int64], state: AgentState, world: World, radius: float
    ) -> NDArray[np.int64]:
        """Which of these rows, all within a radius of the agent in a row, it knows of now, by definition."""
        here, there = state.position[row], state.position[rows]
        if self._knows == NEAR or self.pieces is None:
            return rows
        if self._knows == VISIBLE:
            return rows[~hidden_by(here, there, world.wall_grid(1.0).segments[world.blocking != 0])]
        closed = self.pieces.segments[self.pieces.blocking(world.blocking)]
        return rows[~cut_off_by(here, there, radius, closed)]

    def kept_lists(self, near: Near, radius: Floats) -> NearLists:
        """The lists that are kept for these radii."""
        return self._usual if radius is near.state.sense_radius else self._other

    def lists(self, near: Near, radius: Floats, tracked: NDArray[np.int64] | None) -> Csr:
        """Rows of those that each agent, or each of the tracked rows, knows of within a radius; of others nobody."""
        moving, state = self.moving, near.state
        vertices = moving.vertices_of(state.id)
        order = near.cells.cell_list.order
        place = np.zeros(len(moving.mesh.x), dtype=np.int64)
        place[vertices[order]] = np.arange(len(order))
        who, kept = vertices, self.kept_lists(near, radius)
        if tracked is not None:
            who, radius = vertices[tracked], radius[tracked]
        kept.update(moving, who, place, radius)
        walls = near.world.wall_grid(near.reach)
        found = kept.near(moving, who, place, radius, self._knows, walls, vertices)
        return found if tracked is None else spread_over_rows(found, tracked, len(state))


def _points(state: AgentState, world: World) -> tuple[NDArray[np.int64], Floats]:
    """The vertices besides walls: agents by their ids, and the centres of round obstacles with ids below zero."""
    centres = world.obstacles.position
    if not len(centres):
        return state.id, state.position
    return np.concatenate([state.id, -1 - np.arange(len(centres))]), np.concatenate([state.position, centres])
