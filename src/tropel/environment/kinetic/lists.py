"""Near lists that hold for many steps: candidates for who is within a radius of whom, in the plane and in space.

Every agent has a reference position and stays within `leash` of it. The list of p has every agent whose reference is
within radius + 2 leash of p's own reference, so nobody else can be within the radius of p. Those whose references are
within radius - 2 leash are certain to be near and come first; only the others are tested, at the agents' true positions
and exactly as a grid does, so that the near sets are the same.

An agent that leaves its leash gets a new reference where it is, a new list, and a new place on the lists of those
around it. If many do so at once, it is faster to fill all lists anew from the engine's cells. If few agents move at
all, only pairs with one of them can have changed, and the other near sets are those of the last step.

A long leash makes lists long, a short one makes them expire often. Filling takes A per entry and testing B; per agent
and step that is A (r + w)² · 2 move / w + B · 4 r w with w = 2 leash, in units of π times the density, and least at
the w of `best_leash`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Near
from tropel.environment.grid import NeighbourLists
from tropel.environment.kinetic.list_kernels import (
    Bounds,
    Lists,
    copy_all,
    enter_all,
    find_near,
    find_near_of,
    look_for_moves,
    mark_changes,
    patch,
    renew,
    renumber,
    sum_lengths,
    sum_patched,
)

Rows = NDArray[np.int64]
#: Rows of all agents within a distance [m] of each of the given rows, one distance per row; more of them may be listed.
Around = Callable[[Rows, Floats], Csr]

#: What filling and testing take per entry, in any unit.
_FILL, _TEST = 8.0, 2.2
#: A leash is at least this share of the radius, and this long [m].
_LEAST_SHARE, _LEAST = 1e-3, 1e-5
#: Lists are filled anew if a larger share of the agents needs a new one.
_MANY = 1 / 12
#: If a larger share of the agents has moved, all near sets are found anew from the lists.
_BUSY = 1 / 8
#: Lists are filled anew if the best leash is this many times longer or shorter than the one they have.
_UNFIT = 4.0
#: Agents see far if their radius is this many times the median; each of them is compared with every agent that moves.
_FAR_SIGHTED, _MOST_FAR_SIGHTED = 3.0, 1 / 32

def best_leash(radius: float, move: float) -> float:
    """The leash with the least cost for such a radius, for agents that move this far in a step [m]."""
    wide = math.sqrt(2.0 * _FILL * move * radius / (4.0 * _TEST + 2.0 * _FILL * move / max(radius, 1e-300)))
    return max(0.5 * wide, _LEAST_SHARE * radius, _LEAST)


@dataclass(frozen=True, kw_only=True)
class Work:
    """What the lists of a step took."""

    filled: bool = False  #: all lists were filled anew, from the engine's cells
    renewed: int = 0  #: agents that got a new reference and list
    found: int = 0  #: near sets that were found anew from the lists


class NearLists:
    """Keeps near lists for one radius per agent; the same near sets as by brute force, in every step."""

    def __init__(self) -> None:
        self.work = Work()
        self.leash = 0.0
        self._builder = NeighbourLists()
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._ids = np.empty(0, dtype=np.int64)
        self._lists: Lists | None = None
        self._csr: Csr | None = None
        self._spare, self._used = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
        self._move = 0.0

    def near(self, near: Near, radius: Floats, around: Around) -> Csr:
        """Rows of those within the radius of each row, in any order; valid until the next call."""
        state = near.state
        self.work = Work()
        if not np.array_equal(state.id, self._ids):
            self._come_and_go(state)
        if self._lists is None:
            self._fill(near, radius)
            return self._find_all(state, radius)
        position, count = state.position, len(state)
        moved, loose = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        movers, leavers, total = look_for_moves(position, self._before, self._reference, self.leash, moved, loose)
        moved, loose = moved[:movers], loose[:leavers]
        if movers:
            self._move = total / movers
        if (radius != self._radius).any():
            other = np.flatnonzero(radius != self._radius)
            moved, loose = np.union1d(moved, other), np.union1d(loose, other)
            self._radius[:] = radius
            self._set_bounds()
        best = best_leash(self._usual, self._move)
        unfit = (len(loose) and best > _UNFIT * self.leash) or (movers > _BUSY * count and self.leash > _UNFIT * best)
        if unfit or len(loose) > _MANY * count or not self._renew_some(state, loose, around):
            self._fill(near, radius)
            return self._find_all(state, radius)
        if len(moved) > _BUSY * count or self._csr is None:
            return self._find_all(state, radius)
        return self._find_changes(state, radius, moved, loose, around) if len(moved) else self._csr

    # Filling lists ----------------------------------------------------------------------------------------------

    def _fill(self, near: Near, radius: Floats) -> None:
        """Fill all lists anew, from the engine's cells."""
        state, count = near.state, len(near.state)
        self._usual = float(np.median(radius)) if count else 1.0
        self.leash = best_leash(self._usual, self._move)
        self._reference = state.position.copy()
        self._radius = np.array(radius)
        self._slack = 1e-9 + 1e-12 * float(np.abs(state.position).max(initial=0.0))
        self._set_bounds()
        cells = near.cells.sorting.sorted
        reach = self._radius + 2.0 * self.leash + self._slack
        found = self._builder.build(cells._replace(sense_radius=reach[cells.order]))
        self._make_rooms(np.diff(found.indptr))
        enter_all(found.indptr, found.indices, self._reference, self._bounds, self._lists, self._hits)
        self._is_renewed = np.zeros(count, dtype=np.uint8)
        self.work = Work(filled=True)

    def _make_rooms(self, lengths: NDArray[np.int64]) -> None:
        self._lists = _rooms(lengths)
        self._hits = np.empty_like(self._lists.pool)

    def _set_bounds(self) -> None:
        wide = 2.0 * self.leash + self._slack
        within, beyond = self._radius - wide, self._radius + wide
        self._bounds = Bounds(np.where(within > 0.0, within * within, -1.0), beyond * beyond)
        far = np.flatnonzero(self._radius > _FAR_SIGHTED * self._usual)
        if len(far) > _MOST_FAR_SIGHTED * len(self._radius):
            far = far[:0]
        self._far_sighted = far
        others = np.ones(len(self._radius), dtype=np.bool_)
        others[far] = False
        self._widest = float(self._radius[others].max(initial=0.0))  #: radius of those who do not see far

    def _renew_some(self, state: AgentState, rows: Rows, around: Around) -> bool:
        """New references and lists for some rows; false if all lists must be filled anew."""
        assert self._lists is not None
        if not len(rows):
            self._close = Csr(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32))
            return True
        jump = np.sqrt(((state.position[rows] - self._reference[rows]) ** 2).sum(axis=1))
        jump[np.isnan(jump)] = 0.0  # newcomers
        reach = np.maximum(self._radius[rows], self._widest)
        # Whoever comes from farther away leaves lists behind that nobody would look for.
        if (jump > 4.0 * self.leash + self._widest).any():
            return False
        self._close = around(rows, reach + 5.0 * self.leash + jump + self._slack)
        self.work = Work(renewed=len(rows))
        fits = renew(rows, *self._close, self._far_sighted, state.position, self._reference, self._bounds,
                      self._is_renewed, self._lists)  # fmt: skip
        return bool(fits)

    def _come_and_go(self, state: AgentState) -> None:
        """Agents have other rows now, some are new and some are gone."""
        old, lists = self._ids, self._lists
        self._ids = state.id.copy()
        self._csr = None
        if lists is None or len(old) == 0:
            self._lists = None
            return
        new_of_old = state.row_of(old)
        old_row = np.full(len(state), -1, dtype=np.int64)
        stayed = new_of_old >= 0
        old_row[new_of_old[stayed]] = np.flatnonzero(stayed)
        if (old_row < 0).sum() > _MANY * len(state):
            self._lists = None
            return
        lengths = np.where(old_row >= 0, lists.length[old_row], int(lists.length.mean()) + 8)
        self._make_rooms(lengths)
        renumber(old_row, new_of_old.astype(np.int32), lists, self._lists)
        missing = old_row < 0
        for name in ("_reference", "_before"):
            column = getattr(self, name)[old_row]
            column[missing] = np.nan
            setattr(self, name, column)
        self._radius = self._radius[old_row]
        self._radius[missing] = np.nan  # differs from any radius, so that they get lists
        self._is_renewed = np.zeros(len(state), dtype=np.uint8)

    # Near sets --------------------------------------------------------------------------------------------------

    def _find_all(self, state: AgentState, radius: Floats) -> Csr:
        """Find all near sets from the lists."""
        lists = self._lists
        assert lists is not None
        count = np.empty(len(state), dtype=np.int64)
        find_near(state.position, radius, lists, self._hits, count)
        indptr = np.zeros(len(state) + 1, dtype=np.int64)
        indices = self._room_for(sum_lengths(lists.certain, count, indptr))
        copy_all(lists, self._hits, indptr, indices)
        return self._done(state, Csr(indptr, indices), len(state))

    def _find_changes(self, state: AgentState, radius: Floats, moved: Rows, loose: Rows, around: Around) -> Csr:
        """Find the near sets that may have changed, and keep the others."""
        lists, last = self._lists, self._csr
        assert lists is not None
        assert last is not None
        is_changed = np.zeros(len(state), dtype=np.uint8)
        is_changed[loose] = 1
        moved = np.setdiff1d(moved, loose, assume_unique=True)
        # The list of an agent has all whose lists it may be on, unless they have a larger radius.
        short = self._radius[moved] < self._widest
        wide = np.full(np.count_nonzero(short), self._widest + 4.0 * self.leash + self._slack)
        own = Csr(np.zeros(np.count_nonzero(~short) + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
        for rows, close in ((loose, self._close), (moved[short], around(moved[short], wide)), (moved[~short], own)):
            mark_changes(rows, *close, self._far_sighted, state.position, self._before, radius, lists, is_changed)
        changed = np.flatnonzero(is_changed)
        count = np.zeros(len(state), dtype=np.int64)
        find_near_of(changed, state.position, radius, lists, self._hits, count)
        indptr = np.zeros(len(state) + 1, dtype=np.int64)
        indices = self._room_for(sum_patched(is_changed, lists.certain, count, last.indptr, indptr))
        patch(is_changed, lists, self._hits, *last, indptr, indices)
        return self._done(state, Csr(indptr, indices), len(changed))

    def _done(self, state: AgentState, found: Csr, changed: int) -> Csr:
        self._csr = found
        self._before = state.position.copy()
        self.work = replace(self.work, found=changed)
        return found

    def _room_for(self, size: int) -> NDArray[np.int32]:
        """Room that the last near sets do not use."""
        if size > len(self._spare):
            self._spare = np.empty(size + size // 8, dtype=np.int32)
        room, self._spare = self._spare, self._used
        self._used = room
        return room[:size]


def _rooms(lengths: NDArray[np.int64]) -> Lists:
    """Rooms a little larger than the lists will be, in a new pool."""
    room = lengths + lengths // 4 + 8
    start = np.zeros(len(room), dtype=np.int64)
    np.cumsum(room[:-1], out=start[1:])
    none = np.zeros(len(room), dtype=np.int64)
    return Lists(start, room, none, none.copy(), np.empty(int(room.sum()), dtype=np.int32))
