"""Who is within a radius of each agent in space, from lists that hold for many steps.

Agent i has a list of all agents that were within `reach`, its radius and a margin, of its `reference`, the place where
its list was filled. Whoever is not on the list is still outside of the radius while

    radius + (how far i is from its reference) + (how far the others have come since) ≤ reach,

and until then only the distances to those on the list are measured, between true positions and exactly as on the grid.
How far the others have come is the sum of the largest displacement of each step. A few fast agents, and newcomers,
would use up all margins at once. They are left out of the sum and announce themselves instead: they are added to
the lists whose reach they have come into. Every step splits the agents anew into those that count and those that
announce themselves, where that is expected to cost least. If all who move announce themselves, then it is known whose
neighbours can have changed; the others keep theirs. So a crowd at rest costs next to nothing.

Lists are filled from the engine's cells and not by a walk through the tetrahedra. In space nothing hides anybody, so
both find the same agents. A vertex has 27 tetrahedra around it on average, and a flood through them took thirty times
as long as looking through the cells with vector instructions.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel._kernels.cells import BLOCK, CellList, cell_run, cell_window, near_bits
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.simd import COPY_WIDTH, copy_block, trailing_zeros
from tropel.agents.state import Floats
from tropel.environment.kinetic.margins import margin_with_least_cost
from tropel.environment.kinetic.space_announce import (
    BUCKETS,
    CAREFUL,
    EXPIRED,
    FILL,
    ROUNDING,
    TEST,
    Crowd,
    Lists,
    announce,
    choose_bound,
    measure,
    wide_spans,
)

#: Margins are at least this share of the radius.
_LEAST_SHARE = 0.02
#: Lists are filled anew for radii below this share of the one that they were filled for.
_MUCH_SMALLER = 0.9
#: If more than this share of all lists is filled at the same time, their margins are spread.
_MANY = 0.3
_PER_CHUNK = 128
_ZERO, _ONE, _COPY = np.uint64(0), np.uint64(1), np.uint64(COPY_WIDTH)


@kernel
def _list_expired(crowd, lists, travel, todo):
    """Slots whose lists must be filled; returns how many."""
    count = 0
    for slot in range(crowd.row_of.shape[0]):
        row = crowd.row_of[slot]
        if row < 0:
            continue
        radius, reach = crowd.radius[row], lists.reach[slot]
        dx = crowd.position[slot, 0] - lists.reference[slot, 0]
        dy = crowd.position[slot, 1] - lists.reference[slot, 1]
        dz = crowd.position[slot, 2] - lists.reference[slot, 2]
        used = travel - lists.travel[slot]
        if dx != 0.0 or dy != 0.0 or dz != 0.0 or used > 0.0:
            used = (used + math.sqrt(dx * dx + dy * dy + dz * dz)) * CAREFUL + ROUNDING * reach + 1e-150
        if crowd.way[slot] > 0.0 or radius != lists.latest[slot]:
            lists.changed[slot] = True
            lists.latest[slot] = radius
        if not (reach >= 0.0 and radius + used <= reach and radius >= _MUCH_SMALLER * lists.radius[slot]):
            todo[count] = slot
            count += 1
    return count


@kernel
def _choose_reach(crowd, lists, travel, bound, todo, spread):
    """Set reach and reference of lists that will be filled; returns the sum of their margins.

    Lists filled at the same time would expire at the same time: if there are many, their margins are spread.
    """
    margins = 0.0
    for k in range(todo.size):
        slot = todo[k]
        radius = crowd.radius[crowd.row_of[slot]]
        use = crowd.way[slot] + bound
        if not use < math.inf:
            use = 2.0 * bound if bound < math.inf else 0.0
        margin = _LEAST_SHARE * radius
        if radius < math.inf:
            margin = max(margin_with_least_cost(radius, use, 3.0, FILL, TEST), margin)
            margins += margin
            if spread:
                margin *= 0.5 + 0.5 * (slot * 0.6180339887498949 % 1.0)
        lists.reach[slot] = radius + margin
        lists.radius[slot] = radius
        for axis in range(3):
            lists.reference[slot, axis] = crowd.position[slot, axis]
        lists.travel[slot] = travel
        lists.changed[slot] = True
    return margins


@inlined_kernel
def _fill(cells, crowd, lists, slot):
    x, y, z = crowd.position[slot, 0], crowd.position[slot, 1], crowd.position[slot, 2]
    reach = lists.reach[slot]
    limit = reach * reach
    start, room = lists.start[slot], lists.room[slot]
    found = 0
    x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, z, reach)
    for cz in range(z0, z1 + 1):
        for cy in range(y0, y1 + 1):
            first, last = cell_run(cells, x0, x1, cy, cz)
            for at in range(first, last, BLOCK):
                bits = near_bits(cells, at, last, x, y, z, limit)
                while bits != 0:
                    other = crowd.slot_at[at + trailing_zeros(bits)]
                    bits &= bits - _ONE
                    if other != slot:
                        if found < room:
                            lists.members[start + found] = other
                        found += 1
    lists.length[slot] = found


@kernel
def _fill_some(cells, crowd, lists, todo, first, last):
    for k in range(first, last):
        _fill(cells, crowd, lists, todo[k])


@parallel_kernel
def _fill_lists(cells, crowd, lists, todo, lanes):
    """List everybody within reach of the given slots. Lists that do not fit are cut off."""
    for lane in prange(lanes):
        one = np.int64(lane)
        _fill_some(cells, crowd, lists, todo, one * todo.size // lanes, (one + 1) * todo.size // lanes)


@kernel
def _make_rooms(lists, todo, used, short):
    """Give lists that do not fit new rooms behind the others; returns how many there are, and where the rooms end."""
    count = 0
    for k in range(todo.size):
        slot = todo[k]
        if lists.length[slot] > lists.room[slot]:
            lists.start[slot] = used
            lists.room[slot] = lists.length[slot] + lists.length[slot] // 2 + 8
            used += lists.room[slot]
            short[count] = slot
            count += 1
    return count, used


@kernel
def _lay_out(crowd, lists, start):
    """Write where the rooms would begin if they were in the order of places; returns where they would end."""
    total = 0
    for place in range(crowd.slot_at.shape[0]):
        slot = crowd.slot_at[place]
        start[slot] = total
        total += lists.room[slot]
    return total


@kernel
def _move_rooms(crowd, lists, start, members, near):
    """Copy all lists to new pools, where their rooms begin at `start`."""
    for place in range(crowd.slot_at.shape[0]):
        slot = crowd.slot_at[place]
        old, new = lists.start[slot], start[slot]
        if lists.length[slot] <= lists.room[slot] and lists.reach[slot] >= 0.0:
            for k in range(lists.length[slot]):
                members[new + k] = lists.members[old + k]
                near[new + k] = lists.near[old + k]


@inlined_kernel
def _test(crowd, lists, slot, row):
    position = crowd.position
    x, y, z = position[slot, 0], position[slot, 1], position[slot, 2]
    limit = crowd.radius[row] * crowd.radius[row]
    start = np.uint64(lists.start[slot])
    found = start
    for k in range(start, start + np.uint64(lists.length[slot])):
        other = np.uint64(lists.members[k])
        dx, dy, dz = position[other, 0] - x, position[other, 1] - y, position[other, 2] - z
        other_row = crowd.row_of[other]
        lists.near[found] = other_row
        found += np.uint64((dx * dx + dy * dy + dz * dz <= limit) & (other_row >= 0))
    lists.found[slot] = found - start
    lists.changed[slot] = True


@kernel
def _test_some(crowd, lists, everybody, first, last):
    for slot in range(first, last):
        if crowd.row_of[slot] >= 0 and (everybody or lists.changed[slot]):
            _test(crowd, lists, slot, np.int64(crowd.row_of[slot]))


@parallel_kernel
def _test_lists(crowd, lists, everybody):
    """Write the rows of those that are near, for everybody or for those whose neighbours may have changed."""
    count = crowd.row_of.shape[0]
    for chunk in prange((count + _PER_CHUNK - 1) // _PER_CHUNK):
        first = np.int64(chunk) * _PER_CHUNK
        _test_some(crowd, lists, everybody, first, min(first + _PER_CHUNK, count))


@kernel
def _sum_up(slots, found, indptr):
    total = 0
    indptr[0] = 0
    for row in range(slots.shape[0]):
        total += found[slots[row]]
        indptr[row + 1] = total
    return total


@inlined_kernel
def _copy(source, first, target, out, length, limit):
    """Copy a list. Whole blocks overrun, but not beyond `limit`; the source has room for a block behind its end."""
    if out + length + _COPY <= limit:
        for step in range(_ZERO, length, _COPY):
            copy_block(target, out + step, source, first + step)
    else:
        for step in range(length):
            target[out + step] = source[first + step]


@parallel_kernel
def _copy_near(slots, start, changed, near, before, known, indptr, indices):
    """Copy what is near to its place: lists that have changed from `near`, the others from where they were `known`."""
    for chunk in prange((slots.shape[0] + _PER_CHUNK - 1) // _PER_CHUNK):
        end = min((chunk + 1) * _PER_CHUNK, slots.shape[0])
        limit = np.uint64(indptr[end])
        for row in range(chunk * _PER_CHUNK, end):
            slot, out = slots[row], np.uint64(indptr[row])
            length = np.uint64(indptr[row + 1]) - out
            if changed[slot]:
                _copy(near, np.uint64(start[slot]), indices, out, length, limit)
            else:
                # In the order of memory, unlike the lists themselves.
                _copy(known, np.uint64(before[row]), indices, out, length, limit)
            changed[slot] = False


class NearLists:
    """The lists of all agents; the same near sets as by brute force, in every step.

    Each agent has a slot, which stays the same while rows change as others come and go.
    """

    def __init__(self) -> None:
        self.filled = 0  #: lists that the last update has filled
        self.announced = 0  #: agents that have announced themselves in the last update
        self._travel = 0.0
        self._margin = 0.0  #: the mean of those filled last [m]
        self._used = 0  #: where the rooms end
        self._slots = np.empty(0, dtype=np.int32)
        self._last = np.empty((0, 3))
        # What the last update has returned, and memory for the next.
        self._known = Csr(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32))
        self._spare = np.empty(0, dtype=np.int32)
        self._lists = _empty_lists(0)
        self._most, self._count = np.zeros(BUCKETS), np.zeros(BUCKETS, dtype=np.int64)

    def update(
        self, cells: CellList, position: Floats, slots: NDArray[np.int32], row_of: NDArray[np.int32], radius: Floats
    ) -> Csr:
        """Rows of the agents within `radius` of each row; those at exactly the radius count. Valid until the next call.

        `position` and `row_of` have an entry for each slot, `slots` and `radius` for each row. Arrays of slots must be
        other ones when rows have changed.
        """
        same_rows = slots is self._slots
        if not same_rows:
            self._follow_rows(slots, row_of)
        slot_at = slots[cells.order]
        crowd = Crowd(position, slots, row_of, slot_at, radius, np.empty(len(position)))
        measure(crowd, self._last, self._most, self._count)
        everybody = self._count_or_announce(cells, crowd)
        self._refill(cells, crowd)
        _test_lists(crowd, self._lists, everybody or not same_rows)
        self._last[:] = position
        self._last[row_of < 0] = np.nan
        return self._collect(slots)

    def _collect(self, slots: NDArray[np.int32]) -> Csr:
        """All lists, end to end, in the order of rows."""
        lists, known = self._lists, self._known
        indptr = np.empty(len(slots) + 1, dtype=np.int64)
        total = _sum_up(slots, lists.found, indptr)
        if total + COPY_WIDTH > len(self._spare):
            self._spare = np.empty(total + total // 4 + COPY_WIDTH, dtype=np.int32)
        _copy_near(slots, lists.start, lists.changed, lists.near, known.indptr, known.indices, indptr, self._spare)
        self._known, self._spare = Csr(indptr, self._spare), known.indices
        return Csr(indptr, self._known.indices[:total])

    def _follow_rows(self, slots: NDArray[np.int32], row_of: NDArray[np.int32]) -> None:
        """Make room for more slots, and forget those that are empty."""
        self._slots = slots
        known = len(self._last)
        if len(row_of) > known:
            grown = _empty_lists(len(row_of))
            for old, new in zip(self._lists[:-2], grown[:-2], strict=True):
                new[:known] = old
            self._lists = grown._replace(members=self._lists.members, near=self._lists.near)
            self._last = np.concatenate([self._last, np.full((len(row_of) - known, 3), np.nan)])
        away = row_of < 0
        self._lists.reach[away] = EXPIRED
        self._lists.room[away] = self._lists.length[away] = 0

    def _count_or_announce(self, cells: CellList, crowd: Crowd) -> bool:
        """Add the displacement of most to the travel and announce the others; whether anybody's neighbours may change.

        Otherwise `changed` says whose.
        """
        lists, count = self._lists, len(crowd.slots)
        bound, announced = choose_bound(self._most, self._count, count, self._margin)
        self._bound, self.announced = float(bound), int(announced)
        if bound == math.inf:
            lists.reach[:] = EXPIRED
            return True
        if bound > 0.0:
            # Rounded up: creeping must add up even after a long way.
            self._travel = math.nextafter(self._travel + self._bound, math.inf)
        jumped = False
        if announced:
            wide = np.empty(len(lists.reach), dtype=np.int32)
            wide_count, widest = wide_spans(lists, wide)
            announce(cells, crowd, self._last, self._travel, lists, bound, wide, wide_count, widest)
            jumped = bool(self._most[:-1].max() > widest)
        return jumped or self._bound > 0.0

    def _refill(self, cells: CellList, crowd: Crowd) -> None:
        """Fill the lists that have expired."""
        todo = np.empty(len(crowd.slots), dtype=np.int32)
        self.filled = int(_list_expired(crowd, self._lists, self._travel, todo))
        if self.filled == 0:
            return
        todo, short = todo[: self.filled], np.empty(self.filled, dtype=np.int32)
        spread = self.filled > _MANY * len(crowd.slots)
        margins = _choose_reach(crowd, self._lists, self._travel, self._bound, todo, spread)
        self._margin = margins / self.filled
        while len(todo):
            _fill_lists(cells, crowd, self._lists, todo, numba.get_num_threads())
            count, self._used = _make_rooms(self._lists, todo, self._used, short)
            if self._used > len(self._lists.members):
                self._move_to_new_pools(crowd)
            todo = short[:count].copy()

    def _move_to_new_pools(self, crowd: Crowd) -> None:
        """All rooms in the order of cells, so that testing goes through memory in order, and room for more behind."""
        old = self._lists
        start = np.zeros_like(old.start)
        self._used = _lay_out(crowd, old, start)
        members, near = (np.empty(self._used + self._used // 4 + 64, dtype=np.int32) for _ in range(2))
        _move_rooms(crowd, old, start, members, near)
        self._lists = old._replace(start=start, members=members, near=near)


def _empty_lists(slots: int) -> Lists:
    return Lists(
        start=np.zeros(slots, dtype=np.int64),
        room=np.zeros(slots, dtype=np.int64),
        length=np.zeros(slots, dtype=np.int64),
        found=np.zeros(slots, dtype=np.int64),
        reach=np.full(slots, EXPIRED),
        radius=np.zeros(slots),
        latest=np.zeros(slots),
        reference=np.zeros((slots, 3)),
        travel=np.zeros(slots),
        changed=np.ones(slots, dtype=np.bool_),
        members=np.empty(0, dtype=np.int32),
        near=np.empty(0, dtype=np.int32),
    )
