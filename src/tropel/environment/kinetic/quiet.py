"""Near sets of a crowd in which few move: whoever moves finds its own near set anew, and enters or leaves the others.

Agents are kept in chains by cell, and an agent that moves looks at those in the cells around it. So a step takes time
for those that move, and next to none for those at rest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Ragged
from tropel._kernels.cells import axis_cell, padded
from tropel._kernels.compile import inlined_kernel, kernel
from tropel.agents.state import Floats
from tropel.environment.kinetic.list_kernels import Lists, apart2, put_on, take_off

Rows = NDArray[np.int64]

#: If a larger share of the agents moves, it is faster to test lists that hold for many steps.
MOST_MOVING = 1 / 10
#: Agents see far if their radius is this many times the median; each of them is compared with every agent that moves.
_FAR_SIGHTED, _MOST_FAR_SIGHTED = 3.0, 1 / 32


class Chains(NamedTuple):
    """Agents by cell: the first in each cell, and after each agent the next one, -1 at the end."""

    low: NDArray[np.float64]  #: (3,): where the cells begin [m]
    inverse_cell: float
    shape: NDArray[np.int64]  #: (3,): cells along x, y and z; in 2D one along z
    first: NDArray[np.int32]  #: (cells,)
    following: NDArray[np.int32]  #: (N,)
    cell: NDArray[np.int64]  #: (N,): -1 for agents that are in none


def _new_chains(position: Floats, size: float) -> Chains:
    """Chains for agents at these positions, with cells of about this size [m], but not many more cells than agents."""
    count, dim = position.shape
    low, wide, shape = np.zeros(3), np.zeros(3), np.ones(3, dtype=np.int64)
    if count:
        low[:dim] = np.nanmin(position, axis=0)
        wide[:dim] = np.nanmax(position, axis=0) - low[:dim]
    size = max(size, float(wide.max()) / (4.0 * count + 64.0), 1e-9)
    while np.prod(np.floor(wide / size) + 1.0) > 4.0 * count + 64.0:
        size *= 1.5
    shape = np.floor(wide / size).astype(np.int64) + 1
    chains = Chains(
        low=low,
        inverse_cell=1.0 / size,
        shape=shape,
        first=np.full(int(shape.prod()), -1, dtype=np.int32),
        following=np.full(count, -1, dtype=np.int32),
        cell=np.full(count, -1, dtype=np.int64),
    )
    _chain(chains, position, np.flatnonzero(~np.isnan(position).any(axis=1)))
    return chains


@inlined_kernel
def _cell_along(chains, axis, coordinate):
    return axis_cell(coordinate, chains.low[axis], chains.inverse_cell, chains.shape[axis])


@kernel
def _chain(chains, position, rows):
    """Put agents into the chains of the cells that they are in now, and take them out of others."""
    for n in range(rows.size):
        row = rows[n]
        cell = _cell_along(chains, 1, position[row, 1]) * chains.shape[0] + _cell_along(chains, 0, position[row, 0])
        if position.shape[1] == 3:
            cell += _cell_along(chains, 2, position[row, 2]) * chains.shape[0] * chains.shape[1]
        old = chains.cell[row]
        if cell == old:
            continue
        if old >= 0:
            other = chains.first[old]
            if other == row:
                chains.first[old] = chains.following[row]
            else:
                while chains.following[other] != row:
                    other = chains.following[other]
                chains.following[other] = chains.following[row]
        chains.following[row], chains.first[cell], chains.cell[row] = chains.first[cell], row, cell


@inlined_kernel
def _cells_between(chains, axis, one, other, reach):
    """First and last cell along an axis that may have agents within reach of two coordinates."""
    return _cell_along(chains, axis, min(one, other) - reach), _cell_along(chains, axis, max(one, other) + reach)


@kernel
def list_moved(here, position, moved):
    """List the rows that are elsewhere now; returns how many, and how far they went together."""
    count, total = 0, 0.0
    for row in range(position.shape[0]):
        same = here[row, 0] == position[row, 0] and here[row, 1] == position[row, 1]
        if position.shape[1] == 3:
            same = same and here[row, 2] == position[row, 2]
        if not same:
            way = math.sqrt(apart2(here, row, position, row))
            total += way if way < math.inf else 0.0  # newcomers come from nowhere
            moved[count] = row
            count += 1
    return count, total


@inlined_kernel
def _enter_or_leave(mover, n, q, was, here, limit, sets):
    """The near set of q with or without somebody that has moved; false if there is no room."""
    was_near = apart2(was, n, here, q) <= limit[q]
    is_near = apart2(here, mover, here, q) <= limit[q]
    if was_near == is_near:
        return True
    if is_near:
        return put_on(sets, q, np.int32(mover))
    take_off(sets, q, np.int32(mover))
    return True


@kernel
def _look_around(n, mover, was, beside, chains, here, radius, limit, widest, is_apart, sets):
    """One that has moved, from `was`, finds its own near set, and enters and leaves those of others.

    It looks around where it is and, if it was `beside` that, around where it was. Those that are apart are left alone:
    they move too, or see far. Returns false if there is no room.
    """
    reach = padded(max(radius[mover], widest))
    fits = True
    z0 = z1 = 0
    x0, x1 = _cells_between(chains, 0, here[mover, 0], was[n, 0] if beside else here[mover, 0], reach)
    y0, y1 = _cells_between(chains, 1, here[mover, 1], was[n, 1] if beside else here[mover, 1], reach)
    if here.shape[1] == 3:
        z0, z1 = _cells_between(chains, 2, here[mover, 2], was[n, 2] if beside else here[mover, 2], reach)
    for z in range(z0, z1 + 1):
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                q = np.int64(chains.first[(z * chains.shape[1] + y) * chains.shape[0] + x])
                while q >= 0:
                    if q != mover:
                        if apart2(here, mover, here, q) <= limit[mover]:
                            fits &= put_on(sets, mover, np.int32(q))
                        if not is_apart[q]:
                            fits &= _enter_or_leave(mover, n, q, was, here, limit, sets)
                    q = np.int64(chains.following[q])
    return fits


@kernel
def _leave(n, mover, was, chains, here, limit, widest, is_apart, sets):
    """One that has jumped leaves the near sets around the place where it was."""
    reach = padded(widest)
    z0 = z1 = 0
    x0, x1 = _cells_between(chains, 0, was[n, 0], was[n, 0], reach)
    y0, y1 = _cells_between(chains, 1, was[n, 1], was[n, 1], reach)
    if here.shape[1] == 3:
        z0, z1 = _cells_between(chains, 2, was[n, 2], was[n, 2], reach)
    for z in range(z0, z1 + 1):
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                q = np.int64(chains.first[(z * chains.shape[1] + y) * chains.shape[0] + x])
                while q >= 0:
                    if q != mover and not is_apart[q] and not apart2(here, mover, here, q) <= limit[q]:
                        take_off(sets, q, np.int32(mover))
                    q = np.int64(chains.following[q])


@kernel
def follow_moves(moved, was, chains, here, radius, limit, widest, far_sighted, is_apart, is_moving, sets):
    """Keep all near sets up to date after these rows have moved; false if there is no room for them."""
    fits = True
    for n in range(moved.size):
        mover = moved[n]
        sets.length[mover] = 0
        jump = 0.0
        for axis in range(here.shape[1]):
            jump = max(jump, abs(here[mover, axis] - was[n, axis]))
        # Newcomers come from nowhere (nan).
        is_new = was[n, 0] != was[n, 0]
        beside = not is_new and jump * chains.inverse_cell <= 1.0
        if not beside and not is_new:
            _leave(n, mover, was, chains, here, limit, widest, is_apart, sets)
        fits &= _look_around(n, mover, was, beside, chains, here, radius, limit, widest, is_apart, sets)
        for k in range(far_sighted.size):
            if not is_moving[far_sighted[k]]:
                fits &= _enter_or_leave(mover, n, far_sighted[k], was, here, limit, sets)
    return fits


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
        self._here = position
        self._sets = sets
        self._usual = usual
        self._set_radius(radius)
        self._chains = _new_chains(position, usual)
        self._is_moving = np.zeros(len(position), dtype=np.bool_)
        self.moved = 0  #: how many moved in the last step
        self.mean_move = 0.0  #: how far, on average [m]

    def _set_radius(self, radius: Floats) -> None:
        self.radius = np.array(radius)
        self._limit = np.where(radius >= 0.0, radius * radius, -1.0)
        is_far = radius > _FAR_SIGHTED * self._usual
        if np.count_nonzero(is_far) > _MOST_FAR_SIGHTED * len(radius):
            is_far[:] = False
        self._is_far, self._far_sighted = is_far, np.flatnonzero(is_far)
        self._widest = float(radius[~is_far].max(initial=0.0))

    @property
    def sets(self) -> Ragged:
        return Ragged(self._sets.start, self._sets.length, self._sets.pool)

    def follow(self, position: Floats, radius: Floats) -> bool:
        """Agents are here now; false if too many have moved, or there is no room, and all must be found anew."""
        count = len(position)
        moved = np.empty(count, dtype=np.int64)
        movers, way = list_moved(self._here, position, moved)
        moved = moved[:movers]
        self.mean_move = way / movers if movers else self.mean_move
        if not np.array_equal(radius, self.radius):
            moved = np.union1d(moved, np.flatnonzero(radius != self.radius))
            self._set_radius(radius)
        self.moved = len(moved)
        if len(moved) > MOST_MOVING * count:
            return False
        was = self._here[moved]
        self._here[moved] = position[moved]
        _chain(self._chains, self._here, moved)
        self._is_moving[moved] = True
        is_apart = self._is_moving
        if len(self._far_sighted):
            is_apart = is_apart | self._is_far
        fits = follow_moves(moved, was, self._chains, self._here, self.radius, self._limit, self._widest,
                            self._far_sighted, is_apart, self._is_moving, self._sets)  # fmt: skip
        self._is_moving[moved] = False
        return bool(fits)

    def come_and_go(self, new_of_old: NDArray[np.int64], count: int) -> bool:
        """Agents have other rows now, -1 for those that are gone; false if there is no room for the new ones."""
        old, stays = self._sets, new_of_old >= 0
        _renumber(new_of_old.astype(np.int32), old)
        rows = new_of_old[stays]
        fresh = np.ones(count, dtype=np.bool_)
        fresh[rows] = False
        newcomers = np.flatnonzero(fresh)
        room = int(old.length.mean()) + 8 if len(old.length) else 8
        end = int(old.used[0]) + room * len(newcomers)
        if end > len(old.pool) or not len(rows):
            return False
        start, rooms, length = (np.zeros(count, dtype=np.int64) for _ in range(3))
        for column, known in ((start, old.start), (rooms, old.room), (length, old.length)):
            column[rows] = known[stays]
        start[newcomers] = old.used[0] + room * np.arange(len(newcomers))
        rooms[newcomers] = room
        old.used[0] = end
        self._sets = Lists(start, rooms, length, old.used, old.pool)
        here, radius = np.full((count, self._here.shape[1]), np.nan), np.zeros(count)
        here[rows], radius[rows] = self._here[stays], self.radius[stays]
        self._here = here
        self._set_radius(radius)
        self._chains = _new_chains(here, self._usual)
        self._is_moving = np.zeros(count, dtype=np.bool_)
        return True
