"""Following a field of unit vectors on a raster: interpolated between cells, never across a wall.

Arrays of cells have three axes here, [iz, iy, ix], with a single slice in 2D. Near a wall a cell may have two sides;
there the agent searches for the nearest free centre that it can reach in a straight line, which decides the side.

The file begins with lines of sight to the goal; the directions of agents follow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.walls import chord_blocked, nearest_on_segment
from tropel.agents.towards_goal import stops_in, to_box

# Lines of sight to the goal: straight lines over a raster, as wide as three cells.
#
# A line is clear if the cells under it and all cells next to them are free. Free cells contain no wall, so agents
# anywhere in the first cell have a clear line too, and pillars count like walls.


#: Values of the sight cache besides the numbers of goals.
UNKNOWN, NOTHING_IN_SIGHT = -2, -1
#: Kinds of cells, as below; goal cells have the last.
_FREE, _GOAL = 1, 3


@kernel
def aim_at(x, y, z, g, goals):
    """The offset from a point to where agents aim in goal g: zero inside an area or within a target's radius."""
    if goals.is_target[g]:
        dx, dy = goals.position[g, 0] - x, goals.position[g, 1] - y
        dz = goals.position[g, 2] - z if goals.position.shape[1] == 3 else 0.0
        if dx * dx + dy * dy + dz * dz <= goals.radius[g] ** 2:
            return 0.0, 0.0, 0.0
        return dx, dy, dz
    if goals.position.shape[1] == 3:
        return to_box(x, y, z, goals, g)
    # At a door, agents are stopped afterwards: that depends on their bodies.
    if not goals.is_line[g] and stops_in(x, y, 0.0, goals, g):
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
    """The nearest of the goals, in a straight line."""
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

    Checks one point per cell. That is enough because all cells around must be free. Close to the ends of the line,
    which may be at a wall, only the cells themselves must be free. In open space many points need no check.
    """
    nz, ny, nx = field.kind.shape
    distance = math.sqrt(dx * dx + dy * dy + dz * dz) * field.inverse_cell
    looks = np.int64(distance) + 1
    sx, sy, sz = dx * field.inverse_cell / looks, dy * field.inverse_cell / looks, dz * field.inverse_cell / looks
    px = (x - field.origin[0]) * field.inverse_cell
    py = (y - field.origin[1]) * field.inverse_cell
    pz = (z - field.origin[2]) * field.inverse_cell
    k = 1
    while k <= looks:
        ix, iy, iz = math.floor(px + k * sx), math.floor(py + k * sy), math.floor(pz + k * sz)
        if ix < 0 or iy < 0 or iz < 0 or ix >= nx or iy >= ny or iz >= nz:
            return False
        jz, jy, jx = np.uint64(iz), np.uint64(iy), np.uint64(ix)
        room = np.int64(field.room[jz, jy, jx])
        # Cells of the goal have no more room than 1, so that most looks read one array only.
        if room <= 1:
            kind = field.kind[jz, jy, jx]
            if kind == _GOAL:
                return True
            if room == 0 and (1 < k < looks - 2 or kind < _FREE):
                return False
        k += max(room, 1)
    return True


@kernel
def goal_in_sight(iz, iy, ix, field, goals, numbers):
    """The nearest of the goals that is in clear sight of a cell and not a detour; NOTHING_IN_SIGHT if there is none.

    If the path length is known, a goal in sight that is farther away than the one the field leads to does not count.
    """
    x = field.origin[0] + (ix + 0.5) * field.cell
    y = field.origin[1] + (iy + 0.5) * field.cell
    z = field.origin[2] + (iz + 0.5) * field.cell if field.kind.shape[0] > 1 else 0.0
    # Agents aim at a point well inside an exit, slightly farther than its first cell.
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


#: Kinds of cells.
BLOCKED, UNREACHABLE, REACHABLE, GOAL = 0, 1, 2, 3
#: Agents per unit of parallel work.
_CHUNK = 256
#: Vectors that cancel to less than this (on the line between two equally long paths) are not averaged.
_CANCELLED = 0.3


class FieldArrays(NamedTuple):
    """A field as kernels read it. Parallel loops only read it."""

    kind: NDArray[np.uint8]  #: (nz, ny, nx)
    room: NDArray[np.uint8]  #: (nz, ny, nx): 0, or how many cells one may go on without a look; see `room_around`
    vectors: NDArray[np.float32]  #: (nz, ny, nx, dim): unit vectors, zero on the goal and where there is no path
    value: NDArray[np.float64]  #: (nz, ny, nx): larger is nearer to the goal
    metres_per_value: float  #: times the value, the path length [m]; 0 if that is not known
    origin: NDArray[np.float64]  #: (3,)
    cell: float
    inverse_cell: float
    around: NDArray[np.int64]  #: (K, 3): steps to nearby cells along z, y, x, nearest first


@inlined_kernel
def _along(place, origin, inverse_cell, count):
    """The position of a coordinate on an axis of the raster, in cells, clamped to the border."""
    at = (place - origin) * inverse_cell
    # The comparisons are in this order so that nan becomes zero.
    at = at if at > 0.0 else 0.0
    return at if at < count else np.float64(count)


@inlined_kernel
def _cell_at(at, count):
    # Truncating is cheaper than rounding down, and the same for numbers that are not negative.
    return min(np.int64(at), count - 1)


@inlined_kernel
def _next_to(at, i, count):
    """The distance of a place on an axis to the centre of its own cell i, in cells, and the neighbour on that side.

    Integer arithmetic instead of a comparison, which would mispredict every other time.
    """
    return abs(at - i - 0.5), min(max(2 * np.int64(at + 0.5) - 1 - i, 0), count - 1)


@inlined_kernel
def own_cell(x, y, z, field):
    """Index of the cell that contains a point; points outside belong to the nearest cell at the border."""
    nz, ny, nx = field.kind.shape
    iz = _cell_at(_along(z, field.origin[2], field.inverse_cell, nz), nz)
    iy = _cell_at(_along(y, field.origin[1], field.inverse_cell, ny), ny)
    ix = _cell_at(_along(x, field.origin[0], field.inverse_cell, nx), nx)
    return iz, iy, ix


@inlined_kernel
def beside(x, y, iy, ix, field):
    """Distance of a point to the centre of its own cell along y and x, in cells, and the neighbours on that side."""
    ny, nx = field.kind.shape[1], field.kind.shape[2]
    fy, jy = _next_to(_along(y, field.origin[1], field.inverse_cell, ny), iy, ny)
    fx, jx = _next_to(_along(x, field.origin[0], field.inverse_cell, nx), ix, nx)
    return fy, fx, jy, jx


@inlined_kernel
def _layer_between(layer, row, column, next_row, next_column, fy, fx, field):
    """Sum of the vectors of four cells of a slice, weighted by nearness; cells without a vector do not count."""
    vectors = field.vectors
    # Unsigned, or the compiler would check for each index whether it counts from the end.
    iz, iy, ix = np.uint64(layer), np.uint64(row), np.uint64(column)
    jy, jx = np.uint64(next_row), np.uint64(next_column)
    ax, ay = vectors[iz, iy, ix, 0], vectors[iz, iy, ix, 1]
    bx, by = vectors[iz, iy, jx, 0], vectors[iz, iy, jx, 1]
    cx, cy = vectors[iz, jy, ix, 0], vectors[iz, jy, ix, 1]
    ey, ex = 1.0 - fy, 1.0 - fx
    w = ey * ex
    vx, vy = w * ax, w * ay
    w = ey * fx
    vx, vy = vx + w * bx, vy + w * by
    w = fy * ex
    vx, vy = vx + w * cx, vy + w * cy
    # Diagonally only past two free cells: rasters made from maps have walls in the corners of cells.
    w = fy * fx if (abs(bx) + abs(by) > 0.0) & (abs(cx) + abs(cy) > 0.0) else 0.0
    vx, vy = vx + w * vectors[iz, jy, jx, 0], vy + w * vectors[iz, jy, jx, 1]
    vz = 0.0
    if vectors.shape[3] == 3:
        vz = ey * (ex * vectors[iz, iy, ix, 2] + fx * vectors[iz, iy, jx, 2])
        vz += fy * ex * vectors[iz, jy, ix, 2] + w * vectors[iz, jy, jx, 2]
    return vx, vy, vz


@inlined_kernel
def _between(x, y, z, iz, iy, ix, field):
    """Mean of the vectors of the cells around a point in a free cell, weighted by nearness; length up to one."""
    nz = field.kind.shape[0]
    fy, fx, jy, jx = beside(x, y, iy, ix, field)
    vx, vy, vz = _layer_between(iz, iy, ix, jy, jx, fy, fx, field)
    if nz > 1:
        fz, jz = _next_to(_along(z, field.origin[2], field.inverse_cell, nz), iz, nz)
        if field.kind[jz, iy, ix] < REACHABLE:
            fz = 0.0
        ux, uy, uz = _layer_between(jz, iy, ix, jy, jx, fy, fx, field)
        vx, vy, vz = vx + fz * (ux - vx), vy + fz * (uy - vy), vz + fz * (uz - vz)
    if vx * vx + vy * vy + vz * vz < _CANCELLED * _CANCELLED:
        vx, vy = np.float64(field.vectors[iz, iy, ix, 0]), np.float64(field.vectors[iz, iy, ix, 1])
        if field.vectors.shape[3] == 3:
            vz = np.float64(field.vectors[iz, iy, ix, 2])
    return vx, vy, vz


@kernel
def path_back(x, y, z, iz, iy, ix, field, walls):
    """Where to go from a place that is not free: index of a cell with a path to the goal, and whether to aim at it.

    Of the cells whose centres can be reached in a straight line, it is the one with the best value among those hardly
    farther away than the nearest. Heading for the nearest itself would lead in circles at corners, where it is behind
    the agent. If the nearest is also the best, the agent follows its vector instead of aiming at it. The index is -1 if
    there is none.
    """
    nz, ny, nx = field.kind.shape
    furthest = best = math.inf
    highest = -math.inf
    found_z = found_y = found_x = np.int64(-1)
    for best_of_near in range(2):
        for k in range(field.around.shape[0]):
            sz, sy, sx = field.around[k, 0], field.around[k, 1], field.around[k, 2]
            # Steps are counted from the centre of the cell, at most 0.87 cells away from the agent.
            if math.sqrt(sz * sz + sy * sy + sx * sx) - 0.87 > furthest * field.inverse_cell:
                break
            cz, cy, cx = iz + sz, iy + sy, ix + sx
            if cz < 0 or cy < 0 or cx < 0 or cz >= nz or cy >= ny or cx >= nx or field.kind[cz, cy, cx] < REACHABLE:
                continue
            px = field.origin[0] + (cx + 0.5) * field.cell
            py = field.origin[1] + (cy + 0.5) * field.cell
            pz = field.origin[2] + (cz + 0.5) * field.cell if nz > 1 else z
            away = math.sqrt((px - x) ** 2 + (py - y) ** 2 + (pz - z) ** 2)
            value = field.value[cz, cy, cx]
            better = away <= furthest and value > highest if best_of_near else away < best
            if better and not (nz == 1 and chord_blocked(x, y, px, py, walls)):
                if not best_of_near:
                    best = furthest = away
                highest = value
                found_z, found_y, found_x = cz, cy, cx
        if not best_of_near:
            near_z, near_y, near_x = found_z, found_y, found_x
            furthest = best + field.cell
    return found_z, found_y, found_x, found_z != near_z or found_y != near_y or found_x != near_x


@inlined_kernel
def _from_the_wall(x, y, z, iz, iy, ix, aim, field):
    """Towards the centre of a free cell nearby, plus its vector unless the agent should aim at that centre."""
    nz = field.kind.shape[0]
    dx = field.origin[0] + (ix + 0.5) * field.cell - x
    dy = field.origin[1] + (iy + 0.5) * field.cell - y
    dz = field.origin[2] + (iz + 0.5) * field.cell - z if nz > 1 else 0.0
    away = math.sqrt(dx * dx + dy * dy + dz * dz)
    if away > 0.0:
        dx, dy, dz = dx / away, dy / away, dz / away
    vx = field.vectors[iz, iy, ix, 0] + dx
    vy = field.vectors[iz, iy, ix, 1] + dy
    vz = field.vectors[iz, iy, ix, 2] + dz if nz > 1 else 0.0
    if aim or vx * vx + vy * vy + vz * vz < _CANCELLED * _CANCELLED:
        return dx, dy, dz
    return vx, vy, vz


@kernel
def _direction(x, y, z, field, walls, goals, numbers, sight, look):
    """The direction from any point, of any length; zero where there is no path."""
    iz, iy, ix = own_cell(x, y, z, field)
    pressed = field.kind[iz, iy, ix] == BLOCKED
    aim = False
    if pressed:
        iz, iy, ix, aim = path_back(x, y, z, iz, iy, ix, field, walls)
        if iz < 0:
            return 0.0, 0.0, 0.0
    kind = field.kind[iz, iy, ix]
    goal = np.int64(NOTHING_IN_SIGHT)
    if kind == GOAL:
        goal = straight_on(x, y, z, goals, numbers)
    elif look and kind == REACHABLE and not pressed:
        if sight[iz, iy, ix] == UNKNOWN:
            sight[iz, iy, ix] = goal_in_sight(iz, iy, ix, field, goals, numbers)
        goal = np.int64(sight[iz, iy, ix])
    if goal >= 0:
        return aim_at(x, y, z, goal, goals)
    if kind < REACHABLE:
        return 0.0, 0.0, 0.0
    if pressed:
        return _from_the_wall(x, y, z, iz, iy, ix, aim, field)
    return _between(x, y, z, iz, iy, ix, field)


@kernel
def follow_chunk(position, rows, first, last, field, walls, goals, numbers, sight, look, out):
    """`follow_field` for some of the rows."""
    dim = position.shape[1]
    for k in range(first, last):
        i = np.uint64(rows[k])
        x, y = position[i, 0], position[i, 1]
        z = position[i, 2] if dim == 3 else 0.0
        plain = False
        goal = np.int64(NOTHING_IN_SIGHT)
        if dim == 2:
            # Nearly all agents are on a cell from which the goal is seen, or with a vector, which only cells with a
            # path to the goal have. These checks alone save the other lookups.
            _, iy, ix = own_cell(x, y, z, field)
            if look:
                goal = np.int64(sight[0, np.uint64(iy), np.uint64(ix)])
            if goal == NOTHING_IN_SIGHT:
                vx, vy = (
                    field.vectors[0, np.uint64(iy), np.uint64(ix), 0],
                    field.vectors[0, np.uint64(iy), np.uint64(ix), 1],
                )
                plain = (vx != 0.0) | (vy != 0.0)
        if goal >= 0:
            vx, vy, vz = aim_at(x, y, z, goal, goals)
        elif plain:
            vx, vy, vz = _between(x, y, z, 0, iy, ix, field)
        else:
            vx, vy, vz = _direction(x, y, z, field, walls, goals, numbers, sight, look)
        length = math.sqrt(vx * vx + vy * vy + vz * vz)
        scale = 1.0 / length if length > 0.0 else 0.0
        out[i, 0] = vx * scale
        out[i, 1] = vy * scale
        if dim == 3:
            out[i, 2] = vz * scale


@parallel_kernel
def follow_field(position, rows, field, walls, goals, numbers, sight, look, out):
    """Write a unit vector, or zero where there is no path, into the rows of `out`.

    It points straight to the goal on goal cells, and with `look` also where one of the goals `numbers` is in clear
    sight. `sight` caches per cell what is seen from there: it is a function of the cell, so threads may fill it in any
    order.
    """
    for chunk in numba.prange((rows.size + _CHUNK - 1) // _CHUNK):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, rows.size)
        follow_chunk(position, rows, first, last, field, walls, goals, numbers, sight, look, out)
