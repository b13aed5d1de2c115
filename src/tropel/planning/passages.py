"""How wide a passage is: the improvement that the paper on bottlenecks asks for (`bottlenecks.py`).

The width at a place is the length of the shortest straight line from wall to wall that crosses the way of the flow
there. The way is what the policy walks: the longest tributary that leads to the place, then on towards the goal. A line
that merely cuts off a corner of the room, or a notch of a wall, crosses the way twice or never, so only odd crossings
count. Walls are squares of the raster, and lengths are taken between their nearest points: exact for walls along the
axes; a slanted wall is a staircase and a door in it measures up to about a cell's diagonal less than it is drawn.

The edge of the raster counts as a wall. A pillar in the middle of a door makes two doors of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.int64]

#: How far around a place walls are looked for at first, in cells; doubled until a line is found that is no longer.
_FIRST_LOOK = 8
#: Lines that are tried at once, shortest first.
_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A line across the flow, in cells (row, column); centres of cells are whole numbers."""

    width: float
    ends: tuple[tuple[float, float], tuple[float, float]]

    @property
    def middle(self) -> tuple[float, float]:
        (a, b), (c, d) = self.ends
        return 0.5 * (a + c), 0.5 * (b + d)


class Walls:
    """The blocked cells of a raster that have a free neighbour: the faces of its walls."""

    def __init__(self, free: NDArray[np.bool_]) -> None:
        self._blocked = np.pad(~free, 1, constant_values=True)
        beside_free = np.zeros_like(self._blocked)
        inside = np.pad(free, 1)
        beside_free[1:] |= inside[:-1]
        beside_free[:-1] |= inside[1:]
        beside_free[:, 1:] |= inside[:, :-1]
        beside_free[:, :-1] |= inside[:, 1:]
        self._face = self._blocked & beside_free

    def around(self, row: int, column: int, reach: int) -> Cells:
        """Faces (n, 2) within a square around a cell, row by row."""
        first, left = max(row + 1 - reach, 0), max(column + 1 - reach, 0)
        window = self._face[first : row + 2 + reach, left : column + 2 + reach]
        return np.argwhere(window) + np.array([first - 1, left - 1])

    def clear(self, a: Cells, b: Cells) -> bool:
        """Whether no wall stands between two faces."""
        steps = max(int(4 * np.abs(b - a).max()), 1)
        share = np.arange(1, steps)[:, None] / steps
        on_the_way = np.rint(a + share * (b - a)).astype(np.int64)
        inner = (on_the_way != a).any(axis=1) & (on_the_way != b).any(axis=1)
        rows, columns = (on_the_way[inner] + 1).T
        return not self._blocked[rows, columns].any()


def narrowest_passage(
    place: int, onward: Cells, units: NDArray[np.int64], walls: Walls, *, near: float, widest: float
) -> Passage | None:
    """The narrowest passage that the flow takes within `near` cells of a place; None where it is wider than `widest`.

    `onward` (cells,) is where the policy leads from each cell, itself where it stays.
    """
    look = _FIRST_LOOK
    while True:
        found = _shortest_line(place, onward, units, walls, near, min(float(look), widest))
        if found is not None or look >= widest:
            return found
        look *= 2


def way_through(place: int, onward: Cells, units: NDArray[np.int64], reach: int) -> NDArray[np.float64]:
    """Cells (n, 2) of the longest way within `reach` cells that the policy leads to a place, and on from there."""
    ny, nx = units.shape
    row, column = divmod(place, nx)
    rows = np.arange(max(row - reach, 0), min(row + reach + 1, ny))
    columns = np.arange(max(column - reach, 0), min(column + reach + 1, nx))
    start = (rows[:, None] * nx + columns).reshape(-1)
    arrives = np.zeros(start.size, dtype=np.bool_)
    now = start
    for _ in range(2 * reach):
        now = onward[now]
        arrives |= now == place
    length = np.where(arrives | (start == place), units.reshape(-1)[start], -1)
    way = [int(start[np.argmax(length)])]
    while way[-1] != place:
        way.append(int(onward[way[-1]]))
    for _ in range(2 * reach):
        following = int(onward[way[-1]])
        if following == way[-1]:
            break
        way.append(following)
    cells = np.array([divmod(c, nx) for c in way], dtype=np.float64)
    if len(cells) > 1:
        # A goal that lies in a door is reached before the door is crossed.
        cells = np.vstack([cells, 2.0 * cells[-1] - cells[-2]])
    return cells


def _shortest_line(
    place: int, onward: Cells, units: NDArray[np.int64], walls: Walls, near: float, longest: float
) -> Passage | None:
    """The shortest line of at most so many cells that crosses the way near a place an odd number of times."""
    here = np.array(divmod(place, units.shape[1]))
    faces = walls.around(int(here[0]), int(here[1]), math.ceil(near + longest) + 1)
    one, other = np.triu_indices(len(faces), 1)
    apart = np.maximum(np.abs(faces[one] - faces[other]) - 1, 0)
    square = (apart * apart).sum(axis=1)
    # Lines that end beside each other in one wall are most of them, and cross nothing.
    kept = np.flatnonzero((square <= longest * longest) & _passes(here, faces[one], faces[other], near))
    kept = kept[np.argsort(square[kept], kind="stable")]
    if not kept.size:
        return None
    way = way_through(place, onward, units, math.ceil(near + longest) + 1)
    for first in range(0, kept.size, _AT_ONCE):
        some = kept[first : first + _AT_ONCE]
        for k in some[_crosses(faces[one[some]], faces[other[some]], way, here, near)]:
            a, b = faces[one[k]], faces[other[k]]
            if walls.clear(a, b):
                return Passage(width=math.sqrt(float(square[k])), ends=_nearest_points(a, b))
    return None


def _passes(here: Cells, a: Cells, b: Cells, near: float) -> NDArray[np.bool_]:
    """Which lines pass within a distance of a cell."""
    along = (b - a).astype(np.float64)
    share = ((here - a) * along).sum(axis=1) / np.maximum((along * along).sum(axis=1), 1.0)
    off = a + np.clip(share, 0.0, 1.0)[:, None] * along - here
    return np.asarray((off * off).sum(axis=1) <= near * near)


def _crosses(a: Cells, b: Cells, way: NDArray[np.float64], here: Cells, near: float) -> NDArray[np.bool_]:
    """Which lines from a to b cross a way an odd number of times, and that near a cell."""
    if len(way) < 2:
        return np.zeros(len(a), dtype=np.bool_)
    line = (b - a).astype(np.float64)[:, None, :]
    side = _cross(line, way - a[:, None, :])
    step = np.diff(way, axis=0)
    begin = _cross(step, a[:, None, :] - way[:-1])
    end = _cross(step, b[:, None, :] - way[:-1])
    # Half-open, so that a line through a corner of the way crosses one of the two steps there.
    met = ((side[:, :-1] >= 0.0) != (side[:, 1:] >= 0.0)) & ((begin >= 0.0) != (end >= 0.0))
    change = side[:, :-1] - side[:, 1:]
    share = np.where(met, side[:, :-1], 0.0) / np.where(met, change, 1.0)
    off = way[:-1] + share[..., None] * step - here
    close = met & ((off * off).sum(axis=-1) <= near * near)
    return np.asarray((met.sum(axis=1) % 2 == 1) & close.any(axis=1))


def _cross(u: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0], dtype=np.float64)


def _nearest_points(a: Cells, b: Cells) -> tuple[tuple[float, float], tuple[float, float]]:
    """The points of two squares that are nearest to each other; the middle where they face each other."""
    inwards = 0.5 * np.sign(b - a)
    from_a, to_b = a + inwards, b - inwards
    return (float(from_a[0]), float(from_a[1])), (float(to_b[0]), float(to_b[1]))
