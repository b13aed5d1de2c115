"""Round obstacles for kernels: cells that list every disc (2D) or ball (3D) within reach, as in `walls.py`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel, kernel

_MOST_CELLS = 1 << 20
#: Discs as wide as the world are in every cell; a thousand of them must not fill the memory.
_MOST_LISTED = 1 << 26


class DiscGrid(NamedTuple):
    """Discs and the cells that list them; in 2D the third axis has one cell."""

    position: NDArray[np.float64]  #: (M, dim)
    velocity: NDArray[np.float64]  #: (M, dim)
    radius: NDArray[np.float64]  #: (M,)
    type: NDArray[np.int32]  #: (M,): number of its type
    pushes: NDArray[np.uint8]  #: (M,): 0 for discs that stop agents but never push them: they move over them
    origin: NDArray[np.float64]  #: (3,): low corner
    inverse_cell: float
    shape: NDArray[np.int64]  #: (3,): cells along x, y and z
    reach: float  #: queries up to this distance from the surface are complete
    start: NDArray[np.int64]  #: (cells + 1,)
    items: NDArray[np.int32]  #: numbers of discs


@kernel
def disc_cell(position, i, grid):
    """Number of the cell that holds row i of `position`; points outside belong to the nearest border cell."""
    cell = np.int64(0)
    stride = np.int64(1)
    for axis in range(position.shape[1]):
        c = math.floor((position[i, axis] - grid.origin[axis]) * grid.inverse_cell)
        c = min(max(c, 0.0), grid.shape[axis] - 1.0)
        cell += np.int64(c) * stride
        stride *= grid.shape[axis]
    return cell


@allocating_kernel
def _list_discs(position, radius, reach, origin, size, shape, start, items, fill):
    # Called twice: once to count into start[cell + 1], once to fill. Discs are visited in order, so lists are sorted.
    dim = position.shape[1]
    for m in range(position.shape[0]):
        grown = radius[m] + reach
        low = np.zeros(3, dtype=np.int64)
        high = np.zeros(3, dtype=np.int64)
        for axis in range(dim):
            first = math.floor((position[m, axis] - grown - origin[axis]) / size) - 1.0
            last = math.floor((position[m, axis] + grown - origin[axis]) / size) + 1.0
            low[axis] = np.int64(min(max(first, 0.0), shape[axis] - 1.0))
            high[axis] = np.int64(min(max(last, 0.0), shape[axis] - 1.0))
        for cz in range(low[2], high[2] + 1):
            for cy in range(low[1], high[1] + 1):
                for cx in range(low[0], high[0] + 1):
                    away2 = 0.0
                    for axis in range(dim):
                        c = cx if axis == 0 else (cy if axis == 1 else cz)
                        near_edge = origin[axis] + c * size
                        far_edge = near_edge + size
                        # Discs beyond the border matter to border cells, which also own points outside the grid.
                        inside = min(max(position[m, axis], origin[axis]), origin[axis] + shape[axis] * size)
                        gap = max(near_edge - inside, inside - far_edge, 0.0)
                        away2 += gap * gap
                    if math.sqrt(away2) <= grown * (1.0 + 1e-9) + 1e-12:
                        cell = (cz * shape[1] + cy) * shape[0] + cx
                        if fill:
                            items[start[cell]] = m
                            start[cell] += 1
                        else:
                            start[cell + 1] += 1


def _cells_listed(grown: NDArray[np.float64], extent: NDArray[np.float64], size: float) -> float:
    """An upper bound for the number of entries in all cells together."""
    across = np.minimum(2.0 * grown[:, None] / size + 3.0, np.ceil(extent / size))
    return float(across.prod(axis=1).sum())


def disc_grid(
    position: NDArray[np.float64],
    velocity: NDArray[np.float64],
    radius: NDArray[np.float64],
    type: NDArray[np.int32],
    pushes: NDArray[np.uint8],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    reach: float,
) -> DiscGrid:
    """Build the cells for queries up to `reach` [m] from the surfaces."""
    dim = position.shape[1]
    extent = np.maximum(high - low, 1e-9)
    size = max(reach, 1e-6)
    if len(position) == 0:
        size = float(extent.max())
    while np.prod(np.ceil(extent / size)) > _MOST_CELLS or _cells_listed(radius + reach, extent, size) > _MOST_LISTED:
        size *= 1.5
    shape = np.ones(3, dtype=np.int64)
    shape[:dim] = np.maximum(np.ceil(extent / size).astype(np.int64), 1)
    origin = np.zeros(3)
    origin[:dim] = low
    start = np.zeros(int(shape.prod()) + 1, dtype=np.int64)
    nothing = np.empty(0, dtype=np.int32)
    _list_discs(position, radius, reach, origin, size, shape, start, nothing, False)
    np.cumsum(start, out=start)
    items = np.empty(int(start[-1]), dtype=np.int32)
    cursor = start.copy()
    _list_discs(position, radius, reach, origin, size, shape, cursor, items, True)
    return DiscGrid(position, velocity, radius, type, pushes, origin, 1.0 / size, shape, float(reach), start, items)
