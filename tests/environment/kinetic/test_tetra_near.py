"""Neighbours in space against plain NumPy, in every step."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel._kernels.compile import threads_restored
from tropel.environment.kinetic.tetra import Tetrahedralisation
from tropel.environment.kinetic.tetra_near import NearLists

Floats = NDArray[np.float64]


def brute_force(position: Floats, radius: Floats, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    away = position[None, :, :] - position[:, None, :]
    square = away[..., 0] * away[..., 0] + away[..., 1] * away[..., 1] + away[..., 2] * away[..., 2]
    near = (square <= (radius * radius)[:, None]) & present[None, :] & present[:, None]
    np.fill_diagonal(near, False)
    return near


def check(found: Csr, position: Floats, radius: Floats, present: NDArray[np.bool_]) -> None:
    assert found.indptr.dtype == np.int64
    assert found.indices.dtype == np.int32
    table = np.zeros((len(position), len(position)), dtype=np.bool_)
    own = np.repeat(np.arange(len(position)), np.diff(found.indptr))
    table[own, found.indices] = True
    expected = brute_force(position, radius, present)
    assert len(found.indices) == expected.sum()
    assert np.array_equal(table, expected)


def random_crowd(rng: np.random.Generator, count: int) -> Floats:
    return rng.random((count, 3)) * count ** (1 / 3)


def random_steps(rng: np.random.Generator, count: int, length: float) -> Floats:
    step = rng.normal(size=(count, 3))
    return step * (length / np.linalg.norm(step, axis=1))[:, None]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("length", "margin"), [(0.03, 0.3), (0.13, 0.8), (0.03, 0.0)])
def test_near_is_exact_in_every_step_of_a_random_walk(seed: int, length: float, margin: float) -> None:
    rng = np.random.default_rng(seed)
    position = random_crowd(rng, 150)
    radius = rng.uniform(0.0, 2.5, 150)
    structure = Tetrahedralisation(position)
    lists = NearLists(structure, margin)
    everybody = np.ones(150, dtype=np.bool_)
    check(lists.update(position, radius), position, radius, everybody)
    for _ in range(200):
        position = position + random_steps(rng, 150, length)
        structure.advance(position)
        check(lists.update(position, radius), position, radius, everybody)
    if margin / length >= 10.0 * 0.999:
        assert lists.filled < 150 * 200 / 3


@pytest.mark.parametrize("seed", range(3))
def test_near_is_exact_while_agents_come_go_and_jump_and_radii_change(seed: int) -> None:
    rng = np.random.default_rng(seed)
    position = random_crowd(rng, 150)
    radius = rng.uniform(0.5, 2.0, 150)
    structure = Tetrahedralisation(position, rng.random(150) < 0.6)
    lists = NearLists(structure, 0.4)
    for step in range(200):
        position = position + random_steps(rng, 150, 0.02) * (rng.random(150) < 0.7)[:, None]
        if step % 5 == 0:
            position[rng.choice(150, 2)] = random_crowd(rng, 150)[:2]
        if step % 7 == 0:
            one, other = rng.choice(150, 2, replace=False)
            position[one] = position[other]
        if step % 2 == 0:
            structure.advance(position)
        if step % 3 == 0:
            here, away = np.flatnonzero(structure.present), np.flatnonzero(~structure.present)
            structure.remove(rng.choice(here, 2, replace=False))
            structure.insert(rng.choice(away, 2, replace=False), position)
        if step % 2 == 1:
            structure.advance(position)
        if step % 4 == 3:
            continue
        if step % 11 == 0:
            radius = rng.uniform(0.5, 2.0, 150)
        check(lists.update(position, radius), position, radius, structure.present)
    structure.check_invariants()


@pytest.mark.parametrize("crowd", ["lattice", "plane", "line", "one place"])
def test_distances_of_exactly_the_radius_count(crowd: str) -> None:
    axis = np.arange(4.0)
    position = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    if crowd == "plane":
        position[:, 2] = 1.0
    elif crowd == "line":
        position = np.outer(np.arange(20.0), [0.0, 1.0, 0.0])
    elif crowd == "one place":
        position = np.full((20, 3), 0.5)
    radius = np.where(np.arange(len(position)) % 2 == 0, 1.0, np.sqrt(2.0))
    structure = Tetrahedralisation(position)
    lists = NearLists(structure, 0.2)
    everybody = np.ones(len(position), dtype=np.bool_)
    for step in range(10):
        moved = position + np.array([0.25, 0.5, 0.0]) * step
        structure.advance(moved)
        check(lists.update(moved, radius), moved, radius, everybody)


def test_a_crowd_at_rest_fills_no_lists() -> None:
    rng = np.random.default_rng(0)
    position, radius = random_crowd(rng, 200), np.full(200, 1.5)
    structure = Tetrahedralisation(position)
    lists = NearLists(structure, 0.2)
    for _ in range(5):
        structure.advance(position)
        lists.update(position, radius)
    assert lists.filled == 200


def test_rows_can_be_added() -> None:
    rng = np.random.default_rng(0)
    position, radius = random_crowd(rng, 100), np.full(100, 1.5)
    structure = Tetrahedralisation(position[:40])
    lists = NearLists(structure, 0.2)
    lists.update(position[:40], radius[:40])
    structure.insert(np.arange(40, 100), position)
    check(lists.update(position, radius), position, radius, structure.present)


def test_the_number_of_threads_does_not_show() -> None:
    rng = np.random.default_rng(0)
    position, radius = random_crowd(rng, 500), np.full(500, 1.6)
    found = []
    for threads in (1, 2):
        with threads_restored(threads):
            structure = Tetrahedralisation(position)
            lists = NearLists(structure, 0.2)
            lists.update(position, radius)
            structure.advance(position + 0.1)
            found.append(lists.update(position + 0.1, radius))
    assert np.array_equal(found[0].indices, found[1].indices)
