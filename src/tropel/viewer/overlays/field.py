"""The planning field: distance to the goal as colours, and directions as arrows.

It is the field of the selected agent or, if none is selected, of the most common goal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.goals import goal_name
from tropel.agents.state import NO_GOAL
from tropel.contracts.offers import FieldOnRaster, OfferedField, OfferedPainting, offered
from tropel.pictures import style
from tropel.viewer.colours import plain
from tropel.viewer.overlays.cells import MOST_PIXELS, GroundPicture, draw_picture, picture_legend
from tropel.viewer.overlays.overlay import Canvas, Overlay
from tropel.viewer.shapes3d import instance_colours, rgb_array

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Floats = NDArray[np.float64]

#: Most arrows along the longer side of the world.
_MOST_ARROWS = 40
#: Length of an arrow, as a share of the distance between two arrows.
_ARROW = 0.7
_INK = tuple(instance_colours(rgb_array([style.INK]))[0].tolist())


@dataclass(frozen=True, eq=False, kw_only=True)
class Arrows:
    """Directions at places on a grid."""

    ends: Floats  #: (N, 2, 2): from, to [m]
    size: float  #: length of the longest possible arrow [m]
    goal: str


# The field that is shown ----------------------------------------------------------------------------------------


def shown_row(sim: Simulation, selected: int | None) -> int | None:
    """The row of the agent whose field is shown: the selected one, or one with the most common goal. Only living agents
    count: their plans exist already, and looking must not make another."""
    agents = sim.agents
    wanting = np.flatnonzero((agents.dead == 0) & (agents.goal > NO_GOAL))
    if selected is not None:
        chosen = wanting[agents.id[wanting] == selected]
        return int(chosen[0]) if len(chosen) else None
    if not len(wanting):
        return None
    _, first, counts = np.unique(agents.goal[wanting], return_index=True, return_counts=True)
    return int(wanting[first[np.argmax(counts)]])


def _has_field(sim: Simulation) -> bool:
    return sim.world.dim == 2 and bool(offered(sim.planners.values(), OfferedField))


def _has_ways(sim: Simulation) -> bool:
    paints = any(painting.alone for painting in offered(sim.planners.values(), OfferedPainting))
    return _has_field(sim) or (sim.world.dim == 2 and paints)


def _field_of(sim: Simulation, row: int) -> FieldOnRaster | None:
    """The field that the agent in a row follows, even as part of a blend or behind a painted one."""
    agents = sim.agents
    fields = offered([sim.planners[sim.groups[int(agents.group[row])]]], OfferedField)
    return fields[0].field(goal_name(sim.world, int(agents.goal[row]))) if fields else None


# As colours -----------------------------------------------------------------------------------------------------


def field_picture(sim: Simulation, selected: int | None = None) -> GroundPicture | None:
    """Distance to the goal: in metres if the planner knows them, otherwise the field's own value."""
    row = shown_row(sim, selected)
    field = None if row is None else _field_of(sim, row)
    if row is None or field is None:
        return None
    raster = field.raster
    skip = max(1, -(-max(raster.shape) // MOST_PIXELS))
    thin = (slice(skip // 2, None, skip),) * 2
    value, goal = field.value[thin], field.goal[thin]
    metres = field.metres_per_value
    way = value * metres if metres else -value
    way = np.where(raster.free[thin] & np.isfinite(way), way, np.nan)
    way[goal & raster.free[thin]] = 0.0 if metres else np.nanmin(way, initial=0.0)
    known = way[np.isfinite(way)]
    if not known.size:
        return None
    name = plain(goal_name(sim.world, int(sim.agents.goal[row])))
    return GroundPicture(
        values=way,
        origin=raster.origin.copy(),
        cell=raster.cell * skip,
        low=float(known.min()),
        high=float(known.max()),
        about=f"Path length to {name}" if metres else f"Distance to {name}, in the units of the field",
        unit="m" if metres else "",
    )


COLOURS = Overlay(
    name="planning field",
    title="planning field",
    look=field_picture,
    draw=draw_picture,
    legend=picture_legend,
    seconds=1.0,
    covers_ground=True,
    fits=_has_field,
)


# As arrows ------------------------------------------------------------------------------------------------------


def field_arrows(sim: Simulation, selected: int | None = None) -> Arrows | None:
    """Arrows on a grid over the world, where the field has a direction."""
    row = shown_row(sim, selected)
    if row is None:
        return None
    low, high = sim.world.bounds
    apart = max(float((high - low).max()) / _MOST_ARROWS, 1e-6)
    x, y = (np.arange(low[k] + 0.5 * apart, high[k], apart) for k in range(2))
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    ways = _ways(sim, row, places)
    if ways is None:
        return None
    lengths = np.linalg.norm(ways, axis=1)
    there = lengths > 0.05
    half = 0.5 * _ARROW * apart * (ways / np.maximum(lengths, 1.0)[:, None])[there]
    return Arrows(
        ends=np.stack([places[there] - half, places[there] + half], axis=1),
        size=_ARROW * apart,
        goal=goal_name(sim.world, int(sim.agents.goal[row])),
    )


def _ways(sim: Simulation, row: int, places: Floats) -> Floats | None:
    """Vectors at places: the painted ones, otherwise those of the field."""
    planner = sim.planners[sim.groups[int(sim.agents.group[row])]]
    field = _field_of(sim, row)
    ways = np.zeros_like(places)
    if field is not None:
        inside = np.all((places >= field.raster.origin) & (places < _far_corner(field)), axis=1, keepdims=True)
        cells = field.raster.index_of(places)
        ways = np.where(inside, field.vectors[cells[:, 0], cells[:, 1]], 0.0)
    paintings = [painting for painting in offered([planner], OfferedPainting) if painting.alone]
    if paintings:
        # No agent needs to stand at these places, so the painted field may be undefined there.
        with np.errstate(all="ignore"):
            painted = paintings[0].at(places)
        is_painted = np.linalg.norm(painted, axis=1) > 0.0
        ways = np.where(is_painted[:, None], painted, ways)
    elif field is None:
        return None
    return ways


def _far_corner(field: FieldOnRaster) -> Floats:
    return np.asarray(field.raster.origin + field.raster.cell * np.array(field.raster.shape[::-1]))


def draw_arrows(canvas: Canvas, seen: Arrows) -> None:
    if not len(seen.ends):
        canvas.clear()
        return
    points = np.concatenate([seen.ends, np.full((*seen.ends.shape[:2], 1), canvas.height + 0.06)], axis=-1)
    known = canvas.nodes.get("ends")
    if known is not None and np.array_equal(known, seen.ends):
        return
    canvas.nodes["ends"] = seen.ends
    canvas.scene.add_arrows(
        f"{canvas.path}/arrows",
        points.astype(np.float32),
        colors=_INK,
        shaft_radius=0.05 * seen.size,
        head_radius=0.18 * seen.size,
        head_length=0.38 * seen.size,
    )


def _arrows_legend(seen: Arrows | None) -> str:
    return "No agent has a path to show." if seen is None else f"Arrows: direction to {plain(seen.goal)}"


ARROWS = Overlay(
    name="planning arrows",
    title="Arrows to goal",
    look=field_arrows,
    draw=draw_arrows,
    legend=_arrows_legend,
    seconds=1.0,
    fits=_has_ways,
)
