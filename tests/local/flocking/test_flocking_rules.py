"""Each rule of `Flocking` alone, and all together, against brute force in plain NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flock_reference import OFF, Floats, Reference

import tropel

RULES = ("separation", "cohesion", "alignment")


def random_flock(dim: int, count: int = 60, *, seed: int = 1, side: float = 6.0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.2, side - 0.2, (count, dim)), rng.normal(size=(count, dim))


def open_world(dim: int, side: float = 6.0, **kwargs: Any) -> tropel.World:
    # Far from the sides, which in 3D are walls.
    if dim == 3:
        return tropel.World.box((-40.0,) * 3, (side + 40.0,) * 3, **kwargs)
    return tropel.World(bounds=(0.0, 0.0, side, side), **kwargs)


def stepped(
    position: Floats, velocity: Floats, *, world: Any = None, planning: Any = None, **parameters: Any
) -> tropel.Simulation:
    """A flock after one step of 0.1 s; it senses 2 m and flies at most 2 m/s."""
    dim = position.shape[1]
    parameters = OFF | {"max_force": 1e9, "least_speed": 0.0} | parameters
    group = tropel.Group("flock", positions=position, sense_radius=2.0, radius=0.05, desired_speed=2.0)
    sim = tropel.Simulation(
        world or open_world(dim), group, local=tropel.Flocking(**parameters), planning=planning, dt=0.1,
        watch_collisions=False,
    )  # fmt: skip
    sim.agents.velocity[:] = velocity
    sim.step()
    return sim


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("rule", RULES)
def test_each_rule_alone_is_that_of_brute_force(dim: int, rule: str) -> None:
    x, v = random_flock(dim)
    expected = Reference(x, v, 2.0, weights={rule: 0.7}).new_velocity()
    sim = stepped(x, v, **{rule: 0.7})
    np.testing.assert_allclose(sim.agents.velocity, expected, rtol=0, atol=1e-10)
    still = stepped(x, v).agents.velocity
    assert np.abs(still - expected).max() > 1e-2


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("combine", ["sum", "priorities"])
def test_all_rules_with_caps_are_those_of_brute_force(dim: int, combine: str) -> None:
    x, v = random_flock(dim, 80)
    weights = {"separation": 1.3, "cohesion": 0.9, "alignment": 2.0}
    common = {"separation_distance": 1.4, "max_force": 1.5, "least_speed": 0.6, "blind_angle": 1.2}
    reference = Reference(x, v, 2.0, weights=weights, priorities=combine == "priorities", **common)
    sim = stepped(x, v, combine=combine, **weights, **common)
    np.testing.assert_allclose(sim.agents.velocity, reference.new_velocity(), rtol=0, atol=1e-10)
    speed = np.linalg.norm(sim.agents.velocity, axis=1)
    assert speed.min() > 1.2 - 1e-9
    assert speed.max() < 2.0 + 1e-9


@pytest.mark.parametrize("dim", [2, 3])
def test_nobody_is_seen_in_the_blind_cone_behind(dim: int) -> None:
    x, v = random_flock(dim)
    for angle in (0.5, math.pi, 5.0):
        expected = Reference(x, v, 2.0, weights={"cohesion": 1.0}, blind_angle=angle).new_velocity()
        sim = stepped(x, v, cohesion=1.0, blind_angle=angle)
        np.testing.assert_allclose(sim.agents.velocity, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("many", [1, 4, 7])
@pytest.mark.parametrize("angle", [0.0, 2.0])
def test_the_nearest_mates_are_those_of_brute_force(dim: int, many: int, angle: float) -> None:
    x, v = random_flock(dim, 100)
    weights = dict.fromkeys(RULES, 0.8)
    expected = Reference(x, v, 2.0, weights=weights, nearest=many, blind_angle=angle).new_velocity()
    sim = stepped(x, v, nearest=many, blind_angle=angle, **weights)
    np.testing.assert_allclose(sim.agents.velocity, expected, rtol=0, atol=1e-10)


def test_of_mates_that_are_equally_near_those_with_lower_ids_are_taken() -> None:
    # A lattice, where most distances come four times.
    x = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    x = x[np.random.default_rng(5).permutation(len(x))]
    v = np.random.default_rng(6).normal(size=x.shape)
    weights = dict.fromkeys(RULES, 0.8)
    for many in (1, 2, 3, 6):
        expected = Reference(x, v, 2.0, weights=weights, nearest=many).new_velocity()
        sim = stepped(x, v, nearest=many, **weights)
        np.testing.assert_allclose(sim.agents.velocity, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dim", [2, 3])
def test_who_has_a_goal_is_drawn_to_it_and_followers_to_their_leader(dim: int) -> None:
    x, v = random_flock(dim, 30)
    spot = np.full(dim, 5.0)
    world = open_world(dim, targets={"spot": tropel.Target(position=tuple(spot), absorbs=False)})
    groups = [
        tropel.Group("guide", positions=x[:3], goal="spot", sense_radius=2.0, radius=0.05, desired_speed=2.0),
        tropel.Group(
            "rest", positions=x[3:], goal="none", follow="guide", sense_radius=2.0, radius=0.05, desired_speed=2.0
        ),
    ]
    model = tropel.Flocking(**OFF | {"goal_pull": 0.9, "leader_pull": 0.5, "max_force": 1e9, "least_speed": 0.0})
    sim = tropel.Simulation(world, groups, local=model, dt=0.1, watch_collisions=False)
    sim.agents.velocity[:] = v
    sim.step()
    directions = np.zeros_like(x)
    directions[:3] = (spot - x[:3]) / np.linalg.norm(spot - x[:3], axis=1)[:, None]
    leader = np.r_[[-1] * 3, np.argmin(np.linalg.norm(x[3:, None] - x[None, :3], axis=2), axis=1)]
    weights = {"goal_pull": 0.9, "leader_pull": 0.5}
    expected = Reference(x, v, 2.0, weights=weights, directions=directions, leader=leader).new_velocity()
    np.testing.assert_allclose(sim.agents.velocity, expected, rtol=0, atol=1e-10)


def test_weights_and_caps_may_differ_from_agent_to_agent_and_be_changed_by_events() -> None:
    x, v = random_flock(2)
    rng = np.random.default_rng(3)
    own = {"cohesion": rng.uniform(0, 2, len(x)), "alignment": rng.uniform(0, 2, len(x))}
    group = tropel.Group("flock", positions=x, sense_radius=2.0, radius=0.05, desired_speed=2.0, parameters=own)
    model = tropel.Flocking(**OFF | {"separation": 0.5, "max_force": 1e9, "least_speed": 0.0})
    sim = tropel.Simulation(open_world(2), group, local=model, dt=0.1, watch_collisions=False)
    sim.agents.velocity[:] = v
    sim.at(0.1, tropel.events.SetParameter(name="separation", value=2.0))
    for separation in (0.5, 2.0):
        before = sim.agents.position.copy(), sim.agents.velocity.copy()
        sim.step()
        expected = Reference(*before, 2.0, weights=own | {"separation": separation}).new_velocity()
        np.testing.assert_allclose(sim.agents.velocity, expected, rtol=0, atol=1e-10)


def test_who_stands_still_and_feels_nothing_sets_off_at_the_least_speed() -> None:
    x = np.array([[1.0, 1.0], [1.0, 5.0], [5.0, 3.0]])
    sim = stepped(x, np.zeros_like(x), least_speed=0.5)
    np.testing.assert_allclose(np.linalg.norm(sim.agents.velocity, axis=1), 1.0)
    headings = np.arctan2(*sim.agents.velocity.T)
    assert len(np.unique(np.round(headings, 6))) == 3


def test_boids_at_one_place_do_not_push_each_other_to_infinity() -> None:
    x = np.array([[1.0, 1.0], [1.0, 1.0], [1.0 + 1e-12, 1.0], [3.0, 3.0]])
    sim = stepped(x, np.full((4, 2), 0.1), separation=1.0)
    assert np.isfinite(sim.agents.velocity).all()


def test_who_waits_does_not_move_before_its_time() -> None:
    x, _ = random_flock(2, 20)
    group = tropel.Group("flock", positions=x, sense_radius=2.0, radius=0.05, delay=np.repeat([0.0, 0.15], 10))
    sim = tropel.Simulation(open_world(2), group, local=tropel.Flocking(), dt=0.1)
    sim.step()
    sim.step()
    assert (sim.agents.position[10:] == x[10:]).all()
    assert (sim.agents.position[:10] != x[:10]).any(axis=1).all()
    sim.step()
    assert (sim.agents.position != x).any(axis=1).all()
