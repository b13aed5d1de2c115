"""What changes while a simulation runs: doors, exits, obstacles, hazards, targets, agents and their parameters."""

from tropel.events.gradual import Alarm, Drift, Surge, Tire
from tropel.events.ground import AddHazard, AddLayer, GrowHazard, MoveHazard, RemoveHazard, RemoveLayer
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
    SetParameter,
)

__all__ = [
    "AddAgents",
    "AddHazard",
    "AddLayer",
    "AddObstacle",
    "AddTarget",
    "Alarm",
    "CloseDoor",
    "CloseExit",
    "Drift",
    "GrowHazard",
    "MoveHazard",
    "MoveObstacle",
    "MoveTarget",
    "OpenDoor",
    "OpenExit",
    "RemoveAgents",
    "RemoveHazard",
    "RemoveLayer",
    "RemoveObstacle",
    "RemoveTarget",
    "SetBehaviour",
    "SetGoal",
    "SetParameter",
    "Surge",
    "Tire",
]
