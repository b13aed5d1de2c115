"""Polygons that should meet and, by rounding, do not quite: they are joined.

Floor plans come out of programs and calculations that round. Two rooms with a gap of a nanometre between them look like
one area and would be two, with a wall between them. So corners that lie within `SNAP` of another polygon's boundary are
moved onto it, and nothing else moves: polygons that meet exactly, or overlap, keep every bit of their coordinates.

Polygons that meet in a single point are not joined, because nobody fits through a point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.errors import GeometryError

if TYPE_CHECKING:
    from tropel.world.shapes import Polygonal

#: Polygons up to this far apart are meant to touch [m]. A coordinate resolves a tenth of it in the largest world, and
#: no plan shows a gap as thin as that on purpose.
SNAP = 1e-6


def join_pieces(area: Polygonal, what: str) -> Polygonal:
    """The same area with pieces that are up to `SNAP` apart joined; the very same object if there are none."""
    parts = list(shapely.get_parts(area))
    snapped = snap_together(parts, what)
    return area if snapped is parts else shapely.union_all(snapped)


def snap_together(parts: list[Polygonal], what: str) -> list[Polygonal]:
    """The polygons with corners moved onto the boundaries of earlier ones that are up to `SNAP` away.

    Returns the same list if there is nothing to move.
    """
    pairs = _nearly_touching(parts)
    snapped = list(parts) if pairs else parts
    for one, other in pairs:
        snapped[one], snapped[other] = _snapped(snapped[one], snapped[other])
        for number in (one, other):
            if not snapped[number].is_valid:
                gap = shapely.shortest_line(parts[one], parts[other])
                x, y = shapely.get_coordinates(gap)[0]
                raise GeometryError(
                    f"{what}: pieces {one} and {other} nearly touch around ({x:g}, {y:g}), and joining them gives an "
                    f"invalid shape; let them overlap, or leave more than {SNAP:g} m between them"
                )
    return snapped


def _nearly_touching(parts: Sequence[Polygonal]) -> list[tuple[int, int]]:
    """Pairs of polygons of which one has a corner close to the boundary of the other, but not exactly on it."""
    if len(parts) < 2:
        return []
    rings, owner = shapely.get_rings(parts, return_index=True)
    corners, ring = shapely.get_coordinates(rings, return_index=True)
    along = np.flatnonzero(ring[:-1] == ring[1:])
    sides = shapely.linestrings(np.stack([corners[along], corners[along + 1]], axis=1))
    points, part, side_part = shapely.points(corners), owner[ring], owner[ring[along]]
    corner, side = shapely.STRtree(sides).query(points, predicate="dwithin", distance=SNAP)
    corner, side = corner[part[corner] != side_part[side]], side[part[corner] != side_part[side]]
    # This test is exact; a distance may be rounded to zero.
    exactly = shapely.intersects(points[corner], sides[side])
    on_boundary = set(zip(corner[exactly].tolist(), side_part[side[exactly]].tolist(), strict=True))
    near = set(zip(corner.tolist(), side_part[side].tolist(), strict=True)) - on_boundary
    return sorted({(min(own, int(part[k])), max(own, int(part[k]))) for k, own in near})


def _snapped(one: Polygonal, other: Polygonal) -> tuple[Polygonal, Polygonal]:
    """Two polygons with the corners of the other one on the boundary of the first, and the other way round."""
    edge = one.boundary
    moved = shapely.get_coordinates(other)[_nearly_on(other, one)]
    # Where the corners go: a corner of the first polygon if there is one, otherwise the nearest place on its boundary.
    feet = shapely.line_interpolate_point(edge, shapely.line_locate_point(edge, shapely.points(moved)))
    one = shapely.snap(one, shapely.MultiPoint(shapely.get_coordinates(feet)), SNAP)
    corners = shapely.get_coordinates(one)[_near(one, other)]
    return one, shapely.snap(other, shapely.MultiPoint(corners), SNAP)


def _nearly_on(polygon: Polygonal, other: Polygonal) -> NDArray[np.bool_]:
    """Which corners of a polygon are close to the boundary of another, but not exactly on it."""
    near = _near(polygon, other)
    # This test is exact; a distance may be rounded to zero.
    near[near] = ~shapely.intersects(shapely.points(shapely.get_coordinates(polygon)[near]), other.boundary)
    return near


def _near(polygon: Polygonal, other: Polygonal) -> NDArray[np.bool_]:
    """Which corners of a polygon are at most `SNAP` from the boundary of another."""
    corners = shapely.get_coordinates(polygon)
    low, high = np.reshape(other.bounds, (2, 2))
    # Few corners of a large area are near a small one, and each distance takes time for all edges of the other.
    near = np.asarray(((corners >= low - SNAP) & (corners <= high + SNAP)).all(axis=1))
    near[near] = shapely.dwithin(shapely.points(corners[near]), other.boundary, SNAP)
    return near


def _neighbours(parts: Sequence[Polygonal]) -> list[tuple[int, int]]:
    """Pairs of polygons that are at most `SNAP` apart, by number."""
    first, second = shapely.STRtree(parts).query(parts, predicate="dwithin", distance=SNAP)
    return sorted({(int(a), int(b)) for a, b in zip(first, second, strict=True) if a < b})


def touching_points(area: Polygonal) -> Iterator[tuple[int, int, tuple[float, float]]]:
    """Pairs of pieces of a joined area that still meet, which is only in points: their numbers and one such point."""
    parts = list(shapely.get_parts(area))
    for one, other in _neighbours(parts):
        x, y = shapely.get_coordinates(shapely.shortest_line(parts[one], parts[other]))[0]
        yield one, other, (float(x), float(y))


def overlapping(parts: Sequence[Polygonal]) -> Iterator[tuple[int, int, tuple[float, float]]]:
    """Pairs of polygons that overlap by more than rounding: their numbers and a place where they do."""
    for one, other in _neighbours(parts):
        both = parts[one].intersection(parts[other])
        if both.area > SNAP * both.length:
            at = both.representative_point()
            yield one, other, (at.x, at.y)
