"""The sums of a boid over the agents in sight: mates, avoided agents, predators and prey.

Mates are summed in vectors (`local/flocking/lanes.py`), in the order of cells and then of ids. With `nearest` mates, a
boid first finds the k nearest, by distance and then by id, and sums over them in that order. Neighbours beyond the seam
of periodic space are found by shifting the boid's own point by a period.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.cells import BLOCK, bits_within, cell_run, cell_window
from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.neighbours import Neighbours, count_runs, run_of, view_of
from tropel._kernels.simd import prefetch, trailing_zeros
from tropel.local.flocking.lanes import (
    CROWDED,
    FLED,
    HEADED,
    MATES,
    MIDDLE,
    PREY,
    sum_runs_2d,
    sum_runs_3d,
    sum_runs_in_view_2d,
    sum_runs_in_view_3d,
    sum_runs_of_groups_2d,
    sum_runs_of_groups_3d,
)

#: What a boid distinguishes: nothing, agents inside and outside its view, or groups as well.
ALL_ROUND, IN_VIEW, BY_GROUP = 0, 1, 2

#: Smaller squared distances are raised to this, as in `local/flocking/lanes.py`.
_TINY = 1e-290
_ZERO, _ONE = np.uint64(0), np.uint64(1)


def room_for_runs(cells: Neighbours) -> int:
    """The largest number of runs of neighbours for a boid."""
    widest = float(cells.sense_radius.max(initial=0.0))
    rows = [min(2.0 * widest * cells.inverse_cell + 3.0, float(count) + 2.0) for count in cells.shape[1:]]
    return int(rows[0]) * int(rows[1]) * (3 if cells.period[0] > 0.0 else 1)


@inlined_kernel
def place_at(places, first, n):
    """The place of the n-th boid of a chunk among the sorted agents."""
    return np.uint64(places[np.uint64(first) + n]) if places.size > 0 else np.uint64(first) + n


@inlined_kernel
def _is_among(groups, number):
    return (groups >> np.uint64(number)) & _ONE != _ZERO


@inlined_kernel
def _list_run(runs, shifts, count, first, last, shift_x, shift_y, shift_z):
    runs[count + count], runs[count + count + _ONE] = first, last
    at = count + count + count
    shifts[at], shifts[at + _ONE], shifts[at + _ONE + _ONE] = shift_x, shift_y, shift_z
    return count + _ONE


@inlined_kernel
def _list_runs(near, i, x, y, z, reach, wraps, runs, shifts):
    """List the runs of neighbours of agent i and the shift of its point for each; returns their number."""
    count = _ZERO
    if not (wraps or near.list_start.size > 0):
        level = z if near.position.shape[0] == 3 else np.float64(near.level[i])
        x0, x1, y0, y1, z0, z1 = cell_window(near, x, y, level, reach)
        for cz in range(z0, z1 + 1):
            for cy in range(y0, y1 + 1):
                first, last = cell_run(near, x0, x1, cy, cz)
                count = _list_run(runs, shifts, count, first, last, 0.0, 0.0, 0.0)
        return count
    view = view_of(near, i, x, y, z, reach)
    for number in range(count_runs(near, view)):
        first, last, shift_x, shift_y, shift_z = run_of(near, view, number)
        count = _list_run(runs, shifts, count, first, last, shift_x, shift_y, shift_z)
    return count


@kernel
def sum_up_all(places, first, last, near, close, cone, relations, told_apart, runs, shifts, found, out_velocity,
               out_heading):  # fmt: skip
    """Sums over all agents within reach, for the boids at some places; `close` and `cone` have a number for each.

    Rows of neighbours can be anywhere in memory, so each boid's outputs are prefetched meanwhile.
    """
    position, velocity, group = near.met_position, near.met_velocity, near.met_group
    spatial = position.shape[0] == 3
    stride = np.uint64(position.shape[1])
    wraps = near.period[0] + near.period[1] + near.period[2] > 0.0
    joined, avoided = relations.joined[0], relations.avoided[0]
    for n in range(np.uint64(last - first)):
        k = place_at(places, first, n)
        i = np.uint64(near.order[k])
        x, y, z = near.position[0, k], near.position[1, k], near.position[2, k] if spatial else 0.0
        vx, vy, vz = near.velocity[0, k], near.velocity[1, k], near.velocity[2, k] if spatial else 0.0
        limit, close2 = near.sense_radius[k] * near.sense_radius[k], close[n] * close[n]
        row = np.int64(i) * position.shape[0]
        prefetch(out_velocity, row)
        prefetch(out_heading, row)
        count = _list_runs(near, i, x, y, z, near.sense_radius[k], wraps, runs, shifts)
        if told_apart == BY_GROUP:
            joined, avoided = relations.joined[np.uint64(near.group[k])], relations.avoided[np.uint64(near.group[k])]
            if spatial:
                sum_runs_of_groups_3d(position, velocity, group, runs, shifts, found, stride, count, n, joined, avoided,
                                      x, y, z, vx, vy, vz, limit, close2, cone[n])  # fmt: skip
            else:
                sum_runs_of_groups_2d(position, velocity, group, runs, shifts, found, stride, count, n, joined, avoided,
                                      x, y, vx, vy, limit, close2, cone[n])  # fmt: skip
            # The boid itself is counted only if its own group is among the mates.
            found[n, MATES] -= 1.0 if _is_among(joined, near.group[k]) else 0.0
            continue
        if told_apart == IN_VIEW:
            if spatial:
                sum_runs_in_view_3d(position, velocity, group, runs, shifts, found, stride, count, n, joined, avoided,
                                    x, y, z, vx, vy, vz, limit, close2, cone[n])  # fmt: skip
            else:
                sum_runs_in_view_2d(position, velocity, group, runs, shifts, found, stride, count, n, joined, avoided,
                                    x, y, vx, vy, limit, close2, cone[n])  # fmt: skip
        elif spatial:
            sum_runs_3d(position, velocity, group, runs, shifts, found, stride, count, n, joined, avoided, x, y, z, vx,
                        vy, vz, limit, close2, 0.0)  # fmt: skip
        else:
            sum_runs_2d(position, velocity, group, runs, shifts, found, stride, count, n, joined, avoided, x, y, vx, vy,
                        limit, close2, 0.0)  # fmt: skip
        found[n, MATES] -= 1.0


@inlined_kernel
def _in_view(dx, dy, dz, away2, v, cone):
    """The test of `local/flocking/lanes.py`, with the same operations."""
    ahead = dx * v[0] + dy * v[1] + dz * v[2]
    return (-ahead * ahead if ahead < 0.0 else ahead * ahead) >= cone * away2


@inlined_kernel
def _enter(found, many, table, chosen, away2, k, dx, dy, dz, met, ids):
    """Insert a candidate among the nearest found so far, by distance and then by id; returns their number."""
    place = found
    while place > 0:
        other = place - 1
        if table[other, 0] < away2:
            break
        if table[other, 0] == away2 and ids[met[chosen[other]]] < ids[met[k]]:
            break
        place -= 1
    if place == many:
        return found
    for n in range(min(found, many - 1), place, -1):
        chosen[n] = chosen[n - 1]
        for column in range(4):
            table[n, column] = table[n - 1, column]
    chosen[place] = k
    table[place, 0], table[place, 1], table[place, 2], table[place, 3] = away2, dx, dy, dz
    return min(found + 1, many)


@kernel
def sum_up_nearest(places, first, last, near, ids, close, cone, relations, told_apart, table, chosen, found):
    """Sums over the nearest mates in view, as many as `chosen` has room for, for the boids at some places."""
    spatial = near.position.shape[0] == 3
    many = chosen.size
    for n in range(np.uint64(last - first)):
        own = place_at(places, first, n)
        x, y, vx, vy = near.position[0, own], near.position[1, own], near.velocity[0, own], near.velocity[1, own]
        z, vz = (near.position[2, own], near.velocity[2, own]) if spatial else (0.0, 0.0)
        joined = relations.joined[np.uint64(near.group[own]) if told_apart == BY_GROUP else _ZERO]
        reach = near.sense_radius[own]
        limit = reach * reach
        count = 0
        i = np.uint64(near.order[own])
        view = view_of(near, i, x, y, z, reach)
        for number in range(count_runs(near, view)):
            begin, end, shift_x, shift_y, shift_z = run_of(near, view, number)
            px, py, pz = x + shift_x, y + shift_y, z + shift_z
            for at in range(begin, end, BLOCK):
                bits = bits_within(near.met_position, at, end, px, py, pz, limit)
                while bits != _ZERO:
                    k = at + trailing_zeros(bits)
                    bits &= bits - _ONE
                    dx, dy = near.met_position[0, k] - px, near.met_position[1, k] - py
                    dz = near.met_position[2, k] - pz if spatial else 0.0
                    away2 = dx * dx + dy * dy + dz * dz
                    if near.met[k] == i or away2 > limit:
                        continue
                    if told_apart == BY_GROUP and not _is_among(joined, near.met_group[k]):
                        continue
                    if told_apart != ALL_ROUND and not _in_view(dx, dy, dz, away2, (vx, vy, vz), cone[n]):
                        continue
                    count = _enter(count, many, table, chosen, away2, k, dx, dy, dz, near.met, ids)
                    if count == many:
                        limit = table[many - 1, 0]
        _sum_up_chosen(n, count, table, chosen, near.met_velocity, vx, vy, vz, close[n], found)


@inlined_kernel
def _sum_up_chosen(n, count, table, chosen, velocity, vx, vy, vz, close, found):
    cx = cy = cz = ax = ay = az = sx = sy = sz = 0.0
    close2 = close * close
    for m in range(count):
        away2, dx, dy, dz = table[m, 0], table[m, 1], table[m, 2], table[m, 3]
        cx, cy, cz = cx + dx, cy + dy, cz + dz
        ax, ay = ax + (velocity[0, chosen[m]] - vx), ay + (velocity[1, chosen[m]] - vy)
        if velocity.shape[0] == 3:
            az += velocity[2, chosen[m]] - vz
        if away2 < close2:
            push = 1.0 / max(away2, _TINY) - 1.0 / close2
            sx, sy, sz = sx + dx * push, sy + dy * push, sz + dz * push
    found[n, MATES] = count
    found[n, MIDDLE], found[n, MIDDLE + 1], found[n, MIDDLE + 2] = cx, cy, cz
    found[n, HEADED], found[n, HEADED + 1], found[n, HEADED + 2] = ax, ay, az
    found[n, CROWDED], found[n, CROWDED + 1], found[n, CROWDED + 2] = sx, sy, sz


@kernel
def meet(places, first, last, near, ids, reach, cone, groups, fleeing, found):
    """Find the agents that the boids at some places flee from or chase; `groups` has a word for each own group.

    Writes FLED, the sum of d (1 / r² - 1 / reach²) in all directions, or PREY, the offset d of the nearest agent in
    view (the lower id of two that are equally near). Both are zero if there is none.
    """
    spatial = near.position.shape[0] == 3
    column = FLED if fleeing else PREY
    for n in range(np.uint64(last - first)):
        own = place_at(places, first, n)
        wanted = groups[np.uint64(near.group[own])]
        sx = sy = sz = 0.0
        if wanted != _ZERO:
            x, y, vx, vy = (
                near.position[0, own],
                near.position[1, own],
                near.velocity[0, own],
                near.velocity[1, own],
            )
            z, vz = (near.position[2, own], near.velocity[2, own]) if spatial else (0.0, 0.0)
            limit = reach[n] * reach[n]
            best, who = math.inf, np.int64(-1)
            i = np.uint64(near.order[own])
            view = view_of(near, i, x, y, z, reach[n])
            for run in range(count_runs(near, view)):
                begin, end, shift_x, shift_y, shift_z = run_of(near, view, run)
                px, py, pz = x + shift_x, y + shift_y, z + shift_z
                for at in range(begin, end, BLOCK):
                    bits = bits_within(near.met_position, at, end, px, py, pz, limit)
                    while bits != _ZERO:
                        k = at + trailing_zeros(bits)
                        bits &= bits - _ONE
                        if near.met[k] == i or not _is_among(wanted, near.met_group[k]):
                            continue
                        dx, dy = near.met_position[0, k] - px, near.met_position[1, k] - py
                        dz = near.met_position[2, k] - pz if spatial else 0.0
                        away2 = dx * dx + dy * dy + dz * dz
                        if fleeing:
                            push = 1.0 / max(away2, _TINY) - 1.0 / max(limit, _TINY)
                            sx, sy, sz = sx + dx * push, sy + dy * push, sz + dz * push
                        elif away2 <= best and _in_view(dx, dy, dz, away2, (vx, vy, vz), cone[n]):
                            number = ids[near.met[k]]
                            if away2 < best or number < who:
                                best, who, sx, sy, sz = away2, number, dx, dy, dz
        found[n, column], found[n, column + 1], found[n, column + 2] = sx, sy, sz
