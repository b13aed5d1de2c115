"""The world as square cells: rasters for planning fields, and the cells that a lattice crowd stands on.

A raster cell is free if its centre is inside the walkable area and at least `clearance` away from every wall, closed
door and static obstacle, and never less than half a cell's diagonal. That last part makes the raster reliable: no wall
fits between two neighbouring free centres, not even diagonally, so a step from one to the other crosses none. Moving
obstacles are not drawn; local steering handles them. Hazards are drawn only if they have `replan` set; a raster can
also hold what it costs to walk near them (`influence.py`).

Lattice cells (`lattice_cells`) follow other rules, given in the second half of the file.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.grid_raster import block_crossed, block_near_discs, block_near_segments, fill_inside
from tropel.errors import GeometryError, ParameterError
from tropel.foundation.memory import require_memory, times_too_large
from tropel.world.shapes import check_level, segments_of
from tropel.world.world import World

#: Memory per cell of a plan to one goal [bytes]: raster, distances, values, vectors and the solver's working memory.
#: Planners request more themselves if there are more goals (`planning/fields/planner.py`).
BYTES_PER_CELL = 96


@dataclass(frozen=True, kw_only=True, eq=False)
class Raster:
    """Cells of one size: which are free, and where they are."""

    origin: NDArray[np.float64]  #: (dim,): low corner of the first cell [m]
    cell: float  #: length of an edge [m]
    free: NDArray[np.bool_]  #: (ny, nx) or (nz, ny, nx)
    clearance: float = 0.0  #: requested distance to walls [m]
    level: int = 0  #: the level of the world that it shows
    cost: NDArray[np.float64] | None = None  #: (*shape): factor on path lengths, at least 1; None for plain ground

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cell) and self.cell > 0.0):
            raise ParameterError(f"a raster's cell must be a positive length, not {self.cell!r} m")
        free = np.ascontiguousarray(self.free, dtype=np.bool_)
        origin = np.asarray(self.origin, dtype=np.float64)
        if free.ndim not in (2, 3) or free.size == 0 or origin.shape != (free.ndim,):
            raise ParameterError(
                f"a raster needs cells (ny, nx) with an origin (x, y), or (nz, ny, nx) with (x, y, z); "
                f"got cells {free.shape} with an origin of shape {origin.shape}"
            )
        object.__setattr__(self, "free", free)
        object.__setattr__(self, "origin", origin)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.free.shape

    @property
    def dim(self) -> int:
        return self.free.ndim

    @property
    def reach(self) -> float:
        """Smallest distance of free centres to walls [m]."""
        return max(self.clearance, half_diagonal(self.dim) * self.cell)

    def centre(self, index: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Centres (…, dim) [m] of cells given as indices (…, dim) in the order of the array's axes."""
        return self.origin + (np.asarray(index, dtype=np.float64)[..., ::-1] + 0.5) * self.cell

    def index_of(self, points: Sequence[float] | NDArray[np.float64]) -> NDArray[np.int64]:
        """Indices (…, dim), in the order of the array's axes, of the cells that hold points (…, dim).

        Points outside belong to the nearest cell at the border.
        """
        steps = np.floor((np.asarray(points, dtype=np.float64) - self.origin) / self.cell)[..., ::-1]
        return np.clip(steps, 0, np.array(self.shape) - 1).astype(np.int64)

    def digest(self) -> str:
        """Digest of the cells and their location."""
        digest = hashlib.sha256(
            f"{self.shape} {self.cell!r} {self.origin.tolist()} {self.clearance!r} {self.level}".encode()
        )
        digest.update(np.packbits(self.free).tobytes())
        if self.cost is not None:
            digest.update(self.cost.tobytes())
        return digest.hexdigest()


def half_diagonal(dim: int) -> float:
    """Half of a cell's diagonal, in cells, slightly enlarged so that rounding does not matter."""
    return 0.7072 if dim == 2 else 0.8661


def rasterise(
    world: World, *, cell: float = 0.2, clearance: float = 0.2, level: int = 0, hazards: bool = True
) -> Raster:
    """Rasterise a level of a world as it is now: walls, closed doors, static obstacles and, if wanted, hazards."""
    check_level(level)
    if not (math.isfinite(cell) and cell > 0.0):
        raise ParameterError(f"cell must be a positive length, not {cell!r} m")
    if not (math.isfinite(clearance) and clearance >= 0.0):
        raise ParameterError(f"clearance must not be negative, got {clearance!r} m")
    low, high = world_extent(world)
    steps = np.maximum(np.ceil((high - low) / cell - 1e-9), 1.0)[::-1]
    check_memory(steps, cell)
    shape = tuple(int(n) for n in steps)
    reach = max(clearance, half_diagonal(world.dim) * cell)
    free = np.ones(shape, dtype=np.uint8)
    if world.walkable is not None:
        fill_inside(segments_of(world.walkable), low, cell, free)
    if world.dim == 2:
        block_near_segments(world.segments, world.blocking, reach, low, cell, free)
    _block_discs(*static_obstacles(world, hazards=False), reach, low, cell, free)
    raster = Raster(origin=low, cell=float(cell), free=free.view(np.bool_), clearance=float(clearance), level=level)
    return with_hazards(raster, world) if hazards else raster


def with_hazards(raster: Raster, world: World) -> Raster:
    """A raster without hazards plus the inner discs of those that planners avoid."""
    planned = planned_hazards(world, step=raster.cell)
    if not len(planned.inner):
        return raster
    free = raster.free.copy()
    _block_discs(planned.position, planned.inner, raster.reach, raster.origin, raster.cell, free.view(np.uint8))
    return replace(raster, free=free)


def _block_discs(
    position: NDArray[np.float64],
    radius: NDArray[np.float64],
    reach: float,
    low: NDArray[np.float64],
    cell: float,
    free: NDArray[np.uint8],
) -> None:
    if not len(radius):
        return
    # In 2D with a third coordinate of zero, the centre of the only slice along z.
    flat = free.ndim == 2
    place = np.column_stack([position, np.zeros(len(position))]) if flat else np.ascontiguousarray(position)
    corner = np.append(low, -0.5 * cell) if flat else low
    block_near_discs(place, radius, reach, corner, cell, free.reshape((1, *free.shape) if flat else free.shape))


class PlannedHazards(NamedTuple):
    """The hazards that planners avoid."""

    position: NDArray[np.float64]
    inner: NDArray[np.float64]
    outer: NDArray[np.float64]
    intensity: NDArray[np.float64]


def planned_hazards(world: World, *, step: float = 0.0) -> PlannedHazards:
    """The hazards that planners avoid, as they are now.

    With a `step` [m], those that move or grow do so in steps of about that size, and a little ahead: their true inner
    disc is always inside. Then plans are repaired once in a while and not in every step of the simulation.
    """
    hazards = world.hazards
    rows = hazards.rows_where("replan") if len(hazards) else np.empty(0, dtype=np.int64)
    position, inner = hazards.position[rows].copy(), hazards.inner[rows].copy()
    items = [hazards[hazards.names[row]] for row in rows.tolist()]
    for k, item in enumerate(items if step > 0.0 else ()):
        if item.motion is not None:
            position[k] = np.round(position[k] / step) * step
            inner[k] += half_diagonal(world.dim) * step
        if item.growth > 0.0:
            inner[k] = math.ceil(inner[k] / step - 1e-9) * step
    outer = inner * np.array([item.outer_per_inner for item in items])
    return PlannedHazards(position, inner, outer, np.array([item.intensity for item in items]))


def static_obstacles(world: World, *, hazards: bool = True) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions and radii of the static obstacles, and of the inner discs of hazards that planners avoid."""
    moving = set(world.obstacles.moving)
    rows = [row for row, name in enumerate(world.obstacles.names) if name not in moving]
    position, radius = world.obstacles.position[rows], world.obstacles.radius[rows]
    if hazards and len(world.hazards):
        planned = planned_hazards(world)
        position, radius = np.vstack([position, planned.position]), np.append(radius, planned.inner)
    return position, radius


def what_is_drawn(world: World, *, hazards: bool = True) -> tuple[bytes, ...]:
    """The part of a raster's input that may change: doors and static obstacles, with the inner discs of hazards."""
    position, radius = static_obstacles(world, hazards=hazards)
    return world.blocking.tobytes(), position.tobytes(), radius.tobytes()


def check_memory(steps: NDArray[np.float64], cell: float) -> None:
    """Refuse a raster for which no plan would fit into memory, before anything of its size is allocated."""
    size = " × ".join(f"{n:.0f}" for n in steps[::-1])
    needed = float(np.prod(steps)) * BYTES_PER_CELL
    what = f"a plan on a raster of {size} cells of {cell:g} m"
    require_memory(needed, what, f"use {larger_cells(cell, len(steps), needed)}", error=GeometryError)


def larger_cells(cell: float, dim: int, needed: float) -> str:
    """Advice for cells that would need this much memory [bytes]: how large they should be."""
    enough = 1.05 * cell * times_too_large(needed) ** (1.0 / dim)
    return f"cells of {enough:.3g} m or more" if math.isfinite(enough) else "larger cells"


def world_extent(world: World) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low and high corner of everything that a raster shows."""
    if world.is_periodic:
        raise GeometryError(
            "a raster ends at the sides of the world, and those of a periodic world are joined; plan with Direct or "
            "VectorField there"
        )
    low, high = world.bounds[0], world.bounds[1]
    if world.walkable is not None:
        box = np.asarray(world.walkable.bounds)
        low, high = np.minimum(low, box[:2]), np.maximum(high, box[2:])
    return np.array(low), np.array(high)


# The cells that a lattice crowd stands on: squares for one agent each.
#
# A raster for fields keeps its free centres away from walls, which would cost a door of three cells two of them. Here a
# cell is free if its centre is inside the walkable area and nothing solid is inside the cell:
#
# - the edge of the walkable area may run along a cell's border, but not through the cell;
# - thin walls and closed doors belong to the cells whose half-open square they meet. So a wall exactly between two rows
#   of cells blocks the upper or right one, and no agent steps through it;
# - static obstacles block the cells whose inscribed circle they touch.
#
# So no step between two free neighbours crosses a wall. Diagonal steps also need both cells next to them free.

#: Share of a cell by which the edge of the walkable area may reach into it and still count as running along it.
_ROUNDING = 1e-6

#: The last cells of each world: their size and the world state that they show.
_DRAWN: WeakKeyDictionary[World, tuple[float, tuple[bytes, ...], Raster]] = WeakKeyDictionary()


def lattice_cells(world: World, cell: float = 0.4, *, hazards: bool = True) -> Raster:
    """Divide a 2D world, as it is now, into cells for one agent each.

    Hazards that planners avoid also block cells, unless `hazards` is false.
    """
    if world.dim != 2:
        raise ParameterError("a lattice crowd needs a 2D world; in a 3D box use other models")
    if not (math.isfinite(cell) and cell > 0.0):
        raise ParameterError(f"cell must be a positive length, not {cell!r} m")
    low, high = world_extent(world)
    steps = np.maximum(np.ceil((high - low) / cell - 1e-9), 1.0)[::-1]
    check_memory(steps, cell)
    free = np.ones(tuple(int(n) for n in steps), dtype=np.uint8)
    edge = 0
    if world.walkable is not None:
        boundary = segments_of(world.walkable)
        edge = len(boundary)
        fill_inside(boundary, low, cell, free)
    rounding = _ROUNDING * cell
    block_crossed(world.segments[:edge], world.blocking[:edge], rounding, -rounding, low, cell, free)
    block_crossed(_shortened(world.segments[edge:], 3.0 * rounding), world.blocking[edge:], -rounding, -rounding, low,
                  cell, free)  # fmt: skip
    raster = Raster(origin=low, cell=float(cell), free=free.view(np.bool_), clearance=0.5 * cell)
    take_cells(*static_obstacles(world, hazards=hazards), raster, raster.free)
    return raster


def cells_now(world: World, cell: float) -> Raster:
    """`lattice_cells`, computed once until the world changes: sources call this in every step."""
    drawn = what_is_drawn(world)
    known = _DRAWN.get(world)
    if known is None or known[:2] != (cell, drawn):
        known = _DRAWN[world] = (cell, drawn, lattice_cells(world, cell))
    return known[2]


def _shortened(segments: NDArray[np.float64], by: float) -> NDArray[np.float64]:
    """Thin walls without their very ends: a wall that ends on a border of cells leaves the cell beyond it free.

    Otherwise a gap of three cells between two walls would shrink to two. Agents cannot slip through where two such ends
    meet on a corner of cells, because a diagonal step needs both cells next to it.
    """
    along = segments[:, 2:] - segments[:, :2]
    length = np.linalg.norm(along, axis=1, keepdims=True)
    cut = along * np.minimum(by / length, 0.25)
    return np.hstack([segments[:, :2] + cut, segments[:, 2:] - cut])


def take_cells(
    position: NDArray[np.float64], radius: NDArray[np.float64], raster: Raster, free: NDArray[np.bool_]
) -> None:
    """Clear `free` where a body as wide as a cell would overlap one of these disks; touching is not overlapping."""
    reach = (0.5 - _ROUNDING) * raster.cell
    flat = np.column_stack([position, np.zeros(len(position))])
    corner = np.append(raster.origin, -0.5 * raster.cell)
    block_near_discs(flat, radius, reach, corner, raster.cell, free.view(np.uint8).reshape((1, *free.shape)))
