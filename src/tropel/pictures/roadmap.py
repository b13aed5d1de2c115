"""The picture of a roadmap: the map, nodes and edges, the graph over doors, and a path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.pictures import style
from tropel.pictures.field import as_declared, name_axes
from tropel.pictures.layout import AXIS_BELOW, AXIS_LEFT, EDGE, HEADER
from tropel.pictures.map import draw_map, draw_obstacles, margin_for
from tropel.pictures.style import picture_path, save_figure
from tropel.pictures.viewport import fit_view
from tropel.recording import Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
_NARROWEST = 560


def _none() -> Floats:
    return np.empty((0, 2, 2))


@dataclass(frozen=True, eq=False, kw_only=True)
class RoadmapLines:
    """What is drawn of a roadmap."""

    edges: Floats = field(default_factory=_none)  #: (E, 2, 2) [m]
    gross: Floats = field(default_factory=_none)  #: (G, 2, 2) of the graph over doors
    blocked: Floats = field(default_factory=_none)  #: (B, 2, 2)
    paths: Sequence[Floats] = ()  #: (L, 2) each, from the start to the goal


def draw_roadmap(
    scene: Scene, lines: RoadmapLines, path: str | os.PathLike[str], *, title: str = "", facts: Sequence[str] = ()
) -> Path:
    """Draw a roadmap over its world as a PNG."""
    return save_figure(roadmap_figure(scene, lines, title=title, facts=facts), picture_path(path, ".png"))


def roadmap_figure(scene: Scene, lines: RoadmapLines, *, title: str = "", facts: Sequence[str] = ()) -> Figure:
    """The figure that `draw_roadmap` saves."""
    view = fit_view(np.asarray(scene.bounds), width=1000, height=860, margin=margin_for(scene))
    left = EDGE + AXIS_LEFT
    figure = style.new_figure(max(left + view.width + EDGE, _NARROWEST), HEADER + view.height + AXIS_BELOW + EDGE)
    style.add_text(figure, EDGE, 16, style.shortened(title, 70), fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, EDGE, 43, "  ·  ".join(facts), color=style.FAINT_INK)
    axes = style.add_axes(figure, left, HEADER, view.width, view.height)
    moment = as_declared(scene)
    draw_obstacles(axes, moment.obstacles.values(), view, scene)
    draw_map(axes, scene, moment, view)
    draw_lines(axes, lines)
    name_axes(axes, view)
    return figure


def draw_lines(axes: Axes, lines: RoadmapLines) -> None:
    """Edges below, paths on top."""
    from matplotlib.collections import LineCollection

    kinds = ((lines.edges, style.RULE, 0.7, 2.0), (lines.gross, style.GROUPS[1], 1.4, 2.5),
             (lines.blocked, style.CLOSED_DOOR, 1.6, 6.0))  # fmt: skip
    for ends, colour, width, order in kinds:
        if len(ends):
            axes.add_collection(
                LineCollection(list(ends), colors=colour, linewidths=width, zorder=order), autolim=False
            )
    if len(lines.edges):
        nodes = np.unique(lines.edges.reshape(-1, 2), axis=0)
        axes.scatter(nodes[:, 0], nodes[:, 1], s=3.0, color=style.FAINT_INK, linewidths=0.0, zorder=2.2)
    for points in lines.paths:
        axes.plot(points[:, 0], points[:, 1], color=style.OPEN_DOOR, linewidth=2.2, zorder=7.0)
        axes.scatter(points[1:-1, 0], points[1:-1, 1], s=16.0, color=style.OPEN_DOOR, zorder=7.1)
        axes.scatter(points[0, 0], points[0, 1], s=42.0, color=style.INK, zorder=7.2)
        axes.scatter(points[-1, 0], points[-1, 1], s=60.0, marker="*", color=style.TARGET, zorder=7.2)
