"""Many seeds of one scenario on all cores."""

from __future__ import annotations

import csv
import itertools
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError, TropelError
from tropel.scenario.loading import Scenario, parse_scenario

if TYPE_CHECKING:
    from rich.table import Table

    from tropel.pictures import SweepStatistics

COLUMNS = ("seed", "agents", "evacuated", "remaining", "evacuation_time", "mean_exit_time", "simulated_time", "hash")


@dataclass(frozen=True)
class SeedResult:
    """What one run of a sweep gave."""

    row: dict[str, object]
    departures: NDArray[np.float64]


@dataclass
class Sweep:
    """Results by seed, and what went wrong with the others."""

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

    A row is added to the CSV file `table` as soon as a seed is done, so that nothing is lost when the rest fails.
    """
    if not seeds:
        raise ParameterError("a sweep needs at least one seed")
    scenario.build(seed=seeds[0], threads=1)  # errors in the file show here, before any process is started
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
                # A few more than can run at a time: of a billion seeds only those are in memory that are being run.
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
    """One run, in a process of its own."""
    scenario = parse_scenario(text, source=source, folder=Path(folder), allow_imports=allow_imports)
    sim = scenario.build(seed=seed, threads=1)
    spec = scenario.spec
    summary = sim.run(until=spec.until if until is None else until, limit=max(spec.limit, until or 0.0))
    row: dict[str, object] = {name: getattr(summary, name) for name in COLUMNS if hasattr(summary, name)}
    row["hash"] = summary.state_hash[:16]
    return SeedResult(row=row, departures=sim.population.departures()["time"])


def summary_table(scenario: Scenario, statistics: SweepStatistics) -> Table:
    """What the runs say together, for the terminal."""
    from rich.table import Table

    table = Table(title=scenario.spec.title or scenario.name, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("runs", str(statistics.runs))
    table.add_row("agents", f"{statistics.agents.min():,} to {statistics.agents.max():,}")
    table.add_row("runs in which somebody stayed", str(statistics.incomplete))
    if len(statistics.evacuation_times):
        times = statistics.evacuation_times
        interval = ""
        if np.isfinite(statistics.evacuation_low):
            interval = f" (95 %: {statistics.evacuation_low:.1f} to {statistics.evacuation_high:.1f} s)"
        table.add_row("mean evacuation time", f"{statistics.evacuation_mean:.1f} s{interval}")
        table.add_row("fastest and slowest", f"{times.min():.1f} s, {times.max():.1f} s")
    return table
