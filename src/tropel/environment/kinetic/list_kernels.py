"""The kernels of near lists: filling, renewing and renumbering lists, and finding near sets from them (`lists.py`).

Agents have slots here, numbered by where they were when all lists were last filled: those near each other have slots
near each other, so that what a list refers to is mostly in the processor's nearest cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel

_PER_CHUNK = 128
#: How far agents move is measured for about so many of them.
_MEASURED = 1024
_ONE = np.uint64(1)


class Lists(NamedTuple):
    """A list for each slot, in a room of its own in one pool."""

    start: NDArray[np.int64]  #: (S,): where the room of a slot begins in the pool
    room: NDArray[np.int64]  #: (S,)
    length: NDArray[np.int64]  #: (S,)
    used: NDArray[np.int64]  #: (1,): how much of the pool has been given away
    pool: NDArray[np.int32]


class Agents(NamedTuple):
    """What the lists know of the agents, by slot; slots that are not in use are nowhere (nan)."""

    row: NDArray[np.int32]  #: (S,): -1 if not in use
    radius: NDArray[np.float64]  #: (S,) [m]
    limit: NDArray[np.float64]  #: (S,): square of the radius, -1 if that is below zero [m²]
    here: NDArray[np.float64]  #: (S, dim) [m]
    before: NDArray[np.float64]  #: (S, dim): in the step before [m]
    reference: NDArray[np.float64]  #: (S, dim) [m]
    certain: NDArray[np.float64]  #: (S,): whose references are at most the root of this apart are certain to be near
    listed: NDArray[np.float64]  #: (S,): whose references are at most the root of this apart are on the list


def new_agents(slots: int, dim: int) -> Agents:
    """Room for agents, with nothing in it yet."""
    row = np.empty(slots, dtype=np.int32)
    radius, limit, certain, listed = np.empty((4, slots))
    here, before, reference = np.empty((3, slots, dim))
    return Agents(row, radius, limit, here, before, reference, certain, listed)


@inlined_kernel
def apart2(places, i, others, j):
    """The square of the distance between two places [m²], rounded as on the grid."""
    dx, dy = places[i, 0] - others[j, 0], places[i, 1] - others[j, 1]
    total = dx * dx + dy * dy
    if places.shape[1] == 3:
        dz = places[i, 2] - others[j, 2]
        total += dz * dz
    return total


@kernel
def measure_crowd(position, radius):
    """How wide the crowd is, how far from the origin along an axis [m], and the least and largest radius from 0 on."""
    wide, away, least, largest = 0.0, 0.0, math.inf, -1.0
    for axis in range(position.shape[1]):
        low, high = math.inf, -math.inf
        for row in range(position.shape[0]):
            low, high = min(low, position[row, axis]), max(high, position[row, axis])
        if low <= high:
            wide, away = max(wide, high - low), max(away, max(abs(low), abs(high)))
    for row in range(radius.size):
        if radius[row] >= 0.0:
            least, largest = min(least, radius[row]), max(largest, radius[row])
    return wide, away, least, largest


@kernel
def take_slots(order, position, agents, slot_of):
    """Give agents slots in this order of their rows; where they are is their reference."""
    for slot in range(agents.row.size):
        row = np.int64(order[slot]) if slot < order.size else -1
        agents.row[slot] = row
        agents.radius[slot] = 0.0
        for axis in range(position.shape[1]):
            at = position[row, axis] if row >= 0 else np.nan
            agents.here[slot, axis] = agents.before[slot, axis] = agents.reference[slot, axis] = at
        if row >= 0:
            slot_of[row] = slot


@kernel
def set_radii(radius, wide, agents):
    """Take over the radii of agents, by row; references are at most `wide` [m] closer or farther apart than agents."""
    for slot in range(agents.row.size):
        if agents.row[slot] >= 0:
            agents.radius[slot] = radius[agents.row[slot]]
        own = agents.radius[slot]
        agents.limit[slot] = own * own if own >= 0.0 else -1.0
        agents.certain[slot] = (own - wide) * (own - wide) if own > wide else -1.0
        agents.listed[slot] = (own + wide) * (own + wide) if own >= 0.0 else -1.0


@kernel
def look_for_moves(agents, position, leash, loose):
    """Take over where agents are; list the slots that have left their leash.

    Returns how many have moved since the last step and how many have left, and how far some of those that moved went:
    the number of them, and their moves together.
    """
    movers = leavers = samples = 0
    total = 0.0
    every = agents.row.size // _MEASURED + 1
    for slot in range(agents.row.size):
        s = np.uint64(slot)
        if agents.row[s] < 0:
            continue
        row = np.uint64(agents.row[s])
        same = True
        for axis in range(position.shape[1]):
            agents.here[s, axis] = position[row, axis]
            same = same and position[row, axis] == agents.before[s, axis]
        if not same:
            movers += 1
            loose[leavers] = slot
            leavers += not apart2(agents.here, s, agents.reference, s) <= leash * leash
            if slot % every == 0:
                way = math.sqrt(apart2(agents.here, s, agents.before, s))
                if way < math.inf:  # newcomers come from nowhere
                    total += way
                    samples += 1
    return movers, leavers, samples, total


@kernel
def lay_out(count, indptr, lists):
    """Give the first slots rooms larger than the lists that were found for them, and the others rooms of the mean size.

    Returns how large the pool must be.
    """
    spare = indptr[count] // max(count, 1)
    total = 0
    for slot in range(lists.start.size):
        length = indptr[slot + 1] - indptr[slot] if slot < count else spare
        lists.start[slot] = total
        lists.room[slot] = length + length // 4 + 8
        lists.length[slot] = 0
        total += lists.room[slot]
    lists.used[0] = total
    return total


@kernel
def _enter_some(first, last, indptr, indices, agents, certain, maybe):
    packed = maybe.start[first]
    for slot in range(first, last):
        s = np.uint64(slot)
        # The uncertain are few. Their rooms are as close together as they fit, so that reading them is fast.
        maybe.start[s] = packed
        sure, rest = np.uint64(certain.start[s]), np.uint64(packed)
        for k in range(np.uint64(indptr[s]), np.uint64(indptr[s + _ONE])):
            other = np.uint64(indices[k])
            inside = apart2(agents.reference, s, agents.reference, other) <= agents.certain[s]
            # Rooms are larger than lists, so there is always one more place to write to.
            certain.pool[sure] = agents.row[other]
            maybe.pool[rest] = indices[k]
            sure += np.uint64(inside)
            rest += np.uint64(not inside)
        certain.length[s], maybe.length[s] = sure - np.uint64(certain.start[s]), rest - np.uint64(packed)
        maybe.room[s] = maybe.length[s] + maybe.length[s] // 4 + 8
        packed += maybe.room[s]


@parallel_kernel
def enter_all(count, indptr, indices, agents, certain, maybe):
    """Enter all who may be near the first slots, given as lists of slots: the certain ones and the others."""
    for chunk in prange((count + _PER_CHUNK - 1) // _PER_CHUNK):
        place = np.int64(np.uint64(chunk))
        _enter_some(place * _PER_CHUNK, min(count, (place + 1) * _PER_CHUNK), indptr, indices, agents, certain, maybe)


@inlined_kernel
def take_off(lists, slot, number):
    """Take a number off a list, if it is on it."""
    last = lists.start[slot] + lists.length[slot] - 1
    for k in range(lists.start[slot], last + 1):
        if lists.pool[k] == number:
            lists.pool[k] = lists.pool[last]
            lists.length[slot] -= 1
            return


@kernel
def _move_out(lists, slot):
    """Give a slot a room of about twice the size, at the end of the pool; false if that is used up."""
    room, out = 2 * lists.room[slot] + 8, lists.used[0]
    if out + room > lists.pool.size:
        return False
    for k in range(lists.length[slot]):
        lists.pool[out + k] = lists.pool[lists.start[slot] + k]
    lists.start[slot], lists.room[slot] = out, room
    lists.used[0] = out + room
    return True


@inlined_kernel
def make_room(lists, slot, more):
    """Make room for so many more on a list; false if there is none."""
    while lists.length[slot] + more > lists.room[slot]:
        if not _move_out(lists, slot):
            return False
    return True


@inlined_kernel
def put_on(lists, slot, number):
    """Put a number on a list; false if there is no room."""
    length = lists.length[slot]
    if length == lists.room[slot] and not _move_out(lists, slot):
        return False
    lists.pool[lists.start[slot] + length] = number
    lists.length[slot] = length + 1
    return True


@inlined_kernel
def _put_on_one(certain, maybe, agents, slot, other, is_certain):
    # The room of those that are certain to be near is for all who may be.
    if certain.length[slot] + maybe.length[slot] + 1 >= certain.room[slot] and not _move_out(certain, slot):
        return False
    if is_certain:
        return put_on(certain, slot, agents.row[other])
    return put_on(maybe, slot, np.int32(other))


@inlined_kernel
def _standing(away2, agents, slot):
    """2 for those certain to be near, 1 for others on the list, 0 for those that are not on it."""
    return np.int64(away2 <= agents.certain[slot]) + np.int64(away2 <= agents.listed[slot])


@inlined_kernel
def is_one_of(slot, slots):
    """Whether a slot is one of those in an ascending list."""
    if slots.size == 0:
        return False
    place = np.searchsorted(slots, slot)
    return place < slots.size and slots[place] == slot


@kernel
def renew(slots, old, around, candidates, far_sighted, agents, is_renewed, certain, maybe):
    """Give slots new references, new lists, and new places on the lists around them; false if there is no room.

    `old` are the references that these slots had.
    """
    for n in range(slots.size):
        is_renewed[slots[n]] = 1
        for axis in range(old.shape[1]):
            agents.reference[slots[n], axis] = agents.here[slots[n], axis]
    fits = True
    for n in range(slots.size):
        slot = slots[n]
        certain.length[slot] = maybe.length[slot] = 0
        close = around[n + 1] - around[n]
        for k in range(close + far_sighted.size):
            other = np.int64(candidates[around[n] + k]) if k < close else np.int64(far_sighted[k - close])
            if other == slot:
                continue
            now2 = apart2(agents.reference, slot, agents.reference, other)
            if k < close and now2 <= agents.listed[slot]:
                fits &= _put_on_one(certain, maybe, agents, slot, other, now2 <= agents.certain[slot])
            # The far-sighted among the candidates have their turn at the end.
            if not is_renewed[other] and (k >= close or not is_one_of(other, far_sighted)):
                standing = _standing(now2, agents, other)
                before = _standing(apart2(old, n, agents.reference, other), agents, other)
                if before != standing:
                    if before == 2:
                        take_off(certain, other, agents.row[slot])
                    elif before == 1:
                        take_off(maybe, other, slot)
                    if standing > 0:
                        fits &= _put_on_one(certain, maybe, agents, other, slot, standing == 2)
    for n in range(slots.size):
        is_renewed[slots[n]] = 0
    return fits


@inlined_kernel
def _find(s, agents, certain, maybe):
    """Write those of the uncertain that are within the radius of a slot behind the certain; returns how many."""
    here, limit, out = agents.here, agents.limit[s], certain.pool
    start = np.uint64(maybe.start[s])
    last = start + np.uint64(maybe.length[s])
    begin = np.uint64(certain.start[s] + certain.length[s])
    found = begin
    # The same loop twice: a branch inside takes as long as the rest of it.
    if here.shape[1] == 2:
        x, y = here[s, 0], here[s, 1]
        for k in range(start, last):
            other = np.uint64(maybe.pool[k])
            dx, dy = x - here[other, 0], y - here[other, 1]
            out[found] = agents.row[other]
            found += np.uint64(dx * dx + dy * dy <= limit)
    else:
        x, y, z = here[s, 0], here[s, 1], here[s, 2]
        for k in range(start, last):
            other = np.uint64(maybe.pool[k])
            dx, dy, dz = x - here[other, 0], y - here[other, 1], z - here[other, 2]
            out[found] = agents.row[other]
            found += np.uint64(dx * dx + dy * dy + dz * dz <= limit)
    return found - begin


@kernel
def _find_some(first, last, agents, certain, maybe, start, length):
    for slot in range(first, last):
        s = np.uint64(slot)
        if agents.row[s] >= 0:
            row = np.uint64(agents.row[s])
            start[row] = certain.start[s]
            length[row] = certain.length[s] + np.int64(_find(s, agents, certain, maybe))


@parallel_kernel
def find_near(agents, certain, maybe, start, length):
    """Find who is near among those that may be, for all slots; by row, where in the pool of the certain they are."""
    slots = maybe.room.size
    for chunk in prange((slots + _PER_CHUNK - 1) // _PER_CHUNK):
        place = np.int64(np.uint64(chunk))
        _find_some(place * _PER_CHUNK, min(slots, (place + 1) * _PER_CHUNK), agents, certain, maybe, start, length)


@kernel
def drop_gone(new_row, agents, certain, maybe):
    """Take everybody off all lists that is gone, and give the others their new rows.

    `new_row` has the new row of each old one, -1 if gone; `agents` have their new rows already.
    """
    for slot in range(certain.start.size):
        length = 0
        for k in range(certain.start[slot], certain.start[slot] + certain.length[slot]):
            row = new_row[certain.pool[k]]
            certain.pool[certain.start[slot] + length] = row
            length += row >= 0
        certain.length[slot] = length
        length = 0
        for k in range(maybe.start[slot], maybe.start[slot] + maybe.length[slot]):
            maybe.pool[maybe.start[slot] + length] = maybe.pool[k]
            length += agents.row[maybe.pool[k]] >= 0
        maybe.length[slot] = length
