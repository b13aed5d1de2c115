"""What is near each agent in a phase of a step: what `sense` returns and models read.

First come lists of the walls and obstacles within each agent's sense radius, then `Near`, then the conversions between
neighbour lists and the runs that kernels walk.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr, Ragged, as_ragged, sum_up
from tropel._kernels.cells import CellList
from tropel._kernels.compile import kernel, parallel_kernel
from tropel._kernels.discs import DiscGrid, disc_cell
from tropel._kernels.marks import new_marks, read_marks, set_mark
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
#: How many rows a thread takes at a time.
_PER_CHUNK = 128


class Near(ABC):
    """Neighbours, walls and obstacles of every agent, as they are in one phase.

    Agent j is near agent i when |xi - xj| ≤ sense_radius[i] and the environment lets i know of j. The distance is
    between centres and, in periodic space, to the nearest image. An environment writes `lists`; one that has something
    faster than lists for kernels writes `neighbours` too. All of it is valid until the next phase, which reuses the
    memory.
    """

    #: Whether agents that a wall hides are left out. If so, models that ignore hidden agents need not test again.
    hidden_left_out = False

    def __init__(self, moment: Moment) -> None:
        self.state = moment.state
        self.world = moment.world
        self.cells = moment.cells
        self.reach = moment.cells.reach  #: no relevant sense radius is larger [m]
        self._version = moment.cells.sorting.version
        self._csr: Csr | None = None
        self._runs: Neighbours | None = None
        self._tables: list[tuple[Floats, Neighbours]] = []

    @abstractmethod
    def lists(self, radius: Floats) -> Csr | Ragged:
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
        table = table_of_lists(self.cells.cell_list, self.lists(radius))
        self._tables.append((radius, table))
        return table

    def cell_runs(self) -> Neighbours:
        """The runs of cells around agents, for environments in which everybody within the radius is near."""
        self.check_phase()
        if self._runs is None:
            self._runs = runs_of_cells(self.cells.cell_list)
        return self._runs

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


@kernel
def _mark_list(row, lists, place, marks, lane):
    start = np.uint64(lists.start[row])
    for k in range(start, start + np.uint64(lists.length[row])):
        set_mark(marks, lane, np.uint64(place[np.uint64(lists.items[k])]))


@kernel
def _sort_some(lane, lanes, lists, place, order, marks, places, indptr, rows):
    """Write every so many-th chunk of the lists in the order of places; returns a row with a wrong list, or -1."""
    for chunk in range(lane, (lists.length.size + _PER_CHUNK - 1) // _PER_CHUNK, lanes):
        for i in range(chunk * _PER_CHUNK, min(lists.length.size, (chunk + 1) * _PER_CHUNK)):
            row = np.uint64(i)
            _mark_list(row, lists, place, marks, lane)
            found = read_marks(marks, lane, places[lane])
            if np.int64(found) != lists.length[row]:
                return i
            first = np.uint64(indptr[row])
            for k in range(found):
                rows[first + k] = order[np.uint64(places[lane, k])]
    return -1


@parallel_kernel
def _sort_lists(lists, place, order, marks, places, indptr, rows, wrong):
    lanes = wrong.size
    for number in prange(lanes):
        lane = np.int64(np.uint64(number))
        wrong[lane] = _sort_some(lane, lanes, lists, place, order, marks, places, indptr, rows)


@kernel
def _fill_some(lane, lanes, lists, place, cells, marks, places, list_start, table):
    """Write every so many-th chunk of the table; returns a row with a wrong list, or -1."""
    dim = cells.position.shape[0]
    for chunk in range(lane, (lists.length.size + _PER_CHUNK - 1) // _PER_CHUNK, lanes):
        for i in range(chunk * _PER_CHUNK, min(lists.length.size, (chunk + 1) * _PER_CHUNK)):
            row = np.uint64(i)
            own = np.uint64(place[row])
            _mark_list(row, lists, place, marks, lane)
            set_mark(marks, lane, own)
            found = read_marks(marks, lane, places[lane])
            if np.int64(found) != lists.length[row] + 1:
                return i
            first = np.uint64(list_start[row])
            for k in range(found):
                there, out = np.uint64(places[lane, k]), first + k
                table.met[out] = cells.order[there]
                table.radius[out] = cells.radius[there]
                table.group[out] = cells.group[there]
                for axis in range(dim):
                    table.position[axis, out] = cells.position[axis, there]
                    table.velocity[axis, out] = cells.velocity[axis, there]
            for axis in range(dim):
                period = cells.period[axis]
                if period > 0.0:
                    for k in range(first, first + found):
                        away = cells.position[axis, own] - table.position[axis, k]
                        table.position[axis, k] += period * math.floor(away / period + 0.5)
    return -1


@parallel_kernel
def _fill_table(lists, place, cells, marks, places, list_start, table, wrong):
    lanes = wrong.size
    for number in prange(lanes):
        lane = np.int64(np.uint64(number))
        wrong[lane] = _fill_some(lane, lanes, lists, place, cells, marks, places, list_start, table)


class _Table(NamedTuple):
    """The columns of `Neighbours` that have an entry for each pair."""

    met: NDArray[np.uint32]
    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    radius: NDArray[np.float64]
    group: NDArray[np.int32]


def in_canonical_order(lists: Csr | Ragged, order: NDArray[np.uint32]) -> Csr:
    """The same lists, each sorted by cell and then by id."""
    ragged = as_ragged(lists)
    indptr = np.empty(len(order) + 1, dtype=np.int64)
    rows = np.empty(sum_up(ragged.length, indptr), dtype=np.int32)
    scratch = _Scratch(order, ragged)
    _sort_lists(ragged, scratch.place, order, scratch.marks, scratch.places, indptr, rows, scratch.wrong)
    scratch.check()
    return Csr(indptr, rows)


class _Scratch:
    """Working memory for sorting lists by the places of rows in the order of the cells."""

    def __init__(self, order: NDArray[np.uint32], lists: Ragged) -> None:
        lanes = numba.get_num_threads()
        self.place = np.empty(len(order), dtype=np.uint32)
        self.place[order] = np.arange(len(order), dtype=np.uint32)
        self.marks = new_marks(len(order), lanes)
        self.places = np.empty((lanes, int(lists.length.max(initial=0)) + 1), dtype=np.uint32)
        self.wrong = np.empty(lanes, dtype=np.int64)

    def check(self) -> None:
        row = int(self.wrong.max())
        if row >= 0:
            raise ModelError(f"the neighbour list of row {row} has somebody twice, or the agent itself")


def table_of_lists(cells: CellList, lists: Csr | Ragged) -> Neighbours:
    """What kernels walk if an environment has lists: a table with an entry for each pair, and for the agent itself."""
    ragged = as_ragged(lists)
    list_start = np.empty(len(cells.order) + 1, dtype=np.int64)
    size, dim = sum_up(ragged.length + 1, list_start), cells.position.shape[0]
    table = _Table(
        _room_for(size, np.uint32),
        _room_for(dim * size, np.float64).reshape(dim, size),
        _room_for(dim * size, np.float64).reshape(dim, size),
        _room_for(size, np.float64),
        _room_for(size, np.int32),
    )
    scratch = _Scratch(cells.order, ragged)
    _fill_table(ragged, scratch.place, cells, scratch.marks, scratch.places, list_start, table, scratch.wrong)
    scratch.check()
    return Neighbours(*cells, list_start, *table)


def _room_for(size: int, dtype: type) -> NDArray[Any]:
    """An array with room behind it, so that whole vectors can be read."""
    return np.empty(size + COPY_WIDTH, dtype=dtype)[:size]
