"""Many runs of one scenario, each with its own seed: how fast they empty, and how much that varies.

`sweep_statistics` combines the departure times of the runs; `draw_sweep` draws them.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.errors import ParameterError
from tropel.foundation.arguments import checked_arguments, numbers_in
from tropel.foundation.quantities import Quantity
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class SweepStatistics:
    """Share of agents that have left by each time, over the runs, and the times at which all had left.

    `low` and `high` bound the 95 % confidence interval of the mean at each single time (mean ± t · s / √n, Student's
    t with n - 1 degrees of freedom); with one run they are not a number.
    """

    runs: int
    agents: NDArray[np.int64]  #: (runs,) number of agents
    times: Floats  #: [s]
    share: Floats  #: (runs, times) of each run
    mean: Floats  #: (times,)
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    evacuation_times: Floats  #: of the runs in which all agents left [s]
    evacuation_mean: float  #: not a number if there is no such run
    evacuation_low: float  #: 95 % confidence interval of the mean; not a number with fewer than two such runs
    evacuation_high: float
    stayed: NDArray[np.int64]  #: (runs,) number of agents that never left

    @property
    def incomplete(self) -> int:
        """Number of runs in which some agents never left."""
        return int(np.count_nonzero(self.stayed))


@checked_arguments
def sweep_statistics(
    departures: Sequence[ArrayLike],
    *,
    agents: int | Sequence[int],
    end: float | Sequence[float],
    points: Annotated[int, Quantity(name="points", low=2, high=1e6)] = 400,
) -> SweepStatistics:
    """Combine the departure times [s] of several runs.

    `agents` is the number of agents and `end` the time [s] at which the run ended, for all runs or one each. Nothing is
    known about a run after its end if agents were still there, so the curves end at the earliest such time.
    """
    left = [np.sort(_times(number, times).ravel()) for number, times in enumerate(departures)]
    if not left:
        raise ParameterError("a sweep needs at least one run: give the departure times of each run")
    counts: NDArray[np.int64] = _for_each(agents, len(left), "agents").astype(np.int64)
    ends = _for_each(end, len(left), "end")
    for number, times in enumerate(left):
        _check(number, times, int(counts[number]), float(ends[number]))
    stayed = counts - np.array([len(times) for times in left], dtype=np.int64)
    whole = stayed == 0
    finished = np.array([times[-1] if len(times) else 0.0 for times in left])
    horizon = float(ends[~whole].min()) if (~whole).any() else float(finished.max())
    times = np.linspace(0.0, horizon if horizon > 0.0 else 1.0, points)
    share = np.array([np.searchsorted(gone, times, side="right") for gone in left]) / np.maximum(counts, 1)[:, None]
    share[counts == 0] = 1.0
    mean, low, high = _mean_with_interval(share)
    evacuated = finished[whole]
    centre, below, above = _mean_with_interval(evacuated[:, None]) if whole.any() else (np.full(1, np.nan),) * 3
    return SweepStatistics(
        runs=len(left),
        agents=counts,
        times=times,
        share=share,
        mean=mean,
        low=low,
        high=high,
        least=share.min(axis=0),
        most=share.max(axis=0),
        evacuation_times=evacuated,
        evacuation_mean=float(centre[0]),
        evacuation_low=float(below[0]),
        evacuation_high=float(above[0]),
        stayed=stayed,
    )


def _mean_with_interval(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean over the rows, and the ends of its 95 % confidence interval."""
    from scipy.special import stdtrit

    mean = values.mean(axis=0)
    runs = len(values)
    if runs < 2:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown
    reach = stdtrit(runs - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(runs)
    return mean, mean - reach, mean + reach


def _times(number: int, given: ArrayLike) -> Floats:
    times = numbers_in(given)
    if times is None:
        raise ParameterError(f"run {number}: departures must be times in seconds, not {reprlib.repr(given)}")
    return times


def _for_each(value: float | Sequence[float], runs: int, name: str) -> Floats:
    values = np.asarray(value, dtype=np.float64)
    if values.ndim == 0:
        return np.full(runs, float(values))
    if values.shape != (runs,):
        raise ParameterError(f"{name} has {values.size} values for {runs} runs: give one number, or one per run")
    return values


def _check(number: int, times: Floats, agents: int, end: float) -> None:
    if not np.isfinite(times).all() or (times < 0.0).any():
        raise ParameterError(
            f"run {number}: a departure time is negative or not a number; leave out agents that never left"
        )
    if len(times) > agents:
        raise ParameterError(f"run {number}: {len(times)} departures but only {agents} agents")
    if not np.isfinite(end) or end < 0.0 or (len(times) and times[-1] > end * (1 + 1e-9)):
        last = f"; the last departure was at {times[-1]:g} s" if len(times) else ""
        raise ParameterError(f"run {number}: it cannot have ended at {end!r} s{last}")


# All lengths in pixels.
_EDGE = 22
_HEADER = 74
_PANEL_TOP = _HEADER + 42
_PANEL_HEIGHT = 330
_WIDTH = 1160
_CURVES_LEFT = _EDGE + 76
_CURVES_WIDTH = 590
_HEIGHT = _PANEL_TOP + _PANEL_HEIGHT + 76
#: With fewer runs than this, dots show more than a histogram.
_FEW = 12


@checked_arguments
def draw_sweep(
    departures: Sequence[ArrayLike],
    path: str | os.PathLike[str],
    *,
    agents: int | Sequence[int],
    end: float | Sequence[float],
    title: str = "",
) -> Path:
    """Draw several runs, each given by its departure times [s], as a PNG.

    On the left, the share of agents that have left over time: the mean of the runs with its 95 % confidence band, and
    the range of all runs. On the right, the times at which all agents had left, with the mean and its 95 % confidence
    interval. See `sweep_statistics` for `agents` and `end`.
    """
    target = picture_path(path, ".png")
    statistics = sweep_statistics(departures, agents=agents, end=end)
    return save_figure(sweep_figure(statistics, title=title), target)


def sweep_figure(statistics: SweepStatistics, *, title: str = "") -> Figure:
    """The figure that `draw_sweep` saves."""
    figure = style.new_figure(_WIDTH, _HEIGHT)
    _write_header(figure, statistics, title)
    _draw_curves(style.add_axes(figure, _CURVES_LEFT, _PANEL_TOP, _CURVES_WIDTH, _PANEL_HEIGHT), statistics)
    left = _CURVES_LEFT + _CURVES_WIDTH + 72
    _draw_times(style.add_axes(figure, left, _PANEL_TOP, _WIDTH - _EDGE - left, _PANEL_HEIGHT), statistics)
    return figure


def _write_header(figure: Figure, statistics: SweepStatistics, title: str) -> None:
    runs = statistics.runs
    style.add_text(figure, _EDGE, 16, style.shortened(title or "sweep", 80), fontsize=style.TITLE_SIZE, weight="bold")
    said = f"{runs} runs, each with its own seed" if runs > 1 else "1 run"
    if not statistics.agents.any():
        said += "  ·  no agents"
    elif statistics.incomplete == 0:
        said += "  ·  everybody left in every run" if runs > 1 else "  ·  everybody left"
    else:
        said += "  ·  "
    shown = style.add_text(figure, _EDGE, 43, said, color=style.FAINT_INK)
    if statistics.incomplete:
        where = f"in {statistics.incomplete} of {runs} runs " if runs > 1 else ""
        most = f"{'up to ' * (runs > 1)}{int(statistics.stayed.max()):,} stayed"
        left = _EDGE + shown.get_window_extent().width
        warning = f"{where}not everybody left ({most})"
        style.add_text(figure, left, 43, warning, color=style.CLOSED_DOOR, weight="bold")


def _draw_curves(axes: Axes, statistics: SweepStatistics) -> None:
    times = statistics.times
    style.open_panel(axes)
    style.label_axes(axes, x="time [s]", y="share of agents that have left")
    percent = 100.0
    if statistics.runs > 1:
        axes.fill_between(
            times,
            percent * statistics.least,
            percent * statistics.most,
            color=style.mixed(style.THERE, style.PAPER, 0.16),
            linewidth=0,
            label="all runs",
        )
        axes.fill_between(
            times,
            # A share stays between none and all, whatever the formula of the interval gives.
            percent * np.clip(statistics.low, 0.0, 1.0),
            percent * np.clip(statistics.high, 0.0, 1.0),
            color=style.mixed(style.THERE, style.PAPER, 0.5),
            linewidth=0,
            label="95 % confidence of the mean",
        )
    axes.plot(
        times,
        percent * statistics.mean,
        color=style.THERE,
        linewidth=2.0,
        solid_joinstyle="round",
        label="mean" if statistics.runs > 1 else "the run",
    )
    axes.set_xlim(0.0, times[-1])
    axes.set_ylim(0.0, 102.0)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0f} %")
    handles, _ = axes.get_legend_handles_labels()
    style.legend_above(axes, columns=3, handles=handles[::-1], borderpad=0.2, handlelength=1.6)


def _draw_times(axes: Axes, statistics: SweepStatistics) -> None:
    """The times at which all agents had left: a histogram, the runs as dots below it, and the mean above."""
    from matplotlib.ticker import MaxNLocator

    found = statistics.evacuation_times
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_yticks([])
    style.label_axes(axes, x="evacuation time [s]", title=_title_of_times(statistics))
    if len(found) == 0:
        axes.set_xticks([])
        _write(axes, 0.5, 0.5, "no run in which everybody left", ha="center")
        return
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    spread = float(np.ptp(found))
    room = max(0.12 * spread, 0.02 * float(found.max()), 0.5)
    reach = 0.0 if len(found) < 2 else (statistics.evacuation_high - statistics.evacuation_low) / 2
    centre = statistics.evacuation_mean
    axes.set_xlim(
        max(0.0, min(float(found.min()), centre - reach) - room), max(float(found.max()), centre + reach) + room
    )
    # From the bottom: dots, histogram, mean. Heights are shares of the panel.
    tall = len(found) >= _FEW and spread > 0.0
    dots_middle, dots_reach, dots_size = (0.09, 0.05, 4.0) if tall else (0.36, 0.08, 6.0)
    if tall:
        counts, edges = np.histogram(found, bins="auto")
        axes.bar(
            edges[:-1],
            0.56 * counts / counts.max(),
            width=np.diff(edges),
            bottom=0.2,
            align="edge",
            color=style.mixed(style.THERE, style.PAPER, 0.3),
            edgecolor=style.PAPER,
            linewidth=1.0,
        )
        top = int(np.argmax(counts))
        _write(axes, (edges[top] + edges[top + 1]) / 2, 0.775, f"{counts[top]} runs", ha="center", data=True)
    # Dots at fixed, evenly spread heights, so that runs with similar times do not hide each other.
    height = dots_middle + dots_reach * (2.0 * (np.arange(len(found)) * 0.618034 % 1.0) - 1.0)
    axes.plot(found, height, linestyle="none", marker="o", markersize=dots_size, color=style.INK, alpha=0.55, mew=0)
    if len(found) > 1:
        _draw_mean(axes, centre, reach, height=0.9 if tall else 0.6)
    axes.set_ylim(0.0, 1.0)


def _draw_mean(axes: Axes, mean: float, reach: float, *, height: float) -> None:
    axes.plot([mean - reach, mean + reach], [height] * 2, color=style.CLOSED_DOOR, linewidth=2.4, solid_capstyle="butt")
    axes.plot([mean], [height], marker="o", markersize=7, color=style.CLOSED_DOOR, mec=style.PAPER, mew=1.0)


def _title_of_times(statistics: SweepStatistics) -> str:
    found = statistics.evacuation_times
    if len(found) == 0:
        return ""
    if statistics.runs == 1:
        return f"everybody had left at {statistics.evacuation_mean:.1f} s"
    mean = f"mean {statistics.evacuation_mean:.1f} s"
    if len(found) > 1:
        mean += f", 95 % confidence {statistics.evacuation_low:.1f} to {statistics.evacuation_high:.1f} s"
    if statistics.incomplete:
        # The runs that took longest are missing from the mean.
        mean += f"\n(only the {len(found)} runs in which everybody left)"
    return mean


def _write(axes: Axes, x: float, y: float, text: str, *, ha: str, data: bool = False) -> None:
    transform = axes.get_xaxis_transform() if data else axes.transAxes
    axes.text(
        x,
        y,
        text,
        transform=transform,
        ha=ha,
        va="bottom",
        fontsize=style.SMALL_SIZE,
        color=style.FAINT_INK,
        family=style.FONT,
    )
