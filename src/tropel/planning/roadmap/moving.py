"""Paths and what moves: which leg of a path is blocked first, and when.

A traveller is on a leg of its path over a span of time. An obstacle is where its velocity takes it at each moment of
that span, up to a horizon; in the frame of the obstacle the traveller then goes along another segment, so the closest
approach has a closed form. Without prediction, obstacles count where they are now, as in the thesis. A path that is
made also keeps clear of where they go next: otherwise what crosses it would block it again in the very next step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel, parallel_kernel
from tropel.planning.roadmap.space import Moving, MovingDiscs
from tropel.planning.roadmap.sweeps import free_radius, gap_to_point2, height_of

Floats = NDArray[np.float64]


class Seen(NamedTuple):
    """What moves, as a planner sees it."""

    tested: Moving  #: when paths are tested
    avoided: Moving  #: when paths are made


def see(discs: MovingDiscs, *, predict: bool, ahead: float) -> Seen:
    """What moves, with prediction or without; then paths that are made keep clear of where it goes in `ahead` [s]."""
    return Seen(Moving(*discs, float(predict), 0.0), Moving(*discs, float(predict), 0.0 if predict else float(ahead)))


@kernel
def _reach_of(moving, i, slack):
    """The radius of something that moves, which may be early or late by `slack` seconds."""
    if moving.predicted == 0.0 or slack == 0.0:
        return moving.radius[i]
    speed2 = 0.0
    for axis in range(moving.velocity.shape[1]):
        speed2 += moving.velocity[i, axis] ** 2
    return moving.radius[i] + slack * math.sqrt(speed2)


@kernel
def _at(moving, i, time):
    """Where something that moves will be at a time."""
    x = moving.position[i, 0] + time * moving.velocity[i, 0]
    y = moving.position[i, 1] + time * moving.velocity[i, 1]
    return x, y, height_of(moving.position, i) + time * height_of(moving.velocity, i)


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
    i = moving.rows[m]
    px, py, pz = _at(moving, i, span.since * moving.predicted)
    qx, qy, qz = _at(moving, i, span.time * moving.predicted + moving.ahead)
    apart = radius + _reach_of(moving, i, span.slack)
    return gap_between2(ax, ay, az, bx, by, bz, px, py, pz, qx, qy, qz) < apart * apart


@kernel
def segment_swept(ax, ay, az, bx, by, bz, radius, span, moving):
    """Whether anything that moves comes nearer to the segment a–b than `radius` in a span of time."""
    for m in range(moving.rows.size):  # noqa: SIM110
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
    for m in range(moving.rows.size):
        out[m] = _sweeps_near(ax, ay, az, bx, by, bz, radius, span, moving, m)


def sweepers_of(begin: Floats, end: Floats, radius: float, span: Span, moving: Moving) -> NDArray[np.int64]:
    """Which of the things that move come too near to a segment in a span of time."""
    out = np.empty(len(moving.rows), dtype=np.bool_)
    ends = (*begin.tolist(), 0.0)[:3] + (*end.tolist(), 0.0)[:3]
    _find_sweepers(*ends, float(radius), span, moving, out)
    return np.flatnonzero(out)


@kernel
def leg_blocked(ax, ay, az, bx, by, bz, t0, t1, radius, slack, moving):
    """When a traveller that goes from a to b between t0 and t1 is blocked; infinite if it is not."""
    first = math.inf
    for m in range(moving.rows.size):
        i = moving.rows[m]
        apart = radius + _reach_of(moving, i, slack)
        px, py, pz = _at(moving, i, t0 * moving.predicted)
        qx, qy, qz = _at(moving, i, t1 * moving.predicted + moving.ahead)
        if t0 == 0.0:
            # Whoever is too near already is blocked only by coming nearer.
            rx, ry, rz = (qx, qy, qz) if moving.ahead > 0.0 else (px, py, pz)
            apart = min(apart, 0.999 * math.sqrt(gap_to_point2(px, py, pz, rx, ry, rz, ax, ay, az)))
        if moving.ahead > 0.0:
            if gap_between2(ax, ay, az, bx, by, bz, px, py, pz, qx, qy, qz) < apart * apart:
                return t0
            continue
        # In the frame of the obstacle.
        sx, sy, sz = ax - px, ay - py, az - pz
        ex, ey, ez = bx - qx, by - qy, bz - qz
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
    if moving.rows.size == 0:
        return -1, math.inf, tests
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
def find_repair(x, y, z, speed, radius, slack, points, count, index, leg, moving, horizon, walls, discs, sides, ends,
                room):  # fmt: skip
    """Where the repair of a blocked leg ends: at the first point behind it that nothing is at when the traveller comes.

    Writes where the repair begins and ends, and the radius up to `radius` with which a body can be there. Returns the
    number of the point where it ends, and when the traveller is at the beginning and at the end of the leg [s from
    now].
    """
    time = since = until = 0.0
    to = count - 1
    ax, ay, az = x, y, z
    for k in range(index, count):
        bx, by, bz = points[k, 0], points[k, 1], height_of(points, k)
        end = time + math.sqrt((bx - ax) ** 2 + (by - ay) ** 2 + (bz - az) ** 2) / speed
        if k == leg:
            since, until = min(time, horizon), min(end, time + horizon)
            ends[0, 0], ends[0, 1] = ax, ay
            if ends.shape[1] == 3:
                ends[0, 2] = az
        if k >= leg:
            span = Span(min(time, horizon), min(end, time + horizon), slack)
            if k == count - 1 or not segment_swept(bx, by, bz, bx, by, bz, radius, span, moving):
                to = k
                break
        ax, ay, az, time = bx, by, bz, end
    for axis in range(ends.shape[1]):
        ends[1, axis] = points[to, axis]
    for k in range(2):
        room[k] = free_radius(ends[k, 0], ends[k, 1], height_of(ends, k), radius, walls, discs, sides)
    return to, since, until


@kernel
def watch_path(i, t, position, speed, radius, slack, known, step, moving, horizon):
    """Write the first blocked leg of a path, when it is blocked [s from now], and whether its traveller has something
    to do: its path is blocked, its subgoal has taken too long, or it is due. Returns how many legs were tested."""
    known.leg[t], known.when[t], tests = _first_blocked(
        position[i, 0], position[i, 1], height_of(position, i), max(speed[i], 1e-9), radius, slack, known.way[t],
        known.count[t], known.index[t], moving, horizon,
    )  # fmt: skip
    late = known.allowed[t] > 0.0 and known.weight[t] > known.allowed[t] and known.count[t] > 0
    known.calls[t] = known.leg[t] >= 0 or late or known.due[t] <= step
    return tests


@parallel_kernel
def watch_paths(rows, slots, position, speed, radius, slack, known, step, moving, horizon):
    """Do so for the paths of many, which are rows of `known` (`Slots`).

    Returns how many have something to do, and how many legs were tested.
    """
    called, tests = 0, 0
    for k in numba.prange(rows.size):
        tests += watch_path(rows[k], slots[k], position, speed, radius, slack, known, step, moving, horizon)
        called += known.calls[slots[k]]
    return called, tests
