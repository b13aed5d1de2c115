"""The nearest few neighbours of an agent, by distance and then by id."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import BLOCK, bits_within
from tropel._kernels.compile import inlined_kernel
from tropel._kernels.neighbours import count_runs, run_of, view_of
from tropel._kernels.simd import trailing_zeros

#: How many agents the first disc that is searched should hold, over how many are needed.
_SPARE = 1.3
#: From so many candidates on, over how many are needed, it pays to search a smaller disc first.
_CROWDED = 4.0

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class NearestTable(NamedTuple):
    """The nearest neighbours of one agent, the nearest first."""

    away2: NDArray[np.float64]  #: (K,): squared distance
    dx: NDArray[np.float64]  #: (K,): offset
    dy: NDArray[np.float64]  #: (K,)
    entry: NDArray[np.uint64]  #: (K,): in what `near` calls `met`


@inlined_kernel
def _insert(found, away2, dx, dy, k, met, ids, table):
    """Insert a neighbour among those found so far, if it is near enough; returns how many there are."""
    many = np.uint64(table.entry.size)
    place = found
    while place > _ZERO:
        before = place - _ONE
        if table.away2[before] < away2 or (
            table.away2[before] == away2 and ids[met[table.entry[before]]] < ids[met[k]]
        ):
            break
        if place < many:
            table.away2[place], table.entry[place] = table.away2[before], table.entry[before]
            table.dx[place], table.dy[place] = table.dx[before], table.dy[before]
        place = before
    if place == many:
        return found
    table.away2[place], table.entry[place], table.dx[place], table.dy[place] = away2, k, dx, dy
    return min(found + _ONE, many)


@inlined_kernel
def _find_within(limit, x, y, own, near, ids, table):
    """Find the nearest neighbours within a squared distance; returns how many there are, at most as many as fit."""
    position = near.met_position
    many = np.uint64(table.entry.size)
    found = _ZERO
    view = view_of(near, own, x, y, 0.0, math.sqrt(limit))
    for number in range(count_runs(near, view)):
        first, last, shift_x, shift_y, _ = run_of(near, view, number)
        px, py = x + shift_x, y + shift_y
        for at in range(first, last, BLOCK):
            bits = bits_within(position, at, last, px, py, 0.0, limit)
            while bits != _ZERO:
                k = at + trailing_zeros(bits)
                bits &= bits - _ONE
                dx, dy = position[0, k] - px, position[1, k] - py
                away2 = dx * dx + dy * dy
                if near.met[k] == own or away2 > limit:
                    continue
                found = _insert(found, away2, dx, dy, k, near.met, ids, table)
                if found == many:
                    limit = table.away2[many - _ONE]
    return found


@inlined_kernel
def _count_candidates(x, y, own, sense, near):
    """How many agents are in the cells around an agent."""
    view = view_of(near, own, x, y, 0.0, sense)
    many = _ZERO
    for number in range(count_runs(near, view)):
        first, last, _, _, _ = run_of(near, view, number)
        many += last - first
    return many


@inlined_kernel
def find_nearest(x, y, own, sense, near, ids, table):
    """Find as many neighbours within the sense radius as the table has room for; returns how many there are."""
    many = np.uint64(table.entry.size)
    widest = sense * sense
    limit = widest
    candidates = _count_candidates(x, y, own, sense, near)
    if candidates > _CROWDED * many:
        # The nearest few are much nearer than the sense radius. Inserting all that others push out again took a third
        # of the time of a step, so a disc that should hold enough is searched first, and wider ones where it does not.
        across = 2.0 * sense + 1.0 / near.inverse_cell
        limit = min(_SPARE * many / (math.pi * candidates) * across * across, widest)
    found = _find_within(limit, x, y, own, near, ids, table)
    while found < many and limit < widest:
        limit = min(4.0 * limit, widest)
        found = _find_within(limit, x, y, own, near, ids, table)
    return found
