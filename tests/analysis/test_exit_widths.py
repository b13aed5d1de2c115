"""Widths of exits of known openings."""

import math
from typing import Any

import pytest
import shapely
from made_runs import scene

from tropel.analysis.evacuation import exit_widths

ROOM = shapely.box(0.0, 0.0, 20.0, 10.0)


def width(exit_area: Any, floor: Any = ROOM, **more: Any) -> float:
    return exit_widths(scene(floor, exits={"it": exit_area.wkt}, **more))["it"]


@pytest.mark.parametrize("depth", [0.2, 1.0, 5.0])
def test_a_strip_along_a_wall_is_as_wide_as_it_is_long(depth: float) -> None:
    assert width(shapely.box(20.0 - depth, 4.0, 20.0, 6.5)) == pytest.approx(2.5)


def test_the_end_of_a_corridor_is_as_wide_as_the_corridor() -> None:
    assert width(shapely.box(17.0, 0.0, 20.0, 10.0)) == pytest.approx(10.0)


def test_an_exit_outside_a_doorway_is_as_wide_as_the_doorway() -> None:
    floor = ROOM | shapely.box(20.0, 4.0, 20.5, 5.2) | shapely.box(20.5, 4.0, 22.0, 5.2)
    assert width(shapely.box(20.5, 4.0, 22.0, 5.2), floor) == pytest.approx(1.2)


def test_an_exit_in_a_corner_is_as_wide_as_its_diagonal() -> None:
    assert width(shapely.box(17.0, 0.0, 20.0, 4.0)) == pytest.approx(5.0)


def test_an_exit_that_stands_free_is_entered_from_all_around() -> None:
    assert width(shapely.box(8.0, 4.0, 10.0, 5.0)) == pytest.approx(6.0)


def test_walls_close_the_sides_they_stand_on() -> None:
    walls = shapely.LineString([(8.0, 5.0), (8.0, 4.0), (10.0, 4.0), (10.0, 5.0)])
    assert width(shapely.box(8.0, 4.0, 10.0, 5.0), walls_wkt=walls.wkt) == pytest.approx(2.0)
    assert width(shapely.box(8.0, 4.0, 10.0, 5.0), walkable_wkt="", walls_wkt=walls.wkt) == pytest.approx(2.0)


def test_openings_on_both_sides_add_up() -> None:
    assert width(shapely.box(9.0, 0.0, 10.0, 10.0)) == pytest.approx(20.0)


def test_an_exit_without_an_opening_has_no_width() -> None:
    assert math.isnan(width(ROOM))
