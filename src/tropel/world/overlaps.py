"""Which of many points lie inside of one of many discs, in time that grows with their numbers, not with the product."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.world.periodic import images_of_discs, nearest_images

if TYPE_CHECKING:
    from tropel.world.world import World

Floats = NDArray[np.float64]

#: Discs are looked for a hair further away than they reach, so that rounding in the search loses none.
_A_HAIR = 1.0 + 1e-9
#: So many pairs of a point and a disc are held in memory at a time, even where every point is in every disc.
_MOST_PAIRS = 1 << 22


def inside_discs(points: Floats, centres: Floats, radius: Floats, world: World) -> NDArray[np.bool_]:
    """Which points (N, dim) of the world are inside of one of the discs, in 3D balls; on the surface is outside.

    In periodic space the images of discs count too.
    """
    inside = np.zeros(len(points), dtype=np.bool_)
    if not len(points) or not len(centres):
        return inside
    number, places = images_of_discs(centres, radius, world.bounds[0], world.bounds[1], world.period)
    reach = radius[number]
    low, high = points.min(axis=0), points.max(axis=0)
    gap = np.maximum(np.maximum(low - places, places - high), 0.0)
    near = np.flatnonzero(np.linalg.norm(gap, axis=1) <= reach * _A_HAIR)
    # A search has one radius, so discs of about the same size go together: a huge one must not widen it for all.
    size = np.frexp(reach[near])[1]
    searched = _Points(points)
    for each in np.unique(size)[::-1]:
        alike = near[size == each]
        together = max(_MOST_PAIRS // len(points), 1)
        for first in range(0, len(alike), together):
            some = alike[first : first + together]
            point, k = searched.within(float(reach[some].max()) * _A_HAIR, places[some])
            disc = number[some[k]]
            away = nearest_images(points[point] - centres[disc], world.period)
            inside[point[(away**2).sum(axis=1) < radius[disc] ** 2]] = True
            searched.forget(inside)
    return inside


class _Points:
    """A tree of points, from which those that are known to be inside are taken out when they have become many."""

    def __init__(self, points: Floats) -> None:
        self.points = points
        self._plant(np.arange(len(points)))

    def _plant(self, rows: NDArray[np.int64]) -> None:
        from scipy.spatial import cKDTree

        self.rows = rows
        self.tree = cKDTree(self.points[rows])

    def within(self, reach: float, places: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of points and numbers of places that are no further apart."""
        from scipy.spatial import cKDTree

        pairs = self.tree.sparse_distance_matrix(cKDTree(places), reach, output_type="ndarray")
        return self.rows[pairs["i"]], pairs["j"].astype(np.int64)

    def forget(self, known: NDArray[np.bool_]) -> None:
        still = self.rows[~known[self.rows]]
        if 2 * len(still) < len(self.rows):
            self._plant(still)
