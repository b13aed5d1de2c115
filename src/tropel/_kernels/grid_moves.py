"""Moves on a raster: which are allowed, what they cost, and where they lead once path lengths to a goal are known.

Lengths are whole numbers, so that sums do not depend on their order and a repaired path plan has the same bits as a
fresh one. A straight move is 2744210 units, which is a Pell number, and a diagonal one 3880899, its half-companion.
Their ratio is √2 to 5e-14, and they order all lengths a + b √2 with a, b < 2744210 exactly as the true lengths are
ordered.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel

STRAIGHT = 2744210
DIAGONAL = 3880899
#: Length of a path that does not exist.
FAR = 1 << 62
#: Terrain is stored in 1024ths; this is the cost of plain ground.
PLAIN = 1024
#: The eight moves by number: straight ones first, then diagonal ones; of equally good moves the first is taken.
MOVE_X = np.array([1, 0, -1, 0, 1, -1, -1, 1], dtype=np.int64)
MOVE_Y = np.array([0, 1, 0, -1, 1, 1, -1, -1], dtype=np.int64)
#: Values in a policy besides the numbers of moves.
STAY, NO_MOVE = 8, 255


class MoveCosts(NamedTuple):
    """What moving on a raster costs. Cells are numbered row by row."""

    moves: NDArray[np.uint8]  #: (cells,): bit m is set if move m is allowed
    terrain: NDArray[np.int32]  #: (cells,): cost in 1024ths, at least 1024; empty if all ground is plain
    across: int  #: cells in a row
    diagonal: int  #: units of a diagonal move: DIAGONAL, or STRAIGHT if all moves cost the same
    dearest: int  #: units of the most expensive move


@inlined_kernel
def move_cost(a, b, m, diagonal, terrain):
    """Units of move m between the neighbours a and b; the same in both directions."""
    plain = np.int64(STRAIGHT) if m < 4 else np.int64(diagonal)
    if terrain.size == 0:
        return plain
    return (plain * (np.int64(terrain[a]) + np.int64(terrain[b]))) // np.int64(2 * PLAIN)


@inlined_kernel
def moves_of(iy, ix, free, corner_cutting):
    """The allowed moves of a cell, as bits. A diagonal one needs both cells next to it, unless corners may be cut."""
    ny, nx = free.shape
    if not free[iy, ix]:
        return np.uint8(0)
    up, down, right, left = iy + 1 < ny, iy > 0, ix + 1 < nx, ix > 0
    east = right and free[iy, ix + 1]
    west = left and free[iy, ix - 1]
    north = up and free[iy + 1, ix]
    south = down and free[iy - 1, ix]
    bits = np.int64(east) | np.int64(north) << 1 | np.int64(west) << 2 | np.int64(south) << 3
    if not corner_cutting:
        up, down, right, left = north, south, east, west
        if not (up or down):
            return np.uint8(bits)
    bits |= np.int64(up and right and free[iy + 1, ix + 1]) << 4
    bits |= np.int64(up and left and free[iy + 1, ix - 1]) << 5
    bits |= np.int64(down and left and free[iy - 1, ix - 1]) << 6
    bits |= np.int64(down and right and free[iy - 1, ix + 1]) << 7
    return np.uint8(bits)


@kernel
def _moves_inside(iy, free, corner_cutting, moves):
    """Write the allowed moves of a row's cells that have all eight neighbours; branch-free, as a vector loop.

    `free` is 1 or 0 here.
    """
    nx = np.uint64(free.shape[1])
    cut = np.uint8(corner_cutting)
    for ix in range(np.uint64(1), nx - np.uint64(1)):
        west, east = ix - np.uint64(1), ix + np.uint64(1)
        e, w, n, s = free[iy, east], free[iy, west], free[iy + 1, ix], free[iy - 1, ix]
        # A diagonal move needs the cells next to it, unless corners may be cut.
        ee, ww, nn, ss = e | cut, w | cut, n | cut, s | cut
        bits = e | n << 1 | w << 2 | s << 3
        bits |= (free[iy + 1, east] & nn & ee) << 4 | (free[iy + 1, west] & nn & ww) << 5
        bits |= (free[iy - 1, west] & ss & ww) << 6 | (free[iy - 1, east] & ss & ee) << 7
        moves[np.uint64(iy) * nx + ix] = np.uint8(bits * free[iy, ix])


@kernel
def all_moves(free, corner_cutting, moves):
    """Write the allowed moves of every cell."""
    ny, nx = free.shape
    ones = free.view(np.uint8)
    for iy in range(ny):
        if 0 < iy < ny - 1 and nx > 2:
            _moves_inside(iy, ones, corner_cutting, moves)
            moves[iy * nx] = moves_of(iy, 0, free, corner_cutting)
            moves[iy * nx + nx - 1] = moves_of(iy, nx - 1, free, corner_cutting)
        else:
            for ix in range(nx):
                moves[iy * nx + ix] = moves_of(iy, ix, free, corner_cutting)


@kernel
def moves_around(cells, free, corner_cutting, moves, seen, near):
    """Write the allowed moves of the given cells and their neighbours, and list all of these in `near`, each once.

    `seen` (cells,), uint8, must be zero and is zero afterwards; `near` has room for nine entries per given cell.
    Returns how many cells are listed.
    """
    ny, nx = free.shape
    count = 0
    for k in range(cells.size):
        iy, ix = cells[k] // nx, cells[k] % nx
        for jy in range(max(iy - 1, 0), min(iy + 2, ny)):
            for jx in range(max(ix - 1, 0), min(ix + 2, nx)):
                c = jy * nx + jx
                if not seen[c]:
                    seen[c] = 1
                    near[count] = c
                    count += 1
                    moves[c] = moves_of(jy, jx, free, corner_cutting)
    for k in range(count):
        seen[near[k]] = 0
    return count


@inlined_kernel
def best_move(c, ground, distance):
    """The move to the neighbour nearest to the goal: argmax V(T(s, a)), the first of several equal ones."""
    if distance[c] == 0:
        return np.uint8(STAY)
    best = distance[c]
    move = np.uint8(NO_MOVE)
    for m in range(8):
        if ground.moves[c] >> m & 1:
            there = distance[c + MOVE_Y[m] * ground.across + MOVE_X[m]]
            if there < best:
                best = there
                move = np.uint8(m)
    return move


@parallel_kernel
def all_best_moves(ground, distance, policy):
    """Write the policy of every cell."""
    rows = distance.size // ground.across
    for iy in numba.prange(rows):
        for c in range(iy * ground.across, (iy + 1) * ground.across):
            policy[c] = best_move(c, ground, distance)


@kernel
def downhill(c, ground, distance):
    """Unit vector of steepest descent of the path length, which is linear on the triangles of free neighbours.

    Each triangle is the cell, a straight neighbour and a diagonal one next to that. The vector stays within a triangle
    of free cells, so it never points into a blocked one. It goes downhill, so following it never leads in a circle.
    """
    here = distance[c]
    if here == 0 or here >= FAR:
        return 0.0, 0.0
    bits = ground.moves[c]
    steepest = 0.0  # square of the slope
    ahead = aside = 0.0
    ax = ay = bx = by = 0
    for m in range(4):
        if not bits >> m & 1:
            continue
        beside = distance[c + MOVE_Y[m] * ground.across + MOVE_X[m]]
        if beside >= here:
            continue
        along = np.float64(here - beside)
        if along * along > steepest:
            steepest, ahead, aside = along * along, along, 0.0
            ax, ay, bx, by = MOVE_X[m], MOVE_Y[m], 0, 0
        for side in range(2):
            # The diagonal moves to the left and to the right of move m.
            diagonal = 4 + (m if side == 0 else (m + 3) & 3)
            if not bits >> diagonal & 1:
                continue
            corner = distance[c + MOVE_Y[diagonal] * ground.across + MOVE_X[diagonal]]
            if corner >= beside:
                continue
            across = np.float64(beside - corner)
            # Steepest beyond the diagonal: follow the diagonal within this triangle.
            half = 0.5 * (along + across)
            u, v = (half, half) if across > along else (along, across)
            if u * u + v * v > steepest:
                steepest, ahead, aside = u * u + v * v, u, v
                ax, ay = MOVE_X[m], MOVE_Y[m]
                bx, by = MOVE_X[diagonal] - ax, MOVE_Y[diagonal] - ay
    if steepest == 0.0:
        # The only move is past a corner that may be cut.
        m = best_move(c, ground, distance)
        return MOVE_X[m] * math.sqrt(0.5), MOVE_Y[m] * math.sqrt(0.5)
    scale = 1.0 / math.sqrt(steepest)
    return (ahead * ax + aside * bx) * scale, (ahead * ay + aside * by) * scale


@kernel
def _row_downhill(iy, ground, distance, vectors):
    for c in range(iy * ground.across, (iy + 1) * ground.across):
        vectors[c, 0], vectors[c, 1] = downhill(c, ground, distance)


@parallel_kernel
def all_downhill(ground, distance, vectors):
    """Write the unit vectors (cells, 2) of every cell; zero on goals and where there is no path."""
    for iy in numba.prange(distance.size // ground.across):
        _row_downhill(np.uint64(iy), ground, distance, vectors)


@kernel
def downhill_around(cells, ground, distance, vectors, seen):
    """The same for the given cells and their neighbours. `seen` must be zero and is zero afterwards."""
    ny, nx = distance.size // ground.across, ground.across
    for clear in range(2):
        for k in range(cells.size):
            iy, ix = cells[k] // nx, cells[k] % nx
            for jy in range(max(iy - 1, 0), min(iy + 2, ny)):
                for jx in range(max(ix - 1, 0), min(ix + 2, nx)):
                    c = jy * nx + jx
                    if clear:
                        seen[c] = 0
                    elif not seen[c]:
                        seen[c] = 1
                        vectors[c, 0], vectors[c, 1] = downhill(c, ground, distance)


# Path lengths in 32 bits, for code that only compares neighbouring cells.
#
# A crowd on a large map waits for memory, and this halves the traffic. Only the lowest bits of a length are kept.
# Differences between neighbours are correct nevertheless, because they are small. Only AT_GOAL stands for the goal, and
# only NO_PATH for a path that does not exist.

AT_GOAL, NO_PATH = 0, 0xFFFFFFFF
_LOW = np.int64(0xFFFFFFFF)


def bits_to_drop(longest_move: int) -> int:
    """How many of the lowest bits of lengths to drop, so that differences of a few moves this long still fit."""
    return max(0, longest_move.bit_length() - 29)


@parallel_kernel
def shorten_lengths(units, drop, out):
    """Write path lengths without their `drop` lowest bits and without their highest bits."""
    for cell in numba.prange(units.size):
        way = units[cell]
        low = np.uint32(min(max((way >> drop) & _LOW, AT_GOAL + 1), NO_PATH - 1))
        out[cell] = np.uint32(AT_GOAL) if way == 0 else np.uint32(NO_PATH) if way >= FAR else low
