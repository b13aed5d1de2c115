"""Neighbours in periodic space against brute force with nearest images in plain NumPy."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest

from tropel._kernels.cells import CellList, count_runs, wrapping_run, wrapping_window
from tropel._kernels.compile import kernel
from tropel.agents.state import AgentState
from tropel.contracts import Moment
from tropel.environment import Grid
from tropel.world import Obstacle, World


@kernel
def walk(cells: CellList, row: int, x: float, y: float, z: float, radius: float, out: np.ndarray) -> int:
    found = 0
    window = wrapping_window(cells, x, y, z, radius)
    for number in range(count_runs(cells, window)):
        first, last, shift_x, shift_y, shift_z = wrapping_run(cells, window, number)
        for k in range(first, last):
            if cells.order[k] == row:
                continue
            away2 = (cells.position[0, k] - (x + shift_x)) ** 2 + (cells.position[1, k] - (y + shift_y)) ** 2
            if cells.position.shape[0] == 3:
                away2 += (cells.position[2, k] - (z + shift_z)) ** 2
            if away2 <= radius * radius:
                out[found] = cells.order[k]
                found += 1
    return found


def make_world(low: np.ndarray, high: np.ndarray, periodic: bool | str = True, **more: object) -> World:
    return World.box(low.tolist(), high.tolist(), periodic=periodic, open=True, **more)  # type: ignore[arg-type]


def make_state(position: np.ndarray, sense_radius: np.ndarray | float) -> AgentState:
    state = AgentState(position.shape[1])
    state.add(len(position), {"position": position, "sense_radius": sense_radius})
    return state


def crowd(rng: np.random.Generator, world: World, count: int) -> np.ndarray:
    """Places all over the world, many of them exactly on a seam, at corners or the last number before a side."""
    low, high = world.bounds
    position = rng.uniform(low, high, (count, world.dim))
    on_low, on_high = rng.random((2, count, world.dim)) < 0.08
    position = np.where(on_low, low, np.where(on_high, np.nextafter(high, low), position))
    return np.ascontiguousarray(position)


def expected(state: AgentState, world: World) -> list[list[int]]:
    """Who is within the sense radius of whom, over whatever seam is nearest."""
    gaps = state.position[None, :, :] - state.position[:, None, :]
    length = np.where(world.period > 0.0, world.period, 1.0)
    gaps -= world.period * np.round(gaps / length)
    near = (gaps**2).sum(axis=2) <= (state.sense_radius**2)[:, None]
    np.fill_diagonal(near, False)
    return [np.flatnonzero(row).tolist() for row in near]


def lists_of(csr: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    return [csr[1][a:b].tolist() for a, b in itertools.pairwise(csr[0])]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dim", [2, 3])
def test_neighbours_are_those_of_brute_force_in_random_boxes(dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.uniform(-5.0, 5.0, dim)
    periodic = True if seed % 3 == 0 else "".join(rng.permutation(list("xyz"[:dim]))[: 1 + seed % dim])
    world = make_world(low, low + rng.uniform(2.0, 9.0, dim), periodic)
    half = 0.5 * world.period[world.period > 0.0].min()
    position = crowd(rng, world, 700)
    widest = half * rng.choice([0.2, 0.6, 1.0 - 1e-9])
    state = make_state(position, rng.uniform(0.0, widest, len(position)))
    state.sense_radius[::50] = widest
    near = Moment.of(state, world, environment=Grid(cell=rng.choice([None, 0.37, 2.0, 50.0]))).near
    lists = lists_of(near.csr())
    assert [sorted(row) for row in lists] == expected(state, world)
    out = np.empty(len(state), dtype=np.int64)
    for row in range(len(state)):
        x, y, z = (*position[row], 0.0)[:3]
        found = walk(near.cells.cell_list, row, x, y, z, state.sense_radius[row], out)
        assert out[:found].tolist() == lists[row]


def test_agents_on_a_lattice_whose_distances_are_exactly_the_radius_are_all_met() -> None:
    world = make_world(np.zeros(2), np.full(2, 8.0))
    x, y = np.meshgrid(np.arange(8.0), np.arange(8.0))
    state = make_state(np.column_stack([x.ravel(), y.ravel()]), 1.0)
    assert all(len(row) == 4 for row in lists_of(Moment.of(state, world, environment=Grid()).near.csr()))
    assert [sorted(row) for row in lists_of(Moment.of(state, world, environment=Grid()).near.csr())] == expected(
        state, world
    )


def test_one_and_two_threads_give_the_same_bits() -> None:
    rng = np.random.default_rng(3)
    world = make_world(np.zeros(2), np.array([30.0, 20.0]))
    state = make_state(crowd(rng, world, 9000), rng.uniform(0.1, 0.8, 9000))
    before, found = numba.get_num_threads(), []
    for count in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
        numba.set_num_threads(count)
        found.append([array.tobytes() for array in Moment.of(state, world, environment=Grid()).near.csr()])
    numba.set_num_threads(before)
    assert found[0] == found[1]


@pytest.mark.parametrize("dim", [2, 3])
def test_obstacles_are_sensed_over_every_seam(dim: int) -> None:
    rng = np.random.default_rng(5)
    high = np.array([9.0, 7.0, 6.0])[:dim]
    centres, radii = rng.uniform(-3.0, high + 3.0, (12, dim)), rng.uniform(0.1, 1.5, 12)
    obstacles = {f"o{k}": Obstacle(position=centres[k].tolist(), radius=radii[k]) for k in range(12)}
    world = make_world(np.zeros(dim), high, obstacles=obstacles)
    state = make_state(crowd(rng, world, 300), rng.uniform(0.1, 2.0, 300))
    near = Moment.of(state, world, environment=Grid()).near
    discs, lists = near.obstacles, lists_of(near.obstacles_csr())
    images = np.array(list(itertools.product(*[(-2, -1, 0, 1, 2)] * dim)))
    for row, place in enumerate(state.position):
        gaps = np.linalg.norm(place - (centres[:, None] + images * high), axis=2) - radii[:, None]
        wanted = np.sort(gaps[gaps <= state.sense_radius[row]])
        found = np.linalg.norm(place - discs.position[lists[row]], axis=1) - discs.radius[lists[row]]
        np.testing.assert_allclose(np.sort(found), wanted, atol=1e-12)
