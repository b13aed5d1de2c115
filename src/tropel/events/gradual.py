"""Parameters that change gradually: drifts, surges, and the fatigue and alarm composed of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from tropel.agents.distributions import draw
from tropel.agents.personal_fields import Value
from tropel.agents.personality import PERSONALITY
from tropel.errors import ParameterError
from tropel.events.base import Event, GroupName, Named
from tropel.foundation.field_types import Finite, PositiveFinite

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class _Shift(Event):
    """A parameter that moves over time: each agent's gap to the value `to` is multiplied by a function of time.

    Each step multiplies by `left(t) / left(t - dt)`, so only the agents' own values and the time since the beginning
    are needed: nothing depends on dt, a checkpoint holds everything, and several shifts of one parameter can overlap.
    """

    name: Annotated[str, Named("parameter")]
    to: Annotated[Value | None, Field(description="a number or a distribution")] = None
    share: Annotated[
        float | None, Field(gt=0.0, le=1.0, description="part of the gap between the agent's own value and `to`")
    ] = None
    factor: Annotated[PositiveFinite | None, Field(description="instead of `to`: times the agent's own value")] = None
    group: GroupName = None

    @model_validator(mode="after")
    def _said_once(self) -> _Shift:
        if (self.to is None) == (self.factor is None):
            raise ValueError("give either to or factor")
        if self.factor is not None and self.share is not None:
            raise ValueError("share goes with to, not with factor")
        return self

    def check(self, sim: Simulation, step: int) -> None:
        if _is_trait(self.name, sim) and self.factor is not None and self.factor > 1.0:
            raise ParameterError(f"{self.name} lies between 0 and 1; raise it with to = 1 and a share, not by a factor")
        if isinstance(self.to, float):
            _check_values(self.name, np.array([self.to]), sim)

    def apply(self, sim: Simulation) -> None:
        shift = cast("Drift | Surge", self)
        UnderWay(shift=shift, since=sim.step_number, newest=sim.agents.next_id).apply(sim)

    @property
    def reach(self) -> float:
        """The part of the gap that is closed when the parameter is furthest from where it began."""
        return (self.share or 1.0) if self.factor is None else 1.0 - self.factor

    def left(self, elapsed: float) -> float:
        """What is left of the gap after this many seconds, as a share of the initial gap."""
        raise TypeError(f"{type(self).__name__} does not define left")

    def over_after(self, elapsed: float) -> bool:
        raise TypeError(f"{type(self).__name__} does not define over_after")


class Drift(_Shift):
    """Move a parameter linearly, within `over` seconds, to a value (or by a share of the gap), or to a multiple."""

    kind: Literal["drift"] = "drift"
    over: PositiveFinite

    def left(self, elapsed: float) -> float:
        return 1.0 - self.reach * min(elapsed / self.over, 1.0)

    def over_after(self, elapsed: float) -> bool:
        return elapsed / self.over >= 1.0


class Surge(_Shift):
    """Change a parameter at once, then let it fade back to each agent's own value with the time constant `fade` [s]."""

    kind: Literal["surge"] = "surge"
    fade: PositiveFinite

    @model_validator(mode="after")
    def _way_back(self) -> Surge:
        if self.factor is None and (self.share is None or self.share > _LARGEST_SURGE):
            raise ValueError(
                f"to needs a share of at most {_LARGEST_SURGE}: with all agents alike, none could return to its own "
                f"value"
            )
        return self

    def left(self, elapsed: float) -> float:
        return 1.0 if self.over_after(elapsed) else 1.0 - self.reach * math.exp(-elapsed / self.fade)

    def over_after(self, elapsed: float) -> bool:
        return elapsed > _FADED * self.fade


#: Beyond this share of the gap, rounding would show in the values that come back.
_LARGEST_SURGE = 0.99
#: The number of time constants after which nothing is left of a surge: exp(-30) is 1e-13.
_FADED = 30.0


class UnderWay(Event):
    """A shift that has begun, waiting for its next step. It applies to agents that were present when it began."""

    kind: Literal["under_way"] = "under_way"
    shift: Annotated[Drift | Surge, Field(discriminator="kind")]
    since: int  #: step
    newest: int  #: the first id that was not present

    def apply(self, sim: Simulation) -> None:
        shift = self.shift
        steps = sim.step_number - self.since
        elapsed = steps * sim.dt
        before = shift.left((steps - 1) * sim.dt) if steps else 1.0
        rows = sim.population.members([sim.groups.index(shift.group)] if shift.group else range(len(sim.groups)))
        ids = sim.agents.id[rows]
        rows, ids = rows[ids < self.newest], ids[ids < self.newest]
        goal = np.zeros(len(rows))
        if shift.to is not None:
            purpose = f"{shift.group or 'everybody'}/{shift.name}/{self.since}"
            goal = draw(shift.to, seed=sim.seed, purpose=purpose, ids=ids)
            _check_values(shift.name, goal, sim)
        column = sim.agents.columns[shift.name]
        moved = goal + (column[rows] - goal) * (shift.left(elapsed) / before)
        # On the way back to its smallest value, rounding may overshoot.
        column[rows] = np.maximum(moved, sim.agents.declared[shift.name].low)
        if not shift.over_after(elapsed):
            sim.events.add(sim.step_number + 1, self)


class _State(Event):
    """A physical or mental state that shifts the desired speed, and the traits of models that have them."""

    group: GroupName = None

    def apply(self, sim: Simulation) -> None:
        for shift in self.shifts():
            if shift.name == "desired_speed" or _is_trait(shift.name, sim):
                shift.apply(sim)

    def shifts(self) -> list[Drift] | list[Surge]:
        raise TypeError(f"{type(self).__name__} does not define shifts")


class Tire(_State):
    """Fatigue: within `over` seconds people become slower, and slower to change their speed."""

    kind: Literal["tire"] = "tire"
    over: PositiveFinite
    speed: Annotated[Finite, Field(gt=0.0, le=1.0, description="what is left of the desired speed")] = 0.6
    mass: Annotated[Finite, Field(ge=0.0, le=1.0, description="part of the gap to a mass of 1")] = 0.5

    def shifts(self) -> list[Drift]:
        slower = Drift(name="desired_speed", factor=self.speed, over=self.over, group=self.group)
        heavier = [Drift(name="mass", to=1.0, share=self.mass, over=self.over, group=self.group)] if self.mass else []
        return [slower, *heavier]


class Alarm(_State):
    """Adrenaline: people become faster, braver and more agile at once, then calm down with time constant `fade` [s]."""

    kind: Literal["alarm"] = "alarm"
    fade: PositiveFinite = 30.0
    speed: Annotated[Finite, Field(ge=1.0, description="times the desired speed")] = 1.5
    courage: Annotated[Finite, Field(ge=0.0, le=_LARGEST_SURGE, description="part of the gap to a courage of 1")] = 0.6
    agility: Annotated[Finite, Field(ge=0.0, le=_LARGEST_SURGE, description="part of the gap to an agility of 1")] = 0.6

    def shifts(self) -> list[Surge]:
        faster = Surge(name="desired_speed", factor=self.speed, fade=self.fade, group=self.group)
        shares = {"courage": self.courage, "agility": self.agility}
        return [faster] + [
            Surge(name=name, to=1.0, share=share, fade=self.fade, group=self.group)
            for name, share in shares.items()
            if share
        ]


def _check_values(name: str, values: NDArray[np.float64], sim: Simulation) -> None:
    """Raise if one of the target values is not allowed for the parameter."""
    column = sim.agents.declared[name]
    wrong = column.is_wrong(values)
    if wrong.any():
        raise ParameterError(f"{name} must be {column.allowed}, so it cannot become {values[np.argmax(wrong)]:g}")


def _is_trait(name: str, sim: Simulation) -> bool:
    # Compare the whole declaration: a user's own model may have a column `mass` in kilograms.
    return sim.agents.declared.get(name) in PERSONALITY
