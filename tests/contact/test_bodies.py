"""Solid bodies: whatever the models want, no two push into each other, also between two steps."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from body_distances import closest_in_step, contacts, distances
from tropel import Group, Simulation, World
from tropel.agents.state import AgentState, Steered
from tropel.broad_phase import CellGrid
from tropel.contact.bodies import Bodies
from tropel.contracts import Model, ModelDeclaration

Floats = NDArray[np.float64]


class Rush(Model):
    """Everybody runs at everybody, without looking."""

    def __init__(self, velocity: Floats, *, solid: bool) -> None:
        self.velocity = velocity
        self.declares = ModelDeclaration(solid_bodies=solid)

    def steer(self, moment, out):
        out.velocity[moment.members] = self.velocity[moment.members]


def crowd(seed: int, dim: int, speed: float, *, solid: bool = True, count: int = 60) -> Simulation:
    generator = np.random.default_rng(seed)
    world = World(shapely.box(0, 0, 6, 6)) if dim == 2 else World.box((0, 0, 0), (4, 4, 4))
    position = generator.uniform(0.6, 5.4 if dim == 2 else 3.4, (count, dim))
    velocity = generator.normal(0.0, speed, (count, dim))
    people = Group("people", positions=position, radius=generator.uniform(0.1, 0.3, count))
    return Simulation(world, people, local=Rush(velocity, solid=solid), dt=0.1, seed=seed)


@given(seed=st.integers(0, 10**6), dim=st.sampled_from([2, 3]), speed=st.sampled_from([0.1, 1.0, 8.0]))
@settings(max_examples=40, deadline=None)
def test_no_pair_comes_closer_than_touching_or_than_it_was(seed: int, dim: int, speed: float) -> None:
    sim = crowd(seed, dim, speed)
    for _ in range(8):
        before = sim.agents.position.copy()
        sim.step()
        allowed = np.minimum(contacts(sim.agents.radius), distances(before))
        assert (closest_in_step(before, sim.agents.position) >= allowed - 1e-8).all()


def test_bodies_that_are_not_solid_do_push_into_each_other() -> None:
    sim = crowd(1, 2, 1.0, solid=False)
    before = sim.agents.position.copy()
    sim.step()
    allowed = np.minimum(contacts(sim.agents.radius), distances(before))
    assert (closest_in_step(before, sim.agents.position) < allowed - 0.01).any()


def test_who_meets_nobody_goes_all_the_way() -> None:
    velocity = np.array([[1.0, 0.5], [-1.0, 0.2]])
    sim = Simulation(
        World(shapely.box(0, 0, 20, 20)),
        Group("two", positions=[(5.0, 5.0), (5.5, 12.0)]),
        local=Rush(velocity, solid=True),
        dt=0.1,
    )
    sim.step()
    np.testing.assert_allclose(sim.agents.velocity, velocity, atol=1e-12)


def test_of_two_whose_moves_collide_one_goes_on_and_it_is_not_always_the_same() -> None:
    state = AgentState(2)
    state.add(2, {"position": [(5.0, 5.0), (5.45, 5.0)]})
    world = World(bounds=(0, 0, 20, 20))
    winners = set()
    for step in range(20):
        steered = Steered.like(state, ())
        steered.position[:] += [(0.04, 0.0), (-0.04, 0.0)]
        Bodies(CellGrid.of(state, world), np.ones(2, dtype=bool), np.uint64(1), step).give_way(state, steered)
        moved = np.abs(steered.position - state.position)[:, 0]
        assert moved.min() < moved.max() == pytest.approx(0.04)
        winners.add(int(np.argmax(moved)))
    assert winners == {0, 1}


def test_two_who_walk_at_each_other_share_the_room_between_them() -> None:
    velocity = np.array([[1.0, 0.0], [-1.0, 0.0]])
    sim = Simulation(
        World(shapely.box(0, 0, 20, 20)),
        Group("two", positions=[(5.0, 5.0), (5.45, 5.0)]),
        local=Rush(velocity, solid=True),
        dt=0.1,
    )
    sim.step()
    np.testing.assert_allclose(sim.agents.velocity, 0.25 * velocity, atol=2e-3)


def test_a_move_into_somebody_becomes_a_move_along_it() -> None:
    # The one in the way stands down to the right, so the way along it leads up.
    velocity = np.array([[1.0, 0.0], [0.0, 0.0]])
    for seed in range(5):
        sim = Simulation(
            World(shapely.box(0, 0, 20, 20)),
            Group("two", positions=[(5.0, 5.0), (5.35, 4.8)]),
            local=Rush(velocity, solid=True),
            dt=0.05,
            seed=seed,
        )
        before = distances(sim.agents.position)[0]
        for _ in range(3):
            sim.step()
        assert sim.agents.position[0, 1] > 5.0
        assert sim.agents.position[0, 0] > 5.0
        assert distances(sim.agents.position)[0] >= min(before, 0.4) - 1e-8


def test_who_is_hemmed_in_shuffles() -> None:
    # Two stand in front so close that no way leads past them.
    positions = [(5.0, 5.0), (5.36, 5.19), (5.36, 4.81)]
    velocity = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    sim = Simulation(
        World(shapely.box(0, 0, 20, 20)), Group("three", positions=positions), local=Rush(velocity, solid=True), dt=0.05
    )
    walked = 0.0
    for _ in range(40):
        sim.step()
        walked += float(np.abs(sim.agents.velocity[0, 1])) * sim.dt
    assert walked > 0.02


def test_those_who_overlap_already_get_no_deeper_however_slowly_they_try() -> None:
    state = AgentState(2)
    state.add(2, {"position": [(5.0, 5.0), (5.3, 5.0)], "radius": 0.2})
    world = World(bounds=(0, 0, 20, 20))
    for step in range(1000):
        steered = Steered.like(state, ())
        steered.position[:, 0] = state.position[:, 0] + np.array([4e-10, -4e-10])
        Bodies(CellGrid.of(state, world), np.ones(2, dtype=bool), np.uint64(1), step).give_way(state, steered)
        state.position[:] = steered.position
    assert distances(state.position)[0] > 0.3 - 1e-9


def test_nobody_walks_into_somebody_who_stands() -> None:
    velocity = np.array([[3.0, 0.0], [0.0, 0.0]])
    for seed in range(10):
        sim = Simulation(
            World(shapely.box(0, 0, 20, 20)),
            Group("two", positions=[(5.0, 5.0), (5.45, 5.0)]),
            local=Rush(velocity, solid=True),
            dt=0.1,
            seed=seed,
        )
        sim.step()
        assert distances(sim.agents.position)[0] >= 0.4 - 1e-8
        assert (sim.agents.position[1] == (5.45, 5.0)).all()


@pytest.mark.parametrize("dim", [2, 3])
def test_the_number_of_threads_does_not_show(dim: int) -> None:
    generator = np.random.default_rng(5)
    state = AgentState(dim)
    count = 4000
    state.add(count, {"position": generator.uniform(0, 25 if dim == 2 else 10, (count, dim)), "radius": 0.2})
    world = World(bounds=(0, 0, 25, 25)) if dim == 2 else World.box((0, 0, 0), (10, 10, 10))
    moved = state.position + generator.normal(0, 0.1, (count, dim))
    ends = []
    for threads in (1, 2):
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        steered = Steered.like(state, ())
        steered.position[:] = moved
        Bodies(CellGrid.of(state, world), np.ones(count, dtype=bool), np.uint64(7), 3).give_way(state, steered)
        ends.append(steered.position.copy())
    np.testing.assert_array_equal(ends[0], ends[1])
    assert (ends[0] != moved).any()
