"""What changes while the simulation runs: doors, exits, obstacles, targets, agents and their parameters.

Events are applied at step boundaries, in the order (step, sequence). Each is a small frozen model, so that the same
definition serves Python (`sim.at(20.0, events.CloseDoor(door="main"))`), scenario files (`kind = "close_door"`), the
record of a run and its checkpoints. A Python function of the simulation is an event too, but a file cannot hold it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from tropel.agents.distributions import Distribution, Finite, draw
from tropel.agents.personality import PERSONALITY
from tropel.agents.presets import PersonalityField
from tropel.errors import ParameterError, readable_errors, suggest
from tropel.world import Obstacle, Target
from tropel.world.motion import Motion, PointField, PositiveFinite

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Value = Finite | Distribution


@readable_errors
class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def check(self, sim: Simulation) -> None:
        """Raise when it can be seen beforehand that the event cannot be applied."""

    def apply(self, sim: Simulation) -> None:
        raise TypeError(f"{type(self).__name__} does not say what it does")


class OpenDoor(_Event):
    """Open a door."""

    kind: Literal["open_door"] = "open_door"
    door: str

    def check(self, sim: Simulation) -> None:
        _known(self.door, sim.world.doors, "door")

    def apply(self, sim: Simulation) -> None:
        sim.world.set_door(self.door, open=True)


class CloseDoor(_Event):
    """Close a door; people stay on the side they are on."""

    kind: Literal["close_door"] = "close_door"
    door: str

    def check(self, sim: Simulation) -> None:
        _known(self.door, sim.world.doors, "door")

    def apply(self, sim: Simulation) -> None:
        if sim.world.doors[self.door].open:
            sim.clear_doorway(self.door)
        sim.world.set_door(self.door, open=False)


class OpenExit(_Event):
    """Let people out through an exit again."""

    kind: Literal["open_exit"] = "open_exit"
    exit: str

    def check(self, sim: Simulation) -> None:
        _known(self.exit, sim.world.exits, "exit")

    def apply(self, sim: Simulation) -> None:
        sim.world.set_exit(self.exit, open=True)


class CloseExit(_Event):
    """Take an exit out of use: nobody leaves through it, and "nearest exit" means another one."""

    kind: Literal["close_exit"] = "close_exit"
    exit: str

    def check(self, sim: Simulation) -> None:
        _known(self.exit, sim.world.exits, "exit")

    def apply(self, sim: Simulation) -> None:
        sim.world.set_exit(self.exit, open=False)


class AddObstacle(_Event):
    """Put a round obstacle into the world, standing or moving."""

    kind: Literal["add_obstacle"] = "add_obstacle"
    name: str
    radius: PositiveFloat
    position: PointField | None = None
    motion: Motion | None = None
    type: str = "obstacle"

    def check(self, sim: Simulation) -> None:
        self._obstacle()

    def apply(self, sim: Simulation) -> None:
        sim.world.obstacles.add(self.name, self._obstacle(), time=sim.time, dt=sim.dt)

    def _obstacle(self) -> Obstacle:
        return Obstacle(radius=self.radius, position=self.position, motion=self.motion, type=self.type)


class MoveObstacle(_Event):
    """Put an obstacle elsewhere; it stays there."""

    kind: Literal["move_obstacle"] = "move_obstacle"
    name: str
    position: PointField

    def apply(self, sim: Simulation) -> None:
        sim.world.obstacles.move(self.name, self.position)


class RemoveObstacle(_Event):
    """Take an obstacle away."""

    kind: Literal["remove_obstacle"] = "remove_obstacle"
    name: str

    def apply(self, sim: Simulation) -> None:
        sim.world.obstacles.remove(self.name)


class AddTarget(_Event):
    """Add a target that agents may be sent to."""

    kind: Literal["add_target"] = "add_target"
    name: str
    position: PointField | None = None
    motion: Motion | None = None
    radius: NonNegativeFloat = 0.5
    absorbs: bool = False

    def check(self, sim: Simulation) -> None:
        self._target()

    def apply(self, sim: Simulation) -> None:
        sim.world.add_target(self.name, self._target())

    def _target(self) -> Target:
        return Target(position=self.position, motion=self.motion, radius=self.radius, absorbs=self.absorbs)


class MoveTarget(_Event):
    """Put a target elsewhere; it stays there."""

    kind: Literal["move_target"] = "move_target"
    name: str
    position: PointField

    def apply(self, sim: Simulation) -> None:
        sim.world.move_target(self.name, self.position)


class SetGoal(_Event):
    """Send a group (everybody when left out) to an exit or target, "nearest exit", "nearest target" or "none"."""

    kind: Literal["set_goal"] = "set_goal"
    goal: str
    group: str | None = None

    def check(self, sim: Simulation) -> None:
        _known_group(self.group, sim)

    def apply(self, sim: Simulation) -> None:
        sim.set_goal(self.goal, group=self.group)


class SetParameter(_Event):
    """Give a group (everybody when left out) a new value of a parameter, a number or a distribution."""

    kind: Literal["set_parameter"] = "set_parameter"
    name: str
    value: Value
    group: str | None = None

    def check(self, sim: Simulation) -> None:
        _known_group(self.group, sim)
        sim.check_parameter(self.name)

    def apply(self, sim: Simulation) -> None:
        sim.set_parameter(self.name, self.value, group=self.group)


class _Shift(_Event):
    """A parameter that moves along a course of time: the gap between what each agent has and `to` is multiplied by it.

    Each step multiplies by `left(t) / left(t - dt)`, so the agents' own values and the time since the beginning are all
    that is needed: nothing depends on dt, a checkpoint holds it all, and shifts of one parameter can overlap.
    """

    name: str
    to: Annotated[Value | None, Field(description="a number or a distribution")] = None
    share: Annotated[
        float | None, Field(gt=0.0, le=1.0, description="of the way from the agent's own value to `to`")
    ] = None
    factor: Annotated[PositiveFinite | None, Field(description="instead of `to`: times the agent's own value")] = None
    group: str | None = None

    @model_validator(mode="after")
    def _said_once(self) -> _Shift:
        if (self.to is None) == (self.factor is None):
            raise ValueError("give either to or factor")
        if self.factor is not None and self.share is not None:
            raise ValueError("share goes with to, not with factor")
        return self

    def check(self, sim: Simulation) -> None:
        _known_group(self.group, sim)
        sim.check_parameter(self.name)
        if sim.agents.declared[self.name].vector:
            raise ParameterError(f"{self.name} is a vector, which cannot be moved gradually; move a single number")
        if _is_trait(self.name, sim) and self.factor is not None and self.factor > 1.0:
            raise ParameterError(f"{self.name} lies between 0 and 1; raise it with to = 1 and a share, not by a factor")
        if isinstance(self.to, float):
            self.check_reachable(np.array([self.to]), sim)

    def check_reachable(self, goals: NDArray[np.float64], sim: Simulation) -> None:
        """Raise when one of the values to move to is none that the parameter can have."""
        if _is_trait(self.name, sim):
            wrong, allowed = (goals < 0.0) | (goals > 1.0), "lies between 0 and 1"
        elif self.name == "radius":
            wrong, allowed = goals <= 0.0, "must be positive"
        elif self.name in _NOT_NEGATIVE:
            wrong, allowed = goals < 0.0, "must not be negative"
        else:
            return
        if wrong.any():
            raise ParameterError(f"{self.name} {allowed}, so it cannot move to {goals[np.argmax(wrong)]:g}")

    def apply(self, sim: Simulation) -> None:
        shift = cast("Drift | Surge", self)
        UnderWay(shift=shift, since=sim.step_number, newest=sim.agents.next_id).apply(sim)

    @property
    def reach(self) -> float:
        """The part of the gap that is closed when the course is furthest from where it began."""
        return (self.share or 1.0) if self.factor is None else 1.0 - self.factor

    def left(self, elapsed: float) -> float:
        """What is left of the gap after so many seconds, as a share of that before the beginning."""
        raise TypeError(f"{type(self).__name__} does not say how it goes on")

    def over_after(self, elapsed: float) -> bool:
        raise TypeError(f"{type(self).__name__} does not say when it is over")


class Drift(_Shift):
    """Move a parameter evenly, in `over` seconds, to a value (or a share of the way there), or to a multiple."""

    kind: Literal["drift"] = "drift"
    over: PositiveFinite

    def left(self, elapsed: float) -> float:
        return 1.0 - self.reach * min(elapsed / self.over, 1.0)

    def over_after(self, elapsed: float) -> bool:
        return elapsed / self.over >= 1.0


class Surge(_Shift):
    """Change a parameter at once, then let it fade back to what each agent had, with the time constant `fade` [s]."""

    kind: Literal["surge"] = "surge"
    fade: PositiveFinite

    @model_validator(mode="after")
    def _way_back(self) -> Surge:
        if self.factor is None and (self.share is None or self.share > _LARGEST_SURGE):
            raise ValueError(
                f"to needs a share of at most {_LARGEST_SURGE}: with all agents alike none could find back"
            )
        return self

    def left(self, elapsed: float) -> float:
        return 1.0 if self.over_after(elapsed) else 1.0 - self.reach * math.exp(-elapsed / self.fade)

    def over_after(self, elapsed: float) -> bool:
        return elapsed > _FADED * self.fade


#: Beyond this share of the way, rounding would show in the values that come back.
_LARGEST_SURGE = 0.99
#: Time constants after which nothing is left of a surge: exp(-30) is 1e-13.
_FADED = 30.0
_NOT_NEGATIVE = frozenset({"radius", "desired_speed", "sense_radius"})


class UnderWay(_Event):
    """A shift that has begun, as it waits for the next step. It concerns those who were there when it began."""

    kind: Literal["under_way"] = "under_way"
    shift: Annotated[Drift | Surge, Field(discriminator="kind")]
    since: int  #: step
    newest: int  #: the first id that was not there

    def apply(self, sim: Simulation) -> None:
        shift = self.shift
        steps = sim.step_number - self.since
        elapsed = steps * sim.dt
        before = shift.left((steps - 1) * sim.dt) if steps else 1.0
        rows = sim.population.members([sim.groups.index(shift.group)] if shift.group else range(len(sim.groups)))
        ids = sim.agents.id[rows]
        rows, ids = rows[ids < self.newest], ids[ids < self.newest]
        goal = np.zeros(len(rows))
        if shift.to is not None:
            purpose = f"{shift.group or 'everybody'}/{shift.name}/{self.since}"
            goal = draw(shift.to, seed=sim.seed, purpose=purpose, ids=ids)
            shift.check_reachable(goal, sim)
        column = sim.agents.columns[shift.name]
        moved = goal + (column[rows] - goal) * (shift.left(elapsed) / before)
        # On the way back to zero, rounding may pass it.
        column[rows] = np.maximum(moved, 0.0) if shift.name in _NOT_NEGATIVE or _is_trait(shift.name, sim) else moved
        if not shift.over_after(elapsed):
            sim.events.add(sim.step_number + 1, self)


class _State(_Event):
    """A state of body or mind that shifts the desired speed, and the traits of models that have them."""

    group: str | None = None

    def check(self, sim: Simulation) -> None:
        _known_group(self.group, sim)

    def apply(self, sim: Simulation) -> None:
        for shift in self.shifts():
            if shift.name == "desired_speed" or _is_trait(shift.name, sim):
                shift.apply(sim)

    def shifts(self) -> list[Drift] | list[Surge]:
        raise TypeError(f"{type(self).__name__} does not say what it shifts")


class Tire(_State):
    """Fatigue: within `over` seconds people become slower, and slower to change their speed."""

    kind: Literal["tire"] = "tire"
    over: PositiveFinite
    speed: Annotated[float, Field(gt=0.0, le=1.0, description="what is left of the desired speed")] = 0.6
    mass: Annotated[float, Field(ge=0.0, le=1.0, description="share of the way to a mass of 1")] = 0.5

    def shifts(self) -> list[Drift]:
        slower = Drift(name="desired_speed", factor=self.speed, over=self.over, group=self.group)
        heavier = [Drift(name="mass", to=1.0, share=self.mass, over=self.over, group=self.group)] if self.mass else []
        return [slower, *heavier]


class Alarm(_State):
    """Adrenaline: people are faster, braver and more agile at once, and calm down with the time constant `fade` [s]."""

    kind: Literal["alarm"] = "alarm"
    fade: PositiveFinite = 30.0
    speed: Annotated[float, Field(ge=1.0, allow_inf_nan=False, description="times the desired speed")] = 1.5
    courage: Annotated[float, Field(ge=0.0, le=_LARGEST_SURGE, description="share of the way to a courage of 1")] = 0.6
    agility: Annotated[float, Field(ge=0.0, le=_LARGEST_SURGE, description="share of the way to an agility of 1")] = 0.6

    def shifts(self) -> list[Surge]:
        faster = Surge(name="desired_speed", factor=self.speed, fade=self.fade, group=self.group)
        shares = {"courage": self.courage, "agility": self.agility}
        return [faster] + [
            Surge(name=name, to=1.0, share=share, fade=self.fade, group=self.group)
            for name, share in shares.items()
            if share
        ]


class AddAgents(_Event):
    """Let agents appear in a region, where there is room for them."""

    kind: Literal["add_agents"] = "add_agents"
    group: str
    count: PositiveInt
    region: str | None = None
    goal: str = "nearest exit"
    radius: Value = 0.2
    desired_speed: Value = 1.34
    sense_radius: Value = 3.0
    delay: Value = 0.0
    personality: PersonalityField | None = None
    parameters: dict[str, Value] = {}

    def check(self, sim: Simulation) -> None:
        _known_group(self.group, sim)
        sim.check_personality(self.personality, group=self.group)
        if self.region is not None:
            sim.world.region(self.region)

    def apply(self, sim: Simulation) -> None:
        sim.add_agents(
            self.group, **{name: getattr(self, name) for name in type(self).model_fields if name not in _ADD}
        )


_ADD = ("kind", "group")


class RemoveAgents(_Event):
    """Take agents out: a group, those in a region, or both conditions together."""

    kind: Literal["remove_agents"] = "remove_agents"
    group: str | None = None
    region: str | None = None

    def check(self, sim: Simulation) -> None:
        _known_group(self.group, sim)
        if self.region is not None:
            sim.world.region(self.region)

    def apply(self, sim: Simulation) -> None:
        sim.remove_agents(group=self.group, region=self.region)


#: Every kind of event that a file can hold.
KINDS = (
    OpenDoor,
    CloseDoor,
    OpenExit,
    CloseExit,
    AddObstacle,
    MoveObstacle,
    RemoveObstacle,
    AddTarget,
    MoveTarget,
    SetGoal,
    SetParameter,
    Drift,
    Surge,
    Tire,
    Alarm,
    AddAgents,
    RemoveAgents,
)


def _known(name: str, names: Any, what: str) -> None:
    if name not in names:
        raise ParameterError(f"there is no {what} '{name}'; {suggest(name, names)}")


def _known_group(name: str | None, sim: Simulation) -> None:
    if name is not None:
        _known(name, sim.groups, "group")


def _is_trait(name: str, sim: Simulation) -> bool:
    # By the whole declaration: a model of one's own may have a column `mass` in kilograms.
    return sim.agents.declared.get(name) in PERSONALITY
