"""What is written and read per frame, and the notes that the engine adds during a run.

Notes record deaths, where hazards were and who began which stage. They are stored among the events of a file, so that
cutting a run back and resuming it treats both alike.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

    @property
    def size(self) -> int:
        """Bytes held while the frame waits to be written."""
        arrays = (self.id, self.position, self.heading, self.group, self.radius, self.speed)
        return sum(array.nbytes for array in arrays)


DEATHS = "noted_deaths"
HAZARDS = "noted_hazards"
STAGES = "noted_stages"


def deaths_note(ids: Sequence[int]) -> str:
    """A note that these agents died at the beginning of its step."""
    return json.dumps({"kind": DEATHS, "ids": [int(number) for number in ids]})


def hazards_note(hazards: Mapping[str, Mapping[str, Any]]) -> str:
    """A note of the hazards that exist from its frame on: name → kind, position, inner and outer."""
    return json.dumps({"kind": HAZARDS, "hazards": hazards}, ensure_ascii=False)


def stages_note(begun: Mapping[str, Sequence[int]]) -> str:
    """A note of the agents that began a stage in its step: what they do → ids."""
    return json.dumps({"kind": STAGES, "begun": begun}, ensure_ascii=False)


def is_note(entry: RecordedEvent) -> bool:
    return _kind(entry) in (DEATHS, HAZARDS, STAGES)


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
        seen = [entry for entry in entries if _kind(entry) == HAZARDS]
        self._frames = [entry.frame for entry in seen]
        self._hazards: list[dict[str, dict[str, Any]]] = [entry.event["hazards"] for entry in seen]

    def hazards(self, frame: int) -> dict[str, dict[str, Any]]:
        """The hazards in a frame: those of the last note that is not later."""
        last = bisect.bisect_right(self._frames, frame) - 1
        return self._hazards[last] if last >= 0 else {}
