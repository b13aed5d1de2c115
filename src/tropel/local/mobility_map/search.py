"""The search among futures (sections 4.1 and 4.2 of the paper), for any number of characters in one kernel.

For each character: find the initial state of the map nearest to its own (eq. 3), place the trajectories of its A
actions at the character, and add up how far each is from the wanted course, with t up to t_max (eq. 5):

    eval = sum over t of  ratio · e_pos(t) + (1 - ratio) · e_yaw(t)

Both weights are zero after t_max. (Read literally, the paper sets only the ratio to zero there, so that errors in
heading would count for all five seconds and position for one: riders then miss the road by metres.) The two best
actions are blended, each weighted by how near to the wanted place the other one is not at t_max.

Futures that end in a fall, or in a wall, an obstacle or another body within the horizon are infeasible. Where something
limits the choice, only neighbouring actions are blended, since between two others lies what had to be avoided. If no
future is feasible, the one that stays free for longest is taken, and the character brakes: the sooner it would hit
something, the harder, with the square of the share of the horizon that is not free.

A character that rides at a share `pace` of its nominal speed follows the same lines in a longer time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel, inlined_kernel, kernel, parallel_kernel
from tropel.local.mobility_map.fan import HEADING, X, Y, nearest_state
from tropel.local.mobility_map.futures import (
    BODY_COLUMNS,
    gap_to_walls,
    hits_body,
    how_close,
    list_bodies,
    places_of_bodies,
)

Floats = NDArray[np.float64]

#: Characters per unit of parallel work.
_CHUNK = 32
_TURN = 2.0 * math.pi


class Rules(NamedTuple):
    """Parameters as kernels read them."""

    knots: int  #: how many count, after the first
    ratio: float
    horizon: float  #: [s]
    margin: float  #: [m]
    reach: float  #: how far away bodies may be that count [m]


class Ways(NamedTuple):
    """Where characters want to be, by row: on a road, or on a line through a place."""

    road: NDArray[np.int32]  #: number of the road, -1 for none
    at: Floats  #: along the road [m]
    side: Floats  #: to the left of it [m]
    place: Floats  #: (N, 2), without a road
    along: Floats  #: (N, 2): unit vector, without a road
    first: NDArray[np.int64]  #: (R + 1,): where the points of each road begin
    points: Floats  #: (P, 2) of all roads
    tangents: Floats  #: (P, 2)
    step: Floats  #: (R,) [m]
    closed: NDArray[np.uint8]  #: (R,)


class Choice(NamedTuple):
    """What is decided, by row."""

    state: NDArray[np.int32]
    action: NDArray[np.int32]
    other: NDArray[np.int32]
    share: Floats  #: of the first action in the blend
    braking: Floats  #: how hard, from 0 to 1


@inlined_kernel
def wanted_at(ways, i, distance):
    """Place and unit direction that agent i wants to have after a distance."""
    r = ways.road[i]
    if r < 0:
        dx, dy = ways.along[i, 0], ways.along[i, 1]
        return ways.place[i, 0] + distance * dx, ways.place[i, 1] + distance * dy, dx, dy
    first = ways.first[r]
    count = ways.first[r + 1] - first
    step = ways.step[r]
    place = (ways.at[i] + distance) / step
    beyond = 0.0
    if ways.closed[r]:
        place -= count * math.floor(place / count)
        k = min(np.int64(place), count - 1)
        after = k + 1 if k + 1 < count else 0
    else:
        # The road goes on straight before its first and after its last point.
        inside = min(max(place, 0.0), count - 1.0)
        beyond = (place - inside) * step
        place = inside
        k = min(np.int64(place), count - 2)
        after = k + 1
    u = place - k
    k, after = first + k, first + after
    dx = (1.0 - u) * ways.tangents[k, 0] + u * ways.tangents[after, 0]
    dy = (1.0 - u) * ways.tangents[k, 1] + u * ways.tangents[after, 1]
    size = math.sqrt(dx * dx + dy * dy)
    dx, dy = dx / size, dy / size
    x = (1.0 - u) * ways.points[k, 0] + u * ways.points[after, 0] + beyond * dx - ways.side[i] * dy
    y = (1.0 - u) * ways.points[k, 1] + u * ways.points[after, 1] + beyond * dy + ways.side[i] * dx
    return x, y, dx, dy


@parallel_kernel
def face_course(rows, ways, heading):
    """Turn characters to where their course leads."""
    for m in numba.prange(rows.size):
        i = rows[m]
        _, _, heading[i, 0], heading[i, 1] = wanted_at(ways, i, 0.0)


@kernel
def place_course(fan, ways, i, x, y, face_x, face_y, knots, course):
    """Write the wanted place and heading at each knot, as seen by a character at (x, y) that faces `face`."""
    for k in range(knots + 1):
        wx, wy, dx, dy = wanted_at(ways, i, fan.speed * k * fan.interval)
        course[k, 0] = (wx - x) * face_x + (wy - y) * face_y
        course[k, 1] = (wy - y) * face_x - (wx - x) * face_y
        course[k, 2] = math.atan2(dy * face_x - dx * face_y, dx * face_x + dy * face_y)


@kernel
def evaluate(fan, s, a, course, knots, ratio):
    """How far the trajectory of an action is from the course (eq. 5)."""
    total = 0.0
    for k in range(1, knots + 1):
        dx, dy = fan.knots[s, a, k, X] - course[k, 0], fan.knots[s, a, k, Y] - course[k, 1]
        turned = fan.knots[s, a, k, HEADING] - course[k, 2]
        turned -= _TURN * math.floor(turned / _TURN + 0.5)
        total += ratio * math.sqrt(dx * dx + dy * dy) + (1.0 - ratio) * abs(turned)
    return total


@kernel
def free_until(fan, s, a, i, bodies, knots, table, count, places, walls, near_wall):
    """Until which knot the trajectory of an action is free; `knots` + 1 if it is free all along."""
    x, y = bodies.position[i, 0], bodies.position[i, 1]
    face_x, face_y = bodies.heading[i, 0], bodies.heading[i, 1]
    half = bodies.half_axis[i]
    before_x, before_y = x, y
    for k in range(1, knots + 1):
        if fan.lasts[s, a] < k * fan.interval - 1e-9:
            return k
        tx, ty = fan.knots[s, a, k, X], fan.knots[s, a, k, Y]
        c, sn = fan.facing[s, a, k, 0], fan.facing[s, a, k, 1]
        px, py = x + tx * face_x - ty * face_y, y + tx * face_y + ty * face_x
        hx, hy = half * (c * face_x - sn * face_y), half * (c * face_y + sn * face_x)
        # Walls stand still: whatever the body passed over since the last knot counts.
        if gap_to_walls(walls, px, py, before_x, before_y, px + hx, py + hy) < near_wall:
            return k
        if hits_body(table, count, places, k, px, py, hx, hy, half):
            return k
        before_x, before_y = px, py
    return knots + 1


@inlined_kernel
def _lesser(score, best, second, allowed):
    """The two allowed actions with the least scores, the first of equals; -1 if there is none."""
    for a in range(score.size):
        if not allowed[a]:
            continue
        if best < 0 or score[a] < score[best]:
            second = best
            best = a
        elif second < 0 or score[a] < score[second]:
            second = a
    return best, second


@kernel
def choose(fan, s, course, knots, score, free, horizon_knots, limited, allowed):
    """The action, the one that it is blended with, its share, and how hard to brake."""
    any_free = False
    for a in range(score.size):
        allowed[a] = free[a] > horizon_knots
        any_free = any_free or allowed[a]
    if not any_free:
        best = 0
        for a in range(1, score.size):
            if free[a] > free[best] or (free[a] == free[best] and score[a] < score[best]):
                best = a
        blocked = 1.0 - (free[best] - 1) / horizon_knots
        return best, best, 1.0, blocked * blocked
    best, second = _lesser(score, -1, -1, allowed)
    if limited:
        for a in range(score.size):
            allowed[a] = allowed[a] and abs(a - best) == 1
        second, _ = _lesser(score, -1, -1, allowed)
    if second < 0:
        return best, best, 1.0, 0.0
    away = math.sqrt(
        (fan.knots[s, best, knots, X] - course[knots, 0]) ** 2 + (fan.knots[s, best, knots, Y] - course[knots, 1]) ** 2
    )
    other = math.sqrt(
        (fan.knots[s, second, knots, X] - course[knots, 0]) ** 2
        + (fan.knots[s, second, knots, Y] - course[knots, 1]) ** 2
    )
    share = other / (away + other) if away + other > 0.0 else 0.5
    return best, second, share, 0.0


@allocating_kernel
def _decide_some(rows, first, last, fan, rules, bodies, reduced, pace, ways, near, walls, discs, spread, futures, out):
    # A separate function, because Numba moves allocations out of parallel loops, and the tables may grow.
    actions, knots = fan.actions.size, fan.knots.shape[2]
    course = np.empty((knots, 3))
    score, free = np.empty(actions), np.empty(actions, dtype=np.int64)
    allowed = np.empty(actions, dtype=np.bool_)
    times = np.empty(knots)
    table, places = np.empty((16, BODY_COLUMNS)), np.empty((16, knots, 4))
    for m in range(first, last):
        i = rows[m]
        x, y = bodies.position[i, 0], bodies.position[i, 1]
        s = nearest_state(fan, reduced, i)
        place_course(fan, ways, i, x, y, bodies.heading[i, 0], bodies.heading[i, 1], rules.knots, course)
        for a in range(actions):
            score[a] = evaluate(fan, s, a, course, rules.knots, rules.ratio)
        # Up to and including the first knot after the horizon, so that a character that stands looks ahead, too.
        ahead = min(np.int64(math.ceil(rules.horizon * pace[i] / fan.interval - 1e-9)), knots - 1)
        if rules.horizon > 0.0:
            ahead = max(ahead, 1)
        for k in range(ahead + 1):
            times[k] = min(k * fan.interval / pace[i], rules.horizon) if pace[i] > 0.0 else rules.horizon
        strays = spread[s, ahead]
        count = list_bodies(i, bodies, near, discs, rules.reach, strays, rules.horizon, rules.margin, table)
        if count > table.shape[0]:
            table, places = np.empty((2 * count, BODY_COLUMNS)), np.empty((2 * count, knots, 4))
            count = list_bodies(i, bodies, near, discs, rules.reach, strays, rules.horizon, rules.margin, table)
        places_of_bodies(fan, bodies, futures, table, count, times, ahead + 1, places)
        hx, hy = bodies.half_axis[i] * bodies.heading[i, 0], bodies.half_axis[i] * bodies.heading[i, 1]
        now = gap_to_walls(walls, x, y, x - hx, y - hy, x + hx, y + hy)
        near_wall = how_close(now, bodies.radius[i], rules.margin)
        limited = False
        for a in range(actions):
            free[a] = free_until(fan, s, a, i, bodies, ahead, table, count, places, walls, near_wall)
            limited = limited or free[a] <= ahead
        action, other, share, braking = choose(fan, s, course, rules.knots, score, free, ahead, limited, allowed)
        out.state[i], out.action[i], out.other[i] = s, action, other
        out.share[i], out.braking[i] = share, braking


@parallel_kernel
def decide(rows, fan, rules, bodies, reduced, pace, ways, near, walls, discs, spread, futures, out):
    """Choose a future for each of the rows; `futures` are those that others have chosen."""
    chunks = (rows.size + _CHUNK - 1) // _CHUNK
    for chunk in numba.prange(chunks):
        first = chunk * _CHUNK
        _decide_some(rows, first, min(first + _CHUNK, rows.size), fan, rules, bodies, reduced, pace, ways, near, walls,
                     discs, spread, futures, out)  # fmt: skip


def spread_of(knots: Floats, interval: float, speed: float) -> Floats:
    """How far the trajectories of each state stray from going straight on at constant speed, up to each knot (S, T)."""
    straight = np.zeros((knots.shape[2], 2))
    straight[:, 0] = speed * interval * np.arange(knots.shape[2])
    away = np.linalg.norm(knots[..., :2] - straight, axis=-1).max(axis=1)
    return np.ascontiguousarray(np.maximum.accumulate(away, axis=1))
