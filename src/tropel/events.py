"""What changes while the simulation runs: doors, exits, obstacles, targets, agents and their parameters.

Events are applied at step boundaries, in the order (step, sequence). Each is a small frozen model, so that the same
definition serves Python (`sim.at(20.0, events.CloseDoor(door="main"))`), scenario files (`kind = "close_door"`), the
record of a run and its checkpoints. A Python function of the simulation is an event too, but a file cannot hold it.
"""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt, TypeAdapter

from tropel.agents.distributions import Distribution, Finite
from tropel.errors import EventError, ParameterError, TropelError, suggest
from tropel.world import Obstacle, Target
from tropel.world.motion import Motion, PointField

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Value = Finite | Distribution


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

    def check(self, sim: Simulation) -> None:
        self._obstacle()

    def apply(self, sim: Simulation) -> None:
        sim.world.obstacles.add(self.name, self._obstacle(), time=sim.time, dt=sim.dt)

    def _obstacle(self) -> Obstacle:
        return Obstacle(radius=self.radius, position=self.position, motion=self.motion)


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
    parameters: dict[str, Value] = {}

    def check(self, sim: Simulation) -> None:
        _known_group(self.group, sim)
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
    AddAgents,
    RemoveAgents,
)
EventLike = _Event | Callable[["Simulation"], None]

# Built at run time, which type checkers do not follow.
_AnyEvent: Any = Annotated[Union[KINDS], Field(discriminator="kind")]  # noqa: UP007
_any_event: Any = TypeAdapter(_AnyEvent)


def _known(name: str, names: Any, what: str) -> None:
    if name not in names:
        raise ParameterError(f"there is no {what} '{name}'; {suggest(name, names)}")


def _known_group(name: str | None, sim: Simulation) -> None:
    if name is not None:
        _known(name, sim.groups, "group")


def event_json(event: EventLike) -> str:
    """An event as it is written into records and checkpoints."""
    if isinstance(event, _Event):
        return event.model_dump_json()
    return json.dumps({"kind": "function", "name": getattr(event, "__qualname__", repr(type(event)))})


def event_from_json(text: str) -> Any:
    """The event a record or checkpoint holds; functions cannot be read back."""
    return _any_event.validate_json(text)


@dataclass(frozen=True, order=True)
class _Scheduled:
    step: int
    sequence: int


class EventQueue:
    """Events waiting for their step."""

    def __init__(self) -> None:
        self._keys: list[_Scheduled] = []
        self._events: dict[_Scheduled, EventLike] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[tuple[int, int, EventLike]]:
        return ((key.step, key.sequence, self._events[key]) for key in self._keys)

    def add(self, step: int, event: EventLike) -> None:
        """Schedule an event after all others of the same step."""
        place = bisect.bisect_left(self._keys, _Scheduled(step + 1, 0))
        last = self._keys[place - 1] if place else None
        # Numbered within the step, so that a resumed run needs no counter to go on with the same numbers.
        key = _Scheduled(step, last.sequence + 1 if last is not None and last.step == step else 0)
        self._keys.insert(place, key)
        self._events[key] = event

    def due(self, step: int) -> Iterator[EventLike]:
        """Take out, in order, what is due at or before a step."""
        while self._keys and self._keys[0].step <= step:
            yield self._events.pop(self._keys.pop(0))

    def adds_agents(self) -> bool:
        """Whether an event that is still to come may bring somebody in (a function may do anything)."""
        return any(not isinstance(event, _Event) or isinstance(event, AddAgents) for event in self._events.values())

    def state(self) -> list[list[Any]]:
        return [[step, sequence, event_json(event)] for step, sequence, event in self]

    def restore(self, stored: list[list[Any]]) -> None:
        """Put back what was waiting; functions are found again among what the script has scheduled."""
        functions = {(k.step, k.sequence): e for k, e in self._events.items() if not isinstance(e, _Event)}
        events: dict[_Scheduled, EventLike] = {}
        for step, sequence, text in stored:
            key = _Scheduled(int(step), int(sequence))
            if json.loads(text)["kind"] == "function":
                if (at := (key.step, key.sequence)) not in functions or event_json(functions[at]) != text:
                    name = json.loads(text)["name"]
                    raise EventError(f"the function '{name}', due at step {key.step}, is not scheduled by this script")
                events[key] = functions[at]
            else:
                events[key] = event_from_json(text)
        self._keys, self._events = sorted(events), events


def step_at(time: float, dt: float) -> int:
    """The first step whose time, step · dt, is at or after `time` [s], up to a billionth of a step."""
    step = max(math.ceil(time / dt - 1e-9), 0)
    # The quotient is rounded, in runs of millions of steps by more than that; the steps' own times decide.
    around = range(max(step - 2, 0), step + 3)
    return next((k for k in around if k * dt >= time - 1e-9 * dt), step)


def apply_event(event: EventLike, sim: Simulation) -> None:
    """Apply one event; whatever goes wrong says which event it was and when."""
    try:
        if isinstance(event, _Event):
            event.apply(sim)
        else:
            event(sim)
    except Exception as error:
        what = str(error) if isinstance(error, TropelError) else f"{type(error).__name__}: {error}"
        raise EventError(f"event {event_json(event)} at t = {sim.time:g} s: {what}") from error
