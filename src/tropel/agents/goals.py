"""Goals as agents have them: a number or a point in their columns, and routes, lists of goals to go through in order.

A goal is "nearest exit", "nearest target", "none" or a place (`world/places.py`). What an agent goes to is the number
in its column `goal`; for a point it is POINT, and `goal_point` has the coordinates. The column `route` names a list of
goals, `leg` is the place in it. The lists themselves are shared by everybody that has them, so they are stored once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, NO_GOAL, POINT
from tropel.errors import CheckpointError, ParameterError, suggest
from tropel.foundation.stored_arrays import taken
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
from tropel.world.shapes import FARTHEST

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


# Routes ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Route:
    """Goals to go through one after the other; at the last one agents stay, or begin again."""

    aims: tuple[Aim, ...]
    repeat: bool


class Routes:
    """The routes of a run by number, in the order in which they were first given to somebody."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._known: list[Route] = []
        self._arrays: tuple[NDArray[Any], ...] | None = None

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, number: int) -> Route:
        return self._known[number]

    def number_of(self, route: Route) -> int:
        """The number of a route; new ones are added."""
        if route not in self._known:
            self._known.append(route)
            self._arrays = None
        return self._known.index(route)

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]:
        """Where each route begins, goals and points of all routes in one, and which of the routes repeat."""
        if self._arrays is None:
            aims = [aim for route in self._known for aim in route.aims]
            self._arrays = (
                np.concatenate([[0], np.cumsum([len(route.aims) for route in self._known])]).astype(np.int64),
                np.array([aim.number for aim in aims], dtype=np.int32),
                np.array([aim.point for aim in aims], dtype=np.float64).reshape(-1, self._dim),
                np.array([route.repeat for route in self._known], dtype=np.bool_),
            )
        return self._arrays  # type: ignore[return-value]

    def state(self) -> dict[str, NDArray[Any]]:
        start, goal, point, repeat = self.arrays()
        return {
            "routes/start": start,
            "routes/goal": goal,
            "routes/point": point,
            "routes/repeat": repeat.astype(np.uint8),
        }

    def read(self, stored: Mapping[str, NDArray[Any]], *, goals: int) -> list[Route]:
        """The routes as `state` returned them, checked."""
        start = taken(stored, "routes/start", dtype="int64", shape=(None,), low=0)
        goal = taken(stored, "routes/goal", dtype="int32", shape=(None,), low=POINT, high=goals - 1)
        point = taken(
            stored, "routes/point", dtype="float64", shape=(len(goal), self._dim), low=-FARTHEST, high=FARTHEST
        )
        repeat = taken(stored, "routes/repeat", dtype="uint8", shape=(max(len(start) - 1, 0),), low=0, high=1)
        if not len(start) or start[0] != 0 or (np.diff(start) < 1).any() or start[-1] != len(goal):
            raise CheckpointError("'routes/start' must begin with 0, ascend and end with the number of all goals")
        aims = [Aim(int(n), tuple(p)) for n, p in zip(goal.tolist(), point.tolist(), strict=True)]
        return [
            Route(tuple(aims[a:b]), bool(r))
            for a, b, r in zip(start[:-1].tolist(), start[1:].tolist(), repeat.tolist(), strict=True)
        ]

    def put_back(self, routes: Sequence[Route]) -> None:
        self._known, self._arrays = list(routes), None

    def known(self) -> list[Route]:
        return list(self._known)


def route_of(world: World, goal: PlaceLike, then: Sequence[PlaceLike], repeat: bool, who: str) -> Route | None:
    """The route through a goal and those after it; None for a single goal."""
    if repeat and not then:
        raise ParameterError(f"{who}: repeat is for several goals; give those after the first one in then")
    if not then:
        return None
    aims = tuple(aim_of(world, each, who) for each in (goal, *then))
    goals = world.goals()
    for each, aim in zip((goal, *then)[: len(aims) if repeat else -1], aims, strict=False):
        told = goal_told(each)
        if aim.number in (NEAREST_EXIT, NO_GOAL):
            raise ParameterError(f"{who}: '{told}' is never followed by another goal; put it last, without repeat")
        if aim.number >= 0 and goals.absorbs[aim.number]:
            raise ParameterError(f"{who}: people leave at '{told}', so no goal can come after it; put it last")
    return Route(aims, repeat)
