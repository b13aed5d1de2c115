"""How far a place is as the crow flies, for whoever has no plan to get there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel.agents.goals import Aim
from tropel.agents.state import POINT
from tropel.world import World
from tropel.world.goals import distance_to_shape, shape_of_goal
from tropel.world.periodic import nearest_images

Floats = NDArray[np.float64]


def straight_distance(world: World, aim: Aim, positions: Floats) -> Floats:
    """From each position (N, dim) to a place [m]; infinite if it is gone, as a target that was removed."""
    if aim.number == POINT:
        return np.linalg.norm(nearest_images(positions - np.array(aim.point), world.period), axis=1)
    goals = world.goals()
    if not 0 <= aim.number < len(goals.is_exit) or (goals.is_target[aim.number] and not goals.usable[aim.number]):
        return np.full(len(positions), np.inf)
    if goals.is_target[aim.number]:
        away = np.linalg.norm(nearest_images(positions - goals.position[aim.number], world.period), axis=1)
        return np.maximum(away - goals.radius[aim.number], 0.0)
    if world.dim == 3:
        low, high = goals.low[aim.number], goals.high[aim.number]
        return np.linalg.norm(positions - np.clip(positions, low, high), axis=1)
    name = next(name for name, number in world.goal_numbers.items() if number == aim.number)
    return distance_to_shape(shape_of_goal(world, name), positions)
