"""The neighbouring cell with the highest value: vector instructions for the comparison, and the values it compares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.grid_moves import MOVE_X, MOVE_Y, NO_PATH
from tropel._kernels.simd import eight_bytes, everywhere, intrinsic, trailing_zeros, vector_at
from tropel._kernels.walls import chord_blocked
from tropel.local.lattice.bonds import worth_of_bonds
from tropel.local.lattice.cells import BORDER, length_at, padded, tile_of, worth_of_filters

# Vector instructions for decisions on square cells: the eight neighbours of a cell are eight lanes.
#
# Like `_kernels/simd.py`, this emits LLVM vectors and checks nothing.


_INDEX, _BYTE, _WORD, _NUMBER = ir.IntType(32), ir.IntType(8), ir.IntType(64), ir.DoubleType()
_EIGHT = 8
#: Set in the byte of a cell that no agent may enter.
TAKEN = 128


def _constants(kind: Any, value: Any) -> Any:
    return ir.Constant(ir.VectorType(kind, _EIGHT), [value] * _EIGHT)


def _by_move(builder: Any, rows: list[Any], width: int) -> Any:
    """One lane per move, from the rows below, beside and above; the first three lanes of each are columns."""
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
    typing_context: Any, lengths: Any, below: Any, beside: Any, above: Any, around_below: Any, around_beside: Any,
    around_above: Any, moves: Any, here: Any, path_weight: Any, crowd_weight: Any, extra: Any,
) -> Any:  # fmt: skip
    """Bits of the moves to the neighbours of a cell with the highest value, none if all are vetoed; uint64.

    The value of a neighbour is path_weight · length + crowd_weight · around, plus its part of `extra`, a tuple of eight
    numbers by move, or an empty one. The path lengths of the row below, the same row and the row above are three
    numbers each (four are read) of the short `lengths`, from the given places, and count by their difference to `here`.
    The number of agents around is in the lowest three bytes of three words, where TAKEN vetoes. Moves that are not
    among the bits of `moves` and neighbours with NO_PATH are also vetoed.
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
        allowed = builder.and_(allowed, builder.icmp_signed("!=", way, _constants(_INDEX, NO_PATH)))
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
        # A value of minus infinity is a veto, too.
        allowed = builder.fcmp_ordered(">", worth, _constants(_NUMBER, -math.inf))
        best = builder.and_(allowed, builder.fcmp_ordered("==", worth, _largest(builder, worth)))
        return builder.zext(builder.bitcast(best, _BYTE), _WORD)

    place, word, number = types.uint64, types.uint64, types.float64
    return types.uint64(
        lengths, place, place, place, word, word, word, word, types.uint32, number, number, extra
    ), generate


_ONE = np.uint64(1)


@inlined_kernel
def _three(word):
    """Sums of three neighbouring bytes: byte b becomes b + (b+1) + (b+2)."""
    return word + (word >> np.uint64(8)) + (word >> np.uint64(16))


@inlined_kernel
def _taken(word):
    """TAKEN in the bytes of those of the middle three columns that are occupied; bytes of `word` are 0 or 1."""
    return (word >> np.uint64(8)) << np.uint64(7)


@kernel
def _moves_out(x, y, row, column, plan, ground, walls):
    """Moves, as bits, that lead out of a cell that is not free: an agent is caught under a closed door or in rubble."""
    bits = 0
    for m in range(8):
        to_row, to_column = row + MOVE_Y[m], column + MOVE_X[m]
        if to_row < 0 or to_column < 0 or to_row >= ground.rows or to_column >= ground.columns:
            continue
        if ground.lengths[length_at(plan, to_row * ground.columns + to_column, ground)] != NO_PATH:
            there_x, there_y = ground.x + (to_column + 0.5) * ground.cell, ground.y + (to_row + 0.5) * ground.cell
            if not chord_blocked(x, y, there_x, there_y, walls):
                bits |= 1 << m
    return bits


@kernel
def _special_worth(m, i, row, column, group, ground, tile, tiles, bonds):
    to_row, to_column = row + MOVE_Y[m], column + MOVE_X[m]
    worth = worth_of_filters(row, column, to_row, to_column, group, tile, tiles)
    if bonds.of.shape[0] > 0:
        x = ground.x + (to_column + 0.5) * ground.cell
        y = ground.y + (to_row + 0.5) * ground.cell
        worth += worth_of_bonds(i, x, y, bonds)
    return worth


@kernel
def _special_worths(i, row, column, group, ground, tile, tiles, bonds):
    """What filters and bonds add to the values of the eight cells around agent i."""
    return (
        _special_worth(0, i, row, column, group, ground, tile, tiles, bonds),
        _special_worth(1, i, row, column, group, ground, tile, tiles, bonds),
        _special_worth(2, i, row, column, group, ground, tile, tiles, bonds),
        _special_worth(3, i, row, column, group, ground, tile, tiles, bonds),
        _special_worth(4, i, row, column, group, ground, tile, tiles, bonds),
        _special_worth(5, i, row, column, group, ground, tile, tiles, bonds),
        _special_worth(6, i, row, column, group, ground, tile, tiles, bonds),
        _special_worth(7, i, row, column, group, ground, tile, tiles, bonds),
    )


@inlined_kernel
def best_moves(i, row, column, plan, crowd, ground, walls, occupied, tiles, bonds):
    """Moves (as bits) to the neighbouring cells with the highest value that are not vetoed.

    k, the number of agents around a cell, is the sum of nine bytes of the occupancy map. Five words hold the five rows
    around the agent, starting two cells to its left; sums of bytes give k for all eight neighbours at once.
    """
    across = np.uint64(ground.columns + 2 * BORDER)
    corner = np.uint64(padded(row, column, ground.columns) - BORDER) - across - across
    w1 = eight_bytes(occupied, corner + across)
    w2 = eight_bytes(occupied, corner + across + across)
    w3 = eight_bytes(occupied, corner + np.uint64(3) * across)
    s1, s2, s3 = _three(w1), _three(w2), _three(w3)
    below = (_three(eight_bytes(occupied, corner)) + s1 + s2) | _taken(w1)
    beside = (s1 + s2 + s3) | _taken(w2)
    above = (s2 + s3 + _three(eight_bytes(occupied, corner + np.uint64(4) * across))) | _taken(w3)
    cell = row * ground.columns + column
    moves = np.uint64(ground.moves[np.uint64(cell)])
    if moves == 0 and not ground.free[cell]:
        moves = np.uint64(_moves_out(crowd.position[i, 0], crowd.position[i, 1], row, column, plan, ground, walls))
    columns = np.uint64(ground.columns)
    left = np.uint64(length_at(plan, cell, ground)) - _ONE
    here = ground.lengths[left + _ONE]
    if here == NO_PATH and moves != 0:
        # The agent's cell is not free: any of the cells outside will do as the reference for the others.
        m = trailing_zeros(moves)
        here = ground.lengths[length_at(plan, cell + MOVE_Y[m] * ground.columns + MOVE_X[m], ground)]
    tile = tile_of(row, column, tiles)
    bound = bonds.of.shape[0] > 0 and (bonds.of[i, 0] >= 0 or bonds.of[i, 1] >= 0)
    if tiles.start[tile] < tiles.start[tile + 1] or bound:
        special = _special_worths(i, row, column, crowd.group[i], ground, tile, tiles, bonds)
        return best_of_eight(ground.lengths, left - columns, left, left + columns, below, beside, above, moves, here,
                             ground.path_weight, ground.crowd_weight, special)  # fmt: skip
    return best_of_eight(ground.lengths, left - columns, left, left + columns, below, beside, above, moves, here,
                         ground.path_weight, ground.crowd_weight, ())  # fmt: skip


@inlined_kernel
def one_of(bits, word):
    """One of the set bits, all with equal chance, from a random word of 32 bits."""
    count = 0
    rest = bits
    while rest:
        rest &= rest - _ONE
        count += 1
    skip = (np.uint64(word) * np.uint64(count)) >> np.uint64(32)
    while skip:
        bits &= bits - _ONE
        skip -= _ONE
    return trailing_zeros(bits)
