"""The uniform grid: exact neighbours within per-agent radii, in 2D and 3D.

Kernels walk the cells around an agent. Neighbour lists (CSR) are built on request, in a single pass over the distances.
Agents of one cell share their candidates, so these are copied next to each other once per cell. Each agent then tests
64 candidates at a time with vector instructions and no branch, and reads the neighbours off the bits of one word. This
takes less than half the time of walking the cells agent by agent.

The lengths of the lists are only known afterwards. So each chunk of agents writes into its own room in one buffer. The
room is a little larger than what the chunk needed in the previous step. A chunk whose room is too small keeps counting
without writing, gets a larger room at the end of the buffer, and runs again. Finally all lists are copied to their
places in the result.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import prange

from tropel._kernels.arrays import Csr
from tropel._kernels.cells import (
    BLOCK,
    CellList,
    axis_cell,
    cell_run,
    count_runs,
    height,
    near_bits,
    wrapping_run,
    wrapping_window,
)
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.neighbours import Neighbours
from tropel._kernels.simd import (
    COPY_WIDTH,
    TEST_WIDTH,
    bits_within_2d,
    bits_within_3d,
    copy_block,
    count_ones,
    trailing_zeros,
)
from tropel.agents.state import Floats
from tropel.contracts import Environment, EnvironmentDeclaration, Moment, Near
from tropel.foundation.arguments import Length, checked_arguments

_AGENTS_PER_CHUNK = 512
#: Room for this many neighbours per agent, before anything is known.
_FIRST_GUESS = 24
_FIRST_CANDIDATES = 1024

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_WORD = np.uint64(64)
_COPY = np.uint64(COPY_WIDTH)
_TEST = np.uint64(TEST_WIDTH)
#: Neighbours are written in blocks of eight, with less branching; the surplus of the last block is overwritten.
_BLOCK = np.uint64(8)


@kernel
def _rings(cells, first, end):
    """How many rings of cells around their own the sorted agents first … end - 1 must search at most."""
    reach = 0.0
    for k in range(first, end):
        reach = max(reach, cells.sense_radius[k])
    # The margin is far above the rounding of a cell number, which is at most 2^24. Infinite radii become integers too.
    return np.int64(min(np.ceil(reach * cells.inverse_cell + 1e-6), 2.0**30))


@inlined_kernel
def _at_seam(cell, rings, count, period):
    """Whether this many rings of cells reach beyond a seam; the seam may cut off a part of the last cell."""
    return period > 0.0 and (cell < rings or cell + rings >= count - 1)


@kernel
def _list_over_seam(cells, first, end, buffer, start, found, room, lengths):
    """Neighbour lists of agents whose cells reach beyond a seam; returns the updated number of neighbours found.

    Agent by agent, as steering models walk the cells, so that the neighbours agree even where rounding decides.
    """
    position = cells.position
    spatial = position.shape[0] == 3
    for agent in range(first, end):
        x, y = position[0, agent], position[1, agent]
        z = position[2, agent] if spatial else 0.0
        radius = cells.sense_radius[agent]
        before = found
        window = wrapping_window(cells, x, y, height(cells, agent), radius)
        for number in range(count_runs(cells, window)):
            run, last, shift_x, shift_y, shift_z = wrapping_run(cells, window, number)
            for at in range(run, last, BLOCK):
                bits = near_bits(cells, at, last, x + shift_x, y + shift_y, z + shift_z, radius * radius)
                while bits != _ZERO:
                    k = at + trailing_zeros(bits)
                    bits &= bits - _ONE
                    if k != agent:
                        if found < room:
                            buffer[start + found] = cells.order[k]
                        found += _ONE
        lengths[agent] = found - before
    return found


@kernel
def _list_chunk(cells, chunk, near, near_row, buffer, room_start, room, lengths):
    """Lists of one chunk. Returns how many neighbours were found, and how many candidates if there were too many."""
    position = cells.position
    order = cells.order
    spatial = position.shape[0] == 3
    nx, ny, nz = cells.shape[0], cells.shape[1], cells.shape[2]
    periodic = cells.period[0] > 0.0 or cells.period[1] > 0.0 or cells.period[2] > 0.0
    # The columns of `position` and `near` as flat memory.
    in_y = np.uint64(position.shape[1])
    in_z = in_y + in_y
    near_y = np.uint64(near_row.shape[0])
    near_z = near_y + near_y
    candidate_room = near_y - _WORD
    end = np.uint64(min((chunk + 1) * _AGENTS_PER_CHUNK, position.shape[1]))
    start = np.uint64(room_start)
    found = _ZERO
    crowded = _ZERO
    k = np.uint64(chunk * _AGENTS_PER_CHUNK)
    # Most agents search only the cells next to theirs. If some search further, only agents in the same cell pay for it.
    chunk_rings = _rings(cells, k, end)
    while k < end:
        cx = axis_cell(position[0, k], cells.origin[0], cells.inverse_cell, nx)
        cy = axis_cell(position[1, k], cells.origin[1], cells.inverse_cell, ny)
        cz = min(np.int64(height(cells, k)), nz - 1)
        if spatial:
            cz = axis_cell(position[2, k], cells.origin[2], cells.inverse_cell, nz)
        own_cell = np.uint64((cz * ny + cy) * nx + cx)
        group_end = min(np.uint64(cells.cell_start[own_cell + _ONE]), end)
        rings = chunk_rings if chunk_rings <= 1 else _rings(cells, k, group_end)
        if periodic and (
            _at_seam(cx, rings, nx, cells.period[0])
            or _at_seam(cy, rings, ny, cells.period[1])
            or _at_seam(cz, rings, nz, cells.period[2])
        ):
            found = _list_over_seam(cells, k, group_end, buffer, start, found, np.uint64(room), lengths)
            k = group_end
            continue
        x0, x1 = max(cx - rings, 0), min(cx + rings, nx - 1)
        y0, y1 = max(cy - rings, 0), min(cy + rings, ny - 1)
        # Agents on other levels are never near.
        z0, z1 = (max(cz - rings, 0), min(cz + rings, nz - 1)) if spatial else (cz, cz)
        candidates = _ZERO
        own = _ZERO
        for wz in range(z0, z1 + 1):
            for wy in range(y0, y1 + 1):
                first, last = cell_run(cells, x0, x1, wy, wz)
                if first <= k and k < last:
                    own = candidates + (k - first)
                length = last - first
                if candidates + length <= candidate_room:
                    for step in range(_ZERO, length, _COPY):
                        copy_block(near, candidates + step, position, first + step)
                        copy_block(near, near_y + candidates + step, position, in_y + first + step)
                        if spatial:
                            copy_block(near, near_z + candidates + step, position, in_z + first + step)
                        copy_block(near_row, candidates + step, order, first + step)
                candidates += length
        if candidates > candidate_room:
            crowded = max(crowded, candidates)
            k = group_end
            continue
        for agent in range(k, group_end):
            x = position[0, agent]
            y = position[1, agent]
            limit = cells.sense_radius[agent] * cells.sense_radius[agent]
            before = found
            for base in range(_ZERO, candidates, _WORD):
                word = _ZERO
                for part in range(_ZERO, _WORD, _TEST):
                    at = base + part
                    if spatial:
                        z = position[2, agent]
                        bits = bits_within_3d(near, at, near_y + at, near_z + at, x, y, z, limit)
                    else:
                        bits = bits_within_2d(near, at, near_y + at, x, y, limit)
                    word |= bits << part
                if candidates - base < _WORD:
                    word &= (_ONE << (candidates - base)) - _ONE
                if own - base < _WORD:
                    word &= ~(_ONE << (own - base))
                hits = count_ones(word)
                if found + hits + _BLOCK <= np.uint64(room):
                    for block in range(_ZERO, hits, _BLOCK):
                        for step in range(_BLOCK):
                            buffer[start + found + block + step] = near_row[base + trailing_zeros(word)]
                            word &= word - _ONE
                found += hits
            own += _ONE
            lengths[agent] = found - before
        k = group_end
    return np.int64(found), np.int64(crowded)


@parallel_kernel
def _list_chunks(cells, todo, near, near_row, buffer, room_start, room, found, crowded, lengths):
    # Each thread has a lane with its own room for candidates. Interleaving chunks balances dense and sparse regions.
    lanes = near.shape[0]
    for lane in prange(lanes):
        for t in range(lane, todo.shape[0], lanes):
            chunk = todo[t]
            found[chunk], crowded[chunk] = _list_chunk(
                cells,
                chunk,
                near[lane],
                near_row[lane],
                buffer,
                room_start[chunk],
                room[chunk],
                lengths,
            )


@kernel
def _lay_out(found, room, room_start):
    """Rooms one after the other, each a little larger than what the chunk needed last time. Returns their total."""
    total = 0
    for chunk in range(found.shape[0]):
        room[chunk] = found[chunk] + found[chunk] // 8 + 64
        room_start[chunk] = total
        total += room[chunk]
    return total


@kernel
def _find_short(found, crowded, room, room_start, total, short):
    """Chunks to run again, with new rooms at the end. Returns how many, and the new total."""
    count = 0
    for chunk in range(found.shape[0]):
        if found[chunk] + np.int64(_BLOCK) > room[chunk] or crowded[chunk] > 0:
            room[chunk] = found[chunk] + found[chunk] // 8 + 64
            room_start[chunk] = total
            total += room[chunk]
            short[count] = chunk
            count += 1
    return count, total


@parallel_kernel
def _enter_lists(order, lengths, room_start, lists):
    """Write where the list of each row begins and how long it is.

    This has its own loop because the places are scattered over memory. With other writes in between, the processor
    waits for each of them; alone, many are fetched at a time.
    """
    count = order.shape[0]
    for chunk in prange(room_start.shape[0]):
        start = room_start[chunk]
        for place in range(chunk * _AGENTS_PER_CHUNK, min(count, (chunk + 1) * _AGENTS_PER_CHUNK)):
            k = np.uint64(place)
            row = np.uint64(order[k])
            lists[row, 0] = start
            lists[row, 1] = lengths[k]
            start += lengths[k]


@kernel
def _sum_up(lists, indptr):
    """Fill indptr from the lengths of the lists; returns the total length."""
    total = 0
    indptr[0] = 0
    for row in range(lists.shape[0]):
        total += lists[row, 1]
        indptr[row + 1] = total
    return total


@parallel_kernel
def _copy_lists(lists, buffer, indptr, indices):
    count = lists.shape[0]
    for chunk in prange((count + _AGENTS_PER_CHUNK - 1) // _AGENTS_PER_CHUNK):
        end = min(count, (chunk + 1) * _AGENTS_PER_CHUNK)
        limit = np.uint64(indptr[end])
        for row in range(chunk * _AGENTS_PER_CHUNK, end):
            source = np.uint64(lists[np.uint64(row), 0])
            target = np.uint64(indptr[np.uint64(row)])
            length = np.uint64(lists[np.uint64(row), 1])
            # Whole blocks overrun into the next lists, which are written later, but must not reach another chunk.
            if target + length + _COPY <= limit:
                for step in range(_ZERO, length, _COPY):
                    copy_block(indices, target + step, buffer, source + step)
            else:
                for step in range(length):
                    indices[target + step] = buffer[source + step]


class NeighbourLists:
    """Builds neighbour lists and keeps the buffers from step to step."""

    def __init__(self) -> None:
        self._found = np.empty(0, dtype=np.int64)
        self._buffer = np.empty(0, dtype=np.int32)
        self._indices = np.empty(0, dtype=np.int32)
        self._near = np.zeros((0, 0))
        self._near_row = np.zeros((0, 0), dtype=np.uint32)
        self._make_room(0)

    def _make_room(self, count: int) -> None:
        chunks = -(-count // _AGENTS_PER_CHUNK)
        known = self._found
        self._found = np.full(chunks, _FIRST_GUESS * _AGENTS_PER_CHUNK, dtype=np.int64)
        self._found[: len(known)] = known
        self._room, self._room_start, self._crowded, self._short, self._all = (
            np.arange(chunks, dtype=np.int64) for _ in range(5)
        )
        self._lengths = np.empty(count, dtype=np.int64)
        # Start in the buffer and length of each row's list, side by side: one cache miss instead of two.
        self._lists = np.empty((count, 2), dtype=np.int64)
        self._indptr = np.zeros(count + 1, dtype=np.int64)

    def _make_lanes(self, candidates: int) -> None:
        """Make room for this many candidates for each thread."""
        lanes = numba.get_num_threads()
        candidates = max(candidates, self._near_row.shape[1] - int(_WORD), _FIRST_CANDIDATES)
        if self._near_row.shape != (lanes, candidates + int(_WORD)):
            self._near = np.zeros((lanes, 3 * (candidates + int(_WORD))))
            self._near_row = np.zeros((lanes, candidates + int(_WORD)), dtype=np.uint32)

    def build(self, cells: CellList) -> Csr:
        """The neighbours of each row, as rows, in the canonical order; valid until the next call."""
        count = len(cells.order)
        if count > len(self._lists):
            self._make_room(count + count // 4)
        chunks = -(-count // _AGENTS_PER_CHUNK)
        found, crowded, room, room_start, short = (
            array[:chunks] for array in (self._found, self._crowded, self._room, self._room_start, self._short)
        )
        lengths, lists, indptr = self._lengths[:count], self._lists[:count], self._indptr[: count + 1]
        self._make_lanes(0)
        used, total = 0, _lay_out(found, room, room_start)
        todo = self._all[:chunks]
        while len(todo):
            if total > len(self._buffer):
                grown = np.empty(total + total // 4, dtype=np.int32)
                grown[:used] = self._buffer[:used]
                self._buffer = grown
            used = total
            _list_chunks(
                cells,
                todo,
                self._near,
                self._near_row,
                self._buffer,
                room_start,
                room,
                found,
                crowded,
                lengths,
            )
            again, total = _find_short(found, crowded, room, room_start, total, short)
            todo = short[:again]
            if again:
                self._make_lanes(int(crowded[todo].max()))
        _enter_lists(cells.order, lengths, room_start, lists)
        pairs = _sum_up(lists, indptr)
        if pairs > len(self._indices):
            self._indices = np.empty(pairs + pairs // 4, dtype=np.int32)
        indices = self._indices[:pairs]
        _copy_lists(lists, self._buffer, indptr, indices)
        return Csr(indptr, indices)


class Grid(Environment):
    """All agents within the sense radius are near, walls or not; found in the cells that the engine sorts agents into.

    `cell` is the edge of these cells [m], the median sense radius when left out.
    """

    @checked_arguments
    def __init__(self, *, cell: Length | None = None) -> None:
        self.declares = EnvironmentDeclaration(periodic_space=True, cell=cell)
        self.parameters = {"cell": cell}
        self._neighbours = NeighbourLists()

    def sense(self, moment: Moment) -> Near:
        """The agents, walls and obstacles near each agent now."""
        return GridNear(moment, self._neighbours)


class GridNear(Near):
    """Kernels walk the cells around an agent; neighbour lists are only built on request."""

    def __init__(self, moment: Moment, neighbours: NeighbourLists) -> None:
        super().__init__(moment)
        self._lists = neighbours

    def neighbours(self, radius: Floats | None = None) -> Neighbours:
        return self.cell_runs()

    def lists(self, radius: Floats) -> Csr:
        cells = self.cells.sorting.sorted
        if radius is not self.state.sense_radius:
            cells = cells._replace(sense_radius=np.ascontiguousarray(radius[cells.order]))
        return self._lists.build(cells)

    def csr(self) -> Csr:
        # The lists are built in the canonical order.
        self.check_phase()
        if self._csr is None:
            self._csr = self.lists(self.state.sense_radius)
        return self._csr
