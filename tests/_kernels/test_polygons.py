"""Points in polygons against shapely, on boundaries and in holes too."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel._kernels.predicates import inside_edges
from tropel.world.shapes import segments_of

Polygonal: TypeAlias = shapely.Polygon | shapely.MultiPolygon


def inside(polygon: Polygonal, x: float, y: float) -> bool:
    edges = segments_of(polygon)
    return bool(inside_edges(x, y, edges, 0, len(edges)))


@st.composite
def star_with_holes(draw: st.DrawFn) -> Polygonal:
    """A star-shaped ring on a coarse lattice (so that vertices and rays meet often) with up to two square holes."""
    corners = draw(st.integers(3, 12))
    radii = [draw(st.integers(2, 10)) for _ in range(corners)]
    ring = [
        (round(r * math.cos(2 * math.pi * k / corners)), round(r * math.sin(2 * math.pi * k / corners)))
        for k, r in enumerate(radii)
    ]
    area = shapely.make_valid(shapely.Polygon(ring))
    for _ in range(draw(st.integers(0, 2))):
        x, y = draw(st.integers(-5, 5)), draw(st.integers(-5, 5))
        area = area.difference(shapely.box(x, y, x + 2, y + 1))
    parts = [part for part in shapely.get_parts(area) if part.geom_type == "Polygon" and part.area > 0]
    return shapely.MultiPolygon(parts) if parts else shapely.box(0, 0, 1, 1)


@given(star_with_holes(), st.lists(st.tuples(st.integers(-22, 22), st.integers(-22, 22)), min_size=1, max_size=30))
@settings(max_examples=150, deadline=None)
def test_lattice_points_are_inside_or_on_it_exactly_when_shapely_says_covered(
    polygon: Polygonal, halves: list[tuple[int, int]]
) -> None:
    for i, j in halves:
        x, y = i / 2, j / 2
        assert inside(polygon, x, y) == polygon.covers(shapely.Point(x, y))


@given(star_with_holes(), st.lists(st.tuples(st.floats(-11, 11), st.floats(-11, 11)), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_any_point_is_inside_exactly_when_shapely_says_covered(
    polygon: Polygonal, points: list[tuple[float, float]]
) -> None:
    for x, y in points:
        assert inside(polygon, x, y) == polygon.covers(shapely.Point(x, y))


@given(star_with_holes())
@settings(max_examples=60, deadline=None)
def test_every_corner_and_every_representable_midpoint_of_an_edge_is_inside(polygon: Polygonal) -> None:
    for x0, y0, x1, y1 in segments_of(polygon):
        assert inside(polygon, x0, y0)
        middle = shapely.Point((x0 + x1) / 2, (y0 + y1) / 2)
        assert inside(polygon, middle.x, middle.y) == polygon.covers(middle)


def test_a_hole_is_outside_but_its_rim_is_not() -> None:
    ring = shapely.Polygon([(0, 0), (10, 0), (10, 10), (0, 10)], [[(4, 4), (6, 4), (6, 6), (4, 6)]])
    assert inside(ring, 1, 5)
    assert not inside(ring, 5, 5)
    assert inside(ring, 4, 5)
    assert inside(ring, 4, 4)
    assert not inside(ring, math.nextafter(4.0, 5.0), 5)


def test_parts_that_meet_in_a_corner_count_as_one_shape() -> None:
    both = shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(1, 1, 2, 2)])
    assert inside(both, 1, 1)
    assert inside(both, 0.5, 0.5)
    assert inside(both, 1.5, 1.5)
    assert not inside(both, 1.5, 0.5)


@pytest.mark.parametrize("offset", [0.0, 5e6, -5e6])
def test_a_large_offset_as_in_map_coordinates_changes_nothing(offset: float) -> None:
    generator = np.random.default_rng(1)
    triangle = shapely.Polygon([(offset, offset), (offset + 7, offset + 1), (offset + 3, offset + 5)])
    for x, y in generator.uniform(offset, offset + 7, (300, 2)):
        assert inside(triangle, x, y) == triangle.covers(shapely.Point(x, y))


def test_only_the_edges_between_first_and_last_are_looked_at() -> None:
    edges = np.concatenate([segments_of(shapely.box(0, 0, 1, 1)), segments_of(shapely.box(5, 5, 6, 6))])
    assert inside_edges(0.5, 0.5, edges, 0, 4)
    assert not inside_edges(0.5, 0.5, edges, 4, 8)
    assert inside_edges(5.5, 5.5, edges, 4, 8)
    assert not inside_edges(5.5, 5.5, edges, 0, 0)
