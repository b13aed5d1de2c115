"""Observers: whatever watches a simulation without changing it, such as recorders, plots and your own code.

A simulation notifies each of `sim.observers`, in their order. An observer overrides the methods it needs:

>>> import shapely
>>> from tropel import Group, Simulation, World
>>> from tropel.run.observers import Every, Observer
>>> class HeadCount(Observer):
...     trigger = Every(seconds=0.5)
...
...     def __init__(self):
...         self.counts = []
...
...     def step_done(self, sim):
...         self.counts.append((sim.step_number, len(sim.agents)))
>>> sim = Simulation(World(shapely.box(0, 0, 10, 10)), Group("people", count=3, goal="none"), dt=0.1)
>>> count = HeadCount()
>>> sim.observers.append(count)
>>> _ = sim.run(until=1.2)
>>> count.counts
[(5, 3), (10, 3)]

Observers read the simulation and change nothing in it. A budget is the one exception: it schedules events at the
beginning of a step, as any code may between two steps.

An exception in an observer is an error of the run: it ends the run with the files closed, as an exception in a layer
does. Overlays of the viewer catch their own exceptions and switch themselves off instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError, named_parameters
from tropel.foundation.quantities import number

if TYPE_CHECKING:
    from tropel.run.loop import Summary
    from tropel.simulation import Simulation

#: More steps than any run has, and few enough to count.
_NEVER = 1e300


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Every:
    """After which steps an observer is called: every `steps` steps, or every `seconds` of simulated time.

    Steps are counted from the start of the simulation, not of the observer, so that a resumed run keeps the rhythm.
    Seconds are rounded to whole steps, and to at least one.
    """

    steps: int | None = number(None, whole=True, low=1)
    seconds: float | None = number(None, above=0.0, unit="s", about="of simulated time")

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.seconds is None):
            raise ParameterError("Every needs either steps or seconds")

    def due(self, sim: Simulation) -> bool:
        """Whether the observer is called after the simulation's current step."""
        return sim.step_number % self.in_steps(sim.dt) == 0

    def in_steps(self, dt: float) -> int:
        """The interval in steps of dt [s]."""
        if self.seconds is not None:
            return max(1, round(min(self.seconds / dt, _NEVER)))
        assert self.steps is not None
        return self.steps


class Observer:
    """The notifications of a simulation. All methods do nothing here."""

    trigger = Every(steps=1)  #: after which steps `step_done` is called; all other methods are always called

    def begin(self, sim: Simulation) -> None:
        """A run begins, from the current state. A simulation that is stepped by hand has neither `begin` nor `end`."""

    def step_begins(self, sim: Simulation) -> None:
        """A step begins; nothing has happened in it yet."""

    def event(self, sim: Simulation, text: str) -> None:
        """An event has been applied at the beginning of this step; `text` is its JSON.

        An event that spans several steps is reported once.
        """

    def deaths(self, sim: Simulation, ids: NDArray[np.int64]) -> None:
        """These agents died at the beginning of this step."""

    def stages_begun(self, sim: Simulation, rows: NDArray[np.int64]) -> None:
        """The agents in these rows began a stage of their lists in this step."""

    def news(self, sim: Simulation, of: str, what: Sequence[tuple[str, str, Sequence[int]]]) -> None:
        """Something happened in this step, to agents with these ids: of "tasks", what happened and to which task; of a
        column with names such as "mood", the new name."""

    def squads(self, sim: Simulation, news: Sequence[tuple[str, str]]) -> None:
        """What squads did in this step: their names, and what, such as "has searched kitchen"."""

    def learnt(self, sim: Simulation, news: Mapping[str, NDArray[Any]]) -> None:
        """What agents with limited knowledge learnt in this step: the columns of `sim.knowledge.log`."""

    def step_done(self, sim: Simulation) -> None:
        """A step selected by the trigger is over; `sim.step_number` counts it already."""

    def flush(self) -> None:
        """A checkpoint is about to be written: write to disk what a run resumed from it will not report again."""

    def end(self, sim: Simulation, *, whole: bool, summary: Summary | None) -> None:
        """The run is over. This is called for every observer of a run, even if `begin` or a step has failed.

        `whole` tells whether the state is the one between two steps; `summary` is None if the run was aborted.
        """


class Observers(Observer):
    """Observers that are notified in their order; together they are an observer themselves.

    They may be added and removed at any time and from any thread; this takes effect with the next notification.
    """

    def __init__(self) -> None:
        self._observers: list[Observer] = []

    def append(self, observer: Observer) -> None:
        if not isinstance(observer, Observer):
            raise ParameterError(f"an observer is an object of a subclass of Observer, not {observer!r}")
        self._observers.append(observer)

    def remove(self, observer: Observer) -> None:
        self._observers.remove(observer)

    def __iter__(self) -> Iterator[Observer]:
        return iter(tuple(self._observers))

    def __len__(self) -> int:
        return len(self._observers)

    def __deepcopy__(self, memo: dict[int, Any]) -> Observers:
        """The copy of a simulation has no observers: two runs would be mixed up in one file or plot."""
        return Observers()

    # Notifications ----------------------------------------------------------------------------------------------

    def begin(self, sim: Simulation) -> None:
        for observer in self:
            observer.begin(sim)

    def step_begins(self, sim: Simulation) -> None:
        for observer in self:
            observer.step_begins(sim)

    def event(self, sim: Simulation, text: str) -> None:
        for observer in self:
            observer.event(sim, text)

    def deaths(self, sim: Simulation, ids: NDArray[np.int64]) -> None:
        for observer in self:
            observer.deaths(sim, ids)

    def stages_begun(self, sim: Simulation, rows: NDArray[np.int64]) -> None:
        for observer in self:
            observer.stages_begun(sim, rows)

    def news(self, sim: Simulation, of: str, what: Sequence[tuple[str, str, Sequence[int]]]) -> None:
        for observer in self:
            observer.news(sim, of, what)

    def squads(self, sim: Simulation, news: Sequence[tuple[str, str]]) -> None:
        for observer in self:
            observer.squads(sim, news)

    def learnt(self, sim: Simulation, news: Mapping[str, NDArray[Any]]) -> None:
        for observer in self:
            observer.learnt(sim, news)

    def step_done(self, sim: Simulation) -> None:
        for observer in self:
            if observer.trigger.due(sim):
                observer.step_done(sim)

    def flush(self) -> None:
        for observer in self:
            observer.flush()

    def end(self, sim: Simulation, *, whole: bool, summary: Summary | None) -> None:
        # An observer that fails to close its file must not keep others from closing theirs.
        with ExitStack() as stack:
            for observer in reversed(tuple(self)):
                stack.callback(observer.end, sim, whole=whole, summary=summary)
