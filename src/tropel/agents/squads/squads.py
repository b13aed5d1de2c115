"""The squads of a run: who commands, what the members are told, and what happens to missions.

Everything here happens in the stage `decide` of a step. Roles and fights are settled in every step; squads look around,
share out rooms and assess threats a few times per second (`thinks`), at the same steps whatever the run did before.
The state that is not in columns has a row per group, which means nothing for groups that are no squads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from tropel.agents.squads.columns import ATTACK, COMMANDER, FOLLOW, MEMBER, NO_ROLE, RETREAT
from tropel.agents.squads.combat import fallen
from tropel.agents.squads.deeds import Deeds
from tropel.agents.squads.formations import slots
from tropel.agents.squads.log import CARRIES_ON, COMMANDED, NOW_ATTACKS, NOW_RETREATS, ORDERED, RESUMES, Log, News, told
from tropel.agents.squads.rooms import NONE
from tropel.agents.squads.sight import seen_from
from tropel.agents.squads.squad import Formation, Squad
from tropel.agents.squads.threat import ATTACKS, CALM, CALM_AFTER, RETREATS, STANCES, confidence, next_stance
from tropel.agents.squads.verbs import Resume, RetreatTo
from tropel.agents.stages.stage import Now, Stage
from tropel.agents.stages.verbs import Wait
from tropel.agents.state import NO_GOAL, AgentState
from tropel.errors import CheckpointError, ParameterError, suggest
from tropel.foundation.stored_arrays import taken
from tropel.world import World
from tropel.world.places import Place, PlaceLike
from tropel.world.shapes import FARTHEST

if TYPE_CHECKING:
    from tropel.agents.population import Population

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Squads that hold a room attack enemies up to this far from it [m]: in the room and in its doorways.
_IN_THE_DOOR = 0.3
FORMATIONS: tuple[Formation, ...] = get_args(Formation)


class Squads(Deeds):
    """All squads of a run."""

    def __init__(self, world: World, groups: Sequence[str], told: Mapping[int, Squad]) -> None:
        super().__init__(world, groups, told)
        count = len(groups)
        named = [FORMATIONS.index(told[number].formation) if number in told else 0 for number in range(count)]
        self.formation = np.array(named, dtype=np.int64)
        self.stance = np.full(count, CALM, dtype=np.int64)
        self.seen_at = np.full(count, -1.0)  #: when an enemy was last seen [s]; -1 for never
        self.agenda = np.full(count, NONE, dtype=np.int64)  #: of the mission that an order has interrupted
        self.stage = np.full(count, NONE, dtype=np.int64)
        self.home: Floats = np.zeros((count, world.dim))  #: where the commander was at first

    def number(self, name: str) -> int:
        """The number of the group that is a squad of this name."""
        known = [self.groups[number] for number in self.told]
        if name not in known:
            raise ParameterError(f"there is no squad '{name}'; {suggest(name, known)}")
        return self.groups.index(name)

    # In each step -----------------------------------------------------------------------------------------------

    def recruit(self, people: Population) -> None:
        """Put newcomers of a group that is a squad under its commander; it has the mission, and they have none."""
        state = people.state
        fresh = np.flatnonzero((state.role == NO_ROLE) & (state.dead == 0) & np.isin(state.group, list(self.told)))
        for row in fresh.tolist():
            chief = int(self.commander[state.group[row]])
            if chief not in (NONE, state.id[row]) and len(state.rows_of([chief])):
                state.columns["leader"][row] = chief
                state.goal[row], state.agenda[row] = NO_GOAL, NONE
                state.stage[row] = min(int(state.stage[row]), 0)

    def muster(self, people: Population, now: Now) -> None:
        """Note who commands and who is a member, and give members their places in the formation."""
        state = people.state
        for number, squad in self.told.items():
            rows = self.living(state, number)
            chief = self._chief(people, number, rows)
            if chief != self.commander[number]:
                if self.commander[number] == NONE:
                    self.home[number] = state.position[state.rows_of([chief])[0]]
                self.commander[number] = chief
                self.log.note(now, number, COMMANDED, chief)
            own = state.id[rows] == chief
            state.role[rows] = np.where(own, COMMANDER, MEMBER)
            members = rows[~own]
            state.slot[rows[own]] = 0.0
            state.slot[members] = slots(FORMATIONS[self.formation[number]], len(members), squad.spacing)

    @staticmethod
    def _chief(people: Population, number: int, rows: Ints) -> int:
        """The id of the one that commands a squad; `rows` are its living, by id."""
        state = people.state
        if not len(rows):
            return NONE
        own = int(people.bonds.own_leader[number])
        free = rows[state.columns["leader"][rows] < 0]
        return own if own in state.id[free] else int(state.id[free[0] if len(free) else rows[0]])

    def begin_thinking(self, now: Now) -> None:
        """Before the stages act: everybody looks around, and orders are given anew."""
        if not self.thinks(now):
            return
        self.floor.keep_up()
        self._searchers, self._held = {}, {}
        state = now.state
        state.order[np.flatnonzero(state.role != NO_ROLE)] = FOLLOW
        for number, squad in self.told.items():
            self.rooms.look(number, state.position[self.living(state, number)], squad.sight)

    def act(self, people: Population, now: Now) -> None:
        """After the stages have acted: rooms are shared out, threats assessed, interrupted missions taken up again."""
        self._resume(people, now)
        if self.thinks(now):
            self.share_rooms_out(now)
            for number, squad in self.told.items():
                chief = now.state.rows_of([int(self.commander[number])])
                if squad.assess and squad.enemies and len(chief):
                    self._assess(people, now, number, int(chief[0]))

    # Orders -----------------------------------------------------------------------------------------------------

    def give_order(
        self, people: Population, squad: str, stages: Sequence[Stage], *, formation: Formation | None, resume: bool,
        time: float, step: int,
    ) -> None:  # fmt: skip
        """Give a squad something else to do; if wanted, it resumes its mission afterwards."""
        number = self.number(squad)
        if formation is not None:
            self.formation[number] = FORMATIONS.index(formation)
        if stages:
            self._interrupt(people, number, stages, resume=resume, time=time)
        self.log.news.append(News(step, number, ORDERED, NONE))

    def _interrupt(
        self, people: Population, number: int, stages: Sequence[Stage], *, resume: bool, time: float
    ) -> None:
        state = people.state
        rows = self.living(state, number)
        if not len(rows):
            return
        rows = state.rows_of([self._chief(people, number, rows)])
        if not resume:
            self.agenda[number] = self.stage[number] = NONE
        elif self.agenda[number] == NONE:
            self.agenda[number], self.stage[number] = state.agenda[rows[0]], max(int(state.stage[rows[0]]), 0)
        who = f"the order to squad '{self.groups[number]}'"
        # A squad without a mission stays where the order has led it.
        again = (*stages, Resume(True)) if resume and self.agenda[number] != NONE else tuple(stages)
        people.agendas.give(state, rows, people.agenda_number(again, False, who), time=time)
        self.stance[number] = CALM

    def _resume(self, people: Population, now: Now) -> None:
        """Squads that have carried out their order take up the mission."""
        state = people.state
        for number in self.told:
            rows = state.rows_of([int(self.commander[number])])
            if not len(rows) or not isinstance(people.agendas.present(state, int(rows[0])), Resume):
                continue
            self.stance[number] = CALM
            if self.agenda[number] != NONE:
                people.agendas.take_up(rows, int(self.agenda[number]), int(self.stage[number]), now)
                self.agenda[number] = self.stage[number] = NONE
                self.log.note(now, number, RESUMES)

    # Threats ----------------------------------------------------------------------------------------------------

    def _assess(self, people: Population, now: Now, number: int, chief: int) -> None:
        """Attack, retreat or carry on."""
        state, squad = now.state, self.told[number]
        own, enemies = self.living(state, number), self._enemies(state, number)
        seen = enemies[seen_from(now.world, state.position[own], state.position[enemies], squad.sight)]
        before = stance = int(self.stance[number])
        if isinstance(people.agendas.present(state, chief), RetreatTo):
            return
        if len(seen):
            self.seen_at[number] = now.time
            sure = confidence(state.courage[self._friends(now, number, own, chief)], len(seen))
            stance = next_stance(before, sure, squad, may_retreat=not state.critical[chief])
        elif now.time - self.seen_at[number] > CALM_AFTER and before == ATTACKS:
            stance = CALM
        if stance != before:
            self.log.note(now, number, {CALM: CARRIES_ON, ATTACKS: NOW_ATTACKS, RETREATS: NOW_RETREATS}[stance])
            if stance == RETREATS:
                self._retreat(people, number, squad, now.time)
        self.stance[number] = stance
        if stance == ATTACKS:
            self._attack(now, number, own, seen)

    def _enemies(self, state: AgentState, number: int) -> Ints:
        rows = np.flatnonzero(self.hostile[number][state.group] & (state.dead == 0))
        return np.asarray(rows[np.argsort(state.id[rows], kind="stable")])

    def _friends(self, now: Now, number: int, own: Ints, chief: int) -> Ints:
        """Those that count for a squad: its own people, and others of its side in sight of the commander."""
        state, squad = now.state, self.told[number]
        allied = [n for n in self.mates(number) if n != number]
        others = np.flatnonzero(np.isin(state.group, allied) & (state.dead == 0))
        near = seen_from(now.world, state.position[[chief]], state.position[others], squad.sight)
        return np.concatenate([own, others[near]])

    def _attack(self, now: Now, number: int, own: Ints, seen: Ints) -> None:
        """Everybody goes for the nearest enemy; those that hold a room do not follow enemies out of it."""
        state = now.state
        if number in self._held and len(seen):
            seen = seen[self.floor.from_area(self._held[number], state.position[seen]) <= _IN_THE_DOOR]
        if not len(seen):
            return
        enemies = state.position[seen]
        for row in own.tolist():
            here = state.position[row]
            visible = seen_from(now.world, here[None], enemies, self.told[number].sight)
            away = np.linalg.norm(enemies - here, axis=1) + np.where(visible, 0.0, FARTHEST)
            enemy = int(np.argmin(away))  # by id, so that ties go to the lower one
            state.order[row] = ATTACK
            # Enemies that only the others see are approached on foot, around corners.
            state.post[row] = enemies[enemy] if visible[enemy] else self.on_foot(now, row, enemies[enemy])

    def _retreat(self, people: Population, number: int, squad: Squad, time: float) -> None:
        home = Place(point=tuple(self.home[number].tolist()))
        place: PlaceLike = home if squad.retreat is None else squad.retreat
        rally = [Wait(squad.rally)] if squad.rally > 0.0 else []
        self._interrupt(people, number, [RetreatTo(place), *rally], resume=True, time=time)

    def fight(self, now: Now) -> Ints:
        """Rows of those that are put out of action in this step, by id."""
        state = now.state
        group = state.group.astype(np.int64)
        hits, reach = np.zeros(len(self.groups)), np.zeros(len(self.groups))
        for number, squad in self.told.items():
            hits[number], reach[number] = squad.hits, squad.reach
        strikes = (hits[group] > 0.0) & (state.dead == 0) & (state.order != RETREAT) & (state.role != NO_ROLE)
        strikers = np.flatnonzero(strikes)
        if not len(strikers):
            return strikers
        return fallen(
            now.world, strikers=strikers, hits=hits[group[strikers]], reach=reach[group[strikers]],
            hostile=self.hostile, living=np.flatnonzero(state.dead == 0), group=group, ids=state.id,
            position=state.position, radius=state.radius, dt=now.dt, seed=now.seed, step=now.step,
        )  # fmt: skip

    def told_of(self, news: News) -> tuple[str, str]:
        """The name of a squad, and what it did."""
        return self.groups[news.squad], told(news, [place.name for place in self.rooms.places])

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        names = ("commander", "formation", "stance", "agenda", "stage", "seen_at", "home")
        found = {f"squads/{name}": getattr(self, name).copy() for name in names}
        done = np.array(sorted(self._done), dtype=np.int64)
        return {**found, "squads/done": done, **self.log.state(), **self.rooms.state()}

    def read(self, stored: Mapping[str, NDArray[Any]], *, agendas: Sequence[int], next_id: int) -> Squads:
        """What `state` returned, checked; `agendas` are the lengths of all lists of stages."""
        fresh = Squads(self.world, self.groups, self.told)
        fresh.rooms = self.rooms.read(stored)
        groups, rooms, shape = len(self.groups), len(fresh.rooms.places), self.commander.shape
        limits = {
            "commander": (NONE, next_id - 1), "formation": (0, len(FORMATIONS) - 1), "stance": (0, len(STANCES) - 1),
            "agenda": (NONE, len(agendas) - 1), "stage": (NONE, max(agendas, default=0) - 1),
        }  # fmt: skip
        for name, (low, high) in limits.items():
            setattr(fresh, name, taken(stored, f"squads/{name}", dtype="int64", shape=shape, low=low, high=high))
        for agenda, stage in zip(fresh.agenda.tolist(), fresh.stage.tolist(), strict=True):
            if agenda != NONE and not 0 <= stage < agendas[agenda]:
                raise CheckpointError("'squads/stage' holds a number beyond the end of a list of stages")
        fresh.seen_at = taken(stored, "squads/seen_at", dtype="float64", shape=shape, low=-1.0)
        fresh.home = taken(stored, "squads/home", dtype="float64", shape=self.home.shape, low=-FARTHEST, high=FARTHEST)
        fresh.log = Log.read(stored, groups=groups, rooms=rooms)
        done = taken(stored, "squads/done", dtype="int64", shape=(None,), low=0, high=groups - 1)
        fresh._done = frozenset(done.tolist())
        return fresh
