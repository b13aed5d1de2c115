"""What is in the way of a character's futures: walls, obstacles, and other bodies where they will be.

A body is a stadium: all points within its radius of an axis along its heading. Others are seen as discs, a long one as
three along its axis. Characters of the same model are taken to go on along the trajectories that they chose last, which
is what lean and hand signals tell real riders; everybody else to keep their speed and direction.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.discs import disc_cell
from tropel._kernels.neighbours import count_runs, run_of, view_of
from tropel._kernels.walls import cell_at, nearest_on_segment
from tropel.local.mobility_map.fan import HEADING, X, Y, value_and_slope

Floats = NDArray[np.float64]

#: Columns of the table of bodies that may get in the way.
_AT_X, _AT_Y, _VX, _VY, _RADIUS, _HALF, _FACE_X, _FACE_Y, _CLOSEST, _ROW = range(10)
BODY_COLUMNS = 10
#: How close a body that touches another may come to it, as a share of how close it is.
_STILL = 0.9
#: Above all distances [m].
_FAR = 1e9


class Bodies(NamedTuple):
    """What a character has to know of all agents, by row."""

    position: Floats
    velocity: Floats
    heading: Floats
    radius: Floats
    half_axis: Floats  #: from the middle to the centre of the first and last disc; 0 for round bodies [m]
    line: NDArray[np.int32]  #: the trajectory that a character of this model follows; -1 for all others
    time: Floats  #: how far along it [s]
    base: Floats  #: the heading that it began with [rad]
    pace: Floats  #: share of the nominal speed


@kernel
def to_segment(px, py, x0, y0, x1, y1):
    """Distance from a point to a segment."""
    qx, qy = nearest_on_segment(px, py, x0, y0, x1, y1)
    return math.sqrt((px - qx) * (px - qx) + (py - qy) * (py - qy))


@inlined_kernel
def _side(ax, ay, bx, by, px, py):
    return (bx - ax) * (py - ay) - (by - ay) * (px - ax)


@kernel
def between_segments(ax, ay, bx, by, cx, cy, dx, dy):
    """Distance between two segments; 0 if they cross."""
    if _side(ax, ay, bx, by, cx, cy) * _side(ax, ay, bx, by, dx, dy) < 0.0 and (
        _side(cx, cy, dx, dy, ax, ay) * _side(cx, cy, dx, dy, bx, by) < 0.0
    ):
        return 0.0
    return min(
        min(to_segment(ax, ay, cx, cy, dx, dy), to_segment(bx, by, cx, cy, dx, dy)),
        min(to_segment(cx, cy, ax, ay, bx, by), to_segment(dx, dy, ax, ay, bx, by)),
    )


@inlined_kernel
def _place_on_line(fan, bodies, j, time):
    """How far a character gets along its trajectory in a time, and cosine and sine of what it turns meanwhile."""
    actions = fan.knots.shape[1]
    s, a = bodies.line[j] // actions, bodies.line[j] % actions
    before, last = bodies.time[j], (fan.knots.shape[2] - 1) * fan.interval
    now = before + bodies.pace[j] * time
    x0, _ = value_and_slope(fan, s, a, X, before)
    y0, _ = value_and_slope(fan, s, a, Y, before)
    h0, _ = value_and_slope(fan, s, a, HEADING, before)
    x1, _ = value_and_slope(fan, s, a, X, now)
    y1, _ = value_and_slope(fan, s, a, Y, now)
    h1, _ = value_and_slope(fan, s, a, HEADING, now)
    if now > last:
        # Beyond the last knot it goes straight on.
        beyond = (now - max(last, before)) * fan.speed
        x1, y1 = x1 + beyond * math.cos(h1), y1 + beyond * math.sin(h1)
    c, sn = math.cos(bodies.base[j]), math.sin(bodies.base[j])
    dx, dy = x1 - x0, y1 - y0
    return c * dx - sn * dy, sn * dx + c * dy, math.cos(h1 - h0), math.sin(h1 - h0)


@kernel
def _gap_to_body(table, m, px, py, fx, fy, rear_x, rear_y, front_x, front_y, enough):
    """Distance from an axis to the discs of body m, which is at p and faces f; at least `enough` if it is more."""
    half = table[m, _HALF]
    mid_x, mid_y = 0.5 * (rear_x + front_x), 0.5 * (rear_y + front_y)
    own = math.sqrt((front_x - mid_x) ** 2 + (front_y - mid_y) ** 2)
    away = math.sqrt((px - mid_x) ** 2 + (py - mid_y) ** 2) - own - half
    if away >= enough:
        return away
    gap = to_segment(px, py, rear_x, rear_y, front_x, front_y)
    if half > 0.0:
        gap = min(gap, to_segment(px + half * fx, py + half * fy, rear_x, rear_y, front_x, front_y))
        gap = min(gap, to_segment(px - half * fx, py - half * fy, rear_x, rear_y, front_x, front_y))
    return gap


@inlined_kernel
def _may_meet(x, y, vx, vy, ox, oy, ovx, ovy, reach, horizon):
    """Whether two points that keep their velocities come within `reach` of each other before the horizon."""
    dx, dy, rx, ry = ox - x, oy - y, ovx - vx, ovy - vy
    speed2 = rx * rx + ry * ry
    time = 0.0
    if speed2 > 0.0:
        time = min(max(-(dx * rx + dy * ry) / speed2, 0.0), horizon)
    cx, cy = dx + time * rx, dy + time * ry
    return cx * cx + cy * cy <= reach * reach


@inlined_kernel
def _enter(table, found, x, y, vx, vy, radius, half, face_x, face_y, row):
    """Write a body into the table, if there is room; returns how many there are. Obstacles have the row -1."""
    if found < table.shape[0]:
        table[found, _AT_X], table[found, _AT_Y] = x, y
        table[found, _VX], table[found, _VY], table[found, _ROW] = vx, vy, row
        table[found, _RADIUS], table[found, _HALF] = radius, half
        table[found, _FACE_X], table[found, _FACE_Y] = face_x, face_y
    return found + 1


@inlined_kernel
def how_close(gap, touching, margin):
    """How close something may come that is at a distance now: not into the margin, and what is in there not into touch.

    What touches already may come a little closer, or nothing that touches could ever move again.
    """
    if gap >= touching + margin:
        return touching + margin
    return touching if gap >= touching else _STILL * gap


@kernel
def list_bodies(i, bodies, near, discs, reach, spread, horizon, margin, table):
    """List everybody and every obstacle that may get in the way of agent i; returns how many there are.

    `spread` is how far its futures may stray from a straight line at constant speed. With each is noted how close it
    may come.
    """
    x, y = bodies.position[i, 0], bodies.position[i, 1]
    vx, vy = bodies.velocity[i, 0], bodies.velocity[i, 1]
    own, half = bodies.radius[i], bodies.half_axis[i]
    found = 0
    view = view_of(near, i, x, y, 0.0, reach)
    for number in range(count_runs(near, view)):
        first, last, _, _, _ = run_of(near, view, number)
        for k in range(first, last):
            j = near.met[k]
            if j == i:
                continue
            ox, oy = bodies.position[j, 0], bodies.position[j, 1]
            ovx, ovy = bodies.velocity[j, 0], bodies.velocity[j, 1]
            length = bodies.half_axis[j]
            # Others of the kind may stray from their straight lines as far as this one.
            strays = spread if bodies.line[j] >= 0 else 0.0
            if (ox - x) ** 2 + (oy - y) ** 2 > reach * reach or not _may_meet(
                x, y, vx, vy, ox, oy, ovx, ovy,
                spread + strays + own + half + bodies.radius[j] + length + margin, horizon,
            ):  # fmt: skip
                continue
            found = _enter(table, found, ox, oy, ovx, ovy, bodies.radius[j], length, bodies.heading[j, 0],
                           bodies.heading[j, 1], np.float64(j))  # fmt: skip
    if discs.radius.size > 0:
        cell = disc_cell(bodies.position, i, discs)
        for k in range(discs.start[cell], discs.start[cell + 1]):
            m = discs.items[k]
            if _may_meet(x, y, vx, vy, discs.position[m, 0], discs.position[m, 1], discs.velocity[m, 0],
                         discs.velocity[m, 1], spread + own + half + discs.radius[m] + margin, horizon):  # fmt: skip
                found = _enter(table, found, discs.position[m, 0], discs.position[m, 1], discs.velocity[m, 0],
                               discs.velocity[m, 1], discs.radius[m], 0.0, 1.0, 0.0, -1.0)  # fmt: skip
    hx, hy = half * bodies.heading[i, 0], half * bodies.heading[i, 1]
    for m in range(min(found, table.shape[0])):
        clearance = own + table[m, _RADIUS] + margin
        gap = _gap_to_body(table, m, table[m, _AT_X], table[m, _AT_Y], table[m, _FACE_X], table[m, _FACE_Y],
                           x - hx, y - hy, x + hx, y + hy, clearance)  # fmt: skip
        table[m, _CLOSEST] = how_close(gap, own + table[m, _RADIUS], margin)
    return found


@kernel
def hits_body(table, count, places, knot, x, y, hx, hy, half):
    """Whether a body at (x, y), with half of its axis h, comes too close to any other at the time of a knot."""
    for m in range(count):
        enough = table[m, _CLOSEST]
        px, py = places[m, knot, 0], places[m, knot, 1]
        dx, dy = px - x, py - y
        reach = enough + half + table[m, _HALF]
        if dx * dx + dy * dy >= reach * reach:
            continue
        c, s = places[m, knot, 2], places[m, knot, 3]
        fx = c * table[m, _FACE_X] - s * table[m, _FACE_Y]
        fy = s * table[m, _FACE_X] + c * table[m, _FACE_Y]
        # Rounding must not make a body that keeps its distance count as one that comes closer.
        if _gap_to_body(table, m, px, py, fx, fy, x - hx, y - hy, x + hx, y + hy, enough) < enough - 1e-9:
            return True
    return False


@parallel_kernel
def chosen_futures(rows, fan, bodies, out):
    """Write how far each of these characters gets along its trajectory by every knot from now on, and how it turns."""
    for m in numba.prange(rows.size):
        i = rows[m]
        for k in range(out.shape[1]):
            out[i, k, 0], out[i, k, 1], out[i, k, 2], out[i, k, 3] = _place_on_line(fan, bodies, i, k * fan.interval)


@kernel
def places_of_bodies(fan, bodies, futures, table, count, times, knots, places):
    """Write where each body is at the time of each knot, and how it has turned."""
    last = futures.shape[1] - 1
    for m in range(count):
        x, y = table[m, _AT_X], table[m, _AT_Y]
        row = np.int64(table[m, _ROW])
        for k in range(knots):
            if row >= 0 and bodies.line[row] >= 0:
                place = min(times[k] / fan.interval, np.float64(last))
                low = min(np.int64(place), last - 1)
                u = place - low
                before, after = futures[row, low], futures[row, low + 1]
                places[m, k, 0] = x + before[0] + u * (after[0] - before[0])
                places[m, k, 1] = y + before[1] + u * (after[1] - before[1])
                places[m, k, 2] = before[2] + u * (after[2] - before[2])
                places[m, k, 3] = before[3] + u * (after[3] - before[3])
            else:
                places[m, k, 0], places[m, k, 1] = x + times[k] * table[m, _VX], y + times[k] * table[m, _VY]
                places[m, k, 2], places[m, k, 3] = 1.0, 0.0


@kernel
def gap_to_walls(walls, x, y, rear_x, rear_y, front_x, front_y):
    """Distance from a segment to the walls that the cell of (x, y) lists; far if there are none."""
    gap = _FAR
    if walls.segments.shape[0] == 0:
        return gap
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if walls.blocking[s]:
            x0, y0, x1, y1 = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
            gap = min(gap, between_segments(rear_x, rear_y, front_x, front_y, x0, y0, x1, y1))
    return gap
