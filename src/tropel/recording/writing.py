"""Recording a run: `open_trajectory` chooses the format by file name and returns a `TrajectoryWriter`."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.errors import RecordingError, is_finite
from tropel.foundation.arguments import CHECKED_ELSEWHERE, checked_arguments
from tropel.recording.background import Background, Sink
from tropel.recording.frames import RecordedEvent, RecordedFrame, RecordedObstacles
from tropel.recording.people import People
from tropel.recording.plain import plain_data
from tropel.recording.scene import Scene

SQLITE_SUFFIXES = (".sqlite", ".db")
PARQUET_SUFFIX = ".parquet"


@checked_arguments
def open_trajectory(
    path: str | os.PathLike[str],
    *,
    scene: Scene,
    fps: Annotated[float, CHECKED_ELSEWHERE],
    append_after: int | None = None,
    resume_step: int | None = None,
) -> TrajectoryWriter:
    """Start recording to `path`: `.sqlite` or `.db` for a SQLite file, `.parquet` for a Parquet directory.

    An existing trajectory is replaced; anything else at that path is left alone. With `append_after=k` the trajectory
    at `path` is continued instead: frames after k and events after them are removed, and so are events at
    `resume_step` and later (the first step that is simulated again, if it is not the step of a frame). k = -1 keeps no
    frame.
    """
    target = Path(os.path.realpath(path))
    if not (is_finite(fps) and fps > 0):
        raise RecordingError(f"fps is {fps}: give the frames per simulated second, above zero")
    if not target.parent.is_dir():
        raise RecordingError(
            f"cannot record to {target}: the directory {target.parent} does not exist, create it first"
        )
    suffix = target.suffix.lower()
    sink: Sink
    if suffix in SQLITE_SUFFIXES:
        from tropel.recording.sqlite_writer import SqliteSink

        if append_after is None:
            sink = SqliteSink.create(target, scene=scene, fps=fps)
        else:
            sink = SqliteSink.resume(target, scene=scene, fps=fps, after=append_after, resume_step=resume_step)
    elif suffix == PARQUET_SUFFIX:
        from tropel.recording.parquet_writer import ParquetSink

        if append_after is None:
            sink = ParquetSink.create(target, scene=scene, fps=fps)
        else:
            sink = ParquetSink.resume(target, scene=scene, fps=fps, after=append_after, resume_step=resume_step)
    else:
        raise RecordingError(
            f"cannot record to '{target.name}': its name must end in .sqlite (a SQLite file for PedPy and JuPedSim) "
            "or .parquet (a directory of Parquet files, for big runs and 3D)"
        )
    last = -1 if append_after is None else append_after
    return TrajectoryWriter(target, sink, scene=scene, last_frame=last)


class TrajectoryWriter:
    """Takes frames and events and writes them on a thread of its own. Made by `open_trajectory`.

    If that thread fails (a full disk), the next call raises a `RecordingError` and the file is closed, readable up to
    the last commit. Commits happen about once a second.

    `f in writer` tells whether frame number f has been written, now or before the run was resumed.
    """

    def __init__(self, path: Path, sink: Sink, *, scene: Scene, last_frame: int) -> None:
        self.path = path
        self.scene = scene
        self._dim = scene.dim
        self._last_frame = last_frame
        self._frames_written = 0
        # The newest frame waits here for its obstacles, so that no frame reaches the file without them.
        self._newest: list[RecordedFrame] = []
        self._early_obstacles: tuple[int, RecordedObstacles] | None = None
        self._closed = False
        self._failed = False
        self._background = Background(sink)
        # Also runs when the program ends, so that one that forgets to close or dies of an error keeps its frames.
        self._finalizer = weakref.finalize(self, _close_unattended, path, self._background, self._newest)

    @property
    def frames_written(self) -> int:
        """How many frames this writer has accepted."""
        return self._frames_written

    def __contains__(self, frame: int) -> bool:
        return frame <= self._last_frame

    def write(
        self,
        frame: int,
        *,
        id: ArrayLike,
        position: ArrayLike,
        heading: ArrayLike,
        group: ArrayLike,
        radius: ArrayLike,
        speed: ArrayLike,
        geometry_wkt: str | None = None,
        extra: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Record the agents in frame number `frame`. The arrays are copied and may be overwritten afterwards.

        `geometry_wkt` is the walkable area from this frame on; None means unchanged. `extra` has the columns that the
        scene names in addition.
        """
        self._check_usable()
        if frame <= self._last_frame:
            raise RecordingError(f"frame {frame} comes after frame {self._last_frame}: write frames in order")
        ids = np.array(id, dtype=np.int64)
        count = len(ids)
        columns: dict[str, NDArray[Any]] = {
            "position": self._column("position", position, (count, self._dim), np.float64, frame),
            "heading": self._column("heading", heading, (count, self._dim), np.float64, frame),
            "group": self._column("group", group, (count,), np.int32, frame),
            "radius": self._column("radius", radius, (count,), np.float64, frame),
            "speed": self._column("speed", speed, (count,), np.float64, frame),
        }
        more = dict(extra or {})
        if set(more) != set(self.scene.columns):
            raise RecordingError(
                f"frame {frame} has the additional columns {sorted(more)}, its scene {list(self.scene.columns)}"
            )
        names = ("position", "heading", "radius", *self.scene.columns)
        columns |= {name: self._column(name, more[name], (count,), np.float64, frame) for name in self.scene.columns}
        for name in names:
            bad = ~np.isfinite(columns[name])
            if bad.any():
                agent = ids[np.flatnonzero(bad.reshape(count, -1).any(axis=1))[0]]
                raise RecordingError(
                    f"the {name} of agent {agent} in frame {frame} is not a finite number, so it is not recorded: "
                    "look for the model or event that produced it"
                )
        if np.any(np.diff(ids) <= 0):
            order = np.argsort(ids, kind="stable")
            ids = ids[order]
            columns = {name: column[order] for name, column in columns.items()}
            twice = np.flatnonzero(np.diff(ids) == 0)
            if len(twice):
                raise RecordingError(f"agent {ids[twice[0]]} is in frame {frame} twice: every id must be unique")
        if geometry_wkt == "":
            geometry_wkt = self.scene.area_wkt()
        own = {name: columns.pop(name) for name in self.scene.columns}
        record = RecordedFrame(
            number=int(frame),
            id=ids,
            geometry_wkt=geometry_wkt,
            obstacles=self._obstacles_of(frame),
            extra=own,
            **columns,
        )
        self._hand_over_newest()
        self._newest.append(record)
        self._last_frame = int(frame)
        self._frames_written += 1

    def obstacles(self, frame: int, names: Sequence[str], positions: ArrayLike, radii: ArrayLike) -> None:
        """Record where moving obstacles are in a frame: the one just written, or the next one."""
        self._check_usable()
        count = len(names)
        position = self._column("position", positions, (count, self._dim), np.float64, frame, of="obstacles")
        radius = self._column("radius", radii, (count,), np.float64, frame, of="obstacles")
        if not (np.isfinite(position).all() and np.isfinite(radius).all()):
            raise RecordingError(f"an obstacle in frame {frame} has a position or radius that is not a finite number")
        entry = RecordedObstacles(names=tuple(str(name) for name in names), position=position, radius=radius)
        if self._newest and self._newest[0].number == frame:
            self._newest[0] = dataclasses.replace(self._newest[0], obstacles=entry if count else None)
        elif frame > self._last_frame:
            self._early_obstacles = (int(frame), entry) if count else None
        else:
            raise RecordingError(
                f"obstacles of frame {frame} come too late: record them right before or right after the frame"
            )

    def event(self, frame: int, step: int, text_json: str) -> None:
        """Record an event (as JSON) that took effect at the beginning of `step`, in or before frame `frame`."""
        self._check_usable()
        try:
            event = json.loads(text_json)
        except (ValueError, TypeError) as error:
            raise RecordingError(f"the event at step {step} is not JSON ({error})") from error
        self._hand_over(RecordedEvent(frame=int(frame), step=int(step), event=event), len(text_json))

    def flush(self) -> None:
        """Wait until everything so far is committed, for instance before a checkpoint that depends on it."""
        self._check_usable()
        self._hand_over_newest()
        if not self._background.flush():
            raise self._error()

    def close(self, summary: Mapping[str, Any] | None = None, *, people: People | None = None) -> None:
        """Write what is waiting, the summary and the people, and close the file. Closing again does nothing."""
        if self._closed:
            return
        text = None
        try:
            if summary is not None:
                text = json.dumps(plain_data(dict(summary), where="summary", error=RecordingError), ensure_ascii=False)
        finally:
            # Even if the summary cannot be stored, the frames can.
            finished = _close(self._background, self._newest, text, people)
            self._closed = True
            self._finalizer.detach()
        if not finished and not self._failed:
            raise self._error()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except RecordingError as recording_error:
            # The error that ended the block matters more.
            if error is None:
                raise
            error.add_note(str(recording_error))

    def _column(
        self, name: str, values: ArrayLike, shape: tuple[int, ...], dtype: Any, frame: int, of: str = "agents"
    ) -> NDArray[Any]:
        """A copy of the values, because the writing thread reads them later."""
        column = np.array(values, dtype=dtype)
        if column.size == 0 and 0 in shape:
            column = column.reshape(shape)
        if column.shape != shape:
            raise RecordingError(f"the {name} of the {of} in frame {frame} has shape {column.shape}, not {shape}")
        return column

    def _obstacles_of(self, frame: int) -> RecordedObstacles | None:
        if self._early_obstacles is None:
            return None
        number, entry = self._early_obstacles
        self._early_obstacles = None
        if number != frame:
            raise RecordingError(f"obstacles were recorded for frame {number}, but the next frame is {frame}")
        return entry

    def _hand_over_newest(self) -> None:
        if self._newest:
            # Removed first: an interrupt while waiting for room then loses this frame, but never writes it twice.
            record = self._newest.pop()
            self._hand_over(record, record.size)

    def _hand_over(self, entry: RecordedFrame | RecordedEvent, size: int) -> None:
        if not self._background.put(entry, size):
            raise self._error()

    def _check_usable(self) -> None:
        if self._closed:
            raise RecordingError(f"{self.path} is closed: nothing more can be recorded to it")
        if self._background.failure is not None:
            raise self._error()

    def _error(self) -> RecordingError:
        self._failed = True
        return _failure(self.path, self._background)


def _failure(path: Path, background: Background) -> RecordingError:
    cause = background.failure
    last = background.last_committed_frame
    kept = "no frame of this run was" if last is None else f"the frames up to {last} were"
    remedy = "make room or record elsewhere" if isinstance(cause, (OSError, sqlite3.Error)) else "run it again"
    error = RecordingError(
        f"recording to {path} failed ({cause}); {kept} written before and the file is readable: {remedy}"
    )
    error.__cause__ = cause
    return error


def _close(
    background: Background, newest: list[RecordedFrame], summary: str | None, people: People | None = None
) -> bool:
    if newest:
        record = newest.pop()
        background.put(record, record.size)
    return background.close(summary, people)


def _close_unattended(path: Path, background: Background, newest: list[RecordedFrame]) -> None:
    """For a writer that was never closed. Python prints the error of such a call, since no caller can catch it."""
    if not _close(background, newest, None):
        raise _failure(path, background)
