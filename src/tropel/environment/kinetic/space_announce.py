"""Who counts and who announces itself: how far agents have come, and adding the fast ones to the lists of others.

`space_lists` says why, and what the lists are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import BLOCK, cell_run, cell_window, near_bits
from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.simd import trailing_zeros

#: What filling and testing cost per entry, and what an announcement costs in entries filled, in any unit.
FILL, TEST, _ANNOUNCE = 10.0, 2.0, 3.0
EXPIRED = -1.0
#: Far more than rounding does to a sum of displacements, and to a comparison of squares.
CAREFUL, ROUNDING = 1.0 + 1e-9, 1e-12
#: Displacements by powers of two; the first bucket is for those at rest.
BUCKETS = 64
_LOWEST_EXPONENT = 1023 - 44
#: Spans above this multiple of the mean are looked at one by one.
_WIDE = 2.0
_ONE = np.uint64(1)


class Lists(NamedTuple):
    """The lists of all slots, each in a room of its own in one pool."""

    start: NDArray[np.int64]  #: (S,): where the room begins in both pools
    room: NDArray[np.int64]  #: (S,)
    length: NDArray[np.int64]  #: (S,): more than the room if the list does not fit
    found: NDArray[np.int64]  #: (S,): how many of those on the list are near
    reach: NDArray[np.float64]  #: (S,): radius and margin when the list was filled; below 0 if it has to be filled
    radius: NDArray[np.float64]  #: (S,): the radius that it was filled for
    latest: NDArray[np.float64]  #: (S,): the radius of the last update
    reference: NDArray[np.float64]  #: (S, 3): where the agent was when its list was filled
    travel: NDArray[np.float64]  #: (S,): how far the others had come by then
    changed: NDArray[np.bool_]  #: (S,): whether the neighbours may not be those of the last update
    members: NDArray[np.int32]  #: the pool of slots on lists
    near: NDArray[np.int32]  #: the pool of rows of those that are near


class Crowd(NamedTuple):
    """Where the agents are now."""

    position: NDArray[np.float64]  #: (S, 3)
    slots: NDArray[np.int32]  #: (N,): the slot of each row
    row_of: NDArray[np.int32]  #: (S,): the row of each slot, below 0 if nobody is there
    slot_at: NDArray[np.int32]  #: (N,): the slot of each place in the order of cells
    radius: NDArray[np.float64]  #: (N,)
    way: NDArray[np.float64]  #: (S,): how far it has come since the last update; infinite for newcomers


@kernel
def measure(crowd, last, most, count):
    """Measure how far everybody has come, and fill the buckets: the largest displacement and how many there are."""
    most[:] = 0.0
    count[:] = 0
    for slot in range(crowd.row_of.shape[0]):
        if crowd.row_of[slot] < 0:
            continue
        x, y, z = crowd.position[slot, 0], crowd.position[slot, 1], crowd.position[slot, 2]
        dx, dy, dz = x - last[slot, 0], y - last[slot, 1], z - last[slot, 2]
        bucket, way = 0, 0.0
        if dx != 0.0 or dy != 0.0 or dz != 0.0:  # True for NaN
            square = dx * dx + dy * dy + dz * dz
            bucket, way = BUCKETS - 1, math.inf
            if square < math.inf:
                # Tiny displacements have squares of zero.
                way = max(math.sqrt(square) * CAREFUL, 1e-150)
                bucket = min(max((np.float64(way).view(np.int64) >> 52) - _LOWEST_EXPONENT, 1), BUCKETS - 2)
        crowd.way[slot] = way
        count[bucket] += 1
        most[bucket] = max(most[bucket], way)


@kernel
def choose_bound(most, count, total, margin):
    """The displacement up to which agents count, with the least expected cost, and how many announce themselves."""
    best, least, announced = math.inf, math.inf, 0
    above = total
    bound = 0.0
    for bucket in range(BUCKETS):
        if count[bucket] == 0:
            continue
        above -= count[bucket]
        bound = max(bound, most[bucket])
        cost = above * FILL * _ANNOUNCE
        if bound > 0.0:
            cost += total * (TEST + FILL * min(bound / margin if margin > 0.0 else 1.0, 1.0))
        if cost < least:
            best, least, announced = bound, cost, above
    return best, announced


@kernel
def wide_spans(lists, wide):
    """Lists with a far wider span than others go to `wide`; returns how many, and the widest span of the rest."""
    total, valid = 0.0, 0
    for slot in range(lists.reach.shape[0]):
        if 0.0 <= lists.reach[slot] < math.inf:
            total += 2.0 * lists.reach[slot] - lists.radius[slot]
            valid += 1
    limit = _WIDE * total / max(valid, 1)
    count, widest = 0, 0.0
    for slot in range(lists.reach.shape[0]):
        if lists.reach[slot] >= 0.0:
            span = 2.0 * lists.reach[slot] - lists.radius[slot]
            if span <= limit:
                widest = max(widest, span)
            else:
                wide[count] = slot
                count += 1
    return count, widest


@inlined_kernel
def _square(ax, ay, az, bx, by, bz):
    dx, dy, dz = ax - bx, ay - by, az - bz
    return dx * dx + dy * dy + dz * dz


@inlined_kernel
def _announce_to(crowd, last, travel, lists, i, j):
    """Let i know that j has come or left."""
    if i == j or lists.reach[i] < 0.0:
        return
    x, y, z = crowd.position[j, 0], crowd.position[j, 1], crowd.position[j, 2]
    # The last place of i is where it is, unless it has moved, and then its neighbours are tested in any case.
    x_i, y_i, z_i = last[i, 0], last[i, 1], last[i, 2]
    limit = lists.latest[i] * lists.latest[i]
    is_near = _square(x, y, z, x_i, y_i, z_i) <= limit
    if is_near != (_square(last[j, 0], last[j, 1], last[j, 2], x_i, y_i, z_i) <= limit):
        lists.changed[i] = True
    x_i, y_i, z_i = lists.reference[i, 0], lists.reference[i, 1], lists.reference[i, 2]
    reach = lists.reach[i] * (1.0 + ROUNDING)
    if _square(x, y, z, x_i, y_i, z_i) <= reach * reach:
        # Whoever was inside of what is left of the reach is on the list already; others may be.
        inner = lists.reach[i] * (1.0 - ROUNDING) - (travel - lists.travel[i]) * CAREFUL
        if inner > 0.0 and _square(last[j, 0], last[j, 1], last[j, 2], x_i, y_i, z_i) <= inner * inner:
            return
        first = lists.start[i]
        end = first + lists.length[i]
        for k in range(first, end):
            if lists.members[k] == j:
                return
        if lists.length[i] < lists.room[i]:
            lists.members[end] = j
            lists.length[i] += 1
        else:
            lists.reach[i] = EXPIRED


@kernel
def announce(cells, crowd, last, travel, lists, bound, wide, wide_count, widest):
    """Add everybody who has come farther than `bound` to the lists whose reach they are in."""
    for row in range(crowd.slots.shape[0]):
        j = crowd.slots[row]
        if crowd.way[j] <= bound:
            continue
        x, y, z = crowd.position[j, 0], crowd.position[j, 1], crowd.position[j, 2]
        # Somebody with a valid list is at most its margin away from its reference. Those that have jumped farther than
        # a list is wide are looked for around their new place only; everybody's neighbours are tested then.
        span = widest * (1.0 + ROUNDING) + min(crowd.way[j], widest)
        x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, z, span)
        for cz in range(z0, z1 + 1):
            for cy in range(y0, y1 + 1):
                first, end = cell_run(cells, x0, x1, cy, cz)
                for at in range(first, end, BLOCK):
                    bits = near_bits(cells, at, end, x, y, z, span * span)
                    while bits != 0:
                        k = at + trailing_zeros(bits)
                        bits &= bits - _ONE
                        _announce_to(crowd, last, travel, lists, crowd.slot_at[k], j)
        for w in range(wide_count):
            _announce_to(crowd, last, travel, lists, wide[w], j)
