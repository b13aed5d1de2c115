"""Running a simulation to its end: when to stop, what to write during the run, and the summary.

`StopRule` decides when a run is over: at a time, when no agent is left, or when a condition holds. `Summary` is what
remains of a run, and `Run` is the run itself.
"""

from __future__ import annotations

import math
import os
import reprlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.checks.finding import Finding, tell
from tropel.checks.stages import never_empty
from tropel.errors import ParameterError, is_finite
from tropel.events.queue import step_at
from tropel.foundation.arguments import LATEST
from tropel.foundation.quantities import is_number
from tropel.recording.people import flow_rate, time_by_share
from tropel.recording.recorder import Recorder
from tropel.run.budget import Budget, BudgetKeeper, BudgetReport
from tropel.run.observers import Every, Observer
from tropel.run.stages import STAGES

if TYPE_CHECKING:
    from rich.table import Table

    from tropel.contact.collisions import CollisionReport
    from tropel.encounters.watch import EncounterReport
    from tropel.simulation import Simulation


class StopRule:
    """`until` is a time [s], "empty" or a predicate of the simulation; `limit` [s] ends the run in any case."""

    def __init__(self, sim: Simulation, until: Any, limit: float | None) -> None:
        self.sim = sim
        self.until, self.last_step = _checked(sim, until, limit)

    def why_stop(self) -> str | None:
        """Why the run is over now; None if it goes on."""
        sim = self.sim
        if self.until == "empty":
            if (
                sim.population.living == 0
                and not sim.population.more_will_come(sim.time)
                and not sim.events.adds_agents()
                and not (sim.replayed is not None and sim.replayed.adds_agents(sim.step_number))
            ):
                return "everybody has left" if len(sim.agents) == 0 else "nobody alive is left"
        elif self.until is not None and self.until(sim):
            return "the condition to stop holds"
        if sim.step_number >= self.last_step:
            return "the time is up"
        return None


def _checked(sim: Simulation, until: Any, limit: float | None) -> tuple[Any, float]:
    never = limit is None or (is_number(limit) and limit == math.inf)
    if not (never or (is_finite(limit) and 0 < limit <= LATEST)):  # type: ignore[operator]
        raise ParameterError(
            f"limit must be a positive number of seconds, infinite or at most {LATEST:g}, not {reprlib.repr(limit)}"
        )
    last = math.inf if never else step_at(float(limit), sim.dt)  # type: ignore[arg-type]
    if until is None:
        if limit is None:
            raise ParameterError("say when to stop: until= seconds, 'empty' or a predicate, or limit= seconds")
        return None, last
    if is_number(until):
        if not (is_finite(until) and 0 <= until <= LATEST):
            raise ParameterError(
                f"until must be a finite number of seconds that is not negative, at most {LATEST:g}, not {until!r}"
            )
        return None, min(last, step_at(float(until), sim.dt))
    if not (isinstance(until, str) and until == "empty") and (not callable(until) or isinstance(until, type)):
        raise ParameterError(
            f"until is a time in seconds, 'empty' or a predicate of the simulation, not {reprlib.repr(until)}"
        )
    if limit is None:
        raise ParameterError("give a limit in seconds too: a run until 'empty' may otherwise never end")
    return until, last


#: So many stages are listed in the table of a run.
_MOST_STAGES = 12


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a run was: how many agents, how long, how fast."""

    title: str
    seed: int
    threads: int
    agents: int  #: all agents that were ever present
    remaining: int  #: still present at the end, and alive
    evacuated: int  #: left through an exit or an absorbing target
    simulated_time: float  #: [s]
    deaths: int = 0
    evacuation_time: float | None  #: when the last survivor left [s]; None while any agent is still present
    mean_exit_time: float | None  #: [s]
    left_50: float | None = None  #: when half of all agents had left [s]; None if fewer ever did
    left_95: float | None = None  #: when 95 % of all agents had left [s]
    exits: dict[str, int] = field(default_factory=dict)  #: how many left at each exit or target
    flows: dict[str, float] = field(default_factory=dict)  #: persons per second there, from the first to the last
    steps: int
    agent_steps: int
    wall_time: float  #: [s]
    stages: dict[str, float] = field(default_factory=dict)  #: wall time per stage of the step [s]
    reason: str  #: why the run ended
    state_hash: str
    trajectory: str | None = None
    budget: BudgetReport | None = None  #: None if there was none
    collisions: CollisionReport | None = None  #: of bodies; None if they were not watched
    encounters: EncounterReport | None = None  #: None if they were not watched
    environment: dict[str, int | str] = field(default_factory=dict)  #: what the environment has done so far
    doing: dict[str, int] = field(default_factory=dict)  #: how many of those still there were in which stage
    tasks: dict[str, int] = field(default_factory=dict)  #: how many were done, begun, assigned, waiting and dropped
    findings: tuple[Finding, ...] = ()  #: what looked wrong before the run and during it

    @property
    def agent_steps_per_second(self) -> float:
        return self.agent_steps / self.wall_time if self.wall_time > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self) | {"agent_steps_per_second": self.agent_steps_per_second}

    def table(self) -> Table:
        """A table for the terminal."""
        from rich.table import Table

        table = Table(title=self.title or "run", show_header=False, title_justify="left")
        table.add_column(style="bold")
        table.add_column(justify="right")
        table.add_row("agents", f"{self.agents:,}")
        table.add_row("simulated time", f"{self.simulated_time:.1f} s ({self.steps:,} steps)")
        table.add_row("evacuated", f"{self.evacuated:,}" + (f" ({self.remaining:,} remain)" if self.remaining else ""))
        for stage, count in list(self.doing.items())[:_MOST_STAGES]:
            table.add_row(f"  in the stage: {stage}", f"{count:,}")
        for how, count in self.tasks.items():
            if count:
                table.add_row(f"tasks {how}", f"{count:,}")
        if self.deaths:
            table.add_row("died", f"{self.deaths:,}")
        for name, count in self.exits.items():
            flow = f", {self.flows[name]:.2f} / s" if name in self.flows else ""
            table.add_row(f"  through {name}", f"{count:,} ({100 * count / self.evacuated:.0f} %){flow}")
        if self.evacuation_time is not None:
            table.add_row("evacuation time", f"{self.evacuation_time:.1f} s")
        if self.left_50 is not None:
            most = "" if self.left_95 is None else f", 95 % at {self.left_95:.1f} s"
            table.add_row("half had left at", f"{self.left_50:.1f} s{most}")
        if self.mean_exit_time is not None:
            table.add_row("mean exit time", f"{self.mean_exit_time:.1f} s")
        if self.collisions is not None:
            _add_collisions(table, self.collisions)
        if self.encounters is not None:
            seen = self.encounters
            table.add_row(f"encounters within {seen.within:g} m", f"{seen.count:,}")
            table.add_row("  different pairs", f"{seen.pairs:,}, {seen.touched:,} of them touched")
        for name, done in self.environment.items():
            table.add_row(name, done if isinstance(done, str) else f"{done:,}")
        table.add_row("ended because", self.reason)
        for finding in self.findings:
            if finding.severity == "warning":
                table.add_row("warning", finding.message)
        table.add_row("wall time", f"{self.wall_time:.2f} s on {self.threads} thread{'s' * (self.threads != 1)}")
        table.add_row("agent-steps per second", f"{self.agent_steps_per_second:,.0f}")
        if self.budget is not None:
            self.budget.add_to(table)
        table.add_section()
        total = sum(self.stages.values()) or 1.0
        for stage in STAGES:
            seconds = self.stages.get(stage, 0.0)
            table.add_row(f"  {stage}", f"{seconds:.3f} s  {100 * seconds / total:3.0f} %")
        return table


class Run:
    """One call of `Simulation.run`."""

    def __init__(
        self,
        sim: Simulation,
        *,
        until: Any,
        limit: float | None,
        record: str | os.PathLike[str] | None,
        fps: float,
        checkpoint: str | os.PathLike[str] | None,
        checkpoint_every: float,
        progress: bool | Callable[[Simulation], None],
        budget: Budget | None = None,
        observers: Iterable[Observer] = (),
    ) -> None:
        self.sim = sim
        self.stop_rule = StopRule(sim, until, limit)
        self.record = None if record is None else Path(record)
        self.fps = fps
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.checkpoint_every = Every(seconds=checkpoint_every)
        self.progress = progress
        if budget is not None and sim.replayed is not None:
            raise ParameterError(
                "a run that is replayed has no budget: its record tells what was left out; give only one of the two"
            )
        self.keeper = None if budget is None else BudgetKeeper(budget, sim)
        self.observers = tuple(observers)
        self.found: tuple[Finding, ...] = ()  #: by the checks before the first step
        self.summary: Summary | None = None
        self.agent_steps = 0
        self.interrupted = False
        self.whole = True  # whether the state is that of a step boundary, so that a run can resume from it
        self.first_step = sim.step_number
        self.seconds_before = dict(sim.timing.seconds)
        self.begin = perf_counter()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What has looked wrong so far."""
        standstill = self.sim.standstill.finding
        return self.found if standstill is None else (*self.found, standstill)

    def go(self) -> Summary:
        sim = self.sim
        if self.stop_rule.until == "empty" and (why := never_empty(sim)):
            raise ParameterError(
                f"a run until 'empty' would never end: {why}; change the stages so that everybody gets to an exit, or "
                f"run until a time"
            )
        if sim.step_number == 0:
            self.found = tuple(sim.check())
            tell(self.found)
        with ExitStack() as stack:
            stack.enter_context(self._observed())
            stack.enter_context(self._ctrl_c_at_step_boundaries())
            tick = stack.enter_context(_progress(self.progress, sim, self.stop_rule.last_step))
            sim.observers.begin(sim)
            reason = self._loop(tick)
            self.summary = self._summary(reason)
        return self.summary

    @contextmanager
    def _observed(self) -> Iterator[None]:
        """Add this run's own observers to those of the simulation, and notify all of them when it is over."""
        sim, own = self.sim, [*self.observers, self.sim.standstill]
        if self.keeper is not None:
            # After the recorder, whose time counts as part of a step, and before those that only watch.
            own.insert(0, self.keeper)
        if self.record is not None:
            own.insert(0, Recorder.open(sim, self.record, fps=self.fps))
        for observer in own:
            sim.observers.append(observer)
        try:
            yield
        finally:
            try:
                sim.observers.end(sim, whole=self.whole, summary=self.summary)
            finally:
                for observer in own:
                    sim.observers.remove(observer)

    def _loop(self, tick: Callable[[Simulation], None]) -> str:
        sim = self.sim
        try:
            while True:
                reason = self.stop_rule.why_stop()
                if reason is not None:
                    return reason
                self.agent_steps += len(sim.agents)
                self.whole = False
                sim.guarded_step()
                self.whole = True
                if self.checkpoint is not None and self.checkpoint_every.due(sim):
                    self._save()
                tick(sim)
                if self.interrupted:
                    raise KeyboardInterrupt
        finally:
            if self.checkpoint is not None and self.whole:
                self._save()

    @contextmanager
    def _ctrl_c_at_step_boundaries(self) -> Iterator[None]:
        """The first Ctrl-C waits for the step to end, so that no step is left half done; the second does not wait."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(signum: int, frame: Any) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True

        previous = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    def _save(self) -> None:
        # Between two steps, not in an observer: observers after that one would not know of the step when it is saved.
        assert self.checkpoint is not None
        self.sim.observers.flush()
        self.sim.save(self.checkpoint)

    def _summary(self, reason: str) -> Summary:
        sim = self.sim
        left = sim.population.departures()
        names = {number: name for name, number in sim.world.goal_numbers.items()}
        counts = {names[int(g)]: int(n) for g, n in zip(*np.unique(left["goal"], return_counts=True), strict=True)}
        rates = {name: flow_rate(left["time"][left["goal"] == sim.world.goal_numbers[name]]) for name in counts}
        gone = len(left["time"])
        living = sim.population.living
        seconds = {stage: sim.timing.seconds[stage] - self.seconds_before[stage] for stage in STAGES}
        return Summary(
            title=sim.title,
            seed=sim.seed,
            threads=sim.threads,
            agents=sim.agents.next_id,
            remaining=living,
            evacuated=gone,
            simulated_time=sim.time,
            deaths=len(sim.population.deaths()["id"]),
            evacuation_time=float(left["time"].max()) if gone and living == 0 else None,
            mean_exit_time=float(left["time"].mean()) if gone else None,
            left_50=_left_by(sim, left["time"], 0.5),
            left_95=_left_by(sim, left["time"], 0.95),
            exits=counts,
            flows={name: rate for name, rate in rates.items() if math.isfinite(rate)},
            steps=sim.step_number - self.first_step,
            agent_steps=self.agent_steps,
            wall_time=perf_counter() - self.begin,
            stages=seconds,
            reason=reason,
            state_hash=sim.state_hash(),
            trajectory=None if self.record is None else str(self.record),
            budget=None if self.keeper is None else self.keeper.report(),
            collisions=None if sim.collision_watch is None else sim.collision_watch.report(),
            encounters=None if sim.encounter_watch is None else sim.encounter_watch.report(),
            environment=sim.environment.tally(),
            doing=sim.population.agendas.doing(sim.agents),
            tasks={} if sim.population.tasks is None else sim.population.tasks.counts(),
            findings=self.findings,
        )


def _left_by(sim: Simulation, times: NDArray[np.float64], share: float) -> float | None:
    """When a share of all agents had left; None if fewer ever did."""
    time = time_by_share(times, total=sim.agents.next_id, share=share)
    return time if math.isfinite(time) else None


def _add_collisions(table: Table, collisions: CollisionReport) -> None:
    if not collisions.pairs:
        table.add_row("collisions", "none")
        return
    of_obstacles = f", {collisions.with_obstacles:,} of them with obstacles" if collisions.with_obstacles else ""
    table.add_row("collisions", f"{collisions.begun:,}")
    table.add_row("  pairs that overlapped", f"{collisions.pairs:,}{of_obstacles}")
    worst = collisions.deepest[0]
    who = f"{worst.who} and {worst.whom} at {worst.deepest_at:.2f} s"
    table.add_row("  deepest overlap", f"{collisions.deepest_overlap:.3g} m ({who})")


def _progress(progress: bool | Callable[[Simulation], None], sim: Simulation, last_step: float) -> Any:
    from tropel.run.progress import no_progress, run_progress

    if callable(progress):
        return no_progress(progress)
    return run_progress(sim, last_step) if progress else no_progress(lambda _: None)
