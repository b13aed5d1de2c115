"""Half-planes and programmes of ORCA against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from orca_reference import Line, best_velocity, collides
from scipy.optimize import minimize

from tropel.local.orca.half_planes import _way_out
from tropel.local.orca.programmes import best_within, least_broken

numbers = st.floats(-3.0, 3.0)


@given(numbers, numbers, numbers, numbers, st.floats(0.1, 2.0), st.floats(0.3, 10.0))
@settings(max_examples=200)
def test_the_way_out_of_a_velocity_obstacle_is_the_shortest(
    px: float, py: float, vx: float, vy: float, contact: float, horizon: float
) -> None:
    p, v = np.array([px, py]), np.array([vx, vy])
    assume(np.linalg.norm(p) > contact * 1.01)
    nx, ny, out = _way_out(px, py, vx, vy, contact, horizon, 0.1)
    n = np.array([nx, ny])
    assume(abs(out) > 1e-3)
    assert np.linalg.norm(n) == pytest.approx(1.0)
    assert collides(p, v, contact, horizon) == (out > 0.0)
    border = v + out * n
    assert collides(p, border - 1e-6 * n, contact, horizon)
    assert not collides(p, border + 1e-6 * n, contact, horizon)
    # Nothing changes within a circle around v that reaches almost to the border.
    for angle in np.linspace(0.0, 2.0 * math.pi, 90):
        around = v + 0.999 * abs(out) * np.array([math.cos(angle), math.sin(angle)])
        assert collides(p, around, contact, horizon) == (out > 0.0)


@given(numbers, numbers, st.floats(0.0, 0.99), st.floats(0.0, 6.3))
def test_bodies_that_overlap_come_apart_within_one_step(vx: float, vy: float, share: float, bearing: float) -> None:
    p = share * np.array([math.cos(bearing), math.sin(bearing)])
    assume(np.linalg.norm(p - 0.1 * np.array([vx, vy])) > 1e-9)
    nx, ny, out = _way_out(p[0], p[1], vx, vy, 1.0, 5.0, 0.1)
    after = p - 0.1 * (np.array([vx, vy]) + out * np.array([nx, ny]))
    assert np.linalg.norm(after) == pytest.approx(1.0)


def test_bodies_in_one_place_with_one_velocity_have_no_way_out() -> None:
    assert _way_out(0.0, 0.0, 0.0, 0.0, 1.0, 5.0, 0.1) == (0.0, 0.0, 0.0)


def drawn(draws: np.random.Generator, count: int, least: float, most: float) -> list[Line]:
    angle = draws.uniform(0.0, 2.0 * math.pi, count)
    level = draws.uniform(least, most, count)
    return [(np.array([math.cos(a), math.sin(a)]), float(b)) for a, b in zip(angle, level, strict=True)]


def solved(walls: list[Line], others: list[Line], speed: float, wanted: np.ndarray) -> tuple[np.ndarray, bool]:
    """What the kernels find, and whether all half-planes allow it."""
    table = np.array([[*n, b] for n, b in (*walls, *others)]).reshape(-1, 3)
    count, scratch = np.uint64(len(table)), np.empty_like(table)
    possible, vx, vy = best_within(table, count, speed, wanted[0], wanted[1], False)
    if possible < count:
        vx, vy = least_broken(table, count, np.uint64(len(walls)), np.uint64(possible), speed, vx, vy, scratch)
    return np.array([vx, vy]), possible == count


@pytest.mark.parametrize("seed", range(8))
def test_velocities_are_those_of_all_candidates_by_brute_force(seed: int) -> None:
    draws = np.random.default_rng(seed)
    kinds = []
    for _ in range(60):
        walls = drawn(draws, draws.integers(0, 4), -1.0, 0.0)
        others = drawn(draws, draws.integers(1, 11), -1.5, 1.0)
        wanted = draws.normal(0.0, 1.0, 2)
        found, possible = solved(walls, others, 1.5, wanted)
        expected, broken = best_velocity(walls, others, 1.5, wanted)
        assert possible == (broken == 0.0)
        kinds.append(possible)
        assert np.linalg.norm(found) <= 1.5 * (1.0 + 1e-9)
        assert all(n @ found >= b - 1e-8 for n, b in walls)
        assert max((b - n @ found for n, b in others), default=0.0) <= broken + 1e-8
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert 10 <= sum(kinds) <= 50, "both kinds of problems must be among them"


@pytest.mark.parametrize("seed", range(4))
def test_the_brute_force_agrees_with_a_solver_for_any_smooth_problem(seed: int) -> None:
    draws = np.random.default_rng(100 + seed)
    for _ in range(6):
        walls, others = drawn(draws, 2, -1.0, 0.0), drawn(draws, 6, -1.5, 0.8)
        wanted = draws.normal(0.0, 1.0, 2)
        expected, broken = best_velocity(walls, others, 1.5, wanted)
        disc = {"type": "ineq", "fun": lambda v: 1.5**2 - v[0] ** 2 - v[1] ** 2}
        hard = [{"type": "ineq", "fun": lambda v, n=n, b=b: n @ v[:2] - b} for n, b in walls]
        if broken == 0.0:
            soft = [{"type": "ineq", "fun": lambda v, n=n, b=b: n @ v - b} for n, b in others]
            best = minimize(
                lambda v, aim=wanted: (v - aim) @ (v - aim), np.zeros(2), constraints=[disc, *hard, *soft], tol=1e-12
            )
            assert best.fun == pytest.approx((expected - wanted) @ (expected - wanted), abs=1e-5)
        else:
            soft = [{"type": "ineq", "fun": lambda v, n=n, b=b: n @ v[:2] - b + v[2]} for n, b in others]
            best = minimize(lambda v: v[2], np.array([0.0, 0.0, 2.0]), constraints=[disc, *hard, *soft], tol=1e-12)
            assert best.fun == pytest.approx(broken, abs=1e-5)


def test_walls_that_meet_in_a_corner_leave_standing_and_going_back() -> None:
    normals = np.array([(-1.0, 0.0), (0.0, -1.0), (-math.sqrt(0.5), -math.sqrt(0.5))])
    corner = [(normal, 0.0) for normal in normals]
    found, possible = solved(corner, [], 1.0, np.array([1.0, 1.0]))
    assert possible
    np.testing.assert_allclose(found, 0.0, atol=1e-9)
    found, _ = solved(corner, [], 1.0, np.array([-0.5, 0.3]))
    np.testing.assert_allclose(found, (-0.5, 0.0), atol=1e-9)
