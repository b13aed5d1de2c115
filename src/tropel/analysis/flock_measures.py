"""The measures of `flock_order.py` over a recorded run, for all agents and for each group."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.analysis.flock_order import milling, nearest_distances, polarisation, subflocks
from tropel.errors import ParameterError, RecordingError
from tropel.foundation.arguments import checked_arguments
from tropel.recording import FrameData, Trajectory

if TYPE_CHECKING:
    from rich.table import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The name of all agents together, used if there are several groups.
EVERYBODY = "all"
#: By default, two members of a flock are connected if they are at most this many mean nearest-neighbour distances
#: apart. At random positions of the same density that connects nearly all of them.
_USUAL_DISTANCES = 4.0


@dataclass(frozen=True, eq=False, kw_only=True)
class FlockCurve:
    """The measures of one group over time. Missing numbers are NaN."""

    agents: Ints
    polarisation: Floats
    milling: Floats
    nearest_distance: Floats  #: mean distance to the nearest other member of the group [m]
    subflocks: Ints
    largest: Floats  #: share of the group in its largest sub-flock


@dataclass(frozen=True, eq=False, kw_only=True)
class FlockMeasures:
    """Measures over time, by group name; "all" stands for all agents if there are several groups."""

    title: str
    times: Floats
    within: float  #: largest distance between connected members of a sub-flock [m]
    groups: dict[str, FlockCurve]

    def columns(self) -> dict[str, NDArray[Any] | list[str]]:
        """One table with a row per moment and group."""
        names = list(self.groups)
        each = len(self.times)
        table: dict[str, NDArray[Any] | list[str]] = {
            "time": np.tile(self.times, len(names)),
            "group": [name for name in names for _ in range(each)],
        }
        for name in FlockCurve.__dataclass_fields__:
            table[name] = np.concatenate([getattr(curve, name) for curve in self.groups.values()])
        return table

    def table(self) -> Table:
        """A table for the terminal: each measure at the beginning and at the end."""
        from rich.table import Table

        begin, end = self.times[0], self.times[-1]
        title = f"{self.title or 'run'}: {begin:.1f} s → {end:.1f} s, sub-flocks within {self.within:.3g} m"
        table = Table(title=title, title_justify="left")
        for name in ("group", "agents", "polarisation", "milling", "nearest other, m", "sub-flocks"):
            table.add_column(name, justify="left" if name == "group" else "right")
        for name, curve in self.groups.items():
            table.add_row(
                name,
                *(
                    f"{_short(values[0])} → {_short(values[-1])}"
                    for values in (
                        curve.agents,
                        curve.polarisation,
                        curve.milling,
                        curve.nearest_distance,
                        curve.subflocks,
                    )
                ),
            )
        return table


@checked_arguments
def flock_measures(
    trajectory: Trajectory,
    *,
    within: float | None = None,
    every: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> FlockMeasures:
    """Measure every frame of a recorded run, or every n-th one (`every`); dead agents are left out.

    At the very start, before any agent has moved, polarisation and milling are NaN if all headings are still the same.

    `within` [m] is the largest distance between connected members of a sub-flock. By default it is four times the mean
    nearest-neighbour distance in the first frame with at least two agents. `progress` is called with the number of
    frames done and the total.
    """
    if not every >= 1:
        raise ParameterError(f"every must be a whole number of frames, at least 1, not {every!r}")
    if within is not None and not (math.isfinite(within) and within > 0.0):
        raise ParameterError(f"within must be a positive distance in metres, not {within!r}")
    frames = trajectory.frames[:: int(every)].tolist()
    scene = trajectory.scene
    period = np.array(scene.period)
    names = list(scene.groups)
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in ([EVERYBODY] if len(names) > 1 else []) + names}
    died = trajectory.deaths()
    chosen = within
    for done, number in enumerate(frames, start=1):
        frame = trajectory.frame(number)
        living = ~np.isin(frame.id, died["id"][died["frame"] <= number])
        begun = number > 0 or _has_begun(frame)
        if chosen is None:
            chosen = _usual_distance(frame, living, period)
        for name in rows:
            members = living if name == EVERYBODY and len(names) > 1 else living & (frame.group == names.index(name))
            rows[name].append(_measured(frame, members, chosen, period, begun))
        if progress is not None:
            progress(done, len(frames))
    if chosen is None:
        raise RecordingError(f"{trajectory.path} has no frame with two agents, so there is no flock to measure")
    return FlockMeasures(
        title=scene.title or trajectory.path.stem,
        times=np.array([trajectory.time(number) for number in frames]),
        within=chosen,
        groups={name: _curve(found) for name, found in rows.items()},
    )


def _usual_distance(frame: FrameData, living: NDArray[np.bool_], period: Floats) -> float | None:
    if np.count_nonzero(living) < 2:
        return None
    usual = float(nearest_distances(frame.position[living], period=period).mean())
    return _USUAL_DISTANCES * usual if usual > 0.0 else None


def _has_begun(frame: FrameData) -> bool:
    """Whether headings mean anything: before the first step, agents without a goal all point along x."""
    return bool((frame.heading[:, 0] != 1.0).any())


def _measured(
    frame: FrameData, members: NDArray[np.bool_], within: float | None, period: Floats, begun: bool
) -> tuple[float, ...]:
    places, headings = frame.position[members], frame.heading[members]
    count = len(places)
    if count == 0 or within is None:
        return (count, math.nan, math.nan, math.nan, 0, math.nan)
    sizes = np.bincount(subflocks(places, within=within, period=period))
    nearest = nearest_distances(places, period=period).mean()
    order = (math.nan, math.nan)
    if begun:
        order = (polarisation(headings), milling(places, headings, period=period))
    return (count, *order, float(nearest), len(sizes), float(sizes.max()) / count)


def _curve(rows: list[tuple[float, ...]]) -> FlockCurve:
    agents, parallel, mill, nearest, pieces, largest = np.array(rows, dtype=np.float64).reshape(-1, 6).T
    return FlockCurve(
        agents=agents.astype(np.int64),
        polarisation=parallel,
        milling=mill,
        nearest_distance=nearest,
        subflocks=pieces.astype(np.int64),
        largest=largest,
    )


def _short(value: float) -> str:
    if isinstance(value, np.integer):
        return f"{value:,}"
    if math.isnan(value):
        return "–"
    return f"{value:.2f}" if abs(value) < 10.0 else f"{value:.3g}"
