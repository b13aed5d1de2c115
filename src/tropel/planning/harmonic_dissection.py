"""In which order the unknowns of a grid are eliminated: nested dissection (George 1973).

The grid is cut by planes of few free cells, recursively; cells of a plane are eliminated after both its sides. Walls
make cuts cheap: a maze costs next to nothing. A plane with what it touches is a front, a small dense matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel.planning.harmonic_grid import Unknowns

#: A part of the grid with so few cells is eliminated at once.
_LEAF = 12


@dataclass(frozen=True, kw_only=True)
class Dissection:
    """The order of elimination and the sizes of its fronts, known before any of them is allocated."""

    order: NDArray[np.int64]  #: (n,): unknowns in the order of elimination
    neighbours: NDArray[np.int32]  #: (n, 2 dim): in that order
    start: NDArray[np.int64]  #: (fronts + 1,): front f eliminates the places start[f] to start[f + 1]
    border_start: NDArray[np.int64]  #: (fronts + 1,)
    border: NDArray[np.int32]  #: places eliminated later that touch each front
    children: NDArray[np.int64]  #: (fronts,): how many fronts directly before flow into each
    factor_start: NDArray[np.int64]  #: (fronts + 1,): where the result of each front is kept
    waiting: int  #: most numbers that wait for their parent at one time
    operations: float

    @property
    def bytes_needed(self) -> int:
        widest = int((np.diff(self.start) + np.diff(self.border_start)).max(initial=0))
        return 8 * (int(self.factor_start[-1]) + self.waiting + widest * (widest + 1))


def dissect(unknowns: Unknowns) -> Dissection:
    """Find the order of elimination."""
    count = unknowns.count
    order, spare = np.arange(count), np.empty(count, np.int64)
    first, last, low = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    extent = int(unknowns.coordinates.max(initial=0)) + 2
    stack = np.empty((64 * 8, 2), np.int64)
    fronts = _cut(unknowns.coordinates, order, spare, np.empty(extent, np.int64), stack, first, last, low)
    # Children before parents: parts lie before the plane that cuts them, and a plane may be empty.
    sorting = np.lexsort((-low[:fronts], last[:fronts]))
    first, last, low = first[sorting], last[sorting], low[sorting]
    place = np.empty(count + 1, np.int32)
    place[order] = np.arange(count)
    place[-1] = -1
    neighbours = place[unknowns.neighbours[order]]
    border_start, children = np.zeros(fronts + 1, np.int64), np.zeros(fronts, np.int64)
    room = 8 * count + 1024
    while True:
        border = np.empty(room, np.int32)
        marks, open_fronts = np.full(count, -1, np.int64), np.empty(fronts, np.int64)
        used = _find_borders(first, last, low, neighbours, marks, open_fronts, border_start, border, children)
        if used >= 0:
            break
        room *= 2
    inner, outer = (last - first).astype(np.float64), np.diff(border_start)
    sizes = (last - first) * (outer + 1)
    return Dissection(
        order=order,
        neighbours=neighbours,
        start=np.append(first, count),
        border_start=border_start,
        border=border[:used].copy(),
        children=children,
        factor_start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        waiting=_most_waiting(children, outer * (outer + 1), np.empty(fronts + 1, np.int64)),
        operations=float((2.0 * inner * (inner + outer) ** 2 - 2.0 * inner**2 * outer - 4.0 / 3.0 * inner**3).sum()),
    )


@kernel
def _cut(coordinates, order, spare, counts, stack, first, last, low):
    """Sort `order` so that both sides of each plane come before the plane. Returns the number of fronts."""
    dim = coordinates.shape[1]
    fronts = 0
    depth = 0
    if order.size > 0:
        stack[0, 0], stack[0, 1] = 0, order.size
        depth = 1
    while depth > 0:
        depth -= 1
        begin, end = stack[depth, 0], stack[depth, 1]
        axis, plane = -1, 0
        if end - begin > _LEAF:
            best = np.inf
            for d in range(dim):
                score, where = _best_plane(coordinates, order, begin, end, d, counts)
                if score < best:
                    best, axis, plane = score, d, where
        low[fronts], last[fronts] = begin, end
        if axis < 0:
            first[fronts] = begin
            fronts += 1
            continue
        below = _move(coordinates, order, spare, begin, end, axis, plane, -1, 0)
        above = _move(coordinates, order, spare, begin, end, axis, plane, 1, below)
        _move(coordinates, order, spare, begin, end, axis, plane, 0, above)
        for q in range(end - begin):
            order[begin + q] = spare[q]
        first[fronts] = begin + above
        fronts += 1
        # The smaller part is taken from the stack first, so that the stack stays shallow.
        smaller_first = below <= above - below
        for turn in range(2):
            if (turn == 0) == smaller_first:
                if above > below:
                    stack[depth, 0], stack[depth, 1] = begin + below, begin + above
                    depth += 1
            elif below > 0:
                stack[depth, 0], stack[depth, 1] = begin, begin + below
                depth += 1
    return fronts


@kernel
def _best_plane(coordinates, order, begin, end, axis, counts):
    """The plane across one axis with few cells and sides of like size: its score (smaller is better) and place."""
    least = coordinates[order[begin], axis]
    most = least
    for q in range(begin, end):
        c = coordinates[order[q], axis]
        least, most = min(least, c), max(most, c)
    if least == most:
        return np.inf, 0
    counts[: most - least + 1] = 0
    for q in range(begin, end):
        counts[coordinates[order[q], axis] - least] += 1
    best, where = np.inf, 0
    below = 0
    total = end - begin
    for c in range(most - least + 1):
        own = counts[c]
        larger = max(below, total - below - own)
        score = (own + 1.0) / np.sqrt(total - larger + 1.0)
        if 5 * (total - own - larger) < total - own:
            score *= 4.0
        if score < best:
            best, where = score, c + least
        below += own
    return best, where


@kernel
def _move(coordinates, order, spare, begin, end, axis, plane, side, filled):
    for q in range(begin, end):
        c = coordinates[order[q], axis]
        if (side < 0 and c < plane) or (side > 0 and c > plane) or (side == 0 and c == plane):
            spare[filled] = order[q]
            filled += 1
    return filled


@kernel
def _find_borders(first, last, low, neighbours, marks, open_fronts, border_start, border, children):
    """What each front touches, children included. Returns how much room that took, or -1 if there was too little."""
    used, depth = 0, 0
    for f in range(first.size):
        border_start[f] = used
        for i in range(first[f], last[f]):
            for k in range(neighbours.shape[1]):
                j = neighbours[i, k]
                if j >= last[f] and marks[j] != f:
                    if used == border.size:
                        return -1
                    marks[j] = f
                    border[used] = j
                    used += 1
        children[f] = 0
        while depth > 0 and first[open_fronts[depth - 1]] >= low[f]:
            depth -= 1
            child = open_fronts[depth]
            children[f] += 1
            for q in range(border_start[child], border_start[child + 1]):
                j = border[q]
                if j >= last[f] and marks[j] != f:
                    if used == border.size:
                        return -1
                    marks[j] = f
                    border[used] = j
                    used += 1
        open_fronts[depth] = f
        depth += 1
        border_start[f + 1] = used
    return used


@kernel
def _most_waiting(children, sizes, stack):
    depth, now, most = 0, 0, 0
    for f in range(children.size):
        for _ in range(children[f]):
            depth -= 1
            now -= stack[depth]
        stack[depth] = sizes[f]
        depth += 1
        now += sizes[f]
        most = max(most, now)
    return most
