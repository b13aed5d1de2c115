"""Building the wall grid that `integrate` and the local models read."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.walls import WallGrid, list_walls

_MOST_CELLS = 1 << 20
#: Walls across the whole world have nearly all of its cells around them; many such walls must not take minutes.
_MOST_LOOKS = 1e9


def quantised(reach: float) -> float:
    """The next power of two at or above `reach`, so that slowly growing demands do not rebuild the grid each time."""
    return float(2.0 ** math.ceil(math.log2(max(reach, 2.0**-6))))


def _cells_looked_at(segments: NDArray[np.float64], reach: float, size: float) -> float:
    """How many cells are visited to list all walls: those of the bounding rectangle of each."""
    sides = np.abs(segments[:, 2:] - segments[:, :2]) + 2.0 * reach
    return float((sides / size + 3.0).prod(axis=1).sum())


def build_wall_grid(
    segments: NDArray[np.float64],
    blocking: NDArray[np.uint8],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    reach: float,
) -> WallGrid:
    """Cells over the box low–high and all segments; their lists are complete for queries up to `reach` [m]."""
    # Walls beyond the bounds of the world count too. A point outside all cells is looked up in the nearest one, which
    # is right only if no wall is outside the cells.
    ends = segments.reshape(-1, 2)
    low, high = np.vstack([low, ends]).min(axis=0), np.vstack([high, ends]).max(axis=0)
    extent = np.maximum(high - low, 1e-9)
    size = reach / 2.0 if len(segments) else float(extent.max())
    while np.prod(np.ceil(extent / size)) > _MOST_CELLS or _cells_looked_at(segments, reach, size) > _MOST_LOOKS:
        size *= 1.5
    shape = np.maximum(np.ceil(extent / size).astype(np.int64), 1)
    start = np.zeros(int(shape.prod()) + 1, dtype=np.int64)
    list_walls(segments, reach, low, size, shape, start, np.empty(0, dtype=np.int32), False)
    np.cumsum(start, out=start)
    items = np.empty(int(start[-1]), dtype=np.int32)
    list_walls(segments, reach, low, size, shape, start.copy(), items, True)
    return WallGrid(segments, blocking, low, 1.0 / size, shape, float(reach), start, items)
