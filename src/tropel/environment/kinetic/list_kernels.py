"""The kernels of near lists: entering, renewing and renumbering lists, and finding near sets from them (`lists.py`)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel

_PER_CHUNK = 128


class Lists(NamedTuple):
    """The lists of all rows, each in a room of its own in one pool: first those certain to be near, then the others."""

    start: NDArray[np.int64]  #: (N,): where the room of a row begins in the pool
    room: NDArray[np.int64]  #: (N,)
    certain: NDArray[np.int64]  #: (N,): how many are certain to be near
    length: NDArray[np.int64]  #: (N,)
    pool: NDArray[np.int32]


class Bounds(NamedTuple):
    """Squares of distances between references [m²], by row."""

    certain: NDArray[np.float64]  #: (N,): up to this, they are certain to be near; -1 if nobody is
    listed: NDArray[np.float64]  #: (N,): up to this, they are on the list


@inlined_kernel
def apart2(places, i, j):
    """The square of the distance between two rows [m²]."""
    total = 0.0
    for axis in range(places.shape[1]):
        gap = places[i, axis] - places[j, axis]
        total += gap * gap
    return total


@kernel
def look_for_moves(position, before, reference, leash, moved, loose):
    """Rows that have moved since the last step, and rows that have left their leash.

    Returns how many there are of each, and how far those that moved went together.
    """
    movers = leavers = 0
    total = 0.0
    dim = position.shape[1]
    for row in range(position.shape[0]):
        i = np.uint64(row)
        step2 = away2 = 0.0
        for axis in range(dim):
            step, away = position[i, axis] - before[i, axis], position[i, axis] - reference[i, axis]
            step2 += step * step
            away2 += away * away
        moved[movers] = row
        # Steps too short for their square still count. Newcomers have no earlier place.
        if not step2 == 0.0 or position[i, 0] != before[i, 0] or position[i, 1] != before[i, 1]:
            movers += 1
            total += math.sqrt(step2) if step2 < math.inf else 0.0
        loose[leavers] = row
        leavers += not away2 <= leash * leash
    return movers, leavers, total


@kernel
def _enter_some(first, last, indptr, indices, reference, bounds, lists, waiting):
    for row in range(first, last):
        start = np.uint64(lists.start[row])
        sure, rest = start, start
        limit = bounds.certain[row]
        for k in range(indptr[row], indptr[row + 1]):
            other = indices[np.uint64(k)]
            inside = apart2(reference, np.uint64(row), np.uint64(other)) <= limit
            lists.pool[sure] = other
            waiting[rest] = other
            sure += np.uint64(inside)
            rest += np.uint64(not inside)
        for k in range(rest - start):
            lists.pool[sure + k] = waiting[start + k]
        lists.certain[row] = sure - start
        lists.length[row] = indptr[row + 1] - indptr[row]


@parallel_kernel
def enter_all(indptr, indices, reference, bounds, lists, waiting):
    """Enter lists in their rooms, those certain to be near first; each part stays in its order."""
    count = lists.room.size
    for chunk in prange((count + _PER_CHUNK - 1) // _PER_CHUNK):
        place = np.uint64(chunk)
        _enter_some(np.int64(place) * _PER_CHUNK, min(count, (np.int64(place) + 1) * _PER_CHUNK), indptr, indices,
                    reference, bounds, lists, waiting)  # fmt: skip


@kernel
def _take_off(lists, row, other):
    """Take somebody off a list, if it is on it."""
    start, end = lists.start[row], lists.start[row] + lists.length[row]
    for k in range(start, end):
        if lists.pool[k] == other:
            hole = k
            if k < start + lists.certain[row]:
                lists.certain[row] -= 1
                hole = start + lists.certain[row]
                lists.pool[k] = lists.pool[hole]
            lists.pool[hole] = lists.pool[end - 1]
            lists.length[row] -= 1
            return


@kernel
def _put_on(lists, row, other, is_certain):
    """Put somebody on a list; false if there is no room."""
    if lists.length[row] == lists.room[row]:
        return False
    end = lists.start[row] + lists.length[row]
    lists.pool[end] = other
    if is_certain:
        first = lists.start[row] + lists.certain[row]
        lists.pool[end] = lists.pool[first]
        lists.pool[first] = other
        lists.certain[row] += 1
    lists.length[row] += 1
    return True


@kernel
def renew(rows, around, candidates, far_sighted, position, reference, bounds, is_renewed, lists):
    """Give rows new references, new lists, and new places on the lists around them; false if there is no room."""
    for n in range(rows.size):
        is_renewed[rows[n]] = 1
        for axis in range(position.shape[1]):
            reference[rows[n], axis] = position[rows[n], axis]
    fits = True
    for n in range(rows.size):
        row = rows[n]
        lists.length[row] = lists.certain[row] = 0
        close = around[n + 1] - around[n]
        for k in range(close + far_sighted.size):
            other = np.int64(candidates[around[n] + k]) if k < close else np.int64(far_sighted[k - close])
            if other == row:
                continue
            d2 = apart2(reference, row, other)
            if k < close and d2 <= bounds.listed[row]:
                fits = fits and _put_on(lists, row, row_type(other), d2 <= bounds.certain[row])
            if not is_renewed[other]:
                # The candidates may have some of the far-sighted too: off first, so that nobody is on a list twice.
                _take_off(lists, other, row)
                if d2 <= bounds.listed[other]:
                    fits = fits and _put_on(lists, other, row_type(row), d2 <= bounds.certain[other])
    for n in range(rows.size):
        is_renewed[rows[n]] = 0
    return fits


@inlined_kernel
def row_type(row):
    return np.int32(row)


@inlined_kernel
def _is_near(position, i, j, radius):
    return apart2(position, i, j) <= radius * radius


@kernel
def _find_some(first, last, position, radius, lists, hits, count):
    dim = position.shape[1]
    for row in range(first, last):
        i = np.uint64(row)
        x, y = position[i, 0], position[i, 1]
        limit = radius[i] * radius[i]
        start = np.uint64(lists.start[i])
        found = start
        for k in range(start + np.uint64(lists.certain[i]), start + np.uint64(lists.length[i])):
            j = np.uint64(lists.pool[k])
            dx, dy = x - position[j, 0], y - position[j, 1]
            away2 = dx * dx + dy * dy
            if dim == 3:
                dz = position[i, 2] - position[j, 2]
                away2 += dz * dz
            hits[found] = lists.pool[k]
            found += np.uint64(away2 <= limit)
        count[i] = found - start


@parallel_kernel
def find_near(position, radius, lists, hits, count):
    """Write those of the uncertain that are within the radius of each row to its room in `hits`."""
    rows = lists.room.size
    for chunk in prange((rows + _PER_CHUNK - 1) // _PER_CHUNK):
        place = np.uint64(chunk)
        _find_some(np.int64(place) * _PER_CHUNK, min(rows, (np.int64(place) + 1) * _PER_CHUNK), position, radius,
                   lists, hits, count)  # fmt: skip


@kernel
def find_near_of(rows, position, radius, lists, hits, count):
    for n in range(rows.size):
        _find_some(rows[n], rows[n] + 1, position, radius, lists, hits, count)


@kernel
def sum_lengths(certain, count, indptr):
    total = 0
    for row in range(count.size):
        total += certain[row] + count[row]
        indptr[row + 1] = total
    return total


@kernel
def _copy_some(first, last, lists, hits, indptr, indices):
    for row in range(first, last):
        start, out = np.uint64(lists.start[row]), np.uint64(indptr[row])
        certain = np.uint64(lists.certain[row])
        for k in range(certain):
            indices[out + k] = lists.pool[start + k]
        for k in range(np.uint64(indptr[row + 1]) - out - certain):
            indices[out + certain + k] = hits[start + k]


@parallel_kernel
def copy_all(lists, hits, indptr, indices):
    rows = lists.room.size
    for chunk in prange((rows + _PER_CHUNK - 1) // _PER_CHUNK):
        place = np.uint64(chunk)
        _copy_some(np.int64(place) * _PER_CHUNK, min(rows, (np.int64(place) + 1) * _PER_CHUNK), lists, hits, indptr,
                   indices)  # fmt: skip


@kernel
def mark_changes(moved, around, candidates, far_sighted, position, before, radius, lists, is_changed):
    """Mark rows whose near sets have changed: those that moved, and others that one of those has come to or left.

    `around` has candidates for each that moved; where it has none, its own list has all that matter.
    """
    for n in range(moved.size):
        is_changed[moved[n]] = 1
        row = np.uint64(moved[n])
        listed = around[n + 1] == around[n]
        first = lists.start[row] if listed else around[n]
        close = lists.length[row] if listed else around[n + 1] - around[n]
        for k in range(close + far_sighted.size):
            if k >= close:
                other = np.uint64(far_sighted[k - close])
            else:
                other = np.uint64(lists.pool[first + k] if listed else candidates[first + k])
            if not is_changed[other] and other != row:
                was_near = _is_near(before, other, row, radius[other])
                is_changed[other] = was_near != _is_near(position, other, row, radius[other])


@kernel
def patch(is_changed, lists, hits, old_indptr, old_indices, indptr, indices):
    """The lists of rows that have changed from their rooms, the others from the lists before; end to end."""
    row, rows = 0, lists.room.size
    while row < rows:
        first = row
        while row < rows and not is_changed[row]:
            row += 1
        # Rows without a change in one go.
        source, out = np.uint64(old_indptr[first]), np.uint64(indptr[first])
        for k in range(np.uint64(old_indptr[row]) - source):
            indices[out + k] = old_indices[source + k]
        if row < rows:
            _copy_some(row, row + 1, lists, hits, indptr, indices)
            row += 1


@kernel
def sum_patched(is_changed, certain, count, old_indptr, indptr):
    total = 0
    for row in range(count.size):
        total += certain[row] + count[row] if is_changed[row] else old_indptr[row + 1] - old_indptr[row]
        indptr[row + 1] = total
    return total


@kernel
def renumber(old_row, new_of_old, old, new):
    """Copy lists to rooms of new rows, without those that are gone; rows without an old one get no list."""
    for row in range(old_row.size):
        if old_row[row] < 0:
            new.certain[row] = new.length[row] = 0
            continue
        start, source = new.start[row], old.start[old_row[row]]
        length = certain = 0
        for k in range(old.length[old_row[row]]):
            other = new_of_old[old.pool[source + k]]
            if other >= 0:
                new.pool[start + length] = other
                length += 1
                certain += k < old.certain[old_row[row]]
        new.certain[row], new.length[row] = certain, length
