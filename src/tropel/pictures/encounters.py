"""A table of encounters as a picture: contact time by distance, per person, and how long encounters lasted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tropel.errors import RecordingError
from tropel.foundation.arguments import checked_arguments
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure
from tropel.recording.encounter_table import EncounterTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All lengths in pixels.
_EDGE, _LEFT, _TOP, _PANEL, _HEIGHT, _GAP, _BELOW = 22, 92, 118, 390, 330, 96, 74
#: Bars of a histogram; fewer where the distance is a round number of tenths of a metre.
_BARS = 15
_PERSON_BARS = 24


@checked_arguments
def draw_encounters(table: EncounterTable, path: str | os.PathLike[str], *, title: str = "Encounters") -> Path:
    """Draw a table of encounters as a PNG."""
    target = picture_path(path, ".png")
    return save_figure(encounters_figure(table, title=title), target)


def encounters_figure(table: EncounterTable, *, title: str = "Encounters") -> Figure:
    """The figure that `draw_encounters` saves."""
    if len(table) == 0:
        raise RecordingError("the table holds no encounters, so there is nothing to draw")
    figure = style.new_figure(_LEFT + 3 * _PANEL + 2 * _GAP + 30, _TOP + _HEIGHT + _BELOW)
    within, durations = float(table.within[0]), table.durations
    ids, contact = table.contact_times()
    style.add_text(figure, _EDGE, 16, style.shortened(title, 80), fontsize=style.TITLE_SIZE, weight="bold")
    facts = [
        f"within {within:g} m between centres",
        f"{len(table):,} encounters of {len(ids):,} people",
        f"{_in_words(float(durations.sum()))} of contact between pairs",
        f"bodies touched in {int((~np.isnan(table.touched)).sum()):,}",
    ]
    going_on = int(np.isnan(table.end).sum())
    if going_on:
        facts.append(f"{going_on:,} still going on at {table.last_time:.1f} s")
    style.add_text(figure, _EDGE, 43, "  ·  ".join(facts), color=style.FAINT_INK)
    panels = [style.add_axes(figure, _LEFT + n * (_PANEL + _GAP), _TOP, _PANEL, _HEIGHT) for n in range(3)]
    _draw_by_distance(panels[0], table, within)
    _draw_by_person(panels[1], contact, within)
    _draw_durations(panels[2], durations)
    return figure


def _draw_by_distance(axes: Axes, table: EncounterTable, within: float) -> None:
    """Contact time of all pairs by how close they came, with and without touching."""
    tenths = round(10.0 * within)
    bars = tenths if 6 <= tenths <= 2 * _BARS and abs(tenths - 10.0 * within) < 1e-9 else _BARS
    edges = np.linspace(0.0, within, bars + 1)
    touched = ~np.isnan(table.touched)
    bottom = np.zeros(bars)
    style.open_panel(axes)
    for chosen, colour, name in (
        (touched, style.CLOSED_DOOR, "bodies touched"),
        (~touched, style.THERE, "no touching"),
    ):
        closest = np.minimum(table.closest[chosen], within)
        seconds, _ = np.histogram(closest, bins=edges, weights=table.durations[chosen])
        if chosen.any():
            axes.bar(edges[:-1], seconds, np.diff(edges), bottom, align="edge", color=colour, label=name, **_bar())
        bottom += seconds
    axes.set_xlim(0.0, within)
    axes.set_ylim(0.0, 1.08 * float(bottom.max()) or 1.0)
    style.label_axes(axes, x="closest distance of an encounter [m]", y="contact time of all pairs [s]")
    style.legend_above(axes)
    _thousands(axes)


def _draw_by_person(axes: Axes, contact: Any, within: float) -> None:
    """How long people were near others."""
    style.open_panel(axes)
    most = float(contact.max())
    counts, edges = np.histogram(contact, bins=_PERSON_BARS, range=(0.0, most or 1.0))
    axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=style.LEFT, **_bar())
    middle = float(np.median(contact))
    axes.axvline(middle, color=style.INK, linewidth=1.2, linestyle=(0, (4, 2)))
    right = middle > 0.6 * most
    axes.annotate(
        f"median {_in_words(middle)}",
        (middle, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if right else 5, -3),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        fontsize=style.SMALL_SIZE,
        color=style.INK,
        family=style.FONT,
        # Legible where the line crosses bars.
        bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.2, "alpha": 0.85},
    )
    axes.set_xlim(0.0, edges[-1])
    axes.set_ylim(0.0, 1.18 * float(counts.max()))
    style.label_axes(
        axes,
        x=f"contact time within {within:g} m, summed over others [s]",
        y="people",
        title="people who met someone, by contact time",
    )
    _thousands(axes)


def _draw_durations(axes: Axes, durations: Any) -> None:
    """The share of encounters that lasted at least so long, on a logarithmic scale of time."""
    style.open_panel(axes)
    lasting = np.sort(durations[durations > 0.0])
    style.label_axes(axes, x="duration [s]", y="share of encounters", title="encounters that lasted at least so long")
    if len(lasting) == 0:
        return
    share = 1.0 - np.arange(len(lasting)) / len(lasting)
    axes.plot(lasting, share, color=style.THERE, linewidth=2.0, drawstyle="steps-post")
    axes.set_xscale("log")
    # Encounters of a millisecond are people who graze the circle; they would fill half of the panel.
    low = max(float(lasting[0]), float(np.quantile(lasting, 0.02)), 1e-6)
    high = float(lasting[-1])
    axes.set_xlim(low, high if high > low else 2.0 * low)
    axes.set_ylim(0.0, 1.02)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")


def _bar() -> dict[str, Any]:
    return {"edgecolor": style.PAPER, "linewidth": 0.8}


def _thousands(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")


def _in_words(seconds: float) -> str:
    """A duration in the unit that people would use."""
    if seconds >= 7200.0:
        return f"{seconds / 3600.0:,.1f} h"
    return f"{seconds / 60.0:.1f} min" if seconds >= 120.0 else f"{seconds:.3g} s"
