"""The simulation in a thread of its own: at a chosen speed, and never waiting for a browser.

Everything that touches the simulation happens on its thread, between two steps. Other threads hand in functions (`ask`)
and events (`disturb`), and take the newest frame when they are ready for one; frames that are not taken are not made.

The run itself is `tropel.run.loop.Run`. Between two steps it checks whether to stop, and that is where this module
waits.
"""

from __future__ import annotations

import dataclasses
import itertools
import queue
import re
import reprlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from tropel.errors import ParameterError, TropelError, ViewError, named_parameters
from tropel.events.base import Event
from tropel.events.queue import schedule
from tropel.foundation.arguments import CHECKED_ELSEWHERE, checked_arguments
from tropel.foundation.quantities import is_number, number
from tropel.run.budget import Budget
from tropel.run.loop import Run, StopRule, Summary
from tropel.run.observers import Observers
from tropel.viewer.live.history import EventLog, Rebuilding

if TYPE_CHECKING:
    from tropel.simulation import Simulation

_T = TypeVar("_T")
_Job = Callable[["Simulation"], Any]

#: Simulated seconds per second that stand for "as fast as possible".
FASTEST = float("inf")
#: A run that lags behind the clock by more than this continues from now instead of catching up [s].
_FORGIVEN = 0.25
#: Pending jobs are checked at least this often while nothing is simulated [s].
_NAP = 0.05


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Files:
    """The files to which a run is recorded, if any."""

    trajectory: Path | None = None
    fps: float = number(10.0, above=0.0, about="frames per simulated second")
    checkpoint: Path | None = None
    checkpoint_every: float = number(60.0, above=0.0, unit="s", about="of simulated time")


class LiveRun:
    """A run that can be paused, paced, disturbed and restarted.

    `build` builds the simulation again for a seed, for restarts; by default a copy is kept for that. `until` and
    `limit` determine when it pauses by itself, as in `Simulation.run`; without them it goes on for ever.
    """

    @checked_arguments
    def __init__(
        self,
        sim: Simulation,
        *,
        until: Any = None,
        limit: Annotated[float | None, CHECKED_ELSEWHERE] = None,
        files: Files | None = None,
        build: Callable[[int], Simulation] | None = None,
        speed: Annotated[float, CHECKED_ELSEWHERE] = 1.0,
        playing: bool = True,
        budget: Budget | None = None,
    ) -> None:
        self.sim = sim
        self.files = Files() if files is None else files
        self.build = build
        self.cannot_restart = ""  #: the reason, if it cannot be restarted
        if build is None:
            try:
                self.build = Rebuilding(sim)
            except ViewError as error:
                self.cannot_restart = str(error)
        self.budget = budget
        self.playing = playing
        self.ended = ""  #: why the run has ended, if it has
        self.error = ""  #: what made the run fail, if anything did
        self.run: Run | None = None  #: the current run
        self.steps_per_second = 0.0  #: as measured
        self.tape = EventLog()
        self.observers = Observers()  #: observe every run, also after a restart; they must be quick
        self.summary: Summary | None = None
        self._until, self._limit = until, limit
        self._jobs: queue.Queue[_Job] = queue.Queue()
        self._stopping = False
        self._over = threading.Event()
        self._restart_with: Simulation | None = None
        self._steps_wanted = 0
        self._rule = self._stop_rule(sim)
        self._due = 0.0
        self._measured_at, self._measured_step = 0.0, 0
        self._step_began: float | None = None
        self._scheduled = (-1, 0)
        self._thread = threading.Thread(target=self._live, name="tropel simulation", daemon=True)
        self.set_speed(speed)

    # What others call, from any thread --------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return not self._over.is_set()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end. Not for the thread: Python considers it ended when Ctrl-C interrupts its `join`."""
        self._over.wait(seconds)

    def stop(self) -> None:
        """End the run after the current step, and close its files."""
        self._stopping = True
        self._wake()

    def play(self) -> None:
        self.playing = True
        self._wake()

    def pause(self) -> None:
        self.playing = False

    def single_step(self) -> None:
        """Pause, and take one step."""
        self.playing = False

        def one_more(sim: Simulation) -> None:
            self._steps_wanted += 1

        self._jobs.put(one_more)

    def ask(self, question: Callable[[Simulation], _T], *, seconds: float = 10.0) -> _T:
        """Call a function with the simulation between two steps and return its result."""
        answered = threading.Event()
        answer: list[Any] = []
        failure: list[BaseException] = []

        def job(sim: Simulation) -> None:
            try:
                answer.append(question(sim))
            except BaseException as error:  # handed to the caller
                failure.append(error)
            finally:
                answered.set()

        if threading.current_thread() is self._thread:
            return question(self.sim)
        self._jobs.put(job)
        deadline = perf_counter() + seconds
        while not answered.wait(min(seconds, 0.2)):
            if not self.alive:
                raise ViewError("the run has been stopped")
            if perf_counter() > deadline:
                raise ViewError(f"the simulation has not answered for {seconds:g} s: its current step takes long")
        if failure:
            raise failure[0]
        return answer[0]

    def tell(self, job: Callable[[Simulation], Any]) -> None:
        """Call a function with the simulation between two steps, without waiting for it."""
        self._jobs.put(job)

    def disturb(self, *events: Event) -> None:
        """Schedule events for the beginning of the next step; raises if one of them is impossible."""

        def put_down(sim: Simulation) -> None:
            self._check_running()
            schedule(sim, sim.step_number, *events)
            before = self._scheduled[1] if self._scheduled[0] == sim.step_number else 0
            self._scheduled = (sim.step_number, before + len(events))

        self.ask(put_down)

    @property
    def waiting(self) -> int:
        """The number of disturbances that wait for the next step."""
        step, count = self._scheduled
        return count if step == self.sim.step_number else 0

    @property
    def warnings(self) -> list[str]:
        """What looks wrong with the current run, if anything does."""
        found = () if self.run is None else self.run.findings
        return [str(finding) for finding in found if finding.severity == "warning"]

    @property
    def step_takes(self) -> float:
        """How long the current step has taken so far [s]."""
        began = self._step_began
        return 0.0 if began is None else perf_counter() - began

    def set_speed(self, speed: float) -> None:
        """Set the largest number of simulated seconds per second."""
        if not (is_number(speed) and speed > 0.0):
            raise ParameterError(
                f"speed is the number of simulated seconds per second, above zero, not {reprlib.repr(speed)}"
            )
        self.speed = float(speed)
        self._due = 0.0
        self._wake()

    def start_recording(self, path: Path | None = None) -> Path:
        """Write a trajectory from now on, by default a new one in the folder `out`; returns its path."""

        def start(sim: Simulation) -> Path:
            self._check_running()
            file = new_recording(sim) if path is None else path
            self.tape.start(sim, file, fps=self.files.fps)
            self.tape.begin(sim)
            return file

        return self.ask(start)

    def stop_recording(self) -> None:
        self.ask(lambda sim: self.tape.stop(sim))

    def restart(self, seed: int | None = None) -> None:
        """Start again, with the same seed or another."""
        if self.build is None:
            raise ViewError(self.cannot_restart)
        build = self.build

        def prepare(sim: Simulation) -> None:
            self._restart_with = build(sim.seed if seed is None else seed)

        self.ask(prepare, seconds=600.0)

    # On the simulation's thread ---------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            self._one_run()
            while self._restart_with is not None and not self._stopping:
                self.sim, self._restart_with = self._restart_with, None
                self._one_run()
        finally:
            self._over.set()

    def _one_run(self) -> None:
        sim, files = self.sim, self.files
        self.ended = self.error = ""
        self.tape = EventLog()
        sim.observers.append(self.tape)
        self._steps_wanted, self._scheduled = 0, (-1, 0)
        self._measured_at, self._measured_step = perf_counter(), sim.step_number
        self._rule = self._stop_rule(sim)
        summary: Summary | None = None
        try:
            self.run = run = Run(
                sim,
                until=self._wait_between_steps,
                limit=float("inf"),
                record=None,
                fps=files.fps,
                checkpoint=files.checkpoint,
                checkpoint_every=files.checkpoint_every,
                progress=False,
                budget=self.budget,
                observers=[self.observers],
            )
            if files.trajectory is not None:
                self.tape.start(sim, files.trajectory, fps=files.fps)
            summary = dataclasses.replace(run.go(), reason=self.ended or "stopped by hand")
            self.summary = summary
        except Exception as error:  # shown on the page, and raised by `view` at the end
            self.error = str(error) if isinstance(error, TropelError) else f"{type(error).__name__}: {error}"
        try:
            self.tape.stop(sim, whole=summary is not None, summary=summary)
        except TropelError as error:
            self.error = self.error or str(error)
        sim.observers.remove(self.tape)
        while self.error and not (self._stopping or self._restart_with):
            self._do_jobs(wait=_NAP)

    def _stop_rule(self, sim: Simulation) -> StopRule | None:
        endless = self._until is None and self._limit is None
        return None if endless else StopRule(sim, self._until, self._limit)

    def _wait_between_steps(self, sim: Simulation) -> bool:
        """Between two steps: do pending jobs, wait for the time of the next step; True ends the run."""
        self._step_began = None
        self._measure(sim)
        stop = self._wait(sim)
        if stop and self.waiting:
            # Events requested while the run was paused have not happened, and are in no record.
            sim.events.drop_last(sim.step_number, self.waiting)
            self._scheduled = (-1, 0)
        self._step_began = None if stop else perf_counter()
        return stop

    def _wait(self, sim: Simulation) -> bool:
        while True:
            self._do_jobs(wait=0.0)
            if self._stopping or self._restart_with is not None:
                return True
            if self._rule is not None and not self.ended and (why := self._rule.why_stop()):
                self.ended = why
                self.playing = False
            if self._steps_wanted:
                self._steps_wanted -= 1
                return False
            now = perf_counter()
            if not self.playing:
                self._due = now
                self._do_jobs(wait=_NAP)
                continue
            if now >= self._due:
                break
            self._do_jobs(wait=min(self._due - now, _NAP))
        self._due = max(self._due, now - _FORGIVEN) + sim.dt / self.speed
        return False

    def _do_jobs(self, *, wait: float) -> None:
        try:
            job = self._jobs.get(timeout=wait) if wait else self._jobs.get_nowait()
            while True:
                job(self.sim)
                if self._restart_with is not None:
                    return  # the remaining jobs are for the new simulation
                job = self._jobs.get_nowait()
        except queue.Empty:
            return

    def _wake(self) -> None:
        self._jobs.put(lambda sim: None)

    def _check_running(self) -> None:
        if self.error:
            raise ViewError("the run has ended with an error; restart it first")
        if self.sim.replayed is not None:
            raise ViewError("this run repeats a recorded one, so no other events are possible")

    def _measure(self, sim: Simulation) -> None:
        now = perf_counter()
        if now - self._measured_at > 0.5:
            self.steps_per_second = (sim.step_number - self._measured_step) / (now - self._measured_at)
            self._measured_at, self._measured_step = now, sim.step_number


def new_recording(sim: Simulation) -> Path:
    """A trajectory file that does not exist yet."""
    folder = Path("out") / "view"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ViewError(f"cannot create the folder {folder} for a recording: {error.strerror}") from error
    stem = re.sub(r"[^a-z0-9]+", "-", sim.title.lower()).strip("-") or "run"
    suffix = "sqlite" if sim.world.dim == 2 else "parquet"
    names = (folder / f"{stem}-{number}.{suffix}" for number in itertools.count(1))
    return next(name for name in names if not name.exists())
