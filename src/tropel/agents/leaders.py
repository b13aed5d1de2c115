"""Leaders: who leads whom, how a leader is designated, and who succeeds one that is gone.

One mechanism for flocks, for the leaders of roadmaps, for families and for everybody who follows. The column `leader`
has the id of the agent that each agent follows, -1 for none; agents with the same leader are a party. A leader is
designated when agents come in (`Group(leader=…)`) or by the event `SetLeader`:

    "nearest"    the one nearest to the goal, as the crow flies
    "central"    the one nearest to the middle of all
    a number     that agent of the group, counted from 0

When a leader dies, leaves or is removed, its party follows the nearest agent of the group that it was declared to
follow. If there is none, one of the party leads, designated in the same way. That one takes over goal, stages and trail
of the one that is gone. What followers pursue does not jump: they begin at the place where the leader was last, and
within a few seconds it becomes the place of the new one (column `handover`).

Everything here is decided between two steps, in the stage `decide`, from quantities of the whole crowd.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import NO_GOAL, AgentState, Column
from tropel.agents.towards_goal import offset_to_goal
from tropel.agents.trails import Trails
from tropel.agents.whole_crowd import are_there, middle_of_crowd, own_rows, values_of
from tropel.errors import CheckpointError, ParameterError
from tropel.foundation.arguments import is_whole_number
from tropel.foundation.reductions import ONE_PROCESS, Reductions
from tropel.foundation.stored_arrays import taken
from tropel.world import World
from tropel.world.periodic import nearest_images
from tropel.world.shapes import FARTHEST

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: How a leader is designated, besides by number.
DESIGNATIONS = ("nearest", "central")
#: No leader.
NOBODY = -1
#: What followers pursue moves from the old leader to the new one with this time constant [s], until it is so near [m].
_HANDOVER_TIME, _HANDED_OVER = 1.0, 1e-3

LEADER = Column(
    name="leader", dtype="int64", default=NOBODY, low=NOBODY, about="id of the agent to follow; -1 for none"
)
#: The engine's memory for agents that may have a leader.
HANDOVER = Column(
    name="handover",
    vector=True,
    low=-FARTHEST,
    high=FARTHEST,
    kept=True,
    unit="m",
    about="from its leader to the place that it pursues, after the leader has changed",
)


def check_designation(told: Any, who: str) -> None:
    """Raise if this does not designate a leader."""
    if told is None or told in DESIGNATIONS or (is_whole_number(told) and told >= 0):
        return
    known = " or ".join(f'"{name}"' for name in DESIGNATIONS)
    raise ParameterError(f"{who}: leader is {known}, or the number of an agent of the group from 0, not {told!r:.40}")


def check_follows(state: AgentState, reduce: Reductions = ONE_PROCESS) -> None:
    """Raise if an agent follows itself, directly or through others: nobody would lead."""
    leader = state.columns["leader"][: state.owned]
    # Whoever is in a circle is followed.
    ids = reduce.union(leader[leader >= 0])
    led_by = values_of(ids, "leader", state, reduce)
    place = np.minimum(np.searchsorted(ids, led_by), max(len(ids) - 1, 0))
    here = reduce.counts(own_rows(ids, state)[1].astype(np.int64)) > 0
    after = np.where(here & (ids[place] == led_by), place, NOBODY) if len(ids) else place
    at = after.copy()
    # Every round doubles how many leaders away `at` is; whoever still has one after the last is in a circle.
    for _ in range(max(len(ids), 1).bit_length() + 1):
        at = np.where(at >= 0, at[at], NOBODY)
    if (at >= 0).any():
        first = int(at[at >= 0].min())
        circle, k = [int(ids[first])], int(after[first])
        while k != first:
            circle.append(int(ids[k]))
            k = int(after[k])
        if len(circle) == 1:
            raise ParameterError(f"agent {circle[0]} would follow itself; a leader has no leader (-1)")
        said = ", which follows ".join(map(str, [*circle, circle[0]]))
        raise ParameterError(f"agent {said}: one of them must lead")


def check_leaders_exist(state: AgentState) -> None:
    """Raise if an agent follows one that has never been there."""
    leader = state.columns["leader"]
    beyond = np.flatnonzero(leader >= state.next_id)
    if len(beyond):
        row = beyond[np.argmin(state.id[beyond])]
        raise ParameterError(
            f"agent {state.id[row]} would follow agent {leader[row]}, but ids so far are 0 to {state.next_id - 1}; "
            f"name one of those, or designate a leader with leader or follow"
        )


# Designation ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What is needed to choose one of some agents: the crowd, the world, and the goal of the one that will lead."""

    state: AgentState
    world: World
    goal: int
    point: Floats
    reduce: Reductions = ONE_PROCESS

    def designate(self, how: str | int | None, rows: Ints) -> int:
        """The id of the agent among these rows that leads; NOBODY if there are none. Ties go to the lower id."""
        state = self.state
        rows = rows[(state.dead[rows] == 0) & (rows < state.owned)]
        if self.reduce.count(len(rows)) == 0:
            return NOBODY
        if isinstance(how, str) and how == "nearest" and self.goal != NO_GOAL:
            return self._least(self._to_goal(rows), rows)
        return self._least(self._to_middle(rows), rows)

    def nearest_to(self, place: Floats, rows: Ints) -> int:
        """The id of the living agent among these rows that is nearest to a place."""
        state = self.state
        rows = rows[(state.dead[rows] == 0) & (rows < state.owned)]
        if self.reduce.count(len(rows)) == 0:
            return NOBODY
        return self._least(
            np.linalg.norm(nearest_images(state.position[rows] - place, self.world.period), axis=1), rows
        )

    def _to_goal(self, rows: Ints) -> Floats:
        state = self.state
        goal, point = np.full(len(rows), self.goal, dtype=np.int32), np.broadcast_to(self.point, (len(rows), state.dim))
        offset = offset_to_goal(
            state.position[rows], goal, self.world.goals(), radius=state.radius[rows], point=point.copy()
        )
        return np.asarray(np.linalg.norm(offset, axis=1))

    def _to_middle(self, rows: Ints) -> Floats:
        middle = middle_of_crowd(self.state.position[rows], self.reduce)
        return np.asarray(np.linalg.norm(self.state.position[rows] - middle, axis=1))

    def _least(self, score: Floats, rows: Ints) -> int:
        best = -self.reduce.largest(-score, initial=-math.inf)
        equal = self.state.id[rows[score == best]]
        return int(-self.reduce.largest(-equal.astype(np.float64), initial=-math.inf))


def numbered(how: int, ids: Ints, who: str) -> int:
    """The id of an agent that was designated by its number within its group."""
    if how >= len(ids):
        raise ParameterError(f"{who}: leader is number {how}, but there are only {len(ids)} agents, from number 0 on")
    return int(np.sort(ids)[how])


def first_of_each(family: NDArray[Any], ids: Ints, leader: Ints | None) -> tuple[Ints, Ints, Ints]:
    """The members by family, and which of them leads each.

    `family` are numbers from 0 on. Returns where the members of each family begin in the order by family and id, that
    order, and the leaders: the member that another one follows, or else the one with the lowest id.
    """
    order = np.lexsort((ids, family))
    start = np.searchsorted(family[order], np.arange(family.max(initial=-1) + 2))
    leads = order[start[:-1]]
    if leader is not None and (leader >= 0).any():
        by_id = np.argsort(ids, kind="stable")
        place = np.minimum(np.searchsorted(ids, leader, sorter=by_id), len(ids) - 1)
        followed = by_id[place]
        own = np.flatnonzero((ids[followed] == leader) & (family[followed] == family) & (leader != ids))
        leads[family[own[::-1]]] = followed[own[::-1]]
    return start, order, leads


# Succession -----------------------------------------------------------------------------------------------------------

#: What is remembered of a leader, for the one that comes after it.
_INHERITED = ("goal", "goal_point", "agenda", "stage", "stage_since", "stage_until", "critical")


class Leaders:
    """The parties of a crowd, and what was last known of their leaders. Arrays have a row for each leader, by id."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self.id: Ints = np.empty(0, dtype=np.int64)
        self.place: Floats = np.empty((0, dim))
        self.goal = np.empty(0, dtype=np.int32)
        self.goal_point: Floats = np.empty((0, dim))
        self.agenda = np.empty(0, dtype=np.int32)
        self.stage = np.empty(0, dtype=np.int32)
        self.stage_since: Floats = np.empty(0)
        self.stage_until: Floats = np.empty(0)
        self.critical = np.empty(0, dtype=np.uint8)
        self.trails = Trails(dim)
        self._seen: tuple[int, int, Ints] | None = None  #: version, number of the dead and leaders of the last look

    def keep_up(
        self, state: AgentState, world: World, rules: Sequence[str | int | None], follows: Sequence[Sequence[int]],
        *, dt: float, reduce: Reductions,
    ) -> bool:  # fmt: skip
        """Let others succeed leaders that are gone, and note where the leaders are now; returns whether any changed.

        `rules` tells for each group how its leader is designated, `follows` the numbers of the groups it follows.
        """
        if "leader" not in state.columns:
            return False
        self._fade(state, dt, reduce)
        changed = self._changed(state, reduce)
        if changed:
            # Newcomers may have lost their leader before this first look at it; the dead are still in their rows.
            fresh = self._look_up(state, world, reduce)
            lost = self._note(state, reduce, fresh)
            self._succeed(state, world, rules, follows, lost, reduce)
            self._look_up(state, world, reduce)
            self._seen = state.version, int(np.count_nonzero(state.dead)), state.columns["leader"].copy()
        if len(self.id):
            self._note(state, reduce, np.ones(len(self.id), dtype=np.bool_))
            self.trails.note(self.id, self.place, self._spacing(state, reduce), world)
        return changed

    def look(self, state: AgentState, world: World, reduce: Reductions) -> None:
        """Note what is to be known of new leaders, in case they are gone before the next decision."""
        self._note(state, reduce, self._look_up(state, world, reduce))

    def _fade(self, state: AgentState, dt: float, reduce: Reductions) -> None:
        offset = state.columns["handover"]
        if reduce.any(np.count_nonzero(offset) > 0):
            offset *= math.exp(-dt / _HANDOVER_TIME)
            offset[np.linalg.norm(offset, axis=1) < _HANDED_OVER] = 0.0

    def _changed(self, state: AgentState, reduce: Reductions) -> bool:
        leader = state.columns["leader"]
        if self._seen is None:
            return reduce.any(bool((leader >= 0).any()))
        version, dead, seen = self._seen
        same = version == state.version and dead == np.count_nonzero(state.dead) and np.array_equal(seen, leader)
        return reduce.any(not same)

    def followed(self, state: AgentState, reduce: Reductions) -> Ints:
        """Ids of all agents that living agents follow, ascending."""
        leader = state.columns["leader"]
        own = (leader >= 0) & (leader != state.id) & (state.dead == 0)
        own[state.owned :] = False
        return reduce.union(leader[own])

    def _succeed(
        self, state: AgentState, world: World, rules: Sequence[str | int | None], follows: Sequence[Sequence[int]],
        lost: NDArray[np.bool_], reduce: Reductions,
    ) -> None:  # fmt: skip
        never = set(self.id[lost].tolist())
        ids = self.followed(state, reduce)
        leader = state.columns["leader"]
        for gone in ids[~are_there(ids, state, reduce)].tolist():
            party = np.flatnonzero((leader == gone) & (state.dead == 0))
            if gone in never:
                self._follow(state, party, NOBODY, 0.0)
                continue
            known = int(np.searchsorted(self.id, gone))
            groups = reduce.union(state.group[party].astype(np.int64)).tolist()
            choice = Choice(
                state=state, world=world, goal=int(self.goal[known]), point=self.goal_point[known], reduce=reduce
            )
            led_by = [other for group in groups for other in follows[group] if other not in groups]
            candidates = np.flatnonzero(np.isin(state.group, led_by) & (leader == NOBODY))
            new = choice.nearest_to(self.place[known], candidates)
            if new == NOBODY:
                rule = rules[groups[0]]
                new = choice.designate("nearest" if not isinstance(rule, str) else rule, party)
                self._inherit(state, new, known)
            offset = nearest_images(
                self.place[known][None] - values_of(np.array([new]), "position", state, reduce), world.period
            )[0]
            self._rename(gone, new)
            self._follow(state, party, new, offset)

    def _rename(self, old: int, new: int) -> None:
        """What is known of a leader belongs to its successor, unless that one leads others already."""
        if new == NOBODY or new in self.id or old not in self.id:
            return
        self.id = np.where(self.id == old, new, self.id)
        order = np.argsort(self.id)
        for name in ("id", "place", *_INHERITED):
            setattr(self, name, getattr(self, name)[order])
        self.trails.reorder(order)

    def _inherit(self, state: AgentState, new: int, known: int) -> None:
        """Give the goal and stages of a leader that is gone to an agent, unless it has a goal of its own."""
        rows = state.rows_of([new])
        if len(rows) and state.goal[rows[0]] in (NO_GOAL, self.goal[known]):
            for name in _INHERITED:
                state.columns[name][rows] = getattr(self, name)[known]

    def share_goals(self, state: AgentState, rows: Ints) -> None:
        """Give followers the goals of their leaders."""
        leader = state.columns["leader"][rows]
        place = np.minimum(np.searchsorted(self.id, leader), max(len(self.id) - 1, 0))
        if len(self.id):
            known = self.id[place] == leader
            rows, place = rows[known], place[known]
            state.goal[rows], state.goal_point[rows] = self.goal[place], self.goal_point[place]
            state.agenda[rows], state.stage[rows] = -1, np.minimum(state.stage[rows], 0)

    @staticmethod
    def _follow(state: AgentState, party: Ints, new: int, offset: Floats | float) -> None:
        """Let agents follow another one; the place that they pursued is at an offset from it."""
        leader, handover = state.columns["leader"], state.columns["handover"]
        itself, others = party[state.id[party] == new], party[state.id[party] != new]
        leader[itself], handover[itself] = NOBODY, 0.0
        leader[others] = new
        handover[others] = handover[others] + offset if new != NOBODY else 0.0

    def replace(self, state: AgentState, world: World, party: Ints, old: int, new: int, *, reduce: Reductions) -> None:
        """Make another agent the leader of a party, with the goal and stages of the one it follows; both are there."""
        both = np.array([old, new])
        before, after = state.rows_of([old]), state.rows_of([new])
        for name in _INHERITED:
            state.columns[name][after] = values_of(both[:1], name, state, reduce)[0]
        state.goal[before], state.agenda[before] = NO_GOAL, NOBODY
        state.stage[before] = np.minimum(state.stage[before], 0)
        self._rename(old, new)
        place = values_of(both, "position", state, reduce)
        offset = nearest_images(place[:1] - place[1:], world.period)[0]
        self._follow(state, np.union1d(party, before), new, offset)

    # What is known of them --------------------------------------------------------------------------------------

    def _look_up(self, state: AgentState, world: World, reduce: Reductions) -> NDArray[np.bool_]:
        """Make room for the present leaders; what is known of those that stay is kept. Returns which are new."""
        ids = self.followed(state, reduce)
        place = np.searchsorted(self.id, ids)
        kept = (place < len(self.id)) & (np.append(self.id, NOBODY)[np.minimum(place, len(self.id))] == ids)
        for name in ("place", *_INHERITED):
            old = getattr(self, name)
            new = np.zeros((len(ids), *old.shape[1:]), dtype=old.dtype)
            new[kept] = old[place[kept]]
            setattr(self, name, new)
        self.trails.keep(ids, kept, place, world)
        self.id = ids
        return np.asarray(~kept)

    def _note(self, state: AgentState, reduce: Reductions, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Where some leaders are now and what they want; each is known to one process. Returns which are not there."""
        for name, column in (("place", "position"), *((name, name) for name in _INHERITED)):
            getattr(self, name)[which] = values_of(self.id, column, state, reduce)[which]
        here = own_rows(self.id, state)[1]
        return which & (reduce.counts(here.astype(np.int64)) == 0)

    def _spacing(self, state: AgentState, reduce: Reductions) -> float:
        """How far apart the points of a trail are [m]: a body's radius, but not much less than how far agents see.

        A body that goes straight from one to the next clears the corners that its leader went around.
        """
        if self.trails.spacing == 0.0:
            sense = min(max(reduce.median(np.minimum(state.sense_radius, 1e6)), 0.04), 4.0)
            self.trails.spacing = min(max(reduce.median(state.radius), 0.1 * sense), 0.25 * sense)
        return self.trails.spacing

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        own = {name: getattr(self, name) for name in ("id", "place", *_INHERITED)}
        return {f"leaders/{name}": array.copy() for name, array in {**own, **self.trails.state()}.items()}

    def read(self, stored: Mapping[str, NDArray[Any]], *, goals: int, agendas: int) -> Leaders:
        """The leaders as `state` returned them, checked."""
        fresh = Leaders(self._dim)
        ids = taken(stored, "leaders/id", dtype="int64", shape=(None,), low=0)
        if (np.diff(ids) <= 0).any():
            raise CheckpointError("'leaders/id' must hold ascending numbers, each once")
        fresh.id, shape = ids, (len(ids), self._dim)
        fresh.place = taken(stored, "leaders/place", dtype="float64", shape=shape, low=-FARTHEST, high=FARTHEST)
        fresh.goal = taken(stored, "leaders/goal", dtype="int32", shape=ids.shape, low=-4, high=goals - 1)
        fresh.goal_point = taken(
            stored, "leaders/goal_point", dtype="float64", shape=shape, low=-FARTHEST, high=FARTHEST
        )
        fresh.agenda = taken(stored, "leaders/agenda", dtype="int32", shape=ids.shape, low=-1, high=agendas - 1)
        fresh.stage = taken(stored, "leaders/stage", dtype="int32", shape=ids.shape, low=-1)
        for name in ("stage_since", "stage_until"):
            setattr(fresh, name, taken(stored, f"leaders/{name}", dtype="float64", shape=ids.shape, low=0.0))
        fresh.critical = taken(stored, "leaders/critical", dtype="uint8", shape=ids.shape, high=1)
        fresh.trails = Trails.read(stored, len(ids), self._dim)
        return fresh
