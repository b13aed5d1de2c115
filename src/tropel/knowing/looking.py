"""Looking around: which things each agent sees now, and how many enemies; line of sight, cone and range."""

from __future__ import annotations

import math

import numba
import numpy as np

from tropel._kernels.cells import nearest_image
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.walls import chord_blocked
from tropel.agents.seeing import is_in_cone

#: A shut door hides what is behind it, but not itself: this share of a line of sight must be clear.
_ALMOST = 0.999


@inlined_kernel
def _sees(i, px, py, pz, size, position, heading, view_angle, sight, period, walls):
    """Whether the agent in row i sees some of a disc or ball of this size, and how far its middle is."""
    spatial = position.shape[1] == 3
    dx, dy = nearest_image(px - position[i, 0], period[0]), nearest_image(py - position[i, 1], period[1])
    dz = nearest_image(pz - position[i, 2], period[2]) if spatial else 0.0
    away = math.sqrt(dx * dx + dy * dy + dz * dz)
    if away - size > sight[i]:
        return False, away
    hz = heading[i, 2] if spatial else 0.0
    if not is_in_cone(dx, dy, dz, size, heading[i, 0], heading[i, 1], hz, view_angle[i]):
        return False, away
    if spatial or away <= size:
        return True, away
    share = min(_ALMOST, (away - size) / away)
    x, y = position[i, 0], position[i, 1]
    return not chord_blocked(x, y, x + share * dx, y + share * dy, walls), away


@parallel_kernel
def look_around(rows, position, heading, view_angle, sight, period, points, thing, size, walls, seen):
    """Write which things each of the rows sees: any of the points that belong to them."""
    spatial = position.shape[1] == 3
    for n in numba.prange(rows.size):
        i = rows[n]
        for p in range(thing.size):
            if not seen[n, thing[p]]:
                there, _ = _sees(i, points[p, 0], points[p, 1], points[p, 2] if spatial else 0.0, size[p], position,
                                 heading, view_angle, sight, period, walls)  # fmt: skip
                if there:
                    seen[n, thing[p]] = 1


@parallel_kernel
def look_for_enemies(rows, others, slot_of, position, heading, radius, id, group, view_angle, sight, period, walls,
                     count, nearest):  # fmt: skip
    """Count the enemies that each of the rows sees, and find the row of the nearest, for each hostile group.

    `slot_of[a, b]` is the column of group b for agents of group a, -1 if it is not hostile. `others` are the rows of
    all agents that are anybody's enemies. Of two at the same distance the one with the lower id is nearer.
    """
    spatial = position.shape[1] == 3
    for n in numba.prange(rows.size):
        i = rows[n]
        for m in range(others.size):
            j = others[m]
            slot = slot_of[group[i], group[j]]
            if slot < 0 or j == i:
                continue
            there, away = _sees(i, position[j, 0], position[j, 1], position[j, 2] if spatial else 0.0, radius[j],
                                position, heading, view_angle, sight, period, walls)  # fmt: skip
            if not there:
                continue
            count[n, slot] += 1
            best = nearest[n, slot]
            if best >= 0:
                least = _distance(i, best, position, period)
                if away > least or (away == least and id[j] > id[best]):
                    continue
            nearest[n, slot] = j


@inlined_kernel
def _distance(i, j, position, period):
    total = 0.0
    dx = nearest_image(position[j, 0] - position[i, 0], period[0])
    dy = nearest_image(position[j, 1] - position[i, 1], period[1])
    total = dx * dx + dy * dy
    if position.shape[1] == 3:
        dz = nearest_image(position[j, 2] - position[i, 2], period[2])
        total += dz * dz
    return math.sqrt(total)


@kernel
def note_seen(rows, holder, id, seen, truth, step, state, when, source):
    """Enter what has been seen. Eyes are believed before words of the same step, and the lowest id is the witness."""
    for n in range(rows.size):
        i = rows[n]
        h = holder[i]
        for k in range(truth.size):
            if seen[n, k] and (when[h, k] < step or source[h, k] < 0 or source[h, k] > id[i]):
                state[h, k], when[h, k], source[h, k] = truth[k], step, id[i]


@kernel
def note_enemies(rows, holder, id, count, nearest, thing, position, step, state, when, source, place, slot_of_thing):
    """Enter the enemies that have been seen; whoever sees most of them in a step is believed."""
    for n in range(rows.size):
        i = rows[n]
        h = holder[i]
        for s in range(thing.size):
            if count[n, s] == 0:
                continue
            k = thing[s]
            many = min(np.int64(count[n, s]), 30000)
            if when[h, k] == step and (state[h, k] > many or (state[h, k] == many and source[h, k] < id[i])):
                continue
            state[h, k], when[h, k], source[h, k] = many, step, id[i]
            for axis in range(position.shape[1]):
                place[h, slot_of_thing[k], axis] = position[nearest[n, s], axis]
