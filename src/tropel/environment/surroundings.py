"""Lists per agent of the walls and obstacles within its sense radius."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.compile import parallel_kernel
from tropel._kernels.csr import Csr, sum_up
from tropel._kernels.discs import DiscGrid, disc_cell
from tropel._kernels.walls import WallGrid, cell_at, nearest_on_segment
from tropel.agents.state import AgentState

_Ints = NDArray[np.int64]
_Items = NDArray[np.int32]


@parallel_kernel
def _list_walls(position, sense_radius, walls, length, indptr, indices, fill):
    """Count the walls near each agent, or write down which they are."""
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
    """Count the obstacles near each agent, or write down which they are."""
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


class _TwoPassLists:
    """Counts, then fills; keeps the memory from step to step. Lists here are short, so the distances are cheap."""

    def __init__(self, fill: Callable[..., None]) -> None:
        self._fill = fill
        self._length = np.empty(0, dtype=np.int64)
        self._indptr = np.zeros(1, dtype=np.int64)
        self._indices = np.empty(0, dtype=np.int32)

    def build(self, state: AgentState, grid: WallGrid | DiscGrid) -> Csr:
        count = len(state)
        if count > len(self._length):
            room = count + count // 4
            self._length = np.empty(room, dtype=np.int64)
            self._indptr = np.zeros(room + 1, dtype=np.int64)
        length, indptr = self._length[:count], self._indptr[: count + 1]
        if len(grid.items) == 0:
            indptr.fill(0)
            return Csr(indptr, self._indices[:0])
        self._fill(state.position, state.sense_radius, grid, length, indptr, self._indices, False)
        total = sum_up(length, indptr)
        if total > len(self._indices):
            self._indices = np.empty(total + total // 4, dtype=np.int32)
        self._fill(state.position, state.sense_radius, grid, length, indptr, self._indices, True)
        return Csr(indptr, self._indices[:total])


class Surroundings:
    """What stands around each agent."""

    def __init__(self) -> None:
        self._walls = _TwoPassLists(_list_walls)
        self._obstacles = _TwoPassLists(_list_obstacles)

    def walls(self, state: AgentState, walls: WallGrid) -> Csr:
        return self._walls.build(state, walls)

    def obstacles(self, state: AgentState, obstacles: DiscGrid) -> Csr:
        return self._obstacles.build(state, obstacles)
