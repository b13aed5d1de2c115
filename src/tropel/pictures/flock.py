"""The measures of a flock over time as a picture: order, distances, number of sub-flocks and number of agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.analysis import FlockMeasures
from tropel.analysis.flock_measures import EVERYBODY
from tropel.foundation.arguments import checked_arguments
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All lengths in pixels.
_EDGE, _LEFT, _TOP, _PANEL, _HEIGHT, _GAP, _BETWEEN, _BELOW = 22, 84, 136, 400, 235, 84, 70, 66
_ACROSS = 3  #: panels in a row
#: Space above the panels if there is no legend.
_TOP_BARE = 100
#: More groups than this would hide each other: only all agents together and the largest groups are drawn.
_MOST_GROUPS = 8
_LINES = ("-", (0, (5, 1.4)), (0, (3, 1.2, 1, 1.2)), (0, (1.4, 1.2)))


@checked_arguments
def draw_flock(measures: FlockMeasures, path: str | os.PathLike[str]) -> Path:
    """Draw the measures of a flock over time as a PNG."""
    target = picture_path(path, ".png")
    return save_figure(flock_figure(measures), target)


def flock_figure(measures: FlockMeasures) -> Figure:
    """The figure that `draw_flock` saves."""
    above = _TOP if len(measures.groups) > 1 else _TOP_BARE
    across, down = _LEFT + _ACROSS * _PANEL + (_ACROSS - 1) * _GAP + 30, above + 2 * _HEIGHT + _BETWEEN + _BELOW
    figure = style.new_figure(across, down)
    style.add_text(figure, _EDGE, 16, style.shortened(measures.title, 80), fontsize=style.TITLE_SIZE, weight="bold")
    drawn = _drawn(measures)
    first = next(iter(measures.groups.values()))
    facts = [f"{first.agents.max(initial=0):,} agents", f"{measures.times[0]:.1f} – {measures.times[-1]:.1f} s"]
    if len(drawn) == _MOST_GROUPS + 1 < len(measures.groups):
        facts.append(f"the {len(drawn) - 1} largest of {len(measures.groups) - 1} groups")
    style.add_text(figure, _EDGE, 43, "  ·  ".join(facts), color=style.FAINT_INK)
    panels = {
        "polarisation": "polarisation",
        "milling": "milling",
        "nearest_distance": "distance to the nearest neighbour [m]",
        "subflocks": f"sub-flocks, {measures.within:.3g} m from one to the next",
        "largest": "share of the largest sub-flock",
        "agents": "agents",
    }
    colours = _colours(drawn)
    for number, (measure, title) in enumerate(panels.items()):
        left = _LEFT + (number % _ACROSS) * (_PANEL + _GAP)
        top = above + (number // _ACROSS) * (_HEIGHT + _BETWEEN)
        axes = style.add_axes(figure, left, top, _PANEL, _HEIGHT)
        curves = {name: getattr(measures.groups[name], measure) for name in drawn}
        counts = measure in ("subflocks", "agents")
        jumps = counts or measure == "largest"
        _draw_panel(axes, measures.times, curves, colours, "steps-post" if jumps else "default")
        style.label_axes(axes, x="time [s]" if number >= _ACROSS else "", title=title)
        if counts:
            _whole_numbers(axes, max(float(np.max(values, initial=1)) for values in curves.values()), measure)
        elif measure == "nearest_distance":
            axes.set_ylim(bottom=0.0)
        else:
            axes.set_ylim(0.0, 1.02)
    if len(drawn) > 1:
        _legend(figure, figure.axes[0])
    return figure


def _drawn(measures: FlockMeasures) -> list[str]:
    """The groups that are drawn, in the order of the scene."""
    # A single agent, such as a leader, is not a flock.
    names = [name for name, curve in measures.groups.items() if curve.agents.max(initial=0) > 1 or name == EVERYBODY]
    names = names or list(measures.groups)
    if len(names) <= _MOST_GROUPS + 1:
        return names
    largest = sorted(names[1:], key=lambda name: -int(measures.groups[name].agents.max(initial=0)))[:_MOST_GROUPS]
    return [names[0], *(name for name in names[1:] if name in largest)]


def _colours(names: list[str]) -> dict[str, str]:
    groups = [name for name in names if name != EVERYBODY or len(names) == 1]
    return {EVERYBODY: style.INK, **dict(zip(groups, style.group_colours(len(groups)), strict=True))}


def _draw_panel(
    axes: Axes, times: NDArray[np.float64], curves: dict[str, NDArray[Any]], colours: dict[str, str], steps: str
) -> None:
    style.open_panel(axes)
    for number, (name, values) in enumerate(curves.items()):
        # Curves of groups that fly alike coincide; dashes keep both visible.
        look: dict[str, Any] = {"linestyle": _LINES[number % len(_LINES)], "color": colours[name], "drawstyle": steps}
        marker = "o" if len(times) == 1 else None
        axes.plot(
            times, values, linewidth=2.2 if name == EVERYBODY else 1.6, marker=marker, label=name, clip_on=False, **look
        )
    axes.set_xlim(times[0], times[-1] if times[-1] > times[0] else times[0] + 1.0)


def _whole_numbers(axes: Axes, most: float, measure: str) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator

    if most > 50.0 and measure == "subflocks":
        # A flock may begin as crumbs and end in one piece; a log scale shows both ends.
        axes.set_yscale("log")
        axes.set_ylim(0.8, 1.6 * most)
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0.0, 1.08 * max(most, 1.0))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")


def _legend(figure: Figure, axes: Axes) -> None:
    """One legend for all panels, below the title."""
    lines, names = axes.get_legend_handles_labels()
    across, down = figure.get_size_inches() * style.DPI
    text: dict[str, Any] = {"prop": {"size": style.TEXT_SIZE, "family": style.FONT}, "labelcolor": style.INK}
    figure.legend(
        lines,
        [style.shortened(name, 22, end=5) for name in names],
        loc="upper left",
        bbox_to_anchor=((_LEFT - 4) / across, 1.0 - 66 / down),
        ncols=min(len(names), 6),
        frameon=False,
        borderaxespad=0.0,
        handlelength=2.6,
        columnspacing=1.6,
        **text,
    )
