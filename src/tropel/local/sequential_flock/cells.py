"""Agents in cells that stay up to date while agents move one after another, and vectorised sums over a cell.

Each cell has a few more slots than agents, contiguous in memory. Leaving a cell (its last agent takes the free slot)
and entering one takes constant time, and the agents of a cell are read with vector instructions. Linked lists were
rejected: they need no spare slots, but every read waits for the one before it in the list. When a cell is full, all
slots are laid out again and the step continues.

The second half of the file sums over the agents in the slots of a cell, eight at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numpy.typing import NDArray

from tropel._kernels.cells import CellList, axis_cell
from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.simd import TEST_WIDTH, _sum_of_squares, everywhere, intrinsic, vector_at

_ONE = np.uint64(1)


class Slots(NamedTuple):
    """The members of a flock by cell, numbered in the order of their ids; a plain tuple of arrays for kernels.

    The cells are those of a `CellList`.
    """

    first: NDArray[np.uint32]  #: (cells + 1,): where the slots of a cell begin
    taken: NDArray[np.uint32]  #: (cells,): how many of them are taken, from the first on
    member: NDArray[np.uint32]  #: (slots,): the member in a slot
    #: Positions and headings. The columns of a cell are contiguous: first all x, then all y and so on, each as long as
    #: the cell has slots. A row of cells is then one stretch of memory. Padded at the end, so that a block can be read
    #: at once.
    hot: NDArray[np.float64]
    slot: NDArray[np.uint32]  #: (members,): the slot of a member, counted from the first one of its cell
    cell: NDArray[np.uint32]  #: (members,): its cell


@inlined_kernel
def cell_of(cells, x, y, z):
    """The number of the cell of a point; z is ignored in 2D, where the grid has one cell along it."""
    cx = axis_cell(x, cells.origin[0], cells.inverse_cell, cells.shape[0])
    cy = axis_cell(y, cells.origin[1], cells.inverse_cell, cells.shape[1])
    cz = axis_cell(z, cells.origin[2], cells.inverse_cell, cells.shape[2])
    return np.uint32((cz * cells.shape[1] + cy) * cells.shape[0] + cx)


@kernel
def _count(place, cells, cell, taken):
    spatial = place.shape[1] == 3
    for m in range(place.shape[0]):
        cell[m] = cell_of(cells, place[m, 0], place[m, 1], place[m, 2] if spatial else 0.0)
        taken[np.uint64(cell[m])] += np.uint32(1)


@kernel
def _share_out(taken, first):
    """Where the slots of each cell begin: room for half as many agents again, and a few more."""
    at = np.uint32(0)
    for c in range(taken.shape[0]):
        first[c] = at
        at += taken[c] + (taken[c] >> np.uint32(1)) + np.uint32(6 if taken[c] > 0 else 2)
        taken[c] = 0
    first[taken.shape[0]] = at
    return at


@inlined_kernel
def stretch(c, columns, slots):
    """Where the hot columns of a cell begin, and the distance between them."""
    first = np.uint64(slots.first[c])
    return first * columns, np.uint64(slots.first[c + _ONE]) - first


@kernel
def _fill(place, heading, slots):
    dim = place.shape[1]
    for m in range(place.shape[0]):
        c = np.uint64(slots.cell[m])
        s = np.uint64(slots.taken[c])
        slots.taken[c] += np.uint32(1)
        slots.member[np.uint64(slots.first[c]) + s] = m
        slots.slot[m] = s
        at, apart = stretch(c, np.uint64(2 * dim), slots)
        at += s
        for axis in range(dim):
            slots.hot[at] = place[m, axis]
            at += apart
        for axis in range(dim):
            slots.hot[at] = heading[m, axis]
            at += apart


def laid_out(place: NDArray[np.float64], heading: NDArray[np.float64], cells: CellList) -> Slots:
    """Slots for members at their places (members, dim), all inside the period if space is periodic."""
    count, dim = place.shape
    cell_count = len(cells.cell_start) - 1
    cell = np.empty(count, dtype=np.uint32)
    taken = np.zeros(cell_count, dtype=np.uint32)
    first = np.empty(cell_count + 1, dtype=np.uint32)
    _count(place, cells, cell, taken)
    total = _share_out(taken, first)
    slots = Slots(
        first=first,
        taken=taken,
        member=np.empty(total, dtype=np.uint32),
        hot=np.empty(2 * dim * total + TEST_WIDTH),
        slot=np.empty(count, dtype=np.uint32),
        cell=cell,
    )
    _fill(place, heading, slots)
    return slots


@inlined_kernel
def change_cell(m, to, columns, slots):
    """Move a member to another cell, except for its hot columns. Returns whether a slot was free.

    If none was, nothing is changed.
    """
    into = np.uint64(to)
    room = slots.first[into + _ONE] - slots.first[into]
    if slots.taken[into] == room:
        return False
    out_of = np.uint64(slots.cell[m])
    begin = np.uint64(slots.first[out_of])
    last = np.uint64(slots.taken[out_of]) - _ONE
    gap = np.uint64(slots.slot[m])
    if gap != last:
        mover = slots.member[begin + last]
        slots.member[begin + gap] = mover
        slots.slot[np.uint64(mover)] = np.uint32(gap)
        at, apart = stretch(out_of, columns, slots)
        for _ in range(columns):
            slots.hot[at + gap] = slots.hot[at + last]
            at += apart
    slots.taken[out_of] = np.uint32(last)
    slots.slot[m] = slots.taken[into]
    slots.member[np.uint64(slots.first[into]) + np.uint64(slots.taken[into])] = m
    slots.taken[into] += np.uint32(1)
    slots.cell[m] = to
    return True


# Sums over the agents in the slots of a cell, eight at a time, in vector instructions.
#
# `_kernels/simd.py` explains how they are written. Sums are kept in lanes, one for every eighth agent. The lanes are
# added up at the end, always in the same order.

#: Agents in a block.
LANES = 8
#: Sums by number; vectors have one number for each of three axes. They are the count of agents in sight, offsets to
#: them, their headings, and offsets to those that are too near.
COUNT, OFFSETS, HEADINGS, NEAR, SUMS = 0, 1, 4, 7, 10


def _add_block(context: Any, builder: Any, signature: Any, arguments: Any, dim: int) -> Any:
    sums, hot, at, apart, left = arguments[:5]
    word, vector = ir.IntType(64), ir.VectorType(ir.DoubleType(), LANES)
    words = ir.VectorType(word, LANES)
    centre = [everywhere(builder, value, vector) for value in arguments[5 : 5 + dim]]
    limit, near = (everywhere(builder, value, vector) for value in arguments[5 + dim :])
    nothing = ir.Constant(vector, [0.0] * LANES)
    columns = []
    for _ in range(2 * dim):
        columns.append(builder.load(vector_at(context, builder, signature.args[1], hot, at, vector), align=8))
        at = builder.add(at, apart)
    offsets = [builder.fsub(place, middle) for place, middle in zip(columns[:dim], centre, strict=True)]
    away2 = _sum_of_squares(builder, offsets)
    there = builder.icmp_unsigned("<", ir.Constant(words, list(range(LANES))), everywhere(builder, left, words))
    seen = builder.and_(there, builder.fcmp_ordered("<=", away2, limit))
    close = builder.and_(seen, builder.fcmp_ordered("<", away2, near))

    def add(number: int, values: Any, chosen: Any) -> None:
        place = vector_at(context, builder, signature.args[0], sums, ir.Constant(word, number * LANES), vector)
        total = builder.fadd(builder.load(place, align=8), builder.select(chosen, values, nothing))
        builder.store(total, place, align=8)

    add(COUNT, ir.Constant(vector, [1.0] * LANES), seen)
    for axis in range(dim):
        add(OFFSETS + axis, offsets[axis], seen)
        add(HEADINGS + axis, columns[dim + axis], seen)
        add(NEAR + axis, offsets[axis], close)
    return context.get_dummy_value()


@intrinsic
def add_block_2d(
    typing_context: Any, sums: Any, hot: Any, at: Any, apart: Any, left: Any, x: Any, y: Any, limit: Any, near: Any
) -> Any:
    """Add those of the first `left` of LANES agents that are in sight to `sums` (SUMS · LANES).

    Their columns begin at `at` in the array `hot`, `apart` numbers apart. `limit` and `near` are squared distances to
    (x, y).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _add_block(context, builder, signature, arguments, 2)

    index, number = types.uint64, types.float64
    return types.void(sums, hot, index, index, index, number, number, number, number), generate


@intrinsic
def add_block_3d(
    typing_context: Any,
    sums: Any, hot: Any, at: Any, apart: Any, left: Any, x: Any, y: Any, z: Any, limit: Any, near: Any,
) -> Any:  # fmt: skip
    """The same in three dimensions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _add_block(context, builder, signature, arguments, 3)

    index, number = types.uint64, types.float64
    return types.void(sums, hot, index, index, index, number, number, number, number, number), generate
