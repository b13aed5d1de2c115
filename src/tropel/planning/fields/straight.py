"""Straightening a field: from a cell, aim at the farthest point of the path ahead that is in clear sight.

Shortest paths on a raster turn by 45 degrees only, and many are equally long. Agents that follow them cell by cell walk
along walls and axes. Aiming ahead gives the straight line to the next corner. Path lengths also fall along that line:
every point of the line to a cell of the path has a shorter path left than its start, because raster moves along the
line are possible.

The aim of a cell is found when an agent first comes to it, and cached; it is a function of the cell.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel.planning.fields.following import (
    BLOCKED,
    REACHABLE,
    beside,
    follow_chunk,
    line_is_clear,
    own_cell,
    path_back,
)

#: How far ahead to check at most, in moves.
_FURTHEST = 256
_CHUNK = 256


@kernel
def _row_of_steps(iy, field, steps):
    ny, nx = field.kind.shape[1], field.kind.shape[2]
    for ix in range(nx):
        best = field.value[0, iy, ix]
        step = 0
        for sy in range(-1, 2):
            for sx in range(-1, 2):
                y, x = iy + sy, ix + sx
                if y < 0 or x < 0 or y >= ny or x >= nx or field.kind[0, y, x] < REACHABLE:
                    continue
                if sy and sx and (field.kind[0, iy, x] < REACHABLE or field.kind[0, y, ix] < REACHABLE):
                    continue
                if field.value[0, y, x] > best:
                    best = field.value[0, y, x]
                    step = sy * nx + sx
        steps[iy * nx + ix] = step


@parallel_kernel
def steps_uphill(field, steps):
    """Write the step from each cell (numbered row by row) to the neighbour with the best value; zero to stay.

    Diagonally only past two free cells.
    """
    for iy in numba.prange(field.kind.shape[1]):
        _row_of_steps(np.int64(iy), field, steps)


@inlined_kernel
def _in_sight(iy, ix, there, field):
    nx = field.kind.shape[2]
    x = field.origin[0] + (ix + 0.5) * field.cell
    y = field.origin[1] + (iy + 0.5) * field.cell
    return line_is_clear(x, y, 0.0, (there % nx - ix) * field.cell, (there // nx - iy) * field.cell, 0.0, field)


@kernel
def aim_ahead(iy, ix, field, steps, straight):
    """Write the unit vector from a cell to the farthest cell of its path that is in sight; returns that cell.

    Checks ahead in strides that double until the path is out of sight, then halve.
    """
    nx = field.kind.shape[2]
    here = iy * nx + ix
    seen = here + steps[here]
    stride = gone = 1
    doubling = True
    while stride > 0:
        there = seen
        for _ in range(stride):
            there += steps[there]
        if gone + stride <= _FURTHEST and there != seen and _in_sight(iy, ix, there, field):
            seen = there
            gone += stride
            if doubling:
                stride *= 2
                continue
        doubling = False
        stride //= 2
    if gone == 1:
        # Too narrow to aim ahead: follow the field's own vector.
        straight[0, iy, ix, 0], straight[0, iy, ix, 1] = field.vectors[0, iy, ix, 0], field.vectors[0, iy, ix, 1]
        return seen
    dx, dy = np.float64(seen % nx - ix), np.float64(seen // nx - iy)
    length = math.sqrt(dx * dx + dy * dy)
    straight[0, iy, ix, 0], straight[0, iy, ix, 1] = dx / length, dy / length
    return seen


@inlined_kernel
def _unknown(iy, ix, straight):
    # Check both numbers: another thread may have written only one of them so far.
    return math.isnan(straight[0, iy, ix, 0]) or math.isnan(straight[0, iy, ix, 1])


@kernel
def _straighten_under(i, position, field, walls, steps, straight):
    """Fill in the cells that determine the direction of row i: its own and the three next to it."""
    x, y = position[i, 0], position[i, 1]
    iz, iy, ix = own_cell(x, y, 0.0, field)
    if field.kind[iz, iy, ix] == BLOCKED:
        iz, iy, ix, _ = path_back(x, y, 0.0, iz, iy, ix, field, walls)
    if iz < 0:
        return
    _, _, jy, jx = beside(x, y, iy, ix, field)
    for m in range(4):
        cy, cx = jy if m & 1 else iy, jx if m & 2 else ix
        if _unknown(cy, cx, straight):
            aim_ahead(cy, cx, field, steps, straight)


@kernel
def _complete_chunk(
    position, rows, first, last, field, followed, walls, goals, numbers, sight, look, steps, straight, out
):
    """Follow again where the direction is NaN, after filling in the unknown cells there."""
    for k in range(first, last):
        i = rows[k]
        if math.isnan(out[i, 0] + out[i, 1]):
            _straighten_under(i, position, field, walls, steps, straight)
            follow_chunk(position, rows, k, k + 1, followed, walls, goals, numbers, sight, look, out)


@parallel_kernel
def follow_straightened(position, rows, field, followed, walls, goals, numbers, sight, look, steps, straight, out):
    """`follow_field` along straightened vectors, which are computed where they are not known yet; 2D.

    `straight` (1, ny, nx, 2) has them, NaN in cells that no agent has visited and zero where there is no path.
    `followed` is `field` with `straight` as its vectors. Two threads may come to the same cell; they write the same
    values.
    """
    for chunk in numba.prange((rows.size + _CHUNK - 1) // _CHUNK):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, rows.size)
        follow_chunk(position, rows, first, last, followed, walls, goals, numbers, sight, look, out)
        _complete_chunk(
            position, rows, first, last, field, followed, walls, goals, numbers, sight, look, steps, straight, out
        )


@kernel
def _straighten_row(iy, field, steps, straight):
    for ix in range(field.kind.shape[2]):
        if _unknown(iy, ix, straight):
            aim_ahead(iy, ix, field, steps, straight)


@parallel_kernel
def straighten_all(field, steps, straight):
    """Fill in every cell."""
    for iy in numba.prange(field.kind.shape[1]):
        _straighten_row(np.int64(iy), field, steps, straight)
