"""Pieces of the walkable area that rounding keeps apart are joined; all others keep their bits."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from shapely import affinity

from tropel import FlowField, Group, Simulation, World
from tropel.errors import GeometryError, ScenarioError
from tropel.scenario.loading import Scenario, parse_scenario
from tropel.world.pieces import SNAP, join_pieces, snap_together

HALL = shapely.box(0.0, 0.0, 10.0, 10.0)


def passages(area: shapely.Geometry, width: float) -> int:
    """The number of pieces for bodies of a width [m]."""
    return len(shapely.get_parts(area.buffer(-width / 2.0)))


def scenario(*boxes: list[float]) -> Scenario:
    text = f"""
name = "pieces"
until = "empty"
limit = 60.0

[world]
walkable = [{", ".join(f"{{ box = {box} }}" for box in boxes)}]

[world.exits]
out = {{ box = [11.0, 4.0, 12.0, 6.0] }}

[[groups]]
name = "people"
count = 5
region = {{ box = [1.0, 1.0, 9.0, 9.0] }}

[planning]
model = "flow_field"
"""
    from pathlib import Path

    return parse_scenario(text, source="pieces.toml", folder=Path())


@pytest.mark.parametrize("gap", [1e-15, 1e-12, 1e-9, 9e-7, -1e-12, -1e-9, -9e-7])
def test_a_gap_or_an_overlap_by_rounding_is_joined(gap: float) -> None:
    side = shapely.box(10.0 + gap, 4.0, 12.0, 6.0)
    for order in ([HALL, side], [side, HALL]):
        joined = shapely.union_all(snap_together(order, "area"))
        assert joined.geom_type == "Polygon"
        assert passages(joined, 1.9) == 1
        assert joined.area == pytest.approx(104.0, abs=1e-5)


def test_people_walk_through_where_two_pieces_were_a_nanometre_apart() -> None:
    built = scenario([0, 0, 10, 10], [10.000000001, 4, 12, 6]).build(threads=1)
    by_hand = Simulation(
        World(
            shapely.MultiPolygon([HALL, shapely.box(10.000000001, 4, 12, 6)]),
            exits={"out": shapely.box(11.0, 4.0, 12.0, 6.0)},
        ),
        Group("people", count=5, region=shapely.box(1.0, 1.0, 9.0, 9.0)),
        planning=FlowField(),
        threads=1,
    )
    for sim in (built, by_hand):
        assert sim.check() == []
        assert sim.run(until="empty", limit=60.0).evacuated == 5


def test_rotated_plans_are_joined_wherever_rooms_share_a_wall() -> None:
    rng = np.random.default_rng(4)
    cut_without = 0
    for _ in range(300):
        y = rng.uniform(1.0, 7.0)
        rooms = [HALL, shapely.box(10.0, y, 13.0, y + 2.0), shapely.box(13.0, y - 3.0, 20.0, y + 5.0)]
        angle, offset = rng.uniform(0.0, 360.0), rng.uniform(-1000.0, 1000.0, 2)
        drawn = [affinity.translate(affinity.rotate(room, angle, origin=(3.0, 3.0)), *offset) for room in rooms]
        joined = shapely.union_all(snap_together(drawn, "area"))
        assert joined.geom_type == "Polygon"
        assert not joined.interiors
        assert passages(joined, 1.9) == 1
        cut_without += passages(shapely.union_all(drawn), 1.9) > 1
    assert cut_without > 200  # so this is what joining is for


def test_features_of_geojson_are_joined_too() -> None:
    boxes = [HALL, shapely.box(10.000000001, 4.0, 12.0, 6.0)]
    features = [{"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(box)} for box in boxes]
    world = World({"type": "FeatureCollection", "features": features})
    assert world.walkable is not None
    assert world.walkable.geom_type == "Polygon"


@pytest.mark.parametrize(
    "parts",
    [
        [HALL, shapely.box(10.0, 4.0, 12.0, 6.0)],  # share an edge
        [HALL, shapely.box(9.0, 4.0, 12.0, 6.0)],  # overlap
        [HALL, shapely.box(10.0 + 2.0 * SNAP, 4.0, 12.0, 6.0)],  # are apart
        [HALL, shapely.box(10.0, 10.0, 12.0, 12.0)],  # meet in a point
        [HALL, shapely.Polygon([(10.0, 1.0 / 3.0), (13.0, 0.1), (10.0, 2.0 / 3.0)])],
    ],
)
def test_pieces_that_meet_exactly_or_not_at_all_are_left_alone(parts: list[shapely.Polygon]) -> None:
    assert snap_together(parts, "area") is parts


def test_an_area_that_needs_no_joining_is_the_same_object() -> None:
    apart = shapely.MultiPolygon([HALL, shapely.box(11.0, 0.0, 12.0, 1.0)])
    assert join_pieces(apart, "area") is apart
    assert join_pieces(HALL, "area") is HALL


def test_polygons_that_overlap_are_refused_by_number() -> None:
    overlap = shapely.MultiPolygon([HALL, shapely.box(50.0, 0.0, 51.0, 1.0), shapely.box(9.0, 4.0, 12.0, 6.0)])
    with pytest.raises(GeometryError, match=r"walkable area: pieces 0 and 2 overlap around \(9.5, 5\)"):
        World(overlap)


def test_shapes_of_a_file_that_meet_in_a_point_are_refused_by_number() -> None:
    with pytest.raises(ScenarioError, match=r"line 7: world.walkable: shapes 0 and 2 meet only in the point \(10, "):
        scenario([0, 0, 10, 10], [9, 4, 12, 6], [10, 10, 12, 12]).build()
    scenario([0, 0, 10, 10], [9, 4, 12, 6], [9.0, 9.0, 12, 12]).build()
