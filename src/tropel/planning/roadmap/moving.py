"""Paths and what moves: which leg of a path is blocked first, and when.

A traveller is on a leg of its path over a span of time. An obstacle is where its velocity takes it at each moment of
that span, up to a horizon; in the frame of the obstacle the traveller then goes along another segment, so the closest
approach has a closed form. Without prediction, obstacles count where they are now, as in the thesis: `Seen` then has
them without velocity, and a path that is made keeps farther away from them than one that is only tested.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel, parallel_kernel
from tropel.planning.roadmap.space import Moving, MovingDiscs
from tropel.planning.roadmap.sweeps import gap_to_point2, height_of

Floats = NDArray[np.float64]


class Seen(NamedTuple):
    """What moves, as a planner sees it."""

    tested: Moving  #: when paths are tested
    avoided: Moving  #: when paths are made


@kernel
def _see(rows, position, velocity, radius, predict, wider, tested, avoided):
    for k in range(rows.size):
        speed2 = 0.0
        for axis in range(position.shape[1]):
            tested.position[k, axis] = position[rows[k], axis]
            tested.velocity[k, axis] = velocity[rows[k], axis] if predict else 0.0
            speed2 += velocity[rows[k], axis] ** 2
        tested.radius[k] = radius[rows[k]]
        tested.speed[k] = math.sqrt(speed2) if predict else 0.0
        avoided.radius[k] = radius[rows[k]] + (0.0 if predict else wider * math.sqrt(speed2))


def see(discs: MovingDiscs, *, predict: bool, wider: float) -> Seen:
    """What moves, with prediction or without; then paths that are made keep clear of `wider` seconds of motion more."""
    count, dim = len(discs.rows), discs.position.shape[1]
    tested = Moving(np.empty((count, dim)), np.empty((count, dim)), np.empty(count), np.empty(count))
    avoided = tested._replace(radius=np.empty(count))
    _see(*discs, predict, float(wider), tested, avoided)
    return Seen(tested, avoided)


@kernel
def gap_between2(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz):
    """The squared distance between the segments a–b and c–d, in 2D (all z are 0) or 3D."""
    ux, uy, uz = bx - ax, by - ay, bz - az
    vx, vy, vz = dx - cx, dy - cy, dz - cz
    wx, wy, wz = ax - cx, ay - cy, az - cz
    uu, vv, uv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz, ux * vx + uy * vy + uz * vz
    uw, vw = ux * wx + uy * wy + uz * wz, vx * wx + vy * wy + vz * wz
    least = min(
        min(gap_to_point2(ax, ay, az, bx, by, bz, cx, cy, cz), gap_to_point2(ax, ay, az, bx, by, bz, dx, dy, dz)),
        min(gap_to_point2(cx, cy, cz, dx, dy, dz, ax, ay, az), gap_to_point2(cx, cy, cz, dx, dy, dz, bx, by, bz)),
    )
    det = uu * vv - uv * uv
    if det > 1e-12 * uu * vv:
        # The closest points of the lines count only inside both segments; otherwise an end is closest.
        s, t = (uv * vw - vv * uw) / det, (uu * vw - uv * uw) / det
        if 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0:
            gx, gy, gz = wx + s * ux - t * vx, wy + s * uy - t * vy, wz + s * uz - t * vz
            least = min(least, gx * gx + gy * gy + gz * gz)
    return least


class Span(NamedTuple):
    """A span of time from now on, for kernels."""

    since: float
    time: float  #: until when [s]
    slack: float  #: how many seconds early or late what moves may be


@kernel
def _sweeps_near(ax, ay, az, bx, by, bz, radius, span, moving, m):
    """Whether something that moves comes nearer to the segment a–b than `radius` in a span of time."""
    px, py, pz = moving.position[m, 0], moving.position[m, 1], height_of(moving.position, m)
    vx, vy, vz = moving.velocity[m, 0], moving.velocity[m, 1], height_of(moving.velocity, m)
    apart = radius + moving.radius[m] + span.slack * moving.speed[m]
    return gap_between2(ax, ay, az, bx, by, bz, px + span.since * vx, py + span.since * vy, pz + span.since * vz,
                        px + span.time * vx, py + span.time * vy, pz + span.time * vz) < apart * apart  # fmt: skip


@kernel
def segment_swept(ax, ay, az, bx, by, bz, radius, span, moving):
    """Whether anything that moves comes nearer to the segment a–b than `radius` in a span of time."""
    for m in range(moving.radius.size):  # noqa: SIM110
        if _sweeps_near(ax, ay, az, bx, by, bz, radius, span, moving, m):
            return True
    return False


@kernel
def _find_swept(edges, ends, nodes, radius, span, moving, out):
    for k in range(edges.size):
        a, b = ends[edges[k], 0], ends[edges[k], 1]
        out[k] = segment_swept(nodes[a, 0], nodes[a, 1], height_of(nodes, a), nodes[b, 0], nodes[b, 1],
                               height_of(nodes, b), radius, span, moving)  # fmt: skip


def edges_swept(
    edges: NDArray[np.int64], ends: NDArray[np.int64], nodes: Floats, radius: float, span: Span, moving: Moving
) -> NDArray[np.bool_]:
    """Which of some edges, given by number, something that moves comes too near to in a span of time.

    `ends` (E, 2) has the nodes at the ends of all edges.
    """
    out = np.empty(len(edges), dtype=np.bool_)
    _find_swept(edges, ends, nodes, float(radius), span, moving, out)
    return out


@kernel
def _find_sweepers(ax, ay, az, bx, by, bz, radius, span, moving, out):
    for m in range(moving.radius.size):
        out[m] = _sweeps_near(ax, ay, az, bx, by, bz, radius, span, moving, m)


def sweepers_of(begin: Floats, end: Floats, radius: float, span: Span, moving: Moving) -> NDArray[np.int64]:
    """Which of the things that move come too near to a segment in a span of time."""
    out = np.empty(len(moving.radius), dtype=np.bool_)
    ends = (*begin.tolist(), 0.0)[:3] + (*end.tolist(), 0.0)[:3]
    _find_sweepers(*ends, float(radius), span, moving, out)
    return np.flatnonzero(out)


@kernel
def leg_blocked(ax, ay, az, bx, by, bz, t0, t1, radius, slack, moving):
    """When a traveller that goes from a to b between t0 and t1 is blocked; infinite if it is not."""
    first = math.inf
    for m in range(moving.radius.size):
        px, py, pz = moving.position[m, 0], moving.position[m, 1], height_of(moving.position, m)
        vx, vy, vz = moving.velocity[m, 0], moving.velocity[m, 1], height_of(moving.velocity, m)
        apart = radius + moving.radius[m] + slack * moving.speed[m]
        # In the frame of the obstacle.
        sx, sy, sz = ax - px - t0 * vx, ay - py - t0 * vy, az - pz - t0 * vz
        ex, ey, ez = bx - px - t1 * vx, by - py - t1 * vy, bz - pz - t1 * vz
        if t0 == 0.0:
            # Whoever is too near already is blocked only by coming nearer.
            apart = min(apart, 0.999 * math.sqrt(sx * sx + sy * sy + sz * sz))
        if gap_to_point2(sx, sy, sz, ex, ey, ez, 0.0, 0.0, 0.0) < apart * apart:
            first = min(first, _time_of_contact(sx, sy, sz, ex, ey, ez, apart, t0, t1))
    return first


@kernel
def _time_of_contact(sx, sy, sz, ex, ey, ez, apart, t0, t1):
    """When a point that goes from s to e between t0 and t1 first is as near to the origin as `apart`."""
    dx, dy, dz = ex - sx, ey - sy, ez - sz
    a = dx * dx + dy * dy + dz * dz
    b = sx * dx + sy * dy + sz * dz
    c = sx * sx + sy * sy + sz * sz - apart * apart
    if c <= 0.0 or a == 0.0:
        return t0
    root = math.sqrt(max(b * b - a * c, 0.0))
    return t0 + (t1 - t0) * min(max((-b - root) / a, 0.0), 1.0)


@kernel
def _first_blocked(x, y, z, speed, radius, slack, points, count, index, moving, horizon):
    """The first leg of a path that is blocked, by the number of its end (-1 if none is), when, and the legs tested."""
    time = 0.0
    ax, ay, az = x, y, z
    tests = 0
    for k in range(index, count):
        bx, by, bz = points[k, 0], points[k, 1], height_of(points, k)
        took = math.sqrt((bx - ax) ** 2 + (by - ay) ** 2 + (bz - az) ** 2) / speed
        end = time + took
        if end > horizon:
            share = (horizon - time) / took
            bx, by, bz, end = ax + share * (bx - ax), ay + share * (by - ay), az + share * (bz - az), horizon
        tests += 1
        when = leg_blocked(ax, ay, az, bx, by, bz, time, end, radius, slack, moving)
        if when < math.inf:
            return k, when, tests
        if end >= horizon:
            break
        ax, ay, az, time = bx, by, bz, end
    return -1, math.inf, tests


@kernel
def find_repair(x, y, z, speed, radius, slack, points, count, index, leg, moving, horizon):
    """Where the repair of a blocked leg ends: at the first point behind it that nothing is at when the traveller comes.

    Returns its number, and when the traveller is at the beginning and at the end of the leg [s from now].
    """
    time = since = until = 0.0
    ax, ay, az = x, y, z
    for k in range(index, count):
        bx, by, bz = points[k, 0], points[k, 1], height_of(points, k)
        end = time + math.sqrt((bx - ax) ** 2 + (by - ay) ** 2 + (bz - az) ** 2) / speed
        if k == leg:
            since, until = min(time, horizon), min(end, time + horizon)
        if k >= leg:
            span = Span(min(time, horizon), min(end, time + horizon), slack)
            if k == count - 1 or not segment_swept(bx, by, bz, bx, by, bz, radius, span, moving):
                return k, since, until
        ax, ay, az, time = bx, by, bz, end
    return count - 1, since, until


@parallel_kernel
def watch_paths(rows, slots, position, speed, radius, slack, way, count, index, weight, allowed, due, step, moving,
                horizon, leg, when, calls):  # fmt: skip
    """Write for each of `slots` the first blocked leg of its path, when it is blocked [s from now], and whether its
    traveller has something to do: its path is blocked, its subgoal has taken too long, or it is due.

    Returns how many have something to do, and how many legs were tested.
    """
    called, tests = 0, 0
    for k in numba.prange(rows.size):
        i, t = rows[k], slots[k]
        leg[t], when[t], more = _first_blocked(position[i, 0], position[i, 1], height_of(position, i),
                                               max(speed[i], 1e-9), radius, slack, way[t], count[t], index[t],
                                               moving, horizon)  # fmt: skip
        late = allowed[t] > 0.0 and weight[t] > allowed[t] and count[t] > 0
        calls[t] = leg[t] >= 0 or late or due[t] <= step
        called += calls[t]
        tests += more
    return called, tests
