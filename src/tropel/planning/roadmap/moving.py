"""Paths and what moves: which leg of a path is blocked first, and when.

A traveller is on a leg of its path over a span of time. With prediction, an obstacle is where its velocity takes it at
each moment of that span, up to a horizon; in the frame of the obstacle the traveller then goes along another segment,
so the closest approach has a closed form. Without prediction obstacles count where they are now, as in the thesis.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel, parallel_kernel
from tropel.planning.roadmap.space import Moving
from tropel.planning.roadmap.sweeps import gap_to_point2, height_of

Floats = NDArray[np.float64]


class Capsules(NamedTuple):
    """What moves, over a span of time: from where to where, and how wide. Inputs of kernels."""

    begin: Floats  #: (M, dim)
    end: Floats
    radius: Floats  #: (M,)


def capsules_of(moving: Moving, since: float, until: float, *, slack: float) -> Capsules:
    """What moves, between two times from now [s]; `slack` is how many seconds of its motion it is wider."""
    wide = moving.radius + slack * np.linalg.norm(moving.velocity, axis=1)
    return Capsules(
        moving.position + since * moving.velocity, moving.position + until * moving.velocity, np.ascontiguousarray(wide)
    )


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


@kernel
def capsules_block(ax, ay, az, bx, by, bz, radius, capsules):
    """Whether something that moves comes nearer to the segment a–b than `radius` in its span of time."""
    for m in range(capsules.radius.size):
        apart = radius + capsules.radius[m]
        if gap_between2(ax, ay, az, bx, by, bz, capsules.begin[m, 0], capsules.begin[m, 1],
                        height_of(capsules.begin, m), capsules.end[m, 0], capsules.end[m, 1],
                        height_of(capsules.end, m)) < apart * apart:  # fmt: skip
            return True
    return False


@kernel
def _find_capsules(begin, end, radius, capsules, out):
    for e in range(begin.shape[0]):
        out[e] = capsules_block(begin[e, 0], begin[e, 1], height_of(begin, e), end[e, 0], end[e, 1], height_of(end, e),
                                radius, capsules)  # fmt: skip


def blocked_by_capsules(begin: Floats, end: Floats, radius: float, capsules: Capsules) -> NDArray[np.bool_]:
    """For each segment (E, dim), whether something that moves comes too near in its span of time."""
    out = np.empty(len(begin), dtype=np.bool_)
    if len(begin):
        _find_capsules(np.ascontiguousarray(begin), np.ascontiguousarray(end), float(radius), capsules, out)
    return out


@kernel
def leg_blocked(ax, ay, az, bx, by, bz, t0, t1, radius, slack, moving, predict):
    """When a traveller that goes from a to b between t0 and t1 is blocked; infinite if it is not."""
    first = math.inf
    for m in range(moving.radius.size):
        px, py, pz = moving.position[m, 0], moving.position[m, 1], height_of(moving.position, m)
        vx, vy, vz = moving.velocity[m, 0], moving.velocity[m, 1], height_of(moving.velocity, m)
        if not predict:
            vx = vy = vz = 0.0
        apart = radius + moving.radius[m] + slack * math.sqrt(vx * vx + vy * vy + vz * vz)
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
def _first_blocked(x, y, z, speed, radius, slack, points, count, index, moving, predict, horizon):
    """The first leg of a path that is blocked, by the number of its end (-1 if none is), when, and the legs tested."""
    time = 0.0
    ax, ay, az = x, y, z
    tests = 0
    for k in range(index, count):
        bx, by, bz = points[k, 0], points[k, 1], height_of(points, k)
        took = math.sqrt((bx - ax) ** 2 + (by - ay) ** 2 + (bz - az) ** 2) / speed
        end = time + took
        if predict and end > horizon:
            share = (horizon - time) / took
            bx, by, bz, end = ax + share * (bx - ax), ay + share * (by - ay), az + share * (bz - az), horizon
        tests += 1
        when = leg_blocked(ax, ay, az, bx, by, bz, time, end, radius, slack, moving, predict)
        if when < math.inf:
            return k, when, tests
        if predict and end >= horizon:
            break
        ax, ay, az, time = bx, by, bz, end
    return -1, math.inf, tests


@parallel_kernel
def find_blocked_legs(rows, slots, position, speed, radius, slack, way, count, index, moving, predict, horizon, leg,
                      when, tests):  # fmt: skip
    """For each of `rows` the first blocked leg of its path, when it is blocked [s from now], and the legs tested."""
    for k in numba.prange(rows.size):
        i, t = rows[k], slots[k]
        leg[k], when[k], tests[k] = _first_blocked(position[i, 0], position[i, 1], height_of(position, i),
                                                   max(speed[i], 1e-9), radius, slack, way[t], count[t], index[t],
                                                   moving, predict, horizon)  # fmt: skip
