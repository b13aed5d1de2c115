"""A picture of where it was crowded: mean and highest density, and the flow, over the map of the world."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.analysis import CrowdMaps, EvacuationReport
from tropel.arguments import checked_arguments
from tropel.pictures import style
from tropel.pictures.map import draw_map, margin_for, outline_of, wall_width
from tropel.pictures.moments import Moments, parse_wkt
from tropel.pictures.report_picture import write_report_header
from tropel.pictures.saving import picture_path, save_figure
from tropel.pictures.view import View, fit_view
from tropel.recording import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# All lengths in pixels.
_EDGE = 22
_HEADER = 112
_AXIS_LEFT = 46
_AXIS_BELOW = 44
_KEY = 12  #: thickness of the bar that explains the colours
_KEY_ROOM = 66
_MAP_WIDTH = 520
_MAP_HEIGHT = 560
#: Maps wider than so many times their height stand one below the other.
_WIDE = 2.0
#: Room of an arrow at least.
_ARROW = 17


@checked_arguments
def draw_crowd_maps(report: EvacuationReport, trajectory: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Draw the maps of a report as a PNG: mean density, highest density and flow."""
    target = picture_path(path, ".png")
    return save_figure(crowd_maps_figure(report, trajectory), target)


def crowd_maps_figure(report: EvacuationReport, trajectory: Trajectory) -> Figure:
    """The figure that `draw_crowd_maps` saves."""
    scene, maps = trajectory.scene, report.maps
    bounds = np.array([corner[:2] for corner in scene.bounds])
    extent = bounds[1] - bounds[0]
    wide = bool(extent[0] > _WIDE * extent[1])
    view = fit_view(bounds, width=1060 if wide else _MAP_WIDTH, height=_MAP_HEIGHT, margin=margin_for(scene))
    across, down = view.width + _AXIS_LEFT + _KEY_ROOM, view.height + _AXIS_BELOW + 42
    width = 2 * _EDGE + (across if wide else 3 * across)
    figure = style.new_figure(max(width, 620), _HEADER + (3 * down if wide else down) + 8)
    write_report_header(figure, report, f"cells of {maps.cell:g} m", "means are over the time anybody was there")
    moment = Moments(trajectory).at(int(trajectory.frames[-1]))
    panels = (
        ("mean density [persons / m²]", maps.mean_density),
        ("highest density [persons / m²]", maps.peak_density),
        ("mean flow [persons / (m s)] and its direction", maps.flow_strength),
    )
    for number, (title, grid) in enumerate(panels):
        left = _EDGE + _AXIS_LEFT + (0 if wide else number * across)
        top = _HEADER + (number * down if wide else 0)
        axes = style.add_axes(figure, left, top, view.width, view.height)
        draw_map(axes, scene, moment, view)
        shown = _draw_grid(axes, maps, grid, moment.area_wkt, view)
        _name_axes(axes, view, title, name_y=wide or number == 0)
        key = style.add_axes(figure, left + view.width + 10, top, _KEY, min(view.height, 260))
        _draw_key(figure, key, shown)
        if number == 2:
            _draw_arrows(axes, maps, view)
    return figure


def _draw_grid(axes: Axes, maps: CrowdMaps, grid: NDArray[np.float64], area_wkt: str, view: View) -> Any:
    """Cells where anybody was, cut off at the walls."""
    from matplotlib.colors import Normalize
    from matplotlib.patches import PathPatch

    rows, columns = grid.shape
    x0, y0 = maps.corner
    shown = axes.imshow(
        np.ma.masked_equal(grid, 0.0),
        origin="lower",
        extent=(x0, x0 + columns * maps.cell, y0, y0 + rows * maps.cell),
        cmap=_crowd_colours(),
        norm=Normalize(0.0, float(grid.max()) or 1.0),
        interpolation="nearest",
        aspect="auto",
        # Above the floor, below walls, exits and names.
        zorder=2.5,
    )
    floor = parse_wkt(area_wkt, "walkable area") if area_wkt else None
    outline = None if floor is None else outline_of(floor)
    if outline is not None:
        line: dict[str, Any] = {"edgecolor": style.WALL, "linewidth": wall_width(floor, view), "joinstyle": "miter"}
        edge = PathPatch(outline, facecolor="none", zorder=2.6, **line)
        axes.add_patch(edge)
        shown.set_clip_path(edge)
    return shown


def _crowd_colours() -> Colormap:
    """From nearly white to nearly black, so that it can be read in grey and by anybody's eyes."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["magma_r"](np.linspace(0.04, 0.95, 256)), name="tropel crowd")


def _draw_arrows(axes: Axes, maps: CrowdMaps, view: View) -> None:
    """Arrows of one length for the direction; the colour below says how much. Where cells are small, some share one."""
    columns = maps.mean_density.shape[1]
    block = max(1, math.ceil(_ARROW / (maps.cell * view.scale)))
    row, column = np.nonzero(maps.flow_strength > 0.02 * maps.flow_strength.max(initial=0.0))
    if len(row) == 0:
        return
    flow, strength = maps.flow[row, column], maps.flow_strength[row, column]
    _, group = np.unique((row // block) * columns + column // block, return_inverse=True)
    # An arrow stands where most of its cells' flow is, and so not beyond the wall beside it.
    total = np.bincount(group, weights=strength)
    x, y = (np.bincount(group, weights=strength * place) / total for place in (maps.x[column], maps.y[row]))
    along = np.stack([np.bincount(group, weights=part) for part in flow.T], axis=1)
    direction = along / np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    size = block * maps.cell
    under = maps.flow_strength[
        ((y - maps.corner[1]) / maps.cell).astype(int), ((x - maps.corner[0]) / maps.cell).astype(int)
    ]
    dark = under > 0.5 * maps.flow_strength.max()
    for chosen, colour in ((dark, style.PAPER), (~dark, style.INK)):
        axes.quiver(
            x[chosen],
            y[chosen],
            *(0.75 * size * direction[chosen].T),
            color=colour,
            angles="xy",
            scale_units="xy",
            scale=1.0,
            pivot="mid",
            units="xy",
            width=0.07 * size,
            headwidth=4.0,
            headlength=4.0,
            headaxislength=3.6,
            zorder=4.5,
        )


def _draw_key(figure: Figure, axes: Axes, shown: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(shown, cax=axes)
    bar.outline.set_edgecolor(style.FAINT_INK)
    bar.outline.set_linewidth(0.8)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.tick_params(colors=style.FAINT_INK, labelcolor=style.INK, labelsize=style.SMALL_SIZE, length=3, width=0.8)


def _name_axes(axes: Axes, view: View, title: str, *, name_y: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    view.frame(axes)
    style.label_axes(axes, x="x [m]", y="y [m]" if name_y else "", title=title)
    for axis, pixels in ((axes.xaxis, view.width), (axes.yaxis, view.height)):
        axis.set_major_locator(MaxNLocator(nbins=max(1, min(8, pixels // 60)), steps=[1, 2, 5, 10]))
