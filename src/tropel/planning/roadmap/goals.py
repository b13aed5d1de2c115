"""Goals of travellers by number, where they are in this step, and which ones have moved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tropel.agents.state import AgentState, Floats
from tropel.contracts import Rows
from tropel.planning.roadmap.places import GoalPlace, goal_numbers, place_of_goal, place_of_point
from tropel.world import World


class GoalBook:
    """Where goals are; made anew after a resume."""

    def __init__(self) -> None:
        self._goals: Any = None  #: the world's goals when they were last looked at
        self._places: dict[int, GoalPlace | None] = {}
        self._points: dict[int, Floats] = {}  #: goals that are points, by number
        self._restless = True  #: whether a goal may be elsewhere in the next step

    def numbers_of(self, state: AgentState, rows: Rows) -> list[int]:
        """The number of each row's goal."""
        numbers, points = goal_numbers(state, rows)
        self._points |= points
        return numbers

    def place_of(self, world: World, goal: int) -> GoalPlace | None:
        """Where a goal is in this step."""
        if goal not in self._places:
            point = self._points.get(goal)
            self._places[goal] = place_of_goal(world, goal) if point is None else place_of_point(point)
        return self._places[goal]

    def have_changed(self, world: World) -> bool:
        """Whether any goal may be elsewhere than when it was last looked at."""
        return self._restless or world.goals() is not self._goals

    def look(self, world: World, used: Iterable[int]) -> set[int]:
        """Look at the goals that are used, forget the others, and return those that have moved, or may have."""
        goals, before, wanted = world.goals(), self._places, set(used)
        same = goals is self._goals
        self._goals, self._points = goals, {goal: at for goal, at in self._points.items() if goal in wanted}
        self._places = {goal: place for goal, place in before.items() if same and place is not None and not place.moves}
        now = {goal: self.place_of(world, goal) for goal in sorted(wanted)}
        moving = {goal for goal, place in now.items() if place is None or place.moves}
        self._restless = bool(moving)
        return moving | {goal for goal in now if goal in before and not _same(before[goal], now[goal])}


def _same(one: GoalPlace | None, other: GoalPlace | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one.points, other.points) and np.array_equal(one.reach, other.reach)
