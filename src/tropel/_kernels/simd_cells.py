"""Vector instructions for decisions on square cells: the eight neighbours of a cell are eight lanes.

Like `simd.py`, this writes LLVM vectors down and checks nothing.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types

from tropel._kernels.grid_moves import MOVE_X, MOVE_Y
from tropel._kernels.short_ways import NO_WAY
from tropel._kernels.simd import everywhere, intrinsic, vector_at

_INDEX, _BYTE, _WORD, _NUMBER = ir.IntType(32), ir.IntType(8), ir.IntType(64), ir.DoubleType()
_EIGHT = 8
#: Set in the byte of a cell that nobody may enter.
TAKEN = 128


def _constants(kind: Any, value: Any) -> Any:
    return ir.Constant(ir.VectorType(kind, _EIGHT), [value] * _EIGHT)


def _by_move(builder: Any, rows: list[Any], width: int) -> Any:
    """One lane per move, out of the rows below, beside and above, of which the first three lanes are columns."""
    low = builder.shuffle_vector(rows[0], rows[1], _lanes(range(2 * width)))
    high = builder.shuffle_vector(rows[2], rows[2], _lanes(range(2 * width)))
    wanted = [(int(dy) + 1) * width + int(dx) + 1 for dx, dy in zip(MOVE_X, MOVE_Y, strict=True)]
    return builder.shuffle_vector(low, high, _lanes(wanted))


def _lanes(numbers: Any) -> Any:
    chosen = list(numbers)
    return ir.Constant(ir.VectorType(_INDEX, len(chosen)), chosen)


def _largest(builder: Any, vector: Any) -> Any:
    """The largest lane, in all lanes."""
    for step in (4, 2, 1):
        other = builder.shuffle_vector(vector, vector, _lanes(lane ^ step for lane in range(_EIGHT)))
        vector = builder.select(builder.fcmp_ordered(">", other, vector), other, vector)
    return vector


@intrinsic
def best_of_eight(
    typing_context: Any, ways: Any, below: Any, beside: Any, above: Any, around_below: Any, around_beside: Any,
    around_above: Any, moves: Any, here: Any, way_weight: Any, crowd_weight: Any, extra: Any,
) -> Any:  # fmt: skip
    """Bits of the moves to those neighbours of a cell that are worth most, none when all are vetoed; uint64.

    A neighbour is worth way_weight · way + crowd_weight · around, and its part of `extra`, a tuple of eight numbers by
    move or of none. The ways of the row below, the same and the row above are three numbers each (four are read) of
    the short `ways`, from the given places, and count by their difference to `here`. How many are around is in the
    lowest three bytes of three words, where TAKEN vetoes. Vetoed are also moves that are not among the bits of `moves`,
    and NO_WAY.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = arguments[0]
        four, words = ir.VectorType(_INDEX, 4), ir.VectorType(_BYTE, 8)
        rows = [
            builder.load(vector_at(context, builder, signature.args[0], array, at, four), align=4)
            for at in arguments[1:4]
        ]
        way = _by_move(builder, rows, 4)
        around = _by_move(builder, [builder.bitcast(word, words) for word in arguments[4:7]], 8)
        allowed = builder.bitcast(builder.trunc(arguments[7], _BYTE), ir.VectorType(ir.IntType(1), _EIGHT))
        allowed = builder.and_(allowed, builder.icmp_signed(">=", around, _constants(_BYTE, 0)))
        allowed = builder.and_(allowed, builder.icmp_signed("!=", way, _constants(_INDEX, NO_WAY)))
        numbers = ir.VectorType(_NUMBER, _EIGHT)
        less = builder.sub(way, everywhere(builder, arguments[8], ir.VectorType(_INDEX, _EIGHT)))
        length = builder.sitofp(less, numbers)
        count = builder.sitofp(builder.sext(around, ir.VectorType(_INDEX, _EIGHT)), numbers)
        worth = builder.fmul(everywhere(builder, arguments[9], numbers), length)
        worth = builder.fadd(worth, builder.fmul(everywhere(builder, arguments[10], numbers), count))
        if signature.args[11].count:
            more = ir.Constant(numbers, ir.Undefined)
            for lane in range(_EIGHT):
                each = builder.extract_value(arguments[11], lane)
                more = builder.insert_element(more, each, ir.Constant(_INDEX, lane))
            worth = builder.fadd(worth, more)
        worth = builder.select(allowed, worth, _constants(_NUMBER, -math.inf))
        # What is worth minus infinity is vetoed, too.
        allowed = builder.fcmp_ordered(">", worth, _constants(_NUMBER, -math.inf))
        best = builder.and_(allowed, builder.fcmp_ordered("==", worth, _largest(builder, worth)))
        return builder.zext(builder.bitcast(best, _BYTE), _WORD)

    place, word, number = types.uint64, types.uint64, types.float64
    return types.uint64(
        ways, place, place, place, word, word, word, word, types.uint32, number, number, extra
    ), generate
