"""How wide a passage is: the improvement that the paper on bottlenecks asks for (`bottlenecks.py`).

The width at a place is the length of the shortest straight line from wall to wall that crosses the way of the flow
there. The way is what the policy walks: the longest tributary that leads to the place, then on towards the goal. A line
that merely cuts off a corner of the room, or a notch of a wall, crosses the way twice or never, so only odd crossings
count. Walls are squares of the raster, and lengths are taken between their nearest points: exact for walls along the
axes; a slanted wall is a staircase of cells and a door in it up to two cells narrower than it is drawn.

The edge of the raster counts as a wall, and what is behind a goal does not: people leave there. A pillar in the middle
of a door makes two doors of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.grid_passages import farthest_tributary, shortest_line

Cells = NDArray[np.int64]

#: How far around a place walls are looked for at first, in cells; doubled until a line is found that is no longer.
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
    """The blocked cells of a raster that have a free neighbour which is no goal: the faces of its walls."""

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
        # A goal that lies in a door is reached before the door is crossed.
        cells = np.vstack([cells, 2.0 * cells[-1] - cells[-2]])
    return cells


def _shortest_line(
    place: int, onward: Cells, units: NDArray[np.int64], walls: Walls, near: float, longest: float
) -> Passage | None:
    """The shortest line of at most so many cells that crosses the way near a place an odd number of times."""
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
    """The points of two squares that are nearest to each other; the middle where they face each other."""
    inwards = 0.5 * np.sign(b - a)
    from_a, to_b = a + inwards, b - inwards
    return (float(from_a[0]), float(from_a[1])), (float(to_b[0]), float(to_b[1]))
