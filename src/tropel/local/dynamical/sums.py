"""The sums of GAME eq. 8, 12 and 14: the effect of other agents, round obstacles and walls on an agent.

Round bodies near an agent are first collected in a small table, column by column, and then evaluated all together,
which the compiler turns into vector instructions. A list longer than the table is evaluated in parts. Walls and closed
doors (2D only) come at the end of the file.

For each class of obstacles six numbers are summed: the angular velocity (three numbers, in 2D only the last one), its
slope, the nearness D and the window W.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.cells import BLOCK
from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.discs import disc_cell
from tropel._kernels.fast_math import fast_exp
from tropel._kernels.neighbours import count_runs, meeting_bits, run_of, view_of
from tropel._kernels.simd import trailing_zeros
from tropel._kernels.walls import cell_at, out_of_reach
from tropel.local.dynamical.parameters import AGENTS, WALLS
from tropel.local.dynamical.repellers import in_view, repeller, subtended, wall_interval

#: Columns of the sums of a class.
SLOPE, NEARNESS, WINDOW, SUMS = 3, 4, 5, 6

#: Bodies in the table; the list is padded to a multiple of _LANES with bodies too far away to have an effect.
_ROOM, _LANES = 64, 4
_NOWHERE = 1e12
#: Where the columns of the table begin: constants, so that the compiler sees that they do not overlap.
_DX, _DY, _DZ, _VX, _VY, _VZ, _CONTACT, _TURN, _TURN_Y, _TURN_Z, _SLOPE, _NEAR, _WINDOW, _GAP = (
    np.uint64(_ROOM * column) for column in range(14)
)
#: Numbers in a table.
TABLE = 14 * _ROOM
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_FULL = np.uint64(_ROOM) - BLOCK

#: Objects in front that are farther away than this do not slow agents down [m].
_FREE = 1e300


@inlined_kernel
def _weigh_in_plane(table, count, h, own_speed, anticipation, d0, cut, kind, front, cos_view, all_round):
    hx, hy, _ = h
    strength, cos_delta, sin_delta = kind
    per_d0 = 1.0 / d0
    slowest2 = (1e-3 * own_speed) ** 2
    sin_view = math.sqrt(max(1.0 - cos_view * cos_view, 0.0))
    for k in range(_ZERO, count):
        dx, dy = table[_DX + k], table[_DY + k]
        contact = table[_CONTACT + k]
        away = math.sqrt(dx * dx + dy * dy)
        per_away = 1.0 / away
        ux, uy = dx * per_away, dy * per_away
        ahead = hx * ux + hy * uy
        # In front means: the body would run into it if it went straight on.
        aside, width = hx * dy - hy * dx, front * contact
        dpsi, cos_2dpsi, sin_2dpsi, cosine, sine = subtended(contact, per_away)
        seen = in_view(ahead, sine, cosine, cos_view, sin_view) & (away > 0.0)
        table[_GAP + k] = away - contact if (ahead > 0.0) & (aside * aside < width * width) & seen else _FREE
        rx, ry = own_speed * hx - anticipation * table[_VX + k], own_speed * hy - anticipation * table[_VY + k]
        relative2 = rx * rx + ry * ry
        per_relative = 1.0 / math.sqrt(relative2)
        rx *= per_relative
        ry *= per_relative
        free = max(away - contact, 0.0) * (own_speed * per_relative) * per_d0
        n = ux * ry - uy * rx
        turn, slope, w = repeller(rx * ux + ry * uy, abs(n), dpsi, cos_2dpsi, sin_2dpsi, cos_delta, sin_delta)
        # A body that moves along with the agent comes no nearer.
        felt = seen & (relative2 >= slowest2) & (free <= cut)
        near = fast_exp(-free)
        table[_TURN + k] = math.copysign(turn * near * strength, n) if felt else 0.0
        table[_SLOPE + k] = slope * near * strength if felt else 0.0
        table[_NEAR + k] = near * max(w, all_round) if felt else 0.0
        table[_WINDOW + k] = w if felt else 0.0


@inlined_kernel
def _weigh_in_space(table, count, h, m, own_speed, anticipation, d0, cut, kind, front, cos_view, all_round):
    hx, hy, hz = h
    mx, my, mz = m
    strength, cos_delta, sin_delta = kind
    per_d0 = 1.0 / d0
    slowest2 = (1e-3 * own_speed) ** 2
    sin_view = math.sqrt(max(1.0 - cos_view * cos_view, 0.0))
    for k in range(_ZERO, count):
        dx, dy, dz = table[_DX + k], table[_DY + k], table[_DZ + k]
        contact = table[_CONTACT + k]
        away2 = dx * dx + dy * dy + dz * dz
        away = math.sqrt(away2)
        per_away = 1.0 / away
        ux, uy, uz = dx * per_away, dy * per_away, dz * per_away
        ahead = hx * ux + hy * uy + hz * uz
        width = front * contact
        dpsi, cos_2dpsi, sin_2dpsi, cosine, sine = subtended(contact, per_away)
        seen = in_view(ahead, sine, cosine, cos_view, sin_view) & (away > 0.0)
        aside2 = away2 * (1.0 - ahead * ahead)
        table[_GAP + k] = away - contact if (ahead > 0.0) & (aside2 < width * width) & seen else _FREE
        rx = own_speed * hx - anticipation * table[_VX + k]
        ry = own_speed * hy - anticipation * table[_VY + k]
        rz = own_speed * hz - anticipation * table[_VZ + k]
        relative2 = rx * rx + ry * ry + rz * rz
        per_relative = 1.0 / math.sqrt(relative2)
        rx *= per_relative
        ry *= per_relative
        rz *= per_relative
        free = max(away - contact, 0.0) * (own_speed * per_relative) * per_d0
        cos_x = rx * ux + ry * uy + rz * uz
        nx, ny, nz = uy * rz - uz * ry, uz * rx - ux * rz, ux * ry - uy * rx
        sin_x = math.sqrt(nx * nx + ny * ny + nz * nz)
        turn, slope, w = repeller(cos_x, sin_x, dpsi, cos_2dpsi, sin_2dpsi, cos_delta, sin_delta)
        felt = seen & (relative2 >= slowest2) & (free <= cut)
        near = fast_exp(-free)
        turn *= near * strength
        slope *= near * strength
        per_sin = 1.0 / max(sin_x, 1e-12)
        nx *= per_sin
        ny *= per_sin
        nz *= per_sin
        # Turning about m changes x only by the component of m along n; the rest turns the plane of heading and object.
        aligned = nx * mx + ny * my + nz * mz
        aligned = aligned * aligned if sin_x > 1e-12 else 1.0
        table[_TURN + k] = turn * nx if felt else 0.0
        table[_TURN_Y + k] = turn * ny if felt else 0.0
        table[_TURN_Z + k] = turn * nz if felt else 0.0
        table[_SLOPE + k] = slope * aligned + turn * cos_x * per_sin * (1.0 - aligned) if felt else 0.0
        table[_NEAR + k] = near * max(w, all_round) if felt else 0.0
        table[_WINDOW + k] = w if felt else 0.0


@inlined_kernel
def _weigh(table, listed, spatial, h, m, own_speed, anticipation, d0, cut, kind, front, cos_view, all_round, sums, gap):
    """Add the listed bodies to the sums of their class; returns the smallest free distance in front so far."""
    count = listed
    while count % np.uint64(_LANES) != _ZERO:
        table[_DX + count] = table[_DY + count] = table[_DZ + count] = _NOWHERE
        table[_VX + count] = table[_VY + count] = table[_VZ + count] = table[_CONTACT + count] = 0.0
        count += _ONE
    if spatial:
        _weigh_in_space(table, count, h, m, own_speed, anticipation, d0, cut, kind, front, cos_view, all_round)
    else:
        _weigh_in_plane(table, count, h, own_speed, anticipation, d0, cut, kind, front, cos_view, all_round)
    turn = slope = nearness = window = 0.0
    for k in range(_ZERO, listed):
        turn += table[_TURN + k]
        slope += table[_SLOPE + k]
        nearness += table[_NEAR + k]
        window += table[_WINDOW + k]
        gap = min(gap, table[_GAP + k])
    sums[SLOPE] += slope
    sums[NEARNESS] += nearness
    sums[WINDOW] += window
    if spatial:
        turn_y = turn_z = 0.0
        for k in range(_ZERO, listed):
            turn_y += table[_TURN_Y + k]
            turn_z += table[_TURN_Z + k]
        sums[0] += turn
        sums[1] += turn_y
        sums[2] += turn_z
    else:
        sums[2] += turn
    return gap


@inlined_kernel
def sum_over_agents(i, x, y, z, h, m, own_speed, d0, cos_view, brakes, crowd, near, rules, table, scratch, gap):
    """Add all others within the sense radius to the sums; returns the smallest free distance in front.

    Those farther away than `brakes` count only if they can be met soon.
    """
    spatial = near.position.shape[0] == 3
    sums = scratch[rules.class_of[AGENTS]]
    kind = (rules.strength[AGENTS], rules.cos_margin[AGENTS], rules.sin_margin[AGENTS])
    d0 = d0 * rules.reach[AGENTS]
    position, velocity = near.met_position, near.met_velocity
    reach, radius = crowd.sense_radius[i], crowd.radius[i]
    # Agents that cannot be met within this time have no effect. In a crowd that walks in one direction that is most.
    horizon = rules.cut * d0 / own_speed
    view = view_of(near, i, x, y, z, reach)
    listed = _ZERO
    for number in range(count_runs(near, view)):
        first, last, _, _, _ = run_of(near, view, number)
        for at in range(first, last, BLOCK):
            bits = meeting_bits(near, at, last, x, y, z, own_speed * h[0], own_speed * h[1], own_speed * h[2],
                                rules.anticipation, radius, reach * reach, horizon, brakes)  # fmt: skip
            while bits != _ZERO:
                k = at + trailing_zeros(bits)
                bits &= bits - _ONE
                table[_DX + listed], table[_DY + listed] = position[0, k] - x, position[1, k] - y
                table[_VX + listed], table[_VY + listed] = velocity[0, k], velocity[1, k]
                if spatial:
                    table[_DZ + listed], table[_VZ + listed] = position[2, k] - z, velocity[2, k]
                table[_CONTACT + listed] = radius + near.met_radius[k]
                # The next entry overwrites the agent itself.
                listed += np.uint64(near.met[k] != i)
            if listed > _FULL:
                gap = _weigh(table, listed, spatial, h, m, own_speed, rules.anticipation, d0, rules.cut, kind,
                             rules.front, cos_view, rules.all_round, sums, gap)  # fmt: skip
                listed = _ZERO
    if listed > _ZERO:
        gap = _weigh(table, listed, spatial, h, m, own_speed, rules.anticipation, d0, rules.cut, kind, rules.front,
                     cos_view, rules.all_round, sums, gap)  # fmt: skip
    return gap


@inlined_kernel
def sum_over_obstacles(i, x, y, z, h, m, own_speed, d0, cos_view, crowd, discs, rules, table, scratch, gap):
    """Add the round obstacles with their surface within the sense radius, each by the parameters of its type."""
    spatial = crowd.position.shape[1] == 3
    cell = disc_cell(crowd.position, i, discs)
    begin, end = discs.start[cell], discs.start[cell + 1]
    listed = _ZERO
    row = 0
    for k in range(begin, end + 1):
        o = discs.items[min(k, end - 1)]
        own_row = rules.row_of_type[discs.type[o]]
        if listed > _ZERO and (k == end or own_row != row or listed > _FULL):
            kind = (rules.strength[row], rules.cos_margin[row], rules.sin_margin[row])
            gap = _weigh(table, listed, spatial, h, m, own_speed, rules.anticipation, d0 * rules.reach[row], rules.cut,
                         kind, rules.front, cos_view, rules.all_round, scratch[rules.class_of[row]], gap)  # fmt: skip
            listed = _ZERO
        if k == end:
            break
        row = own_row
        dx, dy = discs.position[o, 0] - x, discs.position[o, 1] - y
        dz = discs.position[o, 2] - z if spatial else 0.0
        limit = crowd.sense_radius[i] + discs.radius[o]
        if dx * dx + dy * dy + dz * dz <= limit * limit:
            table[_DX + listed], table[_DY + listed], table[_DZ + listed] = dx, dy, dz
            table[_VX + listed], table[_VY + listed] = discs.velocity[o, 0], discs.velocity[o, 1]
            table[_VZ + listed] = discs.velocity[o, 2] if spatial else 0.0
            table[_CONTACT + listed] = crowd.radius[i] + discs.radius[o]
            listed += _ONE
    return gap


# Walls and closed doors, in 2D.


@inlined_kernel
def sum_over_walls(i, x, y, hx, hy, d0, cos_view, brakes, crowd, walls, rules, scratch, gap):
    """Add the walls within the sense radius to the sums; returns the smallest free distance in front.

    A bold agent brakes for walls that do not repel it yet, as long as they are nearer than `brakes`.
    """
    sums = scratch[rules.class_of[WALLS]]
    d0 = d0 * rules.reach[WALLS]
    radius, sense_radius = crowd.radius[i], crowd.sense_radius[i]
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if out_of_reach(x, y, walls, s, sense_radius) or not walls.blocking[s]:
            continue
        x0, y0, x1, y1 = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
        ux, uy, dpsi, free, cos_2dpsi, sin_2dpsi = wall_interval(x, y, x0, y0, x1, y1, radius, sense_radius)
        repels = free <= rules.cut * d0
        if not repels and free > brakes:
            continue
        cos_x = min(max(hx * ux + hy * uy, -1.0), 1.0)
        # A wall is seen as soon as any part of it is.
        if cos_view > -1.0 and not in_view(
            cos_x, math.sin(dpsi), math.cos(dpsi), cos_view, math.sqrt(1.0 - cos_view * cos_view)
        ):
            continue
        if repels:
            n = ux * hy - uy * hx
            turn, slope, w = repeller(
                cos_x, abs(n), dpsi, cos_2dpsi, sin_2dpsi, rules.cos_margin[WALLS], rules.sin_margin[WALLS]
            )
            near = fast_exp(-free / d0)
            sums[2] += math.copysign(turn * near * rules.strength[WALLS], n)
            sums[SLOPE] += slope * near * rules.strength[WALLS]
            sums[NEARNESS] += near * max(w, rules.all_round)
            sums[WINDOW] += w
        # Agents slow down for the wall straight ahead, not for the one they walk along.
        gap = min(gap, _ray_hits(x, y, hx, hy, x0, y0, x1, y1) - radius)
    return gap


@kernel
def _ray_hits(x, y, ex, ey, x0, y0, x1, y1):
    """Distance along the unit vector e to a wall; infinite if the ray misses it."""
    dx, dy = x1 - x0, y1 - y0
    det = ex * dy - ey * dx
    if det == 0.0:
        return math.inf
    t = ((x0 - x) * dy - (y0 - y) * dx) / det
    u = ((x0 - x) * ey - (y0 - y) * ex) / det
    return t if t >= 0.0 and 0.0 <= u <= 1.0 else math.inf
