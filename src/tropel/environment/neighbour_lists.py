"""Neighbours as lists by agent (CSR), built from the cell list in a single pass over the distances.

Agents of one cell share their candidates, so these are copied next to each other once per cell. Each agent then tests
64 candidates at a time without a branch, which the compiler turns into vector instructions, and reads the neighbours
off the bits of one word. This takes half the time of walking the cells agent by agent and testing each candidate.

How long the lists are is only known afterwards. So chunks of agents write into rooms of one buffer, as large as what
the chunk needed in the step before and a bit more. A chunk whose room is too small counts on without writing, gets a
larger room at the end of the buffer, and is done again. At last all lists are copied to where they belong.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.bits import count_ones, trailing_zeros
from tropel._kernels.cells import CellList, axis_cell, cell_run
from tropel._kernels.compile import kernel, parallel_kernel
from tropel._kernels.csr import Csr, sum_up
from tropel.agents.state import Floats

_AGENTS_PER_CHUNK = 512
#: Before anything is known, room for that many neighbours of each agent.
_FIRST_GUESS = 24
_FIRST_CANDIDATES = 1024

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_WORD = np.uint64(64)
_LAST_BIT = np.uint64(63)
_WORD_SHIFT = np.uint64(6)
#: Neighbours are written in blocks of eight, with less branching; the surplus of the last block is overwritten.
_BLOCK = np.uint64(8)


@kernel
def _within_2d(xs: Floats, ys: Floats, first: int, x: float, y: float, limit: float) -> int:
    """A bit for each of 64 points: set when its squared distance is at most `limit`."""
    word = _ZERO
    for bit in range(_WORD):
        dx = xs[first + bit] - x
        dy = ys[first + bit] - y
        word |= np.uint64(dx * dx + dy * dy <= limit) << np.uint64(bit)
    return word


@kernel
def _within_3d(
    xs: Floats, ys: Floats, zs: Floats, first: int, x: float, y: float, z: float, limit: float
) -> int:
    word = _ZERO
    for bit in range(_WORD):
        dx = xs[first + bit] - x
        dy = ys[first + bit] - y
        dz = zs[first + bit] - z
        word |= np.uint64(dx * dx + dy * dy + dz * dz <= limit) << np.uint64(bit)
    return word


@kernel
def _widest(cells: CellList, first: int, end: int) -> float:
    """How many cells the largest sense radius of the sorted agents first … end - 1 reaches beyond their own."""
    reach = 0.0
    for k in range(first, end):
        reach = max(reach, cells.sense_radius[k])
    # The margin is far above the rounding of a cell number, which is at most 2^24.
    return math.ceil(reach * cells.inverse_cell + 1e-6)


@kernel
def _list_chunk(
    cells: CellList,
    chunk: int,
    near: Floats,
    near_row: NDArray[np.uint32],
    buffer: NDArray[np.int32],
    room_start: int,
    room: int,
    list_start: NDArray[np.int64],
    list_length: NDArray[np.int64],
) -> tuple[int, int]:
    """Lists of one chunk. Returns how many neighbours there were, and how many candidates if they were too many."""
    xs, ys, zs = near[0], near[1], near[2]
    position = cells.position
    order = cells.order
    nx, ny, nz = cells.shape[0], cells.shape[1], cells.shape[2]
    spatial = position.shape[1] == 3
    candidate_room = np.uint64(near_row.shape[0]) - _WORD
    end = np.uint64(min((chunk + 1) * _AGENTS_PER_CHUNK, position.shape[0]))
    start = np.uint64(room_start)
    found = _ZERO
    crowded = _ZERO
    k = np.uint64(chunk * _AGENTS_PER_CHUNK)
    while k < end:
        cx = axis_cell(position[k, 0], cells.origin[0], cells.inverse_cell, nx)
        cy = axis_cell(position[k, 1], cells.origin[1], cells.inverse_cell, ny)
        cz = axis_cell(position[k, 2], cells.origin[2], cells.inverse_cell, nz) if spatial else 0
        own_cell = np.uint64((cz * ny + cy) * nx + cx)
        group_end = min(np.uint64(cells.cell_start[own_cell + _ONE]), end)
        rings = _widest(cells, k, group_end)
        x0, x1 = np.int64(max(cx - rings, 0.0)), np.int64(min(cx + rings, nx - 1.0))
        y0, y1 = np.int64(max(cy - rings, 0.0)), np.int64(min(cy + rings, ny - 1.0))
        z0, z1 = np.int64(max(cz - rings, 0.0)), np.int64(min(cz + rings, nz - 1.0))
        candidates = _ZERO
        own = _ZERO
        for wz in range(z0, z1 + 1):
            for wy in range(y0, y1 + 1):
                first, last = cell_run(cells, x0, x1, wy, wz)
                if first <= k and k < last:
                    own = candidates + (k - first)
                length = last - first
                if candidates + length <= candidate_room:
                    for step in range(length):
                        near_row[candidates + step] = order[first + step]
                    if spatial:
                        for step in range(length):
                            xs[candidates + step] = position[first + step, 0]
                            ys[candidates + step] = position[first + step, 1]
                            zs[candidates + step] = position[first + step, 2]
                    else:
                        for step in range(length):
                            xs[candidates + step] = position[first + step, 0]
                            ys[candidates + step] = position[first + step, 1]
                candidates += length
        if candidates > candidate_room:
            crowded = max(crowded, candidates)
            k = group_end
            continue
        for agent in range(k, group_end):
            row = np.uint64(order[agent])
            x = position[agent, 0]
            y = position[agent, 1]
            limit = cells.sense_radius[agent] * cells.sense_radius[agent]
            before = found
            for base in range(_ZERO, candidates, _WORD):
                if spatial:
                    word = _within_3d(xs, ys, zs, base, x, y, position[agent, 2], limit)
                else:
                    word = _within_2d(xs, ys, base, x, y, limit)
                if candidates - base < _WORD:
                    word &= (_ONE << (candidates - base)) - _ONE
                if own >> _WORD_SHIFT == base >> _WORD_SHIFT:
                    word &= ~(_ONE << (own & _LAST_BIT))
                hits = count_ones(word)
                if found + hits + _BLOCK <= np.uint64(room):
                    for block in range(_ZERO, hits, _BLOCK):
                        for step in range(_BLOCK):
                            buffer[start + found + block + step] = near_row[base + trailing_zeros(word)]
                            word &= word - _ONE
                found += hits
            own += _ONE
            list_start[row] = start + before
            list_length[row] = found - before
        k = group_end
    return np.int64(found), np.int64(crowded)


@parallel_kernel
def _list_chunks(
    cells: CellList,
    todo: NDArray[np.int64],
    near: Floats,
    near_row: NDArray[np.uint32],
    buffer: NDArray[np.int32],
    room_start: NDArray[np.int64],
    room: NDArray[np.int64],
    found: NDArray[np.int64],
    crowded: NDArray[np.int64],
    list_start: NDArray[np.int64],
    list_length: NDArray[np.int64],
) -> None:
    # A lane per thread has its own place for candidates. Taking every so many chunks balances dense and sparse regions.
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
                list_start,
                list_length,
            )


@kernel
def _lay_out(found: NDArray[np.int64], room: NDArray[np.int64], room_start: NDArray[np.int64]) -> int:
    """Rooms one after the other, each a bit larger than what the chunk needed last time. Returns their total."""
    total = 0
    for chunk in range(found.shape[0]):
        room[chunk] = found[chunk] + found[chunk] // 8 + 64
        room_start[chunk] = total
        total += room[chunk]
    return total


@kernel
def _find_short(
    found: NDArray[np.int64],
    crowded: NDArray[np.int64],
    room: NDArray[np.int64],
    room_start: NDArray[np.int64],
    total: int,
    short: NDArray[np.int64],
) -> tuple[int, int]:
    """Chunks to be done again, with new rooms at the end. Returns how many, and the new total."""
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
def _copy_lists(
    list_start: NDArray[np.int64],
    list_length: NDArray[np.int64],
    buffer: NDArray[np.int32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
) -> None:
    count = list_length.shape[0]
    for chunk in prange((count + _AGENTS_PER_CHUNK - 1) // _AGENTS_PER_CHUNK):
        for row in range(chunk * _AGENTS_PER_CHUNK, min(count, (chunk + 1) * _AGENTS_PER_CHUNK)):
            source = np.uint64(list_start[np.uint64(row)])
            target = np.uint64(indptr[np.uint64(row)])
            for step in range(np.uint64(list_length[np.uint64(row)])):
                indices[target + step] = buffer[source + step]


class NeighbourLists:
    """Builds the lists and keeps the buffers from step to step."""

    def __init__(self) -> None:
        self._found = np.empty(0, dtype=np.int64)
        self._buffer = np.empty(0, dtype=np.int32)
        self._indices = np.empty(0, dtype=np.int32)
        self._near = np.zeros((0, 3, 0))
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
        self._list_start = np.empty(count, dtype=np.int64)
        self._list_length = np.empty(count, dtype=np.int64)
        self._indptr = np.zeros(count + 1, dtype=np.int64)

    def _make_lanes(self, candidates: int) -> None:
        """A place for that many candidates for each thread."""
        lanes = numba.get_num_threads()
        candidates = max(candidates, self._near_row.shape[1] - int(_WORD), _FIRST_CANDIDATES)
        if self._near_row.shape != (lanes, candidates + int(_WORD)):
            self._near = np.zeros((lanes, 3, candidates + int(_WORD)))
            self._near_row = np.zeros((lanes, candidates + int(_WORD)), dtype=np.uint32)

    def build(self, cells: CellList) -> Csr:
        """Rows of the neighbours of each row, in the canonical order; valid until the next call."""
        count = len(cells.order)
        if count > len(self._list_start):
            self._make_room(count + count // 4)
        chunks = -(-count // _AGENTS_PER_CHUNK)
        found, crowded, room, room_start, short = (
            array[:chunks] for array in (self._found, self._crowded, self._room, self._room_start, self._short)
        )
        list_start, list_length, indptr = self._list_start[:count], self._list_length[:count], self._indptr[: count + 1]
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
                list_start,
                list_length,
            )
            again, total = _find_short(found, crowded, room, room_start, total, short)
            todo = short[:again]
            if again:
                self._make_lanes(int(crowded[todo].max()))
        pairs = sum_up(list_length, indptr)
        if pairs > len(self._indices):
            self._indices = np.empty(pairs + pairs // 4, dtype=np.int32)
        indices = self._indices[:pairs]
        _copy_lists(list_start, list_length, self._buffer, indptr, indices)
        return Csr(indptr, indices)
