"""The ground of a lattice crowd as kernels read it: filters by tile, map and path plans, agents and occupied cells.

Cells are numbered row by row. Arrays that are read around a cell (occupied cells, claims on cells) have a border of two
cells, so that no loop has to check whether a neighbour exists; `padded` numbers include it. Agents store their cell as
a place, row and column in one word, because divisions would cost more than decisions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel.world.ground import Filter

# Filters by tile.
#
# The map is cut into tiles, and each tile lists the filters that reach into it or right next to it. Most tiles have
# none, and their agents pay for one comparison.


#: Cells along the side of a tile, a power of two.
TILE_BITS = 4
_TILE = 1 << TILE_BITS


class FilterTiles(NamedTuple):
    """Filters, and a list of those that matter for each tile."""

    across: int  #: tiles in a row
    start: NDArray[np.int64]  #: (tiles + 1,): where a tile's list begins in `items`
    items: NDArray[np.int64]
    low: NDArray[np.int64]  #: (filters, 2): first row and column
    size: NDArray[np.int64]  #: (filters, 2): rows and columns
    group: NDArray[np.int64]  #: (filters,): the group it applies to, -1 for all
    spares_inside: NDArray[np.uint8]  #: (filters,)
    offset: NDArray[np.int64]  #: (filters,): where its values begin
    log_value: NDArray[np.float64]


def filter_tiles(filters: Iterable[Filter], shape: Sequence[int]) -> FilterTiles:
    """Sort filters into the tiles of a map with this many rows and columns."""
    all_filters = list(filters)
    rows, columns = (-(-n // _TILE) for n in shape)
    corners = np.array([(f.row, f.column) for f in all_filters], dtype=np.int64).reshape(-1, 2)
    sizes = np.array([f.log_value.shape for f in all_filters], dtype=np.int64).reshape(-1, 2)
    # Agents one cell outside a filter can step into it.
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
    """Sum over a tile's filters of the value of another cell to an agent of a group that stands on a cell."""
    worth = 0.0
    for k in range(tiles.start[tile], tiles.start[tile + 1]):
        f = tiles.items[k]
        if tiles.group[f] >= 0 and tiles.group[f] != group:
            continue
        if tiles.spares_inside[f] and _value(f, row, column, tiles) == -math.inf:
            continue
        worth += _value(f, to_row, to_column, tiles)
    return worth


#: Cells around the map in the arrays that have a border.
BORDER = 2
#: No cell, or no plan.
NOWHERE = -1

#: Agents per unit of parallel work.
CHUNK = 256


class GroundArrays(NamedTuple):
    """The map, path plans and weights as kernels read them."""

    x: float  #: low corner [m]
    y: float
    cell: float  #: [m]
    rows: int
    columns: int
    free: NDArray[np.bool_]  #: (cells,)
    moves: NDArray[np.uint8]  #: (cells,): bit m is set if move m is allowed
    lengths: NDArray[np.uint32]  #: (margin + plans · cells + margin,): length of the path to each goal, short
    margin: int  #: padding for the cells around those of the first and last row
    plan_of_goal: NDArray[np.int64]  #: by goal - NO_GOAL; NOWHERE if it has none
    path_weight: float  #: logarithm of the factor on the value of a cell per unit of short path length
    crowd_weight: float  #: logarithm of the factor on the value of a cell per neighbour


class CellAgents(NamedTuple):
    """Columns of all agents that a decision needs."""

    id: NDArray[np.int64]
    position: NDArray[np.float64]
    desired_speed: NDArray[np.float64]
    waiting: NDArray[np.bool_]  #: whether an agent has not started yet; empty if none waits
    goal: NDArray[np.int32]
    group: NDArray[np.int32]
    credit: NDArray[np.float64]
    velocity: NDArray[np.float64]


class Headways(NamedTuple):
    """How long cells stay empty after an agent has left them (`headways.py`)."""

    #: (cells with a border,): the step from which a cell may be entered again; empty if none waits
    closed_until: NDArray[np.int64]
    seconds: NDArray[np.float64]  #: (cells,): how long a cell stays empty, on average [s]
    spread: float  #: share of that time that is random


@inlined_kernel
def place_of(row, column):
    return (np.int64(row) << 32) | np.int64(column)


@inlined_kernel
def row_and_column(place):
    return place >> 32, place & 0xFFFFFFFF


@inlined_kernel
def padded(row, column, columns):
    return (row + BORDER) * (columns + 2 * BORDER) + column + BORDER


@inlined_kernel
def length_at(plan, cell, ground):
    """Index in `ground.lengths` of the length of the path from a cell."""
    return ground.margin + plan * ground.rows * ground.columns + cell


@kernel
def _locate_some(rows, first, last, position, ground, places):
    moved = 0
    for n in range(first, last):
        i = rows[n]
        ix = math.floor((position[i, 0] - ground.x) / ground.cell)
        iy = math.floor((position[i, 1] - ground.y) / ground.cell)
        # Written so that it is false for nan.
        inside = ix >= 0.0 and ix < ground.columns and iy >= 0.0 and iy < ground.rows
        place = place_of(np.int64(iy), np.int64(ix)) if inside else np.int64(NOWHERE)
        moved += np.int64(places[n] != place)
        places[n] = place
    return moved


@parallel_kernel
def locate(rows, position, ground, places):
    """Write the place of each agent (NOWHERE outside the map); returns how many are not where they were expected."""
    moved = 0
    for chunk in numba.prange((rows.size + CHUNK - 1) // CHUNK):
        moved += _locate_some(rows, chunk * CHUNK, min((chunk + 1) * CHUNK, rows.size), position, ground, places)
    return moved


@inlined_kernel
def _tile_number(place, across):
    row, column = row_and_column(max(place, 0))
    return (row >> TILE_BITS) * across + (column >> TILE_BITS)


@kernel
def sort_by_tile(rows, places, across, tally, out_rows, out_places):
    """Write rows and their places in the order of tiles, so that neighbours on the ground are processed together.

    `tally` has one zero for each tile and one more; `across` is the number of tiles in a row.
    """
    for n in range(rows.size):
        tally[_tile_number(places[n], across) + 1] += 1
    for tile in range(1, tally.size):
        tally[tile] += tally[tile - 1]
    for n in range(rows.size):
        tile = _tile_number(places[n], across)
        out_rows[tally[tile]] = rows[n]
        out_places[tally[tile]] = places[n]
        tally[tile] += 1


@parallel_kernel
def mark(places, columns, occupied):
    """Mark the places of agents in the occupancy map, which has a border."""
    for n in numba.prange(places.size):
        if places[n] >= 0:
            row, column = row_and_column(places[n])
            occupied[padded(row, column, columns)] = 1


@kernel
def mark_bodies(rows, position, velocity, radius, dt, ground, occupied):
    """Mark the cells that the bodies of others reach: those where a body as wide as a cell would overlap them.

    A body counts where it is and along the path it takes within dt if it keeps its velocity.
    """
    half = 0.5 * ground.cell
    for n in range(rows.size):
        i = rows[n]
        x, y = position[i, 0] - ground.x, position[i, 1] - ground.y
        mx, my = velocity[i, 0] * dt, velocity[i, 1] * dt
        length2 = mx * mx + my * my
        reach = radius[i] + half * (1.0 - 1e-6)
        low_x = math.floor((x + min(mx, 0.0) - reach) / ground.cell)
        high_x = math.floor((x + max(mx, 0.0) + reach) / ground.cell)
        low_y = math.floor((y + min(my, 0.0) - reach) / ground.cell)
        high_y = math.floor((y + max(my, 0.0) + reach) / ground.cell)
        for iy in range(max(np.int64(low_y), 0), min(np.int64(high_y), ground.rows - 1) + 1):
            for ix in range(max(np.int64(low_x), 0), min(np.int64(high_x), ground.columns - 1) + 1):
                dx, dy = (ix + 0.5) * ground.cell - x, (iy + 0.5) * ground.cell - y
                t = min(max((dx * mx + dy * my) / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
                dx, dy = dx - t * mx, dy - t * my
                if dx * dx + dy * dy < reach * reach:
                    occupied[padded(iy, ix, ground.columns)] = 1
