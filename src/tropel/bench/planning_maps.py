"""Maps for the benchmark of planning, and the same problems solved by scipy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_BLOCKED_SHARE = 0.12
_STEPS = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]


def blocks_map(size: int) -> tuple[Bools, Bools]:
    """Free cells of a square with a border and blocks of up to an eighth of its side, and the goal in the middle.

    What the goal cannot be reached from is blocked too, so that every free cell counts.
    """
    from scipy import ndimage

    rng = np.random.default_rng(size)
    free = np.ones((size, size), dtype=np.bool_)
    while 1.0 - free.mean() < _BLOCKED_SHARE:
        side = int(rng.integers(max(size // 60, 1), max(size // 8, 2)))
        y, x = rng.integers(0, size - side, size=2)
        free[y : y + side, x : x + side] = False
    free[[0, -1]] = free[:, [0, -1]] = False
    middle = slice(size // 2 - 2, size // 2 + 2)
    free[size // 2 - 4 : size // 2 + 4, :] |= np.arange(size) % (size - 1) > 0
    goal = np.zeros_like(free)
    goal[middle, middle] = True
    parts, _ = ndimage.label(free)
    return parts == parts[size // 2, size // 2], goal


def long_maze(size: int, corridors: int) -> tuple[Bools, Bools]:
    """One corridor that goes to and fro, with the goal at its end."""
    pitch = size // corridors
    if pitch < 3:
        raise ParameterError(f"{corridors} corridors do not fit on {size} cells; there is room for {size // 3}")
    free = np.zeros((size, size), dtype=np.bool_)
    for number in range(corridors):
        top = number * pitch
        free[top + 1 : top + pitch, 1:-1] = True
        if number:
            gap = slice(1, pitch) if number % 2 else slice(size - pitch, size - 1)
            free[top, gap] = True
    goal = np.zeros_like(free)
    goal[1 : pitch - 1, size - 3 : size - 1] = True
    return free, goal & free


def changed_cells(free: Bools, goal: Bools, share: float, kind: str, rng: np.random.Generator) -> Bools:
    """A map of which about such a share of the cells has changed: one square of it, or cells here and there."""
    edited = free.copy()
    if kind == "compact":
        side = max(1, round(math.sqrt(share * free.size)))
        y, x = rng.integers(1, np.array(free.shape) - side - 1)
        edited[y : y + side, x : x + side] ^= True
    else:
        edited ^= rng.random(free.shape) < share
    edited[[0, -1]] = edited[:, [0, -1]] = False
    edited[goal] = True
    return edited


def distances_by_scipy(free: Bools, goal: Bools) -> Floats:
    """Lengths of the shortest ways to the goal, in cells, by `scipy.sparse.csgraph.dijkstra`, with building its graph.

    Diagonal steps need both their neighbours free, as in ours.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    number = np.full(free.shape, -1, dtype=np.int32)
    number[free] = np.arange(free.sum(), dtype=np.int32)
    around, numbers = np.pad(free, 1), np.pad(number, 1, constant_values=-1)
    height, width = free.shape
    rows, columns, lengths = [], [], []
    for dy, dx in _STEPS:
        beside = (slice(1 + dy, height + 1 + dy), slice(1 + dx, width + 1 + dx))
        both = free & around[beside]
        if dy and dx:
            both &= around[1 : height + 1, beside[1]] & around[beside[0], 1 : width + 1]
        rows.append(number[both])
        columns.append(numbers[beside][both])
        lengths.append(np.full(len(rows[-1]), math.hypot(dy, dx)))
    count = int(free.sum())
    graph = csr_matrix((np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns))), shape=(count, count))
    distance = np.full(free.shape, np.inf)
    distance[free] = dijkstra(graph, indices=number[goal & free], min_only=True)
    return distance


def potential_by_scipy(free: Bools, goal: Bools) -> Floats:
    """The harmonic function that is 1 on the goal and 0 on all walls, by `scipy.sparse.linalg.spsolve`."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import spsolve

    unknown = free & ~goal
    number = np.full(free.shape, -1, dtype=np.int64)
    count = int(unknown.sum())
    number[unknown] = np.arange(count)
    numbers, goals = np.pad(number, 1, constant_values=-1), np.pad(goal & free, 1)
    height, width = free.shape
    rows, columns = [number[unknown]], [number[unknown]]
    values, right = [np.full(count, 4.0)], np.zeros(count)
    for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        beside = (slice(1 + dy, height + 1 + dy), slice(1 + dx, width + 1 + dx))
        other = numbers[beside][unknown]
        known = other >= 0
        rows.append(number[unknown][known])
        columns.append(other[known])
        values.append(np.full(int(known.sum()), -1.0))
        right += goals[beside][unknown]
    matrix = csc_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(count, count))
    potential = np.zeros(free.shape)
    potential[unknown] = spsolve(matrix, right)
    potential[goal & free] = 1.0
    return potential


def usable_share(value: Floats, vectors: Floats, free: Bools, goal: Bools) -> float:
    """Of the free cells that are connected with the goal, how many lead there.

    A cell does when following the highest neighbour ends on the goal and the direction for agents goes up: it is within
    45° of a step to a higher neighbour. (On ridges the steepest way and the highest neighbour may lie apart.)
    """
    from scipy import ndimage

    parts, _ = ndimage.label(free)
    connected = np.isin(parts, np.unique(parts[goal & free])) & free
    height, width = free.shape
    own_value = np.where(free, value, -np.inf)
    up = np.pad(own_value, 1, constant_values=-np.inf)
    around = np.pad(free, 1)
    best = own_value
    own = np.arange(free.size).reshape(free.shape)
    best_cell, goes_up = own, goal.copy()
    for dy, dx in _STEPS:
        beside = (slice(1 + dy, height + 1 + dy), slice(1 + dx, width + 1 + dx))
        higher = up[beside] > own_value
        if dy and dx:
            higher &= around[1 : height + 1, beside[1]] & around[beside[0], 1 : width + 1]
        along = (vectors[..., 0] * dx + vectors[..., 1] * dy) / math.hypot(dy, dx)
        goes_up |= higher & (along > math.cos(math.radians(45.0)) - 1e-6)
        highest = higher & (up[beside] > best)
        best = np.where(highest, up[beside], best)
        best_cell = np.where(highest, own + dy * width + dx, best_cell)
    end = np.where(goal, own, best_cell).ravel()
    for _ in range(int(free.size).bit_length()):
        end = end[end]
    arrives = goal.ravel()[end].reshape(free.shape)
    return float((arrives & goes_up)[connected].mean())
