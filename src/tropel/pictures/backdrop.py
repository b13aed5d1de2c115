"""What stays the same from frame to frame of an animation: title, map, scale and key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.pictures import style
from tropel.pictures.map import draw_map, margin_for
from tropel.pictures.recorded_world import WorldAt
from tropel.pictures.viewport import SIDE, TOP, Viewport, fit_view, walls_around
from tropel.recording import Scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

# All lengths in pixels.
EDGE = 14
HEADER = 58
FOOTER = 44
#: Narrower pictures would have no room for the time next to the title.
_NARROWEST = 360
#: Largest height of a map, as a share of the width of the picture.
_TALLEST = 1.1
#: A box is long if it exceeds this multiple of its width and height.
_LONG = 1.3


@dataclass(frozen=True, kw_only=True)
class AnimationLayout:
    """The size of an animation and where its maps are."""

    width: int
    height: int
    views: list[Viewport]
    corners: list[tuple[int, int]]  #: left and top of each map
    inside: list[Any]  #: in 3D the part of each map within walls; None for all of it


@dataclass(frozen=True, kw_only=True)
class Key:
    """What the colours of the agents mean: names of groups, speeds from zero to the fastest [m/s], or headings."""

    colours: Sequence[str]
    names: Sequence[str] = ()
    fastest: float = 0.0
    headings: bool = False


def lay_out_animation(bounds: NDArray[np.float64], scene: Scene, width: int) -> AnimationLayout:
    """Fit a world within `bounds` (2, dim) into a picture at most `width` pixels wide; tall maps make it narrower."""
    margin = margin_for(scene)
    planes = (TOP,) if scene.dim == 2 else (TOP, SIDE)
    extent = bounds[1] - bounds[0]
    # Long boxes are easier to see with one view below the other.
    columns = 1 if scene.dim == 2 or extent[0] > _LONG * extent[1:].max() else 2
    room = (width - EDGE * (columns + 1)) // columns
    tall = int(_TALLEST * width)
    views = [fit_view(bounds, plane=plane, width=room, height=tall, margin=margin) for plane in planes]
    beside = sum(view.width for view in views[:columns]) + EDGE * (columns - 1)
    across = max(beside + 2 * EDGE, min(_NARROWEST, width))
    # If the title makes the picture wider than the maps, they are centred.
    left, top = (across - beside) // 2, HEADER
    corners = []
    for view in views:
        corners.append((left, top))
        if columns > 1:
            left += view.width + EDGE
        else:
            top += view.height + EDGE
    height = max(corner[1] + view.height for corner, view in zip(corners, views, strict=True)) + FOOTER
    inside = [walls_around(bounds, scene.sides, view) if scene.dim == 3 else None for view in views]
    return AnimationLayout(width=across, height=height, views=views, corners=corners, inside=inside)


def draw_backdrop(
    stage: AnimationLayout, scene: Scene, moment: WorldAt, *, title: str, facts: Sequence[str], key: Key
) -> Image:
    """The picture without agents, obstacles and time."""
    from PIL import Image

    figure = style.new_figure(stage.width, stage.height)
    room = max(8, (stage.width - 2 * EDGE - 150) // 10)
    style.add_text(figure, EDGE, 9, style.shortened(title, room), fontsize=style.TITLE_SIZE - 1, weight="bold")
    _write_facts(figure, stage, facts)
    for view, (left, top) in zip(stage.views, stage.corners, strict=True):
        axes = style.add_axes(figure, left, top, view.width, view.height)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(False)
        draw_map(axes, scene, moment, view)
        if scene.dim == 3:
            name = "from above" if view.plane == TOP else "from the side"
            axes.annotate(
                name,
                (0.0, 1.0),
                xycoords="axes fraction",
                xytext=(11, -11),
                textcoords="offset points",
                va="top",
                fontsize=style.SMALL_SIZE,
                color=style.FAINT_INK,
                family=style.FONT,
            )
    scale_left = _draw_scale(figure, stage)
    _draw_key(figure, stage, key, scale_left - 24)
    canvas = figure.canvas
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3]  # type: ignore[attr-defined]
    return Image.fromarray(np.ascontiguousarray(pixels), "RGB")


def _write_facts(figure: Figure, stage: AnimationLayout, facts: Sequence[str]) -> None:
    """Write as many facts as there is room for next to the number of agents."""
    text = style.add_text(figure, EDGE, 34, "", fontsize=style.SMALL_SIZE, color=style.FAINT_INK)
    for count in range(len(facts), 0, -1):
        text.set_text("  ·  ".join(facts[:count]))
        if text.get_window_extent().width <= stage.width - 2 * EDGE - 110:
            return
    text.remove()


def _draw_scale(figure: Figure, stage: AnimationLayout) -> float:
    """A scale bar of a round number of metres at the bottom right; returns its left end."""
    scale = stage.views[0].scale
    length = _round_number(min(110.0, 0.14 * stage.width) / scale)
    right, middle = stage.width - EDGE, stage.height - FOOTER / 2
    text = style.add_text(figure, right, middle, f"{length:g} m", fontsize=style.SMALL_SIZE, ha="right", va="center")
    end = right - text.get_window_extent().width - 8
    _rule(figure, stage, end - length * scale, end, middle)
    return float(end - length * scale)


def _rule(figure: Figure, stage: AnimationLayout, left: float, right: float, down: float) -> None:
    from matplotlib.lines import Line2D

    for xs, ys in (
        ((left, right), (down, down)),
        ((left, left), (down - 4, down + 4)),
        ((right, right), (down - 4, down + 4)),
    ):
        across = [x / stage.width for x in xs]
        up = [1.0 - y / stage.height for y in ys]
        figure.add_artist(Line2D(across, up, color=style.INK, linewidth=1.1))


def _draw_key(figure: Figure, stage: AnimationLayout, key: Key, right: float) -> None:
    middle = stage.height - FOOTER / 2
    small = {"fontsize": style.SMALL_SIZE, "va": "center"}
    if key.headings:
        _draw_compass(figure, stage, key.colours)
        return
    if not key.names:
        left = EDGE + style.add_text(figure, EDGE, middle, "speed  0", **small).get_window_extent().width + 6
        for colour in key.colours:
            _swatch(figure, stage, left, middle, 11, colour)
            left += 11
        style.add_text(figure, left + 6, middle, f"{key.fastest:g} m/s", **small)
        return
    left = float(EDGE)
    for number, (name, colour) in enumerate(zip(key.names, key.colours, strict=True)):
        text = style.add_text(figure, left + 18, middle, style.shortened(name, 20), **small)
        width = text.get_window_extent().width
        rest = len(key.names) - number
        if left + 18 + width + (60 if rest > 1 else 0) > right:
            text.set_text(f"and {rest} more")
            text.set_x(left / stage.width)
            return
        _swatch(figure, stage, left, middle, 12, colour)
        left += 18 + width + 18


def _draw_compass(figure: Figure, stage: AnimationLayout, colours: Sequence[str]) -> None:
    """A ring of the heading colours, each at the angle it stands for."""
    from matplotlib.patches import Wedge

    size = FOOTER - 8
    text = style.add_text(figure, EDGE, stage.height - FOOTER / 2, "heading", fontsize=style.SMALL_SIZE, va="center")
    left = EDGE + text.get_window_extent().width + 8
    axes = figure.add_axes((left / stage.width, 4 / stage.height, size / stage.width, size / stage.height))
    axes.set_axis_off()
    axes.set_xlim(-1.0, 1.0)
    axes.set_ylim(-1.0, 1.0)
    turn = 360.0 / len(colours)
    for number, colour in enumerate(colours):
        axes.add_patch(
            Wedge((0.0, 0.0), 1.0, number * turn, (number + 1) * turn, width=0.55, facecolor=colour, linewidth=0.0)
        )


def _swatch(figure: Figure, stage: AnimationLayout, left: float, middle: float, size: float, colour: str) -> None:
    from matplotlib.patches import Rectangle

    corner = (left / stage.width, 1.0 - (middle + 6) / stage.height)
    figure.add_artist(Rectangle(corner, size / stage.width, 12 / stage.height, facecolor=colour, edgecolor="none"))


def _round_number(value: float) -> float:
    """The largest of 1, 2, 5, 10, 20, … (or 0.5, 0.2, …) that does not exceed a value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(max(step * power for step in (1.0, 2.0, 5.0) if step * power <= value * (1 + 1e-9)))
