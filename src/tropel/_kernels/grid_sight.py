"""Who sees the goal: straight lines over a raster, as wide as three cells.

A line is clear when the cells under it and all cells beside them are free. Free cells hold no wall, so whoever stands
anywhere in the first cell has a clear line too, and pillars count like walls.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import kernel
from tropel._kernels.polygons import inside_edges
from tropel._kernels.walls import nearest_on_segment

#: What is remembered of a cell besides the number of a goal.
UNKNOWN, NOTHING_IN_SIGHT = -2, -1
#: Goal cells have this kind, see `grid_follow`.
_FREE, _GOAL = 1, 3


@kernel
def aim_at(x, y, z, g, goals):
    """The way from a point to what people aim at of goal g: zero inside an exit or within a target's radius."""
    if not goals.is_exit[g]:
        dx, dy = goals.position[g, 0] - x, goals.position[g, 1] - y
        dz = goals.position[g, 2] - z if goals.position.shape[1] == 3 else 0.0
        if dx * dx + dy * dy + dz * dz <= goals.radius[g] ** 2:
            return 0.0, 0.0, 0.0
        return dx, dy, dz
    if inside_edges(x, y, goals.edges, goals.edge_start[g], goals.edge_start[g + 1]):
        return 0.0, 0.0, 0.0
    best = math.inf
    dx = dy = 0.0
    for e in range(goals.approach_start[g], goals.approach_start[g + 1]):
        qx, qy = nearest_on_segment(
            x, y, goals.approach[e, 0], goals.approach[e, 1], goals.approach[e, 2], goals.approach[e, 3]
        )
        away2 = (qx - x) ** 2 + (qy - y) ** 2
        if away2 < best:
            best = away2
            dx, dy = qx - x, qy - y
    return dx, dy, 0.0


@kernel
def straight_on(x, y, z, goals, numbers):
    """The nearest of the goals, as the crow flies."""
    best = math.inf
    nearest = np.int64(-1)
    for k in range(numbers.size):
        dx, dy, dz = aim_at(x, y, z, numbers[k], goals)
        away2 = dx * dx + dy * dy + dz * dz
        if away2 < best:
            best = away2
            nearest = numbers[k]
    return nearest


@kernel
def line_is_clear(x, y, z, dx, dy, dz, field):
    """Whether the line from a point along (dx, dy, dz) is clear until it ends or enters a goal cell.

    Looks at one point per cell. That is enough because cells are asked to be free all around; only close to both ends
    of the line, which may be at a wall, it is enough that they are free themselves.
    """
    nz, ny, nx = field.kind.shape
    distance = math.sqrt(dx * dx + dy * dy + dz * dz) * field.inverse_cell
    looks = np.int64(distance) + 1
    sx, sy, sz = dx * field.inverse_cell / looks, dy * field.inverse_cell / looks, dz * field.inverse_cell / looks
    px = (x - field.origin[0]) * field.inverse_cell
    py = (y - field.origin[1]) * field.inverse_cell
    pz = (z - field.origin[2]) * field.inverse_cell
    for k in range(1, looks + 1):
        ix, iy, iz = math.floor(px + k * sx), math.floor(py + k * sy), math.floor(pz + k * sz)
        if ix < 0 or iy < 0 or iz < 0 or ix >= nx or iy >= ny or iz >= nz:
            return False
        jz, jy, jx = np.int64(iz), np.int64(iy), np.int64(ix)
        if field.kind[jz, jy, jx] == _GOAL:
            return True
        if not field.wide[jz, jy, jx] and (1 < k < looks - 2 or field.kind[jz, jy, jx] < _FREE):
            return False
    return True


@kernel
def goal_in_sight(iz, iy, ix, field, goals, numbers):
    """The nearest of the goals that is in clear sight of a cell and no detour; NOTHING_IN_SIGHT when there is none.

    Where the length of the way is known, a goal in sight that is further off than the one the field leads to is none.
    """
    x = field.origin[0] + (ix + 0.5) * field.cell
    y = field.origin[1] + (iy + 0.5) * field.cell
    z = field.origin[2] + (iz + 0.5) * field.cell if field.kind.shape[0] > 1 else 0.0
    # People aim at what is well inside an exit, a little further than its first cell.
    furthest = math.inf
    if field.metres_per_value != 0.0:
        furthest = field.value[iz, iy, ix] * field.metres_per_value + 4.0 * field.cell
    best = math.inf
    seen = np.int64(NOTHING_IN_SIGHT)
    for k in range(numbers.size):
        dx, dy, dz = aim_at(x, y, z, numbers[k], goals)
        distance = math.sqrt(dx * dx + dy * dy + dz * dz)
        if 0.0 < distance < best and distance <= furthest and line_is_clear(x, y, z, dx, dy, dz, field):
            best = distance
            seen = numbers[k]
    return seen
