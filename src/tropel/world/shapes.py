"""Shapes in, checked: shapely geometries, WKT, GeoJSON or lists of points become valid polygons and polylines.

Everything that enters the world passes here, so that kernels may trust what they are given.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from tropel.arguments import CHECKED_ELSEWHERE, LARGEST_LENGTH, numbers_in
from tropel.errors import GeometryError
from tropel.world.limits import ALLOWED
from tropel.world.shape_text import read_geojson, read_wkt

#: What `polygon` returns.
Polygonal: TypeAlias = shapely.Polygon | shapely.MultiPolygon
#: Anything `polygon` and `polyline` understand.
ShapeLike: TypeAlias = Annotated[BaseGeometry | str | Mapping[str, Any] | Sequence[Sequence[float]], CHECKED_ELSEWHERE]


def _read(shape: ShapeLike, what: str, *, ring: bool) -> BaseGeometry:
    if isinstance(shape, BaseGeometry):
        return shape
    if isinstance(shape, str):
        return read_wkt(shape, what)
    if isinstance(shape, Mapping):
        return _joined(read_geojson(shape, what), what)
    points = numbers_in(shape)
    if points is None:
        raise GeometryError(f"{what}: expected a shapely geometry, WKT, GeoJSON or a list of [x, y] points")
    if points.ndim != 2 or points.shape[1] != 2:
        raise GeometryError(f"{what}: a list of points must look like [[x, y], [x, y], …]")
    _check_coordinates(points, what)
    least = 3 if ring else 2
    if len(points) < least:
        raise GeometryError(f"{what}: needs at least {least} points, got {len(points)}")
    return shapely.Polygon(points) if ring else shapely.LineString(points)


def _joined(parts: list[BaseGeometry], what: str) -> BaseGeometry:
    """One geometry as it is, or the union of several."""
    if len(parts) == 1:
        return parts[0]
    for number, part in enumerate(parts):
        _check_coordinates(shapely.get_coordinates(part), f"{what}: feature {number}")
        # Checked before the union, which fails on such a part or quietly makes another shape of it.
        if not part.is_valid:
            raise GeometryError(f"{what}: feature {number}: {_why_invalid(part)}")
    return shapely.union_all(parts)


def _check_coordinates(points: NDArray[np.float64], what: str) -> None:
    """Raise for coordinates that are no numbers, or larger than a world may be."""
    good = np.abs(points) <= LARGEST_LENGTH
    if not good.all():
        bad = int(np.flatnonzero(~good.all(axis=1))[0])
        raise GeometryError(
            f"{what}: point {bad} is {points[bad].tolist()}; coordinates must be finite numbers {ALLOWED}"
        )


def _why_invalid(geometry: BaseGeometry) -> str:
    reason = shapely.is_valid_reason(geometry)
    return re.sub(r"\[([^\]]+)\]", lambda m: " at (" + ", ".join(m.group(1).split()) + ")", reason)


def polygon(shape: ShapeLike, what: str) -> shapely.Polygon | shapely.MultiPolygon:
    """A valid polygon (or several, with holes or without), or a GeometryError that names the shape and the place."""
    geometry = _read(shape, what, ring=True)
    if geometry.is_empty:
        raise GeometryError(f"{what}: the shape is empty")
    _check_coordinates(shapely.get_coordinates(geometry), what)
    if geometry.geom_type not in ("Polygon", "MultiPolygon"):
        raise GeometryError(f"{what}: expected a polygon, got a {geometry.geom_type}")
    if not geometry.is_valid:
        raise GeometryError(f"{what}: {_why_invalid(geometry)}; draw the ring so that it does not cross itself")
    if geometry.area <= 0.0:
        raise GeometryError(f"{what}: the polygon has no area")
    return shapely.force_2d(geometry)


def polyline(shape: ShapeLike, what: str) -> shapely.LineString | shapely.MultiLineString:
    """A polyline of some length."""
    geometry = _read(shape, what, ring=False)
    if geometry.geom_type == "LinearRing":
        geometry = shapely.LineString(geometry.coords)
    if geometry.is_empty:
        raise GeometryError(f"{what}: the shape is empty")
    _check_coordinates(shapely.get_coordinates(geometry), what)
    if geometry.geom_type not in ("LineString", "MultiLineString"):
        raise GeometryError(f"{what}: expected a line, got a {geometry.geom_type}")
    if geometry.length <= 0.0:
        raise GeometryError(f"{what}: the line has no length")
    return shapely.force_2d(geometry)


def point(value: Sequence[float], what: str, *, dim: int) -> NDArray[np.float64]:
    """A position with `dim` finite coordinates."""
    position = numbers_in(value)
    if position is None:
        raise GeometryError(f"{what}: {reprlib.repr(value)} is not a position of {dim} numbers")
    if position.shape != (dim,):
        raise GeometryError(f"{what}: expected {dim} coordinates, got {value!r}")
    if not (np.abs(position) <= LARGEST_LENGTH).all():
        raise GeometryError(f"{what}: {position.tolist()} has coordinates that are not finite numbers {ALLOWED}")
    return position


def segments_of(geometry: BaseGeometry) -> NDArray[np.float64]:
    """All straight pieces of a polygon's rings or of a polyline, as rows x0, y0, x1, y1; pieces without length go."""
    pieces = []
    boundary = geometry.boundary if geometry.geom_type.endswith("Polygon") else geometry
    for line in shapely.get_parts(boundary):
        xy = shapely.get_coordinates(line)
        pieces.append(np.hstack([xy[:-1], xy[1:]]))
    rows = np.concatenate(pieces) if pieces else np.empty((0, 4))
    return np.ascontiguousarray(rows[(rows[:, :2] != rows[:, 2:]).any(axis=1)])
