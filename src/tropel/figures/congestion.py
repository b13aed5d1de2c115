"""People at each bottleneck over time, with the thresholds of congestion (figure 10b of the lattice crowd)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All lengths in pixels.
_WIDTH, _PANEL, _BETWEEN = 860, 150, 46
_LEFT, _RIGHT, _TOP, _BELOW = 84, 96, 100, 66

_HIGH_COLOUR = style.CLOSED_DOOR
_LOW_COLOUR = style.EXIT


@dataclass(frozen=True, kw_only=True, eq=False)
class CrowdAtBottleneck:
    """What was counted around one bottleneck."""

    name: str
    times: NDArray[np.float64]  #: of the counts [s]
    counts: NDArray[np.int64]  #: people
    congested: NDArray[np.bool_]  #: from this count to the next
    high: float  #: T_hi [people]
    low: float  #: T_lo [people]


def draw_congestion(crowds: Sequence[CrowdAtBottleneck], path: str | os.PathLike[str], *, title: str = "") -> Path:
    """Draw a panel per bottleneck, one below the other, as a PNG. Congested times are shaded."""
    target = picture_path(path, ".png")
    return save_figure(congestion_figure(crowds, title=title), target)


def congestion_figure(crowds: Sequence[CrowdAtBottleneck], *, title: str = "") -> Figure:
    """The figure that `draw_congestion` saves."""
    if not crowds:
        raise ParameterError("nothing to draw: give the counts of at least one bottleneck")
    height = _TOP + len(crowds) * (_PANEL + _BETWEEN) - _BETWEEN + _BELOW
    figure = style.new_figure(_LEFT + _WIDTH + _RIGHT, height)
    title = title or "People at the bottlenecks"
    style.add_text(figure, 22, 16, style.shortened(title, 70), fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, 22, 43, "shaded: congested, other people stay away", color=style.FAINT_INK)
    times = [crowd.times for crowd in crowds if crowd.times.size]
    last = max((float(each[-1]) for each in times), default=1.0)
    first = min((float(each[0]) for each in times), default=0.0)
    for k, crowd in enumerate(crowds):
        axes = style.add_axes(figure, _LEFT, _TOP + k * (_PANEL + _BETWEEN), _WIDTH, _PANEL)
        _draw_panel(axes, crowd, first, max(last, first + 1e-9), lowest=k == len(crowds) - 1)
    return figure


def _draw_panel(axes: Axes, crowd: CrowdAtBottleneck, first: float, last: float, *, lowest: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    for begin, end in congested_spans(crowd.times, crowd.congested, last):
        axes.axvspan(begin, end, color=_HIGH_COLOUR, alpha=0.18, linewidth=0)
    axes.step(crowd.times, crowd.counts, where="post", color=style.THERE, linewidth=1.5)
    for level, name, colour in ((crowd.high, "high", _HIGH_COLOUR), (crowd.low, "low", _LOW_COLOUR)):
        dashes = (0, (6.0, 2.5)) if name == "high" else (0, (2.0, 2.0))
        axes.axhline(level, color=colour, linewidth=1.1, linestyle=dashes)
        axes.annotate(
            f"T {name} {level:.3g}",
            xy=(1.0, level),
            xycoords=("axes fraction", "data"),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=style.SMALL_SIZE,
            family=style.FONT,
            color=style.label_colour(colour),
            annotation_clip=False,
        )
    axes.set_xlim(first, last)
    axes.set_ylim(0.0, 1.12 * max(float(crowd.counts.max(initial=0)), crowd.high, 1.0))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axes.tick_params(labelbottom=lowest)
    style.open_panel(axes)
    style.label_axes(axes, x="time [s]" if lowest else "", y="people", title=crowd.name)


def congested_spans(times: NDArray[np.float64], congested: NDArray[np.bool_], last: float) -> list[tuple[float, float]]:
    """The spans during which it was congested; if it is congested at the last count, until the end."""
    edges = np.diff(np.concatenate([[0], congested.astype(np.int64), [0]]))
    ends = np.append(times, last)
    return [
        (float(times[begin]), float(ends[end]))
        for begin, end in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True)
    ]
