"""The wall grid: whatever it says about chords and near walls, a loop over all walls says too."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel._kernels.predicates import segments_touch
from tropel._kernels.walls import WallGrid, cell_at, chord_blocked, free_of_walls, nearest_on_segment
from tropel.world.wall_grid import build_wall_grid, quantised

Floats = NDArray[np.float64]


def blocked_by_any(a: Floats, b: Floats, segments: Floats) -> bool:
    return any(segments_touch(a[0], a[1], b[0], b[1], *segment) for segment in segments)


def grid_over(segments: Floats, low: Floats, high: Floats, reach: float) -> WallGrid:
    return build_wall_grid(segments, np.ones(len(segments), dtype=np.uint8), low, high, reach)


def random_walls(generator: np.random.Generator, count: int, size: float, length: float) -> Floats:
    middle = generator.uniform(0, size, (count, 2))
    half = generator.normal(0, length, (count, 2))
    return np.hstack([middle - half, middle + half])


@given(
    seed=st.integers(0, 10**6),
    reach=st.sampled_from([0.25, 1.0, 2.0, 8.0]),
    size=st.sampled_from([1.0, 10.0, 60.0]),
    offset=st.sampled_from([0.0, -1e3, 5e6]),
    bounds=st.sampled_from(["all", "smaller", "elsewhere"]),
)
@settings(max_examples=60, deadline=None)
def test_a_chord_of_any_length_is_blocked_exactly_when_it_touches_a_wall(
    seed: int, reach: float, size: float, offset: float, bounds: str
) -> None:
    generator = np.random.default_rng(seed)
    segments = random_walls(generator, 12, size, size / 8) + offset
    low, high = segments.reshape(-1, 2).min(axis=0), segments.reshape(-1, 2).max(axis=0)
    if bounds == "smaller":
        low, high = low + 0.3 * (high - low), high - 0.3 * (high - low)
    elif bounds == "elsewhere":
        low, high = low + 3 * size, high + 5 * size
    walls = grid_over(segments, low, high, reach)
    seen = 0
    for _ in range(60):
        a = offset + generator.uniform(-0.5 * size, 1.5 * size, 2)
        b = a + generator.normal(0, 1, 2) * size * 10.0 ** generator.uniform(-4, 5)
        expected = blocked_by_any(a, b, segments)
        assert bool(chord_blocked(a[0], a[1], b[0], b[1], walls)) == expected
        seen += expected
    assert seen > 0


@pytest.mark.parametrize("speed", [1e3, 1e9, 1e15, 1e18, 1e30, 1e100, 1e160, 1e200, 1e300])
def test_no_chord_is_too_long_to_be_stopped(speed: float) -> None:
    room = np.array([[0, 0, 10, 0], [10, 0, 10, 10], [10, 10, 0, 10], [0, 10, 0, 0]], dtype=np.float64)
    walls = grid_over(room, np.array([0.0, 0.0]), np.array([10.0, 10.0]), 1.0)
    for angle in np.linspace(0.0, 2 * math.pi, 17):
        end = (5 + speed * math.cos(angle), 4 + speed * math.sin(angle))
        assert chord_blocked(5.0, 4.0, *end, walls)
        assert chord_blocked(*end, 5.0, 4.0, walls)


@pytest.mark.parametrize("away", [1e6, 1e12, 1e17, 1e20])
def test_a_chord_from_far_outside_through_the_walls_is_blocked(away: float) -> None:
    generator = np.random.default_rng(4)
    room = np.array([[0, 0, 10, 0], [10, 0, 10, 10], [10, 10, 0, 10], [0, 10, 0, 0]], dtype=np.float64)
    walls = grid_over(room, np.array([0.0, 0.0]), np.array([10.0, 10.0]), 1.0)
    for _ in range(50):
        angle = generator.uniform(0, 2 * math.pi)
        a = 5 + away * np.array([math.cos(angle), math.sin(angle)])
        b = 5 - generator.uniform(0.1, 3) * away * np.array([math.cos(angle), math.sin(angle)])
        assert bool(chord_blocked(*a, *b, walls)) == blocked_by_any(a, b, room)


def test_open_doors_do_not_block_and_closing_needs_no_new_grid() -> None:
    segments = np.array([[0.0, -1.0, 0.0, 1.0]])
    blocking = np.zeros(1, dtype=np.uint8)
    walls = build_wall_grid(segments, blocking, np.array([-5.0, -5.0]), np.array([5.0, 5.0]), 1.0)
    assert not chord_blocked(-0.1, 0.0, 0.1, 0.0, walls)
    assert not chord_blocked(-100.0, 0.0, 100.0, 0.0, walls)
    blocking[0] = 1
    assert chord_blocked(-0.1, 0.0, 0.1, 0.0, walls)
    assert chord_blocked(-100.0, 0.0, 100.0, 0.0, walls)


def test_touching_counts_as_blocked_and_grazing_by_one_ulp_does_not() -> None:
    walls = grid_over(np.array([[0.0, -1.0, 0.0, 1.0]]), np.array([-5.0, -5.0]), np.array([5.0, 5.0]), 1.0)
    assert chord_blocked(-0.5, 0.0, 0.0, 0.0, walls)
    assert chord_blocked(-0.5, 1.0, 0.5, 1.0, walls)
    above = math.nextafter(1.0, 2.0)
    assert not chord_blocked(-0.5, above, 0.5, above, walls)
    assert not chord_blocked(-0.5, 0.0, -5e-324, 0.0, walls)
    assert chord_blocked(0.0, 0.5, 0.0, 0.5, walls)


def test_without_walls_nothing_blocks() -> None:
    walls = grid_over(np.empty((0, 4)), np.array([0.0, 0.0]), np.array([5.0, 5.0]), 1.0)
    assert not chord_blocked(-1e9, 0.0, 1e9, 3.0, walls)


@given(seed=st.integers(0, 10**6), reach=st.sampled_from([0.5, 2.0]), bounds=st.sampled_from(["all", "smaller"]))
@settings(max_examples=40, deadline=None)
def test_the_list_of_a_cell_misses_no_wall_within_reach(seed: int, reach: float, bounds: str) -> None:
    generator = np.random.default_rng(seed)
    segments = random_walls(generator, 20, 10.0, 1.0)
    low, high = segments.reshape(-1, 2).min(axis=0), segments.reshape(-1, 2).max(axis=0)
    if bounds == "smaller":
        low, high = low + 3.0, high - 3.0
    walls = grid_over(segments, low, high, reach)
    lines = shapely.linestrings(segments.reshape(-1, 2, 2))
    for point in generator.uniform(-5, 15, (80, 2)):
        cell = cell_at(point[0], point[1], walls.origin, walls.inverse_cell, walls.shape)
        listed = walls.items[walls.start[cell] : walls.start[cell + 1]].tolist()
        near = np.flatnonzero(shapely.distance(lines, shapely.Point(point)) <= reach)
        assert set(near) <= set(listed)
        assert listed == sorted(set(listed))


@given(st.tuples(*[st.floats(-50, 50)] * 6))
@settings(max_examples=200, deadline=None)
def test_the_nearest_point_of_a_segment_is_the_one_shapely_finds(values: tuple[float, ...]) -> None:
    px, py, x0, y0, x1, y1 = (round(v, 6) for v in values)
    qx, qy = nearest_on_segment(px, py, x0, y0, x1, y1)
    line = shapely.Point(x0, y0) if (x0, y0) == (x1, y1) else shapely.LineString([(x0, y0), (x1, y1)])
    point = shapely.Point(px, py)
    assert math.hypot(qx - px, qy - py) == pytest.approx(point.distance(line), abs=1e-9)
    assert shapely.Point(qx, qy).distance(line) < 1e-9


def test_the_reach_grows_in_powers_of_two_and_never_falls_short() -> None:
    for wanted in (1e-9, 0.3, 0.5, 0.500001, 1.0, 1.7, 1000.0):
        given_reach = quantised(wanted)
        assert given_reach >= wanted
        assert math.log2(given_reach).is_integer()
        assert given_reach < 2 * max(wanted, 2.0**-6)


@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.05, 0.2, 0.5]))
@settings(max_examples=60, deadline=None)
def test_a_body_is_free_up_to_where_it_first_touches_a_wall(seed: int, radius: float) -> None:
    generator = np.random.default_rng(seed)
    segments = random_walls(generator, 6, 8.0, 1.0)
    walls = grid_over(segments, np.zeros(2), np.full(2, 8.0), 4.0)
    lines = shapely.multilinestrings(list(segments.reshape(-1, 2, 2)))
    x, y = generator.uniform(0, 8, 2)
    if lines.distance(shapely.Point(x, y)) <= radius:
        return
    angle = generator.uniform(0, 2 * math.pi)
    ex, ey = math.cos(angle), math.sin(angle)
    free = free_of_walls(x, y, ex, ey, radius, 4.0, walls)
    along = np.linspace(0.0, 4.0, 4001)
    away = shapely.distance(lines, shapely.points(x + along * ex, y + along * ey))
    touching = along[away < radius]
    if free < 4.0:
        assert lines.distance(shapely.Point(x + free * ex, y + free * ey)) == pytest.approx(radius, abs=1e-7)
    assert len(touching) == 0 or free <= touching[0]
    assert (away[along < free - 1e-6] > radius - 1e-7).all()


def test_who_touches_a_wall_is_free_along_it_and_away_from_it() -> None:
    segments = np.array([[0.0, 0.0, 8.0, 0.0]])
    walls = grid_over(segments, np.array([0.0, -4.0]), np.array([8.0, 4.0]), 4.0)
    assert free_of_walls(4.0, 0.2, 1.0, 0.0, 0.2, 3.0, walls) == 3.0
    assert free_of_walls(4.0, 0.2, 0.0, 1.0, 0.2, 3.0, walls) == 3.0
    assert free_of_walls(4.0, 0.2, 0.0, -1.0, 0.2, 3.0, walls) == 0.0
    assert free_of_walls(4.0, 0.1, 0.6, 0.8, 0.2, 3.0, walls) == 3.0
