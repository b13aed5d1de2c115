"""Progress bars for long work, on standard error so that output can be piped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tropel._kernels.compile import watch_compiling
from tropel.foundation.long_work import listening

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Tick = Callable[["Simulation"], None]


@contextmanager
def no_progress(tick: Tick) -> Iterator[Tick]:
    yield tick


@contextmanager
def run_progress(sim: Simulation, last_step: float) -> Iterator[Tick]:
    """A bar over simulated time with the number of agents still present, refreshed a few times a second."""
    total = None if math.isinf(last_step) else last_step * sim.dt
    columns = (
        SpinnerColumn(),
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[what]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task(sim.title or "running", total=total, what="")
        shown = -1.0

        def tick(sim: Simulation) -> None:
            nonlocal shown
            now = perf_counter()
            if now - shown < 0.1:
                return
            shown = now
            bar.update(task, completed=sim.time, what=_what(sim))

        with watch_compiling(lambda name: bar.update(task, what=f"compiling {name}")):
            yield tick
        bar.update(task, completed=total if sim.population.living == 0 and total else sim.time, what=_what(sim))


#: Work that takes less than this is not worth a bar [s].
_SOON = 1.0


@contextmanager
def planning(*, quiet: bool = False) -> Iterator[None]:
    """Bars for plans that take long, with an estimate of the time left; one line of text if there is no terminal.

    Work that is over quickly shows nothing.
    """
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("[bold]{task.description}"), BarColumn(), TimeElapsedColumn(),
               TextColumn("about"), TimeRemainingColumn(), TextColumn("left"))  # fmt: skip
    bar = Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)
    begun: dict[str, float] = {}
    shown: dict[str, TaskID] = {}

    def told(what: str, done: float, total: float) -> None:
        now = perf_counter()
        spent = now - begun.setdefault(what, now)
        if what not in shown and spent > _SOON and 0.0 < done < total:
            bar.start()
            shown[what] = bar.add_task(what, total=total)
            if bar.disable and not quiet:
                console.print(f"{what}: about {spent * (total - done) / done:.0f} s left", highlight=False)
        if what in shown:
            bar.update(shown[what], completed=done, total=total)

    try:
        with listening(told):
            yield
    finally:
        if shown:
            bar.stop()


def _what(sim: Simulation) -> str:
    gone = sim.agents.next_id - len(sim.agents)
    dead = len(sim.agents) - sim.population.living
    return f"t = {sim.time:6.1f} s   {sim.population.living:,} there, {gone:,} gone" + (
        f", {dead:,} dead" if dead else ""
    )


class Counter(Protocol):
    """How `counting` is notified of progress."""

    def __call__(self, done: int, item: str, total: int | None = None) -> None: ...


@contextmanager
def counting(what: str, total: int, *, quiet: bool = False) -> Iterator[Counter]:
    """A bar over a number of items; call it with how many are done and what is being worked on."""
    columns = (SpinnerColumn(), TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TextColumn("{task.fields[item]}"), TimeElapsedColumn(), console=Console(stderr=True), disable=quiet
    ) as bar:
        task = bar.add_task(what, total=total, item="")

        def told(done: int, item: str, total: int | None = None) -> None:
            bar.update(task, completed=done, item=item, total=total)

        yield told
