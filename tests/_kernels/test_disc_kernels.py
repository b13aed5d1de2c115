"""The cells of round obstacles against a loop over all of them, in 2D and 3D."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel._kernels.discs import disc_cell, disc_grid


@given(
    seed=st.integers(0, 10**6),
    dim=st.sampled_from([2, 3]),
    reach=st.sampled_from([0.5, 1.0, 4.0]),
    spread=st.sampled_from([1.0, 1.6]),
)
@settings(max_examples=60, deadline=None)
def test_the_list_of_a_cell_misses_no_obstacle_within_reach(seed: int, dim: int, reach: float, spread: float) -> None:
    generator = np.random.default_rng(seed)
    position = 5 + spread * generator.uniform(-5, 5, (15, dim))
    radius = generator.uniform(0.05, 2.0, 15)
    grid = disc_grid(
        position,
        np.zeros_like(position),
        radius,
        np.zeros(len(radius), np.int32),
        np.ones(len(radius), np.uint8),
        np.zeros(dim),
        np.full(dim, 10.0),
        reach,
    )
    points = generator.uniform(-3, 13, (80, dim))
    for row, point in enumerate(points):
        cell = disc_cell(points, row, grid)
        listed = grid.items[grid.start[cell] : grid.start[cell + 1]].tolist()
        near = np.flatnonzero(np.linalg.norm(position - point, axis=1) - radius <= reach)
        assert set(near) <= set(listed)
        assert listed == sorted(set(listed))


@pytest.mark.parametrize("dim", [2, 3])
def test_without_obstacles_the_lists_are_empty(dim: int) -> None:
    none = np.empty((0, dim))
    grid = disc_grid(
        none, none, np.empty(0), np.empty(0, np.int32), np.empty(0, np.uint8), np.zeros(dim), np.full(dim, 10.0), 1.0
    )
    assert grid.items.size == 0
    assert disc_cell(np.full((1, dim), 5.0), 0, grid) == 0


def test_a_huge_world_does_not_get_a_cell_for_every_metre() -> None:
    position = np.array([[1e6, 1e6]])
    grid = disc_grid(
        position,
        np.zeros((1, 2)),
        np.array([1.0]),
        np.zeros(1, np.int32),
        np.ones(1, np.uint8),
        np.zeros(2),
        np.full(2, 2e6),
        0.5,
    )
    assert grid.shape.prod() <= 1 << 20
    assert 0 in grid.items[grid.start[disc_cell(position, 0, grid)] :]
