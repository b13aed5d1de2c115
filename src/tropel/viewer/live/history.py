"""Restarting a simulation that came without a builder, and the log of events of a live run.

A restart begins from a copy of the simulation as it was first viewed. With the same seed it is that copy again. With
another seed it is built from what the copy was built from, if that is complete: a script may have changed agents or
layers afterwards, which would be missing.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tropel.errors import ViewError
from tropel.recording.recorder import Recorder
from tropel.run.observers import Observers

if TYPE_CHECKING:
    from tropel.run.loop import Summary
    from tropel.simulation import Simulation


_BUILD = "give sim.view(build=…) a function of the seed"


class Rebuilding:
    """Builds a simulation again, by seed."""

    def __init__(self, sim: Simulation) -> None:
        try:
            self._first = copy.deepcopy(sim)
            self._observers = tuple(sim.observers)
        except Exception as error:  # layers may hold anything
            raise ViewError(f"this simulation cannot be copied ({type(error).__name__}: {error}); {_BUILD}") from error

    def __call__(self, seed: int) -> Simulation:
        built = self._built(seed)
        # A copy has no observers; those of the original simulation observe it again.
        for observer in self._observers:
            built.observers.append(observer)
        return built

    def _built(self, seed: int) -> Simulation:
        first = self._first
        if seed == first.seed:
            return copy.deepcopy(first)
        if first.step_number:
            raise ViewError(
                f"it had already run for {first.time:g} s when it was viewed, with seed {first.seed}; {_BUILD}"
            )
        if _built_alike(first, first.seed).state_hash() != first.state_hash():
            raise ViewError(
                f"it was changed after it was built, so it can be restarted only with its seed {first.seed}; {_BUILD}"
            )
        return _built_alike(first, seed)


def _built_alike(first: Simulation, seed: int) -> Simulation:
    """A new simulation with the world, agents, layers and events of another."""
    # Copied together: layers may refer to the world, and groups may share layers.
    world, declared, environment, planners, models, events = copy.deepcopy(
        (
            first.world,
            first.population.declared,
            first.environment,
            first.layers.planners,
            first.layers.models,
            first.events,
        )
    )
    built = type(first)(
        world,
        declared,
        planning=dict(zip(first.groups, planners, strict=False)),
        environment=environment,
        local=dict(zip(first.groups, models, strict=False)),
        dt=first.dt,
        seed=seed,
        threads=first.threads,
        title=first.title,
        watch_collisions=first.collision_watch is not None,
    )
    if first.encounter_watch is not None:
        built.watch_encounters(first.encounter_watch.distance)
    built.events = events
    return built


# The log remembers events even while nothing is recorded, so that a file begun in the middle of a run still holds all
# of them, and the run can be repeated from its start.


class EventLog(Observers):
    """A recorder that can be switched on and off: while it is on, it receives everything that the log receives."""

    def __init__(self) -> None:
        super().__init__()
        self.happened: list[tuple[int, str]] = []  #: (step, event as JSON), in order
        self.path: Path | None = None  #: of the file that is being written

    @property
    def recording(self) -> bool:
        return len(self) > 0

    def start(self, sim: Simulation, path: Path, *, fps: float) -> None:
        """Write a trajectory from now on; it begins with all events so far."""
        self.stop(sim)
        recorder = Recorder.open(sim, path, fps=fps)
        self.path = path
        if not recorder.resumed:
            for step, text in self.happened:
                recorder.store_event(step, text)
        self.append(recorder)

    def stop(self, sim: Simulation, *, whole: bool = True, summary: Summary | None = None) -> None:
        """Close the file, with the table of people if the state is one between two steps."""
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
