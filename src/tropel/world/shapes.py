"""Input shapes, checked: shapely geometries, WKT, GeoJSON or lists of points become valid polygons and polylines.

Everything that enters the world passes through here, so that kernels can trust their input. The file gives the limits
of a world's size, then reads WKT and GeoJSON, and finally checks polygons, polylines and points.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from pydantic import Field
from shapely.geometry.base import BaseGeometry

from tropel.errors import GeometryError, is_finite
from tropel.foundation.arguments import CHECKED_ELSEWHERE, LARGEST_LENGTH, numbers_in
from tropel.foundation.field_types import Finite
from tropel.foundation.files import LARGEST_GEOMETRY, read_text
from tropel.world.pieces import overlapping, snap_together

# How large a world may be.
#
# Up to a billion metres, a coordinate still resolves a tenth of a micrometre, and no sum, product or square of lengths
# comes close to overflow. The exact predicates of walls rely on this.


#: How far from the origin agents may be in a file [m]: in open space nothing stops them at the largest length.
FARTHEST = 1e15

#: How messages give the allowed range.
ALLOWED = f"between -{LARGEST_LENGTH:g} and {LARGEST_LENGTH:g} m"

Coordinate = Annotated[Finite, Field(ge=-LARGEST_LENGTH, le=LARGEST_LENGTH)]
Length = Annotated[Finite, Field(ge=0.0, le=LARGEST_LENGTH)]
PositiveLength = Annotated[Finite, Field(gt=0.0, le=LARGEST_LENGTH)]


def is_length(value: object) -> bool:
    """Whether a value is a length in metres, 0 or more, that a world may have."""
    return is_finite(value) and 0.0 <= value <= LARGEST_LENGTH  # type: ignore[operator]


def check_level(level: int) -> None:
    """Raise unless this is the number of a level. Agents, cells and look-ups support levels; worlds have one so far."""
    if level != 0:
        raise GeometryError(f"there is no level {level}: worlds have only one level so far, level 0")


# WKT and GeoJSON, checked before GEOS reads them: it recurses for each level of nesting until the stack overflows.

#: A multi-polygon in a collection has four levels of brackets, and coordinates in a GeoJSON geometry collection have
#: eight; no reasonable input has many more.
DEEPEST = 16

_KINDS = frozenset({"POINT", "LINESTRING", "LINEARRING", "POLYGON"}) | frozenset(
    {"MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"}
)
_EXAMPLE = "an example: POLYGON ((0 0, 9 0, 9 5, 0 0))"
_GEOJSON = (".json", ".geojson")


def read_shape_file(path: Path) -> str | Mapping[str, Any]:
    """The WKT text or the GeoJSON object in a file, as input for `polygon` or `polyline`."""
    try:
        text = read_text(path, largest=LARGEST_GEOMETRY)
        shape = json.loads(text) if path.suffix.lower() in _GEOJSON else text
    except OSError as error:
        raise GeometryError(f"cannot read {path}: {error.strerror or error}; give a .wkt or .geojson file") from error
    except UnicodeDecodeError as error:
        raise GeometryError(f"cannot read {path}: it is not UTF-8 text; give a .wkt or .geojson file") from error
    except (ValueError, RecursionError) as error:
        why = error if isinstance(error, ValueError) else "it is nested too deeply"
        raise GeometryError(f"{path}: not valid JSON: {why}") from error
    if not isinstance(shape, str | Mapping):
        raise GeometryError(f"{path}: not GeoJSON: it must be an object, such as a Polygon or a Feature")
    return shape


def read_wkt(text: str, what: str) -> BaseGeometry:
    """The geometry that a WKT text describes; kinds with curves are refused."""
    kind = re.match(r"\s*([A-Za-z]*)", text[:1000])
    word = "" if kind is None else kind[1].upper()
    if word not in _KINDS:
        found = f"it begins with '{text.strip()[:20]}'" if text.strip() else "it is empty"
        raise GeometryError(f"{what}: not a WKT text of a known kind: {found}; {_EXAMPLE}")
    if len(text) > LARGEST_GEOMETRY:
        raise GeometryError(
            f"{what}: a WKT text of {len(text):,} characters is too long; at most {LARGEST_GEOMETRY:,} are read"
        )
    if _depth(text) > DEEPEST:
        raise GeometryError(f"{what}: the WKT text is nested deeper than {DEEPEST} brackets; use simpler shapes")
    if re.search(r"CURVE|CIRCULARSTRING|SURFACE|TIN\b|TRIANGLE", text, re.IGNORECASE):
        raise GeometryError(f"{what}: curves and surfaces of WKT are not supported; use straight lines; {_EXAMPLE}")
    try:
        # Numbers that overflow become infinite, and are refused with the number of the point.
        with np.errstate(all="ignore"):
            return shapely.from_wkt(text)
    except (shapely.errors.ShapelyError, UnicodeError, ValueError) as error:
        raise GeometryError(f"{what}: not a WKT text: {error}; {_EXAMPLE}") from error


def _depth(text: str) -> int:
    """How deep brackets are nested."""
    letters = np.frombuffer(text.encode("utf-8", errors="replace"), dtype=np.uint8)
    brackets = letters[(letters == ord("(")) | (letters == ord(")"))]
    return int(np.cumsum(np.where(brackets == ord("("), 1, -1)).max(initial=0))


def read_geojson(shape: Mapping[str, Any], what: str) -> list[BaseGeometry]:
    """The geometries of a GeoJSON object: one, or those of all features of a collection."""
    return [_geometry(part, what) for part in _geometries(shape, what)]


def _geometries(shape: Any, what: str) -> Iterator[Any]:
    kind = shape.get("type") if isinstance(shape, Mapping) else None
    if kind != "FeatureCollection":
        yield shape.get("geometry") if kind == "Feature" else shape
        return
    features = shape.get("features")
    if not isinstance(features, list | tuple) or not features:
        raise GeometryError(f"{what}: the GeoJSON feature collection is empty")
    for number, feature in enumerate(features):
        if not isinstance(feature, Mapping) or feature.get("type") == "FeatureCollection":
            raise GeometryError(f"{what}: feature {number} is not a GeoJSON feature or geometry")
        yield feature.get("geometry") if feature.get("type") == "Feature" else feature


def _geometry(told: Any, what: str) -> BaseGeometry:
    if not isinstance(told, Mapping):
        raise GeometryError(f"{what}: not a GeoJSON geometry or feature: it contains no geometry")
    if _is_deeper(told, DEEPEST):
        raise GeometryError(f"{what}: the GeoJSON geometry is nested deeper than {DEEPEST} levels; use simpler shapes")
    try:
        with np.errstate(all="ignore"):
            return shapely.from_geojson(json.dumps(told))
    except (shapely.errors.ShapelyError, TypeError, ValueError) as error:
        raise GeometryError(f"{what}: not a GeoJSON geometry or feature: {error}") from error


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested deeper than this many levels."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return levels < 0 or any(_is_deeper(part, levels - 1) for part in inner if isinstance(part, list | tuple | Mapping))


#: The result of `polygon`.
Polygonal: TypeAlias = shapely.Polygon | shapely.MultiPolygon
#: Anything that `polygon` and `polyline` accept.
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
        # Checked before the union, which fails on an invalid part or silently changes its shape.
        if not part.is_valid:
            raise GeometryError(f"{what}: feature {number}: {_why_invalid(part)}")
    if all(part.geom_type.endswith("Polygon") for part in parts):
        parts = snap_together(parts, what)
    return shapely.union_all(parts)


def _check_coordinates(points: NDArray[np.float64], what: str) -> None:
    """Raise for coordinates that are not numbers, or larger than a world may be."""
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
    """A valid polygon (or several, with or without holes), or a GeometryError that names the shape and the place."""
    geometry = _read(shape, what, ring=True)
    if geometry.is_empty:
        raise GeometryError(f"{what}: the shape is empty")
    _check_coordinates(shapely.get_coordinates(geometry), what)
    if geometry.geom_type not in ("Polygon", "MultiPolygon"):
        raise GeometryError(f"{what}: expected a polygon, got a {geometry.geom_type}")
    if not geometry.is_valid:
        geometry = _merged(geometry, what)
    if geometry.area <= 0.0:
        raise GeometryError(f"{what}: the polygon has no area")
    return shapely.force_2d(geometry)


def _merged(geometry: BaseGeometry, what: str) -> Polygonal:
    """The union of polygons that are not a valid shape only because they share edges or overlap by rounding."""
    parts = list(shapely.get_parts(geometry))
    if len(parts) == 1 or not shapely.is_valid(parts).all():
        raise GeometryError(f"{what}: {_why_invalid(geometry)}; draw the ring so that it does not cross itself")
    for one, other, (x, y) in overlapping(parts):
        raise GeometryError(f"{what}: pieces {one} and {other} overlap around ({x:g}, {y:g}); give their union instead")
    return shapely.union_all(snap_together(parts, what))


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
    """All straight pieces of a polygon's rings or of a polyline, as rows x0, y0, x1, y1, without those of no length."""
    pieces = []
    boundary = geometry.boundary if geometry.geom_type.endswith("Polygon") else geometry
    for line in shapely.get_parts(boundary):
        xy = shapely.get_coordinates(line)
        pieces.append(np.hstack([xy[:-1], xy[1:]]))
    rows = np.concatenate(pieces) if pieces else np.empty((0, 4))
    return np.ascontiguousarray(rows[(rows[:, :2] != rows[:, 2:]).any(axis=1)])
