"""A recorded run, read back frame by frame."""

from __future__ import annotations

import contextlib
import functools
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError, RecordingError
from tropel.foundation.arguments import is_whole_number
from tropel.recording.checked import axes_of, check_rows
from tropel.recording.frames import AXES, FrameData, Ints, Notes, RecordedEvent, is_note
from tropel.recording.people import People
from tropel.recording.scene import Scene


class Trajectory(ABC):
    """A trajectory file, opened for reading. Opening reads an index; agents are read on demand.

    Close it with `close()` or use it in a `with` block.
    """

    path: Path
    scene: Scene
    #: Frames per second of simulated time.
    fps: float
    #: Numbers of all recorded frames, ascending, including frames without agents.
    frames: Ints

    @abstractmethod
    def ids(self) -> Ints:
        """The ids of all agents in any frame, ascending."""

    @abstractmethod
    def frame(self, k: int) -> FrameData:
        """The agents in frame number k."""

    @abstractmethod
    def table(self) -> dict[str, NDArray[Any]]:
        """All rows as columns, ordered by frame and id: frame, id, x, y(, z), heading_x, … , group, radius, and speed
        if the file has it."""

    @abstractmethod
    def entries(self) -> list[RecordedEvent]:
        """Everything recorded besides the frames, in order: events, and the engine's notes."""

    @property
    def events(self) -> list[RecordedEvent]:
        """What happened during the run, in order."""
        return [entry for entry in self.entries() if not is_note(entry)]

    def deaths(self) -> dict[str, NDArray[Any]]:
        """The agents that died: `id`, `time` [s] and `frame` (the first in which they are dead), in order of death."""
        return {name: column.copy() for name, column in self._notes.deaths.items()}

    def stages(self) -> dict[str, NDArray[Any] | list[str]]:
        """Who began which stage of a list, and when: `time` [s], `id` and `stage` (a text), by time."""
        return {name: column.copy() for name, column in self._notes.stages.items()}

    def tasks(self) -> dict[str, NDArray[Any] | list[str]]:
        """What happened to tasks, by time: `time` [s], `id` of each agent concerned, `what` and the `task`'s name."""
        return self._notes.news("tasks", "what", "task")

    def changes(self, column: str) -> dict[str, NDArray[Any] | list[str]]:
        """Who changed to which state of a column with names, such as "mood": `time` [s], `id` and `state`, by time."""
        found = self._notes.news(column, "column", "state")
        return {name: values for name, values in found.items() if name != "column"}

    def squads(self) -> dict[str, NDArray[Any] | list[str]]:
        """What squads did, and when: `time` [s], `squad` (its name) and `what` (a text), by time."""
        return {name: column.copy() for name, column in self._notes.squads.items()}

    def knowledge(self) -> dict[str, NDArray[Any] | list[Any]]:
        """Who learnt what, when and from whom: `time` [s], `holder`, `thing`, `state` and `source`, by time."""
        return {name: column.copy() for name, column in self._notes.knowledge.items()}

    def hazards(self, k: int) -> dict[str, dict[str, Any]]:
        """The hazards in frame k: {"kind": …, "position": […], "inner": …, "outer": …} [m]."""
        self._index_of(k)
        return self._notes.hazards(int(k))

    @functools.cached_property
    def _notes(self) -> Notes:
        return Notes(self.entries(), dt=self.scene.dt)

    @property
    @abstractmethod
    def summary(self) -> dict[str, Any] | None:
        """The summary of the run; None if the run did not reach its end."""

    def people(self) -> People | None:
        """Everyone in the run, with arrival and departure; None for a killed run or the file of another program."""
        return None

    @abstractmethod
    def obstacles(self, k: int) -> dict[str, dict[str, Any]]:
        """The moving obstacles in frame k, in the form of `scene.obstacles`: {"radius": …, "position": […]}."""

    @abstractmethod
    def geometry(self, k: int) -> str:
        """The walkable area in frame k as WKT; it changes when doors do."""

    @abstractmethod
    def geometries(self) -> list[str]:
        """All walkable areas of the run, each once."""

    @abstractmethod
    def close(self) -> None: ...

    def time(self, k: int) -> float:
        """Simulated seconds at frame k."""
        return _number(k) / self.fps

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path.name}: {len(self.frames)} frames at {self.fps:g} per second>"

    def _checked_frame(self, data: FrameData) -> FrameData:
        """The same data, or a RecordingError if what the file holds is impossible in a run."""
        columns = {
            "id": data.id,
            **axes_of(data.position, ""),
            **axes_of(data.heading, "heading_"),
            "group": data.group,
            "radius": data.radius,
            "speed": data.speed,
            **data.extra,
        }
        self._check_columns(columns)
        return data

    def _check_columns(self, columns: Mapping[str, NDArray[Any] | None]) -> None:
        with self._naming_the_file():
            check_rows(columns, groups=len(self.scene.groups))

    @contextlib.contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except RecordingError as error:
            if str(self.path) in str(error):
                raise
            raise RecordingError(f"{self.path}: {error}; record it again") from error

    def _index_of(self, k: int) -> int:
        """The index of frame k in `frames`."""
        index = int(np.searchsorted(self.frames, _number(k)))
        if index == len(self.frames) or self.frames[index] != k:
            held = f"{self.frames[0]} to {self.frames[-1]}" if len(self.frames) else "none at all"
            raise RecordingError(f"{self.path} has no frame {k}: its frames are {held}, listed in `.frames`")
        return index


def _number(k: int) -> int:
    if not is_whole_number(k):
        raise ParameterError(f"k must be a frame number, listed in `.frames`, not {reprlib.repr(k)}")
    return k


def vector_columns(prefix: str, dim: int) -> list[str]:
    """Column names of a vector: x, y(, z) with an optional prefix."""
    return [f"{prefix}{axis}" for axis in AXES[:dim]]
