"""Personality: filters that do not depend on the time step, and distances set by courage."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropel.agents.personality import (
    PERSONALITY,
    SLOWEST_SPEED,
    SLOWEST_TURN,
    filter_gain,
    perceived_distance,
    safety_distance,
)

traits = st.floats(0.0, 1.0)


def after_one_second(sluggishness: float, slowest: float, dt: float) -> float:
    """What a filter that starts at 0 has reached when 1 was wanted for a second."""
    value = 0.0
    k = filter_gain(sluggishness, slowest, dt)
    for _ in range(round(1.0 / dt)):
        value = (1.0 - k) * value + k
    return value


@given(sluggishness=traits, slowest=st.sampled_from([SLOWEST_TURN, SLOWEST_SPEED]))
def test_the_response_after_a_second_is_the_same_for_every_time_step(sluggishness: float, slowest: float) -> None:
    expected = 1.0 if sluggishness == 0.0 else 1.0 - math.exp(-1.0 / (sluggishness * slowest))
    for dt in (0.01, 0.1, 0.25):
        assert after_one_second(sluggishness, slowest, dt) == pytest.approx(expected, rel=1e-9)


@given(sluggishness=st.floats(-1.0, 2.0), dt=st.floats(1e-6, 10.0))
def test_nobody_is_so_sluggish_that_nothing_gets_through(sluggishness: float, dt: float) -> None:
    assert 0.0 < filter_gain(sluggishness, SLOWEST_TURN, dt) <= 1.0


@given(one=traits, other=traits)
def test_the_more_sluggish_filter_lets_less_through(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert filter_gain(low, 2.0, 0.1) >= filter_gain(high, 2.0, 0.1)


@pytest.mark.parametrize("d0_base", [0.3, 1.0, 3.0])
def test_felt_distance_is_the_base_at_half_courage_its_square_law_at_none_and_nothing_at_full(d0_base: float) -> None:
    assert perceived_distance(d0_base, 0.5) == pytest.approx(d0_base)
    assert perceived_distance(d0_base, 0.0) == pytest.approx((d0_base + 1.0) ** 2 - 1.0)
    assert 0.0 < perceived_distance(d0_base, 1.0) <= 0.01


@pytest.mark.parametrize(
    ("courage", "d0vel"), [(0.0, 2.0), (0.25, 2.0), (0.499, 2.0), (0.5, 2.0), (0.75, 1.0), (1.0, 0.0)]
)
def test_safety_distance_is_kept_up_to_half_courage_and_falls_to_nothing(courage: float, d0vel: float) -> None:
    assert safety_distance(2.0, courage, 1.3, 0.5) == pytest.approx(d0vel - 1.3 * 0.5)


@given(one=traits, other=traits, d0_base=st.floats(0.05, 5.0))
def test_the_braver_goes_nearer(one: float, other: float, d0_base: float) -> None:
    low, high = sorted((one, other))
    assert perceived_distance(d0_base, low) >= perceived_distance(d0_base, high)
    assert safety_distance(d0_base, low, 1.3, 1.0) >= safety_distance(d0_base, high, 1.3, 1.0)


def test_by_default_people_turn_and_change_speed_at_once_and_have_half_courage() -> None:
    assert {column.name: column.default for column in PERSONALITY} == {"agility": 1.0, "mass": 0.0, "courage": 0.5}
