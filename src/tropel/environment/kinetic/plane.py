"""Neighbourhoods in the plane: a triangulation with the walls that hide people, and lists of who is near."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr, Ragged
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Moment, Near
from tropel.contracts.offers import Neighbourhood
from tropel.environment.kinetic.flood import Flood
from tropel.environment.kinetic.hiding import without_hidden, without_unapproachable
from tropel.environment.kinetic.known import cut_off_by, hidden_by
from tropel.environment.kinetic.lists import Around, NearLists, Work
from tropel.environment.kinetic.meetings import SteadyRadii, pairs_of
from tropel.environment.kinetic.moving_mesh import MovingMesh
from tropel.environment.kinetic.report import MeshReport
from tropel.environment.kinetic.shown import edges_of, neighbourhood_of
from tropel.environment.kinetic.tracked import only_tracked
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
        # For pairs that come close, by what they are wanted for.
        self._meeting: dict[str, tuple[NearLists, SteadyRadii]] = {}
        self._flood = Flood()
        self._state: AgentState | None = None
        self._moment: Moment | None = None
        self._followed: NDArray[np.int64] | None = None  #: ids of the agents that the mesh has

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
        self._state, self._moment, self._followed = moment.state, moment, moment.state.id
        if self.pieces is not None:
            self.moving.set_walls(self.pieces.blocking(moment.world.blocking))
        self.moving.update(*_points(moment.state, moment.world))

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
        """Pairs of rows whose extents reach each other, walls or not; None if the mesh is elsewhere."""
        moving = self.moving
        if not np.array_equal(moving.ids[: len(state)], state.id):
            return None
        vertices = moving.vertices_of(state.id)
        if not all(np.array_equal(x[vertices], before[:, axis]) for axis, x in enumerate(moving.true_positions)):
            return None
        cells = None if self._moment is None else self._moment.cells.sorting.sorted
        if cells is None or not np.array_equal(cells.position.T, before[cells.order]):
            return None
        kept, steady = self._meeting.setdefault(purpose, (NearLists(), SteadyRadii()))
        radius = steady.radii(vertices, extent, len(moving.mesh.x))
        return pairs_of(kept.near(state, before, cells, radius, self._around_in(state)), before, radius, extent)

    def _rows_by_vertex(self, vertices: NDArray[np.int32]) -> NDArray[np.int32]:
        """The row of each vertex, -1 for those that are no agents; `vertices` has the vertex of each row."""
        row_of = np.full(len(self.moving.mesh.x), -1, dtype=np.int32)
        row_of[vertices] = np.arange(len(vertices), dtype=np.int32)
        return row_of

    def _around_in(self, state: AgentState) -> Around:
        def around(rows: NDArray[np.int32], reach: Floats) -> Csr:
            vertices = self.moving.vertices_of(state.id)
            row_of = self._rows_by_vertex(vertices)
            return self._flood.around(self.moving.mesh, vertices[rows], reach + self.moving.slack, row_of)

        return around

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

    def lists(self, near: Near, radius: Floats, tracked: NDArray[np.int64] | None) -> Ragged:
        """Rows of those that each agent, or each of the tracked rows, knows of within a radius; of others nobody."""
        moving, state = self.moving, near.state
        kept = self.kept_lists(near, radius)
        radius = only_tracked(radius, tracked)
        ids = moving.ids if state.id is self._followed else None
        found = kept.near(state, state.position, near.cells.sorting.sorted, radius, self._around_in(state), ids)
        if self._knows == NEAR:
            return found
        vertices = moving.vertices_of(state.id)
        walls = near.world.wall_grid(min(float(radius.max(initial=0.0)), moving.breadth))
        if self._knows == VISIBLE:
            return without_hidden(found, state.position, walls)
        return without_unapproachable(found, moving, vertices, self._rows_by_vertex(vertices), radius, walls)


def _points(state: AgentState, world: World) -> tuple[NDArray[np.int64], Floats]:
    """The vertices besides walls: agents by their ids, and the centres of round obstacles with ids below zero."""
    centres = world.obstacles.position
    if not len(centres):
        return state.id, state.position
    return np.concatenate([state.id, -1 - np.arange(len(centres))]), np.concatenate([state.position, centres])
