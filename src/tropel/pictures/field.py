"""The picture of a planned field: the map, coloured by the distance to the goal, with streamlines of the directions."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.pictures import style
from tropel.pictures.layout import AXIS_BELOW, AXIS_LEFT, EDGE, HEADER
from tropel.pictures.map import draw_map, draw_obstacles, margin_for
from tropel.pictures.recorded_world import WorldAt
from tropel.pictures.style import picture_path, save_figure
from tropel.pictures.viewport import Viewport, fit_view
from tropel.recording import Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.figure import Figure


# Streamlines follow a field of directions on a raster and keep about the same distance from each other. Matplotlib's
# streamplot breaks lines into pieces as short as a corridor is wide in a maze. Here a line begins where the path to the
# goal is longest and ends when it comes close to an earlier one, so that lines join like the branches of a tree.

Floats = NDArray[np.float64]

#: Length of a step along a line, in cells.
_STEP = 0.5
#: A line ends this near to an earlier one, as a share of the distance at which lines begin.
_JOIN = 0.45


def streamlines(
    vectors: Floats, inside: NDArray[np.bool_], first: Floats, *, apart: float, shortest: float
) -> list[Floats]:
    """Lines (n, 2) in cells, x first, with the centre of the first cell at (0, 0).

    The lines follow `vectors` (ny, nx, 2) where `inside` is true. They begin at least `apart` cells from earlier ones,
    at cells with a high `first` (ny, nx) before others, and are left out if shorter than `shortest` cells.
    """
    begin_free = inside.copy()
    go_free = inside.copy()
    around, close = _disc(apart), _disc(_JOIN * apart)
    cells = np.flatnonzero(inside)
    across = inside.shape[1]
    lines = []
    for cell in cells[np.argsort(-first.ravel()[cells], kind="stable")].tolist():
        row, column = divmod(cell, across)
        if not begin_free[row, column]:
            continue
        line = _follow(vectors, go_free, float(column), float(row), apart)
        begin_free[row, column] = False
        if (len(line) - 1) * _STEP < shortest:
            continue
        lines.append(line)
        covered = np.unique(np.rint(line[:: max(1, int(0.5 / _STEP))]).astype(np.int64), axis=0)
        for free, disc in ((begin_free, around), (go_free, close)):
            reached = (covered[:, None, ::-1] + disc).reshape(-1, 2)
            reached = reached[((reached >= 0) & (reached < inside.shape)).all(axis=1)]
            free[reached[:, 0], reached[:, 1]] = False
    return lines


def _disc(radius: float) -> NDArray[np.int64]:
    """Offsets (rows, columns) of the cells within a radius."""
    most = math.floor(radius)
    steps = np.mgrid[-most : most + 1, -most : most + 1].reshape(2, -1).T
    return steps[(steps**2).sum(axis=1) <= radius * radius]


def _follow(vectors: Floats, free: NDArray[np.bool_], x: float, y: float, apart: float) -> Floats:
    height, width = free.shape
    seen: dict[tuple[int, int], int] = {}
    points = [(x, y)]
    # A painted field may lead in circles.
    recent = int(4.0 * apart / _STEP) + 4
    for number in range(1, 20 * (height + width)):
        # The midpoint method: with plain steps lines drift outwards in curves.
        dx, dy = _unit(vectors, x, y)
        dx, dy = _unit(vectors, x + 0.5 * _STEP * dx, y + 0.5 * _STEP * dy)
        if dx == dy == 0.0:
            break
        x, y = x + _STEP * dx, y + _STEP * dy
        cell = (round(y), round(x))
        if not (0 <= cell[0] < height and 0 <= cell[1] < width) or not free[cell]:
            break
        if number - seen.setdefault(cell, number) > recent:
            break
        points.append((x, y))
    return np.array(points)


def _unit(vectors: Floats, x: float, y: float) -> tuple[float, float]:
    """The direction at a point between cells; zero where there is none."""
    column, row = math.floor(x), math.floor(y)
    right, up = x - column, y - row
    dx = dy = 0.0
    for i, j, weight in (
        (row, column, (1 - up) * (1 - right)),
        (row, column + 1, (1 - up) * right),
        (row + 1, column, up * (1 - right)),
        (row + 1, column + 1, up * right),
    ):
        if weight > 0.0 and 0 <= i < vectors.shape[0] and 0 <= j < vectors.shape[1]:
            dx += weight * vectors[i, j, 0]
            dy += weight * vectors[i, j, 1]
    length = math.hypot(dx, dy)
    return (dx / length, dy / length) if length > 1e-3 else (0.0, 0.0)


Bools = NDArray[np.bool_]

# All lengths in pixels.
_STRIP = 14
_STRIP_LABELS = 80
_NARROWEST = 460
#: Between lines, and between the arrowheads on one.
_LINES_APART = 11.0
_ARROWS_APART = 64.0
_ARROW = 7.5
#: Lines are followed on at most this many cells per side; more would not be visible.
_MOST_CELLS = 600


@dataclass(frozen=True, kw_only=True, eq=False)
class FieldValues:
    """A planar field as plain arrays: a raster of cells, and the values of each."""

    origin: Floats  #: low corner of the first cell [m]
    cell: float  #: [m]
    free: Bools  #: (ny, nx): where people can stand
    reachable: Bools  #: (ny, nx): where a path leads to the goal
    vectors: Floats  #: (ny, nx, 2): the direction to go
    far: Floats  #: (ny, nx): distance to the goal
    far_means: str  #: what that distance is called, with its unit

    def coarser(self, most: int) -> FieldValues:
        """Every second (third, …) cell, so that there are at most `most` along a side."""
        step = -(-max(self.free.shape) // most)
        if step <= 1:
            return self
        # A field with few rows keeps one of them.
        first = np.minimum(step // 2, np.array(self.free.shape) - 1)
        pick = tuple(slice(start, None, step) for start in first.tolist())
        return FieldValues(
            origin=self.origin + (first[::-1] + 0.5 - 0.5 * step) * self.cell,
            cell=step * self.cell,
            free=self.free[pick],
            reachable=self.reachable[pick],
            vectors=self.vectors[pick],
            far=self.far[pick],
            far_means=self.far_means,
        )


def draw_field(
    scene: Scene, values: FieldValues, path: str | os.PathLike[str], *, title: str = "", facts: Sequence[str] = ()
) -> Path:
    """Draw a field over its world as a PNG."""
    target = picture_path(path, ".png")
    return save_figure(field_figure(scene, values, title=title, facts=facts), target)


def field_figure(scene: Scene, values: FieldValues, *, title: str = "", facts: Sequence[str] = ()) -> Figure:
    """The figure that `draw_field` saves."""
    view = fit_view(np.asarray(scene.bounds), width=1000, height=860, margin=margin_for(scene))
    left = EDGE + AXIS_LEFT
    figure = style.new_figure(
        max(left + view.width + EDGE + _STRIP + _STRIP_LABELS, _NARROWEST), HEADER + view.height + AXIS_BELOW + EDGE
    )
    style.add_text(figure, EDGE, 16, style.shortened(title, 70), fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, EDGE, 43, "  ·  ".join(facts), color=style.FAINT_INK)
    axes = style.add_axes(figure, left, HEADER, view.width, view.height)
    colours, norm = _colours(), _norm(values)
    _draw_ground(axes, values, colours, norm)
    _draw_lines(axes, values.coarser(_MOST_CELLS), view, colours, norm)
    moment = as_declared(scene)
    draw_obstacles(axes, moment.obstacles.values(), view, scene)
    draw_map(axes, scene, moment, view)
    name_axes(axes, view)
    if values.reachable.any():
        _draw_strip(figure, values, colours, norm, (left + view.width + EDGE, HEADER, _STRIP, view.height))
    return figure


def _colours() -> ListedColormap:
    """Light at the goal, dark far away."""
    return style.time_colours().reversed()


def _norm(values: FieldValues) -> Normalize:
    from matplotlib.colors import Normalize

    far = values.far[values.reachable]
    return Normalize(float(far.min(initial=0.0)), float(far.max(initial=0.0)) or 1.0, clip=True)


def _draw_ground(axes: Axes, values: FieldValues, colours: ListedColormap, norm: Normalize) -> None:
    """Every free cell in a pale colour; cells without a path to the goal stand out."""
    height, width = values.free.shape
    low = values.origin
    picture = np.zeros((height, width, 4))
    picture[values.reachable] = colours(norm(values.far[values.reachable]))
    picture[values.reachable, 3] = 0.38
    picture[values.free & ~values.reachable] = _rgba(style.CLOSED_DOOR, 0.55)
    extent = (low[0], low[0] + width * values.cell, low[1], low[1] + height * values.cell)
    axes.imshow(picture, origin="lower", extent=extent, interpolation="nearest", aspect="auto", zorder=1.5)


def _draw_lines(axes: Axes, values: FieldValues, view: Viewport, colours: ListedColormap, norm: Normalize) -> None:
    from matplotlib.collections import LineCollection, PolyCollection

    pixels = view.scale * values.cell
    apart = max(_LINES_APART / pixels, 2.0)
    first = np.where(values.reachable, values.far, -np.inf)
    lines = streamlines(values.vectors, values.reachable, first, apart=apart, shortest=min(18.0 / pixels, 4.0 * apart))
    pieces, tints, arrows, arrow_tints = [], [], [], []
    for line in lines:
        index = np.rint(line).astype(np.int64)
        tint = _darker(colours(norm(values.far[index[:, 1], index[:, 0]])))
        place = values.origin + (line + 0.5) * values.cell
        pieces.append(np.stack([place[:-1], place[1:]], axis=1))
        tints.append(tint[1:])
        for number in _arrow_places(place, view):
            arrows.append(_arrow(place, number, _ARROW / view.scale))
            arrow_tints.append(tint[number])
    if not pieces:
        return
    axes.add_collection(
        LineCollection(list(np.concatenate(pieces)), colors=np.concatenate(tints), linewidths=0.9, zorder=3),
        autolim=False,
    )
    axes.add_collection(PolyCollection(arrows, facecolors=arrow_tints, edgecolors="none", zorder=3.2), autolim=False)


def _arrow_places(place: Floats, view: Viewport) -> list[int]:
    """Indices of the points of a line that get arrowheads: some distance from its start, then evenly spaced."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(place, axis=0), axis=1))]) * view.scale
    wanted = np.arange(min(0.5 * along[-1], 0.5 * _ARROWS_APART), along[-1], _ARROWS_APART)
    return [int(number) for number in np.searchsorted(along, wanted) if 0 < number < len(place)]


def _arrow(place: Floats, number: int, size: float) -> Floats:
    """A triangle around a point of a line, pointing along it."""
    ahead = place[number] - place[max(number - 2, 0)]
    ahead = ahead / max(float(np.linalg.norm(ahead)), 1e-12) * size
    side = np.array([-ahead[1], ahead[0]]) * 0.42
    tip = place[number] + 0.5 * ahead
    return np.array([tip, tip - ahead + side, tip - 0.7 * ahead, tip - ahead - side])


def _darker(colours: Any) -> Floats:
    """Dark enough to be visible on the pale ground of the same colour."""
    dark = np.array(colours, dtype=np.float64)
    dark[:, :3] *= 0.72
    return dark


def _rgba(colour: str, alpha: float) -> tuple[float, float, float, float]:
    from matplotlib.colors import to_rgba

    red, green, blue, _ = to_rgba(colour)
    return red, green, blue, alpha


def _draw_strip(
    figure: Figure,
    values: FieldValues,
    colours: ListedColormap,
    norm: Normalize,
    box: tuple[float, float, float, float],
) -> None:
    """The colour scale and what it means."""
    strip = style.add_axes(figure, *box)
    low, high = float(norm.vmin or 0.0), float(norm.vmax or 1.0)
    strip.imshow(
        np.linspace(low, high, 512)[:, None],
        cmap=colours,
        norm=norm,
        aspect="auto",
        origin="lower",
        extent=(0, 1, low, high),
    )
    strip.set_xticks([])
    strip.yaxis.tick_right()
    strip.yaxis.set_label_position("right")
    style.label_axes(strip, y=values.far_means)


def name_axes(axes: Axes, view: Viewport) -> None:
    """Label both sides of a map in metres."""
    from matplotlib.ticker import MaxNLocator

    style.label_axes(axes, x="x [m]", y="y [m]")
    for axis, pixels in ((axes.xaxis, view.width), (axes.yaxis, view.height)):
        axis.set_major_locator(MaxNLocator(nbins=max(1, min(8, pixels // 60)), steps=[1, 2, 5, 10]))
    axes.ticklabel_format(useOffset=False, style="plain")


def as_declared(scene: Scene) -> WorldAt:
    """The world as declared, before any event."""
    return WorldAt(
        area_wkt=scene.walkable_wkt,
        doors={name: bool(door["open"]) for name, door in scene.doors.items()},
        exits=dict.fromkeys(scene.exits, True),
        obstacles={name: (tuple(o["position"]), float(o["radius"])) for name, o in scene.obstacles.items()},
        targets={name: tuple(t["position"]) for name, t in scene.targets.items() if "position" in t},
        ways=tuple(name for name, t in scene.targets.items() if "path" in t),
    )
