"""What can be changed of a simulation between steps, by scripts, by events and on the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.groups import Group, Personal
from tropel.agents.sending import give_up, set_goal, set_stages
from tropel.agents.squads.squad import Formation
from tropel.agents.stages.stage import Stage, as_stages
from tropel.agents.tasks.board import DROPPED
from tropel.agents.tasks.task import Task
from tropel.contact.walls import step_off
from tropel.errors import ParameterError
from tropel.events import AddAgents
from tropel.foundation.arguments import CHECKED_ELSEWHERE, checked_arguments
from tropel.foundation.reductions import Reductions
from tropel.foundation.renamed import current_behaviour, renamed_method
from tropel.run.current_state import CurrentState
from tropel.world import World
from tropel.world.places import PlaceLike
from tropel.world.value_maps import ValueMap


class Changeable(CurrentState):
    """The part of a simulation that takes orders. Each is over at once; the next step acts on it."""

    world: World
    reduce: Reductions
    spared: set[str]

    @checked_arguments
    def add_agents(self, group: str, **what: Any) -> NDArray[np.int64]:
        """Add agents of a group now (the fields of `Group`); returns their ids."""
        newcomers = Group(group, **what)
        self.check_newcomers(newcomers, group=group)
        return self.population.add(newcomers, time=self.time, step=self.step_number, reduce=self.reduce)

    @checked_arguments
    def remove_agents(
        self, *, group: str | None = None, region: Any = None, ids: Iterable[int] | None = None
    ) -> NDArray[np.int64]:
        """Remove agents that meet all given conditions; returns their ids."""
        return self.population.remove(group=group, region=region, ids=ids)

    @checked_arguments
    def set_goal(
        self,
        goal: PlaceLike,
        *,
        group: str | None = None,
        ids: Annotated[Iterable[int] | None, CHECKED_ELSEWHERE] = None,
        then: Annotated[Sequence[PlaceLike], CHECKED_ELSEWHERE] = (),
        repeat: bool = False,
    ) -> None:
        """Send a group, the agents with these ids, or all agents somewhere.

        A goal is a place (a name, a point such as `(3, 4)` or a `Place`), "nearest exit", "nearest target" or "none".
        Agents that arrive go on to the places in `then`, one after the other, and with `repeat` to the first again.
        """
        ids = None if ids is None else list(ids)
        groups = self.population.groups_of(ids, group)
        for each in (goal, *then):
            self.layers.check_goal(each, groups)
        set_goal(self.population, goal, group=group, ids=ids, then=then, repeat=repeat, time=self.time)

    @checked_arguments
    def set_stages(
        self,
        stages: Annotated[Sequence[Stage | Mapping[str, Any]], CHECKED_ELSEWHERE],
        *,
        group: str | None = None,
        ids: Annotated[Iterable[int] | None, CHECKED_ELSEWHERE] = None,
        repeat: bool = False,
    ) -> None:
        """Give a group, the agents with these ids, or all agents another list of stages, with which they begin now."""
        ids = None if ids is None else list(ids)
        told = as_stages(stages, "set_stages")
        self.layers.check_stages(told, self.population.groups_of(ids, group))
        set_stages(self.population, told, group=group, ids=ids, repeat=repeat, time=self.time)

    def check_stages(self, stages: Sequence[Stage], *, group: str | None, ids: Sequence[int] | None) -> None:
        """Raise when a group could not go through stages; the places that they name are checked elsewhere."""
        # To which groups single agents belong is known when they are given the stages.
        self.layers.check_stages(stages, () if ids is not None else self.groups if group is None else (group,))
        for stage in stages:
            stage.check(self.population.setting, "set_stages")
            if stage.until is not None:
                stage.until.check(self.population.setting, "set_stages")

    @checked_arguments
    def signal(self, name: str) -> None:
        """Give a signal that people may wait for."""
        self.population.happened.note("signal", {"name": name}, step=self.step_number)

    @checked_arguments
    def add_task(self, name: str, task: Task) -> None:
        """Add a task for those that work (`Work`); in this step tasks are shared out anew."""
        people = self.population
        self.task_board().add(name, task, self.world, self.groups, people.state.declared, step=self.step_number)

    @checked_arguments
    def remove_task(self, name: str) -> None:
        """Drop a task, unless it is done already; whoever was working on it is free for others."""
        board = self.task_board()
        number = board.number(name)
        if board.posted[number].is_open:
            board.end(number, DROPPED, step=self.step_number)

    @checked_arguments
    def announce(
        self,
        about: str,
        state: str | None = None,
        *,
        group: str | None = None,
        ids: Annotated[Iterable[int] | None, CHECKED_ELSEWHERE] = None,
        region: Any = None,
    ) -> None:
        """Tell agents what a door, an exit, a hazard, an obstacle or a target is like: as it is, or as `state` says.

        That is "open" or "shut", "there" or "gone", true or not. All are told, or those that meet all conditions.
        """
        rows = self.population.chosen_rows(group=group, region=region, ids=ids)
        self.knowledge.announce(about, state, rows, self.world, self.step_number)

    @checked_arguments
    def order(
        self,
        squad: str,
        stages: Annotated[Sequence[Stage | Mapping[str, Any]], CHECKED_ELSEWHERE] = (),
        *,
        formation: Formation | None = None,
        resume: bool = True,
    ) -> None:
        """Give a squad something else to do now, or another formation; with `resume`, its mission goes on afterwards.

        Nothing happens if nobody of the squad is left.
        """
        told = as_stages(stages, "order")
        self.check_order(squad, told)
        assert self.population.squads is not None
        self.population.squads.give_order(
            self.population, squad, told, formation=formation, resume=resume, time=self.time, step=self.step_number
        )

    def check_order(self, squad: str, stages: Sequence[Stage]) -> None:
        """Raise when there is no such squad, or when it could not go through stages."""
        if self.population.squads is None:
            raise ParameterError(f"there is no squad '{squad}', because no group was declared with  squad = …")
        self.population.squads.number(squad)
        self.check_stages(stages, group=squad, ids=None)

    def give_up(self, target: str) -> None:
        """Agents on their way to a removed target begin their next stage, or return to their group's own goal."""
        give_up(self.population, target, self._stages.now())

    @checked_arguments
    def set_leader(
        self,
        group: str,
        leader: Annotated[str | int | None, CHECKED_ELSEWHERE] = None,
        *,
        id: int | None = None,
    ) -> None:
        """Let one agent of a group lead all others: "nearest" to the goal, "central", a number from 0, or by its id.

        It takes over the goal of the leader before, and the followers turn to it within a few seconds.
        """
        self.population.set_leader(group, leader, id=id, reduce=self.reduce)

    @checked_arguments
    def set_parameter(self, name: str, value: Any, *, group: str | None = None) -> None:
        """Give a group, or all agents, a new value of a parameter: a number, a distribution or "default"."""
        self.population.set_parameter(name, value, group=group, step=self.step_number)

    @checked_arguments
    def check_parameter(self, name: str, value: Any = "default") -> None:
        """Raise when agents have no settable parameter of that name, or when the value is not allowed."""
        self.population.check_parameter(name, value)

    def check_newcomers(self, told: Personal | AddAgents, *, group: str) -> None:
        """Raise when a group's planner and steering model do not use the personality or bonds it is given."""
        self.layers.check_newcomers(told, group=group)
        self.population.check_follow(group, told.follow)

    @checked_arguments
    def add_value_map(self, name: str, value_map: ValueMap) -> None:
        """Publish a value map on the ground, for models that follow the ground."""
        self.value_maps().add(name, value_map)

    @checked_arguments
    def remove_value_map(self, name: str) -> None:
        """Remove a value map."""
        self.value_maps().remove(name)

    add_layer = renamed_method("add_layer", "add_value_map")
    remove_layer = renamed_method("remove_layer", "remove_value_map")

    @checked_arguments
    def check_behaviour(self, name: str) -> None:
        """Raise when no layer has a behaviour of that name."""
        self.layers.check_behaviour(current_behaviour(name))

    @checked_arguments
    def set_behaviour(self, name: str, on: bool, *, by_budget: bool = False) -> None:
        """Switch a behaviour on or off; a budget only switches on again what it has switched off itself."""
        name = current_behaviour(name)
        self.layers.set_behaviour(name, on)
        self.spared.discard(name)
        if by_budget and not on:
            self.spared.add(name)

    @checked_arguments
    def clear_doorway(self, door: str) -> None:
        """No agent may stand exactly on the line of a closing door: such agents step back to where they came from."""
        self._stages.begin_to_move()
        step_off(self.agents, self.world, door, dt=self.dt)
        self._stages.settle()
