"""Agents sorted by the cells of a uniform grid, and how kernels walk them.

Cells are numbered row-major with x fastest, so the cells of a window that share y and z are one contiguous run of
sorted agents. Within a cell, agents are in the order of their ids. In 2D the third axis has a cell for each level;
worlds have one level so far. A kernel visits all agents that may be within `radius` of a point, in the canonical
order, with

    x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, z, radius)
    for cz in range(z0, z1 + 1):
        for cy in range(y0, y1 + 1):
            first, last = cell_run(cells, x0, x1, cy, cz)
            for k in range(first, last):
                j = cells.order[k]  # the row; it is at (cells.position[0, k], cells.position[1, k])

and keeps those with a squared distance of at most radius · radius. Faster, sixteen at a time:

            for at in range(first, last, BLOCK):
                bits = near_bits(cells, at, last, x, y, z, radius * radius)
                while bits != 0:
                    k = at + trailing_zeros(bits)
                    bits &= bits - np.uint64(1)

In periodic space the same agents appear again beyond the seam, a period away. For kernels that support periodic space
(their model declares `periodic_space = True`), cell numbers continue beyond the seam, below 0 and from the last cell
up. The agent's own point is shifted by a period instead of all neighbours there, so the inner loop stays the same:

    window = wrapping_window(cells, x, y, z, radius)
    for number in range(count_runs(cells, window)):
        first, last, shift_x, shift_y, shift_z = wrapping_run(cells, window, number)
        ...  # as above, seen from (x + shift_x, y + shift_y, z + shift_z)

Shifts are exactly zero on this side of the seam and in space that is not periodic. If the window is nearly as wide as
the world, a cell may come twice, with two shifts. Because a radius is less than half a period, no agent is within the
radius twice, and neither is the agent's own image.

Before the cells come two functions for periodic coordinates: `wrapped` and `nearest_image`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel
from tropel._kernels.simd import TEST_WIDTH, bits_within_2d, bits_within_3d


@inlined_kernel
def wrapped(coordinate, low, high, period):
    """The coordinate in [low, high) that is the same place; the identical bits if it is there already."""
    if low <= coordinate < high or period == 0.0:
        return coordinate
    inside = coordinate - math.floor((coordinate - low) / period) * period
    # Rounding may leave it just outside, on either side of the seam; both are the place at `low`.
    return inside if low <= inside < high else low


@inlined_kernel
def nearest_image(offset, period):
    """The shortest of all offsets that lead to the same place; the offset itself if the period is 0."""
    if period == 0.0:
        return offset
    return offset - period * math.floor(offset / period + 0.5)


#: How many agents `near_bits` tests.
BLOCK = np.uint64(TEST_WIDTH)

_ONE = np.uint64(1)


class CellList(NamedTuple):
    """Hot columns of all agents, sorted by cell; a plain tuple of arrays, so that kernels take it as one argument.

    Vectors have one row per axis, so that a run of agents is contiguous in each. Numbers that serve as indices are
    unsigned: Numba then omits the test for a negative index, which saves a third of the time of a short inner loop.

    Parallel loops must only read it: Numba drops what a `prange` writes through the attribute of a tuple. Code that
    fills one takes the arrays out of the tuple first.
    """

    origin: NDArray[np.float64]  #: (3,): low corner
    inverse_cell: float
    shape: NDArray[np.int64]  #: (3,): cells along x, y and z
    cell_start: NDArray[np.uint32]  #: (cells + 1,): where the agents of a cell begin
    order: NDArray[np.uint32]  #: (N,): rows of the agents
    position: NDArray[np.float64]  #: (dim, N)
    sense_radius: NDArray[np.float64]  #: (N,)
    velocity: NDArray[np.float64]  #: (dim, N)
    radius: NDArray[np.float64]  #: (N,)
    group: NDArray[np.int32]  #: (N,)
    period: NDArray[np.float64]  #: (3,): length after which space repeats along x, y and z [m]; 0 if it does not
    level: NDArray[np.int16]  #: (N,): by row, unlike the other columns


@inlined_kernel
def axis_cell(coordinate, origin, inverse_cell, count):
    """Which of the `count` cells along an axis contains a coordinate; points outside belong to the border cells."""
    # Clamped before it becomes an integer, so that infinity has a cell too. Each operation is monotone even when
    # rounded, so a coordinate between two others always gets a cell between theirs.
    return np.int64(min(max((coordinate - origin) * inverse_cell, 0.0), count - 1.0))


@inlined_kernel
def padded(radius):
    """A radius beyond which no rounded squared distance is at most radius · radius."""
    return radius * (1.0 + 1e-12) + 1e-150


@inlined_kernel
def cell_window(cells, x, y, z, radius):
    """First and last cell along x, y and z that may hold agents within `radius` of a point; in 2D z is its level."""
    reach = padded(radius)
    if cells.position.shape[0] == 2:
        level = min(np.int64(z), cells.shape[2] - 1)
        return (
            axis_cell(x - reach, cells.origin[0], cells.inverse_cell, cells.shape[0]),
            axis_cell(x + reach, cells.origin[0], cells.inverse_cell, cells.shape[0]),
            axis_cell(y - reach, cells.origin[1], cells.inverse_cell, cells.shape[1]),
            axis_cell(y + reach, cells.origin[1], cells.inverse_cell, cells.shape[1]),
            level,
            level,
        )
    return (
        axis_cell(x - reach, cells.origin[0], cells.inverse_cell, cells.shape[0]),
        axis_cell(x + reach, cells.origin[0], cells.inverse_cell, cells.shape[0]),
        axis_cell(y - reach, cells.origin[1], cells.inverse_cell, cells.shape[1]),
        axis_cell(y + reach, cells.origin[1], cells.inverse_cell, cells.shape[1]),
        axis_cell(z - reach, cells.origin[2], cells.inverse_cell, cells.shape[2]),
        axis_cell(z + reach, cells.origin[2], cells.inverse_cell, cells.shape[2]),
    )


@inlined_kernel
def height(cells, k):
    """The third coordinate that windows need for the agent at place k: z, or in 2D its level."""
    if cells.position.shape[0] == 3:
        return cells.position[2, k]
    return np.float64(cells.level[np.uint64(cells.order[k])])


@inlined_kernel
def cell_run(cells, x0, x1, cy, cz):
    """First and one past the last sorted agent in the cells x0 to x1 of a row, as uint64."""
    row = (cz * cells.shape[1] + cy) * cells.shape[0]
    return np.uint64(cells.cell_start[np.uint64(row + x0)]), np.uint64(cells.cell_start[np.uint64(row + x1 + 1)])


@inlined_kernel
def _axis_window(x, reach, origin, inverse_cell, count, period):
    """First and last cell along an axis; numbers continue beyond the seam, below 0 and from `count` up."""
    first = axis_cell(x - reach, origin, inverse_cell, count)
    last = axis_cell(x + reach, origin, inverse_cell, count)
    if period > 0.0:
        # Rounded in the same order as the distances beyond the seam, so that rounding never misses a cell.
        if (x + period) - reach <= origin + period:
            first = axis_cell((x + period) - reach, origin, inverse_cell, count) - count
        if (x - period) + reach >= origin:
            last = axis_cell((x - period) + reach, origin, inverse_cell, count) + count
    return first, last


@inlined_kernel
def wrapping_window(cells, x, y, z, radius):
    """`cell_window` that continues beyond the seams of periodic space; for a point inside the world."""
    reach = padded(radius)
    x0, x1 = _axis_window(x, reach, cells.origin[0], cells.inverse_cell, cells.shape[0], cells.period[0])
    y0, y1 = _axis_window(y, reach, cells.origin[1], cells.inverse_cell, cells.shape[1], cells.period[1])
    if cells.position.shape[0] == 2:
        level = min(np.int64(z), cells.shape[2] - 1)
        return x0, x1, y0, y1, level, level
    z0, z1 = _axis_window(z, reach, cells.origin[2], cells.inverse_cell, cells.shape[2], cells.period[2])
    return x0, x1, y0, y1, z0, z1


@inlined_kernel
def crosses_seam(cells, window):
    """Whether a `wrapping_window` reaches beyond a seam."""
    x0, x1, y0, y1, z0, z1 = window
    return min(x0, y0, z0) < 0 or x1 >= cells.shape[0] or y1 >= cells.shape[1] or z1 >= cells.shape[2]


@inlined_kernel
def _x_sides(cells, x0, x1):
    """First and last side of the seam along x that a window reaches: -1 below, 0 this side, 1 above."""
    return np.int64(-1 if x0 < 0 else 0), np.int64(1 if x1 >= cells.shape[0] else 0)


@inlined_kernel
def behind_seam(cells, axis, cell):
    """The cell that a number of a `wrapping_window` refers to, and how far to shift the agent's point along it."""
    if cell < 0:
        return cell + cells.shape[axis], cells.period[axis]
    if cell >= cells.shape[axis]:
        return cell - cells.shape[axis], -cells.period[axis]
    return cell, 0.0


@inlined_kernel
def count_runs(cells, window):
    """How many runs of sorted agents a `wrapping_window` has: one for each of its rows on each side of the seam."""
    x0, x1, y0, y1, z0, z1 = window
    first_side, last_side = _x_sides(cells, x0, x1)
    return (z1 - z0 + 1) * (y1 - y0 + 1) * (last_side - first_side + 1)


@inlined_kernel
def wrapping_run(cells, window, number):
    """One of the runs of a `wrapping_window`, as `cell_run`, and how far to shift the agent's own point for it."""
    x0, x1, y0, y1, z0, _ = window
    first_side, last_side = _x_sides(cells, x0, x1)
    sides, rows = last_side - first_side + 1, y1 - y0 + 1
    # Divisions take longer than everything else, and in most windows there is nothing to divide.
    row = number // sides if sides > 1 else number
    layer = row // rows if row >= rows else 0
    side = first_side + number - row * sides
    cy, shift_y = behind_seam(cells, 1, y0 + row - layer * rows)
    cz, shift_z = behind_seam(cells, 2, z0 + layer)
    beyond = side * cells.shape[0]
    low, high = max(x0 - beyond, 0), min(x1 - beyond, cells.shape[0] - 1)
    first, last = cell_run(cells, low, high, cy, cz)
    return first, last, -side * cells.period[0], shift_y, shift_z


@inlined_kernel
def near_bits(cells, at, last, x, y, z, limit):
    """A bit for each of BLOCK sorted agents from `at` on, none at or after `last`: set if the squared distance to a
    point is at most `limit`."""
    return bits_within(cells.position, at, last, x, y, z, limit)


@inlined_kernel
def bits_within(position, at, last, x, y, z, limit):
    """`near_bits` for a table of positions, one row per axis."""
    stride = np.uint64(position.shape[1])
    spatial = position.shape[0] == 3
    if at + BLOCK <= stride:
        if spatial:
            bits = bits_within_3d(position, at, stride + at, stride + stride + at, x, y, z, limit)
        else:
            bits = bits_within_2d(position, at, stride + at, x, y, limit)
        return bits & ((_ONE << (last - at)) - _ONE) if last - at < BLOCK else bits
    # The very last agents: there is not enough memory behind them to read a whole block.
    bits = np.uint64(0)
    for k in range(at, last):
        dx, dy = position[0, k] - x, position[1, k] - y
        dz = position[2, k] - z if spatial else 0.0
        if dx * dx + dy * dy + dz * dz <= limit:
            bits |= _ONE << (k - at)
    return bits
