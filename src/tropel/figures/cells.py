"""Figures on cells: the best moves or the values of cells, side by side, and the bottlenecks of a map.

The first are figures 3 and 7 of the paper on lattice crowds. The second is its figure 9, with a ring, a name and a
width for each bottleneck.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.pictures import style
from tropel.pictures.field import as_declared, name_axes
from tropel.pictures.layout import AXIS_BELOW, AXIS_LEFT, EDGE, HEADER
from tropel.pictures.map import Box, Label, draw_map, draw_obstacles, margin_for, place_labels
from tropel.pictures.style import picture_path, save_figure
from tropel.pictures.viewport import Viewport, fit_view
from tropel.recording import Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# All lengths in pixels.
_PANEL, _EDGE, _TOP, _BELOW, _BETWEEN = 700, 24, 104, 28, 28
_STRIP, _STRIP_LABELS = 14, 74
#: How far arrows reach from the centre of a cell [cells].
_REACH = 0.55
_TARGET = style.EXIT


@dataclass(frozen=True, kw_only=True, eq=False)
class CellsPanel:
    """What is drawn for one raster, row 0 at the bottom. Give `moves`, `worth` or both."""

    title: str
    free: NDArray[np.bool_]  #: (ny, nx)
    goal: NDArray[np.bool_] | None = None  #: (ny, nx)
    #: Rows (row, column, dx, dy): every move that is as good as the best one of its cell
    moves: NDArray[np.int64] | None = None
    worth: NDArray[np.float64] | None = None  #: (ny, nx) from 0 to 1
    #: Circles (x, y, radius) in cells
    circles: Sequence[tuple[float, float, float]] = field(default=())


def draw_cells(
    panels: Sequence[CellsPanel], path: str | os.PathLike[str], *, title: str, about: str, worth_means: str = ""
) -> Path:
    """Draw panels side by side as a PNG."""
    target = picture_path(path, ".png")
    return save_figure(cells_figure(panels, title=title, about=about, worth_means=worth_means), target)


def cells_figure(panels: Sequence[CellsPanel], *, title: str, about: str, worth_means: str = "") -> Figure:
    """The figure that `draw_cells` saves."""
    if not panels:
        raise ParameterError("nothing to draw: give at least one panel")
    shaded = any(panel.worth is not None for panel in panels)
    high = max(round(_PANEL * panel.free.shape[0] / panel.free.shape[1]) for panel in panels)
    right = _BETWEEN + _STRIP + _STRIP_LABELS if shaded else _EDGE
    width = _EDGE + len(panels) * (_PANEL + _BETWEEN) - _BETWEEN + right
    figure = style.new_figure(width, _TOP + high + _BELOW)
    style.add_text(figure, _EDGE, 16, title, fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, _EDGE, 44, about, color=style.FAINT_INK)
    for k, panel in enumerate(panels):
        axes = style.add_axes(figure, _EDGE + k * (_PANEL + _BETWEEN), _TOP, _PANEL, high)
        _draw_panel(axes, panel)
    if shaded:
        _draw_strip(style.add_axes(figure, width - _STRIP - _STRIP_LABELS, _TOP, _STRIP, high), worth_means)
    return figure


def _draw_panel(axes: Axes, panel: CellsPanel) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Circle

    ny, nx = panel.free.shape
    picture = np.empty((ny, nx, 3))
    picture[:] = to_rgb(style.FLOOR)
    if panel.worth is not None:
        picture[:] = style.time_colours()(np.clip(panel.worth, 0.0, 1.0))[..., :3]
    picture[~panel.free] = to_rgb(style.WALL if panel.worth is None else style.PAPER)
    if panel.goal is not None:
        picture[panel.goal] = to_rgb(_TARGET)
    axes.imshow(picture, origin="lower", interpolation="nearest", aspect="equal", extent=(0, nx, 0, ny))
    if panel.moves is not None:
        _draw_moves(axes, panel.moves)
    for x, y, radius in panel.circles:
        axes.add_patch(Circle((x, y), radius, facecolor="none", edgecolor=style.PAPER, linewidth=1.6))
    axes.set_xlim(0, nx)
    axes.set_ylim(0, ny)
    axes.set_xticks([])
    axes.set_yticks([])
    style.label_axes(axes, title=panel.title)


def _draw_moves(axes: Axes, moves: NDArray[np.int64]) -> None:
    """An arrow per move; its colour also shows which way it goes sideways."""
    way = moves[:, 2:] / np.hypot(moves[:, 2], moves[:, 3])[:, None]
    for sign, colour in ((-1, style.CLOSED_DOOR), (0, style.INK), (1, style.OPEN_DOOR)):
        own = np.sign(moves[:, 2]) == sign
        axes.quiver(
            moves[own, 1] + 0.5,
            moves[own, 0] + 0.5,
            _REACH * way[own, 0],
            _REACH * way[own, 1],
            angles="xy",
            scale_units="xy",
            scale=1.0,
            color=colour,
            units="xy",
            width=0.06,
            headwidth=4.0,
            headlength=4.0,
            headaxislength=3.6,
            zorder=3,
        )


def _draw_strip(axes: Axes, means: str) -> None:
    shades = np.linspace(0.0, 1.0, 256)[:, None]
    axes.imshow(shades, origin="lower", aspect="auto", extent=(0, 1, 0, 1), cmap=style.time_colours())
    axes.set_xticks([])
    axes.yaxis.tick_right()
    axes.yaxis.set_label_position("right")
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    style.label_axes(axes, y=means)


_NARROWEST = 520
#: Radius of a ring [pixels].
_RING = 9.0
#: Where names go, best first: most passages are crossed from left to right or upwards.
_SIDES = ("right", "left", "above", "below")
#: Names avoid walls, in pieces of this length, within this distance of a ring [pixels].
_PIECE = 30.0
_NEAR = 160.0
_RING_COLOUR = style.CLOSED_DOOR
_PASSAGE_COLOUR = style.OPEN_DOOR


class Marked(Protocol):
    """What the picture needs to know about a bottleneck."""

    @property
    def position(self) -> tuple[float, float]: ...  #: [m]

    @property
    def width(self) -> float: ...  #: [m], inf in the open

    @property
    def passage(self) -> tuple[tuple[float, float], tuple[float, float]] | None: ...  #: from wall to wall [m]


def draw_bottlenecks(
    scene: Scene,
    bottlenecks: Sequence[Marked],
    path: str | os.PathLike[str],
    *,
    area: float = 0.0,
    title: str = "",
    facts: Sequence[str] = (),
) -> Path:
    """Draw the bottlenecks of a world as a PNG, with the watched squares of side `area` [m] around them."""
    target = picture_path(path, ".png")
    return save_figure(bottleneck_figure(scene, bottlenecks, area=area, title=title, facts=facts), target)


def bottleneck_figure(
    scene: Scene, bottlenecks: Sequence[Marked], *, area: float = 0.0, title: str = "", facts: Sequence[str] = ()
) -> Figure:
    """The figure that `draw_bottlenecks` saves."""
    view = fit_view(np.asarray(scene.bounds), width=1000, height=860, margin=margin_for(scene))
    left = EDGE + AXIS_LEFT
    figure = style.new_figure(max(left + view.width + EDGE, _NARROWEST), HEADER + view.height + AXIS_BELOW + EDGE)
    style.add_text(figure, EDGE, 16, style.shortened(title, 70), fontsize=style.TITLE_SIZE, weight="bold")
    said = [*facts, f"{len(bottlenecks)} bottleneck{'' if len(bottlenecks) == 1 else 's'}"]
    if any(each.passage is not None for each in bottlenecks):
        said.append("blue: where the width is measured")
    if any(each.passage is None for each in bottlenecks):
        said.append("open: not between two walls")
    if area > 0.0:
        said.append(f"dashed: the watched {area:g} m × {area:g} m")
    style.add_text(figure, EDGE, 43, "  ·  ".join(said), color=style.FAINT_INK)
    axes = style.add_axes(figure, left, HEADER, view.width, view.height)
    moment = as_declared(scene)
    draw_obstacles(axes, moment.obstacles.values(), view, scene)
    draw_map(axes, scene, moment, view)
    _draw_squares(axes, bottlenecks, area)
    _draw_rings(axes, bottlenecks, view, scene)
    name_axes(axes, view)
    return figure


def bottleneck_names(bottlenecks: Sequence[Marked]) -> list[str]:
    """Names in order: A to Z, or numbers if there are more."""
    if len(bottlenecks) <= 26:
        return [chr(ord("A") + k) for k in range(len(bottlenecks))]
    return [str(k + 1) for k in range(len(bottlenecks))]


def _draw_squares(axes: Axes, bottlenecks: Sequence[Marked], area: float) -> None:
    from matplotlib.patches import Rectangle

    if area <= 0.0:
        return
    for each in bottlenecks:
        x, y = each.position
        axes.add_patch(
            Rectangle(
                (x - area / 2, y - area / 2),
                area,
                area,
                facecolor=_RING_COLOUR + "0d",
                edgecolor=_RING_COLOUR + "a0",
                linewidth=0.8,
                linestyle=(0, (4.0, 3.0)),
                zorder=8.5,
            )
        )


def _draw_rings(axes: Axes, bottlenecks: Sequence[Marked], view: Viewport, scene: Scene) -> None:
    """A ring at each bottleneck, a line across its passage, and its name and width next to it."""
    labels, avoid = [], []
    radius = _RING / view.scale
    for name, each in zip(bottleneck_names(bottlenecks), bottlenecks, strict=True):
        x, y = each.position
        if each.passage is not None:
            (x0, y0), (x1, y1) = each.passage
            avoid.append(_padded(x0, y0, x1, y1, view))
            axes.plot([x0, x1], [y0, y1], color=_PASSAGE_COLOUR, linewidth=2.2, zorder=9, solid_capstyle="butt")
        for colour, wide in ((style.PAPER, 4.6), (_RING_COLOUR, 2.2)):
            axes.plot(
                [x],
                [y],
                marker="o",
                markersize=2 * _RING * 72 / style.DPI,
                markerfacecolor="none",
                markeredgecolor=colour,
                markeredgewidth=wide,
                zorder=9.5,
            )
        box = (x - radius, y - radius, x + radius, y + radius)
        avoid.append(box)
        wide_text = f"{each.width:.1f} m" if math.isfinite(each.width) else "open"
        labels.append(Label(text=f"{name}  {wide_text}", box=box, colour=style.INK, sides=_SIDES, weight="bold"))
    walls = [_padded(*box, view) for box in _wall_boxes(scene, bottlenecks, view)]
    place_labels(axes, labels, avoid=[*avoid, *walls])


def _wall_boxes(scene: Scene, bottlenecks: Sequence[Marked], view: Viewport) -> list[Box]:
    """Short pieces of the walls that a name might cover."""
    pieces = shapely.segmentize(shapely.from_wkt(scene.area_wkt()).boundary, _PIECE / view.scale)
    coordinates, line = shapely.get_coordinates(shapely.get_parts(pieces), return_index=True)
    joined = line[:-1] == line[1:]
    ends = np.stack([coordinates[:-1][joined], coordinates[1:][joined]], axis=1)
    places = np.array([each.position for each in bottlenecks]).reshape(-1, 1, 2)
    near = (np.abs(places - ends.mean(axis=1)).max(axis=2) <= _NEAR / view.scale).any(axis=0)
    return [(*box.min(axis=0), *box.max(axis=0)) for box in ends[near]]


def _padded(x0: float, y0: float, x1: float, y1: float, view: Viewport) -> Box:
    """A box around a line, with room for its thickness."""
    room = 2.0 / view.scale
    return min(x0, x1) - room, min(y0, y1) - room, max(x0, x1) + room, max(y0, y1) + room
