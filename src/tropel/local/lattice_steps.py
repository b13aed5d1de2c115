"""A step of the lattice crowd, as kernels: find the cells, propose moves, settle conflicts, move.

Cells are numbered row by row. The layers that are looked at around a cell (who stands there, who wants to go where)
have a border of two cells, so that nobody has to ask whether a neighbour exists; `padded` numbers are those with it.
Agents keep their cell as a place, row and column in one word, because divisions would cost more than decisions.
Every loop gathers: an agent writes its own row and the cell it stands on, and at last the cell it goes to, which is its
alone. So nothing depends on threads or on the order of agents.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.grid_moves import FAR, MOVE_X, MOVE_Y
from tropel._kernels.philox import words
from tropel._kernels.simd import eight_bytes, prefetch, trailing_zeros
from tropel._kernels.walls import chord_blocked
from tropel.agents.state import NO_GOAL
from tropel.local.lattice_bonds import worth_of_bonds
from tropel.local.lattice_filters import TILE_BITS, tile_of, worth_of_filters

#: Cells around the map in the layers that have a border.
BORDER = 2
#: Values of `choice` besides the numbers of moves.
STAYS, ARRIVED = 8, 9
#: Nothing is there.
NOWHERE = -1

#: Agents per unit of parallel work.
_CHUNK = 256
#: How many agents ahead their surroundings are asked for.
_AHEAD = 8
#: Share of a move's time by which credit may fall short of it: rounding must not cost a step.
_ALMOST = 1e-9

_ONE = np.uint64(1)
#: The bits of moves that are not diagonal.
_STRAIGHT_MOVES = np.uint64(15)
_BYTE = np.uint64(0xFF)
_ALL_BUT_ONE_BIT, _HIGH_BITS = np.uint64(0x7F7F7F), np.uint64(0x808080)
#: The claims (numbers of moves and 1) that lead to a cell from the row below, its own and the row above; by column.
_FROM_BELOW, _FROM_BESIDE, _FROM_ABOVE = np.uint64(0x060205), np.uint64(0x037F01), np.uint64(0x070408)


class Ground(NamedTuple):
    """The map and its layers as kernels see them."""

    x: float  #: low corner [m]
    y: float
    cell: float  #: [m]
    rows: int
    columns: int
    free: NDArray[np.bool_]  #: (cells,)
    moves: NDArray[np.uint8]  #: (cells,): bit m is set when move m is allowed
    units: NDArray[np.int64]  #: (plans, cells): length of the way to each goal
    plan_of_goal: NDArray[np.int64]  #: by goal - NO_GOAL; NOWHERE when there is none
    way_weight: float  #: logarithm of what a unit of way makes a cell worth
    crowd_weight: float  #: logarithm of what a neighbour makes a cell worth


class Crowd(NamedTuple):
    """Columns of all agents that a decision needs."""

    id: NDArray[np.int64]
    position: NDArray[np.float64]
    desired_speed: NDArray[np.float64]
    start_time: NDArray[np.float64]
    goal: NDArray[np.int32]
    group: NDArray[np.int32]
    credit: NDArray[np.float64]
    velocity: NDArray[np.float64]


@inlined_kernel
def _place(row, column):
    return (np.int64(row) << 32) | np.int64(column)


@inlined_kernel
def _row_and_column(place):
    return place >> 32, place & 0xFFFFFFFF


@inlined_kernel
def _padded(row, column, columns):
    return (row + BORDER) * (columns + 2 * BORDER) + column + BORDER


@kernel
def _locate_some(rows, first, last, position, ground, places):
    moved = 0
    for n in range(first, last):
        i = rows[n]
        ix = math.floor((position[i, 0] - ground.x) / ground.cell)
        iy = math.floor((position[i, 1] - ground.y) / ground.cell)
        # Written so that it is false for what is not a number.
        inside = ix >= 0.0 and ix < ground.columns and iy >= 0.0 and iy < ground.rows
        place = _place(np.int64(iy), np.int64(ix)) if inside else np.int64(NOWHERE)
        moved += np.int64(places[n] != place)
        places[n] = place
    return moved


@parallel_kernel
def locate(rows, position, ground, places):
    """Write the place of each agent (NOWHERE outside the map); returns how many are not where they were thought."""
    moved = 0
    for chunk in numba.prange((rows.size + _CHUNK - 1) // _CHUNK):
        moved += _locate_some(rows, chunk * _CHUNK, min((chunk + 1) * _CHUNK, rows.size), position, ground, places)
    return moved


@inlined_kernel
def _tile_number(place, across):
    row, column = _row_and_column(max(place, 0))
    return (row >> TILE_BITS) * across + (column >> TILE_BITS)


@kernel
def sort_by_tile(rows, places, across, tally, out_rows, out_places):
    """Write rows and their places in the order of tiles, so that neighbours on the ground are looked at together.

    `tally` has a zero for each tile and one more; `across` is the number of tiles in a row.
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
    """Mark the places that agents stand on in the occupancy layer, which has a border."""
    for n in numba.prange(places.size):
        if places[n] >= 0:
            row, column = _row_and_column(places[n])
            occupied[_padded(row, column, columns)] = 1


@kernel
def mark_bodies(rows, position, velocity, radius, dt, ground, occupied):
    """Mark the cells that others' bodies reach: those where somebody of a cell's width would overlap them.

    Either where they are, or on the way that they make within dt if they go on like that.
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
                    occupied[_padded(iy, ix, ground.columns)] = 1


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
        if ground.units[plan, to_row * ground.columns + to_column] < FAR:
            there_x, there_y = ground.x + (to_column + 0.5) * ground.cell, ground.y + (to_row + 0.5) * ground.cell
            if not chord_blocked(x, y, there_x, there_y, walls):
                bits |= 1 << m
    return bits


@inlined_kernel
def _worth(m, i, row, column, plan, moves, words_around, sums, special, crowd, ground, tile, tiles, bonds):
    """What the cell that move m leads to is worth, -inf when vetoed; without branches where nothing is special."""
    dx, dy = MOVE_X[m], MOVE_Y[m]
    shift = np.uint64(8 * (dx + 1))
    taken = (words_around >> (shift + np.uint64(8))) & _BYTE
    cell = row * ground.columns + column
    allowed = ((moves >> m) & 1) != 0
    there = cell + (dy * ground.columns + dx if allowed else 0)
    way = ground.units[plan, there]
    around = np.int64((sums >> shift) & _BYTE)
    worth = ground.way_weight * way + ground.crowd_weight * around
    free = allowed & (taken == 0) & (way < FAR)
    if special and free:
        worth += worth_of_filters(row, column, row + dy, column + dx, crowd.group[i], tile, tiles)
        if bonds.of.shape[0] > 0:
            x = ground.x + (column + dx + 0.5) * ground.cell
            y = ground.y + (row + dy + 0.5) * ground.cell
            worth += worth_of_bonds(i, x, y, bonds)
    return worth if free else -math.inf


@inlined_kernel
def _best_moves(i, row, column, plan, crowd, ground, walls, occupied, tiles, bonds):
    """Moves (as bits) to those of the neighbouring cells that are worth most and not vetoed.

    k, the number of agents around a cell, is the sum of nine bytes of the occupancy layer. Five words hold the five
    rows around the agent, from two cells to its left; sums of bytes give k of all eight neighbours at once.
    """
    across = np.uint64(ground.columns + 2 * BORDER)
    corner = np.uint64(_padded(row, column, ground.columns) - BORDER) - across - across
    w0 = eight_bytes(occupied, corner)
    w1 = eight_bytes(occupied, corner + across)
    w2 = eight_bytes(occupied, corner + across + across)
    w3 = eight_bytes(occupied, corner + np.uint64(3) * across)
    w4 = eight_bytes(occupied, corner + np.uint64(4) * across)
    s1, s2, s3 = _three(w1), _three(w2), _three(w3)
    below, beside, above = _three(w0) + s1 + s2, s1 + s2 + s3, s2 + s3 + _three(w4)
    tile = tile_of(row, column, tiles)
    bound = bonds.of.shape[0] > 0 and (bonds.of[i, 0] >= 0 or bonds.of[i, 1] >= 0)
    special = tiles.start[tile] < tiles.start[tile + 1] or bound
    moves = np.int64(ground.moves[row * ground.columns + column])
    if moves == 0 and not ground.free[row * ground.columns + column]:
        moves = _ways_out(crowd.position[i, 0], crowd.position[i, 1], row, column, plan, ground, walls)
    v0 = _worth(0, i, row, column, plan, moves, w2, beside, special, crowd, ground, tile, tiles, bonds)
    v1 = _worth(1, i, row, column, plan, moves, w3, above, special, crowd, ground, tile, tiles, bonds)
    v2 = _worth(2, i, row, column, plan, moves, w2, beside, special, crowd, ground, tile, tiles, bonds)
    v3 = _worth(3, i, row, column, plan, moves, w1, below, special, crowd, ground, tile, tiles, bonds)
    v4 = _worth(4, i, row, column, plan, moves, w3, above, special, crowd, ground, tile, tiles, bonds)
    v5 = _worth(5, i, row, column, plan, moves, w3, above, special, crowd, ground, tile, tiles, bonds)
    v6 = _worth(6, i, row, column, plan, moves, w1, below, special, crowd, ground, tile, tiles, bonds)
    v7 = _worth(7, i, row, column, plan, moves, w1, below, special, crowd, ground, tile, tiles, bonds)
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
def _one_of(bits, word):
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


@inlined_kernel
def _credit(i, dt, straight, crowd):
    """Time that agent i has for a move. Who walked slower before, or not at all, may have saved up many moves."""
    return min(crowd.credit[i], math.sqrt(2.0) * straight) + dt


@inlined_kernel
def _ask_for_agent(i, crowd):
    """Have what is asked first about an agent brought into the cache."""
    prefetch(crowd.goal, i)
    prefetch(crowd.start_time, i)
    prefetch(crowd.desired_speed, i)
    prefetch(crowd.credit, i)
    prefetch(crowd.id, i)


@inlined_kernel
def _ask_for_ground(i, place, crowd, ground, occupied):
    """Have what an agent will look at brought into the cache: on large maps, waiting for it took half of the time."""
    row, column = _row_and_column(max(place, 0))
    plan = max(ground.plan_of_goal[crowd.goal[i] - NO_GOAL], 0)
    layer = plan * ground.units.shape[1]
    here = _padded(row, column, ground.columns)
    cell = row * ground.columns + column
    prefetch(ground.moves, cell)
    for step in range(-1, 2):
        prefetch(ground.units, layer + cell + step * ground.columns - 1)
    for step in range(-BORDER, BORDER + 1):
        prefetch(occupied, here + step * (ground.columns + 2 * BORDER) - BORDER)


@kernel
def _propose_some(rows, first, last, places, crowd, ground, walls, occupied, tiles, bonds, key, step, dt, claim, who,
                  choice, out_velocity, out_credit):  # fmt: skip
    decisions, hasty = 0, 0
    time = step * dt
    for n in range(first, last):
        if n + 3 * _AHEAD < rows.size:
            _ask_for_agent(rows[n + 3 * _AHEAD], crowd)
            _ask_for_ground(rows[n + _AHEAD], places[n + _AHEAD], crowd, ground, occupied)
        i = rows[n]
        choice[n] = STAYS
        if crowd.start_time[i] > time + 1e-9 * dt or places[n] < 0:
            continue
        speed = crowd.desired_speed[i]
        hasty += np.int64(speed * dt > ground.cell * (1.0 + _ALMOST))
        straight = ground.cell / speed
        credit = _credit(i, dt, straight, crowd)
        if credit < straight * (1.0 - _ALMOST):
            out_credit[i] = credit
            if speed > 0.0:
                out_velocity[i, 0], out_velocity[i, 1] = crowd.velocity[i, 0], crowd.velocity[i, 1]
            continue
        out_credit[i] = min(credit, straight)
        plan = ground.plan_of_goal[crowd.goal[i] - NO_GOAL]
        if plan < 0:
            continue
        row, column = _row_and_column(places[n])
        if ground.units[plan, row * ground.columns + column] == 0:
            choice[n] = ARRIVED
            continue
        decisions += 1
        bits = _best_moves(i, row, column, plan, crowd, ground, walls, occupied, tiles, bonds)
        if bits == 0:
            continue
        if bits & _STRAIGHT_MOVES:
            bits &= _STRAIGHT_MOVES
        m = trailing_zeros(bits) if bits & (bits - _ONE) == 0 else _one_of(bits, words(key, crowd.id[i], step, 0)[1])
        if m >= 4 and credit < math.sqrt(2.0) * straight * (1.0 - _ALMOST):
            out_credit[i] = credit
            out_velocity[i, 0], out_velocity[i, 1] = crowd.velocity[i, 0], crowd.velocity[i, 1]
            continue
        here = _padded(row, column, ground.columns)
        choice[n] = m
        claim[here] = m + 1
        who[here] = i
    return decisions, hasty


@inlined_kernel
def _claimants(word, wanted):
    """For each of the lowest three bytes of a word, 1 if it is the one wanted; all of them are below 128."""
    return (~((word ^ wanted) + _ALL_BUT_ONE_BIT) & _HIGH_BITS) >> np.uint64(7)


@inlined_kernel
def _lot(q, key, step, who, crowd):
    """The draw of the agent that stands on a cell."""
    return words(key, crowd.id[who[q]], step, 0)[0]


@kernel
def _draws_lowest(here, there, m, across, key, step, crowd, claim, who):
    """Whether nobody with a lower draw wants the same cell, or to cross the way to it."""
    own = _lot(here, key, step, who, crowd)
    for other in range(8):
        q = there - MOVE_Y[other] * across - MOVE_X[other]
        if claim[q] == other + 1 and q != here:
            lot = _lot(q, key, step, who, crowd)
            if lot < own or (lot == own and q < here):
                return False
    if m >= 4:
        for q, crossing in ((here + MOVE_X[m], m ^ 1), (here + MOVE_Y[m] * across, 11 - m)):
            if claim[q] == crossing + 1:
                lot = _lot(q, key, step, who, crowd)
                if lot < own or (lot == own and q < here):
                    return False
    return True


@kernel
def _settle_some(first, last, places, crowd, key, step, columns, claim, who, choice, goes):
    across = columns + 2 * BORDER
    for n in range(first, last):
        goes[n] = False
        m = np.int64(choice[n])
        if m >= 8:
            continue
        row, column = _row_and_column(places[n])
        here = _padded(row, column, columns)
        there = here + MOVE_Y[m] * across + MOVE_X[m]
        # Most are alone: then one of the nine cells around has a claim on the middle, which is their own.
        count = _claimants(eight_bytes(claim, np.uint64(there - across - 1)), _FROM_BELOW)
        count += _claimants(eight_bytes(claim, np.uint64(there - 1)), _FROM_BESIDE)
        count += _claimants(eight_bytes(claim, np.uint64(there + across - 1)), _FROM_ABOVE)
        alone = count == _ONE or count == _ONE << np.uint64(8) or count == _ONE << np.uint64(16)
        if alone and m >= 4:
            # Two diagonal moves cross when one begins beside the other and ends on its other side.
            alone = claim[here + MOVE_X[m]] != (m ^ 1) + 1 and claim[here + MOVE_Y[m] * across] != 12 - m
        goes[n] = alone or _draws_lowest(here, there, m, across, key, step, crowd, claim, who)


@kernel
def _move_some(rows, first, last, places, crowd, ground, dt, claim, choice, goes, occupied, out_position, out_velocity,
               out_heading, out_credit):  # fmt: skip
    moves = 0
    across = ground.columns + 2 * BORDER
    for n in range(first, last):
        m = np.int64(choice[n])
        if m >= 8:
            continue
        i = rows[n]
        row, column = _row_and_column(places[n])
        here = _padded(row, column, ground.columns)
        claim[here] = 0
        dx, dy = MOVE_X[m], MOVE_Y[m]
        length = 1.0 if m < 4 else math.sqrt(2.0)
        cost = length * ground.cell / crowd.desired_speed[i]
        credit = _credit(i, dt, ground.cell / crowd.desired_speed[i], crowd)
        if not goes[n]:
            out_credit[i] = min(credit, cost)
            continue
        moves += 1
        out_credit[i] = max(credit - cost, 0.0)
        occupied[here] = 0
        occupied[here + dy * across + dx] = 1
        places[n] = _place(row + dy, column + dx)
        out_position[i, 0] = ground.x + (column + dx + 0.5) * ground.cell
        out_position[i, 1] = ground.y + (row + dy + 0.5) * ground.cell
        out_heading[i, 0], out_heading[i, 1] = dx / length, dy / length
        speed = crowd.desired_speed[i]
        out_velocity[i, 0], out_velocity[i, 1] = speed * out_heading[i, 0], speed * out_heading[i, 1]
    return moves


@parallel_kernel
def step_on_cells(rows, places, crowd, ground, walls, occupied, tiles, bonds, key, step, dt, claim, who, choice, goes,
                  out_position, out_velocity, out_heading, out_credit):  # fmt: skip
    """Everybody decides and moves. Returns how many decided, how many moved, and how many are too fast for dt."""
    count = rows.size
    chunks = (count + _CHUNK - 1) // _CHUNK
    decisions, hasty, moves = 0, 0, 0
    for chunk in numba.prange(chunks):
        decided, fast = _propose_some(
            rows, chunk * _CHUNK, min((chunk + 1) * _CHUNK, count), places, crowd, ground, walls, occupied, tiles,
            bonds, key, step, dt, claim, who, choice, out_velocity, out_credit)  # fmt: skip
        decisions += decided
        hasty += fast
    for chunk in numba.prange(chunks):
        _settle_some(
            chunk * _CHUNK,
            min((chunk + 1) * _CHUNK, count),
            places,
            crowd,
            key,
            step,
            ground.columns,
            claim,
            who,
            choice,
            goes,
        )
    for chunk in numba.prange(chunks):
        moves += _move_some(
            rows, chunk * _CHUNK, min((chunk + 1) * _CHUNK, count), places, crowd, ground, dt, claim, choice, goes,
            occupied, out_position, out_velocity, out_heading, out_credit)  # fmt: skip
    return decisions, moves, hasty
