"""Groups: named sets of agents that are declared together and may have their own planner and steering model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.bonds import check_bonds
from tropel.agents.distributions import draw
from tropel.agents.presets import Personality, draw_personality, shares_of
from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, NO_GOAL
from tropel.errors import ParameterError, named_parameters, suggest
from tropel.world import World
from tropel.world.shapes import ShapeLike

#: Goals that are not the name of an exit or a target.
SPECIAL_GOALS = {"nearest exit": NEAREST_EXIT, "nearest target": NEAREST_TARGET, "none": NO_GOAL}
#: Parameters of the body and the walk that must be positive (or at least not negative) for every agent.
_POSITIVE = ("radius",)
_NOT_NEGATIVE = ("desired_speed", "sense_radius", "delay")


@dataclass(frozen=True, kw_only=True)
class Personal:
    """What differs from agent to agent; each value is a number, a distribution or an array with a value each."""

    goal: str = "nearest exit"  #: an exit or target by name, "nearest exit", "nearest target" or "none"
    radius: Any = 0.2  #: of the body [m]
    desired_speed: Any = 1.34  #: when nothing is in the way [m/s]
    sense_radius: Any = 3.0  #: how far others are noticed, centre to centre [m]
    delay: Any = 0.0  #: stands still for so long first [s]
    personality: Personality | None = None  #: a preset such as "cautious", or shares; `parameters` go before it
    parameters: Mapping[str, Any] = field(default_factory=dict)  #: columns that planners or steering models declare
    families: int | None = None  #: people in a family: neighbours are cut into families that keep together
    follow: str | None = None  #: a group of whose agents the nearest is followed

    def values(self, *, world: World, seed: int, group: str, ids: NDArray[np.int64], time: float) -> dict[str, Any]:
        """Columns for new agents with the given ids."""
        drawn: dict[str, Any] = {}
        for name in (*_POSITIVE, *_NOT_NEGATIVE):
            values = draw(getattr(self, name), seed=seed, purpose=f"{group}/{name}", ids=ids)
            least = 0.0
            if (values < least).any() or (name in _POSITIVE and (values == least).any()):
                worst = int(np.argmin(values))
                kind = "positive" if name in _POSITIVE else "not negative"
                raise ParameterError(
                    f"group '{group}': {name} must be {kind}, but agent {int(ids[worst])} drew {values[worst]:g}; "
                    f"give the distribution a 'low'"
                )
            drawn[name] = values
        drawn["start_time"] = time + drawn.pop("delay")
        drawn["goal"] = goal_number(world, self.goal, group)
        if self.personality is not None:
            traits, speed = draw_personality(self.personality, seed=seed, group=group, ids=ids)
            drawn["desired_speed"] = drawn["desired_speed"] * speed
            drawn |= traits
        for name, value in self.parameters.items():
            drawn[name] = draw(value, seed=seed, purpose=f"{group}/{name}", ids=ids)
        return drawn


@named_parameters
@dataclass(frozen=True)
class Group(Personal):
    """Agents declared together.

    Say how many by `count`, by `density` [1/m², in 3D 1/m³] or by giving their `positions`; say where by `region` (a
    name or a shape, in 3D a pair of corners; the whole walkable area when left out).
    """

    name: str
    _: KW_ONLY
    count: int | None = None
    density: float | None = None
    positions: Any = None
    region: str | ShapeLike | tuple[Sequence[float], Sequence[float]] | None = None

    def __post_init__(self) -> None:
        name = self.name
        given = [key for key in ("count", "density", "positions") if getattr(self, key) is not None]
        if len(given) != 1:
            what = "nothing" if not given else " and ".join(given)
            raise ParameterError(f"group '{name}': give exactly one of count, density or positions, not {what}")
        if self.count is not None and not (
            isinstance(self.count, Real) and self.count >= 0 and float(self.count).is_integer()
        ):
            raise ParameterError(
                f"group '{name}': count must be a whole number that is not negative, not {self.count!r}"
            )
        if self.density is not None and not (
            isinstance(self.density, Real) and self.density > 0 and math.isfinite(self.density)
        ):
            raise ParameterError(f"group '{name}': density must be positive, not {self.density!r}")
        if self.personality is not None:
            shares_of(self.personality, f"group '{name}'")
        check_bonds(self.families, self.follow, self.parameters, group=name, who=f"group '{name}'")


def goal_number(world: World, goal: str, who: str) -> int:
    """The value of the `goal` column for a goal given by name."""
    if goal in SPECIAL_GOALS:
        if goal == "nearest exit" and not world.exits:
            return NEAREST_TARGET if world.targets else NO_GOAL
        return SPECIAL_GOALS[goal]
    if goal not in world.goal_numbers:
        raise ParameterError(f"'{who}' has the goal '{goal}'; {suggest(goal, [*world.goal_numbers, *SPECIAL_GOALS])}")
    if goal not in world.exits and goal not in world.targets:
        return NO_GOAL  # a target that was taken away
    return world.goal_numbers[goal]


def goal_name(world: World, number: int) -> str:
    """The name of a goal given by the value of the `goal` column."""
    return next(name for name, known in {**SPECIAL_GOALS, **world.goal_numbers}.items() if known == number)
