"""Neighbours as the kernels of steering models walk them: runs of a table, whatever environment has filled it.

For an agent in row i at (x, y, z), a kernel visits all candidates that may be within `radius` with

    view = view_of(near, i, x, y, z, radius)
    for number in range(count_runs(near, view)):
        first, last, shift_x, shift_y, shift_z = run_of(near, view, number)
        for k in range(first, last):
            j = near.met[k]  # the row; it is at (near.met_position[0, k], near.met_position[1, k]) …

seen from (x + shift_x, y + shift_y, z + shift_z), and keeps those with a squared distance of at most radius · radius.
The agent itself is among them. Faster, sixteen at a time: `bits_within` and `meeting_bits`.

A grid provides the runs of its cells, over columns that are sorted by cell. An environment that has lists provides one
run for each row, over a table with an entry for each pair, in the order of cells and then of ids. So neighbours come in
the same order, and a model needs no second kernel. Shifts are for periodic space; lists already contain the positions
of the nearest images, and all their shifts are zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels import cells as by_cell
from tropel._kernels.cells import BLOCK, wrapping_run, wrapping_window
from tropel._kernels.compile import inlined_kernel
from tropel._kernels.simd import bits_meeting_2d, bits_meeting_3d

_ONE = np.uint64(1)
_count_cell_runs = by_cell.count_runs


class Neighbours(NamedTuple):
    """All agents by cell, and their neighbours; a plain tuple of arrays, so that kernels take it as one argument.

    The first part is that of a `CellList`: hot columns by place, the agent's index in the order of the cells. The
    second part is the table that runs index: with a grid the same arrays, with lists an entry for each pair.
    """

    origin: NDArray[np.float64]
    inverse_cell: float
    shape: NDArray[np.int64]
    cell_start: NDArray[np.uint32]
    order: NDArray[np.uint32]
    position: NDArray[np.float64]
    sense_radius: NDArray[np.float64]
    velocity: NDArray[np.float64]
    radius: NDArray[np.float64]
    group: NDArray[np.int32]
    period: NDArray[np.float64]
    level: NDArray[np.int16]
    list_start: NDArray[np.int64]  #: (N + 1,): where the list of a row begins; empty if there are no lists
    met: NDArray[np.uint32]  #: (M,): rows of the neighbours
    met_position: NDArray[np.float64]  #: (dim, M)
    met_velocity: NDArray[np.float64]  #: (dim, M)
    met_radius: NDArray[np.float64]  #: (M,)
    met_group: NDArray[np.int32]  #: (M,)


@inlined_kernel
def view_of(near, i, x, y, z, radius):
    """Where to find agents within `radius` of agent i at a point (z is ignored in 2D)."""
    if near.list_start.size > 0:
        zero = np.int64(0)
        return near.list_start[i], near.list_start[i + 1], zero, zero, zero, zero
    return wrapping_window(near, x, y, z if near.position.shape[0] == 3 else np.float64(near.level[i]), radius)


@inlined_kernel
def count_runs(near, view):
    """How many runs a view has."""
    return np.int64(1) if near.list_start.size > 0 else _count_cell_runs(near, view)


@inlined_kernel
def run_of(near, view, number):
    """First and one past the last entry of a run, as uint64, and how far to shift the agent's own point for it."""
    if near.list_start.size > 0:
        return np.uint64(view[0]), np.uint64(view[1]), 0.0, 0.0, 0.0
    return wrapping_run(near, view, number)


@inlined_kernel
def meeting_bits(near, at, last, x, y, z, vx, vy, vz, share, body, limit, horizon, close):
    """A bit for each of BLOCK entries from `at` on, none at or after `last`: set for entries that a body at a point
    may meet (see `bits_meeting_2d`)."""
    position, velocity, radius = near.met_position, near.met_velocity, near.met_radius
    stride = np.uint64(position.shape[1])
    spatial = position.shape[0] == 3
    if at + BLOCK <= stride:
        if spatial:
            bits = bits_meeting_3d(position, velocity, radius, at, stride, x, y, z, vx, vy, vz, share, body, limit,
                                   horizon, close)  # fmt: skip
        else:
            bits = bits_meeting_2d(position, velocity, radius, at, stride, x, y, vx, vy, share, body, limit, horizon,
                                   close)  # fmt: skip
        return bits & ((_ONE << (last - at)) - _ONE) if last - at < BLOCK else bits
    bits = np.uint64(0)
    for k in range(at, last):
        dx, dy = position[0, k] - x, position[1, k] - y
        rx, ry = vx - share * velocity[0, k], vy - share * velocity[1, k]
        dz = rz = 0.0
        if spatial:
            dz, rz = position[2, k] - z, vz - share * velocity[2, k]
        away2 = dx * dx + dy * dy + dz * dz
        free = math.sqrt(away2) - (radius[k] + body)
        meets = free * free <= horizon * horizon * (rx * rx + ry * ry + rz * rz)
        if away2 <= limit and (meets or free <= close):
            bits |= _ONE << (k - at)
    return bits
