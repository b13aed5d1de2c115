"""The knowledge of all groups: who sees what, who tells whom, and what the manager holds.

Once per step, after events and before decisions and planning:

1. Agents look around, each at its own group's intervals (`look`): what is in sight, in the cone of view and within
   `sight` is known from now on as it is. Looking again renews the time of the observation.
2. The manager brings everything up to date at its own, slow intervals (`update`).
3. Friends within `earshot` take over what another has observed later, one hop per interval (`hop`).

What a holder believes is a row of a table (`table.py`). Planners get it as worlds to plan in (`believing.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.seeing import view_angles
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Declaration, Layer, Moment, Rows
from tropel.contracts.layers import Behaviours
from tropel.contracts.near import runs_of_cells
from tropel.errors import CheckpointError, ParameterError
from tropel.foundation.stored_arrays import taken
from tropel.knowing.believing import BeliefsNow, BelievedWorlds, Kinds, distinct
from tropel.knowing.log import Log
from tropel.knowing.looking import look_around, look_for_enemies, note_enemies, note_seen
from tropel.knowing.parameters import EARSHOT, SIGHT, Knowledge
from tropel.knowing.queries import Queries
from tropel.knowing.table import ANNOUNCED, ASSUMED, FROM_START, MANAGER, Table
from tropel.knowing.telling import listen, take_over
from tropel.knowing.things import UNKNOWN, Kind, Things
from tropel.world import World

LOOKING, SHARING, UPDATING = "looking around", "sharing knowledge", "knowledge manager"

#: Lines of sight are followed through lists of walls of this reach [m].
_WALLS = 4.0


class SharedKnowledge(Queries, Layer):
    """What the agents of some groups know; the engine calls `learn` once per step."""

    method = "learn"

    def __init__(self, groups: Sequence[str], told: Mapping[str, Knowledge], world: World) -> None:
        self.groups = list(groups)
        self.told = dict(told)
        self.parameters = str(self.told)
        self.declares = Declaration(columns=(SIGHT, EARSHOT), periodic_space=True)
        self.behaviours: Behaviours = Behaviours(LOOKING, SHARING, UPDATING)
        self._members = [number for number, name in enumerate(self.groups) if name in self.told]
        self._keepers = self._shared_holders()
        self._hears = self._who_hears()
        self._begin(world)

    def _shared_holders(self) -> NDArray[np.int64]:
        """The shared holder of each group, -1 where agents know for themselves."""
        keeper = np.full(len(self.groups), -1, dtype=np.int64)
        world_wide: int | None = None
        count = 0
        for number in self._members:
            held_by = self.told[self.groups[number]].held_by
            if held_by == "agent":
                continue
            if held_by == "world" and world_wide is not None:
                keeper[number] = world_wide
                continue
            keeper[number], count = count, count + 1
            world_wide = int(keeper[number]) if held_by == "world" else world_wide
        self.shared = count
        return keeper

    def _who_hears(self) -> NDArray[np.uint8]:
        """hears[a, b] is 1 if agents of group a listen to those of group b."""
        hears = np.zeros((len(self.groups), len(self.groups)), dtype=np.uint8)
        for a in self._members:
            for b in self._members:
                one, other = self.told[self.groups[a]], self.told[self.groups[b]]
                friends = a == b or self.groups[b] in one.friends or self.groups[a] in other.friends
                hears[a, b] = friends and one.share and other.share
        return hears

    def _begin(self, world: World) -> None:
        hostile = [name for name in self.groups if any(name in told.enemies for told in self.told.values())]
        self.things = Things(world, hostile)
        self.table = Table(world.dim, self.shared)
        self._log = Log()
        self._worlds = BelievedWorlds()
        self._first_state = np.empty((len(self.groups), 0), dtype=np.int16)
        self._first_when = np.empty((len(self.groups), 0), dtype=np.int32)
        self._first_place: Floats = np.empty((0, world.dim))
        self._holder: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._ids: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._group_of: NDArray[np.int64] = np.empty(0, dtype=np.int64)  #: the group of each holder
        self._seen_version = -1
        self._learnt = 0  #: changes whenever somebody believes something else
        self._kinds: tuple[Any, Kinds] | None = None
        self._news: NDArray[Any] = self._log.lines[:0]
        self._news_of = -1  #: the step that they are of
        self._first_knowledge(world)
        self._widen()

    def prepare(self, moment: Moment) -> None:
        """Begin anew, with the world as it is now; what is known at first may be asked for before the first step."""
        self.behaviours.begin()
        self._begin(moment.world)
        self._dt = moment.dt
        self._align(moment.state)

    # What is known at first -------------------------------------------------------------------------------------

    def _first_knowledge(self, world: World) -> None:
        """What each group knows before the first step."""
        plain = np.full(len(self.things), UNKNOWN, dtype=np.int16)
        states = [
            self.things.known_at_first(world, self.told[name].at_first) if name in self.told else plain
            for name in self.groups
        ]
        self._first_state = np.stack(states) if states else np.empty((0, len(self.things)), dtype=np.int16)
        plan = np.array([name in self.told and self.told[name].at_first == "plan" for name in self.groups])
        assumed = plan[:, None] | (self._first_state == UNKNOWN) if len(plan) else np.zeros((0, len(self.things)), bool)
        self._first_when = np.where(assumed, ASSUMED, FROM_START).astype(np.int32)
        self._first_place = self.things.place.copy()

    def _widen(self) -> None:
        """Make room for things that are new: nobody knows of those that came after the start."""
        count = len(self.things)
        if self._first_state.shape[1] < count:
            more = count - self._first_state.shape[1]
            nothing = np.full((len(self.groups), more), UNKNOWN, dtype=np.int16)
            self._first_state = np.hstack([self._first_state, nothing])
            self._first_when = np.hstack([self._first_when, np.full(nothing.shape, ASSUMED, dtype=np.int32)])
            self._first_place = np.vstack([self._first_place, np.full((more, self.table.dim), np.nan)])
        if self.table.state.shape[1] < count:
            group = self._groups_of_holders()
            self.table.widen(self.things.kind, self._first_state[group], self._first_when[group], self._first_place)
            self._learnt += 1

    def _groups_of_holders(self) -> NDArray[np.int64]:
        """A group of each holder: its own, or the first that shares it."""
        shared = [int(np.flatnonzero(self._keepers == number)[0]) for number in range(self.shared)]
        own = self._group_of[self.shared :] if len(self._group_of) else np.empty(0, dtype=np.int64)
        return np.concatenate([np.array(shared, dtype=np.int64), own])

    def _align(self, state: AgentState) -> None:
        """Give every agent its holder, and newcomers what their group knows at first."""
        self._agents = state
        if self._seen_version == state.version:
            return
        self._seen_version = state.version
        keeper = self._keepers[state.group] if len(self.groups) else np.empty(0, dtype=np.int64)
        knows = np.isin(state.group, self._members)
        alone = np.flatnonzero(knows & (keeper < 0))
        self._group_of = np.concatenate([np.zeros(self.shared, dtype=np.int64), state.group[alone].astype(np.int64)])
        group = self._groups_of_holders()
        first = Table(self.table.dim, self.shared)
        first.ids = np.empty(len(group), dtype=np.int64)
        first.state, first.when = np.empty((len(group), 0), np.int16), np.empty((len(group), 0), np.int32)
        first.source = np.empty((len(group), 0), np.int64)
        first.place = np.empty((len(group), 0, self.table.dim))
        first.widen(self.things.kind, self._first_state[group], self._first_when[group], self._first_place)
        self.table.keep(state.id[alone].astype(np.int64), first)
        self._ids = state.id
        self._holder = np.where(knows, keeper, -1)
        self._holder[alone] = self.shared + np.arange(len(alone))
        self._learnt += 1

    # In each step -----------------------------------------------------------------------------------------------

    def learn(self, moment: Moment) -> None:
        """Look around, take over the manager's news, and tell friends."""
        self._dt = moment.dt
        self._align(moment.state)
        if self._news_of != moment.step:
            self._news = self._log.lines[:0]
        due = {what: self._due(what, moment) for what in ("look", "update", "hop")}
        if not any(len(groups) for groups in due.values()):
            return
        if self.things.follow(moment.world):
            self._widen()
        before = self.table.state.copy()
        living = np.flatnonzero((moment.state.dead == 0) & (self._holder >= 0))
        if self.behaviours[LOOKING] and len(due["look"]):
            self._look(moment, self._of_groups(living, due["look"], moment.state))
        if self.behaviours[UPDATING] and len(due["update"]):
            self._update(moment, due["update"])
        if self.behaviours[SHARING] and len(due["hop"]):
            self._tell_friends(moment, self._of_groups(living, due["hop"], moment.state))
        self._note_changes(before, moment.step)

    def _of_groups(self, rows: Rows, groups: NDArray[np.int64], state: AgentState) -> Rows:
        """Those of some rows that are in some groups."""
        wanted = np.zeros(len(self.groups), dtype=np.bool_)
        wanted[groups] = True
        return rows if wanted.all() else rows[wanted[state.group[rows]]]

    def _due(self, what: str, moment: Moment) -> NDArray[np.int64]:
        """Numbers of the groups that look, are told by the manager, or listen in this step."""
        found = []
        for number in self._members:
            seconds = getattr(self.told[self.groups[number]], what)
            # People look around in the very first step; word and the manager take their time.
            begun = what == "look" or moment.step > 0
            if begun and seconds is not None and moment.step % max(round(seconds / moment.dt), 1) == 0:
                found.append(number)
        return np.array(found, dtype=np.int64)

    def _look(self, moment: Moment, rows: Rows) -> None:
        state, world, table = moment.state, moment.world, self.table
        points, thing, size = self.things.points(world)
        truth, sight, angles = self.things.truth(world), self.in_force(state, SIGHT.name), view_angles(state)
        seen = np.zeros((len(rows), len(self.things)), dtype=np.uint8)
        walls = world.wall_grid(_WALLS)
        look_around(rows, state.position, state.heading, angles, sight, world.period, points, thing, size, walls, seen)
        note_seen(rows, self._holder, state.id, seen, truth, moment.step, table.state, table.when, table.source)
        for number in self.things.numbers_of(Kind.TARGET).tolist():
            holders = self._holder[rows[seen[:, number] != 0]]
            table.place[holders, table.slot[number]] = self.things.place[number]
        self._look_for_enemies(moment, rows, sight, angles)

    def _look_for_enemies(self, moment: Moment, rows: Rows, sight: Floats, angles: Floats) -> None:
        state, world, table = moment.state, moment.world, self.table
        hostile = self.things.numbers_of(Kind.GROUP)
        if not len(hostile):
            return
        names = [self.things.name(number) for number in hostile.tolist()]
        slots = np.full((len(self.groups), len(self.groups)), -1, dtype=np.int64)
        for name, told in self.told.items():
            for slot, other in enumerate(names):
                if other in told.enemies:
                    slots[self.groups.index(name), self.groups.index(other)] = slot
        others = np.flatnonzero(np.isin(state.group, [self.groups.index(n) for n in names]) & (state.dead == 0))
        count = np.zeros((len(rows), len(names)), dtype=np.int64)
        nearest = np.full((len(rows), len(names)), -1, dtype=np.int64)
        look_for_enemies(rows, others, slots, state.position, state.heading, state.radius, state.id, state.group,
                         angles, sight, world.period, world.wall_grid(_WALLS), count, nearest)  # fmt: skip
        note_enemies(rows, self._holder, state.id, count, nearest, hostile, state.position, moment.step, table.state,
                     table.when, table.source, table.place, table.slot)  # fmt: skip

    def _update(self, moment: Moment, groups: NDArray[np.int64]) -> None:
        """The manager finds out by itself what everything is like, except for enemies."""
        holders = np.unique(self._holder[np.isin(moment.state.group, groups) & (self._holder >= 0)])
        shared = self._keepers[groups]
        holders = np.union1d(holders, shared[shared >= 0])
        truth = self.things.truth(moment.world)
        self._set(holders, np.flatnonzero(self.things.kind != Kind.GROUP), truth, moment.step, MANAGER)

    def _set(
        self, holders: NDArray[np.int64], numbers: NDArray[np.int64], states: NDArray[np.int16], step: int, source: int
    ) -> None:
        """Some holders know some things from now on."""
        at = np.ix_(holders, numbers)
        self.table.state[at], self.table.when[at], self.table.source[at] = states[numbers], step, source
        for number in numbers.tolist():
            if (slot := self.table.slot[number]) >= 0:
                self.table.place[holders, slot] = self.things.place[number]

    def _tell_friends(self, moment: Moment, rows: Rows) -> None:
        state, table = moment.state, self.table
        earshot = self.in_force(state, EARSHOT.name)
        listens = np.asarray(self._hears.any(axis=1))
        rows = rows[(earshot[rows] > 0.0) & listens[state.group[rows]]]
        if not len(rows) or not self._hears.any():
            return
        through = np.array(
            [name in self.told and self.told[name].through_walls for name in self.groups], dtype=np.uint8
        )
        counted = (self.things.kind == Kind.GROUP).astype(np.uint8)
        best = np.empty((len(rows), len(self.things)), dtype=np.int64)
        listen(rows, state.position, earshot, state.group, state.id, state.dead, self._holder, self._hears, through,
               runs_of_cells(moment.cells.cell_list), moment.world.wall_grid(_WALLS), counted, table.state, table.when,
               best)  # fmt: skip
        fresh = table.copy()
        take_over(rows, best, self._holder, state.id, counted, table.slot, table.state, table.when, table.place,
                  fresh.state, fresh.when, fresh.source, fresh.place)  # fmt: skip
        self.table = fresh

    def _note_changes(self, before: NDArray[np.int16], step: int) -> None:
        """Log what holders believe now and did not before."""
        # On the flat array: in two dimensions this took longer than all else.
        changed = np.flatnonzero((before != self.table.state).ravel())
        if not len(changed):
            return
        holders, numbers = np.divmod(changed, before.shape[1])
        self._learnt += 1
        told = self.table.state[holders, numbers], self.table.source[holders, numbers]
        lines = self._log.note(step, self.table.ids[holders], numbers, *told)
        # An announcement of this step comes before what is seen in it.
        self._news = np.concatenate([self._news, lines]) if self._news_of == step else lines
        self._news_of = step

    def in_force(self, state: AgentState, name: str) -> NDArray[Any]:
        """Sight or earshot of all agents [m]: their own, or that of their group; 0 for groups that know everything."""
        of_group = np.array([getattr(self.told[n], name) if n in self.told else 0.0 for n in self.groups])
        own = state.columns[name]
        return np.where(np.isnan(own), of_group[state.group], own)

    # Changes by events ------------------------------------------------------------------------------------------

    def announce(self, about: str, word: str | None, rows: Rows, world: World, step: int) -> None:
        """Tell agents in some rows what a thing is like: as it is, or as a word has it, true or not."""
        if self.things.follow(world):
            self._widen()
        number = self.things.number(about)
        states = self.things.truth(world)
        if Kind(int(self.things.kind[number])) is Kind.GROUP:
            raise ParameterError(f"'{self.things.keys[number]}' is a group of enemies, which agents have to see")
        if word is not None:
            states[number] = self.state_word(number, word)
        before = self.table.state.copy()
        holders = np.unique(self._holder[rows])
        self._set(holders[holders >= 0], np.array([number]), states, step, ANNOUNCED)
        self._note_changes(before, step)

    # What planners get ------------------------------------------------------------------------------------------

    def beliefs(self, state: AgentState, world: World) -> BeliefsNow:
        """What everybody believes now."""
        self._align(state)
        if self.things.follow(world):
            self._widen()
        truth = self.things.truth(world)
        key = (self._learnt, truth.tobytes())
        if self._kinds is None or self._kinds[0] != key:
            weight = np.bincount(self._holder[self._holder >= 0], minlength=len(self.table.ids))
            most = max((told.most_plans for told in self.told.values()), default=1)
            self._kinds = key, distinct(self.table.state, truth, self.things, weight, most)
        kinds = self._kinds[1]
        return BeliefsNow(
            state=state,
            world=world,
            holder=self._holder,
            kinds=kinds,
            worlds=self._worlds.of(kinds, self.things, world),
            table=self.table,
            things=self.things,
            dt=self._dt,
        )

    # Checkpoints ------------------------------------------------------------------------------------------------

    def set_behaviour(self, name: str, on: bool) -> None:
        self.behaviours.switch(name, on)

    def state(self) -> dict[str, NDArray[Any]]:
        first: dict[str, NDArray[Any]] = {
            "first_state": self._first_state, "first_when": self._first_when, "first_place": self._first_place,
        }  # fmt: skip
        return {
            **self.things.state(), **self.table.stored(), **first, **self._log.stored(), **self.behaviours.state(),
        }  # fmt: skip

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        things = self.things.read(stored)
        kind = things["kind"]
        table = self.table.read(stored, kind)
        lines, off = self._log.read(stored, len(kind)), self.behaviours.read(stored)
        shape = (len(self.groups), len(kind))
        first_state = taken(stored, "first_state", dtype="int16", shape=shape, low=UNKNOWN, high=1)
        first_when = taken(stored, "first_when", dtype="int32", shape=shape, low=ASSUMED, high=FROM_START)
        first_place = taken(stored, "first_place", dtype="float64", shape=(len(kind), table.dim), finite=False)
        if len(table.ids) < self.shared:
            raise CheckpointError("'ids' has too few holders")
        self.things.put_back(things)
        self._first_state, self._first_when, self._first_place = first_state, first_when, first_place
        self.table = table
        self._log.put_back(lines)
        self.behaviours.put_back(off)
        self._worlds.clear()
        self._kinds, self._seen_version, self._group_of = None, -1, np.empty(0, dtype=np.int64)
        self._news, self._news_of = lines[:0], -1
        self._learnt += 1
