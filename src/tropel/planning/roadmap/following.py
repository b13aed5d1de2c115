"""Following a path: subgoals one after the other (GROUPS figure 4.2).

A subgoal is reached when it is within vision and in sight; then the next one is given. An agent goes straight to its
subgoal if its body fits through, otherwise first to the one before, which it has seen: that is where the corner is. The
weight of a subgoal is the time for which it has been the subgoal.
"""

from __future__ import annotations

import math

import numba

from tropel._kernels.compile import kernel, parallel_kernel
from tropel.planning.roadmap.sweeps import free_radius, height_of, sweep_blocked

#: How an agent stands to its path.
ON_PATH, LOST, ARRIVED, WITHOUT = 0, 1, 2, 3

#: A body goes on where it fits with this share of its radius: paths keep the whole radius from walls, and nobody
#: walks exactly on a path.
_SLIMMER = 0.9
#: A point this near, in radii, is as good as reached.
_THERE = 0.5


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
def follow_paths(rows, slots, position, vision, speed, radius, reach, way, count, index, weight, allowed, patience, dt,
                 walls, discs, sides, aim, status):  # fmt: skip
    """Give the next subgoals, and write for each of `rows` the number of the point to go to and its status.

    `slots` are the rows of the path arrays that belong to `rows`. A new subgoal may take the time of the walk there,
    and the traveller's patience.
    """
    for k in numba.prange(rows.size):
        i, t = rows[k], slots[k]
        before = index[t]
        now, aim[k], status[k] = _follow(position[i, 0], position[i, 1], height_of(position, i), vision[i], radius,
                                         reach[t], way[t], count[t], before, walls, discs, sides)  # fmt: skip
        index[t] = now
        weight[t] = 0.0 if now != before or status[k] == ARRIVED else weight[t] + dt
        if now != before or allowed[t] < 0.0:
            x, y, z = position[i, 0], position[i, 1], height_of(position, i)
            allowed[t] = patience[t] + _away(x, y, z, way[t], now) / max(speed[i], 1e-9)


@kernel
def towards(rows, slots, aim, status, position, way, out):
    """Write the unit vectors to the points that agents go to; they stand where they have arrived or have no path."""
    dim = position.shape[1]
    for k in range(rows.size):
        i, t = rows[k], slots[k]
        length2 = 0.0
        for axis in range(dim):
            out[i, axis] = way[t, aim[k], axis] - position[i, axis] if status[k] <= LOST else 0.0
            length2 += out[i, axis] ** 2
        if length2 > 0.0:
            scale = 1.0 / max(math.sqrt(length2), 1e-12)
            for axis in range(dim):
                out[i, axis] *= scale
