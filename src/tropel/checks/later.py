"""What scheduled events will change: doors and exits that open, obstacles that go away, goals that are given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tropel.events import kinds
from tropel.events.base import Event
from tropel.events.gradual import Alarm, Drift, Surge, Tire, UnderWay
from tropel.events.queue import Repeated
from tropel.events.stages import Order, SetStages, Signal

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: Events after which people that cannot move may be able to.
_FREEING = (
    *(kinds.OpenDoor, kinds.OpenExit, kinds.MoveObstacle, kinds.RemoveObstacle, kinds.AddTarget, kinds.MoveTarget),
    *(
        kinds.SetGoal,
        SetStages,
        Order,
        Signal,
        kinds.SetParameter,
        kinds.SetBehaviour,
        kinds.RemoveAgents,
        Drift,
        Surge,
        Tire,
        Alarm,
    ),
)


@dataclass
class Later:
    """The first time [s] of each change that could help, by name; a group that is None stands for everybody."""

    doors: dict[str, float] = field(default_factory=dict)
    exits: dict[str, float] = field(default_factory=dict)
    obstacles: dict[str, float] = field(default_factory=dict)
    targets: dict[str, float] = field(default_factory=dict)
    goals: dict[str | None, float] = field(default_factory=dict)
    speeds: dict[str | None, float] = field(default_factory=dict)
    function: float | None = None  #: a function of the user's may change anything

    def goal_of(self, group: str) -> float | None:
        """When a group is sent somewhere else; None if it is not."""
        return min((self.goals[who] for who in (group, None) if who in self.goals), default=None)

    def speed_of(self, group: str) -> float | None:
        """When the desired speed of a group changes; None if it does not."""
        return min((self.speeds[who] for who in (group, None) if who in self.speeds), default=None)


def scheduled_changes(sim: Simulation) -> Later:
    later = Later()
    if sim.replayed is not None:
        later.function = sim.time
    for step, _, event in sim.events:
        time = step * sim.dt
        if isinstance(event, kinds.OpenDoor):
            later.doors.setdefault(event.door, time)
        elif isinstance(event, kinds.OpenExit):
            later.exits.setdefault(event.exit, time)
        elif isinstance(event, kinds.MoveObstacle | kinds.RemoveObstacle):
            later.obstacles.setdefault(event.name, time)
        elif isinstance(event, kinds.AddTarget):
            later.targets.setdefault(event.name, time)
        elif isinstance(event, kinds.SetGoal | SetStages):
            later.goals.setdefault(event.group, time)
        elif isinstance(event, Order):
            later.goals.setdefault(event.squad, time)
        elif isinstance(event, kinds.SetParameter | Drift | Surge) and event.name == "desired_speed":
            later.speeds.setdefault(event.group, time)
        elif not isinstance(event, Event | Repeated) and later.function is None:
            later.function = time
    return later


def something_may_free_them(sim: Simulation) -> bool:
    """Whether a scheduled event may let people move that cannot move now."""
    if sim.replayed is not None:
        return True
    return any(
        isinstance(event, _FREEING) or not isinstance(event, Event | Repeated)
        for _, _, event in sim.events
        if not isinstance(event, UnderWay)
    )
