"""Motions against closed forms, and what a motion may not return."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel import Orbit, Waypoints
from tropel.errors import GeometryError, ParameterError
from tropel.world.motion import position_at

SQUARE = ((0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0))


def on_square(way: float) -> tuple[float, float]:
    """Where a walk of a length along the closed square of side 2 ends."""
    side, rest = divmod(way % 8.0, 2.0)
    return [(rest, 0.0), (2.0, rest), (2.0 - rest, 2.0), (0.0, 2.0 - rest)][int(side)]


@given(st.floats(0, 1000))
@settings(max_examples=100)
def test_once_walks_to_the_end_and_stays_there(time: float) -> None:
    motion = Waypoints(points=SQUARE, speed=0.5, repeat="once")
    expected = on_square(min(0.5 * time, 6.0)) if 0.5 * time < 6.0 else (0.0, 2.0)
    assert motion.at(time) == pytest.approx(expected, abs=1e-9)


@given(st.floats(0, 1000))
@settings(max_examples=100)
def test_a_cycle_goes_round_and_round(time: float) -> None:
    motion = Waypoints(points=SQUARE, speed=0.5, repeat="cycle")
    x, y = motion.at(time)
    ex, ey = on_square(0.5 * time)
    assert math.hypot(x - ex, y - ey) < 1e-9


@given(st.floats(0, 1000))
@settings(max_examples=100)
def test_back_and_forth_is_a_triangle_wave_along_the_way(time: float) -> None:
    motion = Waypoints(points=SQUARE, speed=0.5)
    way = 6.0 - abs((0.5 * time) % 12.0 - 6.0)
    x, y = motion.at(time)
    ex, ey = on_square(way) if way < 6.0 else (0.0, 2.0)
    assert math.hypot(x - ex, y - ey) < 1e-9


def test_the_speed_is_constant_also_through_corners_and_doubled_points() -> None:
    motion = Waypoints(points=((0, 0), (0, 0), (3, 0), (3, 0), (3, 4), (3, 4)), speed=2.0, repeat="back_and_forth")
    times = np.linspace(0, 20, 4001)
    way = np.array([motion.at(t) for t in times])
    steps = np.linalg.norm(np.diff(way, axis=0), axis=1)
    assert steps.max() <= 2.0 * (times[1] - times[0]) * (1 + 1e-9)
    assert np.median(steps) == pytest.approx(2.0 * (times[1] - times[0]))


def test_before_its_time_a_walk_waits_at_its_first_point() -> None:
    assert Waypoints(points=SQUARE, speed=1.0).at(-3.0) == (0.0, 0.0)


def test_waypoints_may_be_in_space() -> None:
    motion = Waypoints(points=((0, 0, 0), (0, 0, 5)), speed=1.0, repeat="once")
    assert motion.at(2.0) == (0.0, 0.0, 2.0)
    assert motion.at(9.0) == (0.0, 0.0, 5.0)


@given(st.floats(-50, 1000), st.floats(-7, 7), st.floats(0.5, 20), st.booleans())
@settings(max_examples=100)
def test_an_orbit_is_a_circle_of_constant_speed(time: float, phase: float, period: float, clockwise: bool) -> None:
    signed = -period if clockwise else period
    x, y = Orbit(center=(1.0, 2.0), radius=3.0, period=signed, phase=phase).at(time)
    turn = complex(math.cos(phase), math.sin(phase)) * np.exp(2j * math.pi * time / signed)
    assert math.hypot(x - 1.0 - 3.0 * turn.real, y - 2.0 - 3.0 * turn.imag) < 1e-9


def test_an_orbit_in_space_stays_at_its_height() -> None:
    assert Orbit(center=(0, 0, 4), radius=1, period=4).at(1.0) == pytest.approx((0.0, 1.0, 4.0), abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Waypoints, {"points": [(0, 0)], "speed": 1}),
        (Waypoints, {"points": [(0, 0), (0, 0)], "speed": 1}),
        (Waypoints, {"points": [(0, 0), (1, 0, 0)], "speed": 1}),
        (Waypoints, {"points": [(0, 0), (1, math.nan)], "speed": 1}),
        (Waypoints, {"points": [(0,), (1,)], "speed": 1}),
        (Waypoints, {"points": SQUARE, "speed": 0}),
        (Waypoints, {"points": SQUARE, "speed": -1}),
        (Waypoints, {"points": SQUARE, "speed": math.nan}),
        (Waypoints, {"points": SQUARE, "speed": math.inf}),
        (Waypoints, {"points": SQUARE, "speed": 1, "repeat": "forever"}),
        (Waypoints, {"points": SQUARE, "sped": 1}),
        (Orbit, {"center": (0, 0), "radius": 0, "period": 1}),
        (Orbit, {"center": (0, 0), "radius": math.inf, "period": 1}),
        (Orbit, {"center": (0, 0), "radius": 1, "period": 0}),
        (Orbit, {"center": (0, 0), "radius": 1, "period": math.inf}),
        (Orbit, {"center": (0, math.nan), "radius": 1, "period": 1}),
    ],
)
def test_a_motion_that_makes_no_sense_is_refused(kind: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=rf"^{kind.__name__}: [^\n]+$"):
        kind(**fields)


def test_a_function_of_time_is_a_motion() -> None:
    where = position_at(lambda t: (t, 2 * t), 1.5, what="target 'x'", dim=2)
    np.testing.assert_array_equal(where, [1.5, 3.0])


@pytest.mark.parametrize(
    "returned",
    [None, (1.0,), (1.0, 2.0, 3.0), (1.0, math.nan), (math.inf, 0.0), "here", ("a", "b"), 5.0, {"x": 1}, (None, None)],
)
def test_a_function_that_returns_no_point_is_refused_with_its_name_and_the_time(returned: Any) -> None:
    with pytest.raises(GeometryError, match=r"^obstacle 'cart': .*t = 2\.5 s.* 2 finite coordinates"):
        position_at(lambda t: returned, 2.5, what="obstacle 'cart'", dim=2)


def test_a_motion_of_the_wrong_dimension_is_refused() -> None:
    with pytest.raises(GeometryError, match="3 finite coordinates"):
        position_at(Orbit(center=(0, 0), radius=1, period=1), 0.0, what="obstacle 'o'", dim=3)
