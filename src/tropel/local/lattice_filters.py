"""Sub-layers for the lattice crowd's kernels: which of them matter where.

The map is cut into tiles, and each tile lists the filters that reach into it or right beside it. Most tiles have none,
and their agents pay for one comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel
from tropel.world.terrain import Filter

#: Cells along the side of a tile, a power of two.
TILE_BITS = 4
_TILE = 1 << TILE_BITS


class FilterTiles(NamedTuple):
    """Filters, and for each tile which of them matter there."""

    across: int  #: tiles in a row
    start: NDArray[np.int64]  #: (tiles + 1,): where a tile's list begins in `items`
    items: NDArray[np.int64]
    low: NDArray[np.int64]  #: (filters, 2): first row and column
    size: NDArray[np.int64]  #: (filters, 2): rows and columns
    group: NDArray[np.int64]  #: (filters,): whom it concerns, -1 for everybody
    spares_inside: NDArray[np.uint8]  #: (filters,)
    offset: NDArray[np.int64]  #: (filters,): where its values begin
    log_value: NDArray[np.float64]


def filter_tiles(filters: Iterable[Filter], shape: Sequence[int]) -> FilterTiles:
    """Sort filters into the tiles of a map with this many rows and columns."""
    all_filters = list(filters)
    rows, columns = (-(-n // _TILE) for n in shape)
    corners = np.array([(f.row, f.column) for f in all_filters], dtype=np.int64).reshape(-1, 2)
    sizes = np.array([f.log_value.shape for f in all_filters], dtype=np.int64).reshape(-1, 2)
    # Agents one cell beside a filter step into it.
    first = np.maximum(corners - 1, 0) // _TILE
    across = np.minimum(corners + sizes, np.array(shape) - 1) // _TILE + 1 - first
    tiles = across.prod(axis=1)
    number = np.repeat(np.arange(len(all_filters)), tiles)
    place = np.arange(len(number)) - np.repeat(np.cumsum(tiles) - tiles, tiles)
    width = across[number, 1]
    tile = (first[number, 0] + place // width) * columns + first[number, 1] + place % width
    # Filters of a tile stay in their order.
    order = np.argsort(tile, kind="stable")
    return FilterTiles(
        across=columns,
        start=np.concatenate([[0], np.cumsum(np.bincount(tile, minlength=rows * columns))]).astype(np.int64),
        items=number[order],
        low=corners,
        size=sizes,
        group=np.array([f.group for f in all_filters], dtype=np.int64),
        spares_inside=np.array([f.spares_inside for f in all_filters], dtype=np.uint8),
        offset=np.concatenate([[0], np.cumsum(sizes.prod(axis=1))])[:-1].astype(np.int64),
        log_value=np.concatenate([np.empty(0), *(f.log_value.reshape(-1) for f in all_filters)]),
    )


@inlined_kernel
def tile_of(row, column, tiles):
    return (row >> TILE_BITS) * tiles.across + (column >> TILE_BITS)


@inlined_kernel
def _value(f, row, column, tiles):
    row -= tiles.low[f, 0]
    column -= tiles.low[f, 1]
    if row < 0 or column < 0 or row >= tiles.size[f, 0] or column >= tiles.size[f, 1]:
        return 0.0
    return tiles.log_value[tiles.offset[f] + row * tiles.size[f, 1] + column]


@inlined_kernel
def worth_of_filters(row, column, to_row, to_column, group, tile, tiles):
    """Sum over a tile's filters of what another cell is worth to an agent of a group that stands on a cell."""
    worth = 0.0
    for k in range(tiles.start[tile], tiles.start[tile + 1]):
        f = tiles.items[k]
        if tiles.group[f] >= 0 and tiles.group[f] != group:
            continue
        if tiles.spares_inside[f] and _value(f, row, column, tiles) == -math.inf:
            continue
        worth += _value(f, to_row, to_column, tiles)
    return worth
