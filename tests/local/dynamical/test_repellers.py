"""Repellers as functions of the angle, and the angular interval of a wall."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel.local.dynamical.repellers import LEAST_ANGLE, in_view, repeller, subtended, wall_interval

Floats = NDArray[np.float64]

angles = st.floats(0.0, math.pi)
half_angles = st.floats(0.02, math.pi / 2)
margins = st.floats(0.2, 1.5)


def values(x: float, dpsi: float, delta: float = 0.8) -> tuple[float, float, float]:
    turn, slope, window = repeller(
        math.cos(x), math.sin(x), dpsi, math.cos(2.0 * dpsi), math.sin(2.0 * dpsi), math.cos(delta), math.sin(delta)
    )
    return turn, slope, window


def as_printed(x: float, dpsi: float, delta: float) -> tuple[float, float]:
    """R and W, written down again."""
    inner = min(2.0 * dpsi, math.pi - delta)
    outer = inner + delta
    steepness = 4.0 / (math.cos(inner) - math.cos(outer))
    return (
        x / dpsi * math.exp(1.0 - abs(x / dpsi)),
        0.5 * (math.tanh(steepness * (math.cos(x) - math.cos(outer))) + 1.0),
    )


@given(x=angles, dpsi=half_angles, delta=margins)
def test_the_repeller_is_r_times_w(x: float, dpsi: float, delta: float) -> None:
    r, w = as_printed(x, dpsi, delta)
    turn, _, window = values(x, dpsi, delta)
    assert turn == pytest.approx(r * w, abs=1e-5)
    assert window == pytest.approx(w, abs=1e-5)


@given(x=st.floats(1e-4, math.pi - 1e-4), dpsi=half_angles, delta=margins)
def test_the_slope_is_that_of_finite_differences(x: float, dpsi: float, delta: float) -> None:
    eps = 1e-6
    (before, _, w0), (after, _, w1) = values(x - eps, dpsi, delta), values(x + eps, dpsi, delta)
    assume((w0 > 0.0) == (w1 > 0.0))  # not across the end of the window, where it is cut at 8e-7
    assert values(x, dpsi, delta)[1] == pytest.approx((after - before) / (2 * eps), rel=1e-4, abs=1e-5)


@given(x=angles, dpsi=half_angles, delta=margins)
def test_one_always_turns_away_and_never_harder_than_the_generic_repeller(x: float, dpsi: float, delta: float) -> None:
    turn, _, window = values(x, dpsi, delta)
    assert 0.0 <= turn <= 1.0
    assert 0.0 <= window <= 1.0


@given(dpsi=half_angles)
def test_heading_straight_at_it_is_an_unstable_balance(dpsi: float) -> None:
    turn, slope, _ = values(0.0, dpsi)
    assert turn == 0.0
    assert slope > 0.0


@given(dpsi=half_angles, delta=margins)
def test_the_window_is_open_within_twice_the_half_angle_and_half_open_a_margin_further(
    dpsi: float, delta: float
) -> None:
    inner = min(2.0 * dpsi, math.pi - delta)
    assert values(inner, dpsi, delta)[2] == pytest.approx(0.5 * (math.tanh(4.0) + 1.0))
    assert values(inner + delta, dpsi, delta)[2] == pytest.approx(0.5)


@pytest.mark.parametrize("dpsi", [0.1, 0.3])
def test_what_is_behind_is_not_felt(dpsi: float) -> None:
    assert values(math.pi, dpsi) == (0.0, 0.0, 0.0)


def test_figure_2b_of_the_paper_has_its_peak_at_eighteen_degrees() -> None:
    x = np.radians(np.linspace(0.0, 180.0, 18001))
    curve = np.array([values(a, math.pi / 10)[0] for a in x]) * math.exp(-3.0 / 6.0)
    assert math.degrees(x[curve.argmax()]) == pytest.approx(18.0, abs=0.1)
    assert curve.max() == pytest.approx(0.607, abs=1e-3)


@given(contact=st.floats(0.0, 2.0), distance=st.floats(1e-9, 20.0))
def test_the_half_angle_is_that_of_the_tangent(contact: float, distance: float) -> None:
    angle, cosine_of_all, sine_of_all, cosine, sine = subtended(contact, 1.0 / distance)
    assert (math.cos(2.0 * angle), math.sin(2.0 * angle)) == pytest.approx((cosine_of_all, sine_of_all), abs=1e-9)
    assert (math.sin(angle), math.cos(angle)) == pytest.approx((sine, cosine), abs=1e-9)
    if distance <= contact:
        assert angle == pytest.approx(math.pi / 2)
    else:
        assert math.sin(angle) == pytest.approx(max(contact / distance, LEAST_ANGLE))


@given(view=st.floats(0.01, 2 * math.pi), x=angles, half=st.floats(0.001, math.pi / 2))
def test_an_object_is_in_view_as_soon_as_a_part_of_it_is(view: float, x: float, half: float) -> None:
    assume(abs(x - half - view / 2) > 1e-6)
    assume(abs(view / 2 + half - math.pi) > 1e-6)
    seen = in_view(math.cos(x), math.sin(half), math.cos(half), math.cos(view / 2), math.sin(view / 2))
    assert seen == (x - half <= view / 2)


# Walls --------------------------------------------------------------------------------------------------------------


def sampled_interval(wall: Floats, radius: float, reach: float) -> tuple[float, float, float]:
    """Lowest and highest angle, from the nearest point, of disks along the wall, and the distance to the nearest."""
    points = wall[:2] + np.linspace(0.0, 1.0, 20001)[:, None] * (wall[2:] - wall[:2])
    away = np.linalg.norm(points, axis=1)
    nearest = points[away.argmin()]
    seen = away <= reach
    points, away = points[seen], away[seen]
    bearing = np.arctan2(
        nearest[0] * points[:, 1] - nearest[1] * points[:, 0], points @ nearest
    )  # within a right angle of the nearest point
    grown = np.arcsin(radius / away)
    zero = math.atan2(nearest[1], nearest[0])
    return zero + float((bearing - grown).min()), zero + float((bearing + grown).max()), float(np.hypot(*nearest))


coordinates = st.floats(-6.0, 6.0)


@given(
    wall=st.tuples(coordinates, coordinates, coordinates, coordinates),
    radius=st.floats(0.05, 0.5),
    reach=st.floats(1.0, 8.0),
)
def test_a_wall_subtends_the_interval_of_all_disks_along_its_part_within_reach(
    wall: tuple[float, float, float, float], radius: float, reach: float
) -> None:
    ends = np.array(wall)
    assume(np.hypot(*(ends[2:] - ends[:2])) > 0.05)
    low, high, away = sampled_interval_or_skip(ends, radius, reach)
    ux, uy, half, free, cos_all, sin_all = wall_interval(0.0, 0.0, *wall, radius, reach)
    assert free == pytest.approx(away - radius, abs=2e-3)
    assert math.hypot(ux, uy) == pytest.approx(1.0)
    assert half == pytest.approx((high - low) / 2, abs=0.02)
    whole = min(2 * half, math.pi)
    assert (cos_all, sin_all) == pytest.approx((math.cos(whole), math.sin(whole)), abs=1e-12)
    off = math.remainder(math.atan2(uy, ux) - (high + low) / 2, 2 * math.pi)
    assert abs(off) < 0.02


def sampled_interval_or_skip(ends: Floats, radius: float, reach: float) -> tuple[float, float, float]:
    points = ends[:2] + np.linspace(0.0, 1.0, 2001)[:, None] * (ends[2:] - ends[:2])
    away = np.linalg.norm(points, axis=1)
    assume(radius * 1.05 < away.min() < 0.98 * reach)
    return sampled_interval(ends, radius, reach)


@pytest.mark.parametrize("side", [1.0, -1.0, 0.0])
def test_the_end_of_a_wall_on_which_one_walks_straight_is_seen_evenly_on_both_sides(side: float) -> None:
    ux, uy, half, free, cos_all, sin_all = wall_interval(0.0, 0.0, 2.0, 0.0, 5.0, side * 1e-12, 0.5, 10.0)
    assert (ux, uy) == pytest.approx((1.0, 0.0), abs=1e-9)
    assert half == pytest.approx(math.asin(0.25))
    assert (cos_all, sin_all) == pytest.approx((math.cos(2 * half), math.sin(2 * half)))
    assert free == pytest.approx(1.5)


def test_a_wall_out_of_reach_is_infinitely_far() -> None:
    assert wall_interval(0.0, 0.0, 4.0, -1.0, 4.0, 1.0, 0.2, 3.0)[3] == math.inf


@given(
    x=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    y=st.sampled_from([0.0, 1e-300, 1e-17, 1e-9, 0.1]),
    radius=st.sampled_from([0.0, 1e-12, 0.2]),
)
def test_on_and_very_near_a_wall_everything_is_finite(x: float, y: float, radius: float) -> None:
    for sign in (1.0, -1.0):
        ux, uy, half, free, cos_all, sin_all = wall_interval(x, sign * y, 0.0, 0.0, 1.0, 0.0, radius, 3.0)
        assert math.hypot(ux, uy) == pytest.approx(1.0)
        assert 0.0 < half <= math.pi
        assert math.hypot(cos_all, sin_all) == pytest.approx(1.0)
        assert 0.0 <= free <= 1.1
