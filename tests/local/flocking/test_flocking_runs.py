"""Flocks over time: they align, keep out of obstacles, split around a column and come together again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

import tropel


def polarisation(velocity: np.ndarray) -> float:
    speed = np.linalg.norm(velocity, axis=1)
    return float(np.linalg.norm((velocity / speed[:, None]).mean(axis=0)))


@pytest.mark.parametrize("dim", [2, 3])
def test_a_flock_with_random_headings_aligns_and_without_alignment_does_not(dim: int) -> None:
    def after(**parameters: Any) -> float:
        side = 10.0 if dim == 2 else 5.0
        world = tropel.World.box((0.0,) * dim, (side,) * dim, periodic=True)
        group = tropel.Group("flock", count=300, sense_radius=1.5, radius=0.02, desired_speed=1.0, goal="none")
        sim = tropel.Simulation(world, group, local=tropel.Flocking(**parameters), dt=0.1, watch_collisions=False)
        v = np.random.default_rng(0).normal(size=sim.agents.velocity.shape)
        sim.agents.velocity[:] = v / np.linalg.norm(v, axis=1)[:, None]
        assert polarisation(sim.agents.velocity) < 0.15
        for _ in range(300):
            sim.step()
        return polarisation(sim.agents.velocity)

    assert after() > 0.9
    assert after(alignment=0.0) < 0.4


def columns(dim: int, side: float, count: int) -> dict[str, tropel.Obstacle]:
    """Round obstacles in random places that leave gaps."""
    rng = np.random.default_rng(11)
    places: list[np.ndarray] = []
    while len(places) < count:
        place = rng.uniform(1.0, side - 1.0, dim)
        if all(np.linalg.norm(place - other) > 1.6 for other in places):
            places.append(place)
    return {f"o{k}": tropel.Obstacle(radius=0.5, position=tuple(place)) for k, place in enumerate(places)}


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("periodic", [False, True])
def test_no_boid_is_ever_inside_an_obstacle(dim: int, periodic: bool) -> None:
    side = 10.0 if dim == 2 else 6.0
    obstacles = columns(dim, side, 12)
    world = tropel.World.box((0.0,) * dim, (side,) * dim, periodic=periodic, obstacles=obstacles)
    group = tropel.Group("flock", count=150, sense_radius=1.5, radius=0.05, desired_speed=2.0, goal="none")
    sim = tropel.Simulation(world, group, local=tropel.Flocking(), dt=0.1, watch_collisions=False)
    centres = np.array([o.position for o in obstacles.values()])
    for _ in range(400):
        sim.step()
        d = sim.agents.position[:, None] - centres
        if periodic:
            d -= side * np.round(d / side)
        assert np.linalg.norm(d, axis=2).min() > (0.5 + 0.05) * (1.0 - 1e-6)
        assert ((sim.agents.position >= 0.0) & (sim.agents.position <= side)).all()


def closest_pass(dim: int, beside: float, **parameters: Any) -> tuple[float, np.ndarray]:
    """How near a boid that flies at a column comes to its surface, and where it is then."""
    start = np.zeros(dim)
    start[1] = beside
    column = np.zeros(dim)
    column[0] = 8.0
    world = tropel.World.box(
        (-1.0, *(-9.0,) * (dim - 1)), (20.0, *(9.0,) * (dim - 1)), open=True,
        obstacles={"column": tropel.Obstacle(radius=1.0, position=tuple(column))},
    )  # fmt: skip
    group = tropel.Group("boid", positions=[start], sense_radius=4.0, radius=0.1, desired_speed=2.0)
    sim = tropel.Simulation(world, group, local=tropel.Flocking(**parameters), dt=0.05, watch_collisions=False)
    sim.agents.velocity[0, 0] = 2.0
    nearest, where = np.inf, start
    for _ in range(120):
        sim.step()
        gap = float(np.linalg.norm(sim.agents.position[0] - column)) - 1.1
        if gap < nearest:
            nearest, where = gap, sim.agents.position[0].copy()
    return nearest, where


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("beside", [-0.6, -0.05, 0.05, 0.6])
def test_a_boid_turns_to_the_freer_side_of_what_is_ahead(dim: int, beside: float) -> None:
    steers, where = closest_pass(dim, beside, obstacle_repulsion=0.0)
    assert steers > 0.05
    assert np.sign(where[1]) == np.sign(beside)
    blind, _ = closest_pass(dim, beside, obstacle_repulsion=0.0, obstacle_steering=0.0)
    assert blind < 1e-3


@pytest.mark.parametrize("dim", [2, 3])
def test_who_has_a_planned_direction_turns_to_its_side_if_that_is_free(dim: int) -> None:
    def turned(goal: str, target: float) -> float:
        rest = (0.0,) * (dim - 2)
        world = tropel.World.box(
            (-9.0, *(-9.0,) * (dim - 1)), (9.0, *(9.0,) * (dim - 1)), open=True,
            obstacles={"column": tropel.Obstacle(radius=1.0, position=(2.0, 0.0, *rest))},
            targets={"aim": tropel.Target(position=(0.1, target, *rest), radius=0.1)},
        )  # fmt: skip
        group = tropel.Group(
            "boid", positions=[(0.0, 0.3, *rest)], goal=goal, sense_radius=4.0, radius=0.1, desired_speed=2.0
        )
        model = tropel.Flocking(obstacle_repulsion=0.0, goal_pull=0.0)
        sim = tropel.Simulation(world, group, local=model, dt=0.05, watch_collisions=False)
        sim.agents.velocity[0, 0] = 2.0
        sim.step()
        return float(sim.agents.velocity[0, 1])

    assert turned("none", -6.0) > 0.01
    assert turned("aim", 6.0) > 0.01
    assert turned("aim", -6.0) < -0.01


@pytest.mark.parametrize("dim", [2, 3])
def test_a_boid_in_a_box_steers_away_from_its_walls(dim: int) -> None:
    def touches(**parameters: Any) -> int:
        world = tropel.World.box((0.0,) * dim, (12.0,) * dim)
        group = tropel.Group("boids", count=20, sense_radius=3.0, radius=0.1, desired_speed=1.0, goal="none")
        sim = tropel.Simulation(world, group, local=tropel.Flocking(**parameters), dt=0.1, watch_collisions=False)
        total = 0
        for _ in range(300):
            sim.step()
            total += int(((sim.agents.position < 0.101) | (sim.agents.position > 11.899)).any(axis=1).sum())
        return total

    assert touches() == 0
    assert touches(obstacle_repulsion=0.0, obstacle_steering=0.0) > 100


def clusters(position: np.ndarray, within: float) -> int:
    """How many sub-flocks there are."""
    shapes = shapely.union_all(shapely.buffer(shapely.points(position), within / 2.0))
    return len(getattr(shapes, "geoms", [shapes]))


def around_a_column(**parameters: Any) -> tuple[int, int, np.ndarray]:
    """How often boids were seen above and below a column on their way, and where they are after it."""
    rng = np.random.default_rng(3)
    x = np.array([5.0, 0.0]) + rng.uniform(-2.0, 2.0, (120, 2))
    world = tropel.World.box(
        (0.0, -15.0), (60.0, 15.0), open=True,
        obstacles={"column": tropel.Obstacle(radius=1.5, position=(15.0, 0.0))},
        targets={"far": tropel.Target(position=(100.0, 0.0))},
    )  # fmt: skip
    groups = [
        tropel.Group("guide", positions=[(7.5, 0.1)], goal="far", sense_radius=3.0, radius=0.1, desired_speed=1.0),
        tropel.Group("rest", positions=x, goal="none", follow="guide", sense_radius=3.0, radius=0.1, desired_speed=1.0),
    ]
    sim = tropel.Simulation(world, groups, local=tropel.Flocking(**parameters), dt=0.1, watch_collisions=False)
    sim.agents.velocity[:, 0] = 1.0
    above = below = 0
    for _ in range(450):
        sim.step()
        beside = np.abs(sim.agents.position[:, 0] - 15.0) < 0.5
        above += int((beside & (sim.agents.position[:, 1] > 0.0)).sum())
        below += int((beside & (sim.agents.position[:, 1] < 0.0)).sum())
    return above, below, sim.agents.position.copy()


def test_a_flock_splits_around_a_column_and_comes_together_again_behind_it() -> None:
    above, below, position = around_a_column()
    assert min(above, below) > 100
    assert position[:, 0].min() > 17.0
    assert clusters(position, 1.5) == 1
    assert np.ptp(position[:, 1]) < 10.0
    # Nothing brings them together when neither mates nor the leader draw them.
    _, _, scattered = around_a_column(cohesion=0.0, alignment=0.0, leader_pull=0.0)
    assert clusters(scattered, 1.5) > 5
