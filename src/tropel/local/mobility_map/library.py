"""Every point of every trajectory is a state from which something is known, not only where the trials began.

A trial that was told to turn by u has u - h left to turn once it has turned by h. So each knot of a trajectory is a
pair of a state and an action, and what follows it is what the character does from there. A map of 100 states and 10
actions thus knows some 50,000 pairs, of which those that hardly differ are left out. A character that has decided goes
on along the trajectory through the pair nearest to its own state and what it wants to turn; one that still wants the
same simply stays on its trajectory.

The reduced state alone would not do. It leaves out how fast a rider is falling into a turn, so looking it up anew every
0.1 s would let each turn begin again and again with its counter-steer, and no bicycle would ever turn.

Pairs are found by cells over lean, its rate and what is left to turn: the nearest one in the cell of the character and
the cells around it, of equals the first. If these are empty, cells farther out are searched, ring by ring, up to the
first ring that has any and one more. A pair farther out may be a little nearer in the other variables; to look for it
takes about sixty times as long.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel.local.mobility_map.fan import HEADING, LEAN, STEER, Fan

Floats = NDArray[np.float64]

#: Features of a pair: rate of turn, lean, steer, their rates, and what is left to turn.
FEATURES = 6
TURN_RATE, LEAN_NOW, STEER_NOW, LEAN_RATE, STEER_RATE, LEFT = range(FEATURES)
_INDEXED = np.array([LEAN_NOW, LEAN_RATE, LEFT], dtype=np.int64)
#: Pairs that differ by less are alike, in standard deviations.
_ALIKE = 0.1
#: Edge of a cell, in standard deviations, and the most cells along an axis.
_CELL, _MOST_CELLS = 0.3, 24


class Library(NamedTuple):
    """Pairs of states and actions, in units of their spread, by cell; a plain tuple of arrays for kernels."""

    scale: Floats  #: (F,): per unit of each feature
    features: Floats  #: (P, F), scaled, in the order of the cells
    knot: NDArray[np.int64]  #: (P,): number of the knot among all of the map
    indexed: NDArray[np.int64]  #: (3,): the features that cells divide
    low: Floats  #: (3,): where cells begin
    cell: Floats  #: (3,): their edges
    shape: NDArray[np.int64]  #: (3,)
    start: NDArray[np.int64]  #: (cells + 1,)


def library_of(fan: Fan) -> Library:
    """All pairs of a map that last for at least one more knot."""
    states, actions, times = fan.knots.shape[:3]
    left = fan.actions[None, :, None] - fan.knots[..., HEADING]
    features = np.stack(
        [
            fan.slopes[..., HEADING],
            fan.knots[..., LEAN],
            fan.knots[..., STEER],
            fan.slopes[..., LEAN],
            fan.slopes[..., STEER],
            left,
        ],
        axis=-1,
    ).reshape(-1, FEATURES)
    after = (np.arange(times) + 1) * fan.interval
    lasting = (after[None, None, :] <= fan.lasts[..., None] + 1e-9).reshape(-1)
    knot = np.flatnonzero(lasting)
    if not len(knot):
        knot = np.arange(states * actions * times)
    spread = features[knot].std(axis=0)
    scale = np.where(spread > 0.0, 1.0 / np.maximum(spread, 1e-12), 0.0)
    # Most trials end riding straight on: of pairs that hardly differ the first is enough.
    _, first = np.unique(np.rint(features[knot] * scale / _ALIKE), axis=0, return_index=True)
    knot = knot[np.sort(first)]
    scaled = features[knot] * scale
    low, high = scaled[:, _INDEXED].min(axis=0), scaled[:, _INDEXED].max(axis=0)
    shape = np.clip(np.ceil((high - low) / _CELL), 1, _MOST_CELLS).astype(np.int64)
    cell = np.maximum((high - low) / shape, 1e-9)
    place = np.minimum(((scaled[:, _INDEXED] - low) / cell).astype(np.int64), shape - 1)
    number = (place[:, 0] * shape[1] + place[:, 1]) * shape[2] + place[:, 2]
    order = np.argsort(number, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=int(shape.prod())))]).astype(np.int64)
    return Library(
        scale=scale,
        features=np.ascontiguousarray(scaled[order]),
        knot=np.ascontiguousarray(knot[order]),
        indexed=_INDEXED,
        low=low,
        cell=cell,
        shape=shape,
        start=start,
    )


@kernel
def _search_cell(library, number, wanted, best, least):
    for p in range(library.start[number], library.start[number + 1]):
        total = 0.0
        for f in range(FEATURES):
            gap = library.features[p, f] - wanted[f]
            total += gap * gap
        if total < least or (total == least and library.knot[p] < library.knot[best]):
            best, least = np.int64(p), total
    return best, least


@kernel
def nearest_pair(library, wanted):
    """The knot with the pair nearest to `wanted` (F,), which is in units of the spread, in the cells around it."""
    shape = library.shape
    home_0 = _home(library, wanted, 0)
    home_1 = _home(library, wanted, 1)
    home_2 = _home(library, wanted, 2)
    best, least = np.int64(0), math.inf
    most = max(shape[0], max(shape[1], shape[2]))
    last = most
    for ring in range(most):
        if ring > last:
            break
        for i in range(max(home_0 - ring, 0), min(home_0 + ring, shape[0] - 1) + 1):
            for j in range(max(home_1 - ring, 0), min(home_1 + ring, shape[1] - 1) + 1):
                inner = abs(i - home_0) < ring and abs(j - home_1) < ring
                step = 2 * ring if inner and ring > 0 else 1
                for k in range(home_2 - ring, home_2 + ring + 1, step):
                    if 0 <= k < shape[2]:
                        best, least = _search_cell(library, (i * shape[1] + j) * shape[2] + k, wanted, best, least)
        if last == most and least < math.inf:
            last = ring + 1
    return library.knot[best]


@kernel
def _home(library, wanted, axis):
    """The cell of a state along an axis; the nearest one for states beyond all cells."""
    place = math.floor((wanted[library.indexed[axis]] - library.low[axis]) / library.cell[axis])
    return np.int64(min(max(place, 0.0), library.shape[axis] - 1.0))
