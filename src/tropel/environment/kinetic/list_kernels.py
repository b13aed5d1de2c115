"""The kernels of near lists: entering, renewing and renumbering lists, and finding near sets from them (`lists.py`).

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
from tropel._kernels.simd import COPY_WIDTH, copy_block

_PER_CHUNK = 128
_ZERO, _ONE, _BLOCK = np.uint64(0), np.uint64(1), np.uint64(COPY_WIDTH)


class Lists(NamedTuple):
    """A list for each slot, in a room of its own in one pool."""

    start: NDArray[np.int64]  #: (S,): where the room of a slot begins in the pool
    room: NDArray[np.int64]  #: (S,)
    length: NDArray[np.int64]  #: (S,)
    used: NDArray[np.int64]  #: (1,): how much of the pool has been given away
    pool: NDArray[np.int32]


#: Columns of what is found for a row: how many are certain to be near and how many have been found to be, and where in
#: their pools they begin.
CERTAIN, HITS, CERTAIN_START, HITS_START, COLUMNS = range(5)


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
def look_for_moves(agents, position, leash, moved, loose):
    """Take over where agents are; list the slots that have moved since the last step or have left their leash.

    Returns how many there are of each, and how far those that moved went together.
    """
    movers = leavers = 0
    total = 0.0
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
            moved[movers] = slot
            movers += 1
            way = math.sqrt(apart2(agents.here, s, agents.before, s))
            total += way if way < math.inf else 0.0  # newcomers come from nowhere
            loose[leavers] = slot
            leavers += not apart2(agents.here, s, agents.reference, s) <= leash * leash
    return movers, leavers, total


@kernel
def _count_some(first, last, indptr, indices, slot_of, agents, certain, maybe):
    for slot in range(first, last):
        s = np.uint64(slot)
        row = np.uint64(agents.row[s])
        inside = _ZERO
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + _ONE])):
            other = np.uint64(slot_of[np.uint64(indices[k])])
            inside += np.uint64(apart2(agents.reference, s, agents.reference, other) <= agents.certain[s])
        certain.length[s] = inside
        maybe.length[s] = np.uint64(indptr[row + _ONE] - indptr[row]) - inside


@parallel_kernel
def count_all(count, indptr, indices, slot_of, agents, certain, maybe):
    """How many are certain to be near the first slots, and how many may come near, given all these as lists of rows."""
    for chunk in prange((count + _PER_CHUNK - 1) // _PER_CHUNK):
        place = np.int64(np.uint64(chunk))
        _count_some(place * _PER_CHUNK, min(count, (place + 1) * _PER_CHUNK), indptr, indices, slot_of, agents, certain,
                    maybe)  # fmt: skip


@kernel
def lay_out(lists, spare):
    """Give each slot a room larger than its list, `spare` to those without any; returns how large the pool must be."""
    total = 0
    for slot in range(lists.start.size):
        length = lists.length[slot]
        lists.start[slot] = total
        lists.room[slot] = (length if length > 0 else spare) + length // 2 + 8
        total += lists.room[slot]
    lists.used[0] = total
    return total


@kernel
def _enter_some(first, last, indptr, indices, slot_of, agents, certain, maybe):
    for slot in range(first, last):
        s = np.uint64(slot)
        row = np.uint64(agents.row[s])
        sure, rest = np.uint64(certain.start[s]), np.uint64(maybe.start[s])
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + _ONE])):
            other = slot_of[np.uint64(indices[k])]
            inside = apart2(agents.reference, s, agents.reference, np.uint64(other)) <= agents.certain[s]
            # Rooms are larger than lists, so there is always one more place to write to.
            certain.pool[sure] = indices[k]
            maybe.pool[rest] = other
            sure += np.uint64(inside)
            rest += np.uint64(not inside)


@parallel_kernel
def enter_all(count, indptr, indices, slot_of, agents, certain, maybe):
    """Enter everybody whom `count_all` has counted, in their order."""
    for chunk in prange((count + _PER_CHUNK - 1) // _PER_CHUNK):
        place = np.int64(np.uint64(chunk))
        _enter_some(place * _PER_CHUNK, min(count, (place + 1) * _PER_CHUNK), indptr, indices, slot_of, agents, certain,
                    maybe)  # fmt: skip


@inlined_kernel
def _take_off(lists, slot, number):
    """Take a number off a list, if it is on it."""
    last = lists.start[slot] + lists.length[slot] - 1
    for k in range(lists.start[slot], last + 1):
        if lists.pool[k] == number:
            lists.pool[k] = lists.pool[last]
            lists.length[slot] -= 1
            return


@kernel
def _move_out(lists, slot):
    """Give a slot a room of twice the size, at the end of the pool; false if that is used up."""
    room, out = 2 * lists.room[slot], lists.used[0]
    if out + room > lists.pool.size:
        return False
    for k in range(lists.length[slot]):
        lists.pool[out + k] = lists.pool[lists.start[slot] + k]
    lists.start[slot], lists.room[slot] = out, room
    lists.used[0] = out + room
    return True


@inlined_kernel
def _put_on(lists, slot, number):
    """Put a number on a list; false if there is no room."""
    length = lists.length[slot]
    if length == lists.room[slot] and not _move_out(lists, slot):
        return False
    lists.pool[lists.start[slot] + length] = number
    lists.length[slot] = length + 1
    return True


@inlined_kernel
def _put_on_one(certain, maybe, agents, slot, other, is_certain):
    if is_certain:
        return _put_on(certain, slot, agents.row[other])
    return _put_on(maybe, slot, np.int32(other))


@inlined_kernel
def _standing(away2, agents, slot):
    """2 for those certain to be near, 1 for others on the list, 0 for those that are not on it."""
    return np.int64(away2 <= agents.certain[slot]) + np.int64(away2 <= agents.listed[slot])


@inlined_kernel
def _is_one_of(slot, slots):
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
            if not is_renewed[other] and (k >= close or not _is_one_of(other, far_sighted)):
                standing = _standing(now2, agents, other)
                before = _standing(apart2(old, n, agents.reference, other), agents, other)
                if before != standing:
                    if before == 2:
                        _take_off(certain, other, agents.row[slot])
                    elif before == 1:
                        _take_off(maybe, other, slot)
                    if standing > 0:
                        fits &= _put_on_one(certain, maybe, agents, other, slot, standing == 2)
    for n in range(slots.size):
        is_renewed[slots[n]] = 0
    return fits


@inlined_kernel
def _find(s, agents, maybe, hits):
    """Write those of the uncertain that are within the radius of a slot to its room in `hits`; returns how many."""
    here, limit = agents.here, agents.limit[s]
    start = np.uint64(maybe.start[s])
    last = start + np.uint64(maybe.length[s])
    found = start
    # The same loop twice: a branch inside takes as long as the rest of it.
    if here.shape[1] == 2:
        x, y = here[s, 0], here[s, 1]
        for k in range(start, last):
            other = np.uint64(maybe.pool[k])
            dx, dy = x - here[other, 0], y - here[other, 1]
            hits[found] = agents.row[other]
            found += np.uint64(dx * dx + dy * dy <= limit)
    else:
        x, y, z = here[s, 0], here[s, 1], here[s, 2]
        for k in range(start, last):
            other = np.uint64(maybe.pool[k])
            dx, dy, dz = x - here[other, 0], y - here[other, 1], z - here[other, 2]
            hits[found] = agents.row[other]
            found += np.uint64(dx * dx + dy * dy + dz * dz <= limit)
    return found - start


@inlined_kernel
def _note(s, agents, certain, maybe, hits, found):
    """Find who is near a slot, and note by row where they are and how many."""
    row = np.uint64(agents.row[s])
    found[row, CERTAIN], found[row, CERTAIN_START] = certain.length[s], certain.start[s]
    found[row, HITS], found[row, HITS_START] = _find(s, agents, maybe, hits), maybe.start[s]


@kernel
def _find_some(first, last, agents, certain, maybe, hits, found):
    for slot in range(first, last):
        if agents.row[np.uint64(slot)] >= 0:
            _note(np.uint64(slot), agents, certain, maybe, hits, found)


@parallel_kernel
def find_near(agents, certain, maybe, hits, found):
    """Find who is near among those that may be, for all slots."""
    slots = maybe.room.size
    for chunk in prange((slots + _PER_CHUNK - 1) // _PER_CHUNK):
        place = np.int64(np.uint64(chunk))
        _find_some(place * _PER_CHUNK, min(slots, (place + 1) * _PER_CHUNK), agents, certain, maybe, hits, found)


@kernel
def sum_lengths(found, indptr):
    """Where the near set of each row begins, end to end; returns how long they are together."""
    for row in range(found.shape[0]):
        indptr[row + 1] = indptr[row] + found[row, CERTAIN] + found[row, HITS]
    return indptr[found.shape[0]]


@inlined_kernel
def _copy(source, begin, target, out, length, end):
    """Copy numbers in whole blocks; what runs over, up to `end`, is written later."""
    if out + length + _BLOCK <= end:
        for step in range(_ZERO, length, _BLOCK):
            copy_block(target, out + step, source, begin + step)
    else:
        for step in range(length):
            target[out + step] = source[begin + step]


@inlined_kernel
def _copy_row(row, pool, hits, found, indptr, indices, end):
    certain, out = np.uint64(found[row, CERTAIN]), np.uint64(indptr[row])
    _copy(pool, np.uint64(found[row, CERTAIN_START]), indices, out, certain, end)
    _copy(hits, np.uint64(found[row, HITS_START]), indices, out + certain, np.uint64(found[row, HITS]), end)


@kernel
def _copy_some(first, last, pool, hits, found, indptr, indices):
    end = np.uint64(indptr[last])
    for row in range(first, last):
        _copy_row(np.uint64(row), pool, hits, found, indptr, indices, end)


@parallel_kernel
def copy_all(pool, hits, found, indptr, indices):
    """Copy the near sets from their rooms to where they belong, by row and end to end."""
    rows = found.shape[0]
    for chunk in prange((rows + _PER_CHUNK - 1) // _PER_CHUNK):
        place = np.int64(np.uint64(chunk))
        _copy_some(place * _PER_CHUNK, min(rows, (place + 1) * _PER_CHUNK), pool, hits, found, indptr, indices)


@inlined_kernel
def _has_changed(slot, other, agents):
    """Whether a slot has come within the radius of another one, or left it, in this step."""
    was_near = apart2(agents.before, other, agents.before, slot) <= agents.limit[other]
    return was_near != (apart2(agents.here, other, agents.here, slot) <= agents.limit[other])


@kernel
def mark_listed(moved, far_sighted, slot_of, agents, certain, maybe, is_changed):
    """Mark slots that moved, and those that they have come to or left, if all that matter are on their own lists."""
    for n in range(moved.size):
        slot = moved[n]
        is_changed[slot] = 1
        for k in range(certain.start[slot], certain.start[slot] + certain.length[slot]):
            other = slot_of[certain.pool[k]]
            is_changed[other] |= _has_changed(slot, other, agents)
        for k in range(maybe.start[slot], maybe.start[slot] + maybe.length[slot]):
            is_changed[maybe.pool[k]] |= _has_changed(slot, maybe.pool[k], agents)
        for k in range(far_sighted.size):
            is_changed[far_sighted[k]] |= _has_changed(slot, far_sighted[k], agents)


@kernel
def mark_around(moved, around, candidates, far_sighted, agents, is_changed):
    """The same with candidates for each slot that moved."""
    for n in range(moved.size):
        slot = moved[n]
        is_changed[slot] = 1
        for k in range(around[n], around[n + 1]):
            is_changed[candidates[k]] |= _has_changed(slot, candidates[k], agents)
        for k in range(far_sighted.size):
            is_changed[far_sighted[k]] |= _has_changed(slot, far_sighted[k], agents)


@kernel
def patch(is_changed, slot_of, agents, certain, maybe, hits, found, old_indptr, old_indices, indptr, indices):
    """Near sets of slots that have changed from their rooms, the others as before; end to end.

    No near set is longer than its list, so that `indices` can be made large enough beforehand.
    """
    rows = slot_of.size
    for row in range(rows):
        found[row, CERTAIN], found[row, HITS] = old_indptr[row + 1] - old_indptr[row], 0
    for slot in range(is_changed.size):
        if is_changed[slot]:
            _note(np.uint64(slot), agents, certain, maybe, hits, found)
    end = np.uint64(sum_lengths(found, indptr))
    row = 0
    while row < rows:
        first = row
        while row < rows and not is_changed[slot_of[row]]:
            row += 1
        # Rows without a change in one go.
        source = np.uint64(old_indptr[first])
        _copy(old_indices, source, indices, np.uint64(indptr[first]), np.uint64(old_indptr[row]) - source, end)
        if row < rows:
            _copy_row(np.uint64(row), certain.pool, hits, found, indptr, indices, end)
            row += 1


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
