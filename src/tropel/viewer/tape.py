"""Every event of the run so far, and a trajectory file while recording.

The tape takes the recorder's place in the simulation. It remembers events also while nothing is recorded, so that a
file that is begun in the middle of a run still holds all of them, and the run can be repeated from its start.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.recording.recorder import Recorder, people_of

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class Tape(Recorder):
    """A recorder that can be switched on and off."""

    def __init__(self) -> None:
        self.happened: list[tuple[int, str]] = []  #: (step, event as JSON), in order
        self.summary: dict[str, Any] | None = None
        self.path: Path | None = None  #: of the file that is being written
        self._recorder: Recorder | None = None

    @property
    def recording(self) -> bool:
        return self._recorder is not None

    def start(self, sim: Simulation, path: Path, *, fps: float) -> None:
        """Write a trajectory from now on; it begins with all events there have been."""
        self.stop(sim)
        self._recorder = Recorder.open(sim, path, fps=fps)
        self.path = path
        if not self._recorder.resumed:
            for step, text in self.happened:
                self._recorder.event(step, text)

    def stop(self, sim: Simulation, *, whole: bool = True) -> None:
        """Close the file, with a table of everybody if the state is that between two steps."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.people = people_of(sim) if whole else None
            recorder.summary = self.summary
            recorder.close()

    def write_events(self, path: Path) -> None:
        """All events as lines of JSON, which `tropel run --events` reads."""
        lines = (json.dumps({"step": step, "event": json.loads(text)}) + "\n" for step, text in self.happened)
        path.write_text("".join(lines), encoding="utf-8")

    # What the simulation and its run call -----------------------------------------------------------------------

    def begin(self, sim: Simulation) -> None:
        if self._recorder is not None:
            self._recorder.begin(sim)

    def step_done(self, sim: Simulation) -> None:
        if self._recorder is not None:
            self._recorder.step_done(sim)

    def event(self, step: int, text: str) -> None:
        self.happened.append((step, text))
        if self._recorder is not None:
            self._recorder.event(step, text)

    def deaths(self, step: int, ids: NDArray[np.int64]) -> None:
        if self._recorder is not None:
            self._recorder.deaths(step, ids)

    def flush(self) -> None:
        if self._recorder is not None:
            self._recorder.flush()

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
