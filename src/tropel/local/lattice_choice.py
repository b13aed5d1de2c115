"""Which of the cells around an agent of a lattice crowd is worth most."""

from __future__ import annotations

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.grid_moves import MOVE_X, MOVE_Y
from tropel._kernels.short_ways import NO_WAY
from tropel._kernels.simd import eight_bytes, trailing_zeros
from tropel._kernels.simd_cells import best_of_eight
from tropel._kernels.walls import chord_blocked
from tropel.local.lattice_bonds import worth_of_bonds
from tropel.local.lattice_filters import tile_of, worth_of_filters
from tropel.local.lattice_ground import BORDER, padded, way_at

_ONE = np.uint64(1)


@inlined_kernel
def _three(word):
    """Sums of three neighbouring bytes: byte b becomes b + (b+1) + (b+2)."""
    return word + (word >> np.uint64(8)) + (word >> np.uint64(16))


@inlined_kernel
def _taken(word):
    """TAKEN in the bytes of those columns, of the middle three, where somebody stands; bytes of `word` are 0 or 1."""
    return (word >> np.uint64(8)) << np.uint64(7)


@kernel
def _ways_out(x, y, row, column, plan, ground, walls):
    """Moves, as bits, that lead out of a cell that is not free: somebody is caught under a closed door or in rubble."""
    bits = 0
    for m in range(8):
        to_row, to_column = row + MOVE_Y[m], column + MOVE_X[m]
        if to_row < 0 or to_column < 0 or to_row >= ground.rows or to_column >= ground.columns:
            continue
        if ground.ways[way_at(plan, to_row * ground.columns + to_column, ground)] != NO_WAY:
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
def best_moves(i, row, column, plan, crowd, ground, walls, occupied, tiles, bonds):
    """Moves (as bits) to those of the neighbouring cells that are worth most and not vetoed.

    k, the number of agents around a cell, is the sum of nine bytes of the occupancy layer. Five words hold the five
    rows around the agent, from two cells to its left; sums of bytes give k of all eight neighbours at once.
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
        moves = np.uint64(_ways_out(crowd.position[i, 0], crowd.position[i, 1], row, column, plan, ground, walls))
    columns = np.uint64(ground.columns)
    left = np.uint64(way_at(plan, cell, ground)) - _ONE
    here = ground.ways[left + _ONE]
    if here == NO_WAY and moves != 0:
        # Not free: any of the ways out will do to compare the others with.
        m = trailing_zeros(moves)
        here = ground.ways[way_at(plan, cell + MOVE_Y[m] * ground.columns + MOVE_X[m], ground)]
    tile = tile_of(row, column, tiles)
    bound = bonds.of.shape[0] > 0 and (bonds.of[i, 0] >= 0 or bonds.of[i, 1] >= 0)
    if tiles.start[tile] < tiles.start[tile + 1] or bound:
        special = _special_worths(i, row, column, crowd.group[i], ground, tile, tiles, bonds)
        return best_of_eight(ground.ways, left - columns, left, left + columns, below, beside, above, moves, here,
                             ground.way_weight, ground.crowd_weight, special)  # fmt: skip
    return best_of_eight(ground.ways, left - columns, left, left + columns, below, beside, above, moves, here,
                         ground.way_weight, ground.crowd_weight, ())  # fmt: skip


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
