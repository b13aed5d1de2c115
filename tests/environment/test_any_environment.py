"""Steering models do not know the grid: an environment that only has lists serves them with the same neighbours.

Bits are the same where a model's sums do not depend on places in a run: Seek takes minima, ORCA sorts its neighbours,
CollisionFreeSpeed and SocialForce sum up a list that is made in the order of cells and ids. So does Dynamical as long
as that list is not weighed in parts, which happens beyond 48 neighbours. Flocking adds up lanes of a vector, so that
places in a run matter. There results agree within rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute_force import BruteForce

import tropel
from tropel.agents.state import Steered
from tropel.contracts import Moment
from tropel.testing import check_neighbours

STEPS = 40


def room(model: Any, environment: Any, *, seed: int, people: int = 70) -> tropel.Simulation:
    """People who cross a room with a pillar, two ways."""
    import shapely

    world = tropel.World(
        shapely.box(0, 0, 14, 9),
        obstacles={"pillar": tropel.Obstacle(radius=0.6, position=(7.0, 4.5))},
        targets={"west": (0.5, 4.5), "east": (13.5, 4.5)},
    )
    groups = [
        tropel.Group("there", count=people, region=shapely.box(0, 0, 6, 9), goal="east"),
        tropel.Group("back", count=people, region=shapely.box(8, 0, 14, 9), goal="west"),
    ]
    return tropel.Simulation(world, groups, local=model, environment=environment, seed=seed, dt=0.05, threads=1)


def quiet_room(model: Any, environment: Any, *, seed: int) -> tropel.Simulation:
    return room(model, environment, seed=seed, people=24)


def box(model: Any, environment: Any, *, seed: int) -> tropel.Simulation:
    """The same in space."""
    world = tropel.World.box((0, 0, 0), (8, 6, 5), targets={"there": (7.0, 3.0, 2.5)})
    return tropel.Simulation(
        world,
        tropel.Group("all", count=45, goal="there", sense_radius=1.5),
        local=model,
        environment=environment,
        seed=seed,
        dt=0.05,
        threads=1,
    )


def flock(environment: Any, *, dim: int, periodic: bool, seed: int, **parameters: Any) -> tropel.Simulation:
    world = tropel.World.box((0.0,) * dim, (9.0,) * dim, periodic=periodic)
    groups = [
        tropel.Group("some", count=150, sense_radius=1.2, radius=0.02, desired_speed=1.0),
        tropel.Group("others", count=60, sense_radius=1.2, radius=0.02, desired_speed=1.0, follow="some"),
    ]
    model = tropel.Flocking(**parameters)
    sim = tropel.Simulation(world, groups, local=model, environment=environment, seed=seed, dt=0.05, threads=1)
    draws = np.random.default_rng(seed).normal(size=sim.agents.velocity.shape)
    sim.agents.velocity[:] = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    return sim


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("scene", "make"),
    [
        (room, tropel.Seek),
        (room, tropel.CollisionFreeSpeed),
        (room, tropel.ORCA),
        (room, tropel.SocialForce),
        (quiet_room, tropel.Dynamical),
        (box, tropel.Seek),
        (box, tropel.Dynamical),
    ],
)
def test_models_move_to_the_same_bits_by_lists(scene: Any, make: Any, seed: int) -> None:
    on_grid, by_lists = scene(make(), tropel.Grid(), seed=seed), scene(make(), BruteForce(), seed=seed)
    start = on_grid.agents.position.copy()
    for step in range(STEPS):
        on_grid.step()
        by_lists.step()
        assert np.diff(on_grid.sense().csr().indptr).max() <= 48 or make is not tropel.Dynamical
        for column in ("position", "velocity", "heading"):
            ours, theirs = on_grid.agents.columns[column], by_lists.agents.columns[column]
            assert np.array_equal(ours, theirs), f"{column} differs in step {step}"
    assert np.linalg.norm(on_grid.agents.position - start, axis=1).mean() > 0.3, "nobody got anywhere"


def test_dense_crowds_of_the_dynamical_model_agree_within_rounding() -> None:
    sim = room(tropel.Dynamical(), tropel.Grid(), seed=0)
    for _ in range(36):
        sim.step()
    assert np.diff(sim.sense().csr().indptr).max() > 48, "nobody's list is weighed in parts"
    one, other = steered(sim, tropel.Grid()), steered(sim, BruteForce())
    assert np.abs(one.velocity - other.velocity).max() <= 1e-12
    assert np.abs(one.heading - other.heading).max() <= 1e-12


def steered(sim: tropel.Simulation, environment: Any) -> Steered:
    """One call of the model in the state as it is."""
    model = sim.layers.models[0]
    moment = Moment.of(sim.agents, sim.world, environment=environment, step=sim.step_number, directions=sim.directions)
    out = Steered.like(sim.agents, model.memory_names)
    model.steer(moment, out)
    return out


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"blind_angle": 1.5},
        {"nearest": 5},
        {"avoid": ["some"], "flee": ["others"], "flee_radius": 2.5},
        {"chase": ["some"], "blind_angle": 2.0},
    ],
)
def test_flocks_agree_within_rounding_by_lists(dim: int, periodic: bool, parameters: dict[str, Any]) -> None:
    sim = flock(tropel.Grid(), dim=dim, periodic=periodic, seed=3, **parameters)
    for _ in range(5):
        sim.step()
    one, other = steered(sim, tropel.Grid()), steered(sim, BruteForce())
    assert np.abs(one.velocity - other.velocity).max() <= 1e-12
    assert np.abs(one.velocity - sim.agents.velocity).max() > 1e-3, "nobody was steered"


def test_brute_force_keeps_the_promises_of_an_environment() -> None:
    check_neighbours(BruteForce())


def test_contact_and_collisions_do_not_need_the_grid() -> None:
    """Solid bodies and the watch over collisions use the engine's own cells."""
    on_grid = room(tropel.Seek(), tropel.Grid(cell=0.7), seed=5)
    by_lists = room(tropel.Seek(), BruteForce(), seed=5)
    for _ in range(STEPS):
        on_grid.step()
        by_lists.step()
    assert len(by_lists.collisions) == len(on_grid.collisions)
    apart = np.linalg.norm(by_lists.agents.position[:, None] - by_lists.agents.position, axis=2)
    contact = by_lists.agents.radius[:, None] + by_lists.agents.radius
    np.fill_diagonal(apart, np.inf)
    assert (apart - contact).min() > -1e-6
