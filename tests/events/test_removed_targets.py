"""A target that is taken away: nobody goes there, nobody leaves there, and records still know its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tropel import Direct, FlowField, Group, Lattice, PathPlans, Seek, Simulation, Source, Target, World, events
from tropel.agents.state import NO_GOAL

FLOOR = [(0.0, 0.0), (16.0, 0.0), (16.0, 8.0), (0.0, 8.0)]


def floor(**targets: Target) -> World:
    return World(
        FLOOR,
        exits={"east": [(15.2, 3.0), (16.0, 3.0), (16.0, 5.0), (15.2, 5.0)]},
        regions={"left": [(1.0, 1.0), (5.0, 1.0), (5.0, 7.0), (1.0, 7.0)]},
        targets=targets or {"bar": Target(position=(8.0, 1.0)), "stage": Target(position=(8.0, 7.0))},
    )


LAYERS: dict[str, Any] = {
    "direct": lambda: {"planning": Direct(), "local": Seek()},
    "flow field": lambda: {"planning": FlowField(cell=0.4), "local": Seek()},
    "cells": lambda: {"planning": PathPlans(cell=0.4), "local": Lattice(cell=0.4)},
}
kinds = pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)


def simulation(layers: Any, *groups: Any, world: World | None = None) -> Simulation:
    return Simulation(floor() if world is None else world, groups, dt=0.1, seed=4, threads=1, **layers())


def steps(sim: Simulation, count: int) -> Simulation:
    for _ in range(count):
        sim.step()
    return sim


@kinds
def test_who_was_on_the_way_there_goes_where_the_group_was_sent_at_first(layers: Any) -> None:
    leaving = Group("leaving", count=6, region="left")
    thirsty = Group("thirsty", count=6, region="left", goal="bar")
    sim = simulation(layers, leaving, thirsty)
    sim.at(0.5, events.SetGoal(goal="bar"))
    sim.at(1.0, events.RemoveTarget(name="bar"))
    steps(sim, 11)
    assert "bar" not in sim.world.targets
    assert set(sim.agents.goal[sim.agents.group == 0].tolist()) == {-1}, "back to the nearest exit"
    assert set(sim.agents.goal[sim.agents.group == 1].tolist()) == {NO_GOAL}, "it was all they wanted"
    steps(sim, 10)
    before = sim.agents.position.copy()
    steps(sim, 10)
    gone = np.linalg.norm(sim.agents.position - before, axis=1)
    assert np.median(gone[sim.agents.group == 0]) > 1.0
    assert (gone[sim.agents.group == 1] < 0.2).all(), "who has no goal stands"


@kinds
def test_the_nearest_target_is_one_that_is_there(layers: Any) -> None:
    sim = simulation(layers, Group("people", count=8, region="left", goal="nearest target"))
    sim.at(0.3, events.RemoveTarget(name="bar"))
    steps(sim, 120)
    away = np.linalg.norm(sim.agents.position - (8.0, 7.0), axis=1)
    assert (away < 2.0).all()
    assert (np.linalg.norm(sim.agents.position - (8.0, 1.0), axis=1) > 3.0).all()


@kinds
def test_a_target_of_the_same_name_may_come_again_elsewhere(layers: Any) -> None:
    sim = simulation(layers, Group("people", count=6, region="left", goal="bar"))
    number = sim.world.goal_numbers["stage"]
    sim.at(0.3, events.RemoveTarget(name="stage"))
    sim.at(0.5, events.AddTarget(name="stage", position=(13.0, 6.0)))
    sim.at(0.6, events.SetGoal(goal="stage"))
    steps(sim, 130)
    assert sim.world.goal_numbers["stage"] == number
    assert (np.linalg.norm(sim.agents.position - (13.0, 6.0), axis=1) < 2.0).all()


@kinds
def test_newcomers_who_would_be_sent_there_have_no_goal(layers: Any) -> None:
    source = Source("late", rate=5.0, region="left", goal="bar")
    sim = simulation(layers, Group("people", count=2, region="left"), source)
    sim.at(0.3, events.RemoveTarget(name="bar"))
    sim.at(0.5, events.AddAgents(group="people", count=2, region="left", goal="bar"))
    steps(sim, 30)
    assert (sim.agents.group == 1).sum() > 5
    assert set(sim.agents.goal[sim.agents.group == 1].tolist()) == {NO_GOAL}
    assert set(sim.agents.goal[sim.agents.id >= 2].tolist()) == {NO_GOAL}


def test_who_has_left_there_before_is_still_counted_by_its_name() -> None:
    world = floor(taxi=Target(position=(3.0, 4.0), radius=2.0, absorbs=True), bus=Target(position=(13.0, 2.0)))
    sim = simulation(LAYERS["direct"], Group("people", count=20, region="left", goal="taxi"), world=world)
    sim.at(0.5, events.RemoveTarget(name="taxi"))
    summary = sim.run(until=3.0)
    assert 0 < summary.evacuated < 20
    assert summary.exits == {"taxi": summary.evacuated}


@kinds
def test_the_same_bits_from_the_record_and_over_a_resume(layers: Any, tmp_path: Path) -> None:
    def begun(*, scheduled: bool = True) -> Simulation:
        sim = simulation(layers, Group("people", count=12, region="left", goal="nearest target"))
        if scheduled:
            sim.at(0.5, events.RemoveTarget(name="bar"))
            sim.at(1.5, events.AddTarget(name="bar", position=(12.0, 2.0)))
        return sim

    wanted = begun().run(until=3.0, record=tmp_path / "run.sqlite").state_hash
    repeated = begun(scheduled=False)
    repeated.replay(tmp_path / "run.sqlite")
    assert repeated.run(until=3.0).state_hash == wanted
    assert begun(scheduled=False).run(until=3.0).state_hash != wanted
    first = steps(begun(), 10)
    first.save(tmp_path / "early.npz")
    second = begun()
    second.restore(tmp_path / "early.npz")
    assert "bar" not in second.world.targets
    assert second.run(until=3.0).state_hash == wanted
