"""What a walking person sees, and which direction leads farthest.

First the list of the people and round obstacles in sight. Then rule 1 of Moussaïd, Helbing & Theraulaz (PNAS 2011):
among directions to both sides of where the person wants to go, the one whose free path ends nearest to the aim.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.cells import BLOCK, bits_within
from tropel._kernels.compile import inlined_kernel
from tropel._kernels.discs import disc_cell
from tropel._kernels.neighbours import count_runs, run_of, view_of
from tropel._kernels.simd import trailing_zeros
from tropel._kernels.walls import cell_at, chord_blocked, free_of_walls, nearest_on_segment
from tropel.local.habits.keep_right import goes_elsewhere, oncoming

# The columns of the list of what is ahead; ROW is the row of a person, and -1 for an obstacle.
DX, DY, VX, VY, CONTACT, ROW = 0, 1, 2, 3, 4, 5
COLUMNS = 6

#: How far paths reach, as a multiple of how far people look for others and walls.
PATH = 2.0

_NONE, _ONE = np.uint64(0), np.uint64(1)


@inlined_kernel
def distance_to_walls(x, y, walls):
    """The distance to the nearest wall in the lists of this cell; infinite if there is none."""
    if walls.segments.shape[0] == 0:
        return math.inf
    nearest2 = math.inf
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if walls.blocking[s]:
            qx, qy = nearest_on_segment(
                x, y, walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
            )
            nearest2 = min(nearest2, (qx - x) ** 2 + (qy - y) ** 2)
    return math.sqrt(nearest2)


@inlined_kernel
def list_people(i, crowd, ex, ey, horizon, reach, margin, near, walls, in_sight, seen):
    """List the people within the horizon that are not behind the person and that no wall hides.

    People nearer than `in_sight` are not hidden. Returns their number, and the sum over all oncoming people within
    `reach`, which is no shorter. If the list is too short, it returns the length that it needs, negative.
    """
    x, y = crowd.position[i, 0], crowd.position[i, 1]
    radius = crowd.radius[i] + margin
    position, velocity = near.met_position, near.met_velocity
    against = 0.0
    count = np.uint64(0)
    view = view_of(near, i, x, y, 0.0, reach)
    for number in range(count_runs(near, view)):
        first, last, shift_x, shift_y, _ = run_of(near, view, number)
        own_x, own_y = x + shift_x, y + shift_y
        if count + (last - first) > seen.shape[0]:
            return -np.int64(count + (last - first)), 0.0
        for at in range(first, last, BLOCK):
            bits = bits_within(position, at, last, own_x, own_y, 0.0, reach * reach)
            while bits != _NONE:
                k = at + trailing_zeros(bits)
                bits &= bits - _ONE
                dx, dy = position[0, k] - own_x, position[1, k] - own_y
                away2 = dx * dx + dy * dy
                contact = radius + near.met_radius[k]
                vx, vy = velocity[0, k], velocity[1, k]
                ahead = dx * ex + dy * ey
                # People that move along with this one are not oncoming, wherever they face.
                comes = (
                    ahead > 0.0 and vx * ex + vy * ey <= 0.0 and goes_elsewhere(crowd.goal[i], crowd.goal[near.met[k]])
                )
                # People behind do not matter, but bodies in contact may stand slightly behind and still block a turn.
                matters = away2 <= horizon * horizon and ahead >= -contact and near.met[k] != i
                if not (comes or matters) or (
                    away2 > in_sight * in_sight and chord_blocked(own_x, own_y, position[0, k], position[1, k], walls)
                ):
                    continue
                if comes:
                    j = near.met[k]
                    against += oncoming(dx, dy, crowd.heading[j, 0], crowd.heading[j, 1], ex, ey)
                if matters:
                    row = seen[count]
                    row[DX], row[DY], row[VX], row[VY] = dx, dy, vx, vy
                    row[CONTACT], row[ROW] = contact, near.met[k]
                    count += _ONE
    return np.int64(count), against


@inlined_kernel
def list_obstacles(i, crowd, horizon, discs, seen, count):
    """Append the round obstacles within the horizon; returns the number of all entries.

    Obstacles for which the list has no room are left out: the nearest walls of a person are what it slides along.
    """
    if discs.radius.shape[0] == 0:
        return count
    x, y = crowd.position[i, 0], crowd.position[i, 1]
    cell = disc_cell(crowd.position, i, discs)
    for k in range(discs.start[cell], discs.start[cell + 1]):
        m = discs.items[k]
        dx, dy = discs.position[m, 0] - x, discs.position[m, 1] - y
        reach = horizon + discs.radius[m]
        if dx * dx + dy * dy > reach * reach or count >= seen.shape[0]:
            continue
        row = seen[count]
        row[DX], row[DY] = dx, dy
        row[VX], row[VY] = discs.velocity[m, 0], discs.velocity[m, 1]
        row[CONTACT] = crowd.radius[i] + discs.radius[m]
        row[ROW] = -1.0
        count += 1
    return count


@inlined_kernel
def _free_of_others(ex, ey, speed, most, seen, count):
    """Distance along the unit vector e to the first contact at this speed, if all others keep their velocity."""
    time = most / speed
    for k in range(count):
        row = seen[k]
        dx, dy = row[DX], row[DY]
        vx, vy = row[VX] - speed * ex, row[VY] - speed * ey
        closing = -(dx * vx + dy * vy)
        if closing <= 0.0:
            continue
        beyond = dx * dx + dy * dy - row[CONTACT] * row[CONTACT]
        if beyond <= 0.0:
            return 0.0
        fast2 = vx * vx + vy * vy
        inside = closing * closing - fast2 * beyond
        sooner = closing - fast2 * time
        # The root gives the first contact. The comparison skips it if it cannot come before the best so far.
        if inside > 0.0 and (sooner <= 0.0 or sooner * sooner < inside):
            time = min(time, (closing - math.sqrt(inside)) / fast2)
    return time * speed


@inlined_kernel
def _free_path(x, y, ex, ey, speed, path, radius, seen, count, walls, walls_to):
    """How far a body gets along e; walls count if it would touch them within `walls_to`."""
    free = _free_of_others(ex, ey, speed, path, seen, count)
    if walls_to > 0.0:
        most = min(free, walls_to)
        before_wall = free_of_walls(x, y, ex, ey, radius, most, walls)
        if before_wall < most:
            return before_wall
    return free


@inlined_kernel
def best_direction(x, y, ex, ey, speed, horizon, radius, seen, count, walls, walls_at, turns, worth):
    """The direction of the fan whose free path ends nearest to where the free path straight ahead would.

    A turn must be `worth` it: it must bring the end nearer by that share of the squared distance that is missing.
    """
    bx, by = ex, ey
    path = PATH * horizon
    walls_to = horizon if walls_at - radius < horizon else 0.0
    free = _free_path(x, y, ex, ey, speed, path, radius, seen, count, walls, walls_to)
    if free >= path:
        return bx, by
    least = (1.0 - worth) * (path - free) ** 2
    for turn in range(turns.shape[0]):
        cosine, sine = turns[turn, 0], turns[turn, 1]
        # Even if this angle and all wider ones were free, they would not end nearer than the best so far.
        if path * path * (1.0 - cosine * cosine) >= least:
            break
        for side in range(2):
            # Right before left: where both are equally good, people pass on the right.
            sign = sine if side == 0 else -sine
            cx, cy = cosine * ex + sign * ey, cosine * ey - sign * ex
            free = _free_path(x, y, cx, cy, speed, path, radius, seen, count, walls, walls_to)
            missed = path * path + free * free - 2.0 * path * free * cosine
            if missed < least - 1e-12:
                least, bx, by = missed, cx, cy
    return bx, by
