"""Running a scenario with all its results in one folder (trajectory, checkpoint, summary, pictures), and sweeps."""

from __future__ import annotations

import csv
import itertools
import json
import multiprocessing
import os
import shutil
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.checks import FindingWarning, tell
from tropel.errors import EventError, ModelError, ParameterError, RecordingError, ScenarioError, TropelError
from tropel.foundation.files import replacing
from tropel.recording.tables import table_format, write_table
from tropel.run.budget import Budget
from tropel.run.loop import Summary
from tropel.run.progress import planning
from tropel.scenario.loading import Scenario, parse_scenario
from tropel.simulation import Simulation

if TYPE_CHECKING:
    from rich.table import Table

    from tropel.pictures import SweepStatistics


#: Of encounters that are watched without a distance [m].
DEFAULT_DISTANCE = 1.5


@dataclass(frozen=True)
class Outputs:
    """The files with the results of a run."""

    folder: Path
    trajectory: Path
    checkpoint: Path
    summary: Path
    scenario: Path
    picture: Path
    animation: Path
    encounters: Path | None = None  #: None if they were not watched

    @classmethod
    def in_folder(cls, folder: Path, *, trajectory_format: str) -> Outputs:
        return cls(
            folder=folder,
            trajectory=folder / f"trajectory.{trajectory_format}",
            checkpoint=folder / "checkpoint.npz",
            summary=folder / "summary.json",
            scenario=folder / "scenario.toml",
            picture=folder / "run.png",
            animation=folder / "run.gif",
        )


def execute(
    scenario: Scenario,
    *,
    out: Path,
    seed: int | None = None,
    threads: int | None = None,
    until: float | None = None,
    resume: Path | None = None,
    budget: Budget | None = None,
    replay: Path | None = None,
    progress: bool = True,
    watch: Callable[..., Summary] | None = None,
    encounters: Path | None = None,
    encounter_distance: float | None = None,
) -> tuple[Summary, Outputs]:
    """Run a scenario into a folder. Nothing is written before the scenario has been built without errors.

    `budget` replaces the one in the file. With `replay`, a recorded run, there is no budget: the recorded events tell
    which behaviours were left out. `watch` runs the simulation in place of `Simulation.run`, with a page to view it.
    Encounters are watched if the file says so, or one of the last two arguments is given; their table is written to
    `encounters`, by default in the folder.
    """
    spec = scenario.spec
    if encounters is not None:
        table_format(encounters)
    current: list[Simulation] = []  # the last one: a page may start the run anew

    def build(seed: int | None) -> Simulation:
        built = scenario.build(seed=seed, threads=threads)
        if replay is not None:
            built.replay(replay if replay.suffix == ".jsonl" else trajectory_in(replay))
        if encounters is not None or encounter_distance is not None:
            _watch_encounters(built, encounter_distance)
        current[:] = [built]
        return built

    with planning(quiet=not progress):
        sim = build(seed)
        if resume is not None:
            sim.restore(resume)
    if replay is None and budget is None and spec.budget is not None:
        budget = spec.budget.budget()
    kind = spec.recording.format or ("sqlite" if sim.world.dim == 2 else "parquet")
    if kind == "sqlite" and sim.world.dim == 3:
        raise scenario.error(("recording", "format"), "a 3D run cannot be recorded as sqlite; use parquet")
    outputs = Outputs.in_folder(out, trajectory_format=kind)
    if until is not None and until < sim.time:
        raise ScenarioError(f"--until {until:g} is before the checkpoint at t = {sim.time:g} s; give a later time")
    # The table of encounters is written at the end: a long run must not find out then that it has no place.
    for folder, option in ((out, "--out"), *([] if encounters is None else [(encounters.parent, "--encounters")])):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordingError(
                f"cannot create the folder {folder}: {error.strerror}; choose another with {option}"
            ) from error
    _write_text(outputs.scenario, scenario.text)
    _copy_files(scenario, out)
    end: dict[str, Any] = {"until": spec.until if until is None else until, "limit": max(spec.limit, until or 0.0)}
    files: dict[str, Any] = {
        "record": outputs.trajectory,
        "fps": spec.recording.fps,
        "checkpoint": outputs.checkpoint,
        "checkpoint_every": spec.recording.checkpoint_every,
    }
    if sim.encounter_watch is not None:
        outputs = replace(outputs, encounters=encounters or out / "encounters.parquet")
    try:
        try:
            if watch is None:
                summary = sim.run(**end, **files, progress=progress, budget=budget)
            else:
                summary = watch(sim, **end, **files, build=build, budget=budget)
        finally:  # like the trajectory, the table of an interrupted run holds all that happened so far
            if outputs.encounters is not None:
                write_table(current[0].encounters.table().columns(), outputs.encounters)
    except (ModelError, EventError, ParameterError) as error:
        # Errors that only appear during a run are still about this file.
        raise type(error)(f"{scenario.source}: {error}") from error
    _write_text(outputs.summary, json.dumps(summary.as_dict(), indent=2) + "\n")
    return summary, outputs


def _watch_encounters(sim: Simulation, distance: float | None) -> None:
    """Watch encounters, at the distance of the file if none is given."""
    if sim.encounter_watch is None:
        sim.watch_encounters(DEFAULT_DISTANCE if distance is None else distance)
    elif distance is not None and distance != sim.encounter_watch.distance:
        raise ScenarioError(
            f"--encounter-distance {distance:g} differs from watch_encounters = {sim.encounter_watch.distance:g} in "
            f"the file; give one of them"
        )


def _copy_files(scenario: Scenario, out: Path) -> None:
    """Copy maps and pictures that a scenario names next to its copy, so that the copy can be run."""
    for name in scenario.files():
        source, copied = scenario.folder / name, out / name
        is_inside = copied.resolve().is_relative_to(out.resolve())
        if is_inside and source.is_file() and source.resolve() != copied.resolve():
            try:
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copied)
            except OSError as error:
                raise RecordingError(f"cannot copy {source} to {copied}: {error.strerror or error}") from error


def _write_text(path: Path, text: str) -> None:
    try:
        with replacing(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise RecordingError(f"cannot write {path}: {error.strerror or error}") from error


def trajectory_in(run: Path) -> Path:
    """The trajectory that RUN refers to: a trajectory file itself, or the folder of a run."""
    if run.suffix in (".sqlite", ".db", ".parquet"):
        return run
    if run.is_dir():
        for name in ("trajectory.sqlite", "trajectory.parquet"):
            if os.path.exists(run / name):
                return run / name
        raise RecordingError(f"{run} contains no trajectory.sqlite or trajectory.parquet; give the folder of a run")
    if not run.exists():
        raise RecordingError(f"there is no {run}; give the folder of a run or a trajectory file")
    raise RecordingError(f"{run} is not a trajectory (.sqlite or .parquet), nor the folder of a run")


# Sweeps: many seeds of one scenario on all cores.

COLUMNS = ("seed", "agents", "evacuated", "remaining", "evacuation_time", "mean_exit_time", "simulated_time", "hash")


@dataclass(frozen=True)
class SeedResult:
    """The result of one run of a sweep."""

    row: dict[str, object]
    departures: NDArray[np.float64]


@dataclass
class Sweep:
    """Results by seed, and the errors of seeds that failed."""

    results: dict[int, SeedResult] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)


def sweep(
    scenario: Scenario,
    seeds: Sequence[int],
    *,
    table: Path,
    workers: int | None = None,
    until: float | None = None,
    told: Callable[[int, str], None] | None = None,
) -> Sweep:
    """Run every seed, each on one thread, as many at a time as there are cores.

    A row is added to the CSV file `table` as soon as a seed is done, so that nothing is lost if the rest fails.
    """
    if not seeds:
        raise ParameterError("a sweep needs at least one seed")
    # Errors and warnings about the file appear here, once, before any process is started.
    tell(scenario.build(seed=seeds[0], threads=1).check())
    done = Sweep()
    count = min(workers or os.cpu_count() or 1, len(seeds))
    # Spawned, not forked: a forked child would inherit locks that threads of the parent hold.
    with (
        ProcessPoolExecutor(max_workers=count, mp_context=multiprocessing.get_context("spawn")) as pool,
        table.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, fieldnames=COLUMNS)
        writer.writeheader()
        file.flush()
        task = (scenario.text, scenario.source, str(scenario.folder), scenario.allow_imports, until)
        waiting: dict[Future[SeedResult], int] = {}
        coming = iter(seeds)
        try:
            while True:
                # A few more than can run at once: of a billion seeds, only those being run are in memory.
                for seed in itertools.islice(coming, 4 * count - len(waiting)):
                    waiting[pool.submit(run_seed, *task, seed)] = seed
                if not waiting:
                    break
                future = next(as_completed(waiting))
                seed = waiting.pop(future)
                try:
                    done.results[seed] = future.result()
                    writer.writerow(done.results[seed].row)
                    file.flush()
                except TropelError as error:
                    done.failures[seed] = str(error)
                if told is not None:
                    told(len(done.results) + len(done.failures), f"seed {seed} is done")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return done


def run_seed(
    text: str, source: str, folder: str, allow_imports: Sequence[str], until: float | None, seed: int
) -> SeedResult:
    """One run, in its own process."""
    scenario = parse_scenario(text, source=source, folder=Path(folder), allow_imports=allow_imports)
    sim = scenario.build(seed=seed, threads=1)
    spec = scenario.spec
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FindingWarning)  # the sweep has said it
        summary = sim.run(until=spec.until if until is None else until, limit=max(spec.limit, until or 0.0))
    row: dict[str, object] = {name: getattr(summary, name) for name in COLUMNS if hasattr(summary, name)}
    row["hash"] = summary.state_hash[:16]
    return SeedResult(row=row, departures=sim.population.departures()["time"])


def summary_table(scenario: Scenario, statistics: SweepStatistics) -> Table:
    """The statistics of all runs, for the terminal."""
    from rich.table import Table

    table = Table(title=scenario.spec.title or scenario.name, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("runs", str(statistics.runs))
    table.add_row("agents", f"{statistics.agents.min():,} to {statistics.agents.max():,}")
    table.add_row("runs with agents left", str(statistics.incomplete))
    if len(statistics.evacuation_times):
        times = statistics.evacuation_times
        interval = ""
        if np.isfinite(statistics.evacuation_low):
            interval = f" (95 %: {statistics.evacuation_low:.1f} to {statistics.evacuation_high:.1f} s)"
        table.add_row("mean evacuation time", f"{statistics.evacuation_mean:.1f} s{interval}")
        table.add_row("fastest and slowest", f"{times.min():.1f} s, {times.max():.1f} s")
    return table
