"""Shorten the moves of bodies that would still collide.

Moves are compared in continuous time, pair by pair. If two bodies would come closer than touching (or closer than they
are, if they touch already), one of them gives way: it makes only half of its move, or a quarter, or it stays. The agent
with the lower random draw of this step keeps its move; an agent that stays has nothing left to give, so the other one
gives way. Moves only get shorter, so the rounds end, and in the end no pair comes closer than allowed. A part of a move
that crosses no wall crosses no wall either, so the promise of `integrate` holds. Agents that move exactly make their
whole move or stay.

All pairs are compared that contain a changed move or two wishes that collide. Unchanged moves alone are no proof of
safety: in a ring that closes in, the contact pressures from both sides cancel out, and all agents keep their wishes
although they collide.

Agents that have moved in an earlier phase count as standing bodies: all others give way to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel, inlined_kernel, kernel, parallel_kernel
from tropel._kernels.philox import uniform
from tropel.contact.contacts import CHUNK, Contacts
from tropel.contact.wanted import EXACTLY, code_of

#: The share of its move that an agent keeps, from one notch to the next.
_SHARES = np.array([1.0, 0.5, 0.25, 0.0])

#: Bodies may come this much closer than touching [m], so that rounding does not stop bodies that slide past each other.
_TOLERANCE = 1e-9
#: Bodies that overlap by more keep this share of their distance in each step. A fixed length would add up over steps.
_NO_DEEPER = 1.0 - 1e-12


class GivingWay(NamedTuple):
    """The working table of the rounds, with a row for each agent."""

    ends: NDArray[np.float64]  #: (N, dim): where their full moves lead
    lengths: NDArray[np.float64]  #: of their full moves [m]
    shares: NDArray[np.float64]  #: how much of a move remains, notch by notch
    notch: NDArray[np.uint8]  #: how far each agent goes after the previous round, as an index into `shares`
    fresh: NDArray[np.uint8]  #: and after this round
    changed: NDArray[np.bool_]  #: whether that changed in the previous round
    asked: NDArray[np.bool_]  #: whether the agent or one close to it has changed, so that it must be checked again


@inlined_kernel
def _closest2(dx, dy, dz, mx, my, mz, nearing):
    """Squared closest distance of two points at the offset d, while the offset changes by m and they approach.

    `nearing` is -d·m, which must be positive.
    """
    t = min(nearing / (mx * mx + my * my + mz * mz), 1.0)
    return (dx + t * mx) ** 2 + (dy + t * my) ** 2 + (dz + t * mz) ** 2


@inlined_kernel
def _goes_first(i, j, contacts, key, step):
    """Whether agent i keeps its move when it collides with j's: the lower draw does, or the lower id on a tie."""
    own_id, other_id = contacts.id[i], contacts.id[j]
    own, other = uniform(key, own_id, step, 0), uniform(key, other_id, step, 0)
    return own < other or (own == other and own_id < other_id)


@inlined_kernel
def _notch_to_take(i, contacts, table, key, step):
    """The notch for agent i, given what has changed in the previous round."""
    position, radius = contacts.position, contacts.radius
    ends, lengths, shares, notch, changed = table.ends, table.lengths, table.shares, table.notch, table.changed
    dim = position.shape[1]
    mine = notch[i]
    for n in range(contacts.how_many[i]):
        j = contacts.close[i, n]
        if not (changed[i] or changed[j]):
            continue
        dx, dy = position[j, 0] - position[i, 0], position[j, 1] - position[i, 1]
        dz = position[j, 2] - position[i, 2] if dim == 3 else 0.0
        contact, apart2 = radius[i] + radius[j], dx * dx + dy * dy + dz * dz
        if apart2 > (contact + lengths[i] + lengths[j]) ** 2:
            continue
        other = shares[notch[j]]
        ax, ay = ends[i, 0] - position[i, 0], ends[i, 1] - position[i, 1]
        bx, by = other * (ends[j, 0] - position[j, 0]), other * (ends[j, 1] - position[j, 1])
        az = bz = 0.0
        if dim == 3:
            az, bz = ends[i, 2] - position[i, 2], other * (ends[j, 2] - position[j, 2])
        least = max(contact - _TOLERANCE, 0.0)
        if apart2 < least * least:
            least = _NO_DEEPER * math.sqrt(apart2)
        yields = other == 0.0
        while shares[mine] > 0.0:
            share = shares[mine]
            mx, my, mz = bx - share * ax, by - share * ay, bz - share * az
            nearing = -(dx * mx + dy * my + dz * mz)
            if nearing <= 0.0 or _closest2(dx, dy, dz, mx, my, mz, nearing) >= least * least:
                break
            if not yields:
                if _goes_first(i, j, contacts, key, step):
                    break
                yields = True
            if code_of(contacts.codes, i) == EXACTLY:
                mine = shares.size - 1
            else:
                mine += 1
    return mine


@kernel
def _give_way_some(contacts, table, key, step, first, last):
    for n in range(first, last):
        i = contacts.rows[n]
        if table.asked[i]:
            table.fresh[i] = _notch_to_take(i, contacts, table, key, step)


@inlined_kernel
def _ask(i, contacts, asked):
    """Mark agent i and the agents close to it for another check; returns how many were not marked yet."""
    found = np.int64(not asked[i])
    asked[i] = True
    for k in range(contacts.how_many[i]):
        j = contacts.close[i, k]
        found += np.int64(not asked[j])
        asked[j] = True
    return found


@kernel
def _take_over(contacts, table):
    """Take over what has changed; returns how many agents must be checked again."""
    notch, fresh, changed, asked = table.notch, table.fresh, table.changed, table.asked
    for i in range(asked.size):
        asked[i] = False
    found = 0
    for n in range(contacts.rows.size):
        i = contacts.rows[n]
        changed[i] = fresh[i] != notch[i]
        if changed[i]:
            notch[i] = fresh[i]
            found += _ask(i, contacts, asked)
    return found


@parallel_kernel
def give_way_round(contacts, table, key, step):
    """One round for all marked agents; returns how many must be checked again in the next round."""
    size = contacts.rows.size
    if size <= 2 * CHUNK:
        _give_way_some(contacts, table, key, step, 0, size)
    else:
        for chunk in numba.prange((size + CHUNK - 1) // CHUNK):
            _give_way_some(contacts, table, key, step, chunk * CHUNK, min((chunk + 1) * CHUNK, size))
    return _take_over(contacts, table)


@allocating_kernel
def _new_table(contacts, wanted, ends, lengths, shares):
    """The table before the first round, and how many agents must be checked."""
    agents, dim = contacts.position.shape
    # Agents that do not move at all cannot give way, so the others must.
    notch = np.empty(agents, dtype=np.uint8)
    for i in range(agents):
        notch[i] = 0 if lengths[i] > 0.0 else shares.size - 1
    changed, asked = np.zeros(agents, dtype=np.bool_), np.zeros(agents, dtype=np.bool_)
    found = 0
    for n in range(contacts.rows.size):
        i = contacts.rows[n]
        changed[i] = contacts.presses[i]
        for axis in range(dim):
            changed[i] |= ends[i, axis] != wanted[i, axis]  # also true for nan
        if changed[i]:
            found += _ask(i, contacts, asked)
    return GivingWay(ends, lengths, shares, notch, notch.copy(), changed, asked), found


@kernel
def _shorten(contacts, table, velocity):
    """Write how far each agent goes, and the matching velocity."""
    position, ends = contacts.position, table.ends
    for n in range(contacts.rows.size):
        i = contacts.rows[n]
        if table.notch[i] > 0 and table.lengths[i] > 0.0:
            share = table.shares[table.notch[i]]
            for axis in range(position.shape[1]):
                ends[i, axis] = position[i, axis] + share * (ends[i, axis] - position[i, axis])
                velocity[i, axis] *= share


@allocating_kernel
def give_way(contacts, wanted, ends, lengths, shares, velocity, key, step, at_round_end):
    """Let agents give way until no pair collides, and shorten their moves and velocities; returns the round count.

    The compiled version is called without `at_round_end`; with it, the same rounds run from Python.
    """
    table, size = _new_table(contacts, wanted, ends, lengths, shares)
    rounds = 0
    while size > 0:
        rounds += 1
        size = give_way_round(contacts, table, key, step)
        if at_round_end is not None:
            at_round_end(contacts, table)
    _shorten(contacts, table, velocity)
    return rounds


@kernel
def _measure(position, ends, lengths):
    """Write the lengths of moves; returns the largest."""
    longest = 0.0
    for i in range(position.shape[0]):
        total = 0.0
        for axis in range(position.shape[1]):
            total += (ends[i, axis] - position[i, axis]) ** 2
        lengths[i] = math.sqrt(total)
        longest = max(longest, lengths[i])
    return longest


def lengths_of(position: NDArray[np.float64], ends: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The lengths of moves, and the largest of them [m]."""
    lengths = np.empty(len(position))
    return lengths, _measure(position, ends, lengths)


def shorten_moves(
    contacts: Contacts,
    *,
    wanted: NDArray[np.float64],
    ends: NDArray[np.float64],
    lengths: NDArray[np.float64],
    velocity: NDArray[np.float64],
    key: np.uint64,
    step: int,
    at_round_end: Callable[[Contacts, Any], None] | None = None,
) -> None:
    """Shorten moves to `ends`, and their velocities, until no two solid bodies collide.

    `wanted` are the ends that the contacts were found for. With `at_round_end`, which is called with the contacts and
    the table, the rounds are driven from Python.
    """
    drive = give_way if at_round_end is None else give_way.py_func
    drive(contacts, wanted, ends, lengths, _SHARES, velocity, key, step, at_round_end)
