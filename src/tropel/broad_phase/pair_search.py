"""Find the pairs of agents whose extents reach each other during a step.

Between two steps agents move in straight lines, so two of them can only come within a distance if they are no further
apart at the start than that distance and both step lengths together. Each agent has an extent, a length of its own plus
the length of its step, and pairs no further apart than the sum of their extents are found here. What happens between
them is decided elsewhere, in closed form.

Agents are sorted into cells by where they are at the start of the step. Each searches only forward in the order of the
cells, so every pair is found once. The few agents with an extent far above the average search all around instead, and
the others skip them; otherwise a single agent that jumps would make all others search as far. In periodic space no
extent may reach a quarter of the period, or agents would meet on two sides at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.cells import (
    CellList,
    axis_cell,
    cell_run,
    cell_window,
    count_runs,
    crosses_seam,
    height,
    nearest_image,
    wrapping_run,
    wrapping_window,
)
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel.agents.state import Floats
from tropel.errors import ModelError
from tropel.foundation.memory import require_memory

Pairs = NDArray[np.uint32]
#: Knows the pairs of rows whose extents reached each other when agents were at `before`, each once, or returns None:
#: known(before (N, dim), extent (N,)) → (P, 2).
KnownPairs = Callable[[Floats, Floats], Pairs | None]

_PER_CHUNK = 256
#: Room for the pairs of a chunk at first, and beyond what the last step needed.
_FIRST_ROOM = 4 * _PER_CHUNK
_SPARE = 1.25
#: Bytes that following a pair takes, here and where it is decided about.
_BYTES_PER_PAIR = 160.0


@parallel_kernel
def _measure_moves(cells, after, own, move, extent, widest, total):
    """Moves and extents in the order of the cells; the largest and the sum of the extents by chunk."""
    count = extent.shape[0]
    spatial = after.shape[1] == 3
    for chunk in prange(widest.shape[0]):
        most = 0.0
        chunk_sum = 0.0
        for place in range(chunk * _PER_CHUNK, min(count, (chunk + 1) * _PER_CHUNK)):
            k = np.uint64(place)
            row = np.uint64(cells.order[k])
            mx = nearest_image(after[row, 0] - cells.position[0, k], cells.period[0])
            my = nearest_image(after[row, 1] - cells.position[1, k], cells.period[1])
            mz = nearest_image(after[row, 2] - cells.position[2, k], cells.period[2]) if spatial else 0.0
            move[0, k] = mx
            move[1, k] = my
            move[2, k] = mz
            e = own[k] + math.sqrt(mx * mx + my * my + mz * mz)
            extent[k] = e
            most = max(most, e)
            chunk_sum += e
        widest[chunk] = most
        total[chunk] = chunk_sum


@inlined_kernel
def _reach_each_other(cells, extent, k, j, x, y, z):
    """Whether the extents of the agents at the places k and j overlap; j sees k at (x, y, z)."""
    dx, dy = cells.position[0, j] - x, cells.position[1, j] - y
    dz = cells.position[2, j] - z if cells.position.shape[0] == 3 else 0.0
    reach = extent[k] + extent[j]
    return dx * dx + dy * dy + dz * dz <= reach * reach


@inlined_kernel
def _keep(k, j, pairs, at, last):
    """Write a pair of places if there is room; returns where the next one goes."""
    if at < last:
        pairs[at, 0] = k
        pairs[at, 1] = j
    return at + 1


@kernel
def _look_all_around(cells, extent, k, ordinary, largest, pairs, at, last):
    """Pairs of an agent with a large extent, except with others of its kind before it."""
    x, y = cells.position[0, k], cells.position[1, k]
    z = cells.position[2, k] if cells.position.shape[0] == 3 else 0.0
    x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, height(cells, k), extent[k] + largest)
    for cz in range(z0, z1 + 1):
        for cy in range(y0, y1 + 1):
            first, end = cell_run(cells, x0, x1, cy, cz)
            for j in range(first, end):
                if (j > k or (j < k and extent[j] <= ordinary)) and _reach_each_other(cells, extent, k, j, x, y, z):
                    at = _keep(k, j, pairs, at, last)
    return at


@kernel
def _look_over_seam(cells, extent, k, largest, pairs, at, last):
    """Pairs with agents after this one in the order of the cells, on whichever side of a seam they are."""
    x, y = cells.position[0, k], cells.position[1, k]
    z = cells.position[2, k] if cells.position.shape[0] == 3 else 0.0
    window = wrapping_window(cells, x, y, height(cells, k), extent[k] + largest)
    for number in range(count_runs(cells, window)):
        first, end, shift_x, shift_y, shift_z = wrapping_run(cells, window, number)
        for j in range(max(first, k + np.uint64(1)), end):
            if _reach_each_other(cells, extent, k, j, x + shift_x, y + shift_y, z + shift_z):
                at = _keep(k, j, pairs, at, last)
    return at


@inlined_kernel
def _looks_over_seam(cells, k, reach):
    window = wrapping_window(cells, cells.position[0, k], cells.position[1, k], height(cells, k), reach)
    return crosses_seam(cells, window)


@kernel
def _search_chunk(cells, extent, ordinary, largest, chunk, pairs, begin, last):
    """Pairs of one chunk of agents; returns how many there are, even if there is no room for all."""
    at = begin
    # When little is found, calling a function with all these arrays takes longer than the search itself. So the search
    # that almost every agent makes is written out here, and functions handle the rare cases.
    position = cells.position
    spatial = position.shape[0] == 3
    widest = min(ordinary, largest)
    periodic = cells.period[0] > 0.0 or cells.period[1] > 0.0 or cells.period[2] > 0.0
    for place in range(chunk * _PER_CHUNK, min(extent.shape[0], (chunk + 1) * _PER_CHUNK)):
        k = np.uint64(place)
        own = extent[k]
        if periodic and _looks_over_seam(cells, k, own + largest):
            at = _look_over_seam(cells, extent, k, largest, pairs, at, last)
            continue
        if own > ordinary:
            at = _look_all_around(cells, extent, k, ordinary, largest, pairs, at, last)
            continue
        x, y = position[0, k], position[1, k]
        z = position[2, k] if spatial else 0.0
        x0, x1, y0, y1, _, z1 = cell_window(cells, x, y, height(cells, k), own + widest)
        own_y = axis_cell(y, cells.origin[1], cells.inverse_cell, cells.shape[1])
        own_z = axis_cell(z, cells.origin[2], cells.inverse_cell, cells.shape[2]) if spatial else z1
        for cz in range(own_z, z1 + 1):
            for cy in range(y0 if cz > own_z else own_y, y1 + 1):
                first, end = cell_run(cells, x0, x1, cy, cz)
                for j in range(max(first, k + np.uint64(1)), end):
                    dx, dy = position[0, j] - x, position[1, j] - y
                    dz = position[2, j] - z if spatial else 0.0
                    reach = own + extent[j]
                    if dx * dx + dy * dy + dz * dz <= reach * reach and extent[j] <= ordinary:
                        at = _keep(k, j, pairs, at, last)
    return at - begin


@parallel_kernel
def _find_pairs(cells, extent, ordinary, largest, pairs, start, found):
    """Pairs of places of each chunk, from `start` on; counts beyond the room."""
    for chunk in prange(found.shape[0]):
        found[chunk] = _search_chunk(
            cells, extent, ordinary, largest, np.int64(chunk), pairs, start[chunk], start[chunk + 1]
        )


class Moves(NamedTuple):
    """What all agents did in a step, in the order of the cells."""

    move: Floats  #: (3, N): in 2D the third row is zero [m]
    extent: Floats  #: (N,): a length of their own plus the length of the move [m]
    largest: float  #: extent
    ordinary: float  #: extents beyond this one are far above the average

    def extent_by_row(self, cells: CellList) -> Floats:
        by_row = np.empty(len(self.extent))
        by_row[cells.order] = self.extent
        return by_row


def measure_moves(cells: CellList, after: Floats, own: Floats) -> Moves:
    """Moves from where the cells have agents to `after` (N, dim); `own` [m] is by place."""
    count = len(own)
    chunks = -(-count // _PER_CHUNK)
    move, extent, widest, total = np.empty((3, count)), np.empty(count), np.zeros(chunks), np.zeros(chunks)
    _measure_moves(cells, after, own, move, extent, widest, total)
    ordinary = max(1.0 / cells.inverse_cell, 2.0 * float(total.sum()) / max(count, 1))
    # In periodic space no agent may go far in a step.
    return Moves(move, extent, float(widest.max(initial=0.0)), math.inf if cells.period.any() else ordinary)


class PairSearch:
    """Finds pairs in cells, and keeps the memory that this takes from step to step.

    `what` and `remedy` are for the error if there are too many pairs for the memory.
    """

    def __init__(self, *, what: str, remedy: str) -> None:
        self._what, self._remedy = what, remedy
        self._start = np.zeros(1, dtype=np.int64)
        self._pairs = np.empty((0, 2), dtype=np.uint32)

    def find(self, cells: CellList, moves: Moves) -> Pairs:
        """(P, 2): places in the cells of all pairs whose extents reach each other, each once, in any order."""
        chunks = -(-len(moves.extent) // _PER_CHUNK)
        if chunks >= len(self._start):
            self._make_room(np.full(chunks, _FIRST_ROOM, dtype=np.int64))
        found = np.zeros(chunks, dtype=np.int64)
        while True:
            _find_pairs(
                cells, moves.extent, moves.ordinary, moves.largest, self._pairs, self._start[: chunks + 1], found
            )
            if (found <= np.diff(self._start[: chunks + 1])).all():
                break
            self._make_room(np.maximum((_SPARE * found).astype(np.int64), _FIRST_ROOM))
        place = np.repeat(self._start[:chunks] - np.cumsum(found) + found, found) + np.arange(found.sum())
        return self._pairs[place]

    def _make_room(self, room: NDArray[np.int64]) -> None:
        pairs = float(room.sum())
        require_memory(
            _BYTES_PER_PAIR * pairs, f"following {pairs:.3g} pairs of {self._what}", self._remedy, error=ModelError
        )
        self._start = np.concatenate([[0], np.cumsum(room)])
        self._pairs = np.empty((int(self._start[-1]), 2), dtype=np.uint32)


def before_by_row(cells: CellList) -> Floats:
    """(N, dim): where agents were when they were sorted, by row."""
    before = np.empty(cells.position.T.shape)
    before[cells.order] = cells.position.T
    return before


def places_of(pairs: Pairs, cells: CellList) -> Pairs:
    """Pairs of rows as pairs of places, the lower place first."""
    place = np.empty(len(cells.order), dtype=np.uint32)
    place[cells.order] = np.arange(len(cells.order), dtype=np.uint32)
    return np.sort(place[pairs], axis=1)
