"""Bodies that press on each other: the nearest moves that go together, by another solver; and doors that empty."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from tropel import Dynamical, Group, Normal, Simulation, World
from tropel.agents.state import AgentState
from tropel.broad_phase import CellGrid
from tropel.contact.bodies import Bodies
from tropel.contracts import Model, ModelDeclaration

Floats = NDArray[np.float64]

SLACK = 5e-4  # share of the contact distance that is kept between those who press


class Rush(Model):
    """Everybody runs on, without looking."""

    declares = ModelDeclaration(solid_bodies=True)

    def __init__(self, velocity: Floats) -> None:
        self.velocity = velocity

    def steer(self, moment, out):
        out.velocity[moment.members] = self.velocity[moment.members]


def pressed(state: AgentState, world: World, moves: Floats) -> Floats:
    """What the wanted moves become, in the first step: nobody fidgets yet."""
    longest = float(np.linalg.norm(moves, axis=1).max())
    bodies = Bodies(CellGrid.of(state, world), np.ones(len(state), dtype=bool), np.uint64(1), 0)
    return bodies.solve_contacts(state, state.position + moves, longest, world.wall_grid(2.0), 0.05) - state.position


def people(position: Floats, radius: float = 0.2) -> AgentState:
    state = AgentState(position.shape[1])
    state.add(len(position), {"position": position, "radius": radius})
    return state


def nearest_moves(position: Floats, radius: float, wanted: Floats, wall_below: float | None = None) -> Floats:
    """The same by a general solver: least squares with one linear inequality for each pair, and one for the wall."""
    first, second = np.triu_indices(len(position), 1)
    offset = position[second] - position[first]
    apart = np.linalg.norm(offset, axis=1)
    room = np.maximum(apart - 2 * radius, 0.0) - SLACK * 2 * radius

    def constraints(flat: Floats) -> Floats:
        moves = flat.reshape(position.shape)
        free = room + ((moves[second] - moves[first]) * offset).sum(axis=1) / apart
        if wall_below is None:
            return free
        return np.concatenate([free, position[:, 1] - radius - wall_below + moves[:, 1]])

    found = minimize(
        lambda flat: 100 * ((flat - wanted.ravel()) ** 2).sum(),
        np.zeros(wanted.size),
        constraints={"type": "ineq", "fun": constraints},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.success
    return found.x.reshape(position.shape)


def cluster(seed: int, count: int, dim: int) -> tuple[Floats, Floats]:
    """Bodies of radius 0.2 near each other, and moves of at most 8 cm into each other."""
    generator = np.random.default_rng(seed)
    position = np.full((1, dim), 5.0)
    while len(position) < count:
        new = position[generator.integers(len(position))] + 0.41 * unit(generator.normal(size=dim))
        if np.linalg.norm(position - new, axis=1).min() >= 0.405:
            position = np.vstack([position, new])
    inwards = unit(position.mean(axis=0) - position + 1e-3 * generator.normal(size=position.shape))
    return position, inwards * generator.uniform(0.02, 0.08, (count, 1))


def unit(vectors: Floats) -> Floats:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@given(seed=st.integers(0, 10**6), count=st.integers(2, 6), dim=st.sampled_from([2, 3]))
@settings(max_examples=40, deadline=None)
def test_moves_are_the_nearest_ones_that_go_together(seed: int, count: int, dim: int) -> None:
    position, wanted = cluster(seed, count, dim)
    world = World(bounds=(0, 0, 10, 10)) if dim == 2 else World.box((0, 0, 0), (10, 10, 10))
    moves = pressed(people(position), world, wanted)
    expected = nearest_moves(position, 0.2, wanted)
    # Nobody is pressed to go faster than the fastest want to.
    fastest, length = np.linalg.norm(wanted, axis=1).max(), np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(moves, expected * np.minimum(fastest / np.maximum(length, 1e-300), 1.0), atol=4e-3)


def test_walls_hold_who_is_pressed_against_them() -> None:
    # Two on the floor, and a third who presses down between them: they are forced apart.
    position = np.array([[5.0, 0.2], [5.45, 0.2], [5.225, 0.535]])
    wanted = np.array([[0.005, 0.0], [-0.005, 0.0], [0.0, -0.05]])
    moves = pressed(people(position), World(shapely.box(0, 0, 10, 10)), wanted)
    np.testing.assert_allclose(moves, nearest_moves(position, 0.2, wanted, wall_below=0.0), atol=1e-3)
    assert moves[0, 0] < 0.0 < moves[1, 0]
    assert abs(moves[:2, 1]).max() < 1e-4


def test_who_presses_on_somebody_moves_them() -> None:
    position = np.array([[5.0, 5.0], [5.401, 5.0], [5.802, 5.0]])
    wanted = np.array([[0.06, 0.0], [0.01, 0.0], [0.01, 0.0]])
    moves = pressed(people(position), World(bounds=(0, 0, 10, 10)), wanted)
    assert moves[:, 0] == pytest.approx(80e-3 / 3, abs=1.5e-3)


def test_who_wants_to_stay_is_not_pressed_away() -> None:
    position = np.array([[5.0, 5.0], [5.4, 5.0]])
    moves = pressed(people(position), World(bounds=(0, 0, 10, 10)), np.array([[0.06, 0.0], [0.0, 0.0]]))
    assert (moves[1] == 0.0).all()
    assert moves[0, 0] == pytest.approx(0.0, abs=1e-3)


def test_nobody_is_pressed_to_go_faster_than_the_fastest_want() -> None:
    # A wedge driven between two others would fling them aside.
    position = np.array([[5.0, 5.0], [5.05, 5.401], [5.05, 4.599]])
    wanted = np.array([[0.06, 0.0], [-0.06, -0.001], [-0.06, 0.001]])
    moves = pressed(people(position), World(bounds=(0, 0, 10, 10)), wanted)
    assert np.linalg.norm(moves, axis=1).max() <= 0.06001


def test_held_is_the_time_without_headway() -> None:
    velocity = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    group = Group("three", positions=[(5.0, 5.0), (5.4, 5.0), (5.0, 9.0)])
    sim = Simulation(World(shapely.box(0, 0, 20, 20)), group, local=Rush(velocity), dt=0.05)
    for _ in range(4):
        sim.step()
    assert sim.agents.held == pytest.approx([0.2, 0.0, 0.0])


@pytest.mark.parametrize("width", [0.8, 1.2])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_crowd_that_presses_on_a_narrow_door_gets_through(width: float, seed: int) -> None:
    # Bodies 0.4 m wide make arches before doors of two and three times that. Sliding past each other, without pressing
    # and fidgeting, left such crowds standing for ever.
    low, high = 3.0 - width / 2, 3.0 + width / 2
    room, door = shapely.box(0, 0, 6, 6), shapely.box(6, low, 6.5, high)
    outside = shapely.box(6.5, low, 7.5, high)
    world = World(shapely.union_all([room, door, outside]), exits={"out": outside})
    crowd = Group("crowd", count=60, region=shapely.box(1, 0.5, 5.5, 5.5), desired_speed=Normal(1.34, 0.2, low=0.8))
    sim = Simulation(world, crowd, local=Dynamical(attraction=2.0), dt=0.05, seed=seed)
    summary = sim.run(until="empty", limit=300.0)
    assert len(sim.agents) == 0, f"{len(sim.agents)} are left after {summary.time:.0f} s"
