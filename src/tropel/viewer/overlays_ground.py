"""Overlays that lie on the ground as a picture or as arrows: the planning field and the density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.groups import goal_name
from tropel.agents.state import NO_GOAL
from tropel.pictures import style
from tropel.viewer.overlays import Canvas, Overlay
from tropel.viewer.shapes3d import rgb

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Floats = NDArray[np.float64]

#: A picture on the ground has at most so many pixels along an edge, and the field so many arrows.
_MOST_PIXELS = 512
_MOST_ARROWS = 40
#: Squares that people are counted in [m], and the density that has the darkest colour [1/m²].
_SQUARE = 1.0
_DENSE = 4.0


@dataclass(frozen=True, eq=False, kw_only=True)
class GroundPicture:
    """Numbers per cell of the ground, NaN where there is nothing to show; row 0 is in the south."""

    values: Floats
    origin: Floats  #: south-west corner [m]
    cell: float  #: [m]
    low: float
    high: float


def draw_picture(canvas: Canvas, picture: GroundPicture, *, opacity: float = 0.85) -> None:
    """Lay a picture on the ground, in the colours of `style`, see-through where there is nothing."""
    values = picture.values
    known = np.isfinite(values)
    span = max(picture.high - picture.low, 1e-12)
    share = np.clip((np.where(known, values, picture.low) - picture.low) / span, 0.0, 1.0)
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = (style.time_colours()(1.0 - share)[..., :3] * 255.0).round().astype(np.uint8)
    pixels[..., 3] = np.where(known, round(255 * opacity), 0)
    depth, width = (np.array(values.shape) * picture.cell).tolist()
    x, y = picture.origin.tolist()
    canvas.scene.add_image(
        f"{canvas.path}/picture",
        pixels[::-1],
        render_width=width,
        render_height=depth,
        format="png",
        position=(x + 0.5 * width, y + 0.5 * depth, canvas.height),
        # viser's pictures are upside down: their first row is where y is least.
        wxyz=(0.0, 1.0, 0.0, 0.0),
        cast_shadow=False,
        receive_shadow=False,
    )


def _is_plan(sim: Simulation) -> bool:
    return sim.world.dim == 2


# Density --------------------------------------------------------------------------------------------------------


def _look_at_density(sim: Simulation, selected: int | None) -> GroundPicture:
    low, high = sim.world.bounds
    living = sim.agents.dead == 0
    square = max(_SQUARE, float((high - low).max()) / _MOST_PIXELS)
    shape = np.maximum(np.ceil((high - low) / square).astype(np.int64), 1)
    cell = np.clip(((sim.agents.position[living] - low) / square).astype(np.int64), 0, shape - 1)
    counts = np.zeros((shape[1], shape[0]))
    np.add.at(counts, (cell[:, 1], cell[:, 0]), 1.0)
    density = counts / square**2
    return GroundPicture(
        values=np.where(counts > 0, density, np.nan), origin=low.copy(), cell=square, low=0.0, high=_DENSE
    )


DENSITY = Overlay(
    name="density",
    title=f"Density (0 to {_DENSE:g} per m²)",
    look=_look_at_density,
    draw=draw_picture,
    fits=_is_plan,
)


# The planning field ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class _Field:
    picture: GroundPicture
    arrows: Floats  #: (N, 2, 2): from, to [m]


def _has_fields(sim: Simulation) -> bool:
    return _is_plan(sim) and any(hasattr(planner, "field") for planner in sim.planners.values())


def _look_at_field(sim: Simulation, selected: int | None) -> _Field | None:
    """The field to the goal that most agents have; that of the selected agent, if there is one."""
    agents = sim.agents
    rows = agents.rows_of([selected]) if selected is not None else np.empty(0, dtype=np.int64)
    row = int(rows[0]) if len(rows) else _typical(sim)
    if row < 0:
        return None
    planner = sim.planners[sim.groups[int(agents.group[row])]]
    if not hasattr(planner, "field"):
        return None
    field = planner.field(goal_name(sim.world, int(agents.goal[row])))
    length, raster = field.length, field.raster
    values = -field.value if length is None else length
    values = np.where(field.reachable & np.isfinite(values), values, np.nan)
    skip = max(1, -(-max(values.shape) // _MOST_PIXELS))
    thin = values[::skip, ::skip]
    known = thin[np.isfinite(thin)]
    picture = GroundPicture(
        values=thin,
        origin=raster.origin.copy(),
        cell=raster.cell * skip,
        low=float(known.min()) if known.size else 0.0,
        high=float(known.max()) if known.size else 1.0,
    )
    return _Field(picture=picture, arrows=_arrows(field))


def _typical(sim: Simulation) -> int:
    rows = [row for row in range(0, len(sim.agents), max(1, len(sim.agents) // 200)) if sim.agents.goal[row] > NO_GOAL]
    goals = sim.agents.goal[rows]
    if not len(goals):
        return -1
    numbers, counts = np.unique(goals, return_counts=True)
    return rows[int(np.argmax(goals == numbers[np.argmax(counts)]))]


def _arrows(field: object) -> Floats:
    raster = field.raster  # type: ignore[attr-defined]
    every = max(1, -(-max(raster.shape) // _MOST_ARROWS))
    rows, columns = np.mgrid[every // 2 : raster.shape[0] : every, every // 2 : raster.shape[1] : every]
    index = np.stack([rows.ravel(), columns.ravel()], axis=1)
    vectors = field.vectors[index[:, 0], index[:, 1]]  # type: ignore[attr-defined]
    there = np.linalg.norm(vectors, axis=1) > 0.5
    middle = raster.centre(index[there])
    half = 0.35 * every * raster.cell * vectors[there]
    return np.stack([middle - half, middle + half], axis=1)


def _draw_field(canvas: Canvas, seen: _Field) -> None:
    draw_picture(canvas, seen.picture, opacity=0.6)
    arrows = seen.arrows
    if not len(arrows):
        return
    size = float(np.linalg.norm(arrows[0, 1] - arrows[0, 0]))
    points = np.concatenate([arrows, np.full((*arrows.shape[:2], 1), canvas.height + 0.01)], axis=-1)
    canvas.scene.add_arrows(
        f"{canvas.path}/arrows",
        points.astype(np.float32),
        colors=rgb(style.INK),
        shaft_radius=0.05 * size,
        head_radius=0.15 * size,
        head_length=0.35 * size,
    )


FIELD = Overlay(
    name="planning field",
    title="Planning field (light is near the goal)",
    look=_look_at_field,
    draw=_draw_field,
    seconds=2.0,
    fits=_has_fields,
)

OVERLAYS = (FIELD, DENSITY)
