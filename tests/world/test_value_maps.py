"""What value maps make of the cells of a map, compared with plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel import Disc, Openness, Orbit, ValueMap, Waypoints
from tropel.errors import ParameterError
from tropel.world.ground import Filter
from tropel.world.raster import Raster

CELL = 0.5


def raster(rows: int = 12, columns: int = 16) -> Raster:
    free = np.ones((rows, columns), dtype=np.bool_)
    free[0], free[-1], free[:, 0], free[:, -1] = False, False, False, False
    free[5:7, 4:9] = False
    return Raster(origin=np.array([-1.0, 2.0]), cell=CELL, free=free)


def whole(found: Filter | None, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """A filter's values on the whole map; 1 where it says nothing."""
    out = np.ones(shape)
    if found is not None:
        height, width = found.log_value.shape
        out[found.row : found.row + height, found.column : found.column + width] = np.exp(found.log_value)
    return out


def worth(value_map: ValueMap, ground: Raster, time: float = 0.0) -> NDArray[np.float64]:
    return whole(value_map.filter(ground, value_map.moment(time), group=-1, name="mine"), ground.shape)


def centres(ground: Raster) -> list[tuple[int, int, float, float]]:
    rows, columns = ground.shape
    return [(r, c, -1.0 + (c + 0.5) * CELL, 2.0 + (r + 0.5) * CELL) for r in range(rows) for c in range(columns)]


def test_an_array_without_a_place_has_a_value_for_every_cell() -> None:
    ground = raster()
    values = np.random.default_rng(1).uniform(0.0, 1.0, ground.shape)
    np.testing.assert_allclose(worth(ValueMap(values), ground), values, rtol=1e-12)


@pytest.mark.parametrize("cell", [None, 0.5, 0.7, 2.0])
@pytest.mark.parametrize("place", [{"origin": (0.13, 2.9)}, {"position": (6.6, 3.3)}, {"position": (-9.0, 0.0)}])
def test_an_array_over_a_rectangle_counts_where_the_middle_of_a_cell_is_in_it(cell: Any, place: Any) -> None:
    ground = raster()
    values = np.random.default_rng(2).uniform(0.0, 1.0, (3, 5))
    size = CELL if cell is None else cell
    x0, y0 = place["origin"] if "origin" in place else np.array(place["position"]) - np.array([2.5, 1.5]) * size
    expected = np.ones(ground.shape)
    for r, c, x, y in centres(ground):
        i, j = math.floor((y - y0) / size), math.floor((x - x0) / size)
        if 0 <= i < 3 and 0 <= j < 5:
            expected[r, c] = values[i, j]
    np.testing.assert_allclose(worth(ValueMap(values, cell=cell, **place), ground), expected, rtol=1e-12)


def test_a_disk_is_worth_what_equation_4_says() -> None:
    ground = raster()
    value_map = ValueMap(Disc(inner=0.8, outer=2.6, intensity=2.0), position=(1.1, 4.4))
    expected = np.ones(ground.shape)
    for r, c, x, y in centres(ground):
        away = math.hypot(x - 1.1, y - 4.4)
        expected[r, c] = 0.0 if away <= 0.8 else min((away - 0.8) / (2.6 - 0.8), 1.0) ** 2.0
    np.testing.assert_allclose(worth(value_map, ground), expected, rtol=1e-12)


def test_a_disk_is_kept_as_no_more_than_the_cells_it_reaches() -> None:
    value_map = ValueMap(Disc(outer=1.0), position=(2.0, 4.0))
    found = value_map.filter(raster(), (), group=-1, name="mine")
    assert found is not None
    assert max(found.log_value.shape) <= 4


@pytest.mark.parametrize("values", [Disc(inner=0.3, outer=1.4), [[0.5, 0.0], [1.0, 0.2]]])
def test_a_moving_value_map_is_where_its_motion_is(values: Any) -> None:
    ground = raster()
    orbit = Orbit(center=(2.0, 5.0), radius=1.5, period=7.0)
    line = Waypoints(points=((-1.0, 2.0), (5.0, 7.0)), speed=0.8)
    for motion in (orbit, line, lambda time: (1.0 + time, 4.0)):
        for time in (0.0, 1.3, 4.7):
            where = motion.at(time) if isinstance(motion, Orbit | Waypoints) else motion(time)
            moving, still = ValueMap(values, motion=motion), ValueMap(values, position=where)
            np.testing.assert_array_equal(worth(moving, ground, time), worth(still, ground))


def test_a_function_is_asked_at_the_middle_of_every_cell() -> None:
    ground = raster()
    expected = np.ones(ground.shape)
    for r, c, x, y in centres(ground):
        expected[r, c] = 1.0 / (1.0 + x * x + y * y)
    value_map = ValueMap(lambda points: 1.0 / (1.0 + (points**2).sum(axis=1)))
    np.testing.assert_allclose(worth(value_map, ground), expected, rtol=1e-12)


def test_a_function_of_time_is_asked_again_every_so_many_seconds() -> None:
    value_map = ValueMap(lambda points, time: np.full(len(points), 1.0 / (1.0 + time)), every=0.5)
    ground = raster()
    assert [worth(value_map, ground, time)[3, 3] for time in (0.0, 0.4, 0.5, 1.4)] == pytest.approx(
        [1, 1, 1 / 1.5, 0.5]
    )
    assert value_map.moment(0.3) == value_map.moment(0.1)


def test_openness_rises_with_the_distance_to_walls() -> None:
    ground = raster()
    found = worth(ValueMap(Openness(reach=1.5, least=0.2)), ground)
    rows, columns = ground.shape
    for r, c, _, _ in centres(ground):
        if not ground.free[r, c]:
            assert found[r, c] == 1.0
            continue
        blocked = [(i, j) for i in range(-1, rows + 1) for j in range(-1, columns + 1)
                   if not (0 <= i < rows and 0 <= j < columns and ground.free[i, j])]  # fmt: skip
        away = min(math.hypot(i - r, j - c) for i, j in blocked) * CELL - 0.5 * CELL
        assert found[r, c] == pytest.approx(0.2 + 0.8 * min(away / 1.5, 1.0))


def test_a_value_map_that_says_nothing_is_no_filter() -> None:
    assert ValueMap(np.ones((12, 16))).filter(raster(), (), group=-1, name="mine") is None
    assert ValueMap(Disc(outer=1.0), position=(90.0, 90.0)).filter(raster(), (), group=-1, name="mine") is None


def test_what_a_file_can_hold_comes_back_the_same() -> None:
    for value_map in (
        ValueMap([[0.5, 0.1]], origin=(1.0, 4.0), cell=0.3, group="a"),
        ValueMap(Disc(outer=2.0), motion=Orbit(center=(1, 4), radius=1, period=3), spares_inside=True),
        ValueMap(Openness()),
    ):
        assert ValueMap(**value_map.stored()).parameters == value_map.parameters
        assert not value_map.holds_function
    assert ValueMap(Disc(outer=2.0), motion=lambda time: (time, 0.0)).holds_function


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"values": [[0.5, 1.5]]}, "row 0, column 1 is 1.5"),
        ({"values": [[0.5, math.nan]]}, "row 0, column 1 is nan"),
        ({"values": [0.5, 0.2]}, r"an array \(rows, columns\), a function"),
        ({"values": "all"}, r"an array \(rows, columns\), a function"),
        ({"values": {"kind": "dusc"}}, '"disc" or "openness"'),
        ({"values": Openness(), "position": (1, 1)}, "openness has no position"),
        ({"values": Openness(), "every": 1.0}, "openness has no every"),
        ({"values": Disc(outer=1.0)}, "needs a position or a motion"),
        ({"values": Disc(outer=1.0), "position": (1, 1), "cell": 0.5}, "a disk has no cell"),
        ({"values": [[1.0]], "origin": (0, 0), "position": (1, 1)}, "one place"),
        ({"values": [[1.0]], "cell": 0.5}, "needs an origin, a position or a motion"),
        ({"values": [[1.0]], "origin": (0, 0), "cell": 0.0}, "cell must be a positive number"),
        ({"values": lambda points: points, "origin": (0, 0)}, "a function has no origin"),
        ({"values": lambda points, time: points}, "give `every`"),
        ({"values": lambda points: points, "every": 1.0}, "points and time"),
        ({"values": lambda points, time: points, "every": -1.0}, "every must be a positive number"),
        ({"values": [[1.0]], "motion": 3.0}, r"Waypoints\(…\) or Orbit\(…\) or a function"),
    ],
)
def test_nonsense_is_refused(told: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ValueMap(told.pop("values"), **told)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda points: np.ones(3), "must return as many values"),
        (lambda points: points[:, 0], r"value map 'mine': the function returns -0.75 at \(-0.75"),
        (lambda points: np.full(len(points), np.nan), "the function returns nan"),
        (np.ones((3, 4)), r"has 3 × 4 values, but the map has 12 × 16 cells"),
    ],
)
def test_what_does_not_fit_the_map_is_said_when_it_is_laid(values: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ValueMap(values).filter(raster(), (), group=-1, name="mine")


def test_profiles_are_checked() -> None:
    with pytest.raises(ParameterError, match="outer"):
        Disc(inner=2.0, outer=1.0)
    with pytest.raises(ParameterError, match="least"):
        Openness(least=0.0)
