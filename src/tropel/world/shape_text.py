"""WKT and GeoJSON, looked at before GEOS reads them: it calls itself for each level of nesting until the stack ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from tropel.errors import GeometryError
from tropel.input_files import LARGEST_GEOMETRY, read_text

#: A multi-polygon within a collection has four levels of brackets, as coordinates in a GeoJSON geometry collection
#: have eight; nothing sensible has many more.
DEEPEST = 16

_KINDS = frozenset({"POINT", "LINESTRING", "LINEARRING", "POLYGON"}) | frozenset(
    {"MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"}
)
_EXAMPLE = "an example: POLYGON ((0 0, 9 0, 9 5, 0 0))"
_GEOJSON = (".json", ".geojson")


def read_shape_file(path: Path) -> str | Mapping[str, Any]:
    """The WKT text or the GeoJSON object in a file, to be given to `polygon` or `polyline`."""
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
    """The geometry that a WKT text describes, of a kind without curves."""
    kind = re.match(r"\s*([A-Za-z]*)", text[:1000])
    word = "" if kind is None else kind[1].upper()
    if word not in _KINDS:
        found = f"it begins with '{text.strip()[:20]}'" if text.strip() else "it is empty"
        raise GeometryError(f"{what}: not a WKT text of a known kind: {found}; {_EXAMPLE}")
    if len(text) > LARGEST_GEOMETRY:
        raise GeometryError(
            f"{what}: a WKT text of {len(text):,} characters is too long; {LARGEST_GEOMETRY:,} are read"
        )
    if _depth(text) > DEEPEST:
        raise GeometryError(f"{what}: the WKT text is nested deeper than {DEEPEST} brackets; take shapes out of it")
    if re.search(r"CURVE|CIRCULARSTRING|SURFACE|TIN\b|TRIANGLE", text, re.IGNORECASE):
        raise GeometryError(f"{what}: curves and surfaces of WKT are not known; use straight lines; {_EXAMPLE}")
    try:
        # What overflows becomes infinite, and is refused with the number of the point.
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
            raise GeometryError(f"{what}: feature {number} is no GeoJSON feature or geometry")
        yield feature.get("geometry") if feature.get("type") == "Feature" else feature


def _geometry(told: Any, what: str) -> BaseGeometry:
    if not isinstance(told, Mapping):
        raise GeometryError(f"{what}: not a GeoJSON geometry or feature: there is no geometry in it")
    if _is_deeper(told, DEEPEST):
        raise GeometryError(f"{what}: the GeoJSON geometry is nested deeper than {DEEPEST} levels; take shapes out")
    try:
        with np.errstate(all="ignore"):
            return shapely.from_geojson(json.dumps(told))
    except (shapely.errors.ShapelyError, TypeError, ValueError) as error:
        raise GeometryError(f"{what}: not a GeoJSON geometry or feature: {error}") from error


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested in more than so many levels."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return levels < 0 or any(_is_deeper(part, levels - 1) for part in inner if isinstance(part, list | tuple | Mapping))
