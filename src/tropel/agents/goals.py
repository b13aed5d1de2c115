"""Goals as agents have them: a number or a point in their columns.

A goal is "nearest exit", "nearest target", "none" or a place (`world/places.py`). What an agent goes to is the number
in its column `goal`; for a point it is POINT, and `goal_point` has the coordinates. Lists of goals are stages
(`agents/stages/`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, NO_GOAL, POINT
from tropel.errors import ParameterError, suggest
from tropel.world import World
from tropel.world.places import (
    Place,
    PlaceLike,
    all_names,
    as_place,
    check_point,
    find_place,
    named_place,
    names_of,
    point_text,
)

#: Goals that are not places.
SPECIAL_GOALS = {"nearest exit": NEAREST_EXIT, "nearest target": NEAREST_TARGET, "none": NO_GOAL}


class Aim(NamedTuple):
    """The values of the columns `goal` and `goal_point`."""

    number: int
    point: tuple[float, ...]  #: zeros unless the goal is a point


def goal_told(goal: Any) -> str:
    """A goal as it was given, for messages."""
    told = as_place(goal)
    return told if isinstance(told, str) else str(told)


def check_goal(world: World, goal: PlaceLike, who: str) -> str | Place:
    """The goal that is meant: one of `SPECIAL_GOALS`, the name of a target that was removed, or a place.

    Raises if there is none. This does not change the world, unlike `aim_of`.
    """
    told = as_place(goal, f"{who}: the goal")
    if isinstance(told, str):
        if told in SPECIAL_GOALS:
            return told
        if told not in all_names(world):
            kind, _, name = told.partition(" ")
            if kind in ("region", "room", "door") and name in names_of(world, kind):
                return named_place(kind, name)
            if told in world.goal_numbers:
                return told
            raise ParameterError(f"{who} has the goal '{told}'; {suggest(told, [*all_names(world), *SPECIAL_GOALS])}")
    return find_place(world, told, f"{who}: the goal")


def aim_of(world: World, goal: PlaceLike, who: str) -> Aim:
    """The values of the goal columns for a goal. Named places get a number in the world if they have none yet."""
    nowhere = (0.0,) * world.dim
    told = check_goal(world, goal, who)
    if isinstance(told, Place):
        if told.point is not None:
            return Aim(POINT, tuple(check_point(world, told.point, f"{who}: the goal").tolist()))
        return Aim(world.number_of(told), nowhere)
    if told == "nearest exit" and not world.exits:
        return Aim(NEAREST_TARGET if world.targets else NO_GOAL, nowhere)
    return Aim(SPECIAL_GOALS.get(told, NO_GOAL), nowhere)


def goal_number(world: World, goal: PlaceLike, who: str) -> int:
    """The value of the `goal` column for a goal; raises if nobody can have it. The world is not changed."""
    told = check_goal(world, goal, who)
    if isinstance(told, Place):
        if told.point is not None:
            return POINT
        if told.key not in world.goal_numbers:
            raise ParameterError(f"{who}: nobody has been sent to the {told} yet, so there is nothing planned for it")
        return world.goal_numbers[told.key]
    return aim_of(world, told, who).number


def goal_name(world: World, number: int, point: Sequence[float] | NDArray[np.float64] = ()) -> str:
    """The name of a goal given by the values of the columns `goal` and `goal_point`."""
    if number == POINT:
        return point_text(point)
    return next(name for name, known in {**SPECIAL_GOALS, **world.goal_numbers}.items() if known == number)
