"""A frame-rate budget: the richest set of behaviours that holds a wanted number of steps per second.

This is the last of the future directions of Banerjee, Abukmail & Kraemer (SIMULATION 85, 2009, section 9):
"automatically select the maximal set of behaviors that can be handled at a minimal frame rate". Here a frame is a step.

The wall time of whole steps is averaged over windows. When a window is too slow, the least important behaviour is left
out; the next window shows what that saved. When there is room, the most important missing behaviour comes back, if its
known cost fits. A behaviour that is not known to fit is tried after some quiet windows, and after twice as many each
time it did not fit. So a behaviour that costs nothing is not left out for long, and one that costs too much is rarely
tried. Every decision is an event at the beginning of a step, so that a recorded run can be repeated exactly although
clocks never can (`Simulation.replay`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from tropel.errors import ParameterError, named_parameters, suggest
from tropel.events import SetBehaviour
from tropel.foundation.quantities import number
from tropel.foundation.renamed import current_behaviour
from tropel.run.observers import Observer

if TYPE_CHECKING:
    from rich.table import Table

    from tropel.simulation import Simulation

#: From the first behaviour to leave out to the last: company, then cleverness, then the user's additions, then caution.
#: Separation is not among them: it is part of the same sum as everything else, and leaving it out saves no time.
ORDER = ("bonds", "congestion", "value maps", "hazard influence")

#: A behaviour that took less than this share of a step is not worth leaving out, if there is another.
_WORTHWHILE = 0.02
#: No behaviour waits for more than this many windows before another try.
_LONGEST_WAIT = 64


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Budget:
    """How many steps per second of wall time a run should make, and how the rate is kept."""

    steps_per_second: float = number(60.0, above=0.0, unit="1/s", about="of wall time")
    window: int = number(30, whole=True, low=1, about="steps over which the rate is measured")
    settle: int = number(
        3, whole=True, low=0, about="steps after a switch that do not count, because switching itself takes time"
    )
    room: float = number(
        0.1, low=0.0, below=1.0, about="a behaviour comes back when this share of the time is to spare"
    )
    patience: int = number(
        4, whole=True, low=1, about="quiet windows before trying a behaviour that is not known to fit"
    )
    order: tuple[str, ...] | None = None  #: from the first to be left out to the last; `ORDER` if not given
    clock: Callable[[], float] = field(default=perf_counter, repr=False)  #: wall time [s]

    def __post_init__(self) -> None:
        if self.order is not None:
            if len(set(self.order)) != len(tuple(self.order)):
                raise ParameterError(f"Budget: order must name each behaviour once, not {self.order!r}")
            object.__setattr__(self, "order", tuple(map(current_behaviour, self.order)))

    def switchable(self, sim: Simulation) -> tuple[str, ...]:
        """The behaviours of a simulation that may be left out, in the order of leaving them out."""
        known = sim.behaviours
        for name in self.order or ():
            if name not in known:
                raise ParameterError(f"Budget: no layer here has the behaviour '{name}'; {suggest(name, known)}")
        return tuple(name for name in (ORDER if self.order is None else self.order) if name in known)


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A decision of a budget."""

    step: int
    time: float  #: simulated [s]
    name: str
    on: bool
    steps_per_second: float  #: in the window before it


@dataclass(frozen=True, kw_only=True)
class BudgetReport:
    """How well a budget was kept, and with what."""

    wanted: float  #: steps per second of wall time
    reached: float | None  #: over all steps that count
    last: float | None  #: in the last complete window
    windows: int
    held: int  #: windows in which the wanted rate was held
    kept: tuple[str, ...]  #: behaviours that were on at the end
    left_out: tuple[str, ...]  #: behaviours that were off at the end
    can_leave_out: tuple[str, ...]  #: what the budget could still have left out at the end
    shares: dict[str, float]  #: measured share of a step's time per behaviour, from its last switch
    switches: tuple[Switch, ...]

    @property
    def holds(self) -> bool | None:
        """Whether the set at the end held the rate in the last window; None if the run was shorter than a window."""
        return None if self.last is None else self.last >= self.wanted

    def add_to(self, table: Table) -> None:
        """Rows for the terminal."""
        table.add_row("steps per second wanted", _rate(self.wanted))
        if self.reached is not None:
            table.add_row("  reached", f"{_rate(self.reached)}, held in {self.held} of {self.windows} windows")
        table.add_row("  at the end", self.verdict)
        table.add_row("  behaviours left out", ", ".join(self.left_out) or "none")
        table.add_row("  behaviours kept", ", ".join(self.kept) or "none that could be left out")
        table.add_row("  switched", f"{len(self.switches)} time{'s' * (len(self.switches) != 1)}")

    @property
    def verdict(self) -> str:
        if self.last is None:
            return "not known: the run was shorter than a window"
        rate = _rate(self.last)
        if self.holds:
            return f"held: {rate}"
        return f"not held: {rate}" + ("" if self.can_leave_out else ", and there is nothing more to leave out")


def _rate(steps_per_second: float) -> str:
    return f"{steps_per_second:,.0f}" if steps_per_second >= 100.0 else f"{steps_per_second:.3g}"


class BudgetKeeper(Observer):
    """Keeps one run to its budget: it is called when steps begin and end, and schedules `SetBehaviour` events."""

    def __init__(self, budget: Budget, sim: Simulation) -> None:
        self.budget = budget
        self._sim = sim
        self._names = budget.switchable(sim)
        self._allowed = 1.0 / budget.steps_per_second
        self._begin = 0.0
        self._steps, self._total = 0, 0.0  # of the steps that count
        self._unsettled = budget.settle
        self._measured, self._seconds = 0, 0.0
        self._windows, self._held, self._quiet = 0, 0, 0
        self._last: float | None = None  # seconds per step of the last window
        self._changed: tuple[str, float] | None = None  # last switch, and seconds per step in the window before it
        self._shares: dict[str, float] = {}
        self._waits: dict[str, int] = {}  # for behaviours that did not fit when they were tried
        self._switches: list[Switch] = []

    def step_begins(self, sim: Simulation) -> None:
        """Decide, if a window is over. The event belongs to this very step: one left pending would not be recorded."""
        if self._measured == self.budget.window:
            self._window_over(self._seconds / self._measured)
            self._measured, self._seconds = 0, 0.0
        self._begin = self.budget.clock()

    def step_done(self, sim: Simulation) -> None:
        seconds = self.budget.clock() - self._begin
        if self._unsettled:
            self._unsettled -= 1
            return
        self._steps += 1
        self._total += seconds
        self._measured += 1
        self._seconds += seconds

    # Decisions --------------------------------------------------------------------------------------------------

    def _window_over(self, took: float) -> None:
        holds = took <= self._allowed
        tried = self._learn(took)
        self._windows += 1
        self._held += holds
        self._last = took
        self._quiet = self._quiet + 1 if holds else 0
        if not holds:
            self._leave_out(tried, took)
            return
        if tried is not None:
            self._waits.pop(tried, None)
        self._bring_back(took)

    def _learn(self, took: float) -> str | None:
        """Record what the last switch changed; returns the behaviour if the switch brought it back."""
        if self._changed is None:
            return None
        (name, before), self._changed = self._changed, None
        on = self._sim.behaviours[name]
        with_it, without = (took, before) if on else (before, took)
        self._shares[name] = max(0.0, 1.0 - without / with_it) if with_it > 0.0 else 0.0
        return name if on else None

    def _leave_out(self, tried: str | None, took: float) -> None:
        on = self._on()
        if tried in on:
            wait = 2 * self._waits.get(tried, self.budget.patience)
            self._waits[tried] = min(wait, max(_LONGEST_WAIT, self.budget.patience))
            self._switch(tried, False, took)
        elif on:
            worthwhile = [name for name in on if self._shares.get(name, 1.0) >= _WORTHWHILE]
            self._switch((worthwhile or on)[0], False, took)

    def _bring_back(self, took: float) -> None:
        limit = (1.0 - self.budget.room) * self._allowed
        if took > limit:
            return
        for name in reversed(self._names):
            if name not in self._sim.spared:
                continue
            share = self._shares.get(name, 0.0)
            fits = share < 1.0 and took / (1.0 - share) <= limit
            if self._quiet >= self._waits.get(name, 0 if fits else self.budget.patience):
                self._switch(name, True, took)
                return

    def _on(self) -> list[str]:
        now = self._sim.behaviours
        return [name for name in self._names if now[name]]

    def _switch(self, name: str, on: bool, took: float) -> None:
        sim = self._sim
        sim.at(sim.time, SetBehaviour(name=name, on=on, by="budget"))
        rate = 1.0 / took if took > 0.0 else math.inf
        self._switches.append(Switch(step=sim.step_number, time=sim.time, name=name, on=on, steps_per_second=rate))
        self._changed = (name, took)
        self._unsettled = self.budget.settle
        self._quiet = 0

    def report(self) -> BudgetReport:
        now = self._sim.behaviours
        return BudgetReport(
            wanted=self.budget.steps_per_second,
            reached=self._steps / self._total if self._total > 0.0 else None,
            last=1.0 / self._last if self._last else None,
            windows=self._windows,
            held=self._held,
            kept=tuple(name for name, on in now.items() if on),
            left_out=tuple(name for name, on in now.items() if not on),
            can_leave_out=tuple(self._on()),
            shares=dict(self._shares),
            switches=tuple(self._switches),
        )
