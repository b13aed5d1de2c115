"""The command: `python -m tests.fuzz`."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .campaign import Campaign, Tally
from .fuzzers import fuzzer, names
from .outcome import ACCEPTED, FINDING, REFUSED


def main() -> int:
    told = _options()
    out = Path(told.out).resolve() / str(told.seed)
    with Campaign(told.seed, out, told.workers) as campaign, contextlib.suppress(KeyboardInterrupt):
        if told.case:
            name, _, number = told.case.split(":")
            campaign.go(name, cases=1, first=int(number))
        else:
            shutil.rmtree(out / "findings", ignore_errors=True)
            _all(campaign, told)
        if told.shorten:
            campaign.shorten()
    _report(campaign)
    return 1 if campaign.classes else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Try to break tropel.")
    parser.add_argument("--seed", type=int, default=1, help="another seed is another set of cases")
    parser.add_argument("--seconds", type=float, help="time for all fuzzers together")
    parser.add_argument("--cases", type=int, help="at most so many cases of each fuzzer")
    parser.add_argument("--only", action="append", choices=names(), help="this fuzzer; may be given several times")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that try cases")
    parser.add_argument("--case", help="one case again, such as scenario:1:42")
    parser.add_argument("--out", default="out/fuzz", help="where findings are kept")
    parser.add_argument("--shorten", action=argparse.BooleanOptionalAction, default=True, help="shorten what is kept")
    told = parser.parse_args()
    if told.case:
        told.seed = int(told.case.split(":")[1])
    elif told.seconds is None and told.cases is None:
        told.seconds = 600.0
    return told


def _all(campaign: Campaign, told: argparse.Namespace) -> None:
    chosen = told.only or names()
    shares = sum(fuzzer(name).share for name in chosen)
    columns = (SpinnerColumn(), TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.fields[what]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bars:
        for name in chosen:
            seconds = None if told.seconds is None else told.seconds * fuzzer(name).share / shares
            task = bars.add_task(name, total=told.cases, what="")

            def tick(tally: Tally, task: int = task) -> None:
                found = tally.verdicts[FINDING]
                bars.update(task, completed=tally.cases, what=f"{tally.cases} cases, {found} findings")  # type: ignore[arg-type]

            campaign.go(name, cases=told.cases, seconds=seconds, told=tick)
            bars.update(task, total=campaign.tallies[name].cases)


def _report(campaign: Campaign) -> None:
    console = Console(width=None if sys.stdout.isatty() else 200)
    table = Table("fuzzer", "cases", "accepted", "refused", "findings", "mean time", "longest")
    for name, tally in campaign.tallies.items():
        counts = [str(tally.verdicts[verdict]) for verdict in (ACCEPTED, REFUSED, FINDING)]
        mean = f"{tally.seconds / max(tally.cases, 1):.2f} s"
        table.add_row(name, str(tally.cases), *counts, mean, f"{tally.slowest[0]:.1f} s ({tally.slowest[1]})")
    console.print(table)
    found = campaign.findings()
    if found:
        classes = Table("count", "finding", "shortest case", "kept in")
        for each in found:
            classes.add_row(str(each.count), each.outcome.label, each.case, os.path.relpath(each.folder))
        console.print(classes)
    restarts = sum(worker.restarts for worker in campaign.workers) - len(campaign.workers)
    console.print(f"{len(found)} classes of findings; workers were started anew {max(restarts, 0)} times")


if __name__ == "__main__":
    sys.exit(main())
