"""What exists under a name when an event is due: doors, obstacles, goals, groups, parameters and so on.

The fields of an event declare which names they hold (`Named`, in `events/base.py`). For each name, the pending events
are checked in order: what an earlier event adds exists, and what it removes is gone. After a function of the
simulation, which may have added or removed anything, nothing is known about such names.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tropel.agents.goals import SPECIAL_GOALS
from tropel.agents.stages.stage import Stage
from tropel.errors import TropelError, suggest
from tropel.events.base import Event, Named
from tropel.world.places import Place, all_names, as_place, names_another_place

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Thing = tuple[str, str]  #: what it is, and its name
_Names = Callable[[Any], Collection[str]]  #: of a simulation

#: What events can name, but not add or remove.
_FIXED: dict[str, _Names] = {
    "door": lambda sim: sim.world.doors,
    "exit": lambda sim: sim.world.exits,
    "region": lambda sim: sim.world.region_names,
    "room": lambda sim: sim.world.rooms,
    "group": lambda sim: sim.groups,
    "parameter": lambda sim: sim.population.settable(),
    "column": lambda sim: sim.agents.declared,
    "behaviour": lambda sim: sim.behaviours,
}
#: What events and functions can add and remove.
_CHANGING: dict[str, _Names] = {
    "obstacle": lambda sim: sim.world.obstacles.names,
    "hazard": lambda sim: sim.world.hazards.names,
    "target": lambda sim: sim.world.targets,
    "value map": lambda sim: sim.value_maps().names,
}
_MISSING = {
    "parameter": "agents have no parameter '{}' to set",
    "column": "agents have no parameter '{}'",
    "behaviour": "no layer here has the behaviour '{}'",
}


class Due(NamedTuple):
    """When an event is due: the step, and its place among the events of that step."""

    step: int
    sequence: int


class Mention(NamedTuple):
    """A name in an event: the field that holds it, its mark, and the name."""

    field: str
    mark: Named
    name: str

    @property
    def thing(self) -> Thing:
        """Goals that are not another place are targets."""
        return ("target" if self.mark.kind == "goal" else self.mark.kind), self.name


def mentions_of(event: Event) -> Iterator[Mention]:
    """The names that an event holds."""
    for field, mark in _marks(type(event)):
        value = getattr(event, field)
        for name in _names(value):
            if not isinstance(name, Place):
                yield Mention(field, mark, name)
            elif name.point is None:
                yield Mention(field, replace(mark, kind=name.kind), name.name)


def _names(value: Any) -> Iterator[Any]:
    """The names and places in a field: those of its keys, of its items, and of the stages in it."""
    for each in value if isinstance(value, Mapping | tuple) else () if value is None else (value,):
        if not isinstance(each, Stage):
            yield each
            continue
        until = () if each.until is None else each.until.places()
        yield from (as_place(place) for place in (*each.places(), *until))


@functools.cache
def _marks(kind: type[Event]) -> list[tuple[str, Named]]:
    fields = kind.model_fields.items()
    return [(name, mark) for name, field in fields for mark in field.metadata if isinstance(mark, Named)]


class Calendar:
    """The pending events, by the things they name."""

    def __init__(self, events: Mapping[Due, Any]) -> None:
        self._events = events
        self._changes: dict[Thing, list[Due]] = {}  #: events that add or remove it
        self._needs: dict[Thing, list[Due]] = {}  #: events that only name it
        self._functions: list[Due] = []

    def note(self, moment: Due) -> None:
        for moments in self._lists(self._events[moment]):
            bisect.insort(moments, moment)

    def forget(self, moment: Due, event: Any) -> None:
        for moments in self._lists(event):
            del moments[bisect.bisect_left(moments, moment)]

    def _lists(self, event: Any) -> Iterator[list[Due]]:
        """The lists that an event is entered in."""
        if not isinstance(event, Event):
            yield self._functions
            return
        for mention in mentions_of(event):
            if not mention.mark.even_gone:
                yield (self._needs if mention.mark.does == "needs" else self._changes).setdefault(mention.thing, [])

    # What exists ------------------------------------------------------------------------------------------------

    def problems(self, moment: Due, sim: Simulation) -> Iterator[tuple[str, str]]:
        """What is wrong with the names in a scheduled event: fields and messages."""
        event = self._events[moment]
        for mention in mentions_of(event) if isinstance(event, Event) else ():
            try:
                wrong = self._wrong(mention, moment, sim)
            except TropelError as error:  # this simulation has no things of the kind
                wrong = str(error)
            if wrong:
                yield mention.field, wrong

    def foreseen(self, kind: str, name: str, step: int, there: Any) -> Any:
        """A thing as defined before the end of a step, by an event or in `there` now; None if that is unknown."""
        thing, end = (kind, name), Due(step + 1, 0)
        if not self._foreseeable(thing, end):
            return None
        change = self._last_change(thing, end)
        if change is None:
            return there[name] if name in there.names else None
        return change.made() if _mark_of(change, thing).does == "adds" else None

    def _last_change(self, thing: Thing, before: Due) -> Any:
        """The last event before a moment that adds or removes something; None if there is none."""
        at = self._last(self._changes.get(thing, []), before)
        return None if at is None else self._events[at]

    def _foreseeable(self, thing: Thing, before: Due) -> bool:
        """Whether no function can have added, changed or removed something since it was last added or removed."""
        change, function = self._last(self._changes.get(thing, []), before), self._last(self._functions, before)
        return function is None or (change is not None and function < change)

    @staticmethod
    def _last(moments: list[Due], before: Due) -> Due | None:
        place = bisect.bisect_left(moments, before)
        return moments[place - 1] if place else None

    def _ends(self, thing: Thing, then: Due, sim: Simulation) -> float:
        """When something that exists, or was added last, ends by itself [s]."""
        change = self._last_change(thing, then)
        if change is not None:
            return _ends(change, thing)
        kind, name = thing
        told = sim.world.hazards[name].until if kind == "hazard" and name in sim.world.hazards else None
        return math.inf if told is None else float(told)

    def _is_there(self, thing: Thing, then: Due, sim: Simulation) -> bool | None:
        """Whether a thing exists at a moment; None if a function may have decided that."""
        kind, name = thing
        if kind in _FIXED:
            return name in _FIXED[kind](sim)
        if not self._foreseeable(thing, then):
            return None
        change = self._last_change(thing, then)
        there = name in _CHANGING[kind](sim) if change is None else _mark_of(change, thing).does == "adds"
        return there and not _is_over(self._ends(thing, then, sim), then, sim)

    def _wrong(self, mention: Mention, then: Due, sim: Simulation) -> str:
        kind, name = thing = mention.thing
        adds = mention.mark.does == "adds"
        if kind == "target" and (adds or mention.mark.kind == "goal"):
            if adds and name in sim.world.exits:
                return f"there is an exit '{name}' already; exits and targets need different names"
            if not adds and (name in SPECIAL_GOALS or names_another_place(sim.world, name)):
                return ""
        there = self._is_there(thing, then, sim)
        if adds and there:
            since = self._since(thing, then, sim)
            return f"there is {_a(kind)} '{name}' already{since}; remove it first or choose another name"
        if not adds and there is False and not (mention.mark.even_gone and self._was_there(thing, then, sim)):
            return self._missing(mention, then, sim)
        return self._harm(mention, then, sim)

    def _harm(self, mention: Mention, then: Due, sim: Simulation) -> str:
        """What a later event would find wrong if this one happened."""
        does, thing = mention.mark.does, mention.thing
        if does == "needs":
            return ""
        function = self._next(self._functions, then)
        change = self._next(self._changes.get(thing, []), then)
        need = self._next(self._needs.get(thing, []), then)
        first = min((at for at in (function, change, need) if at is not None), default=None)
        if first is None or first == function:
            return ""
        what = f"{thing[0]} '{thing[1]}'"
        if does == "removes" and not (first == change and _mark_of(self._events[first], thing).does == "adds"):
            return f"{what} is still needed: '{_told(self._events[first])}' is scheduled for {_time(first, sim)}"
        if does == "adds" and change is not None and _mark_of(self._events[change], thing).does == "adds":
            ends = _ends(self._events[then], thing)
            if (function is None or change < function) and not _is_over(ends, change, sim):
                return f"{what} is also added by the event at {_time(change, sim)}; choose another name"
        return ""

    @staticmethod
    def _next(moments: list[Due], then: Due) -> Due | None:
        place = bisect.bisect_right(moments, then)
        return moments[place] if place < len(moments) else None

    def _was_there(self, thing: Thing, then: Due, sim: Simulation) -> bool:
        """Whether a target of that name exists or existed; newcomers may then still be sent to it."""
        return self._last_change(thing, then) is not None or thing[1] in sim.world.goal_numbers

    # Messages ---------------------------------------------------------------------------------------------------

    def _since(self, thing: Thing, then: Due, sim: Simulation) -> str:
        change = self._last(self._changes.get(thing, []), then)
        return "" if change is None else f", from {_time(change, sim)} on"

    def _missing(self, mention: Mention, then: Due, sim: Simulation) -> str:
        kind, thing, name = mention.mark.kind, mention.thing, mention.name
        said = _MISSING.get(kind, f"there is no {kind} '{{}}'").format(name)
        changes = self._changes.get(thing, [])
        change = self._last(changes, then)
        ends = self._ends(thing, then, sim)
        if _is_over(ends, then, sim):
            return f"{said} any more at {_time(then, sim)}: it lasts until t = {ends:g} s"
        if change is not None:
            return f"{said} any more: '{_told(self._events[change])}' removes it at {_time(change, sim)}"
        if (later := self._next(changes, then)) is not None:
            return f"{said} yet at {_time(then, sim)}: '{_told(self._events[later])}' comes at {_time(later, sim)}"
        known = {*_FIXED[kind](sim)} if kind in _FIXED else {*_CHANGING[thing[0]](sim)}
        known |= {other for (other_kind, other), moments in self._changes.items() if moments and other_kind == thing[0]}
        known |= {*all_names(sim.world), *SPECIAL_GOALS} if kind == "goal" else set()
        return f"{said}; {suggest(name, known - {name})}"


def _mark_of(event: Event, thing: Thing) -> Named:
    """How an event that adds or removes something marks it."""
    return next(m.mark for m in mentions_of(event) if m.thing == thing and m.mark.does != "needs")


def _ends(event: Event, thing: Thing) -> float:
    """When something that an event adds ends by itself [s]."""
    field = _mark_of(event, thing).until
    told = getattr(event, field) if field else None
    return math.inf if told is None else float(told)


def _is_over(ends: float, then: Due, sim: Simulation) -> bool:
    return then.step * sim.dt >= ends - 1e-9 * sim.dt


def _time(moment: Due, sim: Simulation) -> str:
    return f"t = {moment.step * sim.dt:g} s"


def _told(event: Any) -> str:
    return str(event.kind).replace("_", " ")


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
