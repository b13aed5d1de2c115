"""What is left of everybody's wish when bodies press on each other: the nearest moves that no two bodies object to.

Wanted moves w become the moves u that minimise the sum of |u - w|² while no pair comes closer than touching, each pair
along the line between them, and nobody goes into a wall (the contact model of Maury and Venel, "A discrete contact
model for crowd motion", 2011). So bodies slide past each other, and who presses on somebody moves them: without that,
a few bodies before a door hold each other for ever. The minimum is found with Uzawa's iteration: how hard two press on
each other grows as long as their moves would bring them too close, and all take the sum of what presses on them off
their wish. Each round looks at the moves of the round before, so the result does not depend on order or threads.

Whoever wants to stay cannot be pressed away. Who wants to go on and cannot is held (column `held`), and after a while
fidgets: in every other moment one steps in a random direction instead, for as long as the moment lasts. That breaks up
the arches that hold even so.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel, inlined_kernel, kernel, parallel_kernel
from tropel._kernels.philox import uniform, uniform_pair
from tropel._kernels.walls import WallGrid, cell_at, nearest_on_segment
from tropel.agents.state import AgentState

#: After so many rounds moves are taken as they are; what is still too close gives way (`bodies.py`).
_ROUNDS = 30
#: Rounds end when no move changes by more than this share of the largest radius.
_STILL = 5e-5
#: Bodies that press keep this share of their contact distance between them, to have room for what the rounds leave.
_SLACK = 5e-4

#: Whoever keeps less than this share of the wish is held, and bears it so long [s].
_HELD, _PATIENCE = 0.2, 0.25
#: How long a fidget lasts [s], and how often one who is held does it.
_MOMENT, _OFTEN = 0.5, 0.5

#: Agents per unit of parallel work.
_CHUNK = 256

#: In `wall_count`, as long as nobody presses on an agent.
_UNKNOWN = 255

#: So many walls count for each body; more do not touch a disk at once unless it is in a corner of a corner.
_MOST_WALLS = 4


@inlined_kernel
def wishes_press(dx, dy, dz, mx, my, mz, contact):
    """Whether two bodies at the offset d press on each other when their moves change it by m."""
    apart = math.sqrt(dx * dx + dy * dy + dz * dz)
    return (max(apart - contact, 0.0) - _SLACK * contact) * apart + (dx * mx + dy * my + dz * mz) < 0.0


@kernel
def _list_walls(i, position, radius, walls, farthest, count, normal, gap, pressure):
    """List the nearest points of walls that agent i may reach in this step, as directions and free distances."""
    found = 0
    x, y = position[i, 0], position[i, 1]
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if not walls.blocking[s] or found == _MOST_WALLS:
            continue
        x0, y0, x1, y1 = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
        qx, qy = nearest_on_segment(x, y, x0, y0, x1, y1)
        away = math.sqrt((qx - x) ** 2 + (qy - y) ** 2)
        if 0.0 < away < radius[i] + farthest:
            normal[i, found, 0], normal[i, found, 1] = (qx - x) / away, (qy - y) / away
            gap[i, found] = max(away - radius[i], 0.0)
            pressure[i, found] = 0.0
            found += 1
    count[i] = found


@inlined_kernel
def _pressed_by_walls(i, moves, contacts, wall_count, wall_normal, wall_gap, wall_pressure):
    """What walls take off the move of agent i, and how many of them press."""
    sx = sy = 0.0
    pressing = 0
    for k in range(wall_count[i]):
        nx, ny = wall_normal[i, k, 0], wall_normal[i, k, 1]
        room = wall_gap[i, k] - moves[i, 0] * nx - moves[i, 1] * ny
        force = max(wall_pressure[i, k] - room / contacts[i], 0.0)
        wall_pressure[i, k] = force
        pressing += force > 0.0
        sx += force * nx
        sy += force * ny
    return sx, sy, pressing


@inlined_kernel
def _pressed_by_others(i, position, moves, moved, radius, contacts, count, close, begin, pressure):
    """What others take off the move of agent i, and how many of them press.

    Only pairs of which one has moved look at each other again. A step in proportion to the contacts that a pair shares
    its moves with settles two alone at once, and any number of them in the end.
    """
    dim = position.shape[1]
    sx = sy = sz = 0.0
    pressing = 0
    for k in range(count[i]):
        j = close[i, k]
        dx, dy = position[j, 0] - position[i, 0], position[j, 1] - position[i, 1]
        dz = position[j, 2] - position[i, 2] if dim == 3 else 0.0
        apart = math.sqrt(dx * dx + dy * dy + dz * dz)
        parting = (moves[j, 0] - moves[i, 0]) * dx + (moves[j, 1] - moves[i, 1]) * dy
        if dim == 3:
            parting += (moves[j, 2] - moves[i, 2]) * dz
        contact = radius[i] + radius[j]
        # Those who overlap already are not flung apart.
        gap = max(apart - contact, 0.0) - _SLACK * contact
        at = begin[i] + k
        if apart == 0.0 or (pressure[at] == 0.0 and gap * apart + parting >= 0.0):
            continue
        if moved[i] or moved[j]:
            pressure[at] = max(pressure[at] - (gap + parting / apart) / (contacts[i] + contacts[j]), 0.0)
        pressing += pressure[at] > 0.0
        share = pressure[at] / apart
        sx += share * dx
        sy += share * dy
        sz += share * dz
    return sx, sy, sz, pressing


@kernel
def _press_some(active, first, last, position, wish, moves, moved, radius, longest, still, contacts, count, close,
                begin, pressure, walls, wall_count, wall_normal, wall_gap, wall_pressure, out, out_contacts,
                changed):  # fmt: skip
    """One round for some agents: how hard others and walls press on them, and what that leaves of their wish."""
    dim = position.shape[1]
    for n in range(first, last):
        i = active[n]
        changed[i] = False
        out_contacts[i] = contacts[i]
        wx, wy = wish[i, 0] - position[i, 0], wish[i, 1] - position[i, 1]
        wz = wish[i, 2] - position[i, 2] if dim == 3 else 0.0
        if wx == 0.0 and wy == 0.0 and wz == 0.0:
            continue
        sx, sy, sz, pressing = _pressed_by_others(
            i, position, moves, moved, radius, contacts, count, close, begin, pressure
        )
        if wall_count[i] == _UNKNOWN and pressing > 0:
            _list_walls(i, position, radius, walls, longest, wall_count, wall_normal, wall_gap, wall_pressure)
        if wall_count[i] != _UNKNOWN and wall_count[i] > 0:
            tx, ty, more = _pressed_by_walls(i, moves, contacts, wall_count, wall_normal, wall_gap, wall_pressure)
            sx, sy, pressing = sx + tx, sy + ty, pressing + more
        out_contacts[i] = max(pressing, 1)
        out[i, 0], out[i, 1] = wx - sx, wy - sy
        change = (out[i, 0] - moves[i, 0]) ** 2 + (out[i, 1] - moves[i, 1]) ** 2
        if dim == 3:
            out[i, 2] = wz - sz
            change += (out[i, 2] - moves[i, 2]) ** 2
        changed[i] = change > still * still


@kernel
def _spread(active, size, fresh, fresh_contacts, changed, count, close, moves, contacts, moved, stamp, turn, later):
    """Take over the moves that have changed; replace `active` by who must look again, and return how many they are."""
    for n in range(size):
        moved[active[n]] = False
        contacts[active[n]] = fresh_contacts[active[n]]
    found = 0
    for n in range(size):
        i = active[n]
        if not changed[i]:
            continue
        moved[i] = True
        for axis in range(moves.shape[1]):
            moves[i, axis] = fresh[i, axis]
        found = _ask(i, count, close, stamp, turn, later, found)
    for n in range(found):
        active[n] = later[n]
    return found


@inlined_kernel
def _ask(i, count, close, stamp, turn, later, found):
    """Add agent i and who is close to it to the list, unless they are on it."""
    if stamp[i] != turn:
        stamp[i] = turn
        later[found] = i
        found += 1
    for k in range(count[i]):
        j = close[i, k]
        if stamp[j] != turn:
            stamp[j] = turn
            later[found] = j
            found += 1
    return found


@inlined_kernel
def _random_move(mx, my, mz, dim, key, agent, moment):
    """A move as long as m in a random direction; in 2D turned with m, so that a turned crowd does the same."""
    u, v = uniform_pair(key, agent, moment, 1)
    angle = 2.0 * math.pi * u
    c, s = math.cos(angle), math.sin(angle)
    if dim == 2:
        return c * mx - s * my, s * mx + c * my, 0.0
    size = math.sqrt(mx * mx + my * my + mz * mz)
    up = 2.0 * v - 1.0
    flat = size * math.sqrt(max(1.0 - up * up, 0.0))
    return flat * c, flat * s, size * up


@kernel
def _fidget(rows, position, held, ids, key, moment, count, close, begin, pressure, moved, stamp, turn, wish, active):
    """Turn the wish of some who are held into a fidget. `active` gets who must look again; returns how many."""
    dim = position.shape[1]
    found = 0
    for n in range(rows.size):
        i = rows[n]
        if held[i] < _PATIENCE:
            continue
        pressed = 0.0
        for k in range(count[i]):
            pressed += pressure[begin[i] + k]
        if pressed > 0.0 and uniform(key, ids[i], moment, 2) < _OFTEN:
            wx, wy = wish[i, 0] - position[i, 0], wish[i, 1] - position[i, 1]
            wz = wish[i, 2] - position[i, 2] if dim == 3 else 0.0
            fx, fy, fz = _random_move(wx, wy, wz, dim, key, ids[i], moment)
            wish[i, 0], wish[i, 1] = position[i, 0] + fx, position[i, 1] + fy
            if dim == 3:
                wish[i, 2] = position[i, 2] + fz
            moved[i] = True
            found = _ask(i, count, close, stamp, turn, active, found)
    return found


@kernel
def _go(rows, position, moves, longest, ends):
    """Write where the moves lead. Nobody is pressed to go faster than the fastest want to."""
    for n in range(rows.size):
        i = rows[n]
        length2 = 0.0
        as_wished = True
        for axis in range(moves.shape[1]):
            length2 += moves[i, axis] * moves[i, axis]
            as_wished &= moves[i, axis] == ends[i, axis] - position[i, axis]
        if as_wished:
            continue
        share = longest / math.sqrt(length2) if length2 > longest * longest else 1.0
        for axis in range(moves.shape[1]):
            ends[i, axis] = position[i, axis] + share * moves[i, axis]


@allocating_kernel
def _table(rows, position, wish, count, presses):
    """Working memory. Filled here, because in a parallel function every array operation is shared out to threads."""
    agents, dim = position.shape
    moves, fresh = np.empty((agents, dim)), np.empty((agents, dim))
    # How many bodies and walls press on them, at least 1.
    contacts, fresh_contacts = np.ones(agents, dtype=np.uint32), np.ones(agents, dtype=np.uint32)
    # Whose moves change in this round, and in the round before.
    changed, moved = np.zeros(agents, dtype=np.bool_), np.ones(agents, dtype=np.bool_)
    # Who has a look in this round, and who in the next; in which turn one has come onto the list.
    active, later, stamp = (
        np.empty(agents, dtype=np.uint32),
        np.empty(agents, dtype=np.uint32),
        np.zeros(agents, dtype=np.uint32),
    )
    begin = np.empty(agents, dtype=np.uint32)
    pairs = size = 0
    for n in range(rows.size):
        i = rows[n]
        begin[i] = pairs
        pairs += count[i]
        if presses[i]:
            active[size] = i
            size += 1
    # Also of those who have nobody close: somebody larger may have them close.
    for i in range(agents):
        for axis in range(dim):
            moves[i, axis] = wish[i, axis] - position[i, axis]
    return moves, fresh, contacts, fresh_contacts, changed, moved, stamp, later, active, size, begin, np.zeros(pairs)


@allocating_kernel
def _wall_table(position, walls):
    """Room for the walls that agents may reach: how many, their directions, free distances and pressures."""
    agents = position.shape[0]
    walled = position.shape[1] == 2 and walls.segments.shape[0] > 0
    count = np.full(agents, _UNKNOWN if walled else 0, dtype=np.uint8)
    room = agents if walled else 0
    return count, np.empty((room, _MOST_WALLS, 2)), np.empty((room, _MOST_WALLS)), np.empty((room, _MOST_WALLS))


@parallel_kernel
def _press(rows, position, radius, held, ids, key, moment, longest, still, count, close, presses, walls, ends):
    """Turn the wanted ends of moves into those of moves that go together, for the rows that have company."""
    moves, fresh, contacts, fresh_contacts, changed, moved, stamp, later, active, size, begin, pressure = _table(
        rows, position, ends, count, presses
    )
    wall_count, wall_normal, wall_gap, wall_pressure = _wall_table(position, walls)
    turn = 0
    for fidgeting in (False, True):
        for _ in range(_ROUNDS):
            if size == 0:
                break
            if size <= 2 * _CHUNK:
                # Mostly few are left after a few rounds, too few to share out.
                _press_some(active, 0, size, position, ends, moves, moved, radius, longest, still, contacts, count,
                            close, begin, pressure, walls, wall_count, wall_normal, wall_gap, wall_pressure, fresh,
                            fresh_contacts, changed)  # fmt: skip
            else:
                for chunk in numba.prange((size + _CHUNK - 1) // _CHUNK):
                    _press_some(active, chunk * _CHUNK, min((chunk + 1) * _CHUNK, size), position, ends, moves, moved,
                                radius, longest, still, contacts, count, close, begin, pressure, walls, wall_count,
                                wall_normal, wall_gap, wall_pressure, fresh, fresh_contacts, changed)  # fmt: skip
            turn += 1
            size = _spread(active, size, fresh, fresh_contacts, changed, count, close, moves, contacts, moved, stamp,
                           turn, later)  # fmt: skip
        if not fidgeting:
            turn += 1
            for n in range(size):
                moved[active[n]] = False
            size = _fidget(rows, position, held, ids, key, moment, count, close, begin, pressure, moved, stamp, turn,
                           ends, active)  # fmt: skip
    _go(rows, position, moves, longest, ends)


@kernel
def note_held(position, wanted, ends, dt, held):
    """Count how long everybody has been held by now [s]: who gets on starts again."""
    for i in range(position.shape[0]):
        wish2 = headway = 0.0
        for axis in range(position.shape[1]):
            wish = wanted[i, axis] - position[i, axis]
            wish2 += wish * wish
            headway += wish * (ends[i, axis] - position[i, axis])
        held[i] = held[i] + dt if headway < _HELD * wish2 else 0.0


def under_pressure(
    state: AgentState,
    target: NDArray[np.float64],
    *,
    rows: NDArray[np.uint32],
    count: NDArray[np.uint32],
    close: NDArray[np.uint32],
    presses: NDArray[np.bool_],
    walls: WallGrid,
    longest: float,
    widest: float,
    dt: float,
    key: np.uint64,
    step: int,
) -> NDArray[np.float64]:
    """The ends of all moves. Only `rows`, who have `count` others `close`, can be pressed.

    Those whose wish `presses` on somebody begin. No wish is above `longest`, no radius above `widest`.
    """
    ends = target.copy()
    moment = int(step * dt / _MOMENT)
    _press(rows, state.position, state.radius, state.held, state.id, key, moment, longest,
           _STILL * widest, count, close, presses, walls, ends)  # fmt: skip
    return ends
