"""Walls and obstacles near each agent, against shapely and plain NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from sorted_crowds import sensed
from tropel.agents.state import AgentState
from tropel.broad_phase import CellGrid
from tropel.contracts import Moment
from tropel.environment import Grid
from tropel.world import Door, Obstacle, World


def make_state(position: np.ndarray, sense_radius: np.ndarray | float) -> AgentState:
    state = AgentState(position.shape[1])
    state.add(len(position), {"position": position, "sense_radius": sense_radius})
    return state


def lists_of(csr: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    indptr, indices = csr
    return [indices[a:b].tolist() for a, b in itertools.pairwise(indptr)]


def walls_by_shapely(state: AgentState, world: World) -> list[list[int]]:
    lines = shapely.linestrings(world.segments.reshape(-1, 2, 2))
    away = shapely.distance(shapely.points(state.position)[:, None], lines[None, :])
    assert (np.abs(away - state.sense_radius[:, None]) > 1e-9).all()
    near = (away < state.sense_radius[:, None]) & (world.blocking[None, :] == 1)
    return [np.flatnonzero(row).tolist() for row in near]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 30), walls=st.integers(0, 40))
def test_walls_near_agents_are_those_shapely_finds(seed: int, count: int, walls: int) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.uniform(0.0, 20.0, (walls, 2, 2))
    world = World(
        bounds=(0, 0, 20, 20),
        walls=[shapely.LineString(pair) for pair in ends],
        doors={"open": Door([(1, 1), (2, 5)], open=True), "closed": Door([(7, 1), (8, 5)])},
    )
    state = make_state(rng.uniform(-3.0, 23.0, (count, 2)), rng.choice([0.0, 0.7, 2.0, 9.0], count))
    near = Moment.of(state, world, environment=Grid()).near
    assert lists_of(near.walls_csr()) == walls_by_shapely(state, world)


def test_a_door_is_near_only_while_it_is_closed() -> None:
    world = World(bounds=(0, 0, 10, 10), doors={"gate": Door([(5, 4), (5, 6)])})
    state, cells = make_state(np.array([[4.5, 5.0]]), 1.0), CellGrid()
    assert lists_of(sensed(cells, state, world).walls_csr()) == [[0]]
    world.set_door("gate", open=True)
    assert lists_of(sensed(cells, state, world).walls_csr()) == [[]]
    world.set_door("gate", open=False)
    assert lists_of(sensed(cells, state, world).walls_csr()) == [[0]]


def test_walls_further_than_the_first_agents_could_see_are_found_by_later_ones() -> None:
    world = World(bounds=(0, 0, 50, 50), walls=[shapely.LineString([(40, 0), (40, 50)])])
    state, cells = make_state(np.array([[5.0, 5.0]]), 2.0), CellGrid()
    assert lists_of(sensed(cells, state, world).walls_csr()) == [[]]
    state.add(1, {"position": np.array([[5.0, 5.0]]), "sense_radius": 36.0})
    assert lists_of(sensed(cells, state, world).walls_csr()) == [[], [0]]


def obstacles_by_numpy(state: AgentState, world: World) -> list[list[int]]:
    away = np.linalg.norm(state.position[:, None] - world.obstacles.position[None], axis=2) - world.obstacles.radius
    assert (np.abs(away - state.sense_radius[:, None]) > 1e-9).all()
    return [np.flatnonzero(row).tolist() for row in away < state.sense_radius[:, None]]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dim=st.sampled_from([2, 3]), discs=st.integers(0, 30))
def test_obstacles_near_agents_are_those_of_brute_force(seed: int, dim: int, discs: int) -> None:
    rng = np.random.default_rng(seed)
    obstacles = {
        f"disc {k}": Obstacle(radius=float(rng.choice([0.2, 1.0, 6.0])), position=rng.uniform(-2.0, 22.0, dim).tolist())
        for k in range(discs)
    }
    world = (
        World(bounds=(0, 0, 20, 20), obstacles=obstacles)
        if dim == 2
        else World.box([0] * 3, [20] * 3, obstacles=obstacles)
    )
    state = make_state(rng.uniform(-6.0, 26.0, (25, dim)), rng.choice([0.0, 0.7, 3.0, 60.0], 25))
    near = Moment.of(state, world, environment=Grid()).near
    assert lists_of(near.obstacles_csr()) == obstacles_by_numpy(state, world)


def test_obstacles_are_followed_when_they_move() -> None:
    world = World(bounds=(0, 0, 20, 20), obstacles={"cart": Obstacle(radius=0.5, position=(10.0, 10.0))})
    state, cells = make_state(np.array([[2.0, 2.0], [10.0, 11.0]]), 1.5), CellGrid()
    assert lists_of(sensed(cells, state, world).obstacles_csr()) == [[], [0]]
    world.obstacles.move("cart", (2.0, 3.0))
    assert lists_of(sensed(cells, state, world).obstacles_csr()) == [[0], []]


@pytest.mark.parametrize("dim", [2, 3])
def test_nobody_and_nothing_gives_empty_lists(dim: int) -> None:
    world = World(bounds=(0, 0, 20, 20)) if dim == 2 else World.box([0] * 3, [20] * 3)
    near = Moment.of(make_state(np.empty((0, dim)), 1.0), world, environment=Grid()).near
    assert lists_of(near.walls_csr()) == lists_of(near.obstacles_csr()) == []
    near = Moment.of(make_state(np.zeros((2, dim)), 1.0), world, environment=Grid()).near
    assert lists_of(near.walls_csr()) == lists_of(near.obstacles_csr()) == [[], []]
