"""Collisions are answered: people hesitate, get angry or afraid, and step back."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tropel import CollisionFreeSpeed, Dynamical, Group, Jolted, Model, Recoil, Simulation, SocialForce, Walk, World
from tropel.errors import ParameterError
from tropel.local.dynamical.parameters import Repulsion
from tropel.scenario import load_builtin
from tropel.testing import check_decision


def head_on(*, anger: float = 0.0, **more: object) -> Simulation:
    """Two that do not see each other walk through each other."""
    world = World(bounds=(0.0, 0.0, 40.0, 10.0), targets={"west": (1.0, 5.0), "east": (39.0, 5.0)})
    groups = [
        Group("a", positions=[(18.0, 5.0)], goal="east", sense_radius=1.0),
        Group("b", positions=[(22.0, 5.0)], goal="west", sense_radius=1.0),
    ]
    blind = Dynamical(agents=Repulsion(strength=0.0), solid_bodies=False, speed_law="constant", noise=0.0)
    return Simulation(world, groups, local=blind, decisions=[Jolted(anger=anger)], dt=0.05, **more)


def test_it_keeps_its_promises() -> None:
    check_decision(lambda: Jolted(anger=0.5), local=Dynamical(), dims=(2,))


@pytest.mark.parametrize(("anger", "courage"), [(0.6, 0.8), (-0.6, 0.2), (0.0, 0.5)])
def test_who_collides_hesitates_and_gets_angry_or_afraid_for_a_while(anger: float, courage: float) -> None:
    sim = head_on(anger=anger)
    while not sim.agents.collided.any():
        sim.step()
        assert sim.agents.desired_speed.tolist() == [1.34, 1.34]
    sim.step()
    assert sim.agents.jolt.tolist() == [1.0, 1.0]
    assert sim.agents.desired_speed == pytest.approx(0.2 * 1.34)
    assert sim.agents.courage == pytest.approx(courage)
    # They go on although they still overlap, and are as they were in the end.
    for _ in range(20):
        sim.step()
    left = math.exp(-20 * 0.05 / 1.5)
    assert sim.agents.desired_speed == pytest.approx((1.0 - 0.8 * left) * 1.34)
    for _ in range(600):
        sim.step()
    assert sim.agents.desired_speed == pytest.approx(1.34)
    assert sim.agents.courage == pytest.approx(0.5)


@pytest.mark.parametrize("model", [Walk, SocialForce, CollisionFreeSpeed])
def test_who_has_been_jolted_steps_back(model: type[Model]) -> None:
    world = World(bounds=(0.0, 0.0, 40.0, 10.0), targets={"east": (39.0, 5.0)})
    group = Group("a", positions=[(18.0, 5.0)], goal="east")
    sim = Simulation(world, group, local=model(), decisions=[Jolted()], habits=[Recoil(above=0.5)], dt=0.05)
    for _ in range(20):
        sim.step()
    assert sim.agents.velocity[0, 0] > 1.0
    sim.agents.collided[0] = 1
    slowest = math.inf
    for _ in range(20):  # the jolt is above one half for 1.04 s
        sim.step()
        slowest = min(slowest, float(sim.agents.velocity[0, 0]))
    assert slowest < 0.0
    for _ in range(100):
        sim.step()
    assert sim.agents.velocity[0, 0] > 1.0


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ParameterError, match="leave watch_collisions out"):
        head_on(watch_collisions=False)
    world = World(bounds=(0.0, 0.0, 9.0, 9.0), targets={"t": (8.0, 8.0)})
    with pytest.raises(ParameterError, match="let agents decide with Jolted"):
        Simulation(world, Group("a", count=2, goal="t"), habits=[Recoil()]).step()
    with pytest.raises(ParameterError, match="hesitate"):
        Jolted(hesitate=1.5)


@pytest.mark.parametrize("seed", range(1, 4))
def test_jostle_people_are_slow_after_a_collision_and_arrive_all_the_same(seed: int) -> None:
    scenario = load_builtin("jostle")
    without = replace(scenario, spec=scenario.spec.model_copy(update={"decisions": []}))
    speeds = []
    for scene in (scenario, without):
        sim = scene.build(seed=seed)
        since: dict[int, float] = {}
        seen: list[float] = []
        while sim.time < 40.0 and len(sim.agents):
            sim.step()
            speed = np.linalg.norm(sim.agents.velocity, axis=1)
            since |= dict.fromkeys(sim.agents.id[sim.agents.collided != 0].tolist(), sim.time)
            for agent, own in zip(sim.agents.id.tolist(), speed.tolist(), strict=True):
                if 0.0 < sim.time - since.get(agent, -99.0) <= 0.5:
                    seen.append(own)
        assert len(since) > 50
        assert not len(sim.agents)
        speeds.append(float(np.mean(seen)))
    # Measured: 0.67 to 0.69 m/s with, 1.26 m/s without.
    assert speeds[0] < 0.85
    assert speeds[1] > 1.15
