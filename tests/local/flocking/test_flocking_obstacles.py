"""Obstacles as boids feel them, against plain NumPy: how they are repelled, and which way they turn."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from flock_reference import OFF, Floats, Reference
from obstacle_reference import Ground, steering

import tropel
from tropel.contracts import Declaration, Guidance, Moment

SIDE = 12.0


class GivenWishes(tropel.Planner):
    """A planner that hands out directions that were given to it."""

    declares = Declaration(periodic_space=True)

    def __init__(self, wishes: Floats) -> None:
        self.wishes = wishes

    def direct(self, moment: Moment, out: Guidance) -> None:
        out.directions[moment.members] = self.wishes[moment.members]


def stepped(world: tropel.World, x: Floats, v: Floats, wishes: Floats, *, radius: float, **rules: Any) -> Floats:
    """Velocities after a step of a millisecond, of boids that feel obstacles and not each other."""
    group = tropel.Group("boids", positions=x, sense_radius=1.0, radius=radius, desired_speed=50.0, goal="none")
    model = tropel.Flocking(**OFF | {"max_force": 1e9, "least_speed": 0.0} | rules)
    sim = tropel.Simulation(world, group, local=model, planning=GivenWishes(wishes), dt=1e-3, watch_collisions=False)
    sim.agents.velocity[:] = v
    sim.step()
    return sim.agents.velocity.copy()


def scattered_discs(dim: int, count: int) -> list[tuple[Floats, float]]:
    rng = np.random.default_rng(21)
    return [(rng.uniform(0.5, SIDE - 0.5, dim), float(rng.uniform(0.1, 0.5))) for _ in range(count)]


def with_images(discs: list[tuple[Floats, float]], dim: int) -> list[tuple[Floats, float]]:
    """Obstacles of a periodic box, and all those beyond its seams."""
    shifts = itertools.product((0.0, -SIDE, SIDE), repeat=dim)
    everywhere = [(centre + shift, size) for shift in map(np.array, shifts) for centre, size in discs]
    return [(c, size) for c, size in everywhere if np.linalg.norm(np.clip(c, 0.0, SIDE) - c) < size + 2.0]


def obstacles_of(discs: list[tuple[Floats, float]]) -> dict[str, tropel.Obstacle]:
    return {f"o{k}": tropel.Obstacle(radius=size, position=tuple(centre)) for k, (centre, size) in enumerate(discs)}


def free_places(dim: int, count: int, ground: Ground, radius: float) -> Floats:
    """Random places where a body fits and reaches nothing in a step."""
    x = np.random.default_rng(22).uniform(radius + 0.01, SIDE - radius - 0.01, (count, dim))
    room = [min([np.linalg.norm(p - c) - size for c, size in ground.discs], default=np.inf) for p in x]
    along = [(a, b - a) for a, b in ground.walls]
    for k, place in enumerate(x):
        for a, way in along:
            nearest = a + np.clip((place - a) @ way / (way @ way), 0.0, 1.0) * way
            room[k] = min(room[k], float(np.linalg.norm(place - nearest)))
    return x[np.array(room) > radius + 0.01]


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("radius", [0.05, 0.4])
@pytest.mark.parametrize("periodic", [False, True])
def test_repulsion_is_that_of_brute_force_also_for_wide_bodies(dim: int, radius: float, periodic: bool) -> None:
    discs = scattered_discs(dim, 12 if dim == 2 else 40)
    world = tropel.World.box((0.0,) * dim, (SIDE,) * dim, open=True, periodic=periodic, obstacles=obstacles_of(discs))
    discs = with_images(discs, dim) if periodic else discs
    x = free_places(dim, 1500, Ground(discs=discs), radius)
    v = 0.2 * np.random.default_rng(23).normal(size=x.shape)
    got = stepped(world, x, v, np.zeros_like(x), radius=radius, obstacle_repulsion=0.9)
    reference = Reference(
        x, v, 1.0, top=50.0, dt=1e-3, weights={"obstacle_repulsion": 0.9}, obstacles=discs, radius=radius
    )
    expected = np.array([v[i] + 1e-3 * 0.9 * reference.repulsion(i) for i in range(len(x))])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10)
    assert (np.abs(expected - v).max(axis=1) > 1e-5).sum() > 100


def grounds(dim: int, periodic: bool) -> tuple[tropel.World, Ground]:
    """Round obstacles with walls between them, or in a box; in a periodic box there are no walls."""
    if periodic:
        discs = scattered_discs(dim, 25 if dim == 2 else 120)
        world = tropel.World.box((0.0,) * dim, (SIDE,) * dim, periodic=True, obstacles=obstacles_of(discs))
        return world, Ground(discs=with_images(discs, dim))
    if dim == 3:
        discs = scattered_discs(3, 120)
        corners = np.zeros(3), np.full(3, SIDE)
        return tropel.World.box(*corners, obstacles=obstacles_of(discs)), Ground(discs=discs, box=corners)
    discs = scattered_discs(2, 25)
    ends = np.random.default_rng(24).uniform(1.0, SIDE - 1.0, (8, 2, 2))
    world = tropel.World(
        bounds=(0.0, 0.0, SIDE, SIDE), walls=[[tuple(a), tuple(b)] for a, b in ends], obstacles=obstacles_of(discs)
    )
    return world, Ground(discs=discs, walls=[(a, b) for a, b in ends])


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize(("radius", "periodic"), [(0.05, False), (0.2, False), (0.2, True)])
def test_boids_turn_as_brute_force_says(dim: int, radius: float, periodic: bool) -> None:
    world, ground = grounds(dim, periodic)
    x = free_places(dim, 400, ground, radius)
    rng = np.random.default_rng(25)
    v = rng.normal(size=x.shape)
    # Every second one wants to go somewhere.
    wishes = rng.normal(size=x.shape)
    wishes /= np.linalg.norm(wishes, axis=1, keepdims=True)
    wishes[::2] = 0.0
    got = stepped(world, x, v, wishes, radius=radius, obstacle_steering=3.0, look_ahead=0.8)
    expected = v.copy()
    for i in range(len(x)):
        turn = steering(x[i], v[i], wishes[i], ground, radius=radius, reach=1.0, look_ahead=0.8)
        expected[i] += 1e-3 * 3.0 * turn
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)
    assert (np.abs(expected - v).max(axis=1) > 1e-5).sum() > 40
