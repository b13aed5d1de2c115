"""The width of a passage: the improvement that the paper on bottlenecks asks for (`bottlenecks.py`).

The width at a place is the length of the shortest straight line from wall to wall that crosses the path of the flow
there. That path is the one that the policy takes: the longest tributary that leads to the place, then on towards the
goal. A line that merely cuts off a corner of the room, or a notch in a wall, crosses the path twice or never, so only
odd numbers of crossings count. Walls are squares of the raster, and lengths are measured between their nearest points.
This is exact for walls along the axes; a slanted wall is a staircase of cells, and a door in it appears up to two cells
narrower than drawn.

The edge of the raster counts as a wall, but walls behind a goal do not: agents leave there. A pillar in the middle of a
door divides it into two doors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel

# The shortest line from wall to wall across a path over the cells of a raster.


@kernel
def farthest_tributary(place, onward, units, across, reach):
    """Of the cells in a square from which the policy leads to a place, the one with the longest path to the goal."""
    down = units.size // across
    row, column = place // across, place % across
    longest, start = units[place], np.int64(place)
    for iy in range(max(row - reach, 0), min(row + reach + 1, down)):
        for ix in range(max(column - reach, 0), min(column + reach + 1, across)):
            first = iy * across + ix
            if units[first] <= longest:
                continue
            now = first
            for _ in range(2 * reach):
                following = onward[now]
                if following == now or units[following] <= units[place]:
                    now = following
                    break
                now = following
            if now == place:
                longest, start = units[first], np.int64(first)
    return start


@inlined_kernel
def _passes_near(ay, ax, by, bx, y, x, near):
    """Whether the line from a to b comes within a distance of a point."""
    dy, dx = by - ay, bx - ax
    length = max(dy * dy + dx * dx, 1.0)
    share = min(max(((y - ay) * dy + (x - ax) * dx) / length, 0.0), 1.0)
    off_y, off_x = ay + share * dy - y, ax + share * dx - x
    return off_y * off_y + off_x * off_x <= near * near


@kernel
def _crosses(ay, ax, by, bx, way, y, x, near):
    """Whether the line from a to b crosses a path an odd number of times, one of them near a point.

    Half-open, so that a line through a corner of the path crosses one of the two steps there.
    """
    dy, dx = by - ay, bx - ax
    odd, close = False, False
    before = dy * (way[0, 1] - ax) - dx * (way[0, 0] - ay)
    for k in range(way.shape[0] - 1):
        after = dy * (way[k + 1, 1] - ax) - dx * (way[k + 1, 0] - ay)
        if (before >= 0.0) != (after >= 0.0):
            sy, sx = way[k + 1, 0] - way[k, 0], way[k + 1, 1] - way[k, 1]
            begin = sy * (ax - way[k, 1]) - sx * (ay - way[k, 0])
            end = sy * (bx - way[k, 1]) - sx * (by - way[k, 0])
            if (begin >= 0.0) != (end >= 0.0):
                odd = not odd
                share = before / (before - after)
                off_y, off_x = way[k, 0] + share * sy - y, way[k, 1] + share * sx - x
                close = close or off_y * off_y + off_x * off_x <= near * near
        before = after
    return odd and close


@kernel
def _clear(ay, ax, by, bx, blocked):
    """Whether no wall stands between two blocked cells. `blocked` is larger than the raster by a border of one cell."""
    steps = 4 * max(abs(by - ay), abs(bx - ax))
    for k in range(1, steps):
        iy = np.int64(np.rint(ay + k / steps * (by - ay)))
        ix = np.int64(np.rint(ax + k / steps * (bx - ax)))
        if (iy == ay and ix == ax) or (iy == by and ix == bx):
            continue
        if blocked[iy + 1, ix + 1]:
            return False
    return True


@kernel
def shortest_line(faces, way, blocked, row, column, near, longest):
    """The nearest two faces (n, 2) of walls with a connecting line that crosses a path near a cell; -1, -1 if none.

    Lengths are measured between the nearest points of the two squares, at most `longest`; ties go to the first.
    """
    y, x = np.float64(row), np.float64(column)
    best = longest * longest
    one, other, found = np.int64(-1), np.int64(-1), False
    for i in range(faces.shape[0]):
        for j in range(i + 1, faces.shape[0]):
            dy = max(abs(faces[j, 0] - faces[i, 0]) - 1, 0)
            dx = max(abs(faces[j, 1] - faces[i, 1]) - 1, 0)
            square = np.float64(dy * dy + dx * dx)
            if square > best or (found and square == best):
                continue
            ay, ax = np.float64(faces[i, 0]), np.float64(faces[i, 1])
            by, bx = np.float64(faces[j, 0]), np.float64(faces[j, 1])
            if not _passes_near(ay, ax, by, bx, y, x, near):
                continue
            if not _crosses(ay, ax, by, bx, way, y, x, near):
                continue
            if _clear(faces[i, 0], faces[i, 1], faces[j, 0], faces[j, 1], blocked):
                best, one, other, found = square, np.int64(i), np.int64(j), True
    return one, other


Cells = NDArray[np.int64]

#: Initial search radius for walls around a place, in cells; doubled until a line is found that fits inside.
_FIRST_LOOK = 8


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
    """The faces of a raster's walls: blocked cells with a free neighbour that is not a goal."""

    def __init__(self, free: NDArray[np.bool_], goal: NDArray[np.bool_]) -> None:
        self.blocked = np.pad(~free, 1, constant_values=True)
        walked = np.pad(free & ~goal, 1)
        beside = np.zeros_like(walked)
        beside[1:] |= walked[:-1]
        beside[:-1] |= walked[1:]
        beside[:, 1:] |= walked[:, :-1]
        beside[:, :-1] |= walked[:, 1:]
        self._face = self.blocked & beside

    def around(self, row: int, column: int, reach: int) -> Cells:
        """Faces (n, 2) within a square around a cell, row by row."""
        first, left = max(row + 1 - reach, 0), max(column + 1 - reach, 0)
        window = self._face[first : row + 2 + reach, left : column + 2 + reach]
        return np.ascontiguousarray(np.argwhere(window) + np.array([first - 1, left - 1]))


def narrowest_passage(
    place: int, onward: Cells, units: NDArray[np.int64], walls: Walls, *, near: float, widest: float
) -> Passage | None:
    """The narrowest passage of the flow within `near` cells of a place; None if it is wider than `widest`.

    `onward` (cells,) is the cell that the policy leads to from each cell, the cell itself if it stays.
    """
    look = _FIRST_LOOK
    while True:
        found = _shortest_line(place, onward, units, walls, near, min(float(look), widest))
        if found is not None or look >= widest:
            return found
        look *= 2


def way_through(place: int, onward: Cells, units: NDArray[np.int64], reach: int) -> NDArray[np.float64]:
    """Cells (n, 2) of the longest path of the policy to a place within `reach` cells, and on from there."""
    nx = units.shape[1]
    way = [int(farthest_tributary(place, onward, units.reshape(-1), nx, reach))]
    while way[-1] != place:
        way.append(int(onward[way[-1]]))
    for _ in range(2 * reach):
        following = int(onward[way[-1]])
        if following == way[-1]:
            break
        way.append(following)
    cells = np.array([divmod(c, nx) for c in way], dtype=np.float64)
    if len(cells) > 1:
        # A goal inside a door is reached before the door is crossed.
        cells = np.vstack([cells, 2.0 * cells[-1] - cells[-2]])
    return cells


def _shortest_line(
    place: int, onward: Cells, units: NDArray[np.int64], walls: Walls, near: float, longest: float
) -> Passage | None:
    """The shortest line of at most `longest` cells that crosses the path near a place an odd number of times."""
    row, column = divmod(place, units.shape[1])
    reach = math.ceil(near + longest) + 1
    faces = walls.around(row, column, reach)
    way = way_through(place, onward, units, reach)
    one, other = shortest_line(faces, way, walls.blocked, row, column, near, longest)
    if one < 0:
        return None
    a, b = faces[one], faces[other]
    apart = np.maximum(np.abs(a - b) - 1, 0)
    return Passage(width=math.sqrt(float((apart * apart).sum())), ends=_nearest_points(a, b))


def _nearest_points(a: Cells, b: Cells) -> tuple[tuple[float, float], tuple[float, float]]:
    """The points of two squares that are nearest to each other; the middle if they face each other."""
    inwards = 0.5 * np.sign(b - a)
    from_a, to_b = a + inwards, b - inwards
    return (float(from_a[0]), float(from_a[1])), (float(to_b[0]), float(to_b[1]))
