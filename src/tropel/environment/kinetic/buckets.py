"""Agents that mostly stay where they are, kept by cell: each cell has a room of its own for its agents.

Rooms of cells side by side along x are one run of memory, with nan in the places that nobody has, so that whoever looks
around reads few long runs. An agent that goes to another cell changes these two cells alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import axis_cell
from tropel._kernels.compile import inlined_kernel, kernel
from tropel.agents.state import Floats

#: Columns of what is known of an agent: its row, the square of its radius, which is -1 if that is below zero and nan if
#: its near set is left alone for now, and coordinates, without z in 2D.
ROW, LIMIT, X, Y, Z = range(5)
#: Columns of a cell: where its room begins, how many agents are in it, and for how many there is room.
BEGIN, COUNT, _ROOM, _CELL_COLUMNS = range(4)
#: Room for more agents than there are in a cell: one for so many, and so many at least.
_MORE, _LEAST_MORE = 4, 3


class Buckets(NamedTuple):
    """Agents by cell."""

    low: NDArray[np.float64]  #: (3,): where the cells begin [m]
    inverse_cell: float
    shape: NDArray[np.int64]  #: (3,): cells along x, y and z; in 2D one along z
    cells: NDArray[np.int32]  #: (C, 3), with x fastest
    spots: NDArray[np.float64]  #: (P, 2 + dim): what is known of the agent in each place of the rooms
    place: NDArray[np.int32]  #: (N,): by row; -1 for agents that are nowhere (nan)


def new_buckets(position: Floats, limit: Floats, size: float) -> Buckets:
    """Cells of about this size [m] around these positions, but not many more cells than agents."""
    count, dim = position.shape
    low, wide = np.zeros(3), np.zeros(3)
    if count and not np.isnan(position).all():
        low[:dim] = np.nanmin(position, axis=0)
        wide[:dim] = np.nanmax(position, axis=0) - low[:dim]
    size = max(size, float(wide.max()) / (8.0 * count + 64.0), 1e-9)
    while np.prod(np.floor(wide / size) + 1.0) > 8.0 * count + 64.0:
        size *= 1.5
    shape = np.floor(wide / size).astype(np.int64) + 1
    cells = np.zeros((int(shape.prod()), _CELL_COLUMNS), dtype=np.int32)
    places = count + count // _MORE + _LEAST_MORE * len(cells)
    buckets = Buckets(
        low=low,
        inverse_cell=1.0 / size,
        shape=shape,
        cells=cells,
        spots=np.full((places, X + dim), np.nan),
        place=np.full(count, -1, dtype=np.int32),
    )
    _fill(buckets, position, limit)
    return buckets


@inlined_kernel
def cell_along(buckets, axis, coordinate):
    return axis_cell(coordinate, buckets.low[axis], buckets.inverse_cell, buckets.shape[axis])


@inlined_kernel
def _cell_at(buckets, x, y, z):
    layer = cell_along(buckets, 2, z) * buckets.shape[1] + cell_along(buckets, 1, y)
    return layer * buckets.shape[0] + cell_along(buckets, 0, x)


@inlined_kernel
def _height(position, row):
    return position[row, 2] if position.shape[1] == 3 else 0.0


@kernel
def _fill(buckets, position, limit):
    for row in range(position.shape[0]):
        if position[row, 0] == position[row, 0]:
            cell = _cell_at(buckets, position[row, 0], position[row, 1], _height(position, row))
            buckets.cells[cell, COUNT] += 1
    begin = 0
    for cell in range(buckets.cells.shape[0]):
        count = buckets.cells[cell, COUNT]
        room = count + count // _MORE + _LEAST_MORE
        buckets.cells[cell, BEGIN], buckets.cells[cell, COUNT], buckets.cells[cell, _ROOM] = begin, 0, room
        begin += room
    for row in range(position.shape[0]):
        if position[row, 0] == position[row, 0]:
            _put_in(buckets, row, position[row, 0], position[row, 1], _height(position, row), limit[row])


@inlined_kernel
def _put_in(buckets, row, x, y, z, limit):
    """Put an agent into the cell where it is; false if that is full."""
    cell = buckets.cells[_cell_at(buckets, x, y, z)]
    if cell[COUNT] == cell[_ROOM]:
        return False
    place = cell[BEGIN] + cell[COUNT]
    cell[COUNT] += 1
    spot = buckets.spots[place]
    spot[ROW], spot[LIMIT], spot[X], spot[Y] = row, limit, x, y
    if spot.size > Z:
        spot[Z] = z
    buckets.place[row] = place
    return True


@inlined_kernel
def _take_out(buckets, row):
    """Take an agent out of its cell."""
    place = buckets.place[row]
    spot = buckets.spots[place]
    cell = buckets.cells[_cell_at(buckets, spot[X], spot[Y], spot[Z] if spot.size > Z else 0.0)]
    cell[COUNT] -= 1
    last = buckets.spots[cell[BEGIN] + cell[COUNT]]
    buckets.place[np.int64(last[ROW])] = place
    for column in range(spot.size):
        spot[column] = last[column]
        last[column] = np.nan
    buckets.place[row] = -1


@kernel
def move_between(buckets, rows, position, last, was):
    """Move agents to where they are now, with nan as their limit; false if a cell is full.

    `last` has all positions so far and is updated; `was` gets those of the agents that move, nan for new ones.
    """
    fits = True
    for n in range(rows.size):
        row = rows[n]
        was[n, 2] = 0.0
        for axis in range(position.shape[1]):
            was[n, axis] = last[row, axis]
            last[row, axis] = position[row, axis]
        if buckets.place[row] >= 0:
            _take_out(buckets, row)
        fits &= _put_in(buckets, row, position[row, 0], position[row, 1], _height(position, row), np.nan)
    return fits


@kernel
def set_limits(buckets, rows, limit):
    """Give agents their limits back."""
    for n in range(rows.size):
        buckets.spots[buckets.place[rows[n]], LIMIT] = limit[rows[n]]
