"""Overlays about the kinetic environment: its triangulation with the walls in it, and the near set of an agent.

The near set (LAYERS figure 5) is everybody that the selected agent can approach, with the edges that cross its circle:
only their outer ends can come in next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.contracts.offers import Neighbourhood, OfferedTriangulation, offered
from tropel.pictures import style
from tropel.viewer.frame import in_space
from tropel.viewer.overlays.agents import dashed_ring
from tropel.viewer.overlays.overlay import Canvas, Overlay
from tropel.viewer.shapes3d import instance_colours, rgb_array
from tropel.viewer.world_drawing import wall_height

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Floats = NDArray[np.float64]

#: More edges than this would be a grey sheet, and slow to send.
MOST_EDGES = 30_000
#: Near sets lie just above the edges, below the bodies, and walls just above the walls of the world [m]: higher up, a
#: camera in the middle would show them aside of what they belong to.
_ABOVE = 0.01
_WALLS, _CROSSING, _KNOWN = style.CLOSED_DOOR, style.OPEN_DOOR, style.EXIT


@dataclass(frozen=True, eq=False, kw_only=True)
class Triangulated:
    """The edges of a triangulation."""

    edges: Floats  #: (E, 2, 2) [m]
    walls: Floats  #: (W, 2, 2)


def _offer(sim: Simulation) -> OfferedTriangulation | None:
    return next(iter(offered(sim.all_layers(), OfferedTriangulation)), None)


def _has_triangulation(sim: Simulation) -> bool:
    return _offer(sim) is not None


def look_at_triangulation(sim: Simulation, selected: int | None) -> Triangulated | None:
    """The present triangulation, unless it has too many edges to be seen."""
    offer = _offer(sim)
    if offer is None:
        return None
    edges = offer.edges()
    return Triangulated(edges=edges, walls=offer.walls()) if 0 < len(edges) <= MOST_EDGES else None


def draw_triangulation(canvas: Canvas, seen: Triangulated) -> None:
    _lines(canvas, "edges", seen.edges, style.FAINT_INK, height=canvas.height, thickness=1.0)
    _lines(canvas, "walls", seen.walls, _WALLS, height=wall_height(canvas.world) + _ABOVE, thickness=2.5)


def look_at_near_set(sim: Simulation, selected: int | None) -> Neighbourhood | None:
    """The neighbourhood of the selected agent."""
    offer = _offer(sim)
    return None if offer is None or selected is None else offer.around(selected)


def draw_near_set(canvas: Canvas, seen: Neighbourhood) -> None:
    here, height = np.broadcast_to(seen.here, seen.known.shape), canvas.height + _ABOVE
    _lines(canvas, "known", np.stack([here, seen.known], axis=1), _KNOWN, height=height, thickness=1.8)
    _lines(canvas, "crossing", seen.crossing, _CROSSING, height=height, thickness=2.0)
    ring = dashed_ring(np.array([*seen.here, height], dtype=np.float32), seen.reach)
    colours = np.broadcast_to(instance_colours(rgb_array([style.INK])), (len(ring), 2, 3))
    canvas.scene.add_line_segments(f"{canvas.path}/ring", ring, colors=colours, thickness=1.4, thickness_units="screen")


def _lines(canvas: Canvas, name: str, ends: Floats, colour: str, *, height: float, thickness: float) -> None:
    if not len(ends):
        canvas.scene.remove_by_name(f"{canvas.path}/{name}")
        return
    lifted = in_space(ends.reshape(-1, 2)).reshape(-1, 2, 3) + np.array([0.0, 0.0, height], dtype=np.float32)
    colours = np.broadcast_to(instance_colours(rgb_array([colour])), (len(ends), 2, 3))
    canvas.scene.add_line_segments(
        f"{canvas.path}/{name}", lifted, colors=colours, thickness=thickness, thickness_units="screen"
    )


def _square(colour: str) -> str:
    return f'<span style="color:{colour}">■</span>'


def _triangulation_legend(seen: Triangulated | None) -> str:
    if seen is None:
        return f"Nothing to show, or more than {MOST_EDGES:,} edges."
    walls = f", {_square(_WALLS)} {len(seen.walls)} edges that are walls" if len(seen.walls) else ""
    return f"{_square(style.FAINT_INK)} {len(seen.edges)} edges{walls}"


def _near_set_legend(seen: Neighbourhood | None) -> str:
    if seen is None:
        return "Select an agent."
    return (
        f"{_square(_KNOWN)} {len(seen.known)} near, {_square(_CROSSING)} {len(seen.crossing)} edges across the circle"
    )


TRIANGULATION = Overlay(
    name="triangulation",
    title="Triangulation",
    look=look_at_triangulation,
    draw=draw_triangulation,
    legend=_triangulation_legend,
    seconds=0.2,
    fits=_has_triangulation,
)

NEAR_SET = Overlay(
    name="near set",
    title="Near set",
    look=look_at_near_set,
    draw=draw_near_set,
    legend=_near_set_legend,
    seconds=0.1,
    fits=_has_triangulation,
)
