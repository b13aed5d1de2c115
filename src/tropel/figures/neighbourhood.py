"""LAYERS figure 5: the near environment of an agent in a constrained Delaunay triangulation, without and with walls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from tropel.agents.groups import Group
from tropel.agents.state import Floats
from tropel.contracts.offers import Neighbourhood, OfferedTriangulation, offered
from tropel.environment.kinetic.model import Kinetic, Visibility
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure
from tropel.simulation import Simulation
from tropel.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The room, people in it, and whose neighbourhood is shown: whoever is nearest to this point [m].
_ROOM, _PEOPLE, _HERE, _REACH = (20.0, 14.0), 150, (9.0, 7.0), 4.0
_WALLS = [[(12.0, 0.0), (12.0, 9.0)], [(3.0, 9.5), (8.0, 12.0)], [(7.6, 4.6), (8.6, 3.6)]]
# All lengths in pixels.
_PANEL, _EDGE, _TOP, _BETWEEN, _BELOW = 620, 24, 96, 28, 24


def draw_near_environment(path: Path) -> list[Path]:
    """Draw both panels as a PNG."""
    high = round(_PANEL * _ROOM[1] / _ROOM[0])
    figure = style.new_figure(2 * _EDGE + 2 * _PANEL + _BETWEEN, _TOP + high + _BELOW)
    style.add_text(figure, _EDGE, 16, "The near environment of an agent", fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(
        figure,
        _EDGE,
        42,
        "Filled: whom it can approach. Blue: the edges that cross its circle; only their outer ends can come in next.",
        color=style.FAINT_INK,
    )
    panels: list[tuple[Visibility, str]] = [("near", "without walls"), ("approachable", "walls are edges")]
    for k, (visibility, title) in enumerate(panels):
        axes = style.add_axes(figure, _EDGE + k * (_PANEL + _BETWEEN), _TOP, _PANEL, high)
        axes.set_title(title, fontsize=style.TEXT_SIZE, loc="left", color=style.INK, family=style.FONT)
        _draw_panel(axes, *_triangulated(visibility))
    return [save_figure(figure, picture_path(path, ".png"))]


def _triangulated(visibility: Visibility) -> tuple[OfferedTriangulation, Neighbourhood, Floats]:
    """The triangulation of a crowd, the neighbourhood of one agent in it, and where everybody is."""
    environment = Kinetic(visibility=visibility)
    world = World(shapely.box(0.0, 0.0, *_ROOM), walls=_WALLS)
    people = Group("people", count=_PEOPLE, radius=0.2, sense_radius=_REACH, goal="none")
    sim = Simulation(world, people, environment=environment, seed=3)
    sim.sense()
    offer = offered([environment], OfferedTriangulation)[0]
    place = sim.agents.position
    chosen = int(sim.agents.id[np.argmin(np.hypot(*(place - _HERE).T))])
    around = offer.around(chosen)
    assert around is not None
    return offer, around, place.copy()


def _draw_panel(axes: Axes, offer: OfferedTriangulation, around: Neighbourhood, place: Floats) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    def lines(ends: Any, colour: str, width: float, order: int) -> None:
        axes.add_collection(LineCollection(list(ends), colors=colour, linewidths=width, zorder=order))

    axes.set(xlim=(-0.3, _ROOM[0] + 0.3), ylim=(-0.3, _ROOM[1] + 0.3), aspect="equal", xticks=[], yticks=[])
    lines(offer.edges(), style.RULE, 0.8, 1)
    lines(offer.walls(), style.WALL, 2.2, 4)
    lines(around.crossing, style.OPEN_DOOR, 1.2, 3)
    axes.add_patch(Circle(tuple(around.here), around.reach, fill=False, edgecolor=style.INK, linewidth=1.4, zorder=5))
    axes.scatter(place[:, 0], place[:, 1], s=16, facecolors=style.PAPER, edgecolors=style.FAINT_INK, zorder=6)
    axes.scatter(around.known[:, 0], around.known[:, 1], s=20, color=style.EXIT, zorder=7)
    axes.scatter([around.here[0]], [around.here[1]], s=44, color=style.CLOSED_DOOR, zorder=8)
