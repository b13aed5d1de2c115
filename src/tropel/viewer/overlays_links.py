"""Links from the selected agent to everybody it senses, and how far it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.pictures import style
from tropel.turns import reads_ground
from tropel.viewer.frame import in_space
from tropel.viewer.overlays import Canvas, Overlay
from tropel.viewer.shapes3d import instance_colours, rgb_array
from tropel.world.periodic import nearest_images

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Floats = NDArray[np.float64]

#: A plan is drawn from above: links lie over bodies [m].
_ABOVE = 0.9


@dataclass(frozen=True, eq=False, kw_only=True)
class Links:
    """Whom one agent senses."""

    here: Floats  #: where it is [m]
    rows: NDArray[np.int64]  #: of those it senses, ascending
    there: Floats  #: where they are [m]; beyond the seam of periodic space, where they are met
    reach: float  #: how far it senses [m]


def links_of(sim: Simulation, selected: int | None) -> Links | None:
    """Whom the selected agent senses. They are found for this one alone: lists of everybody's neighbours cost more, and
    the grid that makes them belongs to the run."""
    agents = sim.agents
    found = [] if selected is None else np.flatnonzero(agents.id == selected).tolist()
    if not found:
        return None
    row = found[0]
    if reads_ground(sim.layers.models[int(agents.group[row])]):
        return None
    straight = agents.position - agents.position[row]
    offset = nearest_images(straight, sim.world.period)
    reach = float(agents.sense_radius[row])
    near = (offset**2).sum(axis=1) <= reach**2
    near[row] = False
    rows = np.flatnonzero(near)
    there = agents.position[rows] + (offset - straight)[rows]
    return Links(here=agents.position[row].copy(), rows=rows, there=there, reach=reach)


def draw_links(canvas: Canvas, seen: Links) -> None:
    flat = len(seen.here) == 2
    lift = np.array([0.0, 0.0, _ABOVE if flat else 0.0], dtype=np.float32)
    here, there = in_space(seen.here[None]) + lift, in_space(seen.there) + lift
    ends = np.stack([np.broadcast_to(here, there.shape), there], axis=1)
    if flat:
        ends = np.concatenate([ends, _ring(here[0], seen.reach)])
    colours = np.broadcast_to(instance_colours(rgb_array([style.INK])), (len(ends), 2, 3))
    if not len(ends):
        canvas.clear()
        return
    node = canvas.nodes.get("links")
    if node is not None and len(node.points) == len(ends):
        node.points = ends
        return
    canvas.nodes["links"] = canvas.scene.add_line_segments(
        f"{canvas.path}/links", ends, colors=colours, thickness=1.4, thickness_units="screen"
    )


def _ring(middle: NDArray[np.float32], radius: float) -> NDArray[np.float32]:
    """A dashed circle: every second piece of it."""
    angle = np.linspace(0.0, 2.0 * np.pi, 97)
    around = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(97)]) * radius + middle
    return np.stack([around[:-1:2], around[1::2]], axis=1).astype(np.float32)


def _links_legend(seen: Links | None) -> str:
    if seen is None:
        return "Select an agent that senses others."
    square = f'<span style="color:{style.INK}">■</span>'
    return f"{square} {len(seen.rows)} within {seen.reach:.3g} m"


def _somebody_senses(sim: Simulation) -> bool:
    return sim.layers.somebody_senses


LINKS = Overlay(
    name="neighbour links",
    title="Neighbours",
    look=links_of,
    draw=draw_links,
    legend=_links_legend,
    seconds=0.1,
    fits=_somebody_senses,
)
