"""Groups: named sets of agents that are declared together and may have their own planner and steering model."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.bonds import check_bonds
from tropel.agents.distributions import draw_quantity
from tropel.agents.presets import Personality, draw_personality, shares_of
from tropel.agents.state import (
    DESIRED_SPEED,
    NEAREST_EXIT,
    NEAREST_TARGET,
    NO_GOAL,
    RADIUS,
    SENSE_RADIUS,
    Column,
)
from tropel.arguments import CHECKED_ELSEWHERE, numbers_in
from tropel.errors import ParameterError, is_finite, named_parameters, suggest
from tropel.quantities import Quantity
from tropel.world import World
from tropel.world.shapes import ShapeLike

#: Goals that are not the name of an exit or a target.
SPECIAL_GOALS = {"nearest exit": NEAREST_EXIT, "nearest target": NEAREST_TARGET, "none": NO_GOAL}
#: Nobody means more than that in one group; it is refused before any memory is asked for.
MOST_AGENTS = 1_000_000_000
DELAY = Quantity(name="delay", unit="s", low=0.0, high=1e12, about="stands still for so long first")
#: What every agent has by fields of its group, not as one of its `parameters`.
_PERSONAL: tuple[Quantity, ...] = (RADIUS, DESIRED_SPEED, SENSE_RADIUS, DELAY)


@dataclass(frozen=True, kw_only=True)
class Personal:
    """What differs from agent to agent; each value is a number, a distribution or an array with a value each."""

    goal: str = "nearest exit"  #: an exit or target by name, "nearest exit", "nearest target" or "none"
    radius: Any = RADIUS.default  #: of the body [m]
    desired_speed: Any = DESIRED_SPEED.default  #: when nothing is in the way [m/s]
    sense_radius: Any = SENSE_RADIUS.default  #: how far others are noticed, centre to centre [m]
    delay: Any = DELAY.default  #: stands still for so long first [s]
    personality: Personality | None = None  #: a preset such as "cautious", or shares; `parameters` go before it
    parameters: Mapping[str, Any] = field(default_factory=dict)  #: columns that planners or steering models declare
    families: int | None = None  #: people in a family: neighbours are cut into families that keep together
    follow: str | None = None  #: a group of whose agents the nearest is followed

    def values(
        self,
        *,
        world: World,
        columns: Mapping[str, Column],
        seed: int,
        group: str,
        ids: NDArray[np.int64],
        time: float,
    ) -> dict[str, Any]:
        """Columns for new agents with the given ids, each within the limits that `columns` declare."""
        drawn: dict[str, Any] = {}
        who = f"group '{group}'"

        def one_each(quantity: Quantity, value: Any) -> NDArray[np.float64]:
            return draw_quantity(quantity, value, seed=seed, purpose=f"{group}/{quantity.name}", ids=ids, who=who)

        for quantity in _PERSONAL:
            drawn[quantity.name] = one_each(quantity, getattr(self, quantity.name))
        drawn["start_time"] = time + drawn.pop("delay")
        drawn["goal"] = goal_number(world, self.goal, group)
        if self.personality is not None:
            traits, speed = draw_personality(self.personality, seed=seed, group=group, ids=ids)
            drawn["desired_speed"] = drawn["desired_speed"] * speed
            drawn |= traits
        for name, value in self.parameters.items():
            drawn[name] = one_each(parameter_named(name, columns, who), value)
        return drawn


def parameter_named(name: str, columns: Mapping[str, Column], who: str) -> Column:
    """The column that `parameters` of a group name; raises when there is none, or it is not given that way."""
    if name in PERSONAL_NAMES:
        raise ParameterError(f"{who}: {name} is not one of the parameters but stands beside them, as  {name} = …")
    settable = {key: column for key, column in columns.items() if column.settable and key not in PERSONAL_NAMES}
    if name not in settable:
        raise ParameterError(f"{who}: agents have no parameter '{name}'; {suggest(name, settable)}")
    return settable[name]


#: Fields of `Personal` that are columns or become one.
PERSONAL_NAMES = frozenset({"goal", *(quantity.name for quantity in _PERSONAL)})


@named_parameters
@dataclass(frozen=True)
class Group(Personal):
    """Agents declared together.

    Say how many by `count`, by `density` [1/m², in 3D 1/m³] or by giving their `positions`; say where by `region` (a
    name or a shape, in 3D a pair of corners; the whole walkable area when left out).
    """

    name: str
    _: KW_ONLY
    count: Annotated[int | None, CHECKED_ELSEWHERE] = None
    density: Annotated[float | None, CHECKED_ELSEWHERE] = None
    positions: Any = None
    region: str | ShapeLike | tuple[Sequence[float], Sequence[float]] | None = None

    def __post_init__(self) -> None:
        name = self.name
        given = [key for key in ("count", "density", "positions") if getattr(self, key) is not None]
        if len(given) != 1:
            what = "nothing" if not given else " and ".join(given)
            raise ParameterError(f"group '{name}': give exactly one of count, density or positions, not {what}")
        if self.count is not None and not (
            is_finite(self.count) and 0 <= self.count <= MOST_AGENTS and float(self.count).is_integer()
        ):
            raise ParameterError(
                f"group '{name}': count must be a whole number that is not negative, at most {MOST_AGENTS:,}, "
                f"not {reprlib.repr(self.count)}"
            )
        if self.density is not None and not (is_finite(self.density) and 0 < self.density <= MOST_AGENTS):
            raise ParameterError(
                f"group '{name}': density must be positive, at most {MOST_AGENTS:,} per m² or m³, "
                f"not {reprlib.repr(self.density)}"
            )
        if self.positions is not None and numbers_in(self.positions) is None:
            raise ParameterError(
                f"group '{name}': positions must be numbers, a row of coordinates for each agent, "
                f"not {reprlib.repr(self.positions)}"
            )
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
