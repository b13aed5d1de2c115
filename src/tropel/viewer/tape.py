"""Every event of the run so far, and a trajectory file while recording.

The tape remembers events also while nothing is recorded, so that a file that is begun in the middle of a run still
holds all of them, and the run can be repeated from its start.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tropel.observers import Observers
from tropel.recording.recorder import Recorder

if TYPE_CHECKING:
    from tropel.running import Summary
    from tropel.simulation import Simulation


class Tape(Observers):
    """A recorder that can be switched on and off: while it is on, it is told whatever the tape is told."""

    def __init__(self) -> None:
        super().__init__()
        self.happened: list[tuple[int, str]] = []  #: (step, event as JSON), in order
        self.path: Path | None = None  #: of the file that is being written

    @property
    def recording(self) -> bool:
        return len(self) > 0

    def start(self, sim: Simulation, path: Path, *, fps: float) -> None:
        """Write a trajectory from now on; it begins with all events there have been."""
        self.stop(sim)
        recorder = Recorder.open(sim, path, fps=fps)
        self.path = path
        if not recorder.resumed:
            for step, text in self.happened:
                recorder.store_event(step, text)
        self.append(recorder)

    def stop(self, sim: Simulation, *, whole: bool = True, summary: Summary | None = None) -> None:
        """Close the file, with a table of everybody if the state is that between two steps."""
        for recorder in self:
            self.remove(recorder)
            recorder.end(sim, whole=whole, summary=summary)

    def write_events(self, path: Path) -> None:
        """All events as lines of JSON, which `tropel run --events` reads."""
        lines = (json.dumps({"step": step, "event": json.loads(text)}) + "\n" for step, text in self.happened)
        path.write_text("".join(lines), encoding="utf-8")

    def event(self, sim: Simulation, text: str) -> None:
        self.happened.append((sim.step_number, text))
        super().event(sim, text)

    def end(self, sim: Simulation, *, whole: bool, summary: Summary | None) -> None:
        """Leave the file open: only the live run knows why it has ended, and calls `stop`."""
