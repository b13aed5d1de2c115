"""Following a path: subgoals one after the other (GROUPS figure 4.2).

A subgoal is reached when it is within vision and in sight; then the next one is given. An agent goes straight to its
subgoal if its body fits through, otherwise first to the one before, which it has seen: that is where the corner is. The
weight of a subgoal is the time for which it has been the subgoal.
"""

from __future__ import annotations

import math

import numba

from tropel._kernels.compile import kernel, parallel_kernel
from tropel.agents.state import NO_GOAL, POINT
from tropel.planning.roadmap.moving import segment_swept
from tropel.planning.roadmap.sweeps import free_radius, height_of, sweep_blocked

#: How an agent stands to its path. HELD: it stands, because it would soon walk into something.
ON_PATH, LOST, ARRIVED, WITHOUT, HELD = 0, 1, 2, 3, 4

#: A body goes on where it fits with this share of its radius: paths keep the whole radius from walls, and nobody
#: walks exactly on a path.
_SLIMMER = 0.9
#: A point this near, in radii, is as good as reached.
_THERE = 0.5


@kernel
def _slot_of(id, known):
    low, high = 0, known.size
    while low < high:
        middle = (low + high) // 2
        if known[middle] < id:
            low = middle + 1
        else:
            high = middle
    return low if low < known.size and known[low] == id else -1


@kernel
def find_led(members, waiting, id, goal, goal_point, radius, known, goals, points, bodies, wide, rows, slots):
    """Write the rows of members that want to get somewhere and have started, and their slots, -1 for new ones.

    Returns how many there are, whether something about one of them is not what it was, and whether all keep the same
    radius free (`wide`).
    """
    count, news, alike = 0, False, True
    for k in range(members.size):
        i = members[k]
        if goal[i] == NO_GOAL or (waiting.size > 0 and waiting[i]):
            continue
        t = _slot_of(id[i], known)
        rows[count], slots[count] = i, t
        count += 1
        alike = alike and t >= 0 and wide[t] == wide[slots[0]]
        if t < 0 or goals[t] != goal[i] or bodies[t] != radius[i]:
            news = True
        elif goal[i] == POINT:
            for axis in range(points.shape[1]):
                news = news or points[t, axis] != goal_point[i, axis]
    return count, news, alike


@kernel
def _can_go(x, y, z, points, k, radius, walls, discs, sides):
    return not sweep_blocked(x, y, z, points[k, 0], points[k, 1], height_of(points, k), radius, walls, discs, sides)


@kernel
def _away(x, y, z, points, k):
    return math.sqrt((x - points[k, 0]) ** 2 + (y - points[k, 1]) ** 2 + (z - height_of(points, k)) ** 2)


@kernel
def _follow(x, y, z, vision, radius, reach, points, count, begin, walls, discs, sides):
    """The subgoal after `begin` that comes next, the point to go to now, and how the agent stands to its path."""
    if count == 0:
        return 0, 0, WITHOUT
    k = min(begin, count - 1)
    while k < count - 1:
        away = _away(x, y, z, points, k)
        if away > _THERE * radius and (away > vision or not _can_go(x, y, z, points, k, 0.0, walls, discs, sides)):
            break
        k += 1
    if k == count - 1 and _away(x, y, z, points, k) <= reach:
        return k, k, ARRIVED
    slim = min(_SLIMMER * radius, 0.999 * free_radius(x, y, z, radius, walls, discs, sides))
    if _can_go(x, y, z, points, k, slim, walls, discs, sides):
        return k, k, ON_PATH
    # Back along the path to a point from which the rest of it can be walked.
    for back in range(k - 1, max(k - 4, -1), -1):
        if _away(x, y, z, points, back) <= _THERE * radius:
            return k, back + 1, ON_PATH
        if _can_go(x, y, z, points, back, slim, walls, discs, sides):
            return k, back, ON_PATH
    return k, k, LOST


@parallel_kernel
def follow_paths(rows, slots, position, vision, speed, radius, reach, way, count, index, weight, allowed, patience,
                 when, dt, hold, walls, discs, sides, moving, status, out):  # fmt: skip
    """Give the next subgoals, write how each of `slots` stands to its path, and the unit vector to where it goes now.

    `slots` are the rows of the path arrays that belong to `rows`. A new subgoal may take the time of the walk there,
    and the traveller's patience. Whoever would walk into something in less than `hold.time` stands, unless it would be
    run into where it stands. Returns how many have lost their path.
    """
    lost = 0
    for k in numba.prange(rows.size):
        i, t = rows[k], slots[k]
        before = index[t]
        x, y, z = position[i, 0], position[i, 1], height_of(position, i)
        now, aim, stands = _follow(x, y, z, vision[i], radius, reach[t], way[t], count[t], before, walls, discs, sides)
        index[t] = now
        weight[t] = 0.0 if now != before or stands == ARRIVED else weight[t] + dt
        if now != before or allowed[t] < 0.0:
            allowed[t] = patience[t] + _away(x, y, z, way[t], now) / max(speed[i], 1e-9)
        if stands == ON_PATH and when[t] < hold.time and not segment_swept(x, y, z, x, y, z, radius, hold, moving):
            stands = HELD
        status[t] = stands
        lost += stands == LOST
        away = _away(x, y, z, way[t], aim)
        scale = 1.0 / away if stands <= LOST and away > 1e-12 else 0.0
        for axis in range(position.shape[1]):
            out[i, axis] = scale * (way[t, aim, axis] - position[i, axis])
    return lost
