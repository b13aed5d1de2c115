"""Whether a body fits along a segment, against exact shapely geometry in 2D and plain NumPy in 3D."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from cluttered_worlds import SIZE, ball_box, cluttered_room, exact_gap
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel.planning.roadmap.moving import Span, edges_swept, gap_between2, leg_blocked, see, sweepers_of
from tropel.planning.roadmap.space import FreeSpace, MovingDiscs
from tropel.planning.roadmap.sweeps import doors_on, free_radii, sweeps_blocked
from tropel.world import Door, World


def segments(seed: int, count: int, high: tuple[float, ...], longest: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    begin = rng.uniform(0.0, high, (count, len(high)))
    end = np.clip(begin + rng.uniform(-longest, longest, begin.shape), 0.0, high)
    return begin, end


@pytest.mark.parametrize("radius", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("longest", [0.5, 12.0])
def test_a_body_is_blocked_exactly_where_shapely_says_so(radius: float, longest: float) -> None:
    for seed in range(6):
        world = cluttered_room(seed)
        space = FreeSpace.of(world, radius)
        begin, end = segments(seed, 400, SIZE, longest)
        inside = space.inside(begin) & space.inside(end)
        begin, end = begin[inside], end[inside]
        gap = exact_gap(world, begin, end, doors=False)
        blocked = sweeps_blocked(begin, end, radius, space.solid)
        sure = np.abs(gap - radius) > 1e-9
        assert (blocked == (gap < radius))[sure].all()
        assert 0.02 < blocked.mean() < 1.0


def test_shut_doors_block_and_open_ones_do_not() -> None:
    world = World(shapely.box(0, 0, 4, 4), doors={"a": Door([(2, 0), (2, 2)], open=True), "b": Door([(2, 2), (2, 4)])})
    space = FreeSpace.of(world, 0.2)
    begin, end = np.array([[1.0, 1.0], [1.0, 3.0], [1.0, 1.9]]), np.array([[3.0, 1.0], [3.0, 3.0], [3.0, 1.9]])
    assert not sweeps_blocked(begin, end, 0.2, space.solid).any()
    assert sweeps_blocked(begin, end, 0.2, space.with_doors(space.shut_doors())).tolist() == [False, True, True]
    doors, many = doors_on(begin, end, 0.2, space.door_segments, space.door_numbers)
    assert doors.tolist() == [[0, -1], [1, -1], [0, 1]]
    assert not many.any()


@pytest.mark.parametrize("longest", [0.7, 8.0])
def test_balls_and_sides_of_a_box_block_in_3d(longest: float) -> None:
    for seed in range(4):
        world = ball_box(seed)
        space = FreeSpace.of(world, 0.15)
        begin, end = segments(seed, 500, (8.0, 6.0, 4.0), longest)
        share = np.linspace(0.0, 1.0, 2001)[None, :, None]
        line = begin[:, None] + share * (end - begin)[:, None]
        gap = np.minimum(line.min(axis=(1, 2)), (np.array([8.0, 6.0, 4.0]) - line).min(axis=(1, 2)))
        for place, radius in zip(world.obstacles.position, world.obstacles.radius, strict=True):
            gap = np.minimum(gap, np.linalg.norm(line - place, axis=2).min(axis=1) - radius)
        blocked = sweeps_blocked(begin, end, 0.15, space.solid)
        sure = np.abs(gap - 0.15) > 1e-4  # the points of a line are this far from its nearest one
        assert (blocked == (gap < 0.15))[sure].all()
        assert 0.0 < blocked.mean() < 1.0


def test_the_free_radius_at_a_point_is_its_distance_to_what_is_nearest() -> None:
    for seed in range(4):
        world = cluttered_room(seed)
        space = FreeSpace.of(world, 0.4)
        points = segments(seed, 300, SIZE, 1.0)[0]
        points = points[space.inside(points)]
        gap = np.clip(exact_gap(world, points, points, doors=False), 0.0, 0.4)
        assert np.allclose(free_radii(points, 0.4, space.solid), gap, atol=1e-12)


coordinate = st.floats(-5.0, 5.0, allow_nan=False)
point = st.tuples(coordinate, coordinate, coordinate)


@settings(max_examples=200, deadline=None)
@given(point, point, point, point)
def test_the_gap_between_two_segments_in_space(a, b, c, d) -> None:  # type: ignore[no-untyped-def]
    share = np.linspace(0.0, 1.0, 101)
    one = np.array(a) + share[:, None] * (np.array(b) - np.array(a))
    other = np.array(c) + share[:, None] * (np.array(d) - np.array(c))
    sampled = float(((one[:, None] - other[None]) ** 2).sum(axis=2).min()) ** 0.5
    found = gap_between2(*a, *b, *c, *d) ** 0.5
    spacing = max(np.linalg.norm(np.subtract(b, a)), np.linalg.norm(np.subtract(d, c))) / 100
    assert sampled - 2.0 * spacing - 1e-6 <= found <= sampled + 1e-9


def test_what_moves_is_near_all_along_its_way() -> None:
    """It goes 4 m to the east in two seconds; with slack, it is as much wider."""
    place, velocity = np.array([[0.0, 0.0]]), np.array([[2.0, 0.0]])
    moving = see(MovingDiscs(np.array([0]), place, velocity, np.array([0.5])), predict=True, ahead=0.0).tested
    nodes = np.array([[2.0, 1.0], [2.0, 3.0], [2.0, 0.7], [2.0, 3.0], [5.0, 0.0], [6.0, 0.0]])
    ends, edges = np.arange(6).reshape(3, 2), np.arange(3)
    assert edges_swept(edges, ends, nodes, 0.3, Span(0.0, 2.0, 0.0), moving).tolist() == [False, True, False]
    assert edges_swept(edges, ends, nodes, 0.3, Span(0.0, 2.0, 0.15), moving).tolist() == [True, True, True]
    assert edges_swept(edges, ends, nodes, 0.3, Span(1.8, 2.0, 0.0), moving).tolist() == [False, False, False]
    assert sweepers_of(nodes[2], nodes[3], 0.3, Span(0.0, 2.0, 0.0), moving).tolist() == [0]
    still = see(MovingDiscs(np.array([0]), place, velocity, np.array([0.5])), predict=False, ahead=0.1)
    assert edges_swept(edges, ends, nodes, 0.3, Span(0.0, 2.0, 0.15), still.tested).tolist() == [False] * 3
    # It goes 0.2 m to the east within 0.1 s: what is made keeps clear of that, and of nothing behind it.
    for x, tested, avoided in ((0.0, True, True), (0.8, False, True), (-0.8, False, False), (1.0, False, False)):
        at = np.array([x, 0.0])
        for seen, near in ((still.tested, tested), (still.avoided, avoided)):
            assert sweepers_of(at, at, 0.2, Span(0.0, 2.0, 0.15), seen).tolist() == [0] * near
            blocked = leg_blocked(x, 0.5, 0.0, x, 0.0, 0.0, 1.0, 2.0, 0.2, 0.15, seen) < math.inf
            assert blocked == near
