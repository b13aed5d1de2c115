"""Measured curves with standard errors, in one panel or several side by side."""

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
_PANEL, _HEIGHT, _LEFT, _RIGHT, _TOP, _BELOW, _EDGE = 640, 430, 92, 26, 128, 66, 22
#: Space above the panels if none has a legend.
_TOP_BARE = 84
_MARKERS = ("o", "s", "D", "^")


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """One line of points, or points alone."""

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    error: NDArray[np.float64] | None = None  #: standard errors
    joined: bool = True


@dataclass(frozen=True, kw_only=True)
class Band:
    """Published measurements by others: a range of x and a range of y."""

    name: str
    x: tuple[float, float]
    y: tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class CurvesPanel:
    """Curves over common axes."""

    x: str  #: label of the axis, with its unit
    y: str
    curves: Sequence[Curve]
    logarithmic: bool = False
    band: Band | None = None


def draw_curves(panels: Sequence[CurvesPanel], path: str | os.PathLike[str], *, title: str, about: str) -> Path:
    """Draw panels side by side as a PNG."""
    target = picture_path(path, ".png")
    return save_figure(curves_figure(panels, title=title, about=about), target)


def curves_figure(panels: Sequence[CurvesPanel], *, title: str, about: str) -> Figure:
    """The figure that `draw_curves` saves."""
    if not panels:
        raise ParameterError("nothing to draw: give at least one panel")
    top = _TOP if any(_has_legend(panel) for panel in panels) else _TOP_BARE
    figure = style.new_figure(len(panels) * (_LEFT + _PANEL + _RIGHT), top + _HEIGHT + _BELOW)
    style.add_text(figure, _EDGE, 16, title, fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, _EDGE, 44, about, color=style.FAINT_INK)
    for k, panel in enumerate(panels):
        left = _LEFT + k * (_LEFT + _PANEL + _RIGHT)
        _draw_panel(style.add_axes(figure, left, top, _PANEL, _HEIGHT), panel)
    return figure


def _has_legend(panel: CurvesPanel) -> bool:
    return len(panel.curves) > 1 or panel.band is not None


def _draw_panel(axes: Axes, panel: CurvesPanel) -> None:
    if panel.band is not None:
        colour = style.mixed(style.CLOSED_DOOR, style.PAPER, 0.35)
        axes.fill_between(panel.band.x, *panel.band.y, color=colour, linewidth=0, label=panel.band.name, zorder=1.5)
    for k, curve in enumerate(panel.curves):
        colour = style.GROUPS[k % len(style.GROUPS)]
        axes.errorbar(
            curve.x,
            curve.y,
            yerr=curve.error,
            color=colour,
            linewidth=1.6,
            linestyle="-" if curve.joined else "none",
            marker=_MARKERS[k % len(_MARKERS)],
            markersize=6,
            capsize=3,
            label=curve.name,
        )
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
        _name_measured(axes, np.unique(np.concatenate([curve.x for curve in panel.curves])))
    else:
        axes.set_ylim(bottom=0.0)
    style.open_panel(axes)
    style.label_axes(axes, x=panel.x, y=panel.y)
    if _has_legend(panel):
        style.legend_above(axes, columns=2)


def _name_measured(axes: Axes, places: NDArray[np.float64]) -> None:
    """Ticks on a logarithmic axis at the measured values, in plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.xaxis.set_major_locator(FixedLocator(places.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
