"""Sums over the agents in the slots of a cell (`local/sequential_cells.py`), eight at a time, in vector instructions.

See `simd.py` for how they are written down. Sums are kept in lanes, one for every eighth agent, and are added up at
last, always in the same order.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types

from tropel._kernels.simd import _sum_of_squares, everywhere, intrinsic, vector_at

#: Agents in a block.
LANES = 8
#: Sums by number, the vectors with a number for each of three axes: how many are in sight, offsets to them, headings,
#: and offsets to those that are near.
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
    """Add to `sums` (SUMS · LANES) those of LANES agents, of whom the first `left` count, that are within sight.

    Their columns begin at `at` of the array `hot` and are `apart`; `limit` and `near` are squared distances to (x, y).
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
