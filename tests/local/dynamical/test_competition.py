"""The competition of behaviours: its closed form against the equation itself, integrated with noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel.local.dynamical.competition import TARGET_ON_OBSTACLES, fixed_point, fixed_point_of_one

Floats = NDArray[np.float64]


def closed_form(a_target: float, a: Floats, g: Floats, was_target: float, was: Floats) -> Floats:
    """Weights of the target and the classes, by the kernel."""
    weights = was.copy()
    target = fixed_point(a_target, a, g, len(a), was_target, weights)
    return np.array([target, *weights])


def flow(a_target: Floats, a: Floats, g: Floats) -> Callable[[Floats], Floats]:
    """The right side of GAME eq. 10 for many systems at once: a row each, the target first."""

    def rate(w: Floats) -> Floats:
        target, classes = w[:, :1], w[:, 1:]
        of_target = a_target[:, None] * target * (1 - target**2) - target * (g * classes**2).sum(1, keepdims=True)
        of_classes = a * classes * (1 - classes**2) - TARGET_ON_OBSTACLES * classes * target**2
        return np.hstack([of_target, of_classes])

    return rate


def integrated(
    rate: Callable[[Floats], Floats], w: Floats, *, steps: int, h: float = 0.25, noise: float = 1e-6
) -> Floats:
    """Runge and Kutta's fourth order, with a little noise that drives the weights off unstable points."""
    random = np.random.default_rng(0)
    for _ in range(steps):
        k1 = rate(w)
        k2 = rate(w + 0.5 * h * k1)
        k3 = rate(w + 0.5 * h * k2)
        k4 = rate(w + h * k3)
        w = np.abs(w + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4) + noise * random.standard_normal(w.shape))
    return w


def random_systems(classes: int, count: int) -> tuple[Floats, Floats, Floats]:
    random = np.random.default_rng(classes)
    a_target = random.uniform(0.02, 0.4, count)
    a = random.uniform(0.0, 1.0, (count, classes)) ** 2
    g = 10 ** random.uniform(-3.0, 0.6, (count, classes))
    return a_target, a, g


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_the_closed_form_is_where_the_equation_ends_up(classes: int) -> None:
    a_target, a, g = random_systems(classes, 250)
    start = np.random.default_rng(9).uniform(0.05, 1.0, (len(a), 1 + classes))
    rate = flow(a_target, a, g)
    halfway = integrated(rate, start, steps=600)
    end = integrated(rate, halfway, steps=2400)
    # Near a bifurcation the equation creeps, and between two stable points small differences decide; leave these out.
    settled = (np.abs(rate(end)).max(axis=1) < 1e-5) & (np.abs(halfway - end)[:, 0] < 0.2)
    nudged = [integrated(rate, start * np.array([s, *[1 / s] * classes]), steps=3000) for s in (0.85, 1.15)]
    clear = settled & np.all([np.abs(n - end).max(axis=1) < 1e-2 for n in nudged], axis=0)
    assert clear.mean() > 0.7
    ours = np.array([closed_form(*system) for system in zip(a_target, a, g, start[:, 0], start[:, 1:], strict=True)])
    np.testing.assert_allclose(ours[clear], end[clear], atol=5e-3)


def test_the_random_systems_have_all_kinds_of_ends() -> None:
    a_target, a, g = random_systems(1, 400)
    both = [closed_form(*s, 0.5, np.array([0.5])) for s in zip(a_target, a, g, strict=True)]
    kinds = {(target > 0.0, others > 0.0) for target, others in both}
    assert kinds == {(True, True), (True, False), (False, True)}


@given(
    a1=st.floats(0.01, 0.4), a2=st.floats(0.06, 1.0), share=st.floats(0.0, 0.99), was=st.tuples(*[st.floats(0, 1)] * 2)
)
def test_one_class_gives_the_table_of_the_paper(a1: float, a2: float, share: float, was: tuple[float, float]) -> None:
    g12, g21 = share * a1, TARGET_ON_OBSTACLES
    target, obstacles = closed_form(a1, np.array([a2]), np.array([g12]), was[0], np.array([was[1]]))
    below = a1 * a2 - g12 * g21
    assert target**2 == pytest.approx(a2 * (a1 - g12) / below)
    assert obstacles**2 == pytest.approx(a1 * (a2 - g21) / below)


@given(a1=st.floats(0.01, 0.4), a2=st.floats(0.06, 1.0), more=st.floats(1.01, 50.0), was=st.floats(0, 1))
def test_a_strong_obstacle_switches_the_target_off(a1: float, a2: float, more: float, was: float) -> None:
    # No bistability: the line G rises nowhere above zero.
    assume(more * a1 * TARGET_ON_OBSTACLES < a1 * a2)
    assert closed_form(a1, np.array([a2]), np.array([more * a1]), was, np.array([1.0])) == pytest.approx([0.0, 1.0])


@given(a1=st.floats(0.01, 0.4), a2=st.floats(0.0, 0.049), g12=st.floats(0.0, 0.9))
def test_far_obstacles_are_ignored(a1: float, a2: float, g12: float) -> None:
    target, obstacles = closed_form(a1, np.array([a2]), np.array([g12 * a1]), 1.0, np.array([0.0]))
    assert (target, obstacles) == pytest.approx((1.0, 0.0))


@pytest.mark.parametrize(("was", "expected"), [((1.0, 0.0), (1.0, 0.0)), ((0.0, 1.0), (0.0, 1.0))])
def test_where_both_are_stable_each_stays_on_its_side(was: tuple[float, float], expected: tuple[float, float]) -> None:
    # gamma_12 > alpha_1 and gamma_21 > alpha_2: target off, and obstacles ignored, are both stable.
    a, g = np.array([0.03]), np.array([0.8])
    for _ in range(5):
        was = tuple(closed_form(0.3, a, g, was[0], np.array([was[1]])))
        assert was == pytest.approx(expected)


@pytest.mark.parametrize("was", [(1.0, 1.0, 0.0), (0.8, 1.0, 0.1), (0.2, 1.0, 0.9), (0.65, 0.2, 0.2)])
def test_between_two_stable_points_the_last_weights_decide_as_the_equation_flows(was: tuple[float, ...]) -> None:
    # Stable are the target off with both classes on, and the target at 0.61 with the second class off.
    a_target, a, g = 0.154, np.array([0.9, 0.016]), np.array([0.098, 0.106])
    start = np.array([was])
    end = integrated(flow(np.array([a_target]), a[None], g[None]), start, steps=12_000)[0]
    assert end[0] < 0.01 or end[0] == pytest.approx(0.61, abs=0.02)
    np.testing.assert_allclose(closed_form(a_target, a, g, was[0], start[0, 1:]), end, atol=5e-3)


def test_the_target_comes_back_when_the_obstacle_gets_weaker() -> None:
    off = closed_form(0.1, np.array([0.7]), np.array([2.7]), 1.0, np.array([0.0]))
    assert off == pytest.approx([0.0, 1.0])
    back = closed_form(0.1, np.array([0.7]), np.array([0.05]), off[0], off[1:])
    assert back[0] > 0.6


def test_a_class_that_is_not_there_has_no_weight_and_no_say() -> None:
    alone = closed_form(0.2, np.array([0.5]), np.array([0.1]), 0.7, np.array([0.5]))
    among = closed_form(0.2, np.array([0.0, 0.5, 0.0]), np.array([9.0, 0.1, 9.0]), 0.7, np.array([0.5, 0.5, 0.5]))
    np.testing.assert_array_equal(among, [alone[0], 0.0, alone[1], 0.0])


@given(
    a1=st.floats(0.0, 0.4),
    a=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3),
    g=st.lists(st.sampled_from([0.0, 1e-26, 0.05, 0.3, 2.7, 1e6, 1e26]), min_size=3, max_size=3),
    was=st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4),
)
def test_weights_are_always_between_nothing_and_one(
    a1: float, a: list[float], g: list[float], was: list[float]
) -> None:
    weights = closed_form(a1, np.array(a), np.array(g), was[0], np.array(was[1:]))
    assert all(math.isfinite(w) and 0.0 <= w <= 1.0 for w in weights)


@given(a=st.floats(1e-6, 1.0), g=st.floats(1e-9, 10.0), was=st.floats(0.0, 1.0), weight=st.floats(0.0, 1.0))
def test_for_one_class_the_short_way_gives_the_same(a: float, g: float, was: float, weight: float) -> None:
    a_class, g_class = np.array([a]), np.array([g])
    a_target = 0.4 * (1.0 - a)
    general, short = np.array([weight]), np.array([weight])
    target = fixed_point(a_target, a_class, g_class, 1, was, general)
    assert fixed_point_of_one(a_target, a_class, g_class, was, short) == target
    assert short[0] == general[0]
