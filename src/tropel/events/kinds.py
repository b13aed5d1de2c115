"""Events for doors, exits, obstacles, targets, goals, parameters, behaviours and agents.

Events are applied at step boundaries, in the order (step, sequence). Each is a small frozen model, so that the same
definition serves Python (`sim.at(20.0, events.CloseDoor(door="main"))`), scenario files (`kind = "close_door"`), the
record of a run and its checkpoints. A Python function of the simulation is an event too, but files cannot hold it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from tropel.agents.groups import Group
from tropel.agents.personal_fields import PersonalFields, Value
from tropel.agents.room import check_region
from tropel.agents.stages.stage import StageField
from tropel.errors import ParameterError
from tropel.events.base import Event, GroupName, Named
from tropel.foundation.field_types import NotNegativeWhole, PositiveWhole
from tropel.foundation.renamed import current_behaviour
from tropel.world import Obstacle, Target, World
from tropel.world.motion import Motion, PointField
from tropel.world.places import Place, PlaceField, check_point
from tropel.world.shapes import Length, PositiveLength

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class OpenDoor(Event):
    """Open a door."""

    kind: Literal["open_door"] = "open_door"
    door: Annotated[str, Named("door")]

    def apply(self, sim: Simulation) -> None:
        sim.world.set_door(self.door, open=True)


class CloseDoor(Event):
    """Close a door; people stay on the side they are on."""

    kind: Literal["close_door"] = "close_door"
    door: Annotated[str, Named("door")]

    def apply(self, sim: Simulation) -> None:
        if sim.world.doors[self.door].open:
            sim.clear_doorway(self.door)
        sim.world.set_door(self.door, open=False)


class OpenExit(Event):
    """Let people out through an exit again."""

    kind: Literal["open_exit"] = "open_exit"
    exit: Annotated[str, Named("exit")]

    def apply(self, sim: Simulation) -> None:
        sim.world.set_exit(self.exit, open=True)


class CloseExit(Event):
    """Take an exit out of use: agents no longer leave through it, and "nearest exit" means another one."""

    kind: Literal["close_exit"] = "close_exit"
    exit: Annotated[str, Named("exit")]

    def apply(self, sim: Simulation) -> None:
        sim.world.set_exit(self.exit, open=False)


class AddObstacle(Event):
    """Add a round obstacle to the world, standing or moving."""

    kind: Literal["add_obstacle"] = "add_obstacle"
    name: Annotated[str, Named("obstacle", "adds")]
    radius: PositiveLength
    position: PointField | None = None
    motion: Motion | None = None
    type: str = "obstacle"

    def check(self, sim: Simulation, step: int) -> None:
        sim.world.check_obstacle(self.name, self.made(), time=step * sim.dt)

    def apply(self, sim: Simulation) -> None:
        sim.world.obstacles.add(self.name, self.made(), time=sim.time, dt=sim.dt)

    def made(self) -> Obstacle:
        return Obstacle(radius=self.radius, position=self.position, motion=self.motion, type=self.type)


class MoveObstacle(Event):
    """Move an obstacle to another place, where it stays."""

    kind: Literal["move_obstacle"] = "move_obstacle"
    name: Annotated[str, Named("obstacle")]
    position: PointField

    def check(self, sim: Simulation, step: int) -> None:
        moved = sim.events.foreseen("obstacle", self.name, step, sim.world.obstacles)
        if moved is not None:
            sim.world.check_obstacle(self.name, replace(moved, position=self.position, motion=None))

    def apply(self, sim: Simulation) -> None:
        sim.world.obstacles.move(self.name, self.position)


class RemoveObstacle(Event):
    """Remove an obstacle."""

    kind: Literal["remove_obstacle"] = "remove_obstacle"
    name: Annotated[str, Named("obstacle", "removes")]

    def apply(self, sim: Simulation) -> None:
        sim.world.obstacles.remove(self.name)


class AddTarget(Event):
    """Add a target that agents may be sent to."""

    kind: Literal["add_target"] = "add_target"
    name: Annotated[str, Named("target", "adds")]
    position: PointField | None = None
    motion: Motion | None = None
    radius: Length = 0.5
    absorbs: bool = False

    def check(self, sim: Simulation, step: int) -> None:
        sim.world.check_target(self.name, self._target(), time=step * sim.dt)

    def apply(self, sim: Simulation) -> None:
        sim.world.add_target(self.name, self._target())

    def _target(self) -> Target:
        return Target(position=self.position, motion=self.motion, radius=self.radius, absorbs=self.absorbs)


class MoveTarget(Event):
    """Move a target to another place, where it stays."""

    kind: Literal["move_target"] = "move_target"
    name: Annotated[str, Named("target")]
    position: PointField

    def check(self, sim: Simulation, step: int) -> None:
        sim.world.check_target(self.name, Target(position=self.position))

    def apply(self, sim: Simulation) -> None:
        sim.world.move_target(self.name, self.position)


class RemoveTarget(Event):
    """Remove a target.

    Agents that were heading for it begin the next stage of their list; the others return to the goal that their group
    was declared with. If that was this very target, they have no goal. Newcomers that would be sent there have none
    either, until a target of that name exists again.
    """

    kind: Literal["remove_target"] = "remove_target"
    name: Annotated[str, Named("target", "removes")]

    def apply(self, sim: Simulation) -> None:
        sim.world.remove_target(self.name)
        sim.give_up(self.name)


class SetGoal(Event):
    """Send a group, agents by their ids, or all agents to a place, "nearest exit", "nearest target" or "none".

    On arrival they go on to the places in `then`, one after the other, and with `repeat` to the first one again.
    """

    kind: Literal["set_goal"] = "set_goal"
    goal: Annotated[PlaceField, Named("goal")]
    group: GroupName = None
    ids: Annotated[tuple[NotNegativeWhole, ...] | None, Field(description="of the agents to send")] = None
    then: Annotated[tuple[PlaceField, ...], Named("goal"), Field(description="where they go next")] = ()
    repeat: Annotated[bool, Field(description="whether the first goal follows the last")] = False

    def check(self, sim: Simulation, step: int) -> None:
        # To which groups single agents belong is known when the event is due.
        groups = () if self.ids is not None else sim.groups if self.group is None else (self.group,)
        for goal in (self.goal, *self.then):
            sim.layers.check_goal(goal, groups)
            if isinstance(goal, Place) and goal.point is not None:
                check_point(sim.world, goal.point, "set_goal")
        if self.repeat and not self.then:
            raise ParameterError("repeat is for several goals; give those after the first one in then")

    def apply(self, sim: Simulation) -> None:
        sim.set_goal(self.goal, group=self.group, ids=self.ids, then=self.then, repeat=self.repeat)


class SetLeader(Event):
    """Let one agent of a group lead all others; it takes over the goal of the leader before.

    Nothing happens if that agent, or the whole group, is gone by then.
    """

    kind: Literal["set_leader"] = "set_leader"
    group: Annotated[str, Named("group")]
    leader: Annotated[
        Literal["nearest", "central"] | NotNegativeWhole | None,
        Field(description='"nearest" to the goal, "central", or the number of an agent of the group from 0'),
    ] = None
    id: Annotated[NotNegativeWhole | None, Field(description="of the agent, instead of leader")] = None

    def check(self, sim: Simulation, step: int) -> None:
        if (self.leader is None) == (self.id is None):
            raise ParameterError("give either leader, how it is designated, or the id of an agent")
        if "leader" not in sim.agents.columns:
            raise ParameterError("nobody here can follow a leader; declare the group with leader or follow")
        people, state = sim.population, sim.agents
        coming = sim.events.most_newcomers(step, zip(people.sources, people.emitted, strict=True))
        also = f", and at most {coming:g} more come until then" if coming else ""
        remedy = f"give the id or the number of an agent that group '{self.group}' has, or leader = \"nearest\""
        if self.id is not None:
            self._check_group(sim, self.id, remedy)
            if self.id >= state.next_id + coming:
                raise ParameterError(
                    f"no agent can have the id {self.id}: ids so far are 0 to {state.next_id - 1}{also}; {remedy}"
                )
        elif isinstance(self.leader, int) and self.leader >= (count := people.count(self.group, sim.reduce)) + coming:
            raise ParameterError(
                f"leader is number {self.leader}, but group '{self.group}' has {count} agents{also}, from number 0 on; "
                f"{remedy}"
            )

    def _check_group(self, sim: Simulation, id: int, remedy: str) -> None:
        for row in sim.agents.rows_of([id]).tolist():
            if (own := sim.agents.group_names[sim.agents.group[row]]) != self.group:
                raise ParameterError(f"agent {id} is of group '{own}', not of '{self.group}'; {remedy}")

    def apply(self, sim: Simulation) -> None:
        if sim.population.somebody_is_left(self.group, self.id):
            sim.set_leader(self.group, self.leader, id=self.id)


class SetParameter(Event):
    """Give a group (default: all agents) a new value of a parameter: a number, a distribution, or "default"."""

    kind: Literal["set_parameter"] = "set_parameter"
    name: Annotated[str, Named("parameter")]
    value: Annotated[
        Value | Literal["default"], Field(description='"default": as if never set; a flock then uses its own value')
    ]
    group: GroupName = None

    def check(self, sim: Simulation, step: int) -> None:
        sim.check_parameter(self.name, self.value)

    def apply(self, sim: Simulation) -> None:
        sim.set_parameter(self.name, self.value, group=self.group)


class SetBehaviour(Event):
    """Switch a behaviour of the layers off or on, such as "congestion" or "hazard influence"."""

    kind: Literal["set_behaviour"] = "set_behaviour"
    name: Annotated[str, Named("behaviour"), AfterValidator(current_behaviour)]
    on: bool
    by: Annotated[
        Literal["hand", "budget"], Field(description="who decided; a budget undoes only its own decisions")
    ] = "hand"

    def apply(self, sim: Simulation) -> None:
        sim.set_behaviour(self.name, self.on, by_budget=self.by == "budget")


class AddAgents(Event, PersonalFields):
    """Add agents in a region, where there is room for them."""

    kind: Literal["add_agents"] = "add_agents"
    group: Annotated[str, Named("group")]
    count: PositiveWhole
    region: Annotated[str | None, Named("region")] = None
    around: Annotated[PointField | None, Field(description="a place, instead of a region")] = None
    within: Annotated[PositiveLength, Field(description="how far from that place they appear [m]")] = 2.0
    goal: Annotated[PlaceField, Named("goal", even_gone=True)] = "nearest exit"
    then: Annotated[
        tuple[PlaceField, ...], Named("goal", even_gone=True), Field(description="where they go next, on arrival")
    ] = ()
    stages: Annotated[
        tuple[StageField, ...] | None,
        Named("goal", even_gone=True),
        Field(description="instead of goals: what they do, one after the other"),
    ] = None
    follow: Annotated[str | None, Named("group"), Field(description="a group, whose nearest agent is followed")] = None

    def check(self, sim: Simulation, step: int) -> None:
        sim.check_newcomers(self, group=self.group)
        if self.region is not None and self.around is not None:
            raise ParameterError("agents appear in a region or around a place; give only one of the two")
        newcomers = Group(self.group, **self.what(sim.world))
        check_region(sim.world, newcomers.region, f"the newcomers of group '{self.group}'")

    def apply(self, sim: Simulation) -> None:
        sim.add_agents(self.group, **self.what(sim.world))

    def what(self, world: World) -> dict[str, Any]:
        """The fields of the `Group` that is added."""
        region = self.region if self.around is None else world.disc(self.around, self.within)
        return {**self.personal(), "count": self.count, "region": region}


class RemoveAgents(Event):
    """Remove agents: a group, those in a region, or those that meet both conditions."""

    kind: Literal["remove_agents"] = "remove_agents"
    group: GroupName = None
    region: Annotated[str | None, Named("region")] = None

    def apply(self, sim: Simulation) -> None:
        sim.remove_agents(group=self.group, region=self.region)
