"""Conditions: what people wait for, and what ends a stage early.

Files have them as tables (`{ come = 10, to = "gate" }`), Python as objects (`conditions.Come(10, to="gate")`). In
Python, a function of `Now` is a condition, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from tropel.agents.arriving import at_aim
from tropel.agents.goals import goal_told
from tropel.agents.stages.happened import NEVER
from tropel.agents.stages.stage import (
    Aims,
    Condition,
    InnerConditionField,
    Mask,
    Now,
    Outlook,
    OwnCondition,
    Setting,
)
from tropel.errors import ParameterError, readable_errors, suggest
from tropel.foundation.field_types import Finite, PositiveWhole, Time
from tropel.registry import EVENTS
from tropel.world.places import PlaceField, PlaceLike

__all__ = ["After", "AllOf", "AnyOf", "Attribute", "Come", "Happened", "Open", "OwnCondition", "Signal"]

_CONFIG = ConfigDict(extra="forbid")


def _same_for_all(now: Now, is_true: bool) -> Mask:
    return np.full(len(now.members), is_true, dtype=np.bool_)


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Come(Condition):
    """Others have come: so many of the group, or all of it, are in this very stage, or at a place.

    People who are in the same stage of the same list wait together, and go on together.
    """

    come: Annotated[
        Annotated[PositiveWhole, Field(le=1_000_000_000)] | Literal["all"],
        Field(description="how many, oneself included"),
    ]
    to: Annotated[PlaceField | None, Field(description="to this place, instead of to this stage")] = None
    group: Annotated[str | None, Field(description="of this group, instead of the own one; needs to")] = None
    of_stage = True

    @model_validator(mode="after")
    def _place_of_others(self) -> Come:
        if self.group is not None and self.to is None:
            raise ValueError("others have other things to do: name the place that they come to, as in  to = …")
        return self

    def places(self) -> tuple[PlaceLike, ...]:
        return () if self.to is None else (self.to,)

    def check(self, setting: Setting, who: str) -> None:
        if self.group is not None and self.group not in setting.groups:
            raise ParameterError(f"{who}: there is no group '{self.group}'; {suggest(self.group, setting.groups)}")

    def holds(self, now: Now, aims: Aims) -> Mask:
        groups, living = len(now.state.group_names), now.living
        group = now.state.group[living]
        if aims:
            there = living[at_aim(now.state, now.world, living, aims[0], seen_within=now.seen_within[group])]
        else:
            there = now.members
        counts = np.bincount(now.state.group[there], minlength=groups)
        wanted = np.full(groups, self.come) if isinstance(self.come, int) else np.bincount(group, minlength=groups)
        if not aims and self.come == "all":
            # Of the own list alone; somebody who is further in it has been here already.
            own = living[now.state.agenda[living] == now.agenda]
            wanted = np.bincount(now.state.group[own], minlength=groups)
            counts = counts + np.bincount(self._passed(now, own), minlength=groups)
        both = now.reduce.counts(np.concatenate([counts, wanted]).astype(np.int64))
        enough = (both[:groups] >= (wanted if isinstance(self.come, int) else both[groups:])) & (both[:groups] > 0)
        asked = now.state.group[now.members]
        if self.group is not None:
            asked = np.full(len(now.members), list(now.state.group_names).index(self.group))
        return np.asarray(enough[asked])

    @staticmethod
    def _passed(now: Now, own: Any) -> Any:
        """The groups of those that are beyond this stage of a list that does not begin again."""
        return now.state.group[own[(now.state.stage[own] > now.place) & (not now.repeats)]]

    def never(self, outlook: Outlook, aims: Aims) -> str:
        most = outlook.visitors(self.group, aims[0]) if aims else outlook.people(self.group)
        if most >= (self.come if isinstance(self.come, int) else 1):
            return ""
        where = "" if self.to is None else f" to {goal_told(self.to)}"
        who = "the group" if self.group is None else f"group '{self.group}'"
        return f"at most {most:g} of {who} can come{where}"

    def __str__(self) -> str:
        many = self.come if isinstance(self.come, int) else "all"
        who = "" if self.group is None else f" of {self.group}"
        return f"{many}{who} have come" + ("" if self.to is None else f" to {goal_told(self.to)}")


class _AfterEvent(Condition):
    """An event has happened, at any time so far or, if `new`, since the stage began."""

    new: bool = False

    def event(self) -> tuple[str, Mapping[str, str]]:
        raise TypeError(f"{type(self).__name__} does not define event")

    def holds(self, now: Now, aims: Aims) -> Mask:
        last = now.happened.last(*self.event())
        if not self.new or last == NEVER:
            return _same_for_all(now, last != NEVER)
        return np.asarray(now.state.stage_since[now.members] <= last * now.dt + 1e-9 * now.dt)

    def never(self, outlook: Outlook, aims: Aims) -> str:
        return "" if outlook.event(*self.event()) else "this run has no such event"


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Signal(_AfterEvent):
    """A signal was given: by the event `signal`, or by `sim.signal(…)`."""

    signal: str
    new: Annotated[bool, Field(description="only if it is given after this stage has begun")] = False

    def event(self) -> tuple[str, Mapping[str, str]]:
        return "signal", {"name": self.signal}

    def __str__(self) -> str:
        return f"the signal '{self.signal}' is given"


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Happened(_AfterEvent):
    """An event of a kind has happened, such as `{ event = "open_door", door = "main" }`."""

    event_kind: str
    fields: tuple[tuple[str, str], ...] = ()  #: names that it must hold
    new: bool = False

    @classmethod
    def from_table(cls, told: Mapping[str, Any]) -> Happened:
        names = {name: value for name, value in told.items() if name not in ("event", "new")}
        wrong = next((name for name, value in names.items() if not isinstance(value, str)), None)
        if wrong is not None:
            raise ParameterError(f"event: of the fields of an event, names can be waited for, not '{wrong}'")
        return cls(told["event"], tuple(sorted(names.items())), new=told.get("new", False))

    @classmethod
    def of(cls, event: str, *, new: bool = False, **names: str) -> Happened:
        """The condition with the names as arguments: `Happened.of("open_door", door="main")`."""
        return cls.from_table({"event": event, "new": new, **names})

    @classmethod
    def table_schema(cls) -> dict[str, Any]:
        """The JSON schema of its table; which names an event has depends on its kind."""
        kinds = {"type": "string", "enum": [*EVENTS]}
        return {
            "title": cls.__name__,
            "description": cls.__doc__,
            "type": "object",
            "properties": {"event": kinds, "new": {"type": "boolean"}},
            "additionalProperties": {"type": "string"},
            "required": ["event"],
        }

    def to_file(self) -> dict[str, Any]:
        return {"event": self.event_kind, **dict(self.fields), **({"new": True} if self.new else {})}

    def check(self, setting: Setting, who: str) -> None:
        if self.event_kind not in EVENTS:
            raise ParameterError(f"{who}: there is no event '{self.event_kind}'; {suggest(self.event_kind, EVENTS)}")
        known = [name for name in EVENTS[self.event_kind].load().model_fields if name != "kind"]
        for name, _ in self.fields:
            if name not in known:
                raise ParameterError(f"{who}: the event '{self.event_kind}' has no '{name}'; {suggest(name, known)}")

    def event(self) -> tuple[str, Mapping[str, str]]:
        return self.event_kind, dict(self.fields)

    def __str__(self) -> str:
        which = ", ".join(f"{name} '{value}'" for name, value in self.fields)
        return f"the event '{self.event_kind}'{f' of {which}' if which else ''} has happened"


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Open(Condition):
    """A door or an exit is open."""

    open: str

    def check(self, setting: Setting, who: str) -> None:
        known = [*setting.world.doors, *setting.world.exits]
        if self.open not in known:
            raise ParameterError(f"{who}: there is no door or exit '{self.open}'; {suggest(self.open, known)}")

    def holds(self, now: Now, aims: Aims) -> Mask:
        world = now.world
        return _same_for_all(now, (world.doors.get(self.open) or world.exits[self.open]).open)

    def never(self, outlook: Outlook, aims: Aims) -> str:
        return "" if outlook.opens(self.open) else f"'{self.open}' is closed, and no event opens it"

    def __str__(self) -> str:
        return f"'{self.open}' is open"


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class After(Condition):
    """It is so late [s]."""

    after: Time

    def holds(self, now: Now, aims: Aims) -> Mask:
        return _same_for_all(now, self.after <= now.time + 1e-9 * now.dt)

    def __str__(self) -> str:
        return f"it is {self.after:g} s"


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Attribute(Condition):
    """A quantity of the agent itself, such as its courage, is above or below a value."""

    attribute: str
    above: Finite | None = None
    below: Finite | None = None

    @model_validator(mode="after")
    def _compared(self) -> Attribute:
        if self.above is None and self.below is None:
            raise ValueError("say what the attribute is compared with, as in  above = …  or  below = …")
        return self

    def check(self, setting: Setting, who: str) -> None:
        known = {name for name, column in setting.columns.items() if not column.vector and not column.width}
        if self.attribute not in known:
            raise ParameterError(
                f"{who}: agents have no attribute '{self.attribute}'; {suggest(self.attribute, known)}"
            )

    def holds(self, now: Now, aims: Aims) -> Mask:
        value = now.state.columns[self.attribute][now.members]
        found = np.ones(len(now.members), dtype=np.bool_)
        if self.above is not None:
            found &= value > self.above
        if self.below is not None:
            found &= value < self.below
        return found

    def __str__(self) -> str:
        limits = [] if self.above is None else [f"above {self.above:g}"]
        limits += [] if self.below is None else [f"below {self.below:g}"]
        return f"{self.attribute.replace('_', ' ')} is {' and '.join(limits)}"


class _Several(Condition):
    """Conditions together; their places one after the other."""

    of_stage = True

    def parts(self) -> tuple[Condition, ...]:
        raise TypeError(f"{type(self).__name__} does not define parts")

    def places(self) -> tuple[PlaceLike, ...]:
        return tuple(place for part in self.parts() for place in part.places())

    def check(self, setting: Setting, who: str) -> None:
        for part in self.parts():
            part.check(setting, who)

    def _with_aims(self, aims: Aims) -> list[tuple[Condition, Aims]]:
        found, first = [], 0
        for part in self.parts():
            last = first + len(part.places())
            found.append((part, aims[first:last]))
            first = last
        return found


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class AnyOf(_Several):
    """At least one of several conditions is true."""

    any: Annotated[tuple[InnerConditionField, ...], Field(min_length=1)]

    def parts(self) -> tuple[Condition, ...]:
        return self.any

    def holds(self, now: Now, aims: Aims) -> Mask:
        return np.asarray(np.any([part.holds(now, own) for part, own in self._with_aims(aims)], axis=0))

    def never(self, outlook: Outlook, aims: Aims) -> str:
        reasons = [part.never(outlook, own) for part, own in self._with_aims(aims)]
        return " and ".join(reasons) if all(reasons) else ""

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts()))


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class AllOf(_Several):
    """All of several conditions are true."""

    all: Annotated[tuple[InnerConditionField, ...], Field(min_length=1)]

    def parts(self) -> tuple[Condition, ...]:
        return self.all

    def holds(self, now: Now, aims: Aims) -> Mask:
        return np.asarray(np.all([part.holds(now, own) for part, own in self._with_aims(aims)], axis=0))

    def never(self, outlook: Outlook, aims: Aims) -> str:
        return next((why for part, own in self._with_aims(aims) if (why := part.never(outlook, own))), "")

    def __str__(self) -> str:
        return " and ".join(map(str, self.parts()))
