"""A repaired plan has the same bits as a fresh one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel.errors import ParameterError
from tropel.planning.flow.path_plan import PathPlan


def same_bits(plan: PathPlan, **options: Any) -> None:
    fresh = PathPlan(plan.free, plan.goal, **options)
    np.testing.assert_array_equal(plan.units, fresh.units)
    np.testing.assert_array_equal(plan.vectors, fresh.vectors)
    np.testing.assert_array_equal(plan.policy(), fresh.policy())


def map_of(kind: str, seed: int, ny: int = 60, nx: int = 70) -> np.ndarray:
    generator = np.random.default_rng(seed)
    free = np.ones((ny, nx), dtype=bool)
    if kind == "noise":
        free = generator.random((ny, nx)) > 0.25
    elif kind == "blocks":
        for y, x in generator.integers(0, (ny, nx), (25, 2)):
            free[y : y + generator.integers(2, 9), x : x + generator.integers(2, 9)] = False
    elif kind == "rooms":
        free[::12] = free[:, ::12] = False
        for y, x in generator.integers(0, (ny, nx), (60, 2)):
            free[y : y + 2, x : x + 2] = True
    return free


def edited(free: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Another map: a few cells turned over, a block put in or taken away."""
    after = free.copy()
    if generator.random() < 0.5:
        after.ravel()[generator.integers(0, free.size, generator.integers(1, 12))] ^= True
    else:
        y, x = generator.integers(0, free.shape)
        after[y : y + generator.integers(1, 8), x : x + generator.integers(1, 8)] = generator.random() < 0.5
    return after


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(["open", "noise", "blocks", "rooms"]),
    seed=st.integers(0, 10_000),
    equal_moves=st.booleans(),
    corner_cutting=st.booleans(),
)
def test_random_edits_one_after_the_other(kind: str, seed: int, equal_moves: bool, corner_cutting: bool) -> None:
    generator = np.random.default_rng(seed)
    free = map_of(kind, seed)
    goal = np.zeros_like(free)
    goal[tuple(generator.integers(0, free.shape))] = True
    goal[tuple(generator.integers(0, free.shape))] = True
    free |= goal
    options = {"equal_moves": equal_moves, "corner_cutting": corner_cutting}
    plan = PathPlan(free, goal, **options)
    for _ in range(6):
        free = edited(free, generator) | goal
        assert not plan.change(free=free, most_touched=1.0).fresh
        same_bits(plan, **options)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_terrain_goals_and_walls_at_once(seed: int) -> None:
    generator = np.random.default_rng(seed)
    free = map_of("blocks", seed)
    goal = np.zeros_like(free)
    goal[5, 5] = free[5, 5] = True
    terrain = generator.uniform(1.0, 9.0, free.shape)
    plan = PathPlan(free, goal, terrain=terrain)
    for _ in range(5):
        y, x = generator.integers(0, free.shape)
        terrain = terrain.copy()
        terrain[y : y + 4, x : x + 4] = generator.uniform(1.0, 40.0)
        goal = goal.copy()
        goal[tuple(generator.integers(0, free.shape))] ^= True
        free = edited(free, generator)
        assert not plan.change(free=free, goal=goal, terrain=terrain, most_touched=1.0).fresh
        same_bits(plan, terrain=terrain)


def two_rooms() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two rooms with two doors between them, a goal in the left one, and the cells of the upper door."""
    free = np.ones((200, 200), dtype=bool)
    free[:, 100] = False
    free[2:6, 100] = free[30:34, 100] = True
    goal = np.zeros_like(free)
    goal[160, 10] = True
    door = np.zeros_like(free)
    door[2:6, 100] = True
    return free, goal, door


def test_a_small_change_is_repaired_and_a_large_one_is_solved_anew() -> None:
    free, goal, door = two_rooms()
    plan = PathPlan(free, goal)
    small = plan.change(free=free & ~door)
    assert (small.cells, small.fresh) == (4, False)
    assert 0 < small.touched < 0.2 * free.size
    large = plan.change(free=np.flipud(free) | goal)
    assert large.fresh
    same_bits(plan)


def test_a_door_that_closes_and_opens_again_leaves_no_trace() -> None:
    free, goal, door = two_rooms()
    plan = PathPlan(free, goal)
    before = plan.units.copy()
    plan.change(free=free & ~door)
    assert (plan.units != before).any()
    assert not plan.change(free=free).fresh
    np.testing.assert_array_equal(plan.units, before)


def test_a_room_that_is_cut_off_loses_its_way_and_finds_it_again() -> None:
    free = np.ones((60, 300), dtype=bool)
    free[:, 290] = False
    free[30, 290] = True
    goal = np.zeros_like(free)
    goal[30, 5] = True
    plan = PathPlan(free, goal)
    shut = free.copy()
    shut[30, 290] = False
    assert not plan.change(free=shut).fresh
    assert np.isinf(plan.distance[:, 291:]).all()
    assert (plan.vectors[:, 291:] == 0.0).all()
    plan.change(free=free)
    assert np.isfinite(plan.distance[:, 291:]).all()
    same_bits(plan)


def test_nothing_changed_is_nothing_done() -> None:
    free, goal, _ = two_rooms()
    plan = PathPlan(free, goal)
    assert plan.change(free=free.copy(), goal=goal.copy()).touched == 0


def test_another_size_is_refused() -> None:
    free, goal, _ = two_rooms()
    plan = PathPlan(free, goal)
    with pytest.raises(ParameterError, match=r"cells must stay \(200, 200\)"):
        plan.change(free=free[:-1])
    with pytest.raises(ParameterError, match=r"goal must stay \(200, 200\)"):
        plan.change(goal=goal[:-1])


def test_a_goal_that_was_blocked_for_a_while_is_a_goal_again() -> None:
    free, goal, _ = two_rooms()
    plan = PathPlan(free, goal)
    before = plan.units.copy()
    plan.change(free=free & ~goal)
    assert np.isinf(plan.distance).all()
    plan.change(free=free)
    np.testing.assert_array_equal(plan.units, before)
