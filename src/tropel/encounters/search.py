"""Find the pairs of agents that may come within a distance of each other during a step.

Between two steps agents move in straight lines, so two of them can only come within the distance if they are no further
apart at the start than the distance and both step lengths together. Each agent has an extent: half of the distance plus
the length of its own step. Pairs whose extents reach each other are candidates; `passing.py` decides about them.

Agents are sorted into cells by where they are at the start of the step. Each searches only forward in the order of the
cells, so every pair is tested once. The few agents with an extent far above the average search all around instead, and
the others skip them; otherwise a single agent that jumps would make all others search as far. In periodic space no
extent may reach a quarter of the period, or agents would meet on two sides at once.
"""

from __future__ import annotations

import math

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
from tropel.agents.state import AgentState
from tropel.broad_phase import CellGrid
from tropel.errors import ModelError
from tropel.foundation.memory import require_memory
from tropel.world import World

_PER_CHUNK = 256
#: Room for candidates of a chunk at first, and beyond what the last step needed.
_FIRST_ROOM = 4 * _PER_CHUNK
_SPARE = 1.25
#: More cells than this per agent, and in all, cost more to clear than they save.
_CELLS_PER_AGENT = 64
_ALWAYS_CELLS = 1 << 16
#: Relative and absolute margin against rounding: candidates may be too many, never too few.
_MARGIN = 1e-12
_SEAM_MARGIN = 1e-15
#: Bytes that following a candidate takes, here and in `passing.py`.
_BYTES_PER_PAIR = 160.0


@parallel_kernel
def _measure_moves(cells, after, half, extent, widest, total):
    """Extents in the order of the cells; the largest and the sum of them by chunk."""
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
            e = half + math.sqrt(mx * mx + my * my + mz * mz)
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
def _keep(cells, k, j, pairs, at, last):
    """Write a pair of rows if there is room; returns where the next one goes."""
    if at < last:
        pairs[at, 0] = cells.order[k]
        pairs[at, 1] = cells.order[j]
    return at + 1


@kernel
def _look_all_around(cells, extent, k, ordinary, largest, pairs, at, last):
    """Candidates of an agent that goes far, except the others of its kind before it."""
    x, y = cells.position[0, k], cells.position[1, k]
    z = cells.position[2, k] if cells.position.shape[0] == 3 else 0.0
    x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, height(cells, k), extent[k] + largest)
    for cz in range(z0, z1 + 1):
        for cy in range(y0, y1 + 1):
            first, end = cell_run(cells, x0, x1, cy, cz)
            for j in range(first, end):
                if (j > k or (j < k and extent[j] <= ordinary)) and _reach_each_other(cells, extent, k, j, x, y, z):
                    at = _keep(cells, k, j, pairs, at, last)
    return at


@kernel
def _look_over_seam(cells, extent, k, largest, pairs, at, last):
    """Candidates after an agent in the order of the cells, on whichever side of a seam they are."""
    x, y = cells.position[0, k], cells.position[1, k]
    z = cells.position[2, k] if cells.position.shape[0] == 3 else 0.0
    window = wrapping_window(cells, x, y, height(cells, k), extent[k] + largest)
    for number in range(count_runs(cells, window)):
        first, end, shift_x, shift_y, shift_z = wrapping_run(cells, window, number)
        for j in range(max(first, k + np.uint64(1)), end):
            if _reach_each_other(cells, extent, k, j, x + shift_x, y + shift_y, z + shift_z):
                at = _keep(cells, k, j, pairs, at, last)
    return at


@inlined_kernel
def _looks_over_seam(cells, k, reach):
    window = wrapping_window(cells, cells.position[0, k], cells.position[1, k], height(cells, k), reach)
    return crosses_seam(cells, window)


@kernel
def _search_chunk(cells, extent, ordinary, largest, chunk, pairs, begin, last):
    """Candidates of one chunk of agents; returns how many there are, even if there is no room for all."""
    at = begin
    spatial = cells.position.shape[0] == 3
    widest = min(ordinary, largest)
    periodic = cells.period[0] > 0.0 or cells.period[1] > 0.0 or cells.period[2] > 0.0
    for place in range(chunk * _PER_CHUNK, min(extent.shape[0], (chunk + 1) * _PER_CHUNK)):
        k = np.uint64(place)
        if periodic and _looks_over_seam(cells, k, extent[k] + largest):
            at = _look_over_seam(cells, extent, k, largest, pairs, at, last)
            continue
        if extent[k] > ordinary:
            at = _look_all_around(cells, extent, k, ordinary, largest, pairs, at, last)
            continue
        x, y = cells.position[0, k], cells.position[1, k]
        z = cells.position[2, k] if spatial else 0.0
        x0, x1, y0, y1, _, z1 = cell_window(cells, x, y, height(cells, k), extent[k] + widest)
        own_y = axis_cell(y, cells.origin[1], cells.inverse_cell, cells.shape[1])
        own_z = axis_cell(z, cells.origin[2], cells.inverse_cell, cells.shape[2]) if spatial else z1
        for cz in range(own_z, z1 + 1):
            for cy in range(y0 if cz > own_z else own_y, y1 + 1):
                first, end = cell_run(cells, x0, x1, cy, cz)
                for j in range(max(first, k + np.uint64(1)), end):
                    if extent[j] <= ordinary and _reach_each_other(cells, extent, k, j, x, y, z):
                        at = _keep(cells, k, j, pairs, at, last)
    return at - begin


@parallel_kernel
def _find_candidates(cells, extent, ordinary, largest, pairs, start, found):
    """Pairs of rows of each chunk, from `start` on; counts beyond the room."""
    for chunk in prange(found.shape[0]):
        found[chunk] = _search_chunk(
            cells, extent, ordinary, largest, np.int64(chunk), pairs, start[chunk], start[chunk + 1]
        )


class CandidateSearch:
    """Finds candidates with cells of its own, and keeps the memory that this takes from step to step."""

    def __init__(self, distance: float) -> None:
        self._distance = distance
        self._grid: CellGrid | None = None
        self._start = np.zeros(1, dtype=np.int64)
        self._pairs = np.empty((0, 2), dtype=np.uint32)

    def begin(self, state: AgentState, world: World) -> None:
        """Sort agents by where they are at the start of the step; afterwards they may move."""
        if self._grid is None:
            extent = np.maximum(np.subtract(*world.bounds[::-1]), self._distance)
            cells = max(_ALWAYS_CELLS, _CELLS_PER_AGENT * len(state))
            smallest = float(np.prod(extent) / cells) ** (1.0 / world.dim)
            self._grid = CellGrid(cell=max(self._distance, smallest))
        self._grid.begin(state, world)
        self._grid.sort_now()

    def find(self, state: AgentState, world: World) -> NDArray[np.uint32]:
        """(P, 2): rows of all pairs that may have come within the distance since `begin`, each once, in any order."""
        assert self._grid is not None
        cells, count = self._grid.cell_list, len(state)
        chunks = -(-count // _PER_CHUNK)
        period = float(np.max(world.period, initial=0.0))
        half = 0.5 * self._distance * (1.0 + _MARGIN) + _SEAM_MARGIN * period
        extent, widest, total = np.empty(count), np.zeros(chunks), np.zeros(chunks)
        _measure_moves(cells, state.position, half, extent, widest, total)
        largest = float(widest.max(initial=0.0))
        ordinary = max(1.0 / cells.inverse_cell, 2.0 * float(total.sum()) / max(count, 1))
        if world.is_periodic:
            ordinary = math.inf
            self._check_reach(state, cells, extent, largest, world)
        if chunks >= len(self._start):
            self._make_room(np.full(chunks, _FIRST_ROOM, dtype=np.int64))
        found = np.zeros(chunks, dtype=np.int64)
        while True:
            _find_candidates(cells, extent, ordinary, largest, self._pairs, self._start[: chunks + 1], found)
            if (found <= np.diff(self._start[: chunks + 1])).all():
                break
            self._make_room(np.maximum((_SPARE * found).astype(np.int64), _FIRST_ROOM))
        place = np.repeat(self._start[:chunks] - np.cumsum(found) + found, found) + np.arange(found.sum())
        return self._pairs[place]

    def _make_room(self, room: NDArray[np.int64]) -> None:
        pairs = float(room.sum())
        require_memory(
            _BYTES_PER_PAIR * pairs,
            f"following {pairs:.3g} pairs of agents that may come within {self._distance:g} m of each other",
            "watch encounters at a shorter distance",
            error=ModelError,
        )
        self._start = np.concatenate([[0], np.cumsum(room)])
        self._pairs = np.empty((int(self._start[-1]), 2), dtype=np.uint32)

    def _check_reach(
        self, state: AgentState, cells: CellList, extent: NDArray[np.float64], largest: float, world: World
    ) -> None:
        if 4.0 * largest < world.shortest_period:
            return
        farthest = cells.order[extent == largest]
        row = int(farthest[np.argmin(state.id[farthest])])
        raise ModelError(
            f"agent {int(state.id[row])} made a step of {largest - 0.5 * self._distance:.3g} m while encounters are "
            f"watched within {self._distance:g} m; where space repeats every {world.shortest_period:g} m, the distance "
            f"and two such steps must be less than half of that: use a shorter distance, a shorter dt or a larger world"
        )
