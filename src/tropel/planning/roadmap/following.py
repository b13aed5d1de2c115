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
from tropel.planning.roadmap.moving import segment_swept, watch_path
from tropel.planning.roadmap.sweeps import free_radius, height_of, sweep_blocked

#: How an agent stands to its path. HELD: it stands, because it would soon walk into something.
ON_PATH, LOST, ARRIVED, WITHOUT, HELD = 0, 1, 2, 3, 4
#: How a step in one call ends: not at all, with somebody that has something to plan, or done.
NEWS, CALLED, FOLLOWED = 0, 1, 2

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
def _is_led(i, waiting, goal):
    return goal[i] != NO_GOAL and not (waiting.size > 0 and waiting[i])


@kernel
def _is_news(i, t, goal, goal_point, radius, known):
    """Whether an agent is none of the travellers, or has another goal or body than when it was last looked at."""
    if t < 0 or known.goal[t] != goal[i] or known.body[t] != radius[i]:
        return True
    news = False
    if goal[i] == POINT:
        for axis in range(goal_point.shape[1]):
            news = news or known.point[t, axis] != goal_point[i, axis]
    return news


@kernel
def find_led(members, waiting, id, goal, goal_point, radius, known, rows, slots):
    """Write the rows of members that want to get somewhere and have started, and their slots, -1 for new ones.

    Returns how many there are, whether something about one of them is not what it was, and whether all keep the same
    radius free (`known.wide`).
    """
    count, news, alike = 0, False, True
    for k in range(members.size):
        i = members[k]
        if not _is_led(i, waiting, goal):
            continue
        t = _slot_of(id[i], known.id)
        rows[count], slots[count] = i, t
        count += 1
        alike = alike and t >= 0 and known.wide[t] == known.wide[slots[0]]
        news = news or _is_news(i, t, goal, goal_point, radius, known)
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


@kernel
def follow_path(i, t, position, vision, speed, radius, known, dt, hold, walls, discs, sides, moving, out):
    """Give the next subgoal, write how an agent stands to its path, and the unit vector to where it goes now.

    A new subgoal may take the time of the walk there, and the traveller's patience. Whoever would walk into something
    in less than `hold.time` stands, unless it would be run into where it stands. Returns whether it has lost its path.
    """
    before = known.index[t]
    x, y, z = position[i, 0], position[i, 1], height_of(position, i)
    now, aim, stands = _follow(x, y, z, vision[i], radius, known.reach[t], known.way[t], known.count[t], before, walls,
                               discs, sides)  # fmt: skip
    known.index[t] = now
    known.weight[t] = 0.0 if now != before or stands == ARRIVED else known.weight[t] + dt
    if now != before or known.allowed[t] < 0.0:
        known.allowed[t] = known.patience[t] + _away(x, y, z, known.way[t], now) / max(speed[i], 1e-9)
    if stands == ON_PATH and known.when[t] < hold.time and not segment_swept(x, y, z, x, y, z, radius, hold, moving):
        stands = HELD
    known.status[t] = stands
    away = _away(x, y, z, known.way[t], aim)
    scale = 1.0 / away if stands <= LOST and away > 1e-12 else 0.0
    for axis in range(position.shape[1]):
        out[i, axis] = scale * (known.way[t, aim, axis] - position[i, axis])
    return stands == LOST


@parallel_kernel
def follow_paths(rows, slots, position, vision, speed, radius, known, dt, hold, walls, discs, sides, moving, out):
    """Do so for many, whose paths are rows of `known` (`Slots`); returns how many have lost their path."""
    lost = 0
    for k in numba.prange(rows.size):
        lost += follow_path(rows[k], slots[k], position, vision, speed, radius, known, dt, hold, walls, discs, sides,
                            moving, out)  # fmt: skip
    return lost


@kernel
def walk_on(members, waiting, id, goal, goal_point, body, position, vision, speed, radius, slack, known, step, dt, hold,
            walls, discs, sides, moving, horizon, slots, out):  # fmt: skip
    """All of a step in one call, if all keep the same radius free and nobody has anything to plan.

    Returns how it ended (NEWS, CALLED or FOLLOWED), how many have lost their path, and how many legs were tested. After
    NEWS everything has to be done one by one; after CALLED, those that are called have to plan before paths are
    followed. `slots` are those of members, -1 for those that are not led.
    """
    for k in range(members.size):
        i = members[k]
        slots[k] = -1
        if _is_led(i, waiting, goal):
            t = _slot_of(id[i], known.id)
            if _is_news(i, t, goal, goal_point, body, known) or known.wide[t] != radius:
                return NEWS, 0, 0
            slots[k] = t
    called, lost, tests = False, 0, 0
    for k in range(members.size):
        if slots[k] >= 0:
            tests += watch_path(members[k], slots[k], position, speed, radius, slack, known, step, moving, horizon)
            known.used[slots[k]] = 0
            called = called or known.calls[slots[k]]
        else:
            for axis in range(position.shape[1]):
                out[members[k], axis] = 0.0
    if called:
        return CALLED, lost, tests
    for k in range(members.size):
        if slots[k] >= 0:
            lost += follow_path(members[k], slots[k], position, vision, speed, radius, known, dt, hold, walls, discs,
                                sides, moving, out)  # fmt: skip
    return FOLLOWED, lost, tests
