"""A step of the lattice crowd, as kernels: propose moves, settle conflicts, move.

Every loop gathers: an agent writes its own row and the cell it stands on, and finally the cell it moves to, which no
other agent writes. So nothing depends on threads or on the order of agents.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.grid_moves import AT_GOAL, MOVE_X, MOVE_Y
from tropel._kernels.philox import words
from tropel._kernels.simd import eight_bytes, prefetch, trailing_zeros
from tropel.agents.state import NO_GOAL
from tropel.local.lattice.cells import BORDER, CHUNK, length_at, padded, place_of, row_and_column
from tropel.local.lattice.choice import best_moves, one_of

#: Values of `choice` besides the numbers of moves.
STAYS, ARRIVED = 8, 9
#: Values of `goes`.
NO, YES, CONTESTED = 0, 1, 2

#: How many agents ahead their surroundings, and before that their columns, are prefetched. Here and below, unsigned
#: numbers count and index: before each access with a signed one, the compiler checks whether it is negative.
_AHEAD, _FAR_AHEAD = np.uint64(16), np.uint64(48)
#: Share of a move's time by which the credit may fall short of it: rounding must not cost a step.
_ALMOST = 1e-9

_ONE = np.uint64(1)
#: The bits of moves that are not diagonal.
_STRAIGHT_MOVES = np.uint64(15)
_ALL_BUT_ONE_BIT, _HIGH_BITS = np.uint64(0x7F7F7F), np.uint64(0x808080)
#: The claims (move number plus 1) that lead to a cell from the row below, its own row and the row above, by column.
#: No claim leads there from the cell itself.
_FROM_BELOW, _FROM_BESIDE, _FROM_ABOVE = np.uint64(0x060205), np.uint64(0x030F01), np.uint64(0x070408)


@inlined_kernel
def _credit(i, dt, straight, crowd):
    """Time that agent i has for a move. The cap matters if it was slower before, or stood, and saved up many moves."""
    return min(crowd.credit[i], math.sqrt(2.0) * straight) + dt


@inlined_kernel
def _ask_for_agent(i, crowd, out_velocity, out_credit):
    """Prefetch the columns that are read first about an agent, and those that will be written."""
    prefetch(crowd.goal, i)
    prefetch(crowd.desired_speed, i)
    prefetch(crowd.credit, i)
    prefetch(crowd.id, i)
    prefetch(out_velocity, i + i)
    prefetch(out_credit, i)


@inlined_kernel
def _ask_for_ground(i, place, crowd, ground, occupied, claim):
    """Prefetch the surroundings that an agent will read: on large maps, waiting for them took half of the time."""
    row, column = row_and_column(max(place, 0))
    plan = max(ground.plan_of_goal[crowd.goal[i] - NO_GOAL], 0)
    here = padded(row, column, ground.columns)
    cell = row * ground.columns + column
    prefetch(ground.moves, cell)
    prefetch(claim, here)
    for step in range(-1, 2):
        # The four numbers that are read from a row may lie on two cache lines.
        left = length_at(plan, cell, ground) + step * ground.columns - 1
        prefetch(ground.lengths, left)
        prefetch(ground.lengths, left + 3)
    for step in range(-BORDER, BORDER + 1):
        prefetch(occupied, here + step * (ground.columns + 2 * BORDER) - BORDER)


@kernel
def _propose_some(rows, first, last, places, crowd, ground, walls, occupied, tiles, bonds, headways, key, step, dt,
                  claim, choice, out_velocity, out_credit):  # fmt: skip
    decisions, arrived, hasty = 0, 0, 0
    for n in range(np.uint64(first), np.uint64(last)):
        if n + _FAR_AHEAD < np.uint64(rows.size):
            _ask_for_agent(rows[n + _FAR_AHEAD], crowd, out_velocity, out_credit)
            _ask_for_ground(rows[n + _AHEAD], places[n + _AHEAD], crowd, ground, occupied, claim)
        i = np.uint64(rows[n])
        choice[n] = STAYS
        if (crowd.waiting.size > 0 and crowd.waiting[i]) or places[n] < 0:
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
        row, column = row_and_column(places[n])
        if ground.lengths[np.uint64(length_at(plan, row * ground.columns + column, ground))] == AT_GOAL:
            choice[n] = ARRIVED
            arrived += 1
            continue
        decisions += 1
        bits = best_moves(i, row, column, plan, crowd, ground, walls, occupied, tiles, bonds)
        bits = bits & _STRAIGHT_MOVES if bits & _STRAIGHT_MOVES else bits
        m = trailing_zeros(bits) if bits & (bits - _ONE) == 0 else one_of(bits, words(key, crowd.id[i], step, 0)[1])
        # No branches from here on: they could not be predicted.
        waits = (m >= 4) & (credit < math.sqrt(2.0) * straight * (1.0 - _ALMOST)) & (bits != 0)
        out_credit[i] = credit if waits else min(credit, straight)
        out_velocity[i, 0] = crowd.velocity[i, 0] if waits else 0.0
        out_velocity[i, 1] = crowd.velocity[i, 1] if waits else 0.0
        goes = (bits != 0) & (not waits)
        here = np.uint64(padded(row, column, ground.columns))
        if headways.closed_until.size > 0 and goes:
            there = padded(row + MOVE_Y[m], column + MOVE_X[m], ground.columns)
            if step < headways.closed_until[there]:
                # It waits for this cell. Going elsewhere meanwhile would lead it out of the queue.
                goes = False
                out_credit[i] = min(credit, straight if m < 4 else math.sqrt(2.0) * straight)
        choice[n] = m if goes else STAYS
        claim[here] = m + 1 if goes else 0
    return decisions, arrived, hasty


@inlined_kernel
def _claimants(word, wanted):
    """For each of the lowest three bytes of a word, 1 if it equals the wanted one; all bytes are below 128."""
    return (~((word ^ wanted) + _ALL_BUT_ONE_BIT) & _HIGH_BITS) >> np.uint64(7)


@inlined_kernel
def _is_lower(q, here, lots):
    """Whether the draw on a cell is lower than the one here."""
    return lots[q] < lots[here] or (lots[q] == lots[here] and q < here)


@kernel
def _draws_lowest(here, there, m, across, claim, lots):
    """Whether no agent with a lower draw wants the same cell, or wants to cross the move to it."""
    for other in range(8):
        q = there - MOVE_Y[other] * across - MOVE_X[other]
        if claim[q] == other + 1 and _is_lower(q, here, lots):
            return False
    if m >= 4:
        for q, crossing in ((here + MOVE_X[m], m ^ 1), (here + MOVE_Y[m] * across, 11 - m)):
            if claim[q] == crossing + 1 and _is_lower(q, here, lots):
                return False
    return True


@kernel
def _settle_some(rows, first, last, places, crowd, key, step, columns, claim, lots, choice, goes):
    """Agents without a conflict go. The others see everyone they are in conflict with, and draw lots."""
    across = columns + 2 * BORDER
    for n in range(np.uint64(first), np.uint64(last)):
        goes[n] = NO
        m = np.int64(choice[n])
        if m >= 8:
            continue
        row, column = row_and_column(places[n])
        here = padded(row, column, columns)
        there = here + MOVE_Y[m] * across + MOVE_X[m]
        # Most have no conflict: then only one of the nine cells around has a claim on the middle, the agent's own.
        count = _claimants(eight_bytes(claim, np.uint64(there - across - 1)), _FROM_BELOW)
        count += _claimants(eight_bytes(claim, np.uint64(there - 1)), _FROM_BESIDE)
        count += _claimants(eight_bytes(claim, np.uint64(there + across - 1)), _FROM_ABOVE)
        alone = count == _ONE or count == _ONE << np.uint64(8) or count == _ONE << np.uint64(16)
        if alone and m >= 4:
            # Two diagonal moves cross if one begins next to the other and ends on its other side.
            beside, ahead = np.uint64(here + MOVE_X[m]), np.uint64(here + MOVE_Y[m] * across)
            alone = claim[beside] != (m ^ 1) + 1 and claim[ahead] != 12 - m
        goes[n] = YES if alone else CONTESTED
        if not alone:
            lots[np.uint64(here)] = words(key, crowd.id[np.uint64(rows[n])], step, 0)[0]


@kernel
def _compare_some(first, last, places, columns, claim, lots, choice, goes):
    """Among agents that have drawn lots, the one with the lowest draw in its conflicts goes."""
    across = columns + 2 * BORDER
    for n in range(np.uint64(first), np.uint64(last)):
        if goes[n] == CONTESTED:
            m = np.int64(choice[n])
            row, column = row_and_column(places[n])
            here = padded(row, column, columns)
            there = here + MOVE_Y[m] * across + MOVE_X[m]
            goes[n] = YES if _draws_lowest(here, there, m, across, claim, lots) else NO


@inlined_kernel
def _ask_for_columns(i, crowd, out_position, out_velocity, out_heading, out_credit):
    """Prefetch the columns of an agent that a move reads and writes."""
    prefetch(crowd.desired_speed, i)
    prefetch(crowd.credit, i)
    prefetch(out_credit, i)
    prefetch(out_position, i + i)
    prefetch(out_velocity, i + i)
    prefetch(out_heading, i + i)


@inlined_kernel
def _close(cell, until_free, i, cell_seconds, crowd, headways, key, step, dt):
    """Close a cell until it is free [s] and its headway has passed. Random rounding keeps the mean for any dt."""
    draws = words(key, crowd.id[i], step, 1)
    random_part = -math.log((draws[0] + 0.5) * 2.0**-32)
    seconds = until_free + cell_seconds * (1.0 - headways.spread + headways.spread * random_part)
    steps = np.int64(math.floor(seconds / dt + draws[1] * 2.0**-32))
    headways.closed_until[cell] = step + max(steps, 1)


@kernel
def _move_some(rows, first, last, places, crowd, ground, headways, key, step, dt, claim, choice, goes, occupied,
               out_position, out_velocity, out_heading, out_credit):  # fmt: skip
    moves = 0
    across = ground.columns + 2 * BORDER
    for n in range(np.uint64(first), np.uint64(last)):
        m = np.int64(choice[n])
        if m >= 8:
            continue
        i = np.uint64(rows[n])
        if n + _AHEAD < np.uint64(rows.size):
            _ask_for_columns(rows[n + _AHEAD], crowd, out_position, out_velocity, out_heading, out_credit)
        row, column = row_and_column(places[n])
        here = padded(row, column, ground.columns)
        claim[np.uint64(here)] = 0
        speed = crowd.desired_speed[i]
        length = 1.0 if m < 4 else math.sqrt(2.0)
        cost = length * ground.cell / speed
        credit = _credit(i, dt, ground.cell / speed, crowd)
        if goes[n] == NO:
            out_credit[i] = min(credit, cost)
            continue
        moves += 1
        dx, dy = MOVE_X[m], MOVE_Y[m]
        out_credit[i] = max(credit - cost, 0.0)
        occupied[np.uint64(here)] = 0
        occupied[np.uint64(here + dy * across + dx)] = 1
        if headways.closed_until.size > 0:
            cell = row * ground.columns + column
            _close(here, 0.0, i, headways.seconds[cell], crowd, headways, key, step, dt)
            cell += dy * ground.columns + dx
            plan = ground.plan_of_goal[crowd.goal[i] - NO_GOAL]
            if ground.lengths[np.uint64(length_at(plan, cell, ground))] == AT_GOAL:
                # Agents disappear from exits. Those behind them must not get there faster for that.
                there = here + dy * across + dx
                _close(there, cost, i, headways.seconds[cell], crowd, headways, key, step, dt)
        places[n] = place_of(row + dy, column + dx)
        out_position[i, 0] = ground.x + (column + dx + 0.5) * ground.cell
        out_position[i, 1] = ground.y + (row + dy + 0.5) * ground.cell
        out_heading[i, 0], out_heading[i, 1] = dx / length, dy / length
        out_velocity[i, 0], out_velocity[i, 1] = speed * out_heading[i, 0], speed * out_heading[i, 1]
    return moves


@parallel_kernel
def step_on_cells(rows, places, crowd, ground, walls, occupied, tiles, bonds, headways, key, step, dt, claim, lots,
                  choice, goes, out_position, out_velocity, out_heading, out_credit):  # fmt: skip
    """All agents decide and move. Returns how many decided, have arrived, moved, and are too fast for dt."""
    count = rows.size
    chunks = (count + CHUNK - 1) // CHUNK
    decisions, arrived, hasty, moves = 0, 0, 0, 0
    for chunk in numba.prange(chunks):
        decided, there, fast = _propose_some(
            rows, chunk * CHUNK, min((chunk + 1) * CHUNK, count), places, crowd, ground, walls, occupied, tiles,
            bonds, headways, key, step, dt, claim, choice, out_velocity, out_credit)  # fmt: skip
        decisions += decided
        arrived += there
        hasty += fast
    # Settling and moving in one loop is slower on large maps: a short loop waits for the cells of many agents at once.
    for chunk in numba.prange(chunks):
        _settle_some(rows, chunk * CHUNK, min((chunk + 1) * CHUNK, count), places, crowd, key, step, ground.columns,
                     claim, lots, choice, goes)  # fmt: skip
    for chunk in numba.prange(chunks):
        _compare_some(chunk * CHUNK, min((chunk + 1) * CHUNK, count), places, ground.columns, claim, lots, choice,
                      goes)  # fmt: skip
    for chunk in numba.prange(chunks):
        moves += _move_some(
            rows, chunk * CHUNK, min((chunk + 1) * CHUNK, count), places, crowd, ground, headways, key, step, dt, claim,
            choice, goes, occupied, out_position, out_velocity, out_heading, out_credit)  # fmt: skip
    return decisions, arrived, moves, hasty
