"""Walls are drawn so that what is between them can be seen."""

from __future__ import annotations

import pytest
import shapely

from tropel.recording import Scene
from tropel.viewer.world_drawing import wall_height, wall_width

ROOM = shapely.box(0.0, 0.0, 40.0, 20.0)


def scene(walls: shapely.Geometry | None = None) -> Scene:
    return Scene(
        dim=2,
        bounds=[[0.0, 0.0], [40.0, 20.0]],
        dt=0.1,
        walkable_wkt=ROOM.wkt,
        walls_wkt="" if walls is None else walls.wkt,
    )


def benches(apart: float) -> shapely.Geometry:
    rows = int(18.0 / apart)
    return shapely.MultiLineString([[(1.0, 1.0 + k * apart), (39.0, 1.0 + k * apart)] for k in range(rows)])


def test_the_walls_of_a_room_are_thick_and_high_in_proportion_to_it() -> None:
    assert wall_width(scene()) == pytest.approx(0.16)
    assert wall_height(scene()) == pytest.approx(0.8)
    assert wall_width(scene(benches(6.0))) == wall_width(scene())


@pytest.mark.parametrize("apart", [0.2, 0.5])
def test_who_sits_in_narrow_rows_is_not_hidden_by_their_walls(apart: float) -> None:
    assert 0.05 * apart < wall_width(scene(benches(apart))) < 0.25 * apart
    assert wall_height(scene(benches(apart))) < apart


def test_a_world_without_walls_has_none_to_hide_anybody() -> None:
    space = Scene(dim=3, bounds=[[0.0] * 3, [100.0] * 3], dt=0.1)
    assert wall_height(space) == pytest.approx(1.2)
