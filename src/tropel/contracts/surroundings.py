"""Lists per agent of the walls and obstacles within its sense radius."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import prange

from tropel._kernels.compile import parallel_kernel
from tropel._kernels.csr import Csr, sum_up
from tropel._kernels.discs import DiscGrid, disc_cell
from tropel._kernels.walls import WallGrid, cell_at, nearest_on_segment
from tropel.agents.state import AgentState


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


def list_walls(state: AgentState, walls: WallGrid) -> Csr:
    """Numbers of the blocking walls within each agent's sense radius, ascending."""
    return _counted_then_filled(_list_walls, state, walls)


def list_obstacles(state: AgentState, obstacles: DiscGrid) -> Csr:
    """Numbers of the obstacles whose surface is within each agent's sense radius, ascending."""
    return _counted_then_filled(_list_obstacles, state, obstacles)


def _counted_then_filled(fill: Callable[..., None], state: AgentState, grid: WallGrid | DiscGrid) -> Csr:
    """Lists here are short, so that finding everything twice is cheap."""
    count = len(state)
    length, indptr = np.empty(count, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
    indices = np.empty(0, dtype=np.int32)
    if len(grid.items) == 0:
        return Csr(indptr, indices)
    fill(state.position, state.sense_radius, grid, length, indptr, indices, False)
    indices = np.empty(sum_up(length, indptr), dtype=np.int32)
    fill(state.position, state.sense_radius, grid, length, indptr, indices, True)
    return Csr(indptr, indices)
