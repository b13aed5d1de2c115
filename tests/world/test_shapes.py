"""Shapes: every way of giving one, and every way of getting one wrong, named in the error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from shapely.geometry import mapping

from tropel.errors import GeometryError
from tropel.world import shapes

SQUARE = shapely.box(0, 0, 4, 4)
WITH_HOLE = shapely.Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (2, 1), (2, 2), (1, 2)]])
CORNERS = [[0, 0], [4, 0], [4, 4], [0, 4]]
BOW_TIE = [(0, 0), (4, 4), (4, 0), (0, 4)]


def feature(shape: shapely.Geometry) -> dict[str, Any]:
    return {"type": "Feature", "properties": {}, "geometry": mapping(shape)}


@pytest.mark.parametrize(
    "given",
    [
        SQUARE,
        SQUARE.wkt,
        "polygon ((0 0, 4 0, 4 4, 0 4, 0 0))",
        mapping(SQUARE),
        {"type": "Feature", "properties": {"name": "hall"}, "geometry": mapping(SQUARE)},
        {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": mapping(SQUARE)}]},
        CORNERS,
        tuple(map(tuple, CORNERS)),
        np.array(CORNERS, dtype=np.float64),
        [*CORNERS, CORNERS[0]],
        shapely.force_3d(SQUARE, z=7.0),
        "POLYGON Z ((0 0 1, 4 0 1, 4 4 1, 0 4 1, 0 0 1))",
    ],
    ids=["shapely", "wkt", "lower case", "geojson", "feature", "collection", "list", "tuples", "array", "closed list",
         "with z", "wkt with z"],
)  # fmt: skip
def test_a_polygon_may_be_given_in_any_of_the_usual_ways(given: Any) -> None:
    read = shapes.polygon(given, "hall")
    assert read.equals(SQUARE)
    assert not read.has_z


@pytest.mark.parametrize("given", [WITH_HOLE, WITH_HOLE.wkt, mapping(WITH_HOLE)], ids=["shapely", "wkt", "geojson"])
def test_holes_are_kept(given: Any) -> None:
    assert shapes.polygon(given, "hall").area == 15.0
    assert len(shapes.segments_of(shapes.polygon(given, "hall"))) == 8


def test_a_feature_collection_becomes_the_union_of_its_parts() -> None:
    features = [
        {"type": "Feature", "properties": {}, "geometry": mapping(shapely.box(0, 0, 2, 4))},
        {"type": "Feature", "properties": {}, "geometry": mapping(shapely.box(2, 0, 4, 4))},
        {"type": "Feature", "properties": {}, "geometry": mapping(shapely.box(9, 9, 10, 10))},
    ]
    read = shapes.polygon({"type": "FeatureCollection", "features": features}, "site")
    assert read.area == 17.0
    assert read.geom_type == "MultiPolygon"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (BOW_TIE, r"Self-intersection.* at \(2, 2\)"),
        (shapely.Polygon(BOW_TIE), "Self-intersection"),
        (shapely.Polygon(BOW_TIE).wkt, "Self-intersection"),
        (mapping(shapely.Polygon(BOW_TIE)), "Self-intersection"),
        (shapely.Polygon(CORNERS, [[(5, 5), (6, 5), (6, 6)]]), "[Hh]ole"),
        ([[0, 0], [4, 0], [math.nan, 4]], r"point 2 .*nan.* finite"),
        ([[0, 0], [4, 0], [4, math.inf]], r"point 2 .*inf.* finite"),
        pytest.param("POLYGON ((0 0, 4 0, nan 4, 0 0))", "finite|WKT",
                     marks=pytest.mark.filterwarnings("ignore:invalid value encountered in from_wkt")),
        (shapely.Polygon([(0, 0), (4, 0), (4, math.inf)]), "finite"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [math.nan, 4], [0, 0]]]}, "finite|GeoJSON"),
        ([[0, 0], [1, 1]], "at least 3 points, got 2"),
        ([], "."),
        ([[0, 0], [1, 1], [2, 2]], "."),
        ([[0, 0], [4, 0], [4, 0], [0, 0]], "."),
        ("POLYGON EMPTY", "empty"),
        (shapely.Polygon(), "empty"),
        ("POLYGON ((0 0, 1 1", "not a WKT"),
        ("the hall", "not a WKT"),
        ("", "not a WKT"),
        ("POINT (1 1)", "expected a polygon, got a Point"),
        ("LINESTRING (0 0, 1 1, 2 0)", "expected a polygon, got a LineString"),
        (shapely.GeometryCollection([SQUARE]), "expected a polygon"),
        ({}, "GeoJSON"),
        ({"type": "Polygone", "coordinates": []}, "GeoJSON"),
        ({"type": "Polygon"}, "GeoJSON"),
        ({"type": "Polygon", "coordinates": "x"}, "GeoJSON"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}, "."),
        ({"type": "Feature", "properties": {}, "geometry": None}, "GeoJSON"),
        ({"type": "FeatureCollection", "features": []}, "empty"),
        ({"type": "FeatureCollection", "features": None}, "."),
        ({"type": "FeatureCollection", "features": [feature(shapely.Polygon(BOW_TIE))]}, "Self-intersection"),
        ({"type": "FeatureCollection", "features": [feature(SQUARE), feature(shapely.Polygon(BOW_TIE))]},
         "feature 1: Self-intersection"),
        ({"type": "Point", "coordinates": [1, 1]}, "expected a polygon"),
        ([[0, 0, 0], [1, 0, 0], [1, 1, 0]], r"\[x, y\]"),
        ([0, 1, 2], r"\[x, y\]"),
        ([[0, 0], [1], [2, 2]], r"\[x, y\]"),
        ([["a", "b"], ["c", "d"], ["e", "f"]], "list"),
        (7, "."),
        (None, "."),
        (object(), "."),
    ],
)  # fmt: skip
def test_a_polygon_that_cannot_be_used_is_refused_by_name(given: Any, says: str) -> None:
    with pytest.raises(GeometryError, match=f"^exit 'north': .*{says}"):
        shapes.polygon(given, "exit 'north'")


@pytest.mark.parametrize(
    "given",
    [
        shapely.LineString([(0, 0), (3, 4)]),
        "LINESTRING (0 0, 3 4)",
        {"type": "LineString", "coordinates": [[0, 0], [3, 4]]},
        {"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": [[0, 0], [3, 4]]}},
        [(0, 0), (3, 4)],
        [(0, 0), (0, 0), (3, 4)],
        "MULTILINESTRING ((0 0, 3 4))",
    ],
)
def test_a_line_may_be_given_in_any_of_the_usual_ways(given: Any) -> None:
    line = shapes.polyline(given, "wall")
    assert line.length == 5.0
    np.testing.assert_array_equal(shapes.segments_of(line), [[0, 0, 3, 4]])


def test_a_ring_is_a_line_too() -> None:
    assert len(shapes.segments_of(shapes.polyline(SQUARE.exterior, "wall"))) == 4


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([(1, 1), (1, 1)], "no length"),
        ([(1, 1)], "at least 2 points"),
        ([(0, 0), (math.nan, 1)], "finite"),
        ("LINESTRING EMPTY", "empty"),
        (SQUARE, "expected a line, got a Polygon"),
        ("LINESTRING (0 0", "WKT"),
        (3.0, "."),
    ],
)
def test_a_line_that_cannot_be_used_is_refused_by_name(given: Any, says: str) -> None:
    with pytest.raises(GeometryError, match=f"^door 'main': .*{says}"):
        shapes.polyline(given, "door 'main'")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((1.0,), "2 coordinates"),
        ((1.0, 2.0, 3.0), "2 coordinates"),
        ((1.0, math.nan), "finite"),
        (("a", "b"), "not a position"),
        (None, "."),
        ("here", "not a position"),
    ],
)
def test_a_point_that_cannot_be_used_is_refused_by_name(given: Any, says: str) -> None:
    with pytest.raises(GeometryError, match=f"^target 'bar': .*{says}"):
        shapes.point(given, "target 'bar'", dim=2)


def test_segments_of_a_polygon_are_its_rings_piece_by_piece() -> None:
    segments = shapes.segments_of(WITH_HOLE)
    lines = shapely.MultiLineString(segments.reshape(-1, 2, 2).tolist())
    assert lines.equals(WITH_HOLE.boundary)
    assert shapes.segments_of(shapely.MultiPolygon([SQUARE, shapely.box(9, 9, 10, 10)])).shape == (8, 4)
