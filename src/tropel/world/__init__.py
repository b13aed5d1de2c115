"""The world: geometry, doors, exits, obstacles, hazards, targets, and how they move."""

from tropel.world.declared import Door
from tropel.world.goals import Exit, GoalArrays, Target
from tropel.world.hazards import Hazard, HazardSet
from tropel.world.motion import Orbit, Waypoints
from tropel.world.obstacles import Obstacle, ObstacleSet
from tropel.world.places import Place
from tropel.world.world import World

__all__ = [
    "Door",
    "Exit",
    "GoalArrays",
    "Hazard",
    "HazardSet",
    "Obstacle",
    "ObstacleSet",
    "Orbit",
    "Place",
    "Target",
    "Waypoints",
    "World",
]
