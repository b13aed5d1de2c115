"""Round obstacles: nobody ends inside one or jumps over one, however fast, and a moving one pushes people along."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel import Obstacle, World
from tropel.agents.state import AgentState, Steered
from tropel.contact.integrate import integrate

Floats = NDArray[np.float64]

RADIUS = 0.2


def agents_at(position: Floats) -> AgentState:
    state = AgentState(position.shape[1])
    state.add(len(position), {"position": position, "radius": RADIUS})
    return state


def move(state: AgentState, world: World, wanted: Floats, *, dt: float = 1.0) -> None:
    steered = Steered.like(state, ())
    steered.velocity[:] = wanted / dt
    integrate(state, steered, world, dt)


def least_distance(before: Floats, after: Floats, centre: Floats) -> Floats:
    """From each closed chord to a point, in any dimension."""
    along = after - before
    # Divided first, so that the squares of absurdly long chords do not overflow.
    length = np.maximum(np.abs(along).max(axis=1), 1e-300)
    unit = along / length[:, None]
    reach = ((centre - before) * unit).sum(axis=1) / np.maximum((unit**2).sum(axis=1), 1e-300)
    nearest: Floats = np.linalg.norm(before + np.clip(reach, 0.0, length)[:, None] * unit - centre, axis=1)
    return nearest


def world_with(centres: Floats, radii: Floats, dim: int, *, walled: bool) -> World:
    obstacles = {
        f"o{k}": Obstacle(radius=float(radius), position=centre.tolist())
        for k, (centre, radius) in enumerate(zip(centres, radii, strict=True))
    }
    if dim == 3:
        return World.box((0, 0, 0), (10, 10, 10), obstacles=obstacles)
    if walled:
        return World(shapely.box(0, 0, 10, 10), walls=[[(0, 5), (4, 5)], [(6, 5.1), (10, 5)]], obstacles=obstacles)
    return World(bounds=(0, 0, 10, 10), obstacles=obstacles)


@given(
    seed=st.integers(0, 10**6),
    dim=st.sampled_from([2, 3]),
    count=st.sampled_from([1, 6, 25]),
    walled=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_no_chord_enters_a_standing_obstacle_at_any_speed(seed: int, dim: int, count: int, walled: bool) -> None:
    generator = np.random.default_rng(seed)
    centres, radii = generator.uniform(0, 10, (count, dim)), generator.uniform(0.05, 1.5, count)
    world = world_with(centres, radii, dim, walled=walled)
    points = generator.uniform(0.3, 9.7, (200, dim))
    clear = (np.linalg.norm(points[:, None] - centres, axis=2) > radii + RADIUS).all(axis=1)
    state = agents_at(points[clear])
    for _ in range(10):
        before = state.position.copy()
        length = 10.0 ** generator.uniform(-4, 4, (len(state), 1))
        wanted = length * generator.normal(0, 1, (len(state), dim))
        # Some walk exactly at the middle of an obstacle, as far as it, into it or far beyond.
        aimed = generator.random(len(state)) < 0.3
        goal = centres[generator.integers(count, size=len(state))]
        wanted[aimed] = ((goal - before) * generator.choice([0.7, 1.0, 1.05, 30.0], (len(state), 1)))[aimed]
        move(state, world, wanted)
        for centre, radius in zip(centres, radii, strict=True):
            assert (least_distance(before, state.position, centre) >= radius + RADIUS - 1e-8).all()


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("length", [2.0, 2.9, 3.0, 3.1, 4.0, 5.0, 1e3, 1e9, 1e160])
def test_who_steps_into_or_over_an_obstacle_is_not_on_its_far_side_afterwards(dim: int, length: float) -> None:
    centre = np.full(dim, 5.0)
    world = world_with(np.array([centre]), np.array([1.0]), dim, walled=False)
    start = centre.copy()
    start[0] -= 3.0
    start[1] += 1e-3
    state = agents_at(start[None])
    wanted = np.zeros((1, dim))
    wanted[0, 0] = length
    move(state, world, wanted)
    assert least_distance(start[None], state.position, centre)[0] >= 1.2 - 1e-8
    if length < 10.0:
        assert state.position[0, 0] <= centre[0] - 1.2 * 0.9


@pytest.mark.parametrize("dim", [2, 3])
def test_who_walks_at_the_side_of_an_obstacle_slides_round_it(dim: int) -> None:
    centre = np.full(dim, 5.0)
    world = world_with(np.array([centre]), np.array([1.0]), dim, walled=False)
    start = centre.copy()
    start[0] -= 4.0
    start[1] += 0.3
    state = agents_at(start[None])
    wanted = np.zeros((1, dim))
    wanted[0, 0] = 0.065
    for _ in range(250):
        move(state, world, wanted, dt=0.05)
    assert state.position[0, 0] > centre[0] + 1.0


def test_who_is_between_an_obstacle_and_a_wall_enters_neither() -> None:
    generator = np.random.default_rng(1)
    centre, radius = np.array([5.0, 1.45]), 1.0
    world = World(shapely.box(0, 0, 10, 10), obstacles={"pillar": Obstacle(radius=radius, position=centre)})
    state = agents_at(np.column_stack([generator.uniform(0.3, 3.5, 100), generator.uniform(0.25, 0.4, 100)]))
    for _ in range(300):
        before = state.position.copy()
        move(state, world, generator.normal((0.05, -0.02), 0.1, (100, 2)), dt=0.05)
        assert (least_distance(before, state.position, centre) >= radius + RADIUS - 1e-8).all()
        assert (state.position > 0.0).all()
    assert (state.position[:, 0] > 5.0).any()


@pytest.mark.parametrize("speed", [0.5, 3.0, 40.0, 400.0])
@pytest.mark.parametrize("dim", [2, 3])
def test_a_moving_obstacle_pushes_whoever_stands_in_its_way(speed: float, dim: int) -> None:
    dt = 0.05
    low, high = np.full(dim, -20.0), np.full(dim, 20.0)

    def where(time: float) -> list[float]:
        return [-10.0 + speed * time, *[0.0] * (dim - 1)]

    ram = {"ram": Obstacle(radius=1.0, motion=where)}
    world = World.box(low, high, obstacles=ram) if dim == 3 else World(bounds=(*low, *high), obstacles=ram)
    generator = np.random.default_rng(3)
    start = generator.uniform(-2, 2, (60, dim))
    state = agents_at(start)
    steps = math.ceil(18.0 / speed / dt)
    for step in range(steps):
        world.advance(step * dt, dt)
        move(state, world, np.zeros((60, dim)), dt=dt)
        ahead = np.array(where((step + 1) * dt))
        # Who was passed over within one long step has been swept along, not through.
        if (np.abs(ahead) < 18.0).all():
            assert (np.linalg.norm(state.position - ahead, axis=1) >= 1.2 - 1e-7).all()
    moved = np.linalg.norm(state.position - start, axis=1)
    in_the_way = np.linalg.norm(start[:, 1:], axis=1) < 1.2
    assert (moved[in_the_way] > 1e-6).all()
    assert (moved[~in_the_way] == 0.0).all()


def test_a_moving_obstacle_does_not_push_anybody_through_a_wall() -> None:
    world = World(
        shapely.box(0, 0, 10, 4),
        obstacles={"ram": Obstacle(radius=1.0, motion=lambda t: (2.0 + 1.0 * t, 2.0))},
    )
    state = agents_at(np.array([[9.0, 2.0], [9.7, 2.1], [8.0, 0.5], [9.5, 3.5]]))
    walls = world.walkable.boundary
    for step in range(200):
        world.advance(step * 0.05, 0.05)
        before = state.position.copy()
        move(state, world, np.full((4, 2), 0.01), dt=0.05)
        chords = shapely.linestrings(np.stack([before, state.position], axis=1))
        assert not shapely.intersects(chords[(before != state.position).any(axis=1)], walls).any()
        assert shapely.contains_xy(world.walkable, *state.position.T).all()


def test_who_finds_an_obstacle_put_upon_it_is_set_beside_it() -> None:
    world = World(shapely.box(0, 0, 10, 10), obstacles={"rock": Obstacle(radius=1.0, position=(5, 5))})
    state = agents_at(np.array([[5.0, 5.0], [5.5, 5.0], [4.9, 5.3]]))
    move(state, world, np.full((3, 2), 1e-3))
    assert (np.linalg.norm(state.position - 5.0, axis=1) >= 1.2 - 1e-8).all()
    assert (np.linalg.norm(state.position - 5.0, axis=1) < 1.3).all()
