"""Bonds: families, and agents that follow a leader.

Models and habits that use bonds declare the columns `family` (a number that its members share) and `leader` (an id), -1
for none. `Bonds` fills them in for groups that are declared with `families`, `follow` or `leader`, and lets others
succeed leaders that are gone (`agents/leaders.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.goals import Aim
from tropel.agents.leaders import (
    DESIGNATIONS,
    LEADER,
    NOBODY,
    Choice,
    Leaders,
    check_designation,
    check_follows,
    check_leaders_exist,
    numbered,
)
from tropel.agents.state import NO_GOAL, AgentState
from tropel.agents.whole_crowd import are_there, ids_of, values_of
from tropel.errors import CheckpointError, ParameterError
from tropel.foundation.arguments import is_whole_number
from tropel.foundation.reductions import ONE_PROCESS, Reductions
from tropel.foundation.stored_arrays import taken
from tropel.registry import HABITS, MODELS, Entry
from tropel.world import World

if TYPE_CHECKING:
    from tropel.agents.groups import Personal

Ints = NDArray[np.int64]

#: Families made here are numbered from this on, by the id of a member; lower numbers are free for your own families.
FIRST_NUMBER = 1 << 30
#: The columns that `families`, `follow` and `leader` fill in.
COLUMN_OF = {"families": "family", "follow": "leader", "leader": "leader", "squad": "role"}


def check_bonds(families: Any, follow: Any, leader: Any, parameters: Any, *, who: str) -> None:
    """Raise if the declared bonds make no sense; `who` begins the message."""
    if families is not None and (isinstance(families, bool) or not isinstance(families, Integral) or families < 2):
        raise ParameterError(f"{who}: families is the number of people per family, at least 2, not {families!r}")
    if follow is not None and not isinstance(follow, str):
        raise ParameterError(f"{who}: follow names a group, whose nearest agent is followed, not {follow!r}")
    check_designation(leader, who)
    if families is not None and is_whole_number(leader):
        raise ParameterError(
            f'{who}: leader designates one in each family, so it is "nearest" or "central", not a number'
        )
    if families is not None and follow is not None and leader is not None:
        raise ParameterError(f"{who}: families are led by one of their own or follow a group; give leader or follow")
    given = {"families": families, "follow": follow, "leader": leader}
    for told, column in COLUMN_OF.items():
        if given.get(told) is not None and column in parameters:
            raise ParameterError(f"{who}: give either {told} or the parameter {column}, which it sets")


def check_no_circle(follows: Mapping[str, set[str]]) -> None:
    """Raise if a group follows itself through others: none of them would lead."""
    # A group that follows itself has a leader of its own.
    follows = {group: led_by - {group} for group, led_by in follows.items()}
    for begin in follows:
        came_from: dict[str, str] = {}
        waiting = [begin]
        while waiting:
            group = waiting.pop()
            for leader in follows.get(group, ()):
                if leader not in came_from:
                    came_from[leader] = group
                    waiting.append(leader)
        if begin in came_from:
            way = [begin, came_from[begin]]
            while way[-1] != begin:
                way.append(came_from[way[-1]])
            circle = "', which follows '".join(reversed(way))
            raise ParameterError(f"group '{circle}': one of them must lead; leave its follow out")


def check_has_bonds(bonds: Mapping[str, Any], *, group: str, model: str, columns: set[str]) -> None:
    """Raise if the model that steers a group does not use families or leaders."""
    for told, given in bonds.items():
        if given is not None and COLUMN_OF[told] not in columns:
            raise ParameterError(
                f"group '{group}': {told} sets the column {COLUMN_OF[told]}, which its steering model {model} does not "
                f"have; {_what_has(COLUMN_OF[told])}, or leave {told} out"
            )


def _what_has(column: str) -> str:
    """Which of tropel's own models and habits have a column, as advice."""
    models = [model for model in map(Entry.load, MODELS.values()) if column in _columns_of(model)]
    habits = [habit for habit in map(Entry.load, HABITS.values()) if column in habit.binds]
    having = {"steer it with": models, "give it the habit": habits}
    return ", ".join(f"{say} {' or '.join(made.__name__ for made in some)}" for say, some in having.items() if some)


def _columns_of(layer: type[Any]) -> set[str]:
    return {column.name for column in layer().declares.columns}


def cut_into_families(position: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """For each agent the row of its family's first member. Families are neighbours; the last may be smaller.

    The agents are halved across the longer side of their bounding box, recursively, between whole families.
    """
    first = np.empty(len(position), dtype=np.int64)
    parts = [np.arange(len(position))] if len(position) else []
    while parts:
        rows = parts.pop()
        families = -(-len(rows) // size)
        if families == 1:
            first[rows] = rows.min()
            continue
        axis = int(np.argmax(np.ptp(position[rows], axis=0)))
        ordered = rows[np.argsort(position[rows, axis], kind="stable")]
        middle = families // 2 * size
        parts += [ordered[:middle], ordered[middle:]]
    return first


def nearest_of(
    position: NDArray[np.float64], leaders: NDArray[np.float64], ids: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each place the id of the nearest leader."""
    from scipy.spatial import cKDTree

    return np.asarray(ids[cKDTree(leaders).query(position)[1]], dtype=np.int64)


# The bonds of a crowd ------------------------------------------------------------------------------------------------

#: No goal.
NOWHERE = Aim(NO_GOAL, ())
#: In the place of a designation: none was given.
_UNTOLD = -3


class Bonds:
    """Families and leaders of a crowd. Arrays have a row for each group."""

    def __init__(self, world: World, groups: int) -> None:
        self.world = world
        self.leaders = Leaders(world.dim)
        self.own_leader: Ints = np.full(groups, NOBODY, dtype=np.int64)  #: of groups that are led by one of their own
        self._rule: Ints = np.full(groups, _UNTOLD, dtype=np.int64)  #: how leaders are designated: -1, -2 or a number
        self.on_ground = np.zeros(groups, dtype=np.bool_)  #: groups whose agents need a goal to move
        self._shares = np.zeros(groups, dtype=np.bool_)  #: groups on the ground whose followers go where leaders go
        self.follows: list[list[int]] = [[] for _ in range(groups)]  #: groups that each was declared to follow

    def rule(self, number: int) -> str | int | None:
        """How a group designates leaders; None if it was not told."""
        code = int(self._rule[number])
        return None if code == _UNTOLD else code if code >= 0 else DESIGNATIONS[-1 - code]

    def _set_rule(self, number: int, how: str | int) -> None:
        self._rule[number] = -1 - DESIGNATIONS.index(how) if isinstance(how, str) else how

    # Newcomers --------------------------------------------------------------------------------------------------

    def bind(
        self, told: Personal, state: AgentState, number: int, rows: Ints, *, who: str, led_by: Ints | None = None,
        aim: Aim = NOWHERE, agenda: int = -1, at_start: bool = False,
        reduce: Reductions = ONE_PROCESS,
    ) -> None:  # fmt: skip
        """Group newcomers of a group into families and give them leaders.

        `led_by` are the rows of the living of the group that they follow; `aim` and `agenda` are what that group was
        declared to do. If nobody of it is left, they join a party of their own group; without one, they go to their own
        goal, and if they have none, one of them leads the others to that aim.
        """
        if told.leader is not None:
            self._set_rule(number, told.leader)
        ids = ids_of(rows, state, reduce)
        if len(ids) == 0:
            if told.leads_itself:
                key = "leader" if getattr(told, "squad", None) is None else "squad"
                raise ParameterError(f"{who} has no agents, so none of them can lead: give it some, or leave {key} out")
            return
        how = "nearest" if told.leader is None else told.leader
        aimless = told.follow is not None and not reduce.any(bool((state.goal[rows] != NO_GOAL).any()))
        self._shares[number] |= self.on_ground[number] and (told.leads_itself or aimless)
        if told.families is not None:
            self._bind_families(told, state, rows, ids, reduce)
        elif told.leads_itself:
            self._bind_to_own(how, state, number, rows, ids, who, reduce)
        if led_by is not None and not told.leads_itself:
            leading = ids_of(led_by, state, reduce)
            # The number of one of a group that has become smaller designates the nearest, as if it were left out.
            told_off = told.leader is not None and (isinstance(how, str) or how < len(leading) or at_start)
            if len(leading) and told_off and told.families is None:
                self._lead(state, rows, self._designated(how, state, led_by, leading, who, reduce))
            elif len(leading):
                self._follow_nearest(state, rows, leading, reduce)
            else:
                self._bind_to_party(state, number, rows, aim, agenda, reduce)
        if told.follow is not None or told.leader is not None or LEADER.name in told.parameters:
            check_follows(state, reduce)
            check_leaders_exist(state)
            self.leaders.look(state, self.world, reduce)

    def _bind_families(self, told: Personal, state: AgentState, rows: Ints, ids: Ints, reduce: Reductions) -> None:
        first = cut_into_families(values_of(ids, "position", state, reduce), told.families or 2)
        family = first[np.searchsorted(ids, state.id[rows])]
        state.columns["family"][rows] = FIRST_NUMBER + ids[family]
        if isinstance(told.leader, str):
            for head in np.unique(first).tolist():
                members, those = rows[family == head], ids[first == head]
                self._lead(state, members, self._choice(state, int(those[0]), reduce).designate(told.leader, members))

    def _bind_to_own(
        self, how: str | int, state: AgentState, number: int, rows: Ints, ids: Ints, who: str, reduce: Reductions
    ) -> None:
        """Let newcomers follow the leader of their group, or one of them if it has none; only that one has a goal."""
        self._set_rule(number, how)
        chosen = int(self.own_leader[number])
        # A leader that is gone has a party until the next decision: the newcomers join it and get the same successor.
        if not self._is_there(chosen, state, reduce) and chosen not in self.leaders.followed(state, reduce):
            chosen = self._designated(how, state, rows, ids, who, reduce)
            self.own_leader[number] = chosen
        self._lead(state, rows, chosen)
        self._only_the_leader_has_a_goal(state, rows, chosen)

    def _follow_nearest(self, state: AgentState, rows: Ints, leading: Ints, reduce: Reductions) -> None:
        place = values_of(leading, "position", state, reduce)
        state.columns["leader"][rows] = nearest_of(state.position[rows], place, leading)

    def _bind_to_party(
        self, state: AgentState, number: int, rows: Ints, aim: Aim, agenda: int, reduce: Reductions
    ) -> None:
        """Let newcomers follow whoever leads in their group, since nobody is left of the group that they follow."""
        own = (state.group == number) & (state.dead == 0)
        own[rows] = False
        leader = state.columns["leader"]
        led = own & (leader >= 0)
        led[state.owned :] = False
        followed = reduce.union(leader[led])
        gone = followed[~are_there(followed, state, reduce)]
        if len(gone):
            # A leader that is gone has a party until the next decision. They get the same successor.
            leader[rows] = gone[0]
            return
        aimless = not reduce.any(bool((state.goal[rows] != NO_GOAL).any()))
        free = own & (leader == NOBODY) & (np.isin(state.id, followed) | (aimless & (state.goal != NO_GOAL)))
        if len(leading := ids_of(np.flatnonzero(free), state, reduce)):
            self._follow_nearest(state, rows, leading, reduce)
        elif aimless:
            self._lead_to(aim, agenda, state, rows, reduce)

    def _lead_to(self, aim: Aim, agenda: int, state: AgentState, rows: Ints, reduce: Reductions) -> None:
        """Let one of the newcomers, which have no goal, lead the others to an aim."""
        goal, point = aim.number, np.array(aim.point or (0.0,) * state.dim)
        choice = Choice(state=state, world=self.world, goal=goal, point=point, reduce=reduce)
        chosen = choice.designate("nearest", rows)
        mine = state.rows_of([chosen])
        state.goal[mine], state.goal_point[mine], state.agenda[mine] = goal, point, agenda
        # A list begins with the next decision.
        state.stage[mine] = np.minimum(state.stage[mine], -1 if agenda >= 0 else 0)
        self._lead(state, rows, chosen)

    @staticmethod
    def _only_the_leader_has_a_goal(state: AgentState, rows: Ints, leader: int) -> None:
        followers = rows[state.id[rows] != leader]
        state.goal[followers], state.goal_point[followers] = NO_GOAL, 0.0
        # Whoever has not started yet still needs its time.
        state.agenda[followers], state.stage[followers] = -1, np.minimum(state.stage[followers], 0)

    @staticmethod
    def _is_there(agent: int, state: AgentState, reduce: Reductions) -> bool:
        return bool(are_there(np.array([agent]), state, reduce)[0])

    def _designated(
        self, how: str | int, state: AgentState, rows: Ints, ids: Ints, who: str, reduce: Reductions
    ) -> int:
        """The id of the agent among these rows that leads; `ids` are those of all processes."""
        if not isinstance(how, str):
            return numbered(how, ids, who)
        return self._choice(state, int(ids[0]), reduce).designate(how, rows)

    def _choice(self, state: AgentState, agent: int, reduce: Reductions) -> Choice:
        """What is needed to choose one that leads to the goal of an agent."""
        one = np.array([agent])
        goal, point = values_of(one, "goal", state, reduce)[0], values_of(one, "goal_point", state, reduce)[0]
        return Choice(state=state, world=self.world, goal=int(goal), point=point, reduce=reduce)

    @staticmethod
    def _lead(state: AgentState, rows: Ints, leader: int) -> None:
        """Let agents follow another one, which may be among them."""
        state.columns["leader"][rows] = np.where(state.id[rows] == leader, NOBODY, leader)

    # While it runs ----------------------------------------------------------------------------------------------

    def keep_up(self, state: AgentState, *, dt: float, reduce: Reductions) -> None:
        """Let others succeed leaders that are gone."""
        rules = [self.rule(number) for number in range(len(self.follows))]
        changed = self.leaders.keep_up(state, self.world, rules, self.follows, dt=dt, reduce=reduce)
        if self._shares.any():
            self.leaders.share_goals(state, np.flatnonzero(self._shares[state.group] & (state.dead == 0)))
        if changed:
            for number in np.flatnonzero(self.own_leader != NOBODY).tolist():
                led = (state.group == number) & (state.dead == 0)
                led[state.owned :] = False
                followed = reduce.union(state.columns["leader"][led])
                followed = followed[followed >= 0]
                own = values_of(followed, "group", state, reduce) == number
                found = followed[own & are_there(followed, state, reduce)]
                self.own_leader[number] = found[0] if len(found) else self.own_leader[number]

    def set_leader(
        self, state: AgentState, number: int, living: Ints, how: str | int | None, agent: int | None, who: str, *,
        reduce: Reductions = ONE_PROCESS,
    ) -> None:  # fmt: skip
        """Make another agent of a group the leader of all others; it takes over the goal of the one before."""
        check_designation(how, who)
        if LEADER.name not in state.columns:
            raise ParameterError(f"{who}: nobody here can follow a leader; declare the group with leader or follow")
        if (how is None) == (agent is None):
            raise ParameterError(f"{who}: give either how the leader is designated or the id of one")
        ids = ids_of(living, state, reduce)
        if not len(ids):
            raise ParameterError(f"{who} has no living agents, so none can lead")
        if agent is not None and agent not in ids:
            raise ParameterError(f"{who}: no living agent of it has the id {agent}")
        old = int(self.own_leader[number])
        led = self._is_there(old, state, reduce)
        if agent is not None:
            new = agent
        elif isinstance(how, str):
            new = self._choice(state, old if led else int(ids[0]), reduce).designate(how, living)
        else:
            new = numbered(int(how or 0), ids, who)
        self._set_rule(number, "nearest" if how is None else how)
        self.own_leader[number] = new
        if led and new != old:
            self.leaders.replace(state, self.world, living, old, new, reduce=reduce)
        elif not led:
            self._lead(state, living, new)
            self._only_the_leader_has_a_goal(state, living, new)
        check_follows(state, reduce)

    def without_followers(self, state: AgentState, rows: Ints) -> Ints:
        """The agents of a group without those that follow one of their own and have no goal: they are led there."""
        if LEADER.name not in state.columns:
            return rows
        leader = state.columns["leader"][rows]
        led = state.row_of(leader)
        follows = (led >= 0) & (leader >= 0) & (state.goal[rows] == NO_GOAL) & (state.group[led] == state.group[rows])
        return rows[~follows]

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        own: dict[str, NDArray[Any]] = {"own_leader": self.own_leader, "rule": self._rule, "shares": self._shares}
        return {f"bonds/{name}": array.copy() for name, array in own.items()} | self.leaders.state()

    def read(self, stored: Mapping[str, NDArray[Any]], *, goals: int, agendas: int, next_id: int) -> Bonds:
        """The bonds as `state` returned them, checked."""
        fresh = Bonds(self.world, len(self.follows))
        shape = (len(self.follows),)
        fresh.follows, fresh.on_ground = self.follows, self.on_ground
        fresh._shares = taken(stored, "bonds/shares", dtype="bool", shape=shape) & self.on_ground
        fresh.own_leader = taken(stored, "bonds/own_leader", dtype="int64", shape=shape, low=NOBODY, high=next_id - 1)
        fresh._rule = taken(stored, "bonds/rule", dtype="int64", shape=shape, low=_UNTOLD, high=(1 << 30) - 1)
        fresh.leaders = self.leaders.read(stored, goals=goals, agendas=agendas)
        if len(fresh.leaders.id) and fresh.leaders.id[-1] >= next_id:
            raise CheckpointError(f"'leaders/id' holds {fresh.leaders.id[-1]}; the next agent would be {next_id}")
        return fresh
