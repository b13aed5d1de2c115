"""Events waiting for their step: their order, their text in records and checkpoints, and how they are applied."""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field, TypeAdapter, ValidationError

from tropel.errors import EventError, ParameterError, TropelError
from tropel.events import AddAgents
from tropel.events.base import Event
from tropel.events.gradual import UnderWay
from tropel.events.names import Calendar, Due
from tropel.foundation.arguments import CHECKED_ELSEWHERE
from tropel.registry import EVENTS

if TYPE_CHECKING:
    from tropel.agents.groups import Source
    from tropel.simulation import Simulation

EventLike = Annotated[Event | Callable[["Simulation"], None], CHECKED_ELSEWHERE]

# Built at run time, which type checkers cannot follow.
_AnyEvent: Any = Annotated[Union[(*(entry.load() for entry in EVENTS.values()), UnderWay)], Field(discriminator="kind")]
_any_event: Any = TypeAdapter(_AnyEvent)


@dataclass(frozen=True)
class Repeated:
    """A function of the simulation that is called at `begin` [s] and then at intervals of `seconds`."""

    function: Callable[[Simulation], None]
    begin: float
    seconds: float
    turn: int = 0

    def __call__(self, sim: Simulation) -> None:
        # Schedule the next turn first, so that a checkpoint written by the function contains it.
        following = replace(self, turn=self.turn + 1)
        sim.events.add(step_at(self.begin + following.turn * self.seconds, sim.dt), following)
        self.function(sim)

    def stored(self) -> dict[str, Any]:
        return {**_stored_function(self.function), "begin": self.begin, "every": self.seconds, "turn": self.turn}

    def is_stored_as(self, stored: dict[str, Any]) -> bool:
        turn = stored.get("turn")
        return type(turn) is int and turn >= 0 and {**self.stored(), "turn": turn} == stored


def _stored_function(function: Callable[..., Any]) -> dict[str, Any]:
    return {"kind": "function", "name": getattr(function, "__qualname__", repr(type(function)))}


def event_json(event: EventLike) -> str:
    """An event as it is written into records and checkpoints."""
    if isinstance(event, Event):
        return event.model_dump_json()
    return json.dumps(event.stored() if isinstance(event, Repeated) else _stored_function(event))


def is_news(event: EventLike) -> bool:
    """Whether an event belongs in the record of a run; one that only continues an earlier event does not."""
    return not (isinstance(event, UnderWay) or (isinstance(event, Repeated) and event.turn > 0))


def event_from_json(text: str) -> Any:
    """The event a record or checkpoint holds; functions cannot be read back."""
    return _any_event.validate_json(text)


#: Events by due time.
Waiting = dict[Due, EventLike]


class EventQueue:
    """Events waiting for their step."""

    def __init__(self) -> None:
        self._keys: list[Due] = []
        self._events: dict[Due, EventLike] = {}
        self._calendar = Calendar(self._events)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[tuple[int, int, EventLike]]:
        return ((key.step, key.sequence, self._events[key]) for key in self._keys)

    def add(self, step: int, event: EventLike) -> Due:
        """Schedule an event after all others of the same step; returns when it is due."""
        place = bisect.bisect_left(self._keys, Due(step + 1, 0))
        last = self._keys[place - 1] if place else None
        # Numbered within the step, so that a resumed run needs no counter to continue with the same numbers.
        key = Due(step, last.sequence + 1 if last is not None and last.step == step else 0)
        self._keys.insert(place, key)
        self._events[key] = event
        self._calendar.note(key)
        return key

    def take_out(self, moment: Due) -> EventLike:
        """Remove an event, as if it had never been scheduled."""
        del self._keys[bisect.bisect_left(self._keys, moment)]
        event = self._events.pop(moment)
        self._calendar.forget(moment, event)
        return event

    def problems(self, moment: Due, sim: Simulation) -> Iterator[tuple[str, str]]:
        """Names in a scheduled event that do not exist when it is due, or are taken: fields and messages."""
        return self._calendar.problems(moment, sim)

    def foreseen(self, kind: str, name: str, step: int, there: Any) -> Any:
        """A thing as defined before the end of a step, by an event or in `there` now; None if that is unknown."""
        return self._calendar.foreseen(kind, name, step, there)

    def due(self, step: int) -> Iterator[EventLike]:
        """Take out, in order, what is due at or before a step."""
        while self._keys and self._keys[0].step <= step:
            yield self.take_out(self._keys[0])

    def drop_last(self, step: int, count: int) -> None:
        """Remove the last `count` events of a step, as if they had never been scheduled."""
        for _ in range(count):
            if (last := max((key for key in self._keys if key.step == step), default=None)) is not None:
                self.take_out(last)

    def adds_agents(self) -> bool:
        """Whether a pending event may add agents.

        A function may do anything; functions that are called repeatedly do not count, or no run would end.
        """
        return any(
            not isinstance(event, Event | Repeated) or isinstance(event, AddAgents) for event in self._events.values()
        )

    def most_newcomers(self, step: int, sources: Iterable[tuple[Source, int]]) -> float:
        """How many agents can come before the end of a step, by events and from sources that have sent some so far.

        Infinite after a function of the simulation, which may add any number, and for a source without a total.
        """
        most = sum(math.inf if source.total is None else source.total - sent for source, sent in sources)
        for key, event in self._events.items():
            if key.step <= step and isinstance(event, AddAgents):
                most += event.count
            elif key.step <= step and not isinstance(event, Event):
                return math.inf
        return most

    def state(self) -> list[list[Any]]:
        return [[step, sequence, event_json(event)] for step, sequence, event in self]

    def restore(self, stored: list[list[Any]]) -> None:
        """Restore the waiting events; nothing changes if they cannot be read."""
        self.put_back(self.read(stored))

    def read(self, stored: Any) -> Waiting:
        """What `state` returned; functions are looked up among those that the script has scheduled."""
        functions = {(k.step, k.sequence): e for k, e in self._events.items() if not isinstance(e, Event)}
        repeated = [event for _, _, event in self if isinstance(event, Repeated)]
        events: Waiting = {}
        for entry in stored if isinstance(stored, list) else [stored]:
            key, what, text = _entry(entry)
            if key in events:
                raise EventError(f"two events have the number {key.sequence} in step {key.step}")
            if "every" in what:
                events[key] = _found_again(what, repeated)
            elif what.get("kind") == "function":
                if (at := (key.step, key.sequence)) not in functions or event_json(functions[at]) != text:
                    raise EventError(
                        f"the function '{what.get('name')}', due at step {key.step}, is not scheduled by this script"
                    )
                events[key] = functions[at]
            else:
                events[key] = _read_event(text, key.step)
        return events

    @property
    def waiting(self) -> Waiting:
        return dict(self._events)

    def put_back(self, events: Waiting) -> None:
        """Make these the waiting events, and no others."""
        self._keys, self._events = sorted(events), dict(events)
        self._calendar = Calendar(self._events)
        for key in self._keys:
            self._calendar.note(key)


def _entry(entry: Any) -> tuple[Due, dict[str, Any], str]:
    """When an event of a checkpoint is due, what it is, and its text."""
    try:
        step, sequence, text = entry
        what = json.loads(text)
        whole = type(step) is int and type(sequence) is int and step >= 0 and sequence >= 0
        if not whole or not isinstance(what, dict):
            raise ValueError("it must be a step, a number within the step, and the text of an event")
    except (ValueError, TypeError, RecursionError) as error:
        raise EventError(f"the pending entry {entry!r:.60} is not an event ({error})") from error
    return Due(step, sequence), what, text


def _read_event(text: str, step: int) -> Event:
    try:
        event: Event = event_from_json(text)
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise EventError(f"the entry for step {step} is not an event: {text[:60]} ({why})") from error
    if isinstance(event, UnderWay) and not 0 <= event.since <= step:
        raise EventError(f"the entry for step {step} claims to have begun at step {event.since}")
    return event


def _found_again(stored: dict[str, Any], repeated: list[Repeated]) -> Repeated:
    """The repeated function that a checkpoint refers to, taken from those that the script has scheduled."""
    for known in repeated:
        if known.is_stored_as(stored):
            repeated.remove(known)
            return replace(known, turn=int(stored["turn"]))
    name = stored.get("name")
    call = f"every({stored['every']!r:.20}, {name!s:.60}, begin={stored.get('begin')!r:.20})"
    raise EventError(f"the function '{name!s:.60}' is not scheduled by this script; schedule it with  {call}")


def step_at(time: float, dt: float) -> int:
    """The first step whose time, step · dt, is at or after `time` [s], up to a billionth of a step."""
    if math.isinf(time / dt):
        raise ParameterError(f"t = {time:g} s is too many steps of dt = {dt:g} s away to be counted; use a larger dt")
    step = max(math.ceil(time / dt - 1e-9), 0)
    # The quotient is rounded; in runs of millions of steps the error exceeds that. The steps' own times decide.
    around = range(max(step - 2, 0), step + 3)
    return next((k for k in around if k * dt >= time - 1e-9 * dt), step)


def due_step(time: float, sim: Simulation) -> int:
    """The step at which an event for the time [s] is due; raises if the time has passed or cannot be reached."""
    step = step_at(time, sim.dt)
    if step < sim.step_number:
        raise ParameterError(f"t = {time:g} s has already passed (it is {sim.time:g} s now)")
    return step


def schedule(sim: Simulation, step: int, *events: EventLike) -> None:
    """Schedule events for a step; if it is clear that one of them cannot happen, raise and schedule none."""
    for event in events:
        if not isinstance(event, Event) and (not callable(event) or isinstance(event, type)):
            raise ParameterError(f"an event is one of tropel.events or a function of the simulation, not {event!r}")
    moments = [sim.events.add(step, event) for event in events]
    try:
        for moment, event in zip(moments, events, strict=True):
            for _, wrong in sim.events.problems(moment, sim):
                raise ParameterError(wrong)
            if isinstance(event, Event):
                event.check(sim, step)
    except BaseException:
        for moment in moments:
            sim.events.take_out(moment)
        raise


def foreseen_problems(sim: Simulation, step: int, event: EventLike) -> Iterator[tuple[tuple[str, ...], str]]:
    """Schedule an event in any case, and yield what is wrong with it, by the fields concerned.

    The event is scheduled even if it is wrong, so that it causes no errors in the events after it.
    """
    moment = sim.events.add(step, event)
    fine = True
    for field, message in sim.events.problems(moment, sim):
        fine = False
        yield (field,), message
    if fine and isinstance(event, Event):
        try:
            event.check(sim, step)
        except TropelError as error:
            yield (), str(error)


def repeated(function: Callable[[Simulation], None], *, begin: float, seconds: float, dt: float) -> Repeated:
    """A function to be called at intervals of `seconds`, which must be at least dt."""
    if not seconds > dt * (1.0 - 1e-9):
        raise ParameterError(f"every: the time between two calls must be at least dt = {dt:g} s, not {seconds!r}")
    if not callable(function) or isinstance(function, type):
        raise ParameterError(f"every: expected a function of the simulation, not {function!r}")
    return Repeated(function, begin=begin, seconds=float(seconds))


def apply_event(event: EventLike, sim: Simulation) -> None:
    """Apply one event; errors tell which event it was and when."""
    try:
        if isinstance(event, Event):
            event.apply(sim)
        else:
            event(sim)
    except Exception as error:
        what = str(error) if isinstance(error, TropelError) else f"{type(error).__name__}: {error}"
        raise EventError(f"event {event_json(event)} at t = {sim.time:g} s: {what}") from error


def note_event(event: EventLike, sim: Simulation) -> None:
    """Note an event that has happened, for people who wait for it; functions are not noted."""
    if isinstance(event, Event) and is_news(event):
        fields = {name: getattr(event, name) for name in type(event).model_fields}
        sim.population.happened.note(str(fields["kind"]), fields, step=sim.step_number)
