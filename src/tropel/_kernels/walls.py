"""Walls for kernels: segments in a grid whose cells list every segment within reach.

The list of a cell holds each segment that comes within `reach` of any point of the cell. So a query for the walls
within that distance reads one cell, finds no segment twice, and walks one contiguous run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.predicates import segments_touch

#: Longer chords, in units of the reach, are compared with every wall: rounding could move points on them out of reach.
_LONGEST_WALK = 1e9
_ROUNDING = 1.0 + 1e-9


class WallGrid(NamedTuple):
    """Segments and the cells that list them; a plain tuple of arrays, so that kernels take it as one argument."""

    segments: NDArray[np.float64]  #: (S, 4): x0, y0, x1, y1
    blocking: NDArray[np.uint8]  #: (S,): 0 if the segment is an open door
    origin: NDArray[np.float64]  #: (2,): low corner
    inverse_cell: float
    shape: NDArray[np.int64]  #: (2,): cells along x and y
    reach: float  #: queries up to this distance are complete
    start: NDArray[np.int64]  #: (cells + 1,): where the list of a cell begins
    items: NDArray[np.int32]  #: numbers of segments


@inlined_kernel
def cell_at(x, y, origin, inverse_cell, shape):
    """Number of the cell that holds the point; points outside belong to the nearest border cell."""
    cx = min(max(math.floor((x - origin[0]) * inverse_cell), 0.0), shape[0] - 1.0)
    cy = min(max(math.floor((y - origin[1]) * inverse_cell), 0.0), shape[1] - 1.0)
    return np.int64(cy) * shape[0] + np.int64(cx)


@kernel
def nearest_on_segment(px, py, x0, y0, x1, y1):
    """The point of a closed segment nearest to p."""
    dx = x1 - x0
    dy = y1 - y0
    length2 = dx * dx + dy * dy
    if length2 == 0.0:
        return x0, y0
    t = ((px - x0) * dx + (py - y0) * dy) / length2
    if t <= 0.0:
        return x0, y0
    if t >= 1.0:
        return x1, y1
    return x0 + t * dx, y0 + t * dy


@inlined_kernel
def nearest_on_wall(px, py, walls, s):
    """The point of wall s nearest to p."""
    segments = walls.segments
    return nearest_on_segment(px, py, segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3])


@inlined_kernel
def out_of_reach(px, py, walls, s, reach):
    """Whether the bounding box of wall s is farther away from p than `reach`, by more than any rounding.

    Cheap, and true for most walls that a cell lists.
    """
    x0, y0, x1, y1 = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
    away_x = max(min(x0, x1) - px, px - max(x0, x1))
    away_y = max(min(y0, y1) - py, py - max(y0, y1))
    return max(away_x, away_y) > _ROUNDING * reach


@kernel
def clip_to_box(ax, ay, bx, by, low_x, low_y, high_x, high_y):
    """Parameters (t0, t1) of the part of a → b inside a box; t0 > t1 if there is none."""
    t0 = 0.0
    t1 = 1.0
    for axis in range(2):
        start = ax if axis == 0 else ay
        delta = (bx - ax) if axis == 0 else (by - ay)
        low = low_x if axis == 0 else low_y
        high = high_x if axis == 0 else high_y
        if delta == 0.0:
            if start < low or start > high:
                return 1.0, 0.0
        else:
            u = (low - start) / delta
            v = (high - start) / delta
            t0 = max(t0, min(u, v))
            t1 = min(t1, max(u, v))
    return t0, t1


@kernel
def _touches_in_cell(ax, ay, bx, by, cell, walls):
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if walls.blocking[s] and segments_touch(
            ax, ay, bx, by, walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
        ):
            return True
    return False


@kernel
def _touches_any(ax, ay, bx, by, walls):
    for s in range(walls.segments.shape[0]):
        if walls.blocking[s] and segments_touch(
            ax, ay, bx, by, walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
        ):
            return True
    return False


@kernel
def _stops_along(ax, ay, bx, by, length, walls):
    """Points from which to check a chord: `count` points from parameter t0 to t1, no further apart than the reach.

    The count is zero if the chord stays clear of all cells. It is negative if every wall must be checked, because there
    are fewer walls than points, or because rounding on such a long chord would misplace the points.
    """
    if not length <= _LONGEST_WALK * walls.reach:
        return 0.0, 1.0, -1
    size = 1.0 / walls.inverse_cell
    t0, t1 = clip_to_box(
        ax,
        ay,
        bx,
        by,
        walls.origin[0] - size,
        walls.origin[1] - size,
        walls.origin[0] + (walls.shape[0] + 1) * size,
        walls.origin[1] + (walls.shape[1] + 1) * size,
    )
    if t0 > t1:
        return 0.0, 1.0, 0
    count = int((t1 - t0) * length / walls.reach) + 2
    return t0, t1, count if count <= walls.segments.shape[0] else -1


@kernel
def chord_blocked(ax, ay, bx, by, walls):
    """Whether the closed chord a–b touches any blocking segment, exactly, however long the chord is."""
    if walls.segments.shape[0] == 0:
        return False
    length = math.sqrt((bx - ax) ** 2 + (by - ay) ** 2)
    if length <= walls.reach:
        return _touches_in_cell(ax, ay, bx, by, cell_at(ax, ay, walls.origin, walls.inverse_cell, walls.shape), walls)
    t0, t1, stops = _stops_along(ax, ay, bx, by, length, walls)
    if stops < 0:
        return _touches_any(ax, ay, bx, by, walls)
    for k in range(stops):
        t = t0 + (t1 - t0) * (k / (stops - 1))
        cell = cell_at(ax + t * (bx - ax), ay + t * (by - ay), walls.origin, walls.inverse_cell, walls.shape)
        if _touches_in_cell(ax, ay, bx, by, cell, walls):
            return True
    return False


@kernel
def _crossing(ax, ay, bx, by, walls, s):
    """How far along a → b the segment s is met (1 if it is not met or does not block), rounded."""
    if not walls.blocking[s]:
        return 1.0
    dx = bx - ax
    dy = by - ay
    x0 = walls.segments[s, 0]
    y0 = walls.segments[s, 1]
    ex = walls.segments[s, 2] - x0
    ey = walls.segments[s, 3] - y0
    det = dx * ey - dy * ex
    if det == 0.0:
        return 1.0
    t = ((x0 - ax) * ey - (y0 - ay) * ex) / det
    u = ((x0 - ax) * dy - (y0 - ay) * dx) / det
    if -1e-9 <= u <= 1.0 + 1e-9 and 0.0 <= t < 1.0:
        return t
    return 1.0


@kernel
def first_crossing(ax, ay, bx, by, walls):
    """How far along a → b the first blocking segment is met, and which one it is (1 and -1 if none is); rounded."""
    first = 1.0
    which = -1
    length = math.sqrt((bx - ax) ** 2 + (by - ay) ** 2)
    t0, t1, stops = _stops_along(ax, ay, bx, by, length, walls)
    if stops < 0:
        for s in range(walls.segments.shape[0]):
            t = _crossing(ax, ay, bx, by, walls, s)
            if t < first:
                first, which = t, s
        return first, which
    for k in range(stops):
        t = t0 + (t1 - t0) * (k / (stops - 1))
        if t * length > first * length + walls.reach:
            break
        cell = cell_at(ax + t * (bx - ax), ay + t * (by - ay), walls.origin, walls.inverse_cell, walls.shape)
        for item in range(walls.start[cell], walls.start[cell + 1]):
            s = np.int64(walls.items[item])
            t = _crossing(ax, ay, bx, by, walls, s)
            if t < first:
                first, which = t, s
    return first, which


@kernel
def list_walls(segments, reach, origin, size, shape, start, items, fill):
    """Enter every segment into the cells within its reach: first counting into start[cell + 1], then filling."""
    half_diagonal = size * math.sqrt(0.5)
    for s in range(segments.shape[0]):
        x0, y0, x1, y1 = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        # Map coordinates far from zero are rounded more coarsely than the lengths between them.
        rounding = 1e-14 * max(abs(x0), abs(y0), abs(x1), abs(y1)) + 1e-12
        low_x = np.int64(max(math.floor((min(x0, x1) - reach - origin[0]) / size) - 1, 0))
        low_y = np.int64(max(math.floor((min(y0, y1) - reach - origin[1]) / size) - 1, 0))
        high_x = np.int64(min(math.floor((max(x0, x1) + reach - origin[0]) / size) + 1, shape[0] - 1))
        high_y = np.int64(min(math.floor((max(y0, y1) + reach - origin[1]) / size) + 1, shape[1] - 1))
        for cy in range(low_y, high_y + 1):
            for cx in range(low_x, high_x + 1):
                mid_x = origin[0] + (cx + 0.5) * size
                mid_y = origin[1] + (cy + 0.5) * size
                qx, qy = nearest_on_segment(mid_x, mid_y, x0, y0, x1, y1)
                away = math.sqrt((qx - mid_x) ** 2 + (qy - mid_y) ** 2)
                if away <= (reach + half_diagonal) * (1.0 + 1e-9) + rounding:
                    cell = cy * shape[0] + cx
                    if fill:
                        items[start[cell]] = s
                        start[cell] += 1
                    else:
                        start[cell + 1] += 1


@kernel
def free_of_walls(x, y, ex, ey, radius, most, walls):
    """How far a body at (x, y) can go along the unit vector e before it touches a wall; at most `most` (in 2D).

    Complete up to the walls' reach. A wall that the body already touches does not stop it from moving along or away.
    """
    free = most
    if walls.segments.shape[0] == 0:
        return free
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if not walls.blocking[s]:
            continue
        x0, y0, x1, y1 = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
        qx, qy = nearest_on_segment(x, y, x0, y0, x1, y1)
        away = math.sqrt((qx - x) ** 2 + (qy - y) ** 2)
        if away - radius >= free:
            continue
        if away <= radius * (1.0 + 1e-9):
            # In contact: only moves towards the wall are blocked.
            if (qx - x) * ex + (qy - y) * ey > 1e-9 * away:
                return 0.0
            continue
        # The straight side of the wall, grown by the radius.
        length = math.sqrt((x1 - x0) ** 2 + (y1 - y0) ** 2)
        along_x, along_y = (x1 - x0) / length, (y1 - y0) / length
        height = along_x * (y - y0) - along_y * (x - x0)
        sinking = along_x * ey - along_y * ex
        if height < 0.0:
            height, sinking = -height, -sinking
        if sinking < 0.0 and height > radius:
            t = (radius - height) / sinking
            u = (x + t * ex - x0) * along_x + (y + t * ey - y0) * along_y
            if 0.0 <= u <= length and t < free:
                free = t
        # Its two rounded ends.
        for end in range(2):
            dx, dy = (x0 - x, y0 - y) if end == 0 else (x1 - x, y1 - y)
            ahead = dx * ex + dy * ey
            inside = ahead * ahead - (dx * dx + dy * dy - radius * radius)
            if ahead > 0.0 and inside > 0.0:
                t = ahead - math.sqrt(inside)
                if 0.0 <= t < free:
                    free = t
    return free
