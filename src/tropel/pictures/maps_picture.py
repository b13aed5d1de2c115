"""A picture of where it was crowded: mean and highest density, and the flow, over the map of the world."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.analysis import CrowdMaps, EvacuationReport
from tropel.pictures import style
from tropel.pictures.map import draw_map, margin_for
from tropel.pictures.moments import Moments
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
#: Arrows across the longer side of a map, at most.
_ARROWS = 34


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
    write_report_header(figure, report)
    moment = Moments(trajectory).at(int(trajectory.frames[-1]))
    note = f"cells of {maps.cell:g} m"
    panels = (
        (f"mean density while anybody was there, {note}", "persons / m²", maps.mean_density),
        (f"highest density, {note}", "persons / m²", maps.peak_density),
        (f"mean flow and its direction, {note}", "persons / (m s)", maps.flow_strength),
    )
    for number, (title, unit, grid) in enumerate(panels):
        left = _EDGE + _AXIS_LEFT + (0 if wide else number * across)
        top = _HEADER + (number * down if wide else 0)
        axes = style.add_axes(figure, left, top, view.width, view.height)
        draw_map(axes, scene, moment, view)
        shown = _draw_grid(axes, maps, grid)
        _name_axes(axes, view, title)
        key = style.add_axes(figure, left + view.width + 10, top, _KEY, min(view.height, 260))
        _draw_key(figure, key, shown, unit)
        if number == 2:
            _draw_arrows(axes, maps)
    return figure


def _draw_grid(axes: Axes, maps: CrowdMaps, grid: NDArray[np.float64]) -> Any:
    from matplotlib.colors import Normalize

    rows, columns = grid.shape
    x0, y0 = maps.corner
    return axes.imshow(
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


def _crowd_colours() -> Colormap:
    """From nearly white to nearly black, so that it can be read in grey and by anybody's eyes."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["magma_r"](np.linspace(0.04, 0.95, 256)), name="tropel crowd")


def _draw_arrows(axes: Axes, maps: CrowdMaps) -> None:
    """Arrows of one length for the direction; the colour below says how much. Many cells share an arrow."""
    rows, columns = maps.mean_density.shape
    block = max(1, -(-max(rows, columns) // _ARROWS))
    padded = np.zeros((-(-rows // block) * block, -(-columns // block) * block, 2))
    padded[:rows, :columns] = maps.flow
    flow = padded.reshape(padded.shape[0] // block, block, padded.shape[1] // block, block, 2).mean(axis=(1, 3))
    strength = np.hypot(flow[..., 0], flow[..., 1])
    strongest = float(strength.max())
    row, column = np.nonzero(strength > 0.02 * strongest)
    if len(row) == 0:
        return
    size = block * maps.cell
    direction = flow[row, column] / strength[row, column, None]
    x, y = maps.corner[0] + size * (column + 0.5), maps.corner[1] + size * (row + 0.5)
    dark = strength[row, column] > 0.5 * float(maps.flow_strength.max())
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


def _draw_key(figure: Figure, axes: Axes, shown: Any, unit: str) -> None:
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(shown, cax=axes)
    bar.outline.set_edgecolor(style.FAINT_INK)
    bar.outline.set_linewidth(0.8)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.tick_params(colors=style.FAINT_INK, labelcolor=style.INK, labelsize=style.SMALL_SIZE, length=3, width=0.8)
    axes.set_ylabel(unit, fontsize=style.SMALL_SIZE, color=style.INK, family=style.FONT, labelpad=3)


def _name_axes(axes: Axes, view: View, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    view.frame(axes)
    style.label_axes(axes, x="x [m]", y="y [m]", title=title)
    for axis, pixels in ((axes.xaxis, view.width), (axes.yaxis, view.height)):
        axis.set_major_locator(MaxNLocator(nbins=max(1, min(8, pixels // 60)), steps=[1, 2, 5, 10]))
