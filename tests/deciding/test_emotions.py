"""Emotions: they come, spread, fade and act as the equations say, and panic spreads through a crowd."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Dynamical, Emotions, Group, Hazard, Simulation, World, events, read_trajectory
from tropel.agents.state import AgentState
from tropel.contracts import Moment
from tropel.errors import ParameterError
from tropel.scenario import load_builtin
from tropel.scenario.schema import DecisionSpec
from tropel.testing import check_decision

AFRAID, CONFIDENT = 2, 3


def standing(
    positions: Any, *, world: World | None = None, dt: float = 0.05, groups: int = 1, **parameters: Any
) -> Simulation:
    """People who stand in the open, with emotions; `fear` and so on are given to each of them."""
    own = {key: parameters.pop(key) for key in ("fear", "alertness", "confidence", "openness") if key in parameters}
    positions = np.asarray(positions, dtype=np.float64)
    parts = np.array_split(np.arange(len(positions)), groups)
    people = [
        Group(f"group {k}", positions=positions[rows], goal="none",
              parameters={key: np.asarray(value)[rows] for key, value in own.items()})
        for k, rows in enumerate(parts)
    ]  # fmt: skip
    world = world or World(bounds=(-50.0, -50.0, 50.0, 50.0))
    return Simulation(world, people, decisions=[Emotions(**parameters)], dt=dt, watch_collisions=None)


def test_it_keeps_its_promises() -> None:
    check_decision(lambda: Emotions(calming=3.0), dims=(2, 3))
    check_decision(lambda: Emotions(speed=1.0, courage=0.0), local=Dynamical(), dims=(2,))


@pytest.mark.parametrize("amplification", [0.0, 0.4, 1.0])
def test_two_people_follow_the_equation_of_the_paper(amplification: float) -> None:
    sim = standing([(0, 0), (1, 0)], fear=[0.9, 0.1], earshot=4.0, spread=0.5, amplification=amplification,
                   calming=1e9, dt=0.01, sight=0.1)  # fmt: skip
    q = np.array([0.9, 0.1])
    strength = 0.5 * (1.0 - 1.0 / 4.0)
    for _ in range(20_000):  # Euler's method with much shorter steps, written as the paper has it
        other = q[::-1]
        up = 1.0 - (1.0 - other) * (1.0 - q)
        q = q + 1e-4 * strength * (amplification * up + (1.0 - amplification) * other - q)
    for _ in range(200):
        sim.step()
    assert sim.agents.fear == pytest.approx(q, abs=2e-3)


def test_the_sums_over_neighbours_are_those_of_brute_force() -> None:
    random = np.random.default_rng(2)
    places = random.uniform(-8.0, 8.0, (60, 2))
    fear, sure = random.random(60), 0.5 * random.random(60)
    sim = standing(places, fear=fear, confidence=sure, groups=3, earshot=5.0, strangers=0.3, amplification=0.0,
                   calming=1e9, sight=0.1, dt=0.2, speed=1.0, courage=0.0, collisions=0.0)  # fmt: skip
    group = sim.agents.group.copy()
    sim.step()
    away = np.linalg.norm(places[:, None] - places[None], axis=2)
    weight = np.clip(1.0 - away / 5.0, 0.0, None) * np.where(group[:, None] == group[None], 1.0, 0.3)
    np.fill_diagonal(weight, 0.0)
    mean = weight @ fear / weight.sum(axis=1)
    strength = 0.3 * np.where(mean > fear, 1.0 - sure, 1.0) * weight.sum(axis=1)
    expected = mean + (fear - mean) * np.exp(-strength * 0.2)
    assert sim.agents.fear == pytest.approx(expected * np.exp(-0.2 / 1e9), abs=1e-12)


def test_nobody_hears_through_a_wall_or_beyond_earshot_or_the_dead() -> None:
    world = World(bounds=(-50.0, -50.0, 50.0, 50.0), walls=[[(1.0, -3.0), (1.0, 3.0)]])
    sim = standing([(0, 0), (2, 0), (0, 2), (0, -7)], world=world, fear=[1.0, 0.0, 0.0, 0.0], sight=0.1)
    sim.step()
    assert (sim.agents.fear > 0.0).tolist() == [True, False, True, False]
    silent = standing([(0, 0), (2, 0)], fear=[1.0, 0.0], sight=0.1, deaths=0.0)
    silent.agents.dead[0] = 1
    silent.population._members.clear()
    silent.step()
    assert silent.agents.fear[1] == 0.0


@pytest.mark.parametrize("dt", [0.02, 0.1, 0.5])
def test_the_error_of_a_step_is_proportional_to_its_length(dt: float) -> None:
    world = World(bounds=(-50.0, -50.0, 50.0, 50.0), hazards={"fire": Hazard(inner=0.5, position=(-4.0, 0.0))})
    places = [(1.5 * k, 0.0) for k in range(12)]
    sim = standing(places, world=world, sight=6.0, spread=0.5, calming=30.0, dt=dt)
    sim.run(until=10.0)
    # Others are held during a step, so that what is left is proportional to dt. The figures are those of dt = 0.002.
    assert sim.agents.fear[[0, 4, 11]] == pytest.approx([0.5965, 0.5270, 0.0477], abs=0.45 * dt)


def test_what_is_seen_frightens_by_its_distance_and_not_through_walls() -> None:
    fire = {"fire": Hazard(inner=1.0, position=(0.0, 0.0))}
    world = World(bounds=(-50.0, -50.0, 50.0, 50.0), hazards=fire, walls=[[(-3.0, -9.0), (-3.0, 9.0)]])
    sim = standing([(3, 0), (6, 0), (12, 0), (-5, 0)], world=world, spread=0.0, shock=0.5, calming=1e9, sight=8.0)
    sim.run(until=10.0)
    assert sim.agents.fear == pytest.approx([1.0 - 2.0 / 8.0, 1.0 - 5.0 / 8.0, 0.0, 0.0], abs=1e-6)
    assert sim.agents.alertness == pytest.approx([1.0, 1.0, 0.0, 0.0], abs=1e-6)
    assert sim.agents.mood.tolist() == [2, 1, 0, 0]


def test_the_dead_and_collisions_frighten() -> None:
    sim = standing([(0, 0), (2, 0), (20, 0)], spread=0.0, sight=10.0, deaths=0.8, calming=1e9)
    sim.agents.dead[0] = 1
    sim.population._members.clear()
    sim.run(until=20.0)
    assert sim.agents.fear[1:] == pytest.approx([0.8 * 0.8, 0.0], abs=1e-6)
    bumped = standing([(0, 0), (9, 0)], collisions=0.4, calming=1e9)
    bumped.agents.collided[0] = 1
    bumped.step()
    assert bumped.agents.fear.tolist() == pytest.approx([0.4, 0.0])


def test_fear_fades_and_speed_and_courage_are_as_before() -> None:
    sim = standing([(0, 0), (30, 0)], fear=[1.0, 0.0], confidence=[0.0, 1.0], spread=0.0, calming=2.0, speed=1.5,
                   courage=0.8)  # fmt: skip
    sim.step()
    fear = math.exp(-0.05 / 2.0)
    assert sim.agents.desired_speed == pytest.approx([1.34 * (1.0 + 0.5 * fear), 1.34])
    assert sim.agents.courage == pytest.approx([0.5 * (1.0 - 0.8 * fear), 1.0 - 0.5 * 0.2])
    assert sim.agents.mood.tolist() == [AFRAID, CONFIDENT]
    sim.set_parameter("desired_speed", 1.0 * (1.0 + 0.5 * fear))
    for _ in range(600):
        sim.step()
    assert sim.agents.desired_speed[0] == pytest.approx(1.0, abs=1e-5)
    assert sim.agents.courage == pytest.approx([0.5, 0.9], abs=1e-5)


def test_events_frighten_and_confident_people_calm_others() -> None:
    around = [(2.0 * math.cos(a), 2.0 * math.sin(a)) for a in np.linspace(0.0, 2.0 * math.pi, 7)[:-1]]
    ends = []
    for sure in (0.0, 1.0):
        sim = standing([(0.0, 0.0), *around], confidence=[0.0, *[sure] * 6], amplification=0.0, calming=1e9, sight=0.1)
        sim.agents.fear[0] = 1.0
        sim.run(until=5.0)
        ends.append(sim.agents.fear.copy())
    assert ends[0][1:].min() > 0.05
    assert ends[1][1:].max() == 0.0  # those that are sure of themselves are not frightened
    assert ends[1][0] < ends[0][0]
    sim = standing([(0.0, 0.0)], calming=1e9)
    sim.at(1.0, events.SetParameter(name="fear", value=0.7))
    sim.run(until=2.0)
    assert sim.agents.fear[0] == pytest.approx(0.7)
    assert sim.agents.desired_speed[0] == pytest.approx(1.34 * (1.0 + 0.5 * 0.7))


def test_moods_are_recorded(tmp_path: Path) -> None:
    fire = {"fire": Hazard(inner=1.0, position=(0.0, 0.0), until=3.0)}
    world = World(bounds=(-50.0, -50.0, 50.0, 50.0), hazards=fire)
    sim = standing([(2, 0), (30, 0)], world=world, calming=2.0)
    sim.run(until=12.0, record=tmp_path / "run.sqlite")
    with read_trajectory(tmp_path / "run.sqlite") as run:
        told = run.changes("mood")
    assert told["state"] == ["alert", "afraid", "alert", "calm"]
    assert np.asarray(told["id"]).tolist() == [0, 0, 0, 0]
    assert (np.diff(np.asarray(told["time"])) > 0.0).all()


def test_threads_and_a_resume_make_no_difference(tmp_path: Path) -> None:
    def built(threads: int) -> Simulation:
        fire = {"fire": Hazard(inner=0.5, position=(5.0, 5.0))}
        world = World(shapely.box(0, 0, 30, 10), exits={"out": shapely.box(29, 4, 30, 6)}, hazards=fire)
        return Simulation(world, Group("a", count=60), decisions=[Emotions()], dt=0.1, seed=3, threads=threads)

    whole, half, resumed = built(1), built(2), built(1)
    whole.run(until=6.0)
    half.run(until=3.0)
    half.save(tmp_path / "half.npz")
    resumed.restore(tmp_path / "half.npz")
    resumed.run(until=6.0)
    half.run(until=6.0)
    assert resumed.state_hash() == whole.state_hash() == half.state_hash()


def test_wrong_parameters_are_refused() -> None:
    for wrong in ({"earshot": 0.0}, {"amplification": 1.5}, {"calming": -1.0}, {"spread": float("nan")}, {"joy": 1.0}):
        with pytest.raises(ParameterError):
            Emotions(**wrong)
    torus = World.box((0.0, 0.0), (6.0, 6.0), periodic=True)
    with pytest.raises(ParameterError, match="heard twice"):
        Emotions(earshot=4.0).prepare(Moment.of(AgentState(2), torus))


def fled(seed: int, *, spread: float, until: float) -> float:
    """The share of the people in the scene `panic` who have left by a time."""
    scene = load_builtin("panic")
    told = DecisionSpec(**{**scene.spec.decisions[0].model_dump(), "spread": spread})
    sim = replace(scene, spec=scene.spec.model_copy(update={"decisions": [told]})).build(seed=seed)
    sim.run(until=until)
    return sim.population.departed / 200


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_panic_empties_the_hall_only_if_it_spreads(seed: int) -> None:
    # Measured, seeds 1 to 3: 0.97 to 1.0 with the spread, 0.06 to 0.11 without.
    assert fled(seed, spread=0.3, until=60.0) > 0.9
    assert fled(seed, spread=0.0, until=60.0) < 0.25


def test_panic_spreads_in_the_first_half_minute() -> None:
    """The same in short: most are afraid, and without the spread only those near the fire were."""
    ends = []
    for spread in (0.3, 0.0):
        scene = load_builtin("panic")
        told = DecisionSpec(**{**scene.spec.decisions[0].model_dump(), "spread": spread})
        sim = replace(scene, spec=scene.spec.model_copy(update={"decisions": [told]})).build(seed=4)
        sim.run(until=30.0)
        left = sim.population.departed
        ends.append((left + np.count_nonzero(sim.agents.mood == AFRAID)) / 200)
    assert ends[0] > 0.8
    assert ends[1] < 0.25
