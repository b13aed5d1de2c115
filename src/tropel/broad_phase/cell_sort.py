"""Sorting agents by cell: a stable counting sort in two levels, on threads.

Consecutive cells are grouped into at most 256 buckets. Blocks of rows are first distributed to the buckets, then each
bucket is sorted by itself. Both levels work in memory that fits the caches, and no thread waits for another. One
histogram of all cells per thread was rejected because it grows with cells times threads. A stable sort has only one
result, whatever the number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.cells import CellList, axis_cell
from tropel._kernels.compile import kernel, parallel_kernel
from tropel._kernels.simd import COPY_WIDTH
from tropel.agents.state import AgentState, Floats

_ROWS_PER_BLOCK = 4096
_MOST_BUCKETS = 256

_ONE = np.uint64(1)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)

#: Passed instead of ids if the rows are in the order of the ids.
_IN_ORDER = np.empty(0, dtype=np.int64)

#: In `faults`, for a block of rows without a fault.
_NO_FAULT = -1


@parallel_kernel
def _bin_rows(position, level, sense_radius, origin, inverse_cell, shape, shift, cell_of_row, tally, faults, widest):
    """The cell of every row, the number of rows per block and bucket, and rows that cannot be sorted."""
    count = position.shape[0]
    spatial = position.shape[1] == 3
    for block in prange(tally.shape[0]):
        tally[block, :] = 0
        fault = _NO_FAULT
        most = 0.0
        for row in range(block * _ROWS_PER_BLOCK, min(count, (block + 1) * _ROWS_PER_BLOCK)):
            i = np.uint64(row)
            x = position[i, 0]
            y = position[i, 1]
            z = position[i, 2] if spatial else 0.0
            cx = axis_cell(x, origin[0], inverse_cell, shape[0])
            cy = axis_cell(y, origin[1], inverse_cell, shape[1])
            # In 2D the third axis counts levels.
            cz = axis_cell(z, origin[2], inverse_cell, shape[2]) if spatial else min(np.int64(level[i]), shape[2] - 1)
            radius = sense_radius[i]
            # The difference of a number and itself is zero unless the number is infinite or nan.
            if (x - x) + (y - y) + (z - z) != 0.0 or not radius >= 0.0:
                fault = row
                break
            most = max(most, radius)
            cell = np.uint32((cz * shape[1] + cy) * shape[0] + cx)
            cell_of_row[i] = cell
            tally[np.uint64(block), np.uint64(cell >> shift)] += np.uint32(1)
        faults[block] = fault
        widest[block] = most


@kernel
def _place_buckets(tally, bucket_start, faults, widest):
    """Turn counts into the places where each block puts its rows of a bucket.

    Returns the first row that cannot be sorted, or _NO_FAULT, and the largest sense radius.
    """
    place = np.uint32(0)
    for bucket in range(tally.shape[1]):
        bucket_start[bucket] = place
        for block in range(tally.shape[0]):
            here = tally[block, bucket]
            tally[block, bucket] = place
            place += here
    bucket_start[tally.shape[1]] = place
    most = 0.0
    for block in range(tally.shape[0]):
        if faults[block] != _NO_FAULT:
            return faults[block], 0.0
        most = max(most, widest[block])
    return _NO_FAULT, most


@parallel_kernel
def _deal_rows(cell_of_row, shift, tally, dealt):
    """Put cell and row, packed into one word, into the bucket of the cell; rows of a bucket stay in order."""
    count = cell_of_row.shape[0]
    for block in prange(tally.shape[0]):
        for row in range(block * _ROWS_PER_BLOCK, min(count, (block + 1) * _ROWS_PER_BLOCK)):
            cell = cell_of_row[np.uint64(row)]
            bucket = np.uint64(cell >> shift)
            place = tally[np.uint64(block), bucket]
            tally[np.uint64(block), bucket] = place + np.uint32(1)
            dealt[np.uint64(place)] = (np.uint64(cell) << _HALF) | np.uint64(row)


@parallel_kernel
def _sort_buckets(dealt, bucket_start, shift, ids, position, sense_radius, shared, shared_radius, cells):
    """Sort every bucket by cell and copy the columns that the neighbour search needs.

    Rows of a cell stay in order, which is the order of the ids; if it is not, `ids` are passed.
    """
    cell_start = cells.cell_start
    order = cells.order
    sorted_position = cells.position
    sorted_radius = cells.sense_radius
    cell_count = np.uint64(cell_start.shape[0] - 1)
    spatial = position.shape[1] == 3
    for bucket in prange(bucket_start.shape[0] - 1):
        first_cell = np.uint64(bucket) << np.uint64(shift)
        end_cell = min(cell_count, (np.uint64(bucket) + _ONE) << np.uint64(shift))
        first = np.uint64(bucket_start[bucket])
        end = np.uint64(bucket_start[bucket + 1])
        for cell in range(first_cell, end_cell):
            cell_start[cell] = 0
        for entry in range(first, end):
            cell_start[dealt[entry] >> _HALF] += np.uint32(1)
        place = np.uint32(first)
        for cell in range(first_cell, end_cell):
            place += cell_start[cell]
            cell_start[cell] = place
        # From the last row to the first, filling each cell from its end: cell_start ends up at the cell's beginning.
        for back in range(end - first):
            packed = dealt[end - _ONE - back]
            row_cell = packed >> _HALF
            row = packed & _LOW_HALF
            slot = cell_start[row_cell] - np.uint32(1)
            cell_start[row_cell] = slot
            order[np.uint64(slot)] = np.uint32(row)
        if ids.size > 0:
            _order_by_id(first_cell, end_cell, end, cell_start, ids, order)
        for k in range(first, end):
            sorted_row = np.uint64(order[k])
            sorted_position[0, k] = position[sorted_row, 0]
            sorted_position[1, k] = position[sorted_row, 1]
            if spatial:
                sorted_position[2, k] = position[sorted_row, 2]
            sorted_radius[k] = shared_radius if shared else sense_radius[sorted_row]
    cell_start[cell_count] = np.uint32(dealt.shape[0])


@kernel
def _order_by_id(first_cell, end_cell, end, cell_start, ids, order):
    """Sort the rows of each cell by id. Cells hold few rows, so an insertion sort is enough."""
    for cell in range(first_cell, end_cell):
        begin = np.uint64(cell_start[cell])
        until = np.uint64(cell_start[cell + _ONE]) if cell + _ONE < end_cell else end
        for k in range(begin + _ONE, until):
            row, place = order[k], k
            while place > begin and ids[np.uint64(order[place - _ONE])] > ids[np.uint64(row)]:
                order[place] = order[place - _ONE]
                place -= _ONE
            order[place] = row


@parallel_kernel
def _copy_bodies(velocity, radius, radius_shared, shared_radius, group, group_shared, shared_group, cells):
    """Copy the sorted columns that only steering models read; a value shared by all is not fetched for every row."""
    order, sorted_velocity, sorted_radius, sorted_group = cells.order, cells.velocity, cells.radius, cells.group
    count = order.shape[0]
    spatial = velocity.shape[1] == 3
    for block in prange((count + _ROWS_PER_BLOCK - 1) // _ROWS_PER_BLOCK):
        for place in range(block * _ROWS_PER_BLOCK, min(count, (block + 1) * _ROWS_PER_BLOCK)):
            k = np.uint64(place)
            row = np.uint64(order[k])
            sorted_velocity[0, k] = velocity[row, 0]
            sorted_velocity[1, k] = velocity[row, 1]
            if spatial:
                sorted_velocity[2, k] = velocity[row, 2]
            sorted_radius[k] = shared_radius if radius_shared else radius[row]
            sorted_group[k] = shared_group if group_shared else group[row]


@kernel
def _all_same(column):
    """Whether all numbers of a column are equal; branch-free, so that it compiles to vector instructions."""
    same = True
    for k in range(np.uint64(column.size)):
        same &= column[k] == column[0]
    return same


@kernel
def _keep_members(order, members, is_member, rows):
    for m in range(members.shape[0]):
        is_member[members[m]] = 1
    found = np.uint64(0)
    for k in range(order.shape[0]):
        row = order[np.uint64(k)]
        if is_member[np.uint64(row)]:
            is_member[np.uint64(row)] = 0
            rows[found] = row
            found += _ONE
    return found


def _shared(column: NDArray[Any]) -> tuple[bool, Any]:
    """Whether all agents have the same number in a column, and which."""
    # Read here: Numba would hoist the read of the first element out of loops, even if there is none.
    return (bool(_all_same(column)), column[0]) if len(column) else (True, column.dtype.type(0))


class CellSort:
    """The cells of a fixed grid and the buffers for sorting into them, kept from step to step."""

    def __init__(self, *, origin: Floats, cell: float, shape: NDArray[np.int64], period: Floats, dim: int) -> None:
        self.dim = dim
        self.version = 0  #: counts the sorts
        self.widest = 0.0  #: largest sense radius at the last sort [m]
        self._origin, self._shape, self._inverse_cell, self._period = origin, shape, 1.0 / cell, period
        cell_count = math.prod(shape.tolist())
        shift = max((cell_count - 1).bit_length() - _MOST_BUCKETS.bit_length() + 1, 0)
        self._shift = np.uint32(shift)
        buckets = ((cell_count - 1) >> shift) + 1
        self._cell_start = np.zeros(cell_count + 1, dtype=np.uint32)
        self._bucket_start = np.zeros(buckets + 1, dtype=np.uint32)
        self._make_room(0)
        self._cells = self._view(0)

    def _make_room(self, count: int) -> None:
        self._room = count
        blocks = -(-count // _ROWS_PER_BLOCK)
        self._tally = np.zeros((blocks, len(self._bucket_start) - 1), dtype=np.uint32)
        self._faults = np.zeros(blocks, dtype=np.int64)
        self._widest = np.zeros(blocks)
        self._cell_of_row = np.empty(count, dtype=np.uint32)
        self._dealt = np.empty(count, dtype=np.uint64)
        # The neighbour search copies whole blocks, and flocks sum whole blocks; the last may run past the end.
        self._order = np.zeros(count + COPY_WIDTH, dtype=np.uint32)
        self._position = np.zeros(count * self.dim + COPY_WIDTH)
        self._velocity = np.zeros(count * self.dim + COPY_WIDTH)
        self._sense_radius = np.empty(count)
        self._radius = np.empty(count)
        self._group = np.zeros(count + COPY_WIDTH, dtype=np.int32)
        self._is_member = np.zeros(count, dtype=np.uint8)

    def _view(self, count: int) -> CellList:
        return CellList(
            origin=self._origin,
            inverse_cell=self._inverse_cell,
            shape=self._shape,
            cell_start=self._cell_start,
            order=self._order[:count],
            position=self._position[: count * self.dim].reshape(self.dim, count),
            sense_radius=self._sense_radius[:count],
            velocity=self._velocity[: count * self.dim].reshape(self.dim, count),
            radius=self._radius[:count],
            group=self._group[:count],
            period=self._period,
            level=np.empty(0, dtype=np.int16),
        )

    def sort(self, state: AgentState) -> int | None:
        """Sort all agents. Returns the first row without a valid position or sense radius, if there is one."""
        count = len(state)
        self.version += 1
        self._bodies_copied = False
        if count > self._room:
            self._make_room(count + count // 4)
        if len(self._cells.order) != count or self._cells.order.base is not self._order:
            self._cells = self._view(count)
        self._cells = self._cells._replace(level=state.level)
        blocks = -(-count // _ROWS_PER_BLOCK)
        tally, faults, widest = self._tally[:blocks], self._faults[:blocks], self._widest[:blocks]
        cell_of_row = self._cell_of_row[:count]
        position, sense_radius = state.position, state.sense_radius
        _bin_rows(
            position,
            state.level,
            sense_radius,
            self._origin,
            self._inverse_cell,
            self._shape,
            self._shift,
            cell_of_row,
            tally,
            faults,
            widest,
        )
        fault, self.widest = _place_buckets(tally, self._bucket_start, faults, widest)
        if fault != _NO_FAULT:
            return int(fault)
        dealt = self._dealt[:count]
        _deal_rows(cell_of_row, self._shift, tally, dealt)
        _sort_buckets(dealt, self._bucket_start, self._shift, _IN_ORDER if state.in_id_order else state.id, position,
                      sense_radius, *_shared(sense_radius), self._cells)  # fmt: skip
        return None

    @property
    def sorted(self) -> CellList:
        """The cell list with what the neighbour search needs; velocity, radius and group may be outdated."""
        return self._cells

    def with_bodies(self, state: AgentState) -> CellList:
        """The whole cell list; velocity, radius and group are copied on the first request."""
        if not self._bodies_copied:
            radius, group = state.radius, state.group
            _copy_bodies(state.velocity, radius, *_shared(radius), group, *_shared(group), self._cells)
            self._bodies_copied = True
        return self._cells

    def rows_by_cell(self, members: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The given rows in the order of the cells."""
        order = self._cells.order
        if len(members) == len(order):
            return order
        rows = np.empty(len(members), dtype=np.uint32)
        return rows[: _keep_members(order, members, self._is_member, rows)]
