"""Near sets of a crowd in which few move: whoever moves finds its own near set anew, and enters or leaves the others.

Agents are kept in chains by cell, and an agent that moves looks at those in the cells around it. So a step takes time
for those that move, and next to none for those at rest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Ragged, are_equal
from tropel._kernels.cells import axis_cell, padded
from tropel._kernels.compile import inlined_kernel, kernel
from tropel.agents.state import Floats
from tropel.environment.kinetic.list_kernels import Lists, put_on, take_off

Rows = NDArray[np.int64]

#: If a larger share of the agents moves, it is faster to test lists that hold for many steps.
MOST_MOVING = 1 / 10
#: Agents see far if their radius is this many times the median; each of them is compared with every agent that moves.
FAR_SIGHTED, MOST_FAR_SIGHTED = 3.0, 1 / 32
#: Edge of a cell, as a share of the median radius.
_CELL = 0.5


class Chains(NamedTuple):
    """Agents by cell: the first in each cell, and after each agent the next one, -1 at the end."""

    low: NDArray[np.float64]  #: (3,): where the cells begin [m]
    inverse_cell: float
    shape: NDArray[np.int64]  #: (3,): cells along x, y and z; in 2D one along z
    first: NDArray[np.int32]  #: (cells,)
    following: NDArray[np.int32]  #: (N,)
    cell: NDArray[np.int64]  #: (N,): -1 for agents that are in none


def _new_chains(position: Floats, size: float) -> Chains:
    """Empty chains around these positions, with cells of about this size [m], but not many more cells than agents."""
    count, dim = position.shape
    low, wide, shape = np.zeros(3), np.zeros(3), np.ones(3, dtype=np.int64)
    if count:
        low[:dim] = np.nanmin(position, axis=0)
        wide[:dim] = np.nanmax(position, axis=0) - low[:dim]
    size = max(size, float(wide.max()) / (8.0 * count + 64.0), 1e-9)
    while np.prod(np.floor(wide / size) + 1.0) > 8.0 * count + 64.0:
        size *= 1.5
    shape = np.floor(wide / size).astype(np.int64) + 1
    return Chains(
        low=low,
        inverse_cell=1.0 / size,
        shape=shape,
        first=np.full(int(shape.prod()), -1, dtype=np.int32),
        following=np.full(count, -1, dtype=np.int32),
        cell=np.full(count, -1, dtype=np.int64),
    )


#: Columns of what is known of an agent, side by side in memory: coordinates (in 2D z is 0), then the square of its
#: radius, -1 if that is below zero and nan if its near set is left alone for now.
_X, _Y, _Z, _LIMIT, _COLUMNS = range(5)


@inlined_kernel
def _cell_along(chains, axis, coordinate):
    return axis_cell(coordinate, chains.low[axis], chains.inverse_cell, chains.shape[axis])


@kernel
def _chain(chains, spots, rows):
    """Put agents into the chains of the cells that they are in now, and take them out of others."""
    for n in range(rows.size):
        row = rows[n]
        x, y, z = spots[row, _X], spots[row, _Y], spots[row, _Z]
        layer = _cell_along(chains, 2, z) * chains.shape[1] + _cell_along(chains, 1, y)
        cell = layer * chains.shape[0] + _cell_along(chains, 0, x)
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
def list_moved(spots, position, moved):
    """List the rows that are elsewhere now; returns how many, and how far they went together."""
    count, total = 0, 0.0
    for row in range(position.shape[0]):
        same = spots[row, _X] == position[row, 0] and spots[row, _Y] == position[row, 1]
        if position.shape[1] == 3:
            same = same and spots[row, _Z] == position[row, 2]
        if not same:
            way2 = 0.0
            for axis in range(position.shape[1]):
                way2 += (position[row, axis] - spots[row, axis]) ** 2
            total += math.sqrt(way2) if way2 < math.inf else 0.0  # newcomers come from nowhere
            moved[count] = row
            count += 1
    return count, total


@inlined_kernel
def _away2(spots, q, x, y, z):
    """The square of the distance between an agent and a place [m²], rounded as on the grid."""
    dx, dy, dz = x - spots[q, _X], y - spots[q, _Y], z - spots[q, _Z]
    return dx * dx + dy * dy + dz * dz


@kernel
def _look_around(mover, was, beside, own_limit, reach, chains, spots, sets):
    """One that has moved, from `was`, finds its own near set, and enters and leaves those of others.

    It looks around where it is and, if it was `beside` that, around where it was. Returns false if there is no room.
    """
    fits = True
    x, y, z = spots[mover, _X], spots[mover, _Y], spots[mover, _Z]
    old_x, old_y, old_z = was[_X], was[_Y], was[_Z]
    x0, x1 = _cells_between(chains, 0, x, old_x if beside else x, reach)
    y0, y1 = _cells_between(chains, 1, y, old_y if beside else y, reach)
    z0, z1 = _cells_between(chains, 2, z, old_z if beside else z, reach)
    for layer in range(z0, z1 + 1):
        for line in range(y0, y1 + 1):
            begin = (layer * chains.shape[1] + line) * chains.shape[0]
            for cell in range(begin + x0, begin + x1 + 1):
                member = chains.first[np.uint64(cell)]
                while member >= 0:
                    q = np.uint64(member)
                    away2, limit = _away2(spots, q, x, y, z), spots[q, _LIMIT]
                    if away2 <= own_limit and member != mover:
                        fits &= put_on(sets, mover, member)
                    was_near = _away2(spots, q, old_x, old_y, old_z) <= limit
                    # Never so for those left alone, the agent itself among them.
                    if was_near != (away2 <= limit):
                        if was_near:
                            take_off(sets, member, np.int32(mover))
                        else:
                            fits &= put_on(sets, member, np.int32(mover))
                    member = chains.following[q]
    return fits


@kernel
def _leave(mover, was, reach, chains, spots, sets):
    """One that has jumped leaves the near sets around the place where it was."""
    x0, x1 = _cells_between(chains, 0, was[_X], was[_X], reach)
    y0, y1 = _cells_between(chains, 1, was[_Y], was[_Y], reach)
    z0, z1 = _cells_between(chains, 2, was[_Z], was[_Z], reach)
    for layer in range(z0, z1 + 1):
        for line in range(y0, y1 + 1):
            begin = (layer * chains.shape[1] + line) * chains.shape[0]
            for cell in range(begin + x0, begin + x1 + 1):
                q = chains.first[cell]
                while q >= 0:
                    was_near = _away2(spots, q, was[_X], was[_Y], was[_Z]) <= spots[q, _LIMIT]
                    away2 = _away2(spots, q, spots[mover, _X], spots[mover, _Y], spots[mover, _Z])
                    if was_near and not away2 <= spots[q, _LIMIT]:
                        take_off(sets, q, np.int32(mover))
                    q = chains.following[q]


@kernel
def follow_moves(moved, was, chains, spots, radius, limit, widest, far_sighted, sets):
    """Keep all near sets up to date after these rows have moved; false if there is no room for them.

    `was` has what was known of these rows before. The limits of rows whose near sets others leave alone, because they
    find their own or see far, are nan among the spots; `limit` has the true ones.
    """
    fits = True
    for n in range(moved.size):
        mover = moved[n]
        sets.length[mover] = 0
        jump = 0.0
        for axis in range(3):
            jump = max(jump, abs(spots[mover, axis] - was[n, axis]))
        # Newcomers come from nowhere (nan).
        is_new = was[n, _X] != was[n, _X]
        beside = not is_new and jump * chains.inverse_cell <= 2.0
        if not beside and not is_new:
            _leave(mover, was[n], padded(widest), chains, spots, sets)
        reach = padded(max(radius[mover], widest))
        fits &= _look_around(mover, was[n], beside, limit[mover], reach, chains, spots, sets)
        for k in range(far_sighted.size):
            q = far_sighted[k]
            away2 = _away2(spots, q, spots[mover, _X], spots[mover, _Y], spots[mover, _Z])
            was_near = _away2(spots, q, was[n, _X], was[n, _Y], was[n, _Z]) <= limit[q]
            if was_near and not away2 <= limit[q]:
                take_off(sets, q, np.int32(mover))
            elif away2 <= limit[q] and not was_near:
                fits &= put_on(sets, q, np.int32(mover))
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
        self._sets = sets
        self._usual = usual
        self._spots = np.zeros((len(position), _COLUMNS))
        self._spots[:, : position.shape[1]] = position
        self._set_radius(radius)
        self._chain_all()
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
        self._spots[:, _LIMIT] = self._shown_limit

    def _chain_all(self) -> None:
        self._chains = _new_chains(self._spots[:, :_LIMIT], _CELL * self._usual)
        _chain(self._chains, self._spots, np.flatnonzero(~np.isnan(self._spots[:, _X])))

    @property
    def sets(self) -> Ragged:
        return Ragged(self._sets.start, self._sets.length, self._sets.pool)

    def follow(self, position: Floats, radius: Floats) -> bool:
        """Agents are here now; false if too many have moved, or there is no room, and all must be found anew."""
        count, spots = len(position), self._spots
        moved = np.empty(count, dtype=np.int64)
        movers, way = list_moved(spots, position, moved)
        moved = moved[:movers]
        self.mean_move = way / movers if movers else self.mean_move
        if not are_equal(radius, self.radius):
            moved = np.union1d(moved, np.flatnonzero(radius != self.radius))
            self._set_radius(radius)
        self.moved = len(moved)
        if len(moved) > MOST_MOVING * count:
            return False
        was = spots[moved]
        spots[moved, : position.shape[1]] = position[moved]
        _chain(self._chains, spots, moved)
        spots[moved, _LIMIT] = np.nan
        still = self._far_sighted
        if len(still):
            still = np.setdiff1d(still, moved, assume_unique=True)
        fits = follow_moves(moved, was, self._chains, spots, self.radius, self._limit, self._widest, still, self._sets)
        spots[moved, _LIMIT] = self._shown_limit[moved]
        return bool(fits)

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
        spots, radius = np.full((count, _COLUMNS), np.nan), np.zeros(count)
        spots[rows], radius[rows] = self._spots[stays], self.radius[stays]
        spots[newcomers, _Z] = 0.0
        self._spots = spots
        self._set_radius(radius)
        self._chain_all()
        return True
