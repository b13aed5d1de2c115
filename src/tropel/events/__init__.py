"""Events: changes to doors, exits, obstacles, hazards, targets, agents and their parameters during a simulation."""

from typing import Any

from tropel.events.gradual import Alarm, Drift, Surge, Tire
from tropel.events.ground import AddHazard, AddValueMap, GrowHazard, MoveHazard, RemoveHazard, RemoveValueMap
from tropel.events.kinds import (
    AddAgents,
    AddObstacle,
    AddTarget,
    CloseDoor,
    CloseExit,
    MoveObstacle,
    MoveTarget,
    OpenDoor,
    OpenExit,
    RemoveAgents,
    RemoveObstacle,
    RemoveTarget,
    SetBehaviour,
    SetGoal,
    SetLeader,
    SetParameter,
)
from tropel.events.knowledge import Announce
from tropel.events.stages import Order, SetStages, Signal
from tropel.events.tasks import AddTask, RemoveTask
from tropel.foundation.renamed import EVENTS, warn

__all__ = [
    "AddAgents",
    "AddHazard",
    "AddObstacle",
    "AddTarget",
    "AddTask",
    "AddValueMap",
    "Alarm",
    "Announce",
    "CloseDoor",
    "CloseExit",
    "Drift",
    "GrowHazard",
    "MoveHazard",
    "MoveObstacle",
    "MoveTarget",
    "OpenDoor",
    "OpenExit",
    "Order",
    "RemoveAgents",
    "RemoveHazard",
    "RemoveObstacle",
    "RemoveTarget",
    "RemoveTask",
    "RemoveValueMap",
    "SetBehaviour",
    "SetGoal",
    "SetLeader",
    "SetParameter",
    "SetStages",
    "Signal",
    "Surge",
    "Tire",
]


def __getattr__(name: str) -> Any:
    if name in EVENTS:
        warn(f"tropel.events.{name}", EVENTS[name])
        return globals()[EVENTS[name]]
    raise AttributeError(f"module 'tropel.events' has no attribute '{name}'")
