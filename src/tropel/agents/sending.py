"""Sending agents elsewhere while a simulation runs: another goal, other stages, no more to a target that is gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.goals import aim_of
from tropel.agents.stages.agendas import NOTHING
from tropel.agents.stages.stage import Now, Stage
from tropel.agents.stages.verbs import Go
from tropel.errors import ParameterError
from tropel.world.places import PlaceLike

if TYPE_CHECKING:
    from tropel.agents.population import Population

Rows = NDArray[np.int64]


def set_goal(
    people: Population,
    goal: PlaceLike,
    *,
    group: str | None,
    ids: Iterable[int] | None,
    then: Sequence[PlaceLike],
    repeat: bool,
    time: float,
) -> None:
    """Send a group, the agents with these ids, or all agents somewhere; afterwards to the places in `then`."""
    rows, who = _meant(people, group, ids, "set_goal")
    if repeat and not then:
        raise ParameterError(f"{who}: repeat is for several goals; give those after the first one in then")
    if then:
        stages = tuple(Go(place) for place in (goal, *then))
        people.agendas.give(people.state, rows, people.agenda_number(stages, repeat, who), time=time)
    else:
        _send(people, rows, goal, who, time=time)


def set_stages(
    people: Population,
    stages: Sequence[Stage],
    *,
    group: str | None,
    ids: Iterable[int] | None,
    repeat: bool,
    time: float,
) -> None:
    """Give a group, the agents with these ids, or all agents another list of stages."""
    rows, who = _meant(people, group, ids, "set_stages")
    people.agendas.give(people.state, rows, people.agenda_number(stages, repeat, who), time=time)


def give_up(people: Population, target: str, now: Now) -> None:
    """Agents on their way to a removed target begin the next stage of their list, if they have one.

    The others return to the goal that their group was declared with. If that was this very target, or another one that
    has been removed, they have no goal.
    """
    state = people.state
    there = np.flatnonzero(state.goal == people.world.goal_numbers[target]).astype(np.int64)
    there = people.agendas.skip(there, now)
    for number in np.unique(state.group[there]).tolist():
        group = people.groups[number]
        rows = there[state.group[there] == number]
        _send(people, rows, people.declared_goal(group), f"group '{group}'", time=now.time)


def _meant(people: Population, group: str | None, ids: Iterable[int] | None, call: str) -> tuple[Rows, str]:
    """Rows of a group, of all agents or of some of them, and how to call them; a led group is led by its leader."""
    rows = people.rows_in(group)
    if ids is None:
        who = "everybody" if group is None else f"group '{group}'"
        return people.bonds.without_followers(people.state, rows), who
    ids = list(ids)
    listed, next_id = people.listed(ids), people.state.next_id
    if never := [each for each in ids if not 0 <= each < next_id]:
        known = f"ids so far are 0 to {next_id - 1}" if next_id else "nobody has come yet"
        raise ParameterError(f"{call}: no agent has ever had the id {never[0]}; {known}")
    return listed[np.isin(listed, rows)], "the agents with these ids"


def _send(people: Population, rows: Rows, goal: PlaceLike, who: str, *, time: float) -> None:
    people.state.goal[rows], people.state.goal_point[rows] = aim_of(people.world, goal, who)
    people.agendas.give(people.state, rows, NOTHING, time=time)
