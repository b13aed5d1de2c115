"""What is near each agent in a phase of a step: what `sense` returns and models read.

First come lists of the walls and obstacles within each agent's sense radius, then `Near`, then the conversions between
neighbour lists and the runs that kernels walk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr, sum_up
from tropel._kernels.cells import CellList
from tropel._kernels.compile import parallel_kernel
from tropel._kernels.discs import DiscGrid, disc_cell
from tropel._kernels.neighbours import Neighbours
from tropel._kernels.simd import COPY_WIDTH
from tropel._kernels.walls import WallGrid, cell_at, nearest_on_segment
from tropel.agents.state import AgentState, Floats
from tropel.errors import ModelError

if TYPE_CHECKING:
    from tropel.contracts.moment import Moment


@parallel_kernel
def _list_walls(position, sense_radius, walls, length, indptr, indices, fill):
    """Count the walls near each agent, or write their numbers."""
    for i in prange(position.shape[0]):
        x = position[i, 0]
        y = position[i, 1]
        limit = sense_radius[i] * sense_radius[i]
        found = 0
        cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
        for k in range(walls.start[cell], walls.start[cell + 1]):
            s = walls.items[k]
            if not walls.blocking[s]:
                continue
            segment = walls.segments[s]
            qx, qy = nearest_on_segment(x, y, segment[0], segment[1], segment[2], segment[3])
            if (x - qx) * (x - qx) + (y - qy) * (y - qy) <= limit:
                if fill:
                    indices[indptr[i] + found] = s
                found += 1
        length[i] = found


@parallel_kernel
def _list_obstacles(position, sense_radius, discs, length, indptr, indices, fill):
    """Count the obstacles near each agent, or write their numbers."""
    for i in prange(position.shape[0]):
        found = 0
        cell = disc_cell(position, i, discs)
        for k in range(discs.start[cell], discs.start[cell + 1]):
            m = discs.items[k]
            away2 = 0.0
            for axis in range(position.shape[1]):
                gap = position[i, axis] - discs.position[m, axis]
                away2 += gap * gap
            limit = sense_radius[i] + discs.radius[m]
            if away2 <= limit * limit:
                if fill:
                    indices[indptr[i] + found] = m
                found += 1
        length[i] = found


def list_walls(state: AgentState, walls: WallGrid) -> Csr:
    """Numbers of the blocking walls within each agent's sense radius, ascending."""
    return _counted_then_filled(_list_walls, state, walls)


def list_obstacles(state: AgentState, obstacles: DiscGrid) -> Csr:
    """Numbers of the obstacles whose surface is within each agent's sense radius, ascending."""
    return _counted_then_filled(_list_obstacles, state, obstacles)


def _counted_then_filled(fill: Callable[..., None], state: AgentState, grid: WallGrid | DiscGrid) -> Csr:
    """Two passes, one to count and one to fill; the lists are short, so finding everything twice is cheap."""
    count = len(state)
    length, indptr = np.empty(count, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
    indices = np.empty(0, dtype=np.int32)
    if len(grid.items) == 0:
        return Csr(indptr, indices)
    fill(state.position, state.sense_radius, grid, length, indptr, indices, False)
    indices = np.empty(sum_up(length, indptr), dtype=np.int32)
    fill(state.position, state.sense_radius, grid, length, indptr, indices, True)
    return Csr(indptr, indices)


_NO_LISTS = np.empty(0, dtype=np.int64)


class Near(ABC):
    """Neighbours, walls and obstacles of every agent, as they are in one phase.

    Agent j is near agent i when |xi - xj| ≤ sense_radius[i] and the environment lets i know of j. The distance is
    between centres and, in periodic space, to the nearest image. An environment writes `lists`; one that has something
    faster than lists for kernels writes `neighbours` too. All of it is valid until the next phase, which reuses the
    memory.
    """

    def __init__(self, moment: Moment) -> None:
        self.state = moment.state
        self.world = moment.world
        self.cells = moment.cells
        self.reach = moment.cells.reach  #: no relevant sense radius is larger [m]
        self._version = moment.cells.sorting.version
        self._csr: Csr | None = None
        self._tables: list[tuple[Floats, Neighbours]] = []

    @abstractmethod
    def lists(self, radius: Floats) -> Csr:
        """Rows of the agents within `radius` [m], one number per row; in any order, without the agent itself."""

    def neighbours(self, radius: Floats | None = None) -> Neighbours:
        """What kernels walk: all neighbours within the sense radius, or within another radius.

        `radius` has a number for each row; an environment may return more than is within it, never less.
        """
        self.check_phase()
        radius = self.state.sense_radius if radius is None else radius
        for known, table in self._tables:
            if known is radius:
                return table
        table = table_of_lists(self.cells.cell_list, self.state, self.lists(radius))
        self._tables.append((radius, table))
        return table

    def csr(self) -> Csr:
        """Rows of the neighbours of each row, by cell and then by id."""
        self.check_phase()
        if self._csr is None:
            self._csr = in_canonical_order(self.lists(self.state.sense_radius), self.cells.cell_list.order)
        return self._csr

    def check_phase(self) -> None:
        if self._version != self.cells.sorting.version:
            raise ModelError(
                "this neighbourhood belongs to an earlier step, and its memory has been reused; "
                "read it in the step it was sensed in, or copy what you need later"
            )

    def rows_by_cell(self, members: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The given rows, ordered so that consecutive agents read the same memory."""
        self.check_phase()
        return self.cells.rows_by_cell(members)

    @property
    def walls(self) -> WallGrid:
        """Walls by cell, complete up to every agent's sense radius."""
        return self.world.wall_grid(self.reach)

    def walls_csr(self) -> Csr:
        """Numbers of the blocking wall segments within each agent's sense radius, ascending."""
        self.check_phase()
        return list_walls(self.state, self.walls)

    @property
    def obstacles(self) -> DiscGrid:
        """Round obstacles (position, velocity, radius) and the cells that list them, complete like the walls.

        In periodic space they have images beyond the seams, with numbers of their own."""
        return self.world.obstacles.grid(self.reach)

    def obstacles_csr(self) -> Csr:
        """Numbers of the obstacles whose surface is within each agent's sense radius, ascending."""
        self.check_phase()
        return list_obstacles(self.state, self.obstacles)


def as_lists(rows: Sequence[Sequence[int] | NDArray[np.int64]]) -> Csr:
    """Lists as `Near.lists` returns them, from one sequence of rows per agent; the agent itself is left out."""
    lists = [np.asarray(found, dtype=np.int32)[np.asarray(found) != row] for row, found in enumerate(rows)]
    indptr = np.concatenate([[0], np.cumsum([len(found) for found in lists])]).astype(np.int64)
    return Csr(indptr, np.concatenate([np.empty(0, dtype=np.int32), *lists]))


def runs_of_cells(cells: CellList) -> Neighbours:
    """What kernels walk if any agent in the surrounding cells may be a neighbour: the sorted columns themselves."""
    return Neighbours(*cells, _NO_LISTS, cells.order, cells.position, cells.velocity, cells.radius, cells.group)


def in_canonical_order(lists: Csr, order: NDArray[np.uint32]) -> Csr:
    """The same lists, each sorted by cell and then by id."""
    start, rows = np.asarray(lists.indptr, dtype=np.int64), np.asarray(lists.indices, dtype=np.int64)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    own = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return Csr(start, rows[np.lexsort((place[rows], own))].astype(np.int32))


def table_of_lists(cells: CellList, state: AgentState, lists: Csr) -> Neighbours:
    """What kernels walk if an environment has lists: a table with an entry for each pair, and for the agent itself."""
    count = len(state)
    start, rows = np.asarray(lists.indptr, dtype=np.int64), np.asarray(lists.indices, dtype=np.int64)
    own = np.concatenate([np.repeat(np.arange(count), np.diff(start)), np.arange(count)])
    met = np.concatenate([rows, np.arange(count)])
    place = np.empty(count, dtype=np.int64)
    place[cells.order] = np.arange(count)
    by_place = np.lexsort((place[met], own))
    own, met = own[by_place], met[by_place]
    position = state.position[met]
    period = cells.period[: state.dim]
    for axis in np.flatnonzero(period):
        away = state.position[own, axis] - position[:, axis]
        position[:, axis] += period[axis] * np.floor(away / period[axis] + 0.5)
    return Neighbours(
        *cells,
        start + np.arange(count + 1),
        _with_room(met.astype(np.uint32)),
        _by_axis(position),
        _by_axis(state.velocity[met]),
        _with_room(state.radius[met]),
        _with_room(state.group[met]),
    )


def _with_room(column: NDArray[Any]) -> NDArray[Any]:
    """A copy with room behind it, so that whole vectors can be read."""
    room = np.zeros(len(column) + COPY_WIDTH, dtype=column.dtype)
    room[: len(column)] = column
    return room[: len(column)]


def _by_axis(vectors: Floats) -> Floats:
    """Vectors with one row per axis, and room behind them to read whole vectors."""
    return _with_room(np.ascontiguousarray(vectors.T).reshape(-1)).reshape(vectors.shape[1], len(vectors))
