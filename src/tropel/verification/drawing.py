"""What the pictures of cases share: the figure with the verdict, a floor plan with paths, curves and legends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from tropel.pictures import style
from tropel.pictures.style import save_figure
from tropel.scenario import load_builtin
from tropel.verification.case import Case, Outcome
from tropel.verification.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# All lengths in pixels.
_WIDTH = 900
_EDGE = 22
_LEFT = 84
_TOP = 128
_BOTTOM = 62

_LONGEST = 118


def draw_verdict(case: Case, verdict: Verdict, outcomes: Sequence[Outcome], path: Path) -> Path:
    """A figure with the title of a case, the verdict, and one panel that the case draws."""
    figure = style.new_figure(_WIDTH, case.height)
    style.add_text(figure, _EDGE, 16, f"{case.name}: {case.title}", fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, _EDGE, 44, f"steering model: {verdict.model}", color=style.FAINT_INK)
    colour = style.label_colour(style.EXIT if verdict.passed else style.CLOSED_DOOR)
    said = f"{verdict.outcome}: {verdict.said}"
    style.add_text(figure, _EDGE, 64, style.shortened(said, _LONGEST), color=colour)
    axes = style.add_axes(figure, _LEFT, _TOP, _WIDTH - _LEFT - _EDGE, case.height - _TOP - _BOTTOM)
    style.open_panel(axes)
    case.draw(axes, outcomes)
    return save_figure(figure, path)


def add_legend(axes: Axes, **properties: Any) -> None:
    """A legend above the panel."""
    style.legend_above(axes, borderpad=0.2, handlelength=1.6, **properties)


# Floor plans ------------------------------------------------------------------------------------------------------


def draw_plan(axes: Axes, scene: str, *, walkable: Any = None) -> None:
    """The floor, walls and exits of a built-in scene, or of a variant with another `walkable` area."""
    world = load_builtin(scene).world()
    area = world.walkable if walkable is None else walkable
    axes.grid(visible=False)
    for polygon in getattr(area, "geoms", [area]) if area is not None else []:
        outline = np.array(polygon.exterior.coords)
        axes.fill(outline[:, 0], outline[:, 1], facecolor=style.FLOOR, edgecolor=style.WALL, linewidth=1.6, zorder=1)
        for hole in polygon.interiors:
            inner = np.array(hole.coords)
            axes.fill(inner[:, 0], inner[:, 1], facecolor=style.PAPER, edgecolor=style.WALL, linewidth=1.6, zorder=1)
    for name, way_out in world.exits.items():
        shape = shapely.intersection(way_out.polygon, area)
        if shape.is_empty:
            continue
        outline = np.array(shape.exterior.coords)
        axes.fill(outline[:, 0], outline[:, 1], facecolor=style.exit_fill(style.EXIT), linewidth=0, zorder=1.5)
        if len(world.exits) > 1:
            axes.annotate(name, shape.centroid.coords[0], xytext=(6, 0), textcoords="offset points", va="center",
                          fontsize=style.SMALL_SIZE, family=style.FONT, color=style.label_colour(style.EXIT),
                          zorder=5)  # fmt: skip
    axes.set_aspect("equal", anchor="W")
    style.label_axes(axes, x="x [m]", y="y [m]")


def draw_paths(axes: Axes, place: NDArray[Any], *, colours: Sequence[Any] | None = None, width: float = 0.9) -> None:
    """Lines along which people walked, with a dot at their start; coloured by where they started if not told."""
    first = np.array([place[np.isfinite(place[:, k, 0])][0, k] for k in range(place.shape[1])])
    if colours is None:
        order = np.argsort(np.argsort(first[:, 0]))
        colours = list(style.time_colours()(order / max(len(order) - 1, 1)))
    for k in range(place.shape[1]):
        axes.plot(place[:, k, 0], place[:, k, 1], color=colours[k], linewidth=width, alpha=0.75, zorder=3)
        axes.plot(*first[k], marker="o", markersize=4, color=colours[k], mec=style.PAPER, mew=0.5, zorder=4)


# Curves -----------------------------------------------------------------------------------------------------------


def draw_band(axes: Axes, x: ArrayLike, low: ArrayLike, high: ArrayLike, label: str) -> None:
    """The range within which a measurement passes."""
    colour = style.mixed(style.EXIT, style.PAPER, 0.18)
    axes.fill_between(np.asarray(x), np.asarray(low), np.asarray(high), color=colour, linewidth=0, label=label)


def draw_leaving(axes: Axes, left: Sequence[NDArray[Any]], labels: Sequence[str], people: int) -> None:
    """How many people have left over time, a curve per run; a level end means that the others are stuck."""
    colours = style.group_colours(max(len(left), 1))
    end = 1.1 * max((float(times[np.isfinite(times)].max(initial=0.0)) for times in left), default=0.0)
    for times, label, colour in zip(left, labels, colours, strict=True):
        gone = np.sort(times[np.isfinite(times)])
        axes.step([0.0, *gone], range(len(gone) + 1), where="post", color=colour, linewidth=1.8, label=label)
        if len(gone) < len(times):
            axes.plot([gone.max(initial=0.0), end], [len(gone)] * 2, color=colour, linewidth=1.8)
    axes.axhline(people, color=style.FAINT_INK, linewidth=0.8, linestyle=":")
    axes.set_xlim(left=0.0)
    axes.set_ylim(0.0, people * 1.06)
    style.label_axes(axes, x="time [s]", y="people that have left")


def draw_measured(axes: Axes, outcomes: Sequence[Outcome], x: str, y: str) -> None:
    """Two quantities that each seed measured, as dots."""
    for number, outcome in enumerate(outcomes):
        draw_points(axes, outcome.measured[x], outcome.measured[y], label="" if number else "measured")


def draw_points(axes: Axes, x: ArrayLike, y: ArrayLike, *, label: str = "") -> None:
    """What was measured, as dots."""
    axes.plot(x, y, linestyle="", marker="o", markersize=7, color=style.THERE, mec=style.PAPER, mew=0.6,
              label=label or None, zorder=4)  # fmt: skip
