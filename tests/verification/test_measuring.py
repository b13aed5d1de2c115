"""The numbers that cases take from runs, checked with runs made by hand, closed forms and published points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely

from tropel.verification import published
from tropel.verification.candidate import Candidate
from tropel.verification.cases import corner, demographics, diagrams, doors, start_times
from tropel.verification.track import (
    Track,
    flow,
    follow,
    mean_density,
    moves_through_walls,
    passing_times,
    starting_times,
)


def walked(place: Any, *, dt: float = 0.5, left: Any = None, speed: Any = 1.0, start: Any = 0.0) -> Track:
    """A run made by hand: places by frame and person."""
    place = np.array(place, dtype=np.float64)
    people = place.shape[1]
    return Track(
        times=dt * np.arange(len(place)),
        place=place,
        left=np.full(people, math.inf) if left is None else np.array(left),
        through=np.full(people, ""),
        group=np.full(people, "people"),
        desired_speed=np.full(people, speed),
        start=np.full(people, start),
        end=dt * (len(place) - 1),
    )


def test_a_line_is_passed_between_frames() -> None:
    track = walked([[(0, 0), (3, 0)], [(1, 0), (2, 0)], [(3, 0), (1, 0)]])
    np.testing.assert_allclose(passing_times(track, 2.0), [0.75, 0.0])
    np.testing.assert_allclose(passing_times(track, 3.5), [math.inf, math.inf])


def test_who_leaves_between_two_frames_has_passed_the_line_before_the_exit() -> None:
    track = walked([[(0, 0)], [(math.nan, math.nan)]], left=[0.3])
    np.testing.assert_allclose(passing_times(track, 2.0), [0.3])


def test_the_flow_is_that_of_the_middle_part_of_the_crowd() -> None:
    # One a second, but the first come all at once.
    times = np.concatenate([np.full(20, 3.0), 3.0 + np.arange(1.0, 81.0)])
    assert flow(times, 83.0) == pytest.approx(1.0)
    stuck = np.where(np.arange(100) < 50, times, math.inf)
    assert flow(stuck, 83.0) == pytest.approx(30 / 80)
    assert flow(np.where(np.arange(100) < 5, times, math.inf), 83.0) == 0.0


def test_density_counts_people_in_a_box_over_the_given_time() -> None:
    track = walked([[(1, 1), (9, 9)], [(1, 1), (1.5, 1)], [(9, 9), (math.nan, math.nan)]])
    assert mean_density(track, (0, 0, 2, 2), begin=0.0, end=0.5) == pytest.approx((0.25 + 0.5) / 2)
    assert mean_density(track, (0, 0, 2, 2), begin=1.0, end=1.0) == 0.0
    assert math.isnan(mean_density(track, (0, 0, 2, 2), begin=7.0, end=8.0))


def test_a_move_is_looked_at_all_along_not_only_at_its_ends() -> None:
    corridor = shapely.union_all([shapely.box(0, 0, 12, 2), shapely.box(10, 0, 12, 26)])
    inside = [(5.0, 1.0), (9.5, 1.9), (11.0, 1.0)]
    assert moves_through_walls(walked([inside, [(9.0, 1.0), (11.0, 1.9), (11.0, 9.0)]]), corridor) == 0
    assert moves_through_walls(walked([inside, [(11.0, 5.0), (10.5, 2.9), (11.0, 9.0)]]), corridor) == 2
    gone = [(math.nan, math.nan)] * 3
    assert moves_through_walls(walked([inside, gone]), corridor) == 0


def test_people_have_started_when_they_were_about_to_move() -> None:
    # Nobody moves for 2 s; then the first walks at 1 m/s and the second never does.
    frames = [[(0, 0), (5, 5)]] * 5 + [[(0.5 * k, 0), (5, 5)] for k in range(1, 4)]
    np.testing.assert_allclose(starting_times(walked(frames)), [2.2, math.inf])


def test_followed_people_are_where_the_simulation_has_them() -> None:
    sim = Candidate("seek").build("rimea_6", seed=1)
    first = sim.agents.position[np.argsort(sim.agents.id)].copy()
    track = follow(sim, limit=2.0, every=0.5)
    np.testing.assert_array_equal(track.place[0], first)
    np.testing.assert_allclose(track.times, [0.0, 0.5, 1.0, 1.5, 2.0])
    np.testing.assert_array_equal(track.place[-1][sim.agents.id], sim.agents.position)
    assert set(track.group) == {"people"}


def test_a_run_ends_when_all_have_left_or_enough_of_them() -> None:
    track = follow(Candidate("seek").build("rimea_6", seed=1), limit=90.0)
    assert track.gone == track.people == 20
    assert track.evacuation_time == track.end
    assert set(track.through) == {"finish"}
    half = follow(Candidate("seek").build("rimea_6", seed=1), limit=90.0, until_gone=10)
    assert half.end == np.sort(track.left)[9]
    assert half.evacuation_time == math.inf


def test_a_crowd_that_does_not_move_is_given_up() -> None:
    track = follow(Candidate("broken_models:Stander").build("rimea_6", seed=1), limit=90.0, patience=3.0)
    assert track.end == pytest.approx(3.0)


# Published relations ----------------------------------------------------------------------------------------------


def test_weidmanns_curve_has_its_known_points() -> None:
    assert published.weidmann(0.01) == pytest.approx(1.34)
    assert published.weidmann(5.4) == pytest.approx(0.0, abs=1e-12)
    assert published.weidmann(8.0) == 0.0
    density = np.linspace(0.1, 5.4, 2000)
    specific = density * published.weidmann(density)
    # Weidmann gives a capacity of about 1.22 per metre and second at 1.75 per square metre.
    assert specific.max() == pytest.approx(1.22, abs=0.01)
    assert density[specific.argmax()] == pytest.approx(1.75, abs=0.02)


def test_the_sfpe_curve_has_its_known_points() -> None:
    density = np.linspace(0.1, 3.7, 2000)
    specific = density * published.sfpe(density)
    # The handbook: 1.19 m/s unimpeded, a capacity of 1.3 per metre and second at 1.9 per square metre.
    assert published.sfpe(0.2) == pytest.approx(1.2, abs=0.01)
    assert specific.max() == pytest.approx(1.32, abs=0.01)
    assert density[specific.argmax()] == pytest.approx(1.88, abs=0.02)


def test_the_curve_of_predtechenskii_and_milinskii_falls_from_57_metres_per_minute() -> None:
    assert published.predtechenskii_milinskii(0.0) == pytest.approx(57.0 / 60.0)
    assert (np.diff(published.predtechenskii_milinskii(np.linspace(0.0, 8.0, 100))) < 0.0).all()


def test_people_in_single_file_stand_at_the_distances_of_the_experiments() -> None:
    assert published.single_file_germany(0.36) == 0.0
    assert published.single_file_germany(0.36 + 1.06 * 0.5) == pytest.approx(0.5)
    assert published.single_file_india(0.22 + 0.89 * 0.5) == pytest.approx(0.5)
    assert published.single_file_germany(9.0) == published.single_file_india(9.0) == 1.24
    np.testing.assert_allclose(published.door_flow([1.0, 2.0]), [1.85, 3.77])


# What single cases measure ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("density", diagrams.DENSITIES)
def test_the_corridor_is_filled_as_asked_and_nobody_overlaps(density: float) -> None:
    places = diagrams.filled(density, 1)
    assert len(places) == pytest.approx(density * 240.0, rel=0.08)
    tree = shapely.STRtree(shapely.points(places))
    pairs = tree.query(shapely.points(places), predicate="dwithin", distance=0.4 - 1e-9)
    assert (pairs[0] == pairs[1]).all()
    assert places[:, 1].min() >= 0.2
    assert places[:, 1].max() <= 3.8


def test_free_walkers_are_measured_at_their_speed() -> None:
    density, speed = diagrams.measure_point(Candidate("broken_models:Ghost"), 1.0, 0, seconds=3.0)
    assert speed == pytest.approx(1.34)
    assert density == pytest.approx(1.0, rel=0.1)


def test_people_stand_at_equal_distances_around_the_oval() -> None:
    oval = shapely.LineString(diagrams.around_oval(2000))
    assert oval.length == pytest.approx(17.3, abs=0.02)
    places = shapely.points(diagrams.around_oval(16))
    assert shapely.distance(oval, places).max() < 1e-3
    straight = Candidate("seek").scenario("rimea_16").world().walkable
    assert shapely.covers(straight, places).all()
    assert shapely.distance(straight.boundary, places).min() > 0.35


def test_alone_in_the_oval_people_walk_at_their_speed() -> None:
    assert diagrams.file_speed(Candidate("broken_models:Ghost"), 4, 0) == pytest.approx(1.24, abs=0.02)


def test_the_longest_pause_is_one_in_which_people_queue() -> None:
    left = np.arange(1.0, 51.0)
    assert doors.longest_pause(left, 50.0) == pytest.approx(1.0)
    late = left.copy()
    late[-5:] += 100.0  # the last few may dawdle
    assert doors.longest_pause(late, 150.0) == pytest.approx(1.0)
    held = left.copy()
    held[20:] += 12.0
    assert doors.longest_pause(held, 62.0) == pytest.approx(13.0)
    stuck = left.copy()
    stuck[20:] = math.inf
    assert doors.longest_pause(stuck, 60.0) == pytest.approx(40.0)
    assert doors.longest_pause(np.full(50, math.inf), 60.0) == 60.0


def test_speeds_fit_a_table_if_all_are_within_and_their_mean_is_in_the_middle() -> None:
    even = np.linspace(1.0, 2.0, 12)
    assert demographics.fits(even, 1.0, 2.0)
    assert not demographics.fits(np.append(even, 2.1), 1.0, 2.0)
    assert not demographics.fits(np.append(even, math.inf), 1.0, 2.0)
    assert not demographics.fits(np.linspace(1.0, 1.2, 12), 1.0, 2.0)
    assert demographics.ranges("rimea_7")["30 to 50"] == (1.41, 1.54)


def test_reaction_times_are_compared_with_their_distribution() -> None:
    draws = np.random.default_rng(3)
    assert start_times.probability(draws.uniform(10.0, 100.0, 15), "uniform") > 0.01
    assert start_times.probability(draws.normal(60.0, 15.0, 15), "normal") > 0.01
    assert start_times.probability(np.full(15, 50.0), "uniform") < 0.01
    assert start_times.probability(draws.uniform(10.0, 40.0, 15), "normal") < 0.01


def test_the_straight_corridors_are_as_long_as_the_walls_of_the_corner() -> None:
    corridor = Candidate("seek").scenario("rimea_15").world()
    (finish,) = corridor.exits.values()
    lines = corridor.walkable.boundary.difference(finish.polygon.buffer(1e-6))
    inner = shapely.LineString([(-10, 0), (20, 0), (20, -32)])
    outer = shapely.LineString([(-10, 6), (26, 6), (26, -32)])
    for wall, length in ((inner, 62.0), (outer, 74.0)):
        assert lines.buffer(1e-3).covers(wall)
        assert wall.length == length
        (end,) = Candidate("seek").scenario("rimea_15", corner.straight(length)).world().exits.values()
        assert end.polygon.bounds[0] == -10.0 + length
