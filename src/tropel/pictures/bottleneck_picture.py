"""The picture of a map's bottlenecks: numbered rings with their widths (figure 9 of the paper on lattice crowds)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import shapely

from tropel.pictures import style
from tropel.pictures.field_picture import as_declared, name_axes
from tropel.pictures.labels import Box, Label, place_labels
from tropel.pictures.map import draw_map, draw_obstacles, margin_for
from tropel.pictures.run_layout import AXIS_BELOW, AXIS_LEFT, EDGE, HEADER
from tropel.pictures.saving import picture_path, save_figure
from tropel.pictures.view import View, fit_view
from tropel.recording import Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NARROWEST = 520
#: Radius of a ring [pixels].
_RING = 9.0
#: Where names go, best first: passages are mostly crossed from left to right or upwards.
_SIDES = ("right", "left", "above", "below")
#: Walls are avoided in pieces of this length, as far from a ring as its name reaches [pixels].
_PIECE = 30.0
_NEAR = 160.0
_RING_COLOUR = style.CLOSED_DOOR
_PASSAGE_COLOUR = style.OPEN_DOOR


class Marked(Protocol):
    """What the picture asks of a bottleneck."""

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
    """Draw the bottlenecks of a world as a PNG, with the squares of side `area` [m] that are watched around them."""
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
        said.append("blue: where its width is measured")
    if any(each.passage is None for each in bottlenecks):
        said.append("open: no walls on both sides")
    if area > 0.0:
        said.append(f"dashed: the {area:g} m × {area:g} m that are watched")
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
    """Names in the order they have: A to Z, or numbers where there are more."""
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


def _draw_rings(axes: Axes, bottlenecks: Sequence[Marked], view: View, scene: Scene) -> None:
    """A ring at each bottleneck, a line across its passage, and beside it its name and width."""
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


def _wall_boxes(scene: Scene, bottlenecks: Sequence[Marked], view: View) -> list[Box]:
    """Short pieces of the walls that a name may come to lie on."""
    pieces = shapely.segmentize(shapely.from_wkt(scene.area_wkt()).boundary, _PIECE / view.scale)
    coordinates, line = shapely.get_coordinates(shapely.get_parts(pieces), return_index=True)
    joined = line[:-1] == line[1:]
    ends = np.stack([coordinates[:-1][joined], coordinates[1:][joined]], axis=1)
    places = np.array([each.position for each in bottlenecks]).reshape(-1, 1, 2)
    near = (np.abs(places - ends.mean(axis=1)).max(axis=2) <= _NEAR / view.scale).any(axis=0)
    return [(*box.min(axis=0), *box.max(axis=0)) for box in ends[near]]


def _padded(x0: float, y0: float, x1: float, y1: float, view: View) -> Box:
    """A box round a line, with the room the line takes."""
    room = 2.0 / view.scale
    return min(x0, x1) - room, min(y0, y1) - room, max(x0, x1) + room, max(y0, y1) + room
