"""Where a goal is: the one place where roadmaps ask what an agent's goal means.

A place is a set of points of which any will do, and how near to one of them the agent has arrived. Exits are points
inside them, targets are their position. Whatever else can be a goal only needs points here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET
from tropel.world import World

Floats = NDArray[np.float64]

#: Points on the inner boundary of an exit: no farther apart than this [m], and at most so many.
_APART, _MOST_POINTS = 1.0, 32


@dataclass(frozen=True, eq=False, kw_only=True)
class GoalPlace:
    """Where a goal is."""

    points: Floats  #: (P, dim)
    reach: Floats  #: (P,) how near to a point the agent has arrived [m]; 0 where being inside decides
    moves: bool  #: whether it may be elsewhere in the next step
    name: str  #: for messages


def place_of_goal(world: World, goal: int) -> GoalPlace | None:
    """The place that a number in the column `goal` stands for; None if there is none now."""
    goals = world.goals()
    names = {number: name for name, number in world.goal_numbers.items()}
    if goal == NEAREST_EXIT:
        numbers = [g for g in range(len(goals.is_exit)) if goals.is_exit[g] and goals.usable[g]]
    elif goal == NEAREST_TARGET:
        numbers = [g for g in range(len(goals.is_exit)) if not goals.is_exit[g] and goals.usable[g]]
    else:
        # A closed exit is still where its people go; a target that was removed is nowhere.
        known = 0 <= goal < len(goals.is_exit) and (goals.is_exit[goal] or goals.usable[goal])
        numbers = [goal] if known else []
    points: list[Floats] = []
    reach: list[float] = []
    for number in numbers:
        if goals.is_exit[number]:
            inside = _points_in(goals.approach[goals.approach_start[number] : goals.approach_start[number + 1]])
            points.append(inside)
            reach += [0.0] * len(inside)
        else:
            points.append(goals.position[number][None].copy())
            reach.append(float(goals.radius[number]))
    if not reach:
        return None
    moves = any(names[g] in world.targets and world.targets[names[g]].motion is not None for g in numbers)
    said = f"'{names[goal]}'" if goal in names else ("any exit" if goal == NEAREST_EXIT else "any target")
    return GoalPlace(points=np.vstack(points), reach=np.array(reach), moves=moves, name=said)


def _points_in(edges: Floats) -> Floats:
    """Points along the inner boundary of an exit, and its middle."""
    length = np.hypot(edges[:, 2] - edges[:, 0], edges[:, 3] - edges[:, 1])
    apart = max(_APART, float(length.sum()) / _MOST_POINTS)
    middle = 0.5 * (edges[:, :2] + edges[:, 2:]).mean(axis=0, keepdims=True)
    places = [middle]
    for edge, long in zip(edges, length.tolist(), strict=True):
        share = (np.arange(math.ceil(long / apart)) + 0.5) / max(math.ceil(long / apart), 1)
        places.append(edge[:2] + share[:, None] * (edge[2:] - edge[:2]))
    return np.vstack(places)
