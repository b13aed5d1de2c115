"""Where a goal is: the one place where roadmaps ask what an agent's goal means.

A place is a set of points of which any will do, and how near to one of them the agent has arrived. Exits, regions,
rooms and doors are points on what agents aim at, targets are their position. A goal is known by a number: that of the
world's goal, or for points one of their own, which is the same after a resume.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, POINT, AgentState
from tropel.world import World
from tropel.world.places import point_text

Floats = NDArray[np.float64]

#: Points on the inner boundary of an exit: no farther apart than this [m], and at most so many.
_APART, _MOST_POINTS = 1.0, 32
#: An agent has arrived this near to a point or door [m]: less than a body, and more than a step.
_AT_POINT = 0.15
#: Numbers of points are below this one.
_POINTS = -1000


@dataclass(frozen=True, eq=False, kw_only=True)
class GoalPlace:
    """Where a goal is."""

    points: Floats  #: (P, dim)
    reach: Floats  #: (P,) how near to a point the agent has arrived [m]; 0 where being inside decides
    moves: bool  #: whether it may be elsewhere in the next step
    name: str  #: for messages


def goal_numbers(state: AgentState, rows: NDArray[np.int64]) -> tuple[list[int], dict[int, Floats]]:
    """The number of each row's goal, and the points among them by their numbers."""
    numbers, points = state.goal[rows].tolist(), {}
    for place, row in enumerate(rows.tolist()):
        if numbers[place] == POINT:
            point = state.goal_point[row]
            digest = hashlib.blake2b(point.tobytes(), digest_size=7).digest()
            numbers[place] = _POINTS - int.from_bytes(digest)
            points[numbers[place]] = point.copy()
    return numbers, points


def place_of_point(point: Floats) -> GoalPlace:
    """The place that is a point."""
    said = point_text(point.tolist())
    return GoalPlace(points=point[None].copy(), reach=np.array([_AT_POINT]), moves=False, name=said)


def place_of_goal(world: World, goal: int) -> GoalPlace | None:
    """The place that a number in the column `goal` stands for; None if there is none now."""
    goals = world.goals()
    names = {number: name for name, number in world.goal_numbers.items()}
    if goal == NEAREST_EXIT:
        numbers = [g for g in range(len(goals.is_exit)) if goals.is_exit[g] and goals.usable[g]]
    elif goal == NEAREST_TARGET:
        numbers = [g for g in range(len(goals.is_exit)) if goals.is_target[g] and goals.usable[g]]
    else:
        # A closed exit is still where its people go; a target that was removed is nowhere.
        known = 0 <= goal < len(goals.is_exit) and (not goals.is_target[goal] or goals.usable[goal])
        numbers = [goal] if known else []
    points: list[Floats] = []
    reach: list[float] = []
    for number in numbers:
        if goals.is_target[number]:
            points.append(goals.position[number][None].copy())
            reach.append(float(goals.radius[number]))
        elif world.dim == 3:
            points.append(0.5 * (goals.low[number] + goals.high[number])[None])
            reach.append(0.5 * float((goals.high[number] - goals.low[number]).min()))
        else:
            aimed_at = goals.approach[goals.approach_start[number] : goals.approach_start[number + 1]]
            inside = _points_on(aimed_at) if goals.is_line[number] else _points_in(aimed_at)
            points.append(inside)
            reach += [_AT_POINT if goals.is_line[number] else 0.0] * len(inside)
    if not reach:
        return None
    moves = any(names[g] in world.targets and world.targets[names[g]].motion is not None for g in numbers)
    said = f"'{names[goal]}'" if goal in names else ("any exit" if goal == NEAREST_EXIT else "any target")
    return GoalPlace(points=np.vstack(points), reach=np.array(reach), moves=moves, name=said)


def _points_in(edges: Floats) -> Floats:
    """Points along the inner boundary of an area, and its middle."""
    middle = 0.5 * (edges[:, :2] + edges[:, 2:]).mean(axis=0, keepdims=True)
    return np.vstack([middle, _points_on(edges)])


def _points_on(edges: Floats) -> Floats:
    """Points along segments."""
    length = np.hypot(edges[:, 2] - edges[:, 0], edges[:, 3] - edges[:, 1])
    apart = max(_APART, float(length.sum()) / _MOST_POINTS)
    places = []
    for edge, long in zip(edges, length.tolist(), strict=True):
        share = (np.arange(math.ceil(long / apart)) + 0.5) / max(math.ceil(long / apart), 1)
        places.append(edge[:2] + share[:, None] * (edge[2:] - edge[:2]))
    return np.vstack(places)
