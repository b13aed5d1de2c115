"""What is written and read per frame, and the notes that the engine adds during a run.

Notes record deaths, where hazards were, who began which stage, what happened to tasks and whose mood changed. They are
stored among the events of a file, so that cutting a run back and resuming it treats both alike.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False, kw_only=True)
class FrameData:
    """The agents of one frame, in the order of their ids. Metres, metres per second, unit headings."""

    id: Ints
    position: Floats
    heading: Floats
    #: Number of the group; its name is `scene.groups[number]`.
    group: NDArray[np.int32]
    radius: Floats
    #: None if the file does not store it (SQLite).
    speed: Floats | None
    #: Columns that only some runs have, by name: how riders lean and steer.
    extra: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RecordedEvent:
    """Something that happened during the run, at the beginning of `step`."""

    frame: int
    step: int
    event: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedObstacles:
    """Where the moving obstacles were in one frame."""

    names: tuple[str, ...]
    position: Floats
    radius: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedFrame:
    """One frame on its way to the file; owns its arrays, rows in the order of the ids."""

    number: int
    id: Ints
    position: Floats
    heading: Floats
    group: NDArray[np.int32]
    radius: Floats
    speed: Floats
    geometry_wkt: str | None
    obstacles: RecordedObstacles | None
    extra: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes held while the frame waits to be written."""
        own: tuple[NDArray[Any], ...] = (self.id, self.position, self.heading, self.group, self.radius, self.speed)
        return sum(array.nbytes for array in (*own, *self.extra.values()))


DEATHS = "noted_deaths"
HAZARDS = "noted_hazards"
STAGES = "noted_stages"
NEWS = "noted_news"
SQUADS = "noted_squads"
KNOWLEDGE = "noted_knowledge"


def deaths_note(ids: Sequence[int]) -> str:
    """A note that these agents died at the beginning of its step."""
    return json.dumps({"kind": DEATHS, "ids": [int(number) for number in ids]})


def hazards_note(hazards: Mapping[str, Mapping[str, Any]]) -> str:
    """A note of the hazards that exist from its frame on: name → kind, position, inner and outer."""
    return json.dumps({"kind": HAZARDS, "hazards": hazards}, ensure_ascii=False)


def stages_note(begun: Mapping[str, Sequence[int]]) -> str:
    """A note of the agents that began a stage in its step: what they do → ids."""
    return json.dumps({"kind": STAGES, "begun": begun}, ensure_ascii=False)


def news_note(of: str, what: Sequence[tuple[str, str, Sequence[int]]]) -> str:
    """A note of what happened in its step: what, to what, and to which agents."""
    return json.dumps(
        {"kind": NEWS, "of": of, "news": [[*each[:2], list(each[2])] for each in what]}, ensure_ascii=False
    )


def squads_note(news: Sequence[tuple[str, str]]) -> str:
    """A note of what squads did in its step: names of squads, and what."""
    return json.dumps({"kind": SQUADS, "news": [list(each) for each in news]}, ensure_ascii=False)


def knowledge_note(news: Sequence[tuple[int | str, str, str, int | str]]) -> str:
    """A note of what was learnt in its step: holder, thing, state and source."""
    return json.dumps({"kind": KNOWLEDGE, "news": [list(each) for each in news]}, ensure_ascii=False)


def is_note(entry: RecordedEvent) -> bool:
    return _kind(entry) in (DEATHS, HAZARDS, STAGES, SQUADS, NEWS, KNOWLEDGE)


def _kind(entry: RecordedEvent) -> Any:
    return entry.event.get("kind") if isinstance(entry.event, dict) else None


class Notes:
    """The notes of a trajectory, looked up by frame."""

    def __init__(self, entries: Sequence[RecordedEvent], *, dt: float) -> None:
        died = [(number, entry) for entry in entries if _kind(entry) == DEATHS for number in entry.event["ids"]]
        self.deaths: dict[str, NDArray[Any]] = {
            "id": np.array([number for number, _ in died], dtype=np.int64),
            "time": np.array([entry.step * dt for _, entry in died], dtype=np.float64),
            "frame": np.array([entry.frame for _, entry in died], dtype=np.int64),
        }
        began = [
            (text, number, entry.step * dt)
            for entry in entries
            if _kind(entry) == STAGES
            for text, numbers in entry.event["begun"].items()
            for number in numbers
        ]
        self.stages: dict[str, NDArray[Any] | list[str]] = {
            "time": np.array([time for _, _, time in began], dtype=np.float64),
            "id": np.array([number for _, number, _ in began], dtype=np.int64),
            "stage": [text for text, _, _ in began],
        }
        self._news = [
            (entry.event["of"], entry.step * dt, entry.event["news"]) for entry in entries if _kind(entry) == NEWS
        ]
        did = [
            (squad, what, entry.step * dt)
            for entry in entries
            if _kind(entry) == SQUADS
            for squad, what in entry.event["news"]
        ]
        self.squads: dict[str, NDArray[Any] | list[str]] = {
            "time": np.array([time for _, _, time in did], dtype=np.float64),
            "squad": [squad for squad, _, _ in did],
            "what": [what for _, what, _ in did],
        }
        learnt = [
            (entry.step * dt, *each) for entry in entries if _kind(entry) == KNOWLEDGE for each in entry.event["news"]
        ]
        self.knowledge: dict[str, NDArray[Any] | list[Any]] = {
            "time": np.array([line[0] for line in learnt], dtype=np.float64),
            **{name: [line[k] for line in learnt] for k, name in enumerate(("holder", "thing", "state", "source"), 1)},
        }
        seen = [entry for entry in entries if _kind(entry) == HAZARDS]
        self._frames = [entry.frame for entry in seen]
        self._hazards: list[dict[str, dict[str, Any]]] = [entry.event["hazards"] for entry in seen]

    def news(self, of: str, what: str, name: str) -> dict[str, NDArray[Any] | list[str]]:
        """What happened of a kind, with a row for each agent that it happened to (-1 for none): time, id, and what."""
        rows = [
            (time, number, *told)
            for kind, time, news in self._news
            if kind == of
            for *told, ids in news
            for number in ids or [-1]
        ]
        return {
            "time": np.array([row[0] for row in rows], dtype=np.float64),
            "id": np.array([row[1] for row in rows], dtype=np.int64),
            what: [str(row[2]) for row in rows],
            name: [str(row[3]) for row in rows],
        }

    def hazards(self, frame: int) -> dict[str, dict[str, Any]]:
        """The hazards in a frame: those of the last note that is not later."""
        last = bisect.bisect_right(self._frames, frame) - 1
        return self._hazards[last] if last >= 0 else {}
