"""Near lists that hold for many steps: candidates for who is within a radius of whom, in the plane and in space.

Every agent has a reference position and stays within `leash` of it. The list of p has every agent whose reference is
within radius + 2 leash of p's own reference, so nobody else can be within the radius of p. Those whose references are
within radius - 2 leash are certain to be near and come first; only the others are tested, at the agents' true positions
and exactly as a grid does, so that the near sets are the same.

An agent that leaves its leash gets a new reference where it is, a new list, and a new place on the lists of those
around it. If many do so at once, it is faster to fill all lists anew from the engine's cells. If few agents move at
all, no lists are needed: those that move keep the near sets up to date (`quiet.py`).

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

from tropel._kernels.arrays import Csr, Ragged, are_equal
from tropel._kernels.cells import CellList
from tropel.agents.state import AgentState, Floats
from tropel.environment.grid import NeighbourLists
from tropel.environment.kinetic.list_kernels import (
    Agents,
    Lists,
    drop_gone,
    enter_all,
    find_near,
    lay_out,
    look_for_moves,
    measure_crowd,
    new_agents,
    renew,
    set_radii,
    take_slots,
)
from tropel.environment.kinetic.quiet import FAR_SIGHTED, MOST_FAR_SIGHTED, MOST_MOVING, QuietSets

Slots = NDArray[np.int64]
#: Rows of all agents within a distance [m] of each of the given rows, one distance per row; it may list more.
Around = Callable[[NDArray[np.int32], Floats], Csr]

#: What filling and testing take per entry, in any unit.
_FILL, _TEST = 8.0, 2.2
#: A leash is at least this share of the radius, and this long [m].
_LEAST_SHARE, _LEAST = 1e-3, 1e-5
#: Lists are filled anew if a larger share of the agents needs a new one.
_MANY = 1 / 12
#: If a smaller share of the agents moves, the crowd is quiet, until clearly more do.
_QUIET = 0.6 * MOST_MOVING
#: Lists are filled anew if the best leash is this many times longer or shorter than the one they have.
_UNFIT = 4.0


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
        self._ids = np.empty(0, dtype=np.int64)
        self._compared: NDArray[np.int64] | None = None  #: stands for the same ids
        self._is_filled = False
        self._agents: Agents
        self._radius: Floats  #: by row
        self._sets: Ragged | None = None
        self._quiet: QuietSets | None = None  #: instead of lists, if few move
        self._pools = [np.empty(0, dtype=np.int32) for _ in range(2)]
        self._where = np.empty((2, 0), dtype=np.int64)  #: start and length of each near set, by row
        self._move = 0.0  #: mean of those that move [m]

    def near(
        self,
        state: AgentState,
        position: Floats,
        cells: CellList,
        radius: Floats,
        around: Around,
        ids: NDArray[np.int64] | None = None,
    ) -> Ragged:
        """Rows of those within the radius of each row, in any order; valid until the next call.

        `cells` has all agents, sorted by these positions. Nobody is within a radius below zero. `ids` may be an array
        that stays the same one while nobody comes or goes: that saves comparing all ids.
        """
        count = len(state)
        self.work = Work()
        if ids is None or ids is not self._compared:
            if not are_equal(state.id, self._ids):
                self._come_and_go(state)
            self._compared = ids
        if self._quiet is not None:
            return self._follow_few(self._quiet, state, position, cells, radius)
        if not self._is_filled:
            return self._fill(state, position, cells, radius)
        agents = self._agents = self._agents._replace(here=self._agents.before, before=self._agents.here)
        loose = np.empty(count + 1, dtype=np.int64)
        movers, leavers, samples, total = look_for_moves(agents, position, self.leash, loose)
        loose = loose[:leavers]
        if samples:
            self._move = total / samples
        if self._sets is not None and 0 < movers < _QUIET * count:
            return self._follow_few(self._fall_quiet(self._sets), state, position, cells, radius)
        if not are_equal(radius, self._radius):
            loose = np.union1d(loose, self._slot_of[radius != self._radius])
            self._set_radius(radius)
        best = best_leash(self._usual, self._move)
        unfit = (len(loose) and best > _UNFIT * self.leash) or (movers and self.leash > _UNFIT * best)
        if unfit or len(loose) > _MANY * count or not self._renew_some(loose, around):
            return self._fill(state, position, cells, radius)
        return self._sets if self._sets is not None and not movers and not len(loose) else self._find_all()

    def on_list(self, row: int) -> NDArray[np.int32]:
        """The rows on the list of a row."""
        if self._quiet is not None:
            return self._quiet.sets.of(row)
        slot = self._slot_of[row]
        certain, maybe = (
            part.pool[part.start[slot] : part.start[slot] + part.length[slot]] for part in (self._certain, self._maybe)
        )
        return np.concatenate([certain, self._agents.row[maybe]])

    def complete_to(self) -> Floats:
        """How far the list of each row is complete now [m]; not less than its radius."""
        if self._quiet is not None:
            return self._quiet.radius
        agents = self._agents
        away = np.sqrt(((agents.here - agents.reference) ** 2).sum(axis=1))
        return np.asarray((agents.radius + self.leash - away)[self._slot_of])

    # Filling lists ----------------------------------------------------------------------------------------------

    def _fill(self, state: AgentState, position: Floats, cells: CellList, radius: Floats) -> Ragged:
        """Fill all lists anew, from cells, with slots in their order."""
        count = len(state)
        wide, away, least, largest = measure_crowd(position, radius)
        usual = largest if least == largest else float(np.median(radius[radius >= 0.0])) if largest >= 0.0 else 1.0
        # Nobody is farther away than the crowd is wide, whatever the radii.
        self._usual = min(usual, 1.0 + wide)
        self.leash = best_leash(self._usual, self._move)
        self._slack = 1e-9 + 1e-12 * away
        # Some slots are left for newcomers.
        slots = count + count // 32 + 16
        self._agents, self._slot_of = new_agents(slots, position.shape[1]), np.empty(count, dtype=np.int32)
        take_slots(cells.order, position, self._agents, self._slot_of)
        self._set_radius(radius)
        reach = np.maximum(self._agents.radius[:count], 0.0) + 2.0 * self.leash + self._slack
        # As slots are places in the order of the cells, the lists are those of places instead of rows.
        places, level = np.arange(count, dtype=np.uint32), np.ascontiguousarray(cells.level[cells.order])
        found = self._builder.build(cells._replace(sense_radius=reach, order=places, level=level))
        self._make_lists(slots, count, found)
        self._is_renewed = np.zeros(slots, dtype=np.uint8)
        self._ids = state.id.copy()
        self.work = Work(filled=True)
        return self._find_all()

    def _make_lists(self, slots: int, count: int, found: Csr) -> None:
        """Lists for the first slots with all who may be near them, given as slots."""
        size = 0
        lists = []
        for pool in self._pools:
            start, room, length = (np.empty(slots, dtype=np.int64) for _ in range(3))
            lists.append(Lists(start, room, length, np.zeros(1, dtype=np.int64), pool))
            size = lay_out(count, found.indptr, lists[-1])
        for k, pool in enumerate(self._pools):
            if size + size // 8 + 512 > len(pool):
                # Some room is for lists that outgrow theirs.
                self._pools[k] = np.empty(size + size // 4 + 1024, dtype=np.int32)
        self._certain, self._maybe = (part._replace(pool=pool) for part, pool in zip(lists, self._pools, strict=True))
        enter_all(count, *found, self._agents, self._certain, self._maybe)
        self._is_filled = True

    def _set_radius(self, radius: Floats) -> None:
        agents = self._agents
        self._radius = np.array(radius)
        set_radii(radius, 2.0 * self.leash + self._slack, agents)
        self._widest = float(agents.radius.max(initial=0.0))  #: radius of those that do not see far
        self._far_sighted = np.empty(0, dtype=np.int64)
        if self._widest > FAR_SIGHTED * self._usual:
            is_far = agents.radius > FAR_SIGHTED * self._usual
            if np.count_nonzero(is_far) <= MOST_FAR_SIGHTED * len(radius):
                self._far_sighted = np.flatnonzero(is_far)
                self._widest = float(agents.radius[~is_far].max(initial=0.0))

    def _renew_some(self, slots: Slots, around: Around) -> bool:
        """New references and lists for some agents; false if all lists must be filled anew."""
        if not len(slots):
            return True
        agents = self._agents
        old = agents.reference[slots]
        jump = np.sqrt(((agents.here[slots] - old) ** 2).sum(axis=1))
        jump[np.isnan(jump)] = 0.0  # newcomers
        # Agents that come from farther away leave entries behind that nobody would look for.
        if (jump > 4.0 * self.leash + self._widest).any():
            return False
        reach = np.maximum(agents.radius[slots], self._widest) + 3.0 * self.leash + jump + self._slack
        found = around(agents.row[slots], reach)
        close = self._slot_of[found.indices]
        self.work = Work(renewed=len(slots))
        fits = renew(slots, old, found.indptr, close, self._far_sighted, agents, self._is_renewed, self._certain,
                     self._maybe)  # fmt: skip
        return bool(fits)

    def _come_and_go(self, state: AgentState) -> None:
        """Agents have other rows now, some are new and some are gone."""
        self._sets = None
        new_of_old = state.row_of(self._ids)
        if self._quiet is not None:
            self._quiet = self._quiet if self._quiet.come_and_go(new_of_old, len(state)) else None
            self._ids = state.id.copy()
            return
        if not self._is_filled:
            return
        agents = self._agents
        stays = new_of_old >= 0
        self._ids = state.id.copy()
        fresh = np.ones(len(state), dtype=np.bool_)
        fresh[new_of_old[stays]] = False
        free = np.concatenate([np.flatnonzero(agents.row < 0), np.sort(self._slot_of[~stays])])
        newcomers = np.flatnonzero(fresh)
        if len(newcomers) > min(len(free), _MANY * len(state)):
            self._is_filled = False
            return
        slot_of = np.empty(len(state), dtype=np.int32)
        slot_of[new_of_old[stays]] = self._slot_of[stays]
        agents.row[:] = -1
        agents.row[slot_of[~fresh]] = np.flatnonzero(~fresh)
        drop_gone(new_of_old.astype(np.int32), agents, self._certain, self._maybe)
        slots = free[: len(newcomers)]
        slot_of[newcomers] = slots
        agents.row[slots] = newcomers
        unused = agents.row < 0
        for places in (agents.here, agents.before, agents.reference):
            places[unused] = places[slots] = np.nan
        self._certain.length[unused] = self._maybe.length[unused] = 0
        agents.radius[unused] = 0.0
        known, self._radius = self._radius, np.full(len(state), np.nan)  # newcomers differ, so that they get lists
        self._radius[new_of_old[stays]] = known[stays]
        self._slot_of = slot_of

    # Near sets --------------------------------------------------------------------------------------------------

    def _find_all(self) -> Ragged:
        """Find all near sets from the lists."""
        count = len(self._ids)
        if self._where.shape[1] != count:
            self._where = np.empty((2, count), dtype=np.int64)
        start, length = self._where
        find_near(self._agents, self._certain, self._maybe, start, length)
        self.work = replace(self.work, found=count)
        self._sets = Ragged(start, length, self._certain.pool)
        return self._sets

    def _fall_quiet(self, sets: Ragged) -> QuietSets:
        """From now on, those that move keep the near sets of the last step up to date."""
        certain, before = self._certain, np.array(self._agents.before[self._slot_of])
        by_row = Lists(sets.start, certain.room[self._slot_of], sets.length, certain.used, certain.pool)
        self._quiet = QuietSets(before, self._radius, by_row, self._usual)
        self._is_filled = False
        return self._quiet

    def _follow_few(
        self, quiet: QuietSets, state: AgentState, position: Floats, cells: CellList, radius: Floats
    ) -> Ragged:
        if quiet.follow(position, radius):
            self._move = quiet.mean_move or self._move
            self.work = Work(found=quiet.moved)
            return quiet.sets
        self._move, self._quiet = quiet.mean_move or self._move, None
        return self._fill(state, position, cells, radius)
