"""Lines that follow a field of directions on a raster, about equally far from each other.

Matplotlib's streamplot breaks lines into pieces of a corridor's width in a maze. Here a line begins where the way to
the goal is longest and goes on until it comes close to an earlier one, so that lines join like branches of a tree.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Length of a step along a line, in cells.
_STEP = 0.5
#: A line ends when it is so near to an earlier one, as a share of the distance at which lines begin.
_JOIN = 0.45


def streamlines(
    vectors: Floats, inside: NDArray[np.bool_], first: Floats, *, apart: float, shortest: float
) -> list[Floats]:
    """Lines (n, 2) in cells, x first, with the centre of the first cell at (0, 0).

    `vectors` (ny, nx, 2) are followed where `inside`; lines begin at least `apart` cells from earlier ones, at cells
    with a high `first` (ny, nx) before others, and are left out when shorter than `shortest` cells.
    """
    begin_free = inside.copy()
    go_free = inside.copy()
    around, close = _disc(apart), _disc(_JOIN * apart)
    cells = np.flatnonzero(inside)
    across = inside.shape[1]
    lines = []
    for cell in cells[np.argsort(-first.ravel()[cells], kind="stable")].tolist():
        row, column = divmod(cell, across)
        if not begin_free[row, column]:
            continue
        line = _follow(vectors, go_free, float(column), float(row), apart)
        begin_free[row, column] = False
        if (len(line) - 1) * _STEP < shortest:
            continue
        lines.append(line)
        covered = np.unique(np.rint(line[:: max(1, int(0.5 / _STEP))]).astype(np.int64), axis=0)
        for free, disc in ((begin_free, around), (go_free, close)):
            reached = (covered[:, None, ::-1] + disc).reshape(-1, 2)
            reached = reached[((reached >= 0) & (reached < inside.shape)).all(axis=1)]
            free[reached[:, 0], reached[:, 1]] = False
    return lines


def _disc(radius: float) -> NDArray[np.int64]:
    """Steps (rows, columns) to the cells within a radius."""
    most = math.floor(radius)
    steps = np.mgrid[-most : most + 1, -most : most + 1].reshape(2, -1).T
    return steps[(steps**2).sum(axis=1) <= radius * radius]


def _follow(vectors: Floats, free: NDArray[np.bool_], x: float, y: float, apart: float) -> Floats:
    height, width = free.shape
    seen: dict[tuple[int, int], int] = {}
    points = [(x, y)]
    # A painted field may lead round and round.
    recent = int(4.0 * apart / _STEP) + 4
    for number in range(1, 20 * (height + width)):
        # The midpoint method: with plain steps lines drift outwards in bends.
        dx, dy = _unit(vectors, x, y)
        dx, dy = _unit(vectors, x + 0.5 * _STEP * dx, y + 0.5 * _STEP * dy)
        if dx == dy == 0.0:
            break
        x, y = x + _STEP * dx, y + _STEP * dy
        cell = (round(y), round(x))
        if not (0 <= cell[0] < height and 0 <= cell[1] < width) or not free[cell]:
            break
        if number - seen.setdefault(cell, number) > recent:
            break
        points.append((x, y))
    return np.array(points)


def _unit(vectors: Floats, x: float, y: float) -> tuple[float, float]:
    """The direction at a place between cells; zero where there is none."""
    column, row = math.floor(x), math.floor(y)
    right, up = x - column, y - row
    dx = dy = 0.0
    for i, j, weight in (
        (row, column, (1 - up) * (1 - right)),
        (row, column + 1, (1 - up) * right),
        (row + 1, column, up * (1 - right)),
        (row + 1, column + 1, up * right),
    ):
        if weight > 0.0 and 0 <= i < vectors.shape[0] and 0 <= j < vectors.shape[1]:
            dx += weight * vectors[i, j, 0]
            dy += weight * vectors[i, j, 1]
    length = math.hypot(dx, dy)
    return (dx / length, dy / length) if length > 1e-3 else (0.0, 0.0)
