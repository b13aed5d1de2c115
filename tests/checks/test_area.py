"""A walkable area in several pieces is described, and so are regions that reach out of the building."""

from __future__ import annotations

import pytest
import shapely

from tropel import Group, Simulation, Source, World

LEFT, RIGHT = shapely.box(0.0, 0.0, 10.0, 10.0), shapely.box(12.0, 0.0, 20.0, 10.0)
BRIDGE = shapely.box(9.0, 4.0, 13.0, 6.0)
OUT = {"out": shapely.box(19.0, 4.0, 20.0, 6.0)}


def codes(sim: Simulation, severity: str = "warning") -> list[str]:
    return [found.code for found in sim.check() if found.severity == severity]


def test_people_and_exits_in_different_pieces() -> None:
    world = World(shapely.MultiPolygon([LEFT, RIGHT]), exits=OUT)
    sim = Simulation(world, Group("people", count=7, region=LEFT))
    assert codes(sim) == ["no_path_pieces", "pieces"]
    message = next(found.message for found in sim.check() if found.code == "pieces")
    for words in ("2 pieces", "100 m²", "with 7 people", "80 m²", "nobody, exit 'out'"):
        assert words in message


def test_connected_pieces_are_one_area() -> None:
    world = World(shapely.union_all([LEFT, RIGHT, BRIDGE]), exits=OUT)
    assert Simulation(world, Group("people", count=7, region=LEFT)).check() == []


def test_two_buildings_that_each_have_what_they_need_are_only_a_note() -> None:
    exits = {**OUT, "left": shapely.box(0.0, 4.0, 1.0, 6.0)}
    world = World(shapely.MultiPolygon([LEFT, RIGHT]), exits=exits)
    groups = [Group("a", count=3, region=LEFT.buffer(-2.0)), Group("b", count=3, region=RIGHT.buffer(-2.0))]
    sim = Simulation(world, groups)
    assert codes(sim) == []
    assert codes(sim, "note") == ["pieces"]


def test_a_source_makes_a_piece_useful() -> None:
    exits = {**OUT, "left": shapely.box(0.0, 4.0, 1.0, 6.0)}
    world = World(shapely.MultiPolygon([LEFT, RIGHT]), exits=exits)
    lonely = Simulation(world, Group("a", count=3, region=LEFT.buffer(-2.0)))
    assert codes(lonely) == ["pieces"]
    coming = Simulation(
        world, [Group("a", count=3, region=LEFT.buffer(-2.0)), Source("b", rate=1.0, region=RIGHT.buffer(-2.0))]
    )
    assert codes(coming) == []


def test_pieces_that_meet_in_a_point_are_named_with_the_point() -> None:
    corner = shapely.box(10.0, 10.0, 20.0, 20.0)
    world = World(shapely.MultiPolygon([LEFT, corner]), exits={"out": shapely.box(18.0, 18.0, 20.0, 20.0)})
    sim = Simulation(world, Group("people", count=3, region=LEFT))
    assert codes(sim) == ["no_path_pieces", "pieces", "pieces_touch"]
    touch = next(found for found in sim.check() if found.code == "pieces_touch")
    assert touch.place == (10.0, 10.0)
    assert "(10, 10)" in touch.message


@pytest.mark.parametrize(("beyond", "share"), [(0.0, None), (0.1, None), (2.0, "20%"), (6.0, "60%")])
def test_a_region_that_reaches_outside_is_told_with_the_share(beyond: float, share: str | None) -> None:
    region = shapely.box(-beyond, 1.0, 10.0 - beyond, 9.0)
    world = World(LEFT, exits={"out": shapely.box(9.0, 4.0, 10.0, 6.0)})
    for crowd in (Group("people", count=3, region=region), Source("people", rate=1.0, region=region)):
        found = [finding for finding in Simulation(world, crowd).check() if finding.code == "region_outside"]
        assert len(found) == (share is not None)
        assert share is None or share in found[0].message


def test_a_column_in_a_region_is_not_outside() -> None:
    hall = LEFT.difference(shapely.box(4.0, 4.0, 6.0, 6.0))
    world = World(hall, exits={"out": shapely.box(9.0, 4.0, 10.0, 6.0)})
    assert Simulation(world, Group("people", count=3, region=shapely.box(1.0, 1.0, 8.0, 9.0))).check() == []


def test_a_box_in_3d_is_checked_where_it_has_walls() -> None:
    region = ((-5.0, 1.0, 1.0), (5.0, 9.0, 9.0))
    group = Group("birds", count=3, region=region, goal="none")
    walled = Simulation(World.box((0, 0, 0), (10, 10, 10)), group).check()
    assert [found.code for found in walled] == ["region_outside"]
    assert "50%" in walled[0].message
    assert Simulation(World.box((0, 0, 0), (10, 10, 10), open=True), group).check() == []
