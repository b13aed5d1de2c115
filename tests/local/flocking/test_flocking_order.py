"""What must not matter to a flock: rows, ids, threads, interruptions, and where in space it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flock_reference import Floats, Reference

import tropel
from tropel.agents.state import AgentState, Steered
from tropel.contracts import Moment
from tropel.testing import check_steering
from tropel.testing.situations import with_columns

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "view": {"blind_angle": 1.5},
    "nearest": {"nearest": 6},
    "in turn": {"combine": "priorities", "blind_angle": 1.0},
}
#: How the two groups of `flock` stand to each other.
RELATIONS: dict[str, dict[str, Any]] = {
    "avoid and flee": {"avoid": ["guides"], "flee": ["rest"], "flee_radius": 1.3},
    "chase": {"chase": ["guides"], "nearest": 3, "blind_angle": 2.0},
}


def flock(dim: int, count: int, *, threads: int = 1, seed: int = 0, **parameters: Any) -> tropel.Simulation:
    """Two groups, one led, among obstacles in a periodic box."""
    side = (count / 8.0) ** (1.0 / dim) * (2.0 if dim == 2 else 1.5)
    centre = (side / 2.0,) * dim
    world = tropel.World.box(
        (0.0,) * dim, (side,) * dim, periodic=True, obstacles={"o": tropel.Obstacle(radius=0.3, position=centre)}
    )
    groups = [
        tropel.Group("guides", count=count // 10, sense_radius=1.0, radius=0.02, desired_speed=1.0),
        tropel.Group("rest", count=count - count // 10, sense_radius=1.0, radius=0.02, desired_speed=1.0,
                     follow="guides"),
    ]  # fmt: skip
    model = tropel.Flocking(**parameters)
    sim = tropel.Simulation(world, groups, local=model, dt=0.05, threads=threads, seed=seed, watch_collisions=False)
    rng = np.random.default_rng(seed)
    v = rng.normal(size=sim.agents.velocity.shape)
    sim.agents.velocity[:] = v / np.linalg.norm(v, axis=1)[:, None]
    return sim


def steered(sim: tropel.Simulation, state: AgentState) -> Steered:
    """One call of the model for all agents of a state."""
    model = sim.all_layers()[-1]
    moment = Moment.of(state, sim.world, environment=tropel.Grid(cell=1.0), dt=0.05, step=3)
    out = Steered.like(state, [])
    model.prepare(moment)
    model.steer(moment, out)
    return out


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("variant", VARIANTS | RELATIONS)
def test_rows_permuted_with_their_ids_give_the_same_bits(dim: int, variant: str) -> None:
    sim = flock(dim, 300, **(VARIANTS | RELATIONS)[variant])
    before = steered(sim, sim.agents)
    order = np.random.default_rng(9).permutation(len(sim.agents))
    mixed = with_columns(sim.agents, {name: column[order] for name, column in sim.agents.columns.items()})
    after = steered(sim, mixed)
    assert (after.velocity == before.velocity[order]).all()
    assert (after.heading == before.heading[order]).all()


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("variant", VARIANTS | RELATIONS)
def test_permuted_ids_give_the_same_step(dim: int, variant: str) -> None:
    sim = flock(dim, 300, **(VARIANTS | RELATIONS)[variant])
    before = steered(sim, sim.agents)
    order = np.random.default_rng(9).permutation(len(sim.agents))
    columns = {name: column[order] for name, column in sim.agents.columns.items()}
    # Who had the id order[k] has the id k now; leaders are named by their new ids.
    columns["leader"] = np.where(columns["leader"] < 0, -1, np.argsort(order)[columns["leader"]])
    columns["id"] = np.arange(len(order))
    after = steered(sim, with_columns(sim.agents, columns))
    np.testing.assert_allclose(after.velocity, before.velocity[order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS | RELATIONS)
def test_one_thread_and_two_give_the_same_bits(variant: str) -> None:
    runs = [flock(2, 4000, threads=threads, **(VARIANTS | RELATIONS)[variant]) for threads in (1, 2)]
    for _ in range(5):
        for sim in runs:
            sim.step()
    assert runs[0].state_hash() == runs[1].state_hash()


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("variant", ["plain", *RELATIONS])
def test_a_resumed_run_goes_on_as_if_it_had_not_stopped(dim: int, variant: str, tmp_path: Any) -> None:
    parameters = (VARIANTS | RELATIONS)[variant]
    sim = flock(dim, 200, **parameters)
    for _ in range(10):
        sim.step()
    sim.save(tmp_path / "flock.npz")
    other = flock(dim, 200, **parameters)
    other.restore(tmp_path / "flock.npz")
    for _ in range(10):
        sim.step()
        other.step()
    assert sim.state_hash() == other.state_hash()


def in_open_space(x: Floats, v: Floats, **parameters: Any) -> Floats:
    """Velocities of a flock after ten steps."""
    dim = x.shape[1]
    far = 30.0
    world = tropel.World.box(
        (-far,) * dim, (far,) * dim, open=True, obstacles={"o": tropel.Obstacle(radius=0.8, position=(0.0,) * dim)}
    )
    group = tropel.Group("flock", positions=x, sense_radius=2.0, radius=0.05, desired_speed=1.0)
    sim = tropel.Simulation(world, group, local=tropel.Flocking(**parameters), dt=0.05, watch_collisions=False)
    sim.agents.velocity[:] = v
    for _ in range(10):
        sim.step()
    return sim.agents.velocity.copy()


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("mirrored", [False, True])
def test_turned_and_mirrored_flocks_fly_alike(dim: int, variant: str, mirrored: bool) -> None:
    rng = np.random.default_rng(7)
    x, v = rng.uniform(-4.0, 4.0, (60, dim)), rng.normal(size=(60, dim))
    x = x[np.linalg.norm(x, axis=1) > 1.0]
    v = v[: len(x)]
    turn, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    if (np.linalg.det(turn) < 0) != mirrored:
        turn[:, 0] *= -1.0
    straight, turned = (
        in_open_space(x, v, **VARIANTS[variant]),
        in_open_space(x @ turn.T, v @ turn.T, **VARIANTS[variant]),
    )
    np.testing.assert_allclose(turned, straight @ turn.T, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("nearest", [None, 5])
def test_mates_beyond_the_seam_are_those_of_brute_force(dim: int, nearest: int | None) -> None:
    rng = np.random.default_rng(8)
    x, v = rng.uniform(0.0, 5.0, (90, dim)), rng.normal(size=(90, dim))
    weights = {"separation": 0.7, "cohesion": 0.5, "alignment": 0.9}
    world = tropel.World.box((0.0,) * dim, (5.0,) * dim, periodic=True)
    group = tropel.Group("flock", positions=x, sense_radius=2.0, radius=0.01, desired_speed=2.0)
    model = tropel.Flocking(**weights, max_force=1e9, least_speed=0.0, nearest=nearest, blind_angle=1.0)
    sim = tropel.Simulation(world, group, local=model, dt=0.05, watch_collisions=False)
    sim.agents.velocity[:] = v
    sim.step()
    reference = Reference(x, v, 2.0, dt=0.05, weights=weights, nearest=nearest, blind_angle=1.0, period=(5.0,) * dim)
    np.testing.assert_allclose(sim.agents.velocity, reference.new_velocity(), rtol=0, atol=1e-10)


def test_flocks_keep_the_promises_of_steering_models() -> None:
    check_steering(tropel.Flocking(), ids_matter=True)
    check_steering(tropel.Flocking(nearest=4, blind_angle=1.0, combine="priorities"), ids_matter=True)
