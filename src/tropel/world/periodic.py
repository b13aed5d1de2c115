"""Periodic space: a box with opposite sides joined, so that agents that leave on one side come back on the other.

Objects in such a world exist once per period. Kernels get the objects that agents can meet: the objects themselves and
their images beyond the seams, one period away in every direction. Agents are never copied; they have one place in
[low, high), and neighbour searches walk cells across the seam instead (`_kernels/cells.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel._kernels.cells import wrapped
from tropel._kernels.compile import kernel
from tropel.errors import GeometryError

if TYPE_CHECKING:
    from tropel.world.world import World

Floats = NDArray[np.float64]

_AXES = "xyz"


def periods(low: Floats, high: Floats, periodic: bool | str | Sequence[str]) -> Floats:
    """The period along each axis [m], 0 where space is not periodic.

    `periodic` is true for all axes, or names some of them: "x", "xy" or ["x", "y"].
    """
    dim = len(low)
    if isinstance(periodic, bool | np.bool_):
        return np.array(high - low) if periodic else np.zeros(dim)
    names = set(periodic)
    if not names or not names <= set(_AXES[:dim]):
        raise GeometryError(
            f"periodic must be true, false, or name axes among {', '.join(_AXES[:dim])} such as 'x', not {periodic!r}"
        )
    return np.where([name in names for name in _AXES[:dim]], high - low, 0.0)


def sides_across(axes: NDArray[np.bool_], low: Floats, high: Floats) -> list[shapely.LineString]:
    """The sides of the rectangle low–high across some axes: two for each."""
    (x0, y0), (x1, y1) = low, high
    lines = []
    if axes[0]:
        lines += [shapely.LineString([(x, y0), (x, y1)]) for x in (x0, x1)]
    if axes[1]:
        lines += [shapely.LineString([(x0, y), (x1, y)]) for y in (y0, y1)]
    return lines


def check_within_sides(world: World) -> None:
    """Raise if a shape in a periodic 2D world reaches beyond a seam, where it would overlap its own image."""
    things: dict[str, Any] = {f"wall {k}": wall for k, wall in enumerate(world.walls)}
    things |= {f"door '{name}'": door.line for name, door in world.doors.items()}
    things |= {f"exit '{name}'": way_out.polygon for name, way_out in world.exits.items()}
    things |= {f"region '{name}'": region for name, region in world.regions.items()}
    for what, shape in things.items():
        beyond = (shape.bounds[:2] < world.bounds[0]) | (shape.bounds[2:] > world.bounds[1])
        if (beyond & (world.period > 0.0)).any():
            raise GeometryError(
                f"{what} reaches beyond the side of a periodic world; cut it there, and start the other part at the "
                f"opposite side"
            )


def shifts(period: Floats) -> Floats:
    """The shifts of images, (3^k, dim) for k periodic axes; the first row is zero, for the object itself."""
    along = [(0.0, -length, length) if length > 0.0 else (0.0,) for length in period.tolist()]
    return np.array(list(itertools.product(*along)))


def images_of_segments(segments: Floats, period: Floats) -> Floats:
    """Wall segments (n, 4) and their images beyond the seams."""
    return np.concatenate([segments + np.tile(shift, 2) for shift in shifts(period)])


def images_of_discs(position: Floats, reach: Floats, low: Floats, high: Floats, period: Floats) -> tuple[Any, Floats]:
    """Which disks have images within `reach` [m] of the box low–high, and where: their numbers and centres.

    All disks themselves come first, in order.
    """
    numbers, centres = [np.arange(len(position))], [position]
    for shift in shifts(period)[1:]:
        moved = position + shift
        gap = np.maximum(np.maximum(low - moved, moved - high), 0.0)
        near = np.flatnonzero(np.linalg.norm(gap, axis=1) <= reach)
        numbers.append(near)
        centres.append(moved[near])
    return np.concatenate(numbers), np.concatenate(centres)


def nearest_images(offset: Floats, period: Floats) -> Floats:
    """Offsets (…, dim) to the nearest images of the places they lead to [m]."""
    length = np.where(period > 0.0, period, 1.0)
    return np.asarray(offset - period * np.floor(offset / length + 0.5))


@kernel
def wrap_places(position, low, high, period):
    """Move places (N, dim) into the box [low, high) along periodic axes."""
    for i in range(position.shape[0]):
        for axis in range(position.shape[1]):
            position[i, axis] = wrapped(position[i, axis], low[axis], high[axis], period[axis])
