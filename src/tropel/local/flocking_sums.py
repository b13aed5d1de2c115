"""What a boid sums up over those in sight: its mates, those it avoids, predators and prey.

Mates are summed up in vectors (`_kernels/flock_lanes.py`), in the order of cells and then of ids. With `nearest` mates
a boid first finds the k nearest, by distance and then by id, and sums over them in that order. Positions beyond the
seam of periodic space are met by moving one's own point by a period.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.cells import BLOCK, behind_seam, near_bits, side_run, wrapping_window, x_sides
from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.flock_lanes import (
    COUNT,
    CROWDING,
    DRIFT,
    LANES,
    OFFSET,
    OTHERS,
    SUMS,
    add_run_2d,
    add_run_3d,
    add_run_in_view_2d,
    add_run_in_view_3d,
    add_run_of_groups_2d,
    add_run_of_groups_3d,
    lane_sum,
)
from tropel._kernels.simd import trailing_zeros

#: Whom a boid tells apart: nobody, those in and out of its view, and groups too.
ALL_ROUND, IN_VIEW, BY_GROUP = 0, 1, 2

#: Columns of what is found for a boid: the number of its mates, and vectors of three numbers each: the sums over mates
#: of offsets, of relative velocities and of those that are close, over those avoided and those fled from, and the
#: offset of the nearest prey.
MATES, MIDDLE, HEADED, CROWDED, SHUNNED, FLED, PREY = (np.uint64(column) for column in (0, 1, 4, 7, 10, 13, 16))
FOUND = 19

#: Squared distances below this count as this, as in `flock_lanes`.
_TINY = 1e-290
_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_NEXT = np.uint64(LANES)
_AFTER_NEXT = np.uint64(2 * LANES)


@inlined_kernel
def _add_run(sums, cells, first, last, joined, avoided, x, y, z, v, limit, close2, cone, told_apart):
    position, velocity, group = cells.position, cells.velocity, cells.group
    stride = np.uint64(position.shape[1])
    vx, vy, vz = v
    if position.shape[0] == 2:
        if told_apart == ALL_ROUND:
            add_run_2d(sums, position, velocity, group, stride, first, last, joined, avoided, x, y, vx, vy, limit,
                       close2, cone)  # fmt: skip
        elif told_apart == IN_VIEW:
            add_run_in_view_2d(sums, position, velocity, group, stride, first, last, joined, avoided, x, y, vx, vy,
                               limit, close2, cone)  # fmt: skip
        else:
            add_run_of_groups_2d(sums, position, velocity, group, stride, first, last, joined, avoided, x, y, vx, vy,
                                 limit, close2, cone)  # fmt: skip
    elif told_apart == ALL_ROUND:
        add_run_3d(sums, position, velocity, group, stride, first, last, joined, avoided, x, y, z, vx, vy, vz, limit,
                   close2, cone)  # fmt: skip
    elif told_apart == IN_VIEW:
        add_run_in_view_3d(sums, position, velocity, group, stride, first, last, joined, avoided, x, y, z, vx, vy, vz,
                           limit, close2, cone)  # fmt: skip
    else:
        add_run_of_groups_3d(sums, position, velocity, group, stride, first, last, joined, avoided, x, y, z, vx, vy, vz,
                             limit, close2, cone)  # fmt: skip


@inlined_kernel
def place_at(places, first, n):
    """The place of the n-th boid of a chunk among the sorted agents."""
    return np.uint64(places[np.uint64(first) + n]) if places.size > 0 else np.uint64(first) + n


@inlined_kernel
def _is_among(groups, number):
    return (groups >> np.uint64(number)) & _ONE != _ZERO


@inlined_kernel
def _write_vector(found, n, column, sums, begin, spatial):
    found[n, column] = lane_sum(sums, begin)
    found[n, column + _ONE] = lane_sum(sums, begin + _NEXT)
    found[n, column + _TWO] = lane_sum(sums, begin + _AFTER_NEXT) if spatial else 0.0


@kernel
def sum_up_all(places, first, last, cells, close, cone, relations, told_apart, sums, found):
    """Sums over everybody within reach, of the boids at some places; `close` and `cone` have a number for each."""
    spatial = cells.position.shape[0] == 3
    used = np.uint64(SUMS) if told_apart == BY_GROUP else OTHERS
    by_group, joined, avoided = told_apart == BY_GROUP, relations.joined[0], relations.avoided[0]
    for n in range(np.uint64(last - first)):
        k = place_at(places, first, n)
        x, y, vx, vy = cells.position[0, k], cells.position[1, k], cells.velocity[0, k], cells.velocity[1, k]
        z, vz = (cells.position[2, k], cells.velocity[2, k]) if spatial else (0.0, 0.0)
        reach = cells.sense_radius[k]
        limit, close2 = reach * reach, close[n] * close[n]
        if by_group:
            joined, avoided = relations.joined[np.uint64(cells.group[k])], relations.avoided[np.uint64(cells.group[k])]
        for place in range(_ZERO, used):
            sums[place] = 0.0
        x0, x1, y0, y1, z0, z1 = wrapping_window(cells, x, y, z, reach)
        first_side, last_side = x_sides(cells, x0, x1)
        for cz in range(z0, z1 + 1):
            row_z, shift_z = behind_seam(cells, 2, cz)
            for cy in range(y0, y1 + 1):
                row_y, shift_y = behind_seam(cells, 1, cy)
                for side in range(first_side, last_side + 1):
                    begin, end, shift_x = side_run(cells, x0, x1, row_y, row_z, side)
                    _add_run(sums, cells, begin, end, joined, avoided, x + shift_x, y + shift_y, z + shift_z,
                             (vx, vy, vz), limit, close2, cone[n], told_apart)  # fmt: skip
        found[n, MATES] = lane_sum(sums, COUNT)
        _write_vector(found, n, MIDDLE, sums, OFFSET, spatial)
        _write_vector(found, n, HEADED, sums, DRIFT, spatial)
        _write_vector(found, n, CROWDED, sums, CROWDING, spatial)
        if by_group:
            # Oneself is only counted where one's own group is among the mates.
            found[n, MATES] -= 1.0 if _is_among(joined, cells.group[k]) else 0.0
            _write_vector(found, n, SHUNNED, sums, OTHERS, spatial)
        else:
            found[n, MATES] -= 1.0


@inlined_kernel
def _in_view(dx, dy, dz, away2, v, cone):
    """The test of `flock_lanes`, in the same operations."""
    ahead = dx * v[0] + dy * v[1] + dz * v[2]
    return (-ahead * ahead if ahead < 0.0 else ahead * ahead) >= cone * away2


@kernel
def _enter(found, many, table, chosen, away2, k, dx, dy, dz, order, ids):
    """Put a candidate into its place among the nearest found so far, by distance and then by id; returns how many."""
    place = found
    while place > 0:
        other = place - 1
        if table[other, 0] < away2:
            break
        if table[other, 0] == away2 and ids[order[chosen[other]]] < ids[order[k]]:
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
def sum_up_nearest(places, first, last, cells, ids, close, cone, relations, told_apart, table, chosen, found):
    """The sums over the nearest mates in view, as many as `chosen` has room for, of the boids at some places."""
    spatial = cells.position.shape[0] == 3
    many = chosen.size
    for n in range(np.uint64(last - first)):
        own = place_at(places, first, n)
        x, y, vx, vy = cells.position[0, own], cells.position[1, own], cells.velocity[0, own], cells.velocity[1, own]
        z, vz = (cells.position[2, own], cells.velocity[2, own]) if spatial else (0.0, 0.0)
        joined = relations.joined[np.uint64(cells.group[own]) if told_apart == BY_GROUP else _ZERO]
        reach = cells.sense_radius[own]
        limit = reach * reach
        count = 0
        x0, x1, y0, y1, z0, z1 = wrapping_window(cells, x, y, z, reach)
        first_side, last_side = x_sides(cells, x0, x1)
        for cz in range(z0, z1 + 1):
            row_z, shift_z = behind_seam(cells, 2, cz)
            for cy in range(y0, y1 + 1):
                row_y, shift_y = behind_seam(cells, 1, cy)
                for side in range(first_side, last_side + 1):
                    begin, end, shift_x = side_run(cells, x0, x1, row_y, row_z, side)
                    px, py, pz = x + shift_x, y + shift_y, z + shift_z
                    for at in range(begin, end, BLOCK):
                        bits = near_bits(cells, at, end, px, py, pz, limit)
                        while bits != _ZERO:
                            k = at + trailing_zeros(bits)
                            bits &= bits - _ONE
                            dx, dy = cells.position[0, k] - px, cells.position[1, k] - py
                            dz = cells.position[2, k] - pz if spatial else 0.0
                            away2 = dx * dx + dy * dy + dz * dz
                            if k == own or away2 > limit:
                                continue
                            if told_apart == BY_GROUP and not _is_among(joined, cells.group[k]):
                                continue
                            if told_apart != ALL_ROUND and not _in_view(dx, dy, dz, away2, (vx, vy, vz), cone[n]):
                                continue
                            count = _enter(count, many, table, chosen, away2, k, dx, dy, dz, cells.order, ids)
                            if count == many:
                                limit = table[many - 1, 0]
        _sum_up_chosen(n, count, table, chosen, cells.velocity, vx, vy, vz, close[n], found)


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
    found[n, MIDDLE], found[n, MIDDLE + _ONE], found[n, MIDDLE + _TWO] = cx, cy, cz
    found[n, HEADED], found[n, HEADED + _ONE], found[n, HEADED + _TWO] = ax, ay, az
    found[n, CROWDED], found[n, CROWDED + _ONE], found[n, CROWDED + _TWO] = sx, sy, sz


@kernel
def meet(places, first, last, cells, ids, reach, cone, groups, fleeing, found):
    """Meet the groups that the boids at some places flee from, or else chase; `groups` has a word for each own group.

    Written are FLED, the sum of d (1 / r² - 1 / reach²) all round, or PREY, the offset d of the nearest in view, of two
    as near that with the lower id; zero where nobody is.
    """
    spatial = cells.position.shape[0] == 3
    column = FLED if fleeing else PREY
    for n in range(np.uint64(last - first)):
        own = place_at(places, first, n)
        wanted = groups[np.uint64(cells.group[own])]
        sx = sy = sz = 0.0
        if wanted != _ZERO:
            x, y, vx, vy = (
                cells.position[0, own],
                cells.position[1, own],
                cells.velocity[0, own],
                cells.velocity[1, own],
            )
            z, vz = (cells.position[2, own], cells.velocity[2, own]) if spatial else (0.0, 0.0)
            limit = reach[n] * reach[n]
            best, who = math.inf, np.int64(-1)
            x0, x1, y0, y1, z0, z1 = wrapping_window(cells, x, y, z, reach[n])
            first_side, last_side = x_sides(cells, x0, x1)
            for cz in range(z0, z1 + 1):
                row_z, shift_z = behind_seam(cells, 2, cz)
                for cy in range(y0, y1 + 1):
                    row_y, shift_y = behind_seam(cells, 1, cy)
                    for side in range(first_side, last_side + 1):
                        begin, end, shift_x = side_run(cells, x0, x1, row_y, row_z, side)
                        px, py, pz = x + shift_x, y + shift_y, z + shift_z
                        for at in range(begin, end, BLOCK):
                            bits = near_bits(cells, at, end, px, py, pz, limit)
                            while bits != _ZERO:
                                k = at + trailing_zeros(bits)
                                bits &= bits - _ONE
                                if k == own or not _is_among(wanted, cells.group[k]):
                                    continue
                                dx, dy = cells.position[0, k] - px, cells.position[1, k] - py
                                dz = cells.position[2, k] - pz if spatial else 0.0
                                away2 = dx * dx + dy * dy + dz * dz
                                if fleeing:
                                    push = 1.0 / max(away2, _TINY) - 1.0 / limit
                                    sx, sy, sz = sx + dx * push, sy + dy * push, sz + dz * push
                                elif away2 <= best and _in_view(dx, dy, dz, away2, (vx, vy, vz), cone[n]):
                                    number = ids[cells.order[k]]
                                    if away2 < best or number < who:
                                        best, who, sx, sy, sz = away2, number, dx, dy, dz
        found[n, column], found[n, column + _ONE], found[n, column + _TWO] = sx, sy, sz
