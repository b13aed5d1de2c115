"""Near sets of a crowd in which few move: whoever moves finds its own near set anew, and enters or leaves the others.

Agents are kept by cell, and an agent that moves looks at those in the cells around it. So a step takes time for those
that move, and next to none for those at rest.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Ragged, are_equal
from tropel._kernels.cells import padded
from tropel._kernels.compile import inlined_kernel, kernel
from tropel.agents.state import Floats
from tropel.environment.kinetic.buckets import (
    BEGIN,
    COUNT,
    LIMIT,
    ROW,
    Buckets,
    X,
    Y,
    Z,
    cell_along,
    move_between,
    new_buckets,
    set_limits,
)
from tropel.environment.kinetic.fetching import fetch
from tropel.environment.kinetic.list_kernels import Lists, is_one_of, make_room, put_on, take_off

Rows = NDArray[np.int64]

#: If a larger share of the agents moves, it is faster to test lists that hold for many steps.
MOST_MOVING = 1 / 10
#: Agents see far if their radius is this many times the median; each of them is compared with every agent that moves.
FAR_SIGHTED, MOST_FAR_SIGHTED = 3.0, 1 / 32
#: Edge of a cell, as a share of the median radius.
_CELL = 1.0
#: How many rows are compared at a time.
_BLOCK = 32
#: What comes of following moves: near sets are up to date; too many have moved; a cell is full, or radii have changed,
#: so that cells must be filled anew before going on; there is no room for near sets.
_DONE, _TOO_MANY, _UNFIT, _NO_ROOM = range(4)


@inlined_kernel
def _is_elsewhere(last, position, row):
    elsewhere = last[row, 0] != position[row, 0] or last[row, 1] != position[row, 1]
    return elsewhere or (position.shape[1] == 3 and last[row, 2] != position[row, 2])


@kernel
def _list_changed(last, position, known, radius, changed):
    """List the rows that are elsewhere now, or have another radius.

    Returns how many there are, how many of them are elsewhere, how far these went together, and whether any radius has
    changed.
    """
    count, movers, total, other_radius = 0, 0, 0.0, False
    old, new = last.reshape(last.size), position.reshape(position.size)
    for first in range(0, radius.size, _BLOCK):
        end = min(first + _BLOCK, radius.size)
        # Without a branch, so that it becomes vector instructions.
        differ = False
        for k in range(first * position.shape[1], end * position.shape[1]):
            differ |= old[k] != new[k]
        for row in range(first, end):
            differ |= known[row] != radius[row]
        if not differ:
            continue
        for row in range(first, end):
            elsewhere, other = _is_elsewhere(last, position, row), known[row] != radius[row]
            if elsewhere:
                way2 = 0.0
                for axis in range(position.shape[1]):
                    way2 += (position[row, axis] - last[row, axis]) ** 2
                total += math.sqrt(way2) if way2 < math.inf else 0.0  # newcomers come from nowhere
                movers += 1
            other_radius |= other
            if elsewhere or other:
                changed[count] = row
                count += 1
    return count, movers, total, other_radius


@inlined_kernel
def _cells_between(buckets, axis, one, other, reach):
    """First and last cell along an axis that may have agents within reach of two coordinates; one may be nan."""
    low = min(one, other) if one == one and other == other else (one if one == one else other)
    high = max(one, other) if one == one and other == other else low
    return cell_along(buckets, axis, low - reach), cell_along(buckets, axis, high + reach)


@kernel
def _look_around(mover, x, y, z, old_x, old_y, old_z, own_limit, reach, buckets, found, sets):
    """One that was at the old place and is at the new one finds its near set, and enters and leaves those of others.

    Either place may be nan: then it enters or leaves only. `found` is for working. Returns false if there is no room.
    """
    fits = True
    x0, x1 = _cells_between(buckets, 0, x, old_x, reach)
    y0, y1 = _cells_between(buckets, 1, y, old_y, reach)
    z0, z1 = _cells_between(buckets, 2, z, old_z, reach)
    spots, count = buckets.spots, np.uint64(0)
    # In 2D there is no z: all are at height 0, whatever is read for it.
    at_z, high = (Z, 1.0) if spots.shape[1] > Z else (X, 0.0)
    for layer in range(z0, z1 + 1):
        for line in range(y0, y1 + 1):
            cell = (layer * buckets.shape[1] + line) * buckets.shape[0]
            last = buckets.cells[np.uint64(cell + x1)]
            for at in range(buckets.cells[np.uint64(cell + x0), BEGIN], last[BEGIN] + last[COUNT]):
                place = np.uint64(at)
                to_x, to_y, to_z = spots[place, X], spots[place, Y], high * spots[place, at_z]
                dx, dy, dz = x - to_x, y - to_y, z - to_z
                away2 = dx * dx + dy * dy + dz * dz
                dx, dy, dz = old_x - to_x, old_y - to_y, old_z - to_z
                was2, limit = dx * dx + dy * dy + dz * dz, spots[place, LIMIT]
                found[count] = np.int32(spots[place, ROW])
                count += np.uint64(away2 <= own_limit)
                # Never so for those left alone, the agent itself among them.
                if (was2 <= limit) != (away2 <= limit):
                    member = np.int64(spots[place, ROW])
                    if was2 <= limit:
                        take_off(sets, member, np.int32(mover))
                    else:
                        fits &= put_on(sets, member, np.int32(mover))
    if not make_room(sets, mover, count):
        return False
    start, length = sets.start[mover], 0
    for k in range(count):
        sets.pool[start + length] = found[k]
        length += found[k] != mover
    sets.length[mover] = length
    return fits


@kernel
def _fetch_around(mover, x, y, z, reach, buckets, sets):
    """Have everything in the caches that an agent will look at."""
    fetch(sets.start, mover)
    fetch(sets.length, mover)
    fetch(sets.room, mover)
    x0, x1 = cell_along(buckets, 0, x - reach), cell_along(buckets, 0, x + reach)
    y0, y1 = cell_along(buckets, 1, y - reach), cell_along(buckets, 1, y + reach)
    z0, z1 = cell_along(buckets, 2, z - reach), cell_along(buckets, 2, z + reach)
    for layer in range(z0, z1 + 1):
        for line in range(y0, y1 + 1):
            cell = (layer * buckets.shape[1] + line) * buckets.shape[0]
            last = buckets.cells[np.uint64(cell + x1)]
            # Two agents to a cache line.
            for place in range(buckets.cells[np.uint64(cell + x0), BEGIN], last[BEGIN] + last[COUNT], 2):
                fetch(buckets.spots, place)


@inlined_kernel
def _height(last, row):
    return last[row, 2] if last.shape[1] == 3 else 0.0


@kernel
def _follow_moves(moved, was, last, buckets, radius, limit, shown_limit, widest, far_sighted, found, sets):
    """Keep all near sets up to date after these rows have moved; false if there is no room for them.

    `was` has where these rows were before. The limits of rows whose near sets others leave alone, because they find
    their own or see far, are nan in the buckets; `limit` has the true ones, and `shown_limit` what the buckets have
    afterwards.
    """
    fits = True
    for n in range(moved.size):
        mover = moved[n]
        if n + 1 < moved.size:
            k = moved[n + 1]
            _fetch_around(k, last[k, 0], last[k, 1], _height(last, k), radius[k], buckets, sets)
        sets.length[mover] = 0
        x, y, z = last[mover, 0], last[mover, 1], _height(last, mover)
        old_x, old_y, old_z = was[n, 0], was[n, 1], was[n, 2]
        jump = max(max(abs(x - old_x), abs(y - old_y)), abs(z - old_z))
        # Newcomers come from nowhere (nan).
        is_new = old_x != old_x
        beside = not is_new and jump * buckets.inverse_cell <= 2.0
        if not beside and not is_new:
            nan = math.nan
            fits &= _look_around(mover, nan, nan, nan, old_x, old_y, old_z, -1.0, padded(widest), buckets, found, sets)
        if not beside:
            old_x = old_y = old_z = math.nan
        reach = padded(max(radius[mover], widest))
        fits &= _look_around(mover, x, y, z, old_x, old_y, old_z, limit[mover], reach, buckets, found, sets)
        for k in range(far_sighted.size):
            q = far_sighted[k]
            qx, qy, qz = last[q, 0], last[q, 1], _height(last, q)
            away2 = (x - qx) * (x - qx) + (y - qy) * (y - qy) + (z - qz) * (z - qz)
            dx, dy, dz = was[n, 0] - qx, was[n, 1] - qy, was[n, 2] - qz
            was_near = dx * dx + dy * dy + dz * dz <= limit[q]
            # Those that have moved find their own near sets.
            if was_near != (away2 <= limit[q]) and not is_one_of(q, moved):
                if was_near:
                    take_off(sets, q, np.int32(mover))
                else:
                    fits &= put_on(sets, q, np.int32(mover))
    set_limits(buckets, moved, shown_limit)
    return fits


@kernel
def follow(
    step,
    position,
    last,
    radius,
    known,
    limit,
    shown_limit,
    widest,
    far_sighted,
    most,
    changed,
    was,
    bucket_arrays,
    found,
    set_arrays,
):
    """Keep all near sets up to date after agents have moved.

    Returns what has come of it, then how many rows have changed, how many of them are elsewhere, and how far these went
    together. If `step` is above zero, so many rows have changed and are in their cells already. One kernel for all of
    it, and plain tuples, because in a quiet crowd a step takes hardly more time than calls of kernels do.
    """
    buckets, sets = Buckets(*bucket_arrays), Lists(*set_arrays)
    count, movers, way = step, 0, 0.0
    if step == 0:
        count, movers, way, other_radius = _list_changed(last, position, known, radius, changed)
        if count > most:
            return _TOO_MANY, count, movers, way
        fits = move_between(buckets, changed[:count], position, last, was)
        if other_radius or not fits:
            return _UNFIT, count, movers, way
    fits = _follow_moves(
        changed[:count], was, last, buckets, radius, limit, shown_limit, widest, far_sighted, found, sets
    )
    return _DONE if fits else _NO_ROOM, count, movers, way


@kernel
def _renumber(new_of_old, sets):
    """Take those out of all sets that are gone, and give the others their new rows."""
    for old in range(new_of_old.size):
        length = 0
        for k in range(sets.start[old], sets.start[old] + sets.length[old]):
            row = new_of_old[sets.pool[k]]
            sets.pool[sets.start[old] + length] = row
            length += row >= 0
        sets.length[old] = length


class QuietSets:
    """The near sets of a crowd in which few move, by row; all others stay as they are.

    `sets` are the near sets at these positions, each in a room of its own.
    """

    def __init__(self, position: Floats, radius: Floats, sets: Lists, usual: float) -> None:
        self._sets = sets
        self._usual = usual
        self._last = np.array(position)
        self._make_room()
        self._set_radius(radius)
        self._fill_buckets()
        self.moved = 0  #: how many moved in the last step
        self.mean_move = 0.0  #: how far, on average [m]

    def _set_radius(self, radius: Floats) -> None:
        self.radius = np.array(radius)
        self._limit = np.where(radius >= 0.0, radius * radius, -1.0)
        is_far = radius > FAR_SIGHTED * self._usual
        if np.count_nonzero(is_far) > MOST_FAR_SIGHTED * len(radius):
            is_far[:] = False
        self._far_sighted = np.flatnonzero(is_far)
        self._widest = float(radius[~is_far].max(initial=0.0))
        # Those that see far are compared with everybody who moves, one by one.
        self._shown_limit = np.where(is_far, np.nan, self._limit)

    def _make_room(self) -> None:
        count = len(self._last)
        self._changed, self._was = np.empty(count, dtype=np.int64), np.empty((count, 3))
        self._found = np.empty(count + 1, dtype=np.int32)

    def _fill_buckets(self) -> None:
        self._buckets = new_buckets(self._last, self._shown_limit, _CELL * self._usual)
        self._bucket_arrays = tuple(self._buckets)

    @property
    def sets(self) -> Ragged:
        return Ragged(self._sets.start, self._sets.length, self._sets.pool)

    def follow(self, position: Floats, radius: Floats) -> bool:
        """Agents are here now; false if too many have moved, or there is no room, and all must be found anew."""
        outcome, self.moved, movers, way = self._follow(0, position, radius)
        self.mean_move = way / movers if movers else self.mean_move
        if outcome == _UNFIT:
            if not are_equal(radius, self.radius):
                self._set_radius(radius)
            self._fill_buckets()
            self._buckets.spots[self._buckets.place[self._changed[: self.moved]], LIMIT] = np.nan
            outcome = self._follow(self.moved, position, radius)[0]
        return bool(outcome == _DONE)

    def _follow(self, step: int, position: Floats, radius: Floats) -> tuple[int, int, int, float]:
        most = int(MOST_MOVING * len(position))
        return follow(step, position, self._last, radius, self.radius, self._limit, self._shown_limit, self._widest,
                      self._far_sighted, most, self._changed, self._was, self._bucket_arrays, self._found,
                      tuple(self._sets))  # fmt: skip

    def come_and_go(self, new_of_old: NDArray[np.int64], count: int) -> bool:
        """Agents have other rows now, -1 for those that are gone; false if there is no room for the new ones."""
        old, stays = self._sets, new_of_old >= 0
        rows = new_of_old[stays]
        newcomers = np.setdiff1d(np.arange(count), rows, assume_unique=True)
        room = int(old.length.mean()) + 8 if len(old.length) else 8
        end = int(old.used[0]) + room * len(newcomers)
        if end > len(old.pool) or not len(rows):
            return False
        _renumber(new_of_old.astype(np.int32), old)
        start, rooms, length = (np.zeros(count, dtype=np.int64) for _ in range(3))
        for column, known in ((start, old.start), (rooms, old.room), (length, old.length)):
            column[rows] = known[stays]
        start[newcomers] = old.used[0] + room * np.arange(len(newcomers))
        rooms[newcomers] = room
        old.used[0] = end
        self._sets = Lists(start, rooms, length, old.used, old.pool)
        # Newcomers come from nowhere.
        last, radius = np.full((count, self._last.shape[1]), np.nan), np.zeros(count)
        last[rows], radius[rows] = self._last[stays], self.radius[stays]
        self._last = last
        self._make_room()
        self._set_radius(radius)
        self._fill_buckets()
        return True
