"""Repeating a recorded run: its events happen again, at the same steps.

This simulation has scheduled most of them too, since it was built from the same file or script; those happen once. The
others, such as the decisions of a budget, which depend on the clock, are added from the record. An event that is not in
the record is an error: then the two are not the same run.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tropel.errors import EventError
from tropel.events import AddAgents
from tropel.events.base import Event
from tropel.events.queue import EventLike, EventQueue, event_from_json, event_json, foreseen_problems, is_news
from tropel.foundation.files import LARGEST_RECORD, read_text
from tropel.recording.frames import RecordedEvent, is_note
from tropel.recording.reading import read_trajectory

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: An event, or what is recorded of a function.
_Happened = Event | dict[str, Any]


class Replay:
    """The events of a recorded run by step. The record is complete up to the step `known_until`."""

    def __init__(self, entries: Iterable[tuple[str, RecordedEvent]], *, source: str, known_until: int) -> None:
        self.source = source
        self.known_until = known_until
        self._by_step: dict[int, list[_Happened]] = {}
        self._places: dict[int, list[str]] = {}  #: where each of them is in the record
        for place, entry in entries:
            if not is_note(entry):
                self._by_step.setdefault(entry.step, []).append(_happened(entry, place))
                self._places.setdefault(entry.step, []).append(place)

    @classmethod
    def read(cls, path: Path, sim: Simulation) -> Replay:
        """From a trajectory, or from a file with one JSON object per line."""
        if path.suffix == ".jsonl":
            entries = _read_lines(path)
            last = max((entry.step for _, entry in entries), default=0)
            return cls(entries, source=str(path), known_until=last).checked(sim)
        with read_trajectory(path) as recorded:
            scene = recorded.scene
            if scene.dt and scene.dt != sim.dt:
                raise EventError(
                    f"{path} was recorded with dt = {scene.dt:g} s, but dt is {sim.dt:g} s here; use the same dt"
                )
            if scene.seed != sim.seed:
                warnings.warn(
                    f"{path} was recorded with the seed {scene.seed}; with {sim.seed} its events happen again, but the "
                    f"run will not be the same",
                    stacklevel=3,
                )
            frames = recorded.frames
            last = int(frames[-1]) if len(frames) else 0
            told = [(f"{path}, step {entry.step}", entry) for entry in recorded.events]
            return cls(told, source=str(path), known_until=round(last / (recorded.fps * sim.dt))).checked(sim)

    def checked(self, sim: Simulation) -> Replay:
        """The replay itself; raises if it is clear beforehand that an event in it cannot happen here."""
        waiting, sim.events = sim.events, EventQueue()
        own: dict[int, list[EventLike]] = {}
        for step, _, event in waiting:
            own.setdefault(step, []).append(event)
        wrong: list[str] = []
        try:
            for step in sorted(step for step in {*own, *self._by_step} if step >= sim.step_number):
                scheduled = own.get(step, []) if step >= self.known_until else []
                for event in scheduled:
                    sim.events.add(step, event)
                for place, told in zip(self._places.get(step, ()), self._by_step.get(step, ()), strict=True):
                    if told not in scheduled:
                        happens: EventLike = told if isinstance(told, Event) else _anything
                        wrong += [f"{place}: {text}" for _, text in foreseen_problems(sim, step, happens)]
        finally:
            sim.events = waiting
        if wrong:
            raise EventError("\n".join(wrong))
        return self

    def due(self, sim: Simulation) -> Iterator[EventLike]:
        """Take out what is due in the simulation's step, then the additional events of the recorded run."""
        step = sim.step_number
        waiting = list(self._by_step.get(step, ()))
        while True:
            for event in sim.events.due(step):
                if is_news(event):
                    self._tick_off(event, waiting, step)
                yield event
            if not waiting:
                return
            # One at a time: the last event may be a function that schedules the next one itself.
            if not isinstance(waiting[0], Event):
                raise EventError(
                    f"{self.source}: the recorded run called the function '{waiting[0].get('name')}' at step {step}; "
                    f"a file cannot hold functions: schedule it as the recorded script did, then replay"
                )
            sim.events.add(step, waiting[0])

    def adds_agents(self, step: int) -> bool:
        """Whether more agents will be added at or after a step."""
        return any(
            isinstance(event, AddAgents) for at, events in self._by_step.items() if at >= step for event in events
        )

    def _tick_off(self, event: EventLike, waiting: list[_Happened], step: int) -> None:
        happens: _Happened = event if isinstance(event, Event) else json.loads(event_json(event))
        if waiting and waiting[0] == happens:
            waiting.pop(0)
        elif happens in waiting:
            raise EventError(
                f"{self.source}: the events of step {step} happened in another order; the next was "
                f"{_text(waiting[0])}, not {_text(happens)}"
            )
        elif step < self.known_until:
            raise EventError(
                f"{self.source} is not a record of this run: at step {step} it has no {_text(happens)}; replay it with "
                f"the scenario or script that it was recorded with"
            )


def _anything(sim: Simulation) -> None:
    """Stands for a recorded function whose effect is unknown."""


def _happened(entry: RecordedEvent, place: str) -> _Happened:
    told = entry.event
    if isinstance(told, dict) and told.get("kind") == "function":
        return told
    try:
        event: Event = event_from_json(json.dumps(told))
    except ValidationError as error:
        raise EventError(f"{place}: what it has at step {entry.step} is not an event: {_text(told)}") from error
    return event


def _text(happened: Any) -> str:
    return event_json(happened) if isinstance(happened, Event) else json.dumps(happened)


def _read_lines(path: Path) -> list[tuple[str, RecordedEvent]]:
    try:
        lines = read_text(path, largest=LARGEST_RECORD).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise EventError(f"cannot read {path}: {reason}; give a recorded run or a file of events") from error
    entries = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            step = told["step"]
            if isinstance(step, bool) or not isinstance(step, int) or step < 0:
                raise ValueError(f"step must be a whole number that is not negative, not {step!r}")
            entries.append((f"{path}, line {number}", RecordedEvent(frame=0, step=step, event=told["event"])))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise EventError(
                f'{path}, line {number}: each line must be like {{"step": 12, "event": {{"kind": "close_door", …}}}} '
                f"({error})"
            ) from error
    return entries
