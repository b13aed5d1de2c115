"""Whether a round body can go along straight segments: kernels against walls, closed doors, discs and balls, and boxes.

A body that goes from a to b sweeps a capsule. It is free when no wall and no disc is nearer to the segment a–b than the
body's radius, and when no wall touches the segment. The cells of `WallGrid` and `DiscGrid` list everything within their
reach, so a segment is looked up at points that are no farther apart than twice what the reach exceeds the radius by.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.discs import DiscGrid
from tropel._kernels.predicates import segments_touch
from tropel._kernels.walls import WallGrid, cell_at, nearest_on_segment

#: The longest walk along cells; longer segments are compared with everything.
_MOST_STOPS = 4096


class Sides(NamedTuple):
    """The box that a 3D world is."""

    low: NDArray[np.float64]  #: (dim,) corners of the world
    high: NDArray[np.float64]
    walled: NDArray[np.uint8]  #: (dim,) the axes along which the corners are walls


class Solid(NamedTuple):
    """What bodies keep away from. Kernels take its three parts: a parallel loop cannot pass on a tuple of tuples."""

    walls: WallGrid  #: in 2D; doors have rows of their own, and block only where `walls.blocking` says so
    discs: DiscGrid
    sides: Sides


@kernel
def gap_to_wall2(ax, ay, bx, by, x0, y0, x1, y1, reach):
    """The squared distance between two segments; infinite if it is surely more than `reach`."""
    away_x = max(min(ax, bx) - max(x0, x1), min(x0, x1) - max(ax, bx))
    away_y = max(min(ay, by) - max(y0, y1), min(y0, y1) - max(ay, by))
    if max(away_x, away_y) > reach * (1.0 + 1e-9):
        return math.inf
    if segments_touch(ax, ay, bx, by, x0, y0, x1, y1):
        return -1.0
    least = math.inf
    for end in range(4):
        if end < 2:
            px, py = (ax, ay) if end == 0 else (bx, by)
            qx, qy = nearest_on_segment(px, py, x0, y0, x1, y1)
        else:
            px, py = (x0, y0) if end == 2 else (x1, y1)
            qx, qy = nearest_on_segment(px, py, ax, ay, bx, by)
        least = min(least, (px - qx) ** 2 + (py - qy) ** 2)
    return least


@kernel
def gap_to_point2(ax, ay, az, bx, by, bz, px, py, pz):
    """The squared distance between a segment and a point, in 2D (all z are 0) or 3D."""
    dx, dy, dz = bx - ax, by - ay, bz - az
    ex, ey, ez = px - ax, py - ay, pz - az
    length2 = dx * dx + dy * dy + dz * dz
    t = 0.0
    if length2 > 0.0:
        t = min(max((ex * dx + ey * dy + ez * dz) / length2, 0.0), 1.0)
    return (ex - t * dx) ** 2 + (ey - t * dy) ** 2 + (ez - t * dz) ** 2


@kernel
def _stops(length, reach, radius, everything):
    """How many points of a segment to look up cells at; 0 if it is cheaper to go through everything."""
    spare = 2.0 * (reach - radius)
    if not spare > 0.0 or not length < _MOST_STOPS * spare:
        return 0
    stops = int(length / spare) + 1
    return stops if stops < everything else 0


@kernel
def _hits_wall(ax, ay, bx, by, radius, walls, s):
    if not walls.blocking[s]:
        return False
    x0, y0, x1, y1 = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
    return gap_to_wall2(ax, ay, bx, by, x0, y0, x1, y1, radius) < radius * radius


@kernel
def walls_block(ax, ay, bx, by, radius, walls):
    """Whether a wall is nearer to the segment a–b than `radius`, or touches it."""
    count = walls.segments.shape[0]
    if count == 0:
        return False
    stops = _stops(math.sqrt((bx - ax) ** 2 + (by - ay) ** 2), walls.reach, radius, count)
    if stops == 0:
        hit = False
        for s in range(count):
            hit = hit or _hits_wall(ax, ay, bx, by, radius, walls, s)
        return hit
    for k in range(stops):
        t = (k + 0.5) / stops
        cell = cell_at(ax + t * (bx - ax), ay + t * (by - ay), walls.origin, walls.inverse_cell, walls.shape)
        for item in range(walls.start[cell], walls.start[cell + 1]):
            if _hits_wall(ax, ay, bx, by, radius, walls, walls.items[item]):
                return True
    return False


@inlined_kernel
def _axis(c, origin, inverse_cell, count):
    return np.int64(min(max(math.floor((c - origin) * inverse_cell), 0.0), count - 1.0))


@kernel
def _hits_disc(ax, ay, az, bx, by, bz, radius, discs, m):
    pz = discs.position[m, 2] if discs.position.shape[1] == 3 else 0.0
    apart = radius + discs.radius[m]
    return gap_to_point2(ax, ay, az, bx, by, bz, discs.position[m, 0], discs.position[m, 1], pz) < apart * apart


@kernel
def discs_block(ax, ay, az, bx, by, bz, radius, discs):
    """Whether the surface of a disc is nearer to the segment a–b than `radius`."""
    count = discs.radius.size
    if count == 0:
        return False
    length = math.sqrt((bx - ax) ** 2 + (by - ay) ** 2 + (bz - az) ** 2)
    stops = _stops(length, discs.reach, radius, count)
    if stops == 0:
        hit = False
        for m in range(count):
            hit = hit or _hits_disc(ax, ay, az, bx, by, bz, radius, discs, m)
        return hit
    shape, origin, inverse = discs.shape, discs.origin, discs.inverse_cell
    for k in range(stops):
        t = (k + 0.5) / stops
        cell = _axis(az + t * (bz - az), origin[2], inverse, shape[2])
        cell = cell * shape[1] + _axis(ay + t * (by - ay), origin[1], inverse, shape[1])
        cell = cell * shape[0] + _axis(ax + t * (bx - ax), origin[0], inverse, shape[0])
        for item in range(discs.start[cell], discs.start[cell + 1]):
            if _hits_disc(ax, ay, az, bx, by, bz, radius, discs, discs.items[item]):
                return True
    return False


@kernel
def _beyond_box(x, y, z, radius, sides):
    for axis in range(sides.low.size):
        c = x if axis == 0 else (y if axis == 1 else z)
        if sides.walled[axis] and (c - radius < sides.low[axis] or c + radius > sides.high[axis]):
            return True
    return False


@kernel
def sweep_blocked(ax, ay, az, bx, by, bz, radius, walls, discs, sides):
    """Whether a body of this radius touches anything on its way from a to b; in 2D all z are 0."""
    if sides.low.size == 2:
        if walls_block(ax, ay, bx, by, radius, walls):
            return True
    elif _beyond_box(ax, ay, az, radius, sides) or _beyond_box(bx, by, bz, radius, sides):
        return True
    return discs_block(ax, ay, az, bx, by, bz, radius, discs)


@inlined_kernel
def height_of(points, i):
    return points[i, 2] if points.shape[1] == 3 else 0.0


@parallel_kernel
def _find_blocked(begin, end, radius, walls, discs, sides, out):
    for e in numba.prange(begin.shape[0]):
        out[e] = sweep_blocked(begin[e, 0], begin[e, 1], height_of(begin, e), end[e, 0], end[e, 1], height_of(end, e),
                               radius, walls, discs, sides)  # fmt: skip


def sweeps_blocked(
    begin: NDArray[np.float64], end: NDArray[np.float64], radius: float, solid: Solid
) -> NDArray[np.bool_]:
    """For each segment from `begin` to `end` (E, dim), whether a body that goes along it touches anything."""
    out = np.empty(len(begin), dtype=np.bool_)
    if len(begin):
        _find_blocked(np.ascontiguousarray(begin), np.ascontiguousarray(end), float(radius), *solid, out)
    return out


@kernel
def _doors_of(ax, ay, bx, by, radius, segments, door, out):
    """Write the numbers of up to two doors that a body touches between a and b; returns how many it touches."""
    found = 0
    for s in range(segments.shape[0]):
        if found > 0 and out[found - 1] == door[s]:
            continue
        x0, y0, x1, y1 = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        if gap_to_wall2(ax, ay, bx, by, x0, y0, x1, y1, radius) < radius * radius:
            if found < out.size:
                out[found] = door[s]
            found += 1
            if found > out.size:
                return found
    return found


@parallel_kernel
def _find_doors(begin, end, radius, segments, door, out, many):
    for e in numba.prange(begin.shape[0]):
        found = _doors_of(begin[e, 0], begin[e, 1], end[e, 0], end[e, 1], radius, segments, door, out[e])
        many[e] = found > out.shape[1]


def doors_on(
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    radius: float,
    segments: NDArray[np.float64],
    door: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Numbers of the doors that a body touches on each segment, -1 for none, and where it touches more than two.

    `door` has the number of the door that each row of `segments` belongs to; rows of a door follow each other.
    """
    out, many = np.full((len(begin), 2), -1, dtype=np.int32), np.zeros(len(begin), dtype=np.bool_)
    if len(begin) and len(segments):
        _find_doors(np.ascontiguousarray(begin), np.ascontiguousarray(end), float(radius), segments, door, out, many)
    return out, many


@kernel
def free_radius(x, y, z, most, walls, discs, sides):
    """The radius up to `most` with which a body can be at a point: its distance to what is nearest; 0 inside a disc.

    Complete up to the reach of the cells.
    """
    free = most
    if sides.low.size == 2:
        if walls.segments.shape[0] > 0:
            cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
            for item in range(walls.start[cell], walls.start[cell + 1]):
                s = walls.items[item]
                if walls.blocking[s]:
                    segment = walls.segments[s]
                    qx, qy = nearest_on_segment(x, y, segment[0], segment[1], segment[2], segment[3])
                    free = min(free, math.sqrt((x - qx) ** 2 + (y - qy) ** 2))
    else:
        for axis in range(3):
            if sides.walled[axis]:
                c = x if axis == 0 else (y if axis == 1 else z)
                free = min(free, c - sides.low[axis], sides.high[axis] - c)
    if discs.radius.size > 0:
        cell = _axis(z, discs.origin[2], discs.inverse_cell, discs.shape[2])
        cell = cell * discs.shape[1] + _axis(y, discs.origin[1], discs.inverse_cell, discs.shape[1])
        cell = cell * discs.shape[0] + _axis(x, discs.origin[0], discs.inverse_cell, discs.shape[0])
        for item in range(discs.start[cell], discs.start[cell + 1]):
            m = discs.items[item]
            pz = discs.position[m, 2] if discs.position.shape[1] == 3 else 0.0
            away = math.sqrt((x - discs.position[m, 0]) ** 2 + (y - discs.position[m, 1]) ** 2 + (z - pz) ** 2)
            free = min(free, away - discs.radius[m])
    return max(free, 0.0)


@kernel
def _fill_free_radii(points, most, walls, discs, sides, out):
    for i in range(points.shape[0]):
        out[i] = free_radius(points[i, 0], points[i, 1], height_of(points, i), most, walls, discs, sides)


def free_radii(points: NDArray[np.float64], most: float, solid: Solid) -> NDArray[np.float64]:
    """For each point (N, dim) the largest radius up to `most` with which a body touches nothing there."""
    out = np.empty(len(points))
    _fill_free_radii(np.ascontiguousarray(points), float(most), *solid, out)
    return out


@kernel
def _find_blocked_each(begin, end, radius, walls, discs, sides, out):
    for e in range(begin.shape[0]):
        out[e] = sweep_blocked(begin[e, 0], begin[e, 1], height_of(begin, e), end[e, 0], end[e, 1], height_of(end, e),
                               radius[e], walls, discs, sides)  # fmt: skip


def sweeps_blocked_each(
    begin: NDArray[np.float64], end: NDArray[np.float64], radius: NDArray[np.float64], solid: Solid
) -> NDArray[np.bool_]:
    """The same for a few segments, with a radius for each."""
    out = np.empty(len(begin), dtype=np.bool_)
    if len(begin):
        _find_blocked_each(np.ascontiguousarray(begin), np.ascontiguousarray(end), radius, *solid, out)
    return out


@kernel
def _find_near_any(begin, end, places, dim, out):
    for e in range(begin.shape[0]):
        near = False
        for j in range(places.shape[0]):
            pz = places[j, 2] if dim == 3 else 0.0
            gap2 = gap_to_point2(begin[e, 0], begin[e, 1], height_of(begin, e), end[e, 0], end[e, 1], height_of(end, e),
                                 places[j, 0], places[j, 1], pz)  # fmt: skip
            near = near or gap2 < places[j, dim] ** 2
        out[e] = near


def near_any(begin: NDArray[np.float64], end: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which segments (E, dim) come nearer to a place than its radius; `places` has rows of a place, its radius, and
    whatever else."""
    out = np.empty(len(begin), dtype=np.bool_)
    _find_near_any(np.ascontiguousarray(begin), np.ascontiguousarray(end), np.ascontiguousarray(places),
                   begin.shape[1], out)  # fmt: skip
    return out
