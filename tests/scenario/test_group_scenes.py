"""GROUPS chapter 4 as built-in scenes, over layouts and seeds, and what is gone when a mechanism is switched off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from many_seeds import fast_first
from tropel.events import CloseDoor, OpenDoor
from tropel.scenario import load_builtin
from tropel.scenario.schema import PlannerSpec
from tropel.simulation import Simulation


def cluttered(layout: int, *, groups: tuple[str, ...]) -> Simulation:
    """The cluttered field with other stones and carts, and only some of its groups."""
    scenario = load_builtin("groups_cluttered")
    world = scenario.spec.world
    scatter = {name: spec.model_copy(update={"seed": layout}) for name, spec in world.scatter.items()}
    members = []
    for group in scenario.spec.groups:
        if group.name in groups:
            assert group.local is not None
            local = {**(group.local.model_extra or {}), "ignore": []}
            members.append(group.model_copy(update={"local": type(group.local)(model=group.local.model, **local)}))
    update = {"seed": layout, "groups": members, "world": world.model_copy(update={"scatter": scatter})}
    return replace(scenario, spec=scenario.spec.model_copy(update=update)).build(threads=1)


def arrival(sim: Simulation, limit: float) -> tuple[float | None, float]:
    """When the first agent, a leader, is at the goal, and the share of all that are near it some seconds later."""
    goal = sim.world.goals().position[0]
    first: float | None = None
    away = np.empty(0)
    while sim.time < (limit if first is None else first + 8.0):
        sim.step()
        away = np.linalg.norm(sim.agents.position - goal, axis=1)
        if first is None and away[0] < 0.3:
            first = sim.time
    return first, float((away < 1.0).mean())


@pytest.mark.parametrize("layouts", fast_first([range(200, 202), range(200, 205)], fast=1), ids=len)
def test_groups_with_a_roadmap_cross_the_cluttered_field_and_groups_without_are_caught(layouts: range) -> None:
    with_roadmap = [arrival(cluttered(layout, groups=("leader", "flock")), 60.0) for layout in layouts]
    assert all(first is not None for first, _ in with_roadmap)
    assert np.mean([near for _, near in with_roadmap]) > 0.85
    without = [arrival(cluttered(k, groups=("straight leader", "straight flock")), 40.0) for k in layouts]
    assert np.mean([first is not None for first, _ in without]) <= 0.4


@pytest.mark.long
def test_a_hundred_of_a_hundred_leaders_arrive() -> None:
    late = [k for k in range(100) if arrival(cluttered(k, groups=("leader", "flock")), 60.0)[0] is None]
    assert late == []


def two_groups(seed: int, patience: float) -> Simulation:
    scenario = load_builtin("groups_two_groups")
    told = scenario.spec.planning
    assert told is not None
    planning: dict[str, Any] = {**(told.model_extra or {}), "patience": patience}
    update = {"seed": seed, "planning": PlannerSpec(model=told.model, **planning)}
    return replace(scenario, spec=scenario.spec.model_copy(update=update)).build(threads=1)


def left_after(sim: Simulation, seconds: float) -> int:
    while sim.time < seconds and len(sim.agents):
        sim.step()
    return len(sim.agents)


@pytest.mark.filterwarnings("ignore::tropel.checks.FindingWarning")
@pytest.mark.parametrize("seeds", fast_first([range(2), range(8)], fast=1), ids=len)
def test_two_groups_that_block_each_other_find_other_paths_by_growing_weights(seeds: range) -> None:
    assert [left_after(two_groups(seed, 6.0), 150.0) for seed in seeds] == [0] * len(seeds)
    # Without, those whose roadmap leads both groups through the narrow corridor stand there for ever.
    assert np.mean([left_after(two_groups(seed, 0.0), 90.0) > 0 for seed in seeds]) > 0.6


def followers_near(sim: Simulation, limit: float) -> float:
    """The share of followers that have come to within 3 m of the goal, all at the same time, before a limit."""
    goal = sim.world.goals().position[0]
    near = 0.0
    while sim.time < limit and near < 1.0:
        sim.step()
        near = max(near, float((np.linalg.norm(sim.agents.position[1:] - goal, axis=1) < 3.0).mean()))
    return near


def office(seed: int, *, speed: float = 1.2) -> Simulation:
    """The office with another seed, whose doors open and close at random every 100 frames."""
    scenario = load_builtin("groups_office")
    groups = [
        group.model_copy(update={"desired_speed": speed}) if group.name == "leader" else group
        for group in scenario.spec.groups
    ]
    update = {"seed": seed, "groups": groups, "events": []}
    sim = replace(scenario, spec=scenario.spec.model_copy(update=update)).build(threads=1)
    rng = np.random.default_rng(seed)
    for frame in range(100, 3600, 100):
        for door in sim.world.doors:
            if rng.random() < 0.5:
                told = {"door": door}
                sim.at(frame * sim.dt, OpenDoor(**told) if rng.random() < 0.6 else CloseDoor(**told))
    return sim


@pytest.mark.filterwarnings("ignore::tropel.checks.FindingWarning")
@pytest.mark.parametrize("seed", fast_first(range(6), fast=2))
def test_followers_come_through_doors_that_open_and_close_though_their_leader_is_fast(seed: int) -> None:
    # In 8 of 8 runs, all 14 followers arrive, whether the leader flies at 0.7 or at 1.2 m/s.
    assert followers_near(office(seed), 180.0) == 1.0


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::tropel.checks.FindingWarning")
@pytest.mark.parametrize("speed", [0.7, 1.0, 1.5])
def test_followers_come_through_doors_whatever_the_speed_of_their_leader(speed: float) -> None:
    shares = [followers_near(office(seed, speed=speed), 180.0) for seed in range(12)]
    assert np.mean(shares) >= 0.98


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::tropel.checks.FindingWarning")
@pytest.mark.parametrize("scene", ["groups_office", "groups_hundred_rooms"])
def test_a_group_finds_its_way_through_rooms_with_changing_doors(scene: str) -> None:
    for seed in range(6):
        scenario = load_builtin(scene)
        sim = replace(scenario, spec=scenario.spec.model_copy(update={"seed": seed})).build(threads=1)
        assert followers_near(sim, 120.0) == 1.0
