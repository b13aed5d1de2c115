"""Riders in whole simulations: scenes, bits, checkpoints, and what happens at walls."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import shapely

from tropel import FollowPath, Group, Herd, Riders, Simulation, World
from tropel.errors import ParameterError
from tropel.scenario import load_builtin

CIRCLE = [(80 * math.cos(a), 80 * math.sin(a)) for a in np.linspace(0.0, math.tau, 17)[:-1]]


def on_a_circle(*, threads: int = 1, count: int = 24, **told: float) -> Simulation:
    region = shapely.box(70, -30, 84, 30)
    riders = Group("riders", count=count, region=region, goal="none", radius=0.3)
    return Simulation(
        World(bounds=(-120, -120, 120, 120)),
        [riders],
        planning=FollowPath(CIRCLE, closed=True, width=20.0),
        local=Riders(t_max=2.2, ratio=0.3, **told),
        dt=0.05,
        seed=3,
        threads=threads,
    )


def test_riders_stay_on_a_circle_and_lean_into_it() -> None:
    sim = on_a_circle(horizon=0.0)
    for _ in range(200):
        sim.step()
    agents = sim.agents
    riding = agents.fallen == 0
    wanted = 80.0 - agents.road_side
    away = np.abs(np.linalg.norm(agents.position, axis=1) - wanted)[riding]
    assert np.median(away) < 1.5
    # What a steady turn needs: tan(lean) = v² / (g r).
    assert np.median(agents.lean[riding]) == pytest.approx(math.atan(12.0**2 / (9.81 * 80.0)), abs=0.06)


def test_the_same_bits_on_two_threads_and_after_a_resume(tmp_path: Path) -> None:
    whole, threaded, first = on_a_circle(), on_a_circle(threads=2), on_a_circle()
    for _ in range(40):
        whole.step()
        threaded.step()
    for _ in range(23):
        first.step()
    first.save(tmp_path / "half.tropel")
    again = on_a_circle()
    again.restore(tmp_path / "half.tropel")
    for _ in range(17):
        again.step()
    assert whole.state_hash() == threaded.state_hash() == again.state_hash()


@pytest.mark.parametrize("dt", [0.02, 0.05, 0.1, 0.16])
def test_any_time_step_will_do(dt: float) -> None:
    sim = Simulation(
        World(bounds=(0, -40, 400, 40)),
        [Group("one", count=1, region=shapely.box(0, 2, 2, 4), goal="none", radius=0.3, parameters={"lane": 0.0})],
        planning=FollowPath([(0.0, 0.0), (400.0, 0.0)], stop=False),
        local=Riders(),
        dt=dt,
    )
    while sim.time < 10.0:
        sim.step()
    assert abs(sim.agents.position[0, 1]) < 1.0
    assert sim.agents.position[0, 0] == pytest.approx(120.0, abs=6.0)


def test_a_rider_that_cannot_avoid_a_wall_has_an_accident_and_crosses_nothing() -> None:
    model = Riders()
    sim = Simulation(
        World(shapely.box(0, 0, 30, 3)),
        [Group("one", count=1, region=shapely.box(1, 1.2, 2, 1.8), goal="none", radius=0.3)],
        planning=FollowPath([(0.0, 1.5), (60.0, 1.5)], stop=False),
        local=model,
        dt=0.05,
    )
    for _ in range(80):
        sim.step()
    assert sim.agents.position[0, 0] < 30.0
    # It brakes as hard as it can, which at 12 m/s is not enough for what it sees of the wall.
    assert [cause for _, _, cause in model.accidents] == ["hit a wall or an obstacle"]
    assert sim.agents.fallen[0] == 1
    assert not sim.agents.velocity[0].any()


@pytest.mark.parametrize("seed", range(3))
def test_sixteen_riders_gather(seed: int) -> None:
    sim = load_builtin("riders_gathering").build(seed=seed)
    before = _farthest(sim)
    while sim.time < 20.0:
        sim.step()
    assert _farthest(sim) < min(7.0, 0.85 * before)
    assert not sim.agents.fallen.any()


def _farthest(sim: Simulation) -> float:
    """How far from the middle four fifths of the riders are at most [m]."""
    position = sim.agents.position
    return float(np.quantile(np.linalg.norm(position - position.mean(axis=0), axis=1), 0.8))


@pytest.mark.parametrize("seed", range(2))
def test_a_peloton_holds_together(seed: int) -> None:
    sim = load_builtin("peloton").build(seed=seed)
    while sim.time < 12.0:
        sim.step()
    assert sim.agents.fallen.mean() <= 0.02
    assert sim.agents.pace.mean() > 0.97


def test_most_riders_get_through_a_street_full_of_others() -> None:
    fallen, half_way = [], []
    for seed in range(10, 14):
        sim = load_builtin("street").build(seed=seed)
        while sim.time < 8.0:
            sim.step()
        riders = sim.agents.group == 0
        fallen.append(sim.agents.fallen[riders].mean())
        half_way.append(np.median(sim.agents.position[riders, 0]))
    # Neither birds nor pedestrians give way to riders: over twelve seeds, 17 of 144 riders are hit.
    assert np.mean(fallen) <= 0.25
    assert min(half_way) > 90.0


def test_mistakes_are_named() -> None:
    with pytest.raises(ParameterError, match=r"there is no character 'hooman'.*did you mean 'human'"):
        Riders(character="hooman")
    with pytest.raises(ParameterError, match="physics"):
        Riders(physics="half")
    with pytest.raises(ParameterError, match="at least two places"):
        FollowPath([(0.0, 0.0)])
    with pytest.raises(ParameterError, match="are the same"):
        FollowPath([(0.0, 0.0), (0.0, 0.0), (1.0, 0.0)])
    with pytest.raises(ParameterError, match="not both zero"):
        Herd(direction=(0.0, 0.0))
