"""The report of an evacuation: what people who plan venues ask of a run, from its recording."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.analysis.crowd_maps import CROWDED, CrowdMaps, CrowdMapsBuilder
from tropel.analysis.exit_widths import exit_widths
from tropel.analysis.people_seen import PeopleSeen
from tropel.analysis.rates import flow_rate, time_by_share
from tropel.arguments import checked_arguments
from tropel.errors import RecordingError
from tropel.recording import People, Trajectory
from tropel.recording.people import DIED, LEFT, REMOVED, THERE

if TYPE_CHECKING:
    from rich.table import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Shares of people whose times a report tells [%].
PERCENTS = (50, 90, 95, 100)
#: The name of what people left through where nobody knows it.
UNKNOWN_PLACE = "unknown"


@dataclass(frozen=True, kw_only=True)
class ExitUse:
    """How an exit, or a target that takes people out, was used. Numbers that do not exist are NaN."""

    name: str
    count: int
    share: float  #: of all who left, 0 to 1
    first: float  #: when the first one left there [s]
    last: float
    mean: float
    flow: float  #: persons per second, between the first and the last
    width: float  #: of the opening [m]; NaN for targets
    specific_flow: float  #: persons per second and metre of width


@dataclass(frozen=True, eq=False, kw_only=True)
class EvacuatedCurve:
    """How many had left, and died, by each moment at which that changed; all start at 0 s and end with the run."""

    times: Floats
    by_exit: dict[str, Ints]
    total: Ints
    died: Ints


@dataclass(frozen=True, eq=False, kw_only=True)
class EvacuationReport:
    """Who left when and where, how long each person needed, and where it was crowded."""

    title: str
    groups: tuple[str, ...]
    end: float  #: of the run [s]
    people: People
    #: Whether the run itself said who left when; otherwise frames had to tell (see `analysis/people_seen.py`).
    exact: bool
    exits: tuple[ExitUse, ...]
    evacuated: EvacuatedCurve
    maps: CrowdMaps

    @property
    def agents(self) -> int:
        return len(self.people)

    @property
    def left(self) -> int:
        return self._count(LEFT)

    @property
    def died(self) -> int:
        return self._count(DIED)

    @property
    def remaining(self) -> int:
        return self._count(THERE)

    @property
    def removed(self) -> int:
        return self._count(REMOVED)

    @property
    def needed(self) -> Floats:
        """Seconds from coming in to leaving, by person; NaN for all who did not leave."""
        return np.where(self.people.fate == LEFT, self.people.gone - self.people.came, np.nan)

    def needed_by(self, percent: float) -> float:
        """The time that so many percent of those who left did not exceed [s]; NaN if nobody left."""
        needed = self.needed[~np.isnan(self.needed)]
        return time_by_share(needed, total=len(needed), share=percent / 100.0)

    def out_by(self, percent: float) -> float:
        """When so many percent of everybody had left [s]; NaN if so many never did."""
        gone = self.people.gone[self.people.fate == LEFT]
        return time_by_share(gone, total=self.agents, share=percent / 100.0)

    def table(self) -> Table:
        """A table for the terminal."""
        from rich.table import Table

        table = Table(title=self.title or "run", show_header=False, title_justify="left")
        table.add_column(style="bold")
        table.add_column(justify="right")
        table.add_row("agents", f"{self.agents:,}")
        for name, count in (("left", self.left), ("died", self.died), ("removed", self.removed)):
            if count or name == "left":
                table.add_row(name, f"{count:,} ({_percent(count, self.agents)})")
        if self.remaining:
            table.add_row("still there", f"{self.remaining:,} at {self.end:.1f} s")
        for use in self.exits:
            table.add_row(f"  through {use.name}", _use_in_words(use))
        if self.left:
            head = " / ".join(f"{percent}" for percent in PERCENTS)
            table.add_row(f"{head} % out at", " / ".join(_seconds(self.out_by(p)) for p in PERCENTS) + " s")
            table.add_row(f"{head} % needed", " / ".join(_seconds(self.needed_by(p)) for p in PERCENTS) + " s")
        maps = self.maps
        table.add_row("densest cell", f"{maps.peak_density.max():.2g} / m² (cells of {maps.cell:g} m)")
        table.add_row(f"above {CROWDED:g} / m²", f"{maps.crowded_area.max():.3g} m² at most")
        table.add_row("strongest flow", f"{maps.flow_strength.max():.2g} / (m s), mean of the run")
        if maps.outside:
            table.add_row("not on the map", f"{maps.outside:,} recorded positions")
        return table

    def _count(self, fate: int) -> int:
        return int(np.count_nonzero(self.people.fate == fate))


@checked_arguments
def evacuation_report(
    trajectory: Trajectory, *, cell: float = 1.0, progress: Callable[[int, int], None] | None = None
) -> EvacuationReport:
    """Read a recorded run, frame by frame, and report on it; `cell` is the side of the cells of the maps [m].

    `progress` is told how many frames of how many are done.
    """
    if len(trajectory.frames) == 0:
        raise RecordingError(f"{trajectory.path} has no frames: its run never began, there is nothing to report")
    scene = trajectory.scene
    people = trajectory.people()
    seen = PeopleSeen(scene.dim)
    builder = CrowdMapsBuilder(scene, cell=cell)
    for done, number in enumerate(trajectory.frames.tolist(), start=1):
        frame = trajectory.frame(number)
        builder.add(trajectory.time(number), frame)
        if people is None:
            seen.add(trajectory.time(number), frame)
        if progress is not None:
            progress(done, len(trajectory.frames))
    exact = people is not None
    people = people if people is not None else seen.people(scene, trajectory.deaths())
    if len(people) == 0:
        raise RecordingError(f"{trajectory.path}: nobody was there at any time, there is nothing to report")
    end = max(trajectory.time(int(trajectory.frames[-1])), float((trajectory.summary or {}).get("simulated_time", 0.0)))
    times = _times_by_exit(people, tuple(scene.exits))
    return EvacuationReport(
        title=scene.title or trajectory.path.stem,
        groups=tuple(scene.groups),
        end=end,
        people=people,
        exact=exact,
        exits=_uses(times, exit_widths(scene)),
        evacuated=_curve(times, people, end),
        maps=builder.result(),
    )


def _times_by_exit(people: People, exits: tuple[str, ...]) -> dict[str, Floats]:
    """Sorted departure times of every exit, and of whatever else somebody left through."""
    names = (*people.places, UNKNOWN_PLACE)
    left = people.fate == LEFT
    times = {name: np.zeros(0) for name in exits}
    for number in np.unique(people.through[left]).tolist():
        times[names[number]] = np.sort(people.gone[left & (people.through == number)])
    return times


def _uses(times: dict[str, Floats], widths: dict[str, float]) -> tuple[ExitUse, ...]:
    total = sum(map(len, times.values()))
    uses = []
    for name, gone in times.items():
        flow, width = flow_rate(gone), widths.get(name, math.nan)
        use = ExitUse(
            name=name,
            count=len(gone),
            share=len(gone) / total if total else 0.0,
            first=float(gone[0]) if len(gone) else math.nan,
            last=float(gone[-1]) if len(gone) else math.nan,
            mean=float(gone.mean()) if len(gone) else math.nan,
            flow=flow,
            width=width,
            specific_flow=flow / width,
        )
        uses.append(use)
    return tuple(uses)


def _curve(by_exit: dict[str, Floats], people: People, end: float) -> EvacuatedCurve:
    died = np.sort(people.gone[people.fate == DIED])
    gone = np.sort(np.concatenate([np.zeros(0), *by_exit.values()]))
    times = np.unique(np.concatenate([[0.0], gone, died, [end]]))
    return EvacuatedCurve(
        times=times,
        by_exit={name: np.searchsorted(each, times, side="right") for name, each in by_exit.items()},
        total=np.searchsorted(gone, times, side="right"),
        died=np.searchsorted(died, times, side="right"),
    )


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.0f} %"


def _seconds(time: float) -> str:
    return "–" if math.isnan(time) else f"{time:.1f}"


def _use_in_words(use: ExitUse) -> str:
    words = f"{use.count:,} ({100 * use.share:.0f} %)"
    if not math.isnan(use.flow):
        words += f", {use.flow:.2f} / s"
    if not math.isnan(use.specific_flow):
        words += f", {use.specific_flow:.2f} / (m s) over {use.width:.2f} m"
    return words
