"""The verbs that every crowd has: go somewhere, wait for a time, wait for something, go on until something.

People who wait in a region or room that they went to have a spot of their own in it, so that they are out of the way
of those after them. Elsewhere they stand where they are. Their planned direction is zero once they are there: whether
somebody without a direction is pushed or steps aside is up to the steering model.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from tropel.agents.arriving import at_goal
from tropel.agents.distributions import Distribution, Normal, Uniform, draw_quantity
from tropel.agents.goals import Aim, goal_told
from tropel.agents.stages.spots import waiting_spots
from tropel.agents.stages.stage import Aims, Condition, ConditionField, Mask, Now, Outlook, Stage
from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, NO_GOAL, POINT
from tropel.errors import readable_errors
from tropel.foundation.field_types import Finite
from tropel.foundation.quantities import Quantity
from tropel.world import World
from tropel.world.places import PlaceField, PlaceLike
from tropel.world.shapes import Length

WAIT = Quantity(name="wait", unit="s", low=0.0, high=1e9, about="how long somebody waits")
_CONFIG = ConfigDict(extra="forbid")


def _never_negative(told: Any) -> Any:
    """Waits are drawn while a run goes on, so that a distribution that may give a negative one is refused before."""
    if isinstance(told, float):
        if not WAIT.allows(told):
            raise ValueError(f"must be {WAIT.allowed}")
    elif isinstance(told, Uniform):
        if not WAIT.allows(told.low) or not WAIT.allows(told.high):
            raise ValueError(f"low and high must be {WAIT.allowed}")
    elif isinstance(told, Normal) and not (told.low is not None and told.low >= 0.0):
        raise ValueError("a normal distribution of waits needs a low of at least 0: nobody waits for less than no time")
    return told


#: Seconds, or a distribution from which each agent draws its own.
Seconds = Annotated[Finite | Distribution, AfterValidator(_never_negative)]
Over = Annotated[ConditionField | None, Field(description="over as soon as this is true")]
Critical = Annotated[bool, Field(description="it has to succeed whatever it costs; rules such as bolder act on it")]


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Go(Stage):
    """Go to a place; over on arrival. At an exit, or at a target that absorbs, people leave."""

    go: Annotated[PlaceField, Field(description='a place, "nearest exit", "nearest target" or "none"')]
    within: Annotated[Length, Field(description="the body has arrived at a target, door or point from so far [m]")] = (
        0.0
    )
    until: Over = None
    critical: Critical = False

    def places(self) -> tuple[PlaceLike, ...]:
        return (self.go,)

    def goal(self, aims: Aims) -> Aim:
        return aims[0]

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        now.state.goal[now.members], now.state.goal_point[now.members] = aims[0]

    def is_over(self, now: Now) -> Mask:
        seen = now.seen_within[now.state.group[now.members]]
        return at_goal(now.state, now.world, now.members, seen_within=seen, within=self.within)

    def leaves(self, world: World, aims: Aims) -> bool:
        goals, number = world.goals(), aims[0].number
        if number == NEAREST_TARGET:
            return bool((goals.is_target & goals.absorbs).any())
        return number == NEAREST_EXIT or (number >= 0 and bool(goals.absorbs[number]))

    def must_be_last(self, world: World, aims: Aims) -> str:
        told, number = goal_told(self.go), aims[0].number
        if self.until is not None:
            return ""
        if number in (NEAREST_EXIT, NO_GOAL):
            return f"'{told}' is never followed by another goal; put it last, without repeat"
        if number >= 0 and world.goals().absorbs[number]:
            return f"people leave at '{told}', so no goal can come after it; put it last"
        return ""

    def alike(self) -> Hashable:
        return Go, self.within  # the goals themselves are in columns

    def __str__(self) -> str:
        return f"go to {goal_told(self.go)}" + _told_until(self.until)


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Wait(Stage):
    """Wait for a time, the same for everybody or drawn by each."""

    wait: Annotated[Seconds, Field(description="seconds, or a distribution from which each draws")]
    until: Over = None
    critical: Critical = False

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        stand_aside(now)
        # The step is part of the purpose, so that somebody who waits again draws again.
        purpose = f"wait {place}/{self.wait}/{now.step}"
        ids = now.state.id[now.members]
        seconds = draw_quantity(WAIT, self.wait, seed=now.seed, purpose=purpose, ids=ids, who=str(self))
        now.state.stage_until[now.members] = now.time + seconds

    def is_over(self, now: Now) -> Mask:
        return time_is_up(now)

    def alike(self) -> Hashable:
        return Wait

    def __str__(self) -> str:
        told = self.wait
        if isinstance(told, Uniform):
            return f"wait {told.low:g} to {told.high:g} s" + _told_until(self.until)
        return f"wait {told.mean if isinstance(told, Normal) else told:g} s" + _told_until(self.until)


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class WaitFor(Stage):
    """Wait until something is true, as long as it takes."""

    wait_for: Annotated[ConditionField, Field(description="what is waited for")]
    critical: Critical = False

    @property
    def until(self) -> Condition:  # type: ignore[override]
        found: Condition = self.wait_for
        return found

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        stand_aside(now)

    def is_over(self, now: Now) -> Mask:
        return np.zeros(len(now.members), dtype=np.bool_)

    def alike(self) -> Hashable:
        return WaitFor

    def never(self, outlook: Outlook, aims: Aims) -> str:
        return "it is over only then"

    def __str__(self) -> str:
        return f"wait until {self.wait_for}"


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Until(Stage):
    """Go on with what was done before, towards the same goal, until something is true."""

    until: Annotated[ConditionField, Field(description="what ends it")]
    critical: Critical = False

    def is_over(self, now: Now) -> Mask:
        return np.zeros(len(now.members), dtype=np.bool_)

    def alike(self) -> Hashable:
        return Until

    def never(self, outlook: Outlook, aims: Aims) -> str:
        return "it is over only then"

    def __str__(self) -> str:
        return f"go on until {self.until}"


class Delay(Stage):
    """The first stage of all: the time that people need before they start. Nothing steers them meanwhile."""

    asleep = True

    def is_over(self, now: Now) -> Mask:
        return time_is_up(now)

    def alike(self) -> Hashable:
        return Delay

    def __str__(self) -> str:
        return "not started yet"


def time_is_up(now: Now) -> Mask:
    """Whose stage ends by itself now."""
    return np.asarray(now.state.stage_until[now.members] <= now.time + 1e-9 * now.dt)


def stand_aside(now: Now) -> None:
    """Let the members stand: at spots of their own if they are in a region or room that they went to."""
    state, rows = now.state, now.members
    goal = state.goal[rows]
    goals = now.world.goals()
    # The last entry is for agents that go to no numbered place.
    areas = np.append((goals.is_exit | goals.is_target | goals.is_line) == 0, False)
    is_area = areas[np.maximum(goal, -1)]
    inside = is_area.copy()
    if is_area.any():
        inside[is_area] = at_goal(state, now.world, rows[is_area])
    on_cells = now.on_cells[state.group[rows]]
    # On cells nobody goes to a point; the middle of the area, where they are going, is aside enough.
    to_spot = rows[inside & ~on_cells]
    state.goal[rows[~inside]], state.goal_point[rows[~inside]] = NO_GOAL, 0.0
    if len(to_spot):
        state.goal_point[to_spot] = waiting_spots(now.of(to_spot))
        state.goal[to_spot] = POINT


def _told_until(condition: Condition | None) -> str:
    return "" if condition is None else f", until {condition}"
