"""Contact of moving discs with walls: how a move ends that would touch one, seen from where it begins."""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.predicates import segments_touch
from tropel._kernels.walls import cell_at, chord_blocked, first_crossing, nearest_on_segment

#: Bodies pressed closer to a wall than their radius get this share of it back per step, so that nobody is flung away.
_RECOVERY = 0.1


@kernel
def _pushed_out(x, y, px, py, radius, x0, y0, x1, y1, ends):
    """The end p of a move from (x, y), out of the reach of one wall: of its face, or with `ends` of its two ends."""
    qx, qy = nearest_on_segment(px, py, x0, y0, x1, y1)
    at_end = (qx == x0 and qy == y0) or (qx == x1 and qy == y1)
    hx, hy = nearest_on_segment(x, y, x0, y0, x1, y1)
    here = math.sqrt((x - hx) ** 2 + (y - hy) ** 2)
    clearance = min(radius, here + _RECOVERY * radius)
    along_x, along_y = x1 - x0, y1 - y0
    side_here = along_x * (y - y0) - along_y * (x - x0)
    side_there = along_x * (py - y0) - along_y * (px - x0)
    if not ends and side_here * side_there <= 0.0 and segments_touch(x, y, px, py, x0, y0, x1, y1):
        # Through the wall: back to where the agent stands, also where the wall's end is nearest.
        length = math.sqrt(along_x * along_x + along_y * along_y)
        sign = 1.0 if side_here > 0.0 else -1.0
        return qx - along_y / length * sign * clearance, qy + along_x / length * sign * clearance
    nx, ny = px - qx, py - qy
    away = math.sqrt(nx * nx + ny * ny)
    if at_end == ends and 0.0 < away < clearance:
        return qx + nx * (clearance / away), qy + ny * (clearance / away)
    return px, py


@kernel
def _slide_along_walls(x, y, px, py, radius, walls, cell):
    """Push the end point p of a move from (x, y) out of the walls' reach, seen from the side the agent stands on."""
    for _ in range(3):
        touched = False
        # Faces before ends: who slides along a wall must not be held by the end of the next one, which it clears then.
        for ends in (False, True):
            for k in range(walls.start[cell], walls.start[cell + 1]):
                s = walls.items[k]
                if walls.blocking[s]:
                    x0, y0, x1, y1 = (
                        walls.segments[s, 0],
                        walls.segments[s, 1],
                        walls.segments[s, 2],
                        walls.segments[s, 3],
                    )
                    qx, qy = _pushed_out(x, y, px, py, radius, x0, y0, x1, y1, ends)
                    touched = touched or qx != px or qy != py
                    px, py = qx, qy
        if not touched:
            break
    return px, py


@kernel
def _towards_wall(x, y, px, py, radius, walls):
    """Which wall the move from (x, y) to p meets first (-1 for none), and the share of it that ends a radius before."""
    first, s = first_crossing(x, y, px, py, walls)
    if s < 0:
        return s, 0.0
    along_x, along_y = walls.segments[s, 2] - walls.segments[s, 0], walls.segments[s, 3] - walls.segments[s, 1]
    # How fast the move nears the wall: the obliquer, the earlier it must end.
    nearing = abs((px - x) * along_y - (py - y) * along_x) / math.hypot(along_x, along_y)
    return s, max(first - radius / nearing, 0.0) if nearing > 0.0 else 0.0


@kernel
def _turned_along(x, y, px, py, radius, walls):
    """A move from (x, y) to p that meets a wall: straight on to a radius before it, then along it as far as can be."""
    s, share = _towards_wall(x, y, px, py, radius, walls)
    if s < 0:
        return x, y
    dx, dy = px - x, py - y
    along_x, along_y = walls.segments[s, 2] - walls.segments[s, 0], walls.segments[s, 3] - walls.segments[s, 1]
    length = math.hypot(along_x, along_y)
    along_x, along_y = along_x / length, along_y / length
    rest = (1.0 - share) * (dx * along_x + dy * along_y)
    sx, sy = x + share * dx, y + share * dy
    qx, qy = sx + rest * along_x, sy + rest * along_y
    if not chord_blocked(x, y, qx, qy, walls):
        return qx, qy
    _, share = _towards_wall(x, y, qx, qy, radius, walls)
    qx, qy = x + share * (qx - x), y + share * (qy - y)
    if share > 0.0 and not chord_blocked(x, y, qx, qy, walls):
        return qx, qy
    if not chord_blocked(x, y, sx, sy, walls):
        return sx, sy
    return x, y


@inlined_kernel
def settle(x, y, px, py, radius, walls):
    """The end of a move from (x, y) towards p that touches no wall."""
    if walls.segments.shape[0] == 0 or (px == x and py == y):
        return px, py
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    if math.sqrt((px - x) ** 2 + (py - y) ** 2) + radius > walls.reach:
        # Longer than what is looked at around the agent: what counts for contact is around the end.
        cell = cell_at(px, py, walls.origin, walls.inverse_cell, walls.shape)
    elif walls.start[cell] == walls.start[cell + 1]:
        return px, py
    sx, sy = _slide_along_walls(x, y, px, py, radius, walls, cell)
    if not chord_blocked(x, y, sx, sy, walls):
        return sx, sy
    if not chord_blocked(x, y, px, py, walls):
        return px, py
    return _turned_along(x, y, px, py, radius, walls)
