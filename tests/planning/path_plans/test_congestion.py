"""Congestions come above one threshold, go below another, and say so in the terrain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel.errors import CheckpointError, ParameterError
from tropel.planning.path_plans.bottlenecks import Bottleneck
from tropel.planning.path_plans.congestion import Congestion, CongestionWatch, congestion_filter, filter_name
from tropel.world.ground import Ground
from tropel.world.raster import Raster

CELL = 0.4
SHAPE = (60, 80)


def terrain() -> Ground:
    free = np.ones(SHAPE, dtype=np.bool_)
    return Ground(
        raster=Raster(origin=np.array([-3.0, 5.0]), cell=CELL, free=free),
        moves=np.full(SHAPE, 255, dtype=np.uint8),
        log_gamma=math.log(0.6),
    )


def bottleneck(row: int, column: int, width: float = 1.2) -> Bottleneck:
    position = (-3.0 + (column + 0.5) * CELL, 5.0 + (row + 0.5) * CELL)
    return Bottleneck(cell=(row, column), position=position, width=width)


def crowd(*places: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Occupied cells: so many people (row, column, count) in rows of five from a cell on."""
    occupied = np.zeros(SHAPE, dtype=np.uint8)
    for row, column, count in places:
        for k in range(count):
            occupied[row + k // 5, column + k % 5] = 1
    return occupied


PLAIN = Congestion(high=20, low=8, scaled=False, area=4.0, every=1, replan=False)


def test_a_congestion_begins_above_the_high_threshold_and_ends_below_the_low_one() -> None:
    ground = terrain()
    door = bottleneck(30, 40)
    watch = CongestionWatch(ground, [door], PLAIN, keep_history=True)
    sizes = [0, 10, 20, 21, 15, 8, 7, 20, 21]
    for step, size in enumerate(sizes):
        watch.look(step, crowd((28, 38, size)))
        assert (filter_name(door) in ground.filters) == bool(watch.congested[0])
    told = watch.looks(door)
    assert told.counts.tolist() == sizes
    assert told.steps.tolist() == list(range(9))
    assert told.congested.tolist() == [False, False, False, True, True, True, False, False, True]


def test_everybody_in_the_square_counts_and_nobody_outside() -> None:
    generator = np.random.default_rng(3)
    occupied = (generator.random(SHAPE) < 0.3).astype(np.uint8)
    for row, column, area in [(30, 40, 4.0), (0, 0, 4.0), (59, 79, 2.0), (3, 70, 3.6), (5, 5, 0.1)]:
        side = max(round(area / CELL), 1)
        first, left = row - side // 2, column - side // 2
        expected = sum(
            int(occupied[r, c])
            for r in range(first, first + side)
            for c in range(left, left + side)
            if 0 <= r < SHAPE[0] and 0 <= c < SHAPE[1]
        )
        watch = CongestionWatch(terrain(), [bottleneck(row, column)], Congestion(area=area, every=1))
        watch.look(0, occupied)
        assert watch.counts.tolist() == [expected]


def test_the_dead_do_not_count() -> None:
    occupied, dead = crowd((28, 38, 25)), crowd((28, 38, 10))
    watch = CongestionWatch(terrain(), [bottleneck(30, 40)], PLAIN)
    watch.look(0, occupied, dead)
    assert watch.counts.tolist() == [15]
    assert not watch.congested.any()


def test_looks_are_staggered_and_each_bottleneck_has_its_turn() -> None:
    doors = [bottleneck(10, 5 * k) for k in range(7)]
    watch = CongestionWatch(terrain(), doors, Congestion(every=3), keep_history=True)
    for step in range(9):
        watch.look(step, crowd())
    seen = [watch.looks(door).steps.tolist() for door in doors]
    assert all(np.diff(steps).tolist() == [3, 3] for steps in seen)
    a_step = np.bincount(np.concatenate(seen))
    assert a_step.max() - a_step.min() <= 1


def test_the_filter_is_equation_4_around_the_bottleneck() -> None:
    ground = terrain()
    door = bottleneck(30, 40)
    parameters = Congestion(area=4.0, reach=3.0, intensity=2.0)
    placed = congestion_filter(door, parameters, ground.raster)
    assert placed.spares_inside
    assert placed.group == -1
    inner, outer = 2.0, 6.0
    for row in range(SHAPE[0]):
        for column in range(SHAPE[1]):
            away = CELL * math.hypot(row - 30, column - 40)
            inside = (0 <= row - placed.row < placed.log_value.shape[0]) and (
                0 <= column - placed.column < placed.log_value.shape[1]
            )
            if away > outer:
                expected = 1.0
            elif away <= inner:
                expected = 0.0
            else:
                expected = ((away - inner) / (outer - inner)) ** 2
            value = math.exp(placed.log_value[row - placed.row, column - placed.column]) if inside else 1.0
            assert value == pytest.approx(expected, abs=1e-9)


def test_the_filter_covers_no_more_than_it_must_and_stays_on_the_map() -> None:
    ground = terrain()
    middle = congestion_filter(bottleneck(30, 40), Congestion(area=4.0, reach=2.0), ground.raster)
    assert max(middle.log_value.shape) <= 2 * 4.0 / CELL + 2
    corner = congestion_filter(bottleneck(0, 79), Congestion(area=4.0, reach=2.0), ground.raster)
    assert corner.row == 0
    assert corner.column + corner.log_value.shape[1] == 80


def overlapping_doors() -> tuple[Bottleneck, Bottleneck, NDArray[np.uint8]]:
    """Figure 10: a narrow door A with a queue, and a wide one B so near that its square holds a part of the queue."""
    narrow, wide = bottleneck(20, 40, width=1.2), bottleneck(27, 40, width=4.0)
    return narrow, wide, crowd((18, 36, 45))


def test_the_false_alarm_at_the_wide_door_is_there_with_plain_counts_and_gone_with_scaled_ones() -> None:
    narrow, wide, occupied = overlapping_doors()
    plain = CongestionWatch(terrain(), [narrow, wide], PLAIN)
    scaled = CongestionWatch(terrain(), [narrow, wide], Congestion(high=16.0, low=8.0, area=4.0, every=1))
    plain.look(0, occupied)
    scaled.look(0, occupied)
    assert plain.counts.tolist() == scaled.counts.tolist()
    assert plain.congested.tolist() == [True, True]
    assert scaled.congested.tolist() == [True, False]


def test_thresholds_grow_with_the_width_up_to_the_square() -> None:
    parameters = Congestion(high=10, low=5, area=4.0)
    assert parameters.thresholds(1.2) == pytest.approx((12.0, 6.0))
    assert parameters.thresholds(4.0) == pytest.approx((40.0, 20.0))
    assert parameters.thresholds(9.0) == parameters.thresholds(math.inf) == pytest.approx((40.0, 20.0))
    assert Congestion(high=10, low=5, scaled=False).thresholds(1.2) == (10.0, 5.0)


def test_a_new_plan_keeps_congestions_of_the_bottlenecks_that_stay_and_drops_the_others() -> None:
    ground = terrain()
    doors = [bottleneck(10, 20), bottleneck(30, 40), bottleneck(50, 60)]
    watch = CongestionWatch(ground, doors, PLAIN)
    watch.look(0, crowd((9, 18, 25), (29, 38, 25)))
    assert watch.congested.tolist() == [True, True, False]
    new = bottleneck(20, 70)
    watch.replan(ground, [new, doors[1], doors[2]])
    assert watch.bottlenecks == (new, doors[1], doors[2])
    assert watch.congested.tolist() == [False, True, False]
    assert watch.counts.tolist() == [0, 25, 0]
    assert list(ground.filters) == [filter_name(doors[1])]
    fresh = terrain()
    watch.replan(fresh, [doors[1]])
    assert list(fresh.filters) == [filter_name(doors[1])]
    assert not ground.filters


def test_filters_of_others_are_left_alone() -> None:
    ground = terrain()
    door = bottleneck(30, 40)
    ground.set_filter("fire", congestion_filter(door, PLAIN, ground.raster))
    watch = CongestionWatch(ground, [door], PLAIN)
    watch.look(0, crowd((28, 38, 25)))
    watch.look(1, crowd())
    watch.replan(ground, [])
    assert list(ground.filters) == ["fire"]


def random_crowds(steps: int) -> list[NDArray[np.uint8]]:
    generator = np.random.default_rng(5)
    return [(generator.random(SHAPE) < share).astype(np.uint8) for share in generator.uniform(0.05, 0.3, steps)]


def test_a_resumed_watch_goes_on_with_the_same_bits() -> None:
    doors = [bottleneck(10, 20), bottleneck(30, 40, width=math.inf), bottleneck(50, 60, width=2.0)]
    doors.append(Bottleneck(cell=(5, 5), position=(-0.8, 7.2), width=0.8, passage=((-1.0, 7.0), (-0.2, 7.0))))
    parameters = Congestion(high=6, low=4, every=2)
    days = random_crowds(40)
    grounds = [terrain(), terrain()]
    whole = CongestionWatch(grounds[0], doors, parameters, keep_history=True)
    flags = []
    for step, occupied in enumerate(days):
        if step == 20:
            stored = whole.state()
        whole.look(step, occupied)
        flags.append(whole.congested.tolist())
    assert 0 < np.mean(flags) < 1
    resumed = CongestionWatch(grounds[1], [], parameters, keep_history=True)
    resumed.restore({name: np.array(value) for name, value in stored.items()})
    assert resumed.bottlenecks == whole.bottlenecks
    for step in range(20, 40):
        resumed.look(step, days[step])
        assert resumed.congested.tolist() == flags[step]
    for name, value in whole.state().items():
        assert resumed.state()[name].tobytes() == value.tobytes()
    assert sorted(grounds[0].filters) == sorted(grounds[1].filters)
    for name, placed in grounds[0].filters.items():
        assert grounds[1].filters[name].log_value.tobytes() == placed.log_value.tobytes()


def test_a_checkpoint_of_a_larger_map_is_refused() -> None:
    watch = CongestionWatch(terrain(), [bottleneck(99, 5)])
    stored = watch.state()
    with pytest.raises(CheckpointError, match="outside the 60 × 80 cells"):
        CongestionWatch(terrain(), []).restore(stored)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"high": 5.0, "low": 5.0}, "low must lie below high"),
        ({"low": -1.0}, "low must be a number that is not negative"),
        ({"high": math.nan}, "high must be a positive number, not nan"),
        ({"area": 0.0}, "area must be a positive number, not 0.0"),
        ({"every": 0}, "every must be a whole number of at least 1, not 0"),
        ({"every": 2.5}, "every must be a whole number"),
        ({"intensity": -2.0}, "intensity must be a positive number"),
        ({"reach": 1.0}, "reach must be a number above 1, not 1.0"),
        ({"hihg": 3.0}, "no parameter 'hihg'; did you mean 'high'?"),
    ],
)
def test_bad_parameters_are_refused(given: dict, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Congestion(**given)
    assert message in str(caught.value)


def test_cells_of_another_map_are_refused_and_a_forgetful_watch_says_so() -> None:
    watch = CongestionWatch(terrain(), [bottleneck(30, 40)])
    with pytest.raises(ParameterError, match=r"occupied must be cells \(60, 80\), not \(3, 3\)"):
        watch.look(0, np.zeros((3, 3), dtype=np.uint8))
    with pytest.raises(ParameterError, match="keep_history=True"):
        watch.looks(bottleneck(30, 40))
