"""Which of the cells around an agent of a lattice crowd is worth most."""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.grid_moves import FAR, MOVE_X, MOVE_Y
from tropel._kernels.simd import eight_bytes, trailing_zeros
from tropel._kernels.walls import chord_blocked
from tropel.local.lattice_bonds import worth_of_bonds
from tropel.local.lattice_filters import tile_of, worth_of_filters
from tropel.local.lattice_ground import BORDER, padded

_ONE = np.uint64(1)
_BYTE = np.uint64(0xFF)


@inlined_kernel
def _three(word):
    """Sums of three neighbouring bytes: byte b becomes b + (b+1) + (b+2)."""
    return word + (word >> np.uint64(8)) + (word >> np.uint64(16))


@kernel
def _ways_out(x, y, row, column, plan, ground, walls):
    """Moves, as bits, that lead out of a cell that is not free: somebody is caught under a closed door or in rubble."""
    bits = 0
    for m in range(8):
        to_row, to_column = row + MOVE_Y[m], column + MOVE_X[m]
        if to_row < 0 or to_column < 0 or to_row >= ground.rows or to_column >= ground.columns:
            continue
        if ground.units[(plan * ground.rows + to_row) * ground.columns + to_column] < FAR:
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
    """What filters and bonds make the eight cells around agent i worth more or less."""
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
def _worth(m, cell, layer, moves, words_around, sums, special, ground):
    """What the cell that move m leads to is worth, -inf when vetoed; without branches."""
    dx, dy = MOVE_X[m], MOVE_Y[m]
    shift = np.uint64(8 * (dx + 1))
    taken = (words_around >> (shift + np.uint64(8))) & _BYTE
    allowed = ((moves >> m) & 1) != 0
    there = cell + (dy * ground.columns + dx if allowed else 0)
    way = ground.units[np.uint64(layer + there)]
    around = np.int64((sums >> shift) & _BYTE)
    worth = ground.way_weight * way + ground.crowd_weight * around + special
    return worth if allowed & (taken == 0) & (way < FAR) else -math.inf


@inlined_kernel
def best_moves(i, row, column, plan, crowd, ground, walls, occupied, tiles, bonds):
    """Moves (as bits) to those of the neighbouring cells that are worth most and not vetoed.

    k, the number of agents around a cell, is the sum of nine bytes of the occupancy layer. Five words hold the five
    rows around the agent, from two cells to its left; sums of bytes give k of all eight neighbours at once.
    """
    across = np.uint64(ground.columns + 2 * BORDER)
    corner = np.uint64(padded(row, column, ground.columns) - BORDER) - across - across
    w0 = eight_bytes(occupied, corner)
    w1 = eight_bytes(occupied, corner + across)
    w2 = eight_bytes(occupied, corner + across + across)
    w3 = eight_bytes(occupied, corner + np.uint64(3) * across)
    w4 = eight_bytes(occupied, corner + np.uint64(4) * across)
    s1, s2, s3 = _three(w1), _three(w2), _three(w3)
    below, beside, above = _three(w0) + s1 + s2, s1 + s2 + s3, s2 + s3 + _three(w4)
    tile = tile_of(row, column, tiles)
    bound = bonds.of.shape[0] > 0 and (bonds.of[i, 0] >= 0 or bonds.of[i, 1] >= 0)
    e0 = e1 = e2 = e3 = e4 = e5 = e6 = e7 = 0.0
    if tiles.start[tile] < tiles.start[tile + 1] or bound:
        e0, e1, e2, e3, e4, e5, e6, e7 = _special_worths(i, row, column, crowd.group[i], ground, tile, tiles, bonds)
    cell = row * ground.columns + column
    moves = np.int64(ground.moves[np.uint64(cell)])
    if moves == 0 and not ground.free[cell]:
        moves = _ways_out(crowd.position[i, 0], crowd.position[i, 1], row, column, plan, ground, walls)
    layer = plan * ground.rows * ground.columns
    v0 = _worth(0, cell, layer, moves, w2, beside, e0, ground)
    v1 = _worth(1, cell, layer, moves, w3, above, e1, ground)
    v2 = _worth(2, cell, layer, moves, w2, beside, e2, ground)
    v3 = _worth(3, cell, layer, moves, w1, below, e3, ground)
    v4 = _worth(4, cell, layer, moves, w3, above, e4, ground)
    v5 = _worth(5, cell, layer, moves, w3, above, e5, ground)
    v6 = _worth(6, cell, layer, moves, w1, below, e6, ground)
    v7 = _worth(7, cell, layer, moves, w1, below, e7, ground)
    best = max(max(max(v0, v1), max(v2, v3)), max(max(v4, v5), max(v6, v7)))
    if best == -math.inf:
        return np.uint64(0)
    return np.uint64(
        np.int64(v0 == best)
        | np.int64(v1 == best) << 1
        | np.int64(v2 == best) << 2
        | np.int64(v3 == best) << 3
        | np.int64(v4 == best) << 4
        | np.int64(v5 == best) << 5
        | np.int64(v6 == best) << 6
        | np.int64(v7 == best) << 7
    )


@inlined_kernel
def one_of(bits, word):
    """One of the set bits, all with the same chance, by a random word of 32 bits."""
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
