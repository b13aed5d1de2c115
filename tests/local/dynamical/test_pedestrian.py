"""The preset for pedestrians: how it is chosen, and that it walks as people do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import shapely

from body_distances import deepest_overlap
from steered_once import model_in_a_file, steered
from tropel import Dynamical, Group, Simulation, World
from tropel.errors import ParameterError
from tropel.local.dynamical.parameters import PRESETS, DynamicalParameters
from tropel.registry import MODELS
from tropel.testing import check_steering
from tropel.verification import Candidate
from tropel.verification.cases import diagrams
from two_streams import PEOPLE, counterflow
from two_threads import needs_two_threads


def pedestrian(**parameters: Any) -> Dynamical:
    return Dynamical(preset="pedestrian", **parameters)


# How it is chosen -----------------------------------------------------------------------------------------------------


def test_parameters_that_are_given_override_the_preset() -> None:
    preset, other = pedestrian().parameters, pedestrian(time_gap=0.9, walls={"reach": 1.0}).parameters
    assert preset.speed_law == other.speed_law == "time_gap"
    assert preset.time_gap == PRESETS["pedestrian"]["time_gap"] != other.time_gap == 0.9
    assert other.walls.reach == 1.0
    assert preset.c2 == Dynamical().parameters.c2
    assert Dynamical().parameters.speed_law == "time_to_contact"


def test_files_choose_it_by_name(tmp_path: Path) -> None:
    model = model_in_a_file(tmp_path, model="dynamical", preset="pedestrian", push=0.2)
    assert model.parameters == pedestrian(push=0.2).parameters


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"preset.*pedestrian"):
        Dynamical(preset="pedestrain")


def test_the_registry_knows_all_presets() -> None:
    named, _none = get_args(get_type_hints(DynamicalParameters)["preset"])
    assert set(MODELS["dynamical"].presets) == set(PRESETS) == set(get_args(named))


def test_it_keeps_the_contract_of_steering_models() -> None:
    check_steering(pedestrian, dims=(2,), ids_matter=True)


@needs_two_threads
def test_the_same_bits_on_two_threads() -> None:
    def hashed(threads: int) -> str:
        world = World(
            shapely.box(0, 0, 60, 30), exits={"east": shapely.box(59, 0, 60, 30), "west": shapely.box(0, 0, 1, 30)}
        )
        groups = [Group(f"to the {goal}", count=600, goal=goal, desired_speed=PEOPLE) for goal in ("east", "west")]
        sim = Simulation(world, groups, local=pedestrian(), seed=3, threads=threads)
        for _ in range(15):
            sim.step()
        return sim.state_hash()

    assert hashed(1) == hashed(2)


# What people do -------------------------------------------------------------------------------------------------------


def test_fifty_lone_walkers_find_the_door_without_a_detour() -> None:
    room = shapely.union_all([shapely.box(0, 0, 8, 5), shapely.box(8, 2, 8.4, 3)])
    world = World(room, exits={"out": shapely.box(8.0, 2.0, 8.4, 3.0)})
    starts = np.random.default_rng(0).uniform((0.3, 0.3), (7.7, 4.7), (50, 2))
    middle = shapely.LineString([(8.0, 2.3), (8.0, 2.7)])
    late = []
    for start in starts:
        sim = Simulation(world, Group("one", positions=[tuple(start)], desired_speed=1.34), local=pedestrian())
        summary = sim.run(until="empty", limit=12.0)
        shortest = shapely.distance(middle, shapely.Point(start)) / 1.34
        if summary.evacuation_time is None or summary.evacuation_time > 1.1 * shortest + 0.5:
            late.append(tuple(start))
    assert late == []


def test_speed_falls_with_density_as_measured() -> None:
    candidate = Candidate("dynamical:pedestrian")
    for seed in range(2):
        points = [diagrams.measure_point(candidate, density, seed, seconds=3.0) for density in (0.5, 1.5, 3.0)]
        for density, speed in points:
            low, high = diagrams.published_range(density)
            assert low <= speed <= high, f"{speed:.2f} m/s at {density:.2f} per m²"
        assert points[0][1] > points[1][1] + 0.2 > points[2][1] + 0.4


@pytest.mark.parametrize("width", [0.8, 1.2])
def test_no_crowd_stops_for_good_in_a_door(width: float) -> None:
    low, high = 3.0 - width / 2, 3.0 + width / 2
    area = shapely.union_all([shapely.box(0, 0, 6, 6), shapely.box(6, low, 6.2, high), shapely.box(6.2, 0, 9, 6)])
    world = World(area, exits={"out": shapely.box(8, 0, 9, 6)})
    for seed in range(3):
        crowd = Group("crowd", count=60, region=shapely.box(0.2, 0.2, 5.5, 5.8), desired_speed=PEOPLE)
        sim = Simulation(world, crowd, local=pedestrian(), seed=seed, threads=1)
        deepest = 0.0
        while len(sim.agents) and sim.time < 180.0:
            sim.step()
            deepest = max(deepest, deepest_overlap(sim.agents.position, sim.agents.radius))
        assert len(sim.agents) == 0, f"seed {seed}: {len(sim.agents)} people are stuck"
        assert deepest < 1e-6


def test_two_streams_pass_each_other_and_the_more_there_are_the_longer_it_takes() -> None:
    for seed in range(3):
        alone, few, many = (counterflow(against, seed=seed, local=pedestrian())[0] for against in (0, 10, 50))
        assert alone < few < many < 200.0


def test_personality_changes_how_closely_quickly_and_suddenly_people_walk() -> None:
    places, straight = [(0.0, 0.0), (1.0, 0.0)], [(1.0, 0.0)] * 2
    facing: dict[str, Any] = {"heading": (1.0, 0.0), "velocity": (0.3, 0.0), "dt": 0.05, "desired_speed": 1.34}
    shy, bold = (steered(pedestrian(), places, straight, courage=c, **facing).velocity[0, 0] for c in (0.0, 1.0))
    light, heavy = (steered(pedestrian(), places, straight, mass=m, **facing).velocity[1, 0] for m in (0.0, 0.5))
    nimble, clumsy = (
        steered(pedestrian(), places, [(0.0, 1.0)] * 2, agility=a, **facing).heading[1, 1] for a in (1.0, 0.5)
    )
    assert shy < 0.9 * bold
    assert heavy < 0.5 * light
    assert clumsy < 0.5 * nimble
