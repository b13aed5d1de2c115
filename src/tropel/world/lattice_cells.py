"""The cells that a lattice crowd stands on: squares, one person each.

A raster for fields (`raster.py`) keeps its free centres away from walls, which would cost a door of three cells two of
them. Here a cell is free when its centre is inside the walkable area and nothing solid is inside the cell:

- the edge of the walkable area may run along a cell's border, but not through the cell;
- thin walls and closed doors belong to the cells whose half-open square they meet, so that one that runs exactly
  between two rows of cells blocks the upper or right one, and nobody steps through it;
- static obstacles block the cells whose inscribed circle they touch.

So no step between two free neighbours crosses a wall, not even a diagonal one that needs both cells beside it.
"""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.grid_raster import block_crossed, block_near_discs, fill_inside
from tropel.errors import ParameterError
from tropel.world.raster import Raster, check_memory, static_obstacles, what_is_drawn, world_extent
from tropel.world.shapes import segments_of
from tropel.world.world import World

#: Share of a cell by which the edge of the walkable area may reach into it and still count as running along it.
_ROUNDING = 1e-6

#: The last cells of each world: their size and what they show.
_DRAWN: WeakKeyDictionary[World, tuple[float, tuple[bytes, ...], Raster]] = WeakKeyDictionary()


def lattice_cells(world: World, cell: float = 0.4, *, hazards: bool = True) -> Raster:
    """Draw a 2D world into cells of one person each, as it is now.

    Hazards that are planned around block cells too, unless `hazards` is false.
    """
    if world.dim != 2:
        raise ParameterError("a lattice crowd needs a 2D world; in a box use other models")
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
    """`lattice_cells`, drawn once for all who ask before the world changes: sources do in every step."""
    drawn = what_is_drawn(world)
    known = _DRAWN.get(world)
    if known is None or known[:2] != (cell, drawn):
        known = _DRAWN[world] = (cell, drawn, lattice_cells(world, cell))
    return known[2]


def _shortened(segments: NDArray[np.float64], by: float) -> NDArray[np.float64]:
    """Thin walls without the very ends: one that ends on a border of cells leaves the cell beyond it free.

    Otherwise a gap of three cells between two walls would have two. Nobody slips through where two such ends meet on a
    corner of cells, because a diagonal step needs both cells beside it.
    """
    along = segments[:, 2:] - segments[:, :2]
    length = np.linalg.norm(along, axis=1, keepdims=True)
    cut = along * np.minimum(by / length, 0.25)
    return np.hstack([segments[:, :2] + cut, segments[:, 2:] - cut])


def take_cells(
    position: NDArray[np.float64], radius: NDArray[np.float64], raster: Raster, free: NDArray[np.bool_]
) -> None:
    """Clear `free` where somebody of a cell's width would overlap one of these disks; touching is not overlapping."""
    reach = (0.5 - _ROUNDING) * raster.cell
    flat = np.column_stack([position, np.zeros(len(position))])
    corner = np.append(raster.origin, -0.5 * raster.cell)
    block_near_discs(flat, radius, reach, corner, raster.cell, free.view(np.uint8).reshape((1, *free.shape)))
