"""Pictures of cells side by side: the best moves of each, or what each is worth (figures 3 and 7 of lattice crowds)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.pictures import style
from tropel.pictures.saving import picture_path, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All lengths in pixels.
_PANEL, _EDGE, _TOP, _BELOW, _BETWEEN = 700, 24, 104, 28, 28
_STRIP, _STRIP_LABELS = 14, 74
#: How far arrows reach from the middle of a cell [cells].
_REACH = 0.55
_TARGET = style.EXIT


@dataclass(frozen=True, kw_only=True, eq=False)
class CellsPanel:
    """What is drawn of one raster, row 0 at the bottom. Give `moves`, `worth` or both."""

    title: str
    free: NDArray[np.bool_]  #: (ny, nx)
    goal: NDArray[np.bool_] | None = None  #: (ny, nx)
    #: Rows (row, column, dx, dy): every move that is as good as the best of its cell
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
        raise ParameterError("there is nothing to draw: give at least one panel")
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
    """An arrow for each move; the colours tell which way it goes sideways, apart from the arrow itself."""
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
