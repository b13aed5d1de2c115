"""Contact between bodies: the moves closest to what agents want that bring no two bodies into each other.

Wanted moves w become the moves u that minimise the sum of |u - w|² while no pair comes closer than touching, each pair
measured along the line between its centres, and no agent goes into a wall (the contact model of Maury and Venel, "A
discrete contact model for crowd motion", 2011). So bodies slide past each other, and an agent that pushes against
another moves it. Without that, a few bodies in front of a door would block each other forever. Uzawa's iteration finds
the minimum: the contact pressure of a pair grows as long as their moves would bring them too close, and each agent
subtracts the sum of the pressures on it from its wish. Each round reads only the moves of the previous round, so the
result does not depend on order or threads.

Agents that want to stay, or that move exactly, cannot be pushed away. When the rounds are over, agents that have been
held for a long time get another wish (`fidgeting.py`), and the rounds start again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel, inlined_kernel, kernel, parallel_kernel
from tropel._kernels.walls import WallGrid, cell_at, nearest_on_segment
from tropel.contact.contacts import CHUNK, SLACK, Contacts
from tropel.contact.fidgeting import fidgets, is_impatient, moment_at, turn_wish
from tropel.contact.wanted import EXACTLY, code_of

#: After this many rounds moves are taken as they are; bodies that are still too close give way (`giving_way.py`).
_ROUNDS = 30
#: Rounds end when no move changes by more than this share of the largest radius.
_STILL = 5e-5

#: In `wall_count`, as long as no body pushes the agent.
_UNKNOWN = 255

#: This many walls count for each body. A disc touches more at the same time only in a corner of a corner.
_MOST_WALLS = 4


class SolverTable(NamedTuple):
    """The working table of the rounds, with a row for each agent unless stated otherwise."""

    wish: NDArray[np.float64]  #: (N, dim): where agents want to be
    moves: NDArray[np.float64]  #: (N, dim): their moves after the previous round
    fresh: NDArray[np.float64]  #: (N, dim): and after this round
    touching: NDArray[np.uint32]  #: how many bodies and walls are in contact with them, at least 1
    fresh_touching: NDArray[np.uint32]
    changed: NDArray[np.bool_]  #: whether the move changes in this round
    moved: NDArray[np.bool_]  #: whether the move changed in the previous round
    active: NDArray[np.uint32]  #: the list of agents to process in this round
    later: NDArray[np.uint32]  #: and in the next round
    stamp: NDArray[np.uint32]  #: the last round that the agent was put on the list for
    begin: NDArray[np.uint32]  #: where the agent's close bodies begin in `pressure`
    pressure: NDArray[np.float64]  #: (pairs,): contact pressure of each close body
    wall_count: NDArray[np.uint8]  #: how many walls the agent may reach
    wall_normal: NDArray[np.float64]  #: (N, walls, 2): directions to them
    wall_gap: NDArray[np.float64]  #: (N, walls): distances to them [m]
    wall_pressure: NDArray[np.float64]  #: (N, walls)
    longest: float  #: no wish is longer than this [m]
    still: float  #: moves that change by less are settled [m]


@kernel
def _list_walls(i, contacts, table, walls):
    """List the nearest points of walls that agent i may reach in this step, as directions and free distances."""
    found = 0
    radius = contacts.radius[i]
    x, y = contacts.position[i, 0], contacts.position[i, 1]
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if not walls.blocking[s] or found == _MOST_WALLS:
            continue
        x0, y0, x1, y1 = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
        qx, qy = nearest_on_segment(x, y, x0, y0, x1, y1)
        away = math.sqrt((qx - x) ** 2 + (qy - y) ** 2)
        if 0.0 < away < radius + table.longest:
            table.wall_normal[i, found, 0], table.wall_normal[i, found, 1] = (qx - x) / away, (qy - y) / away
            table.wall_gap[i, found] = max(away - radius, 0.0)
            table.wall_pressure[i, found] = 0.0
            found += 1
    table.wall_count[i] = found


@inlined_kernel
def _wall_contacts(i, table):
    """What walls subtract from the move of agent i, and how many walls are in contact with it."""
    moves, pressure = table.moves, table.wall_pressure
    sx = sy = 0.0
    pressing = 0
    for k in range(table.wall_count[i]):
        nx, ny = table.wall_normal[i, k, 0], table.wall_normal[i, k, 1]
        room = table.wall_gap[i, k] - moves[i, 0] * nx - moves[i, 1] * ny
        force = max(pressure[i, k] - room / table.touching[i], 0.0)
        pressure[i, k] = force
        pressing += force > 0.0
        sx += force * nx
        sy += force * ny
    return sx, sy, pressing


@inlined_kernel
def _body_contacts(i, contacts, table):
    """What other bodies subtract from the move of agent i, and how many of them are in contact with it.

    A pair is evaluated again only if one of the two has moved. The step size is inversely proportional to the number of
    contacts of the pair. It settles an isolated pair at once, and any number of bodies in the end.
    """
    position, radius, close = contacts.position, contacts.radius, contacts.close
    moves, moved, touching, pressure = table.moves, table.moved, table.touching, table.pressure
    dim = position.shape[1]
    sx = sy = sz = 0.0
    pressing = 0
    for k in range(contacts.how_many[i]):
        j = close[i, k]
        dx, dy = position[j, 0] - position[i, 0], position[j, 1] - position[i, 1]
        dz = position[j, 2] - position[i, 2] if dim == 3 else 0.0
        apart = math.sqrt(dx * dx + dy * dy + dz * dz)
        parting = (moves[j, 0] - moves[i, 0]) * dx + (moves[j, 1] - moves[i, 1]) * dy
        if dim == 3:
            parting += (moves[j, 2] - moves[i, 2]) * dz
        contact = radius[i] + radius[j]
        # Bodies that overlap already are not flung apart.
        gap = max(apart - contact, 0.0) - SLACK * contact
        at = table.begin[i] + k
        if apart == 0.0 or (pressure[at] == 0.0 and gap * apart + parting >= 0.0):
            continue
        if moved[i] or moved[j]:
            pressure[at] = max(pressure[at] - (gap + parting / apart) / (touching[i] + touching[j]), 0.0)
        pressing += pressure[at] > 0.0
        share = pressure[at] / apart
        sx += share * dx
        sy += share * dy
        sz += share * dz
    return sx, sy, sz, pressing


@kernel
def _solve_some(contacts, table, walls, first, last):
    """One round for some agents: contact pressures from others and walls, and what they leave of each wish."""
    position, wish, moves, fresh = contacts.position, table.wish, table.moves, table.fresh
    dim = position.shape[1]
    for n in range(first, last):
        i = table.active[n]
        table.changed[i] = False
        table.fresh_touching[i] = table.touching[i]
        wx, wy = wish[i, 0] - position[i, 0], wish[i, 1] - position[i, 1]
        wz = wish[i, 2] - position[i, 2] if dim == 3 else 0.0
        if (wx == 0.0 and wy == 0.0 and wz == 0.0) or code_of(contacts.codes, i) == EXACTLY:
            continue
        sx, sy, sz, pressing = _body_contacts(i, contacts, table)
        if table.wall_count[i] == _UNKNOWN and pressing > 0:
            _list_walls(i, contacts, table, walls)
        if table.wall_count[i] != _UNKNOWN and table.wall_count[i] > 0:
            tx, ty, more = _wall_contacts(i, table)
            sx, sy, pressing = sx + tx, sy + ty, pressing + more
        table.fresh_touching[i] = max(pressing, 1)
        fresh[i, 0], fresh[i, 1] = wx - sx, wy - sy
        change = (fresh[i, 0] - moves[i, 0]) ** 2 + (fresh[i, 1] - moves[i, 1]) ** 2
        if dim == 3:
            fresh[i, 2] = wz - sz
            change += (fresh[i, 2] - moves[i, 2]) ** 2
        table.changed[i] = change > table.still * table.still


@inlined_kernel
def _ask(i, contacts, stamp, number, asked, found):
    """Add agent i and the agents close to it to the list, unless they are on it already."""
    if stamp[i] != number:
        stamp[i] = number
        asked[found] = i
        found += 1
    for k in range(contacts.how_many[i]):
        j = contacts.close[i, k]
        if stamp[j] != number:
            stamp[j] = number
            asked[found] = j
            found += 1
    return found


@kernel
def _take_over(contacts, table, size, number):
    """Take over the changed moves; fill `active` with the agents to process again, and return how many there are."""
    active, later, moves = table.active, table.later, table.moves
    for n in range(size):
        table.moved[active[n]] = False
        table.touching[active[n]] = table.fresh_touching[active[n]]
    found = 0
    for n in range(size):
        i = active[n]
        if not table.changed[i]:
            continue
        table.moved[i] = True
        for axis in range(moves.shape[1]):
            moves[i, axis] = table.fresh[i, axis]
        found = _ask(i, contacts, table.stamp, number, later, found)
    for n in range(found):
        active[n] = later[n]
    return found


@parallel_kernel
def contact_round(contacts, table, walls, size, number):
    """One round for the first `size` agents on the list `active`; returns how many are left for the next round.

    `number` is different in every round.
    """
    if size <= 2 * CHUNK:
        # After a few rounds most agents are settled; the rest are too few to share among threads.
        _solve_some(contacts, table, walls, 0, size)
    else:
        for chunk in numba.prange((size + CHUNK - 1) // CHUNK):
            _solve_some(contacts, table, walls, chunk * CHUNK, min((chunk + 1) * CHUNK, size))
    return _take_over(contacts, table, size, number)


@kernel
def fidget_round(contacts, table, held, key, moment, size, number):
    """Give some of the held agents another wish; returns how many agents are left for the next round."""
    for n in range(size):
        table.moved[table.active[n]] = False
    found = 0
    for n in range(contacts.rows.size):
        i = contacts.rows[n]
        if not is_impatient(held[i]):
            continue
        pressed = 0.0
        for k in range(contacts.how_many[i]):
            pressed += table.pressure[table.begin[i] + k]
        if pressed > 0.0 and fidgets(contacts.id[i], key, moment):
            turn_wish(i, contacts, key, moment, held[i], table.wish)
            table.moved[i] = True
            found = _ask(i, contacts, table.stamp, number, table.active, found)
    return found


@kernel
def _go(contacts, table):
    """Write where the moves lead. No agent is pushed to go faster than the fastest want to."""
    position, moves, ends, longest = contacts.position, table.moves, table.wish, table.longest
    for n in range(contacts.rows.size):
        i = contacts.rows[n]
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
def _new_table(contacts, wish, walls, longest, still):
    """The table before the first round, and how many agents are on the list for it."""
    position = contacts.position
    agents, dim = position.shape
    active, begin = np.empty(agents, dtype=np.uint32), np.empty(agents, dtype=np.uint32)
    pairs = size = 0
    for n in range(contacts.rows.size):
        i = contacts.rows[n]
        begin[i] = pairs
        pairs += contacts.how_many[i]
        if contacts.presses[i]:
            active[size] = i
            size += 1
    # Agents with no close bodies need a move too: a larger body may have them on its list.
    moves = np.empty((agents, dim))
    for i in range(agents):
        for axis in range(dim):
            moves[i, axis] = wish[i, axis] - position[i, axis]
    walled = dim == 2 and walls.segments.shape[0] > 0
    room = agents if walled else 0
    table = SolverTable(
        wish,
        moves,
        np.empty((agents, dim)),
        np.ones(agents, dtype=np.uint32),
        np.ones(agents, dtype=np.uint32),
        np.zeros(agents, dtype=np.bool_),
        np.ones(agents, dtype=np.bool_),
        active,
        np.empty(agents, dtype=np.uint32),
        np.zeros(agents, dtype=np.uint32),
        begin,
        np.zeros(pairs),
        np.full(agents, _UNKNOWN if walled else 0, dtype=np.uint8),
        np.empty((room, _MOST_WALLS, 2)),
        np.empty((room, _MOST_WALLS)),
        np.empty((room, _MOST_WALLS)),
        longest,
        still,
    )
    return table, size


@allocating_kernel
def solve_contacts(contacts, ends, walls, held, key, moment, longest, still, at_round_end):
    """Turn the wanted ends of moves into the ends of compatible moves; returns how many rounds that took.

    The compiled version is called without `at_round_end`; with it, the same rounds run from Python.
    """
    table, size = _new_table(contacts, ends, walls, longest, still)
    rounds, left, fidgeted = 0, _ROUNDS, False
    while True:
        rounds += 1
        if size > 0 and left > 0:
            left -= 1
            size = contact_round(contacts, table, walls, size, rounds)
        elif not fidgeted:
            left, fidgeted = _ROUNDS, True
            size = fidget_round(contacts, table, held, key, moment, size, rounds)
        else:
            break
        if at_round_end is not None:
            at_round_end(contacts, table)
    _go(contacts, table)
    return rounds - 1


def moves_in_contact(
    contacts: Contacts,
    wanted: NDArray[np.float64],
    *,
    walls: WallGrid,
    held: NDArray[np.float64],
    longest: float,
    widest: float,
    key: np.uint64,
    time: float,
    at_round_end: Callable[[Contacts, Any], None] | None = None,
) -> NDArray[np.float64]:
    """The ends of all moves. No wish is longer than `longest`, no radius larger than `widest` [m]; `held` is in [s].

    With `at_round_end`, which is called with the contacts and the table, the rounds are driven from Python.
    """
    ends = wanted.copy()
    drive = solve_contacts if at_round_end is None else solve_contacts.py_func
    drive(contacts, ends, walls, held, key, moment_at(time), longest, _STILL * widest, at_round_end)
    return ends
