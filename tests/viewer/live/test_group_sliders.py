"""Sliders of a group: they show what holds, change that group alone, and never offer what a model refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from live_scenes import living, wait_for_step
from overlay_scenes import on_cells, walkers

from tropel import CollisionFreeSpeed, Dynamical, Flocking, Group, Simulation, World, events
from tropel.viewer.live.group_sliders import given_back, in_force, middle_of, offered, reach_of


def two_flocks() -> Simulation:
    """Two groups of one model in periodic space, one of them with a weight of its own."""
    world = World.box((0.0, 0.0), (8.0, 6.0), periodic=True)
    groups = [
        Group("grey", count=15, goal="none", sense_radius=2.0, desired_speed=1.0),
        Group("red", count=15, goal="none", sense_radius=1.0, desired_speed=1.0, parameters={"cohesion": 2.5}),
    ]
    return Simulation(world, groups, local=Flocking(cohesion=0.4, max_force=3.0), dt=0.1, seed=2, threads=1)


def crowd(model: object) -> Simulation:
    world = World([(0.0, 0.0), (10.0, 0.0), (10.0, 6.0), (0.0, 6.0)], exits={"e": [(9, 2), (10, 2), (10, 4), (9, 4)]})
    return Simulation(world, Group("people", count=12), local=model, dt=0.05, seed=2, threads=1)  # type: ignore[arg-type]


def set_and_step(sim: Simulation, *what: events.SetParameter) -> None:
    for event in what:
        sim.at(sim.time, event)
    sim.step()


def test_a_flock_is_shown_the_values_that_hold_for_it() -> None:
    sim = two_flocks()
    assert middle_of("cohesion", sim, "grey") == 0.4, "its model's"
    assert middle_of("cohesion", sim, "red") == 2.5, "its own"
    assert middle_of("max_force", sim, "red") == 3.0
    assert middle_of("separation_distance", sim, "grey") == 1.0, "half the sense radius"
    assert middle_of("flee_radius", sim, "red") == 1.0, "the sense radius"


def test_a_change_is_of_the_chosen_group_alone_and_can_be_taken_back() -> None:
    sim = two_flocks()
    set_and_step(sim, events.SetParameter(name="cohesion", value=1.5, group="grey"))
    assert set(in_force("cohesion", sim, "grey").tolist()) == {1.5}
    assert set(in_force("cohesion", sim, "red").tolist()) == {2.5}
    back = given_back(sim, "grey")
    assert [(event.name, event.value) for event in back] == [("cohesion", "default")]  # type: ignore[attr-defined]
    set_and_step(sim, *back)  # type: ignore[arg-type]
    assert set(in_force("cohesion", sim, "grey").tolist()) == {0.4}
    assert np.isnan(sim.agents.columns["cohesion"][sim.agents.group == 0]).all()
    assert given_back(sim, "grey") == []
    assert set(in_force("cohesion", sim, "red").tolist()) == {2.5}


def test_what_sliders_did_is_repeated_bit_for_bit(tmp_path: Path) -> None:
    with living(two_flocks()) as live:
        wait_for_step(live, 3)
        live.disturb(events.SetParameter(name="alignment", value=3.0, group="red"))
        wait_for_step(live, 9)
        live.ask(lambda sim: live.disturb(*given_back(sim, "red")))
        wait_for_step(live, 14)
        live.pause()
        steps, wanted = live.ask(lambda sim: (sim.step_number, sim.state_hash()))
        live.tape.write_events(tmp_path / "events.jsonl")
    assert '"value": "default"' in (tmp_path / "events.jsonl").read_text()
    again = two_flocks()
    again.replay(tmp_path / "events.jsonl")
    while again.step_number < steps:
        again.step()
    assert again.state_hash() == wanted


@pytest.mark.parametrize(
    "make",
    [two_flocks, walkers, on_cells, lambda: crowd(Dynamical()), lambda: crowd(CollisionFreeSpeed())],
    ids=["flocks", "seek", "lattice", "dynamical", "collision free speed"],
)
def test_no_slider_goes_where_a_model_breaks(make: Callable[[], Simulation]) -> None:
    sim = make()
    for group in sim.groups:
        for column in offered(sim, group):
            low, high = reach_of(column, sim)
            assert low < high < math.inf
            for value in (low, high):
                set_and_step(sim, events.SetParameter(name=column.name, value=value, group=group))
    assert np.isfinite(sim.agents.position).all()


def test_what_models_only_remember_and_what_others_have_is_not_offered() -> None:
    assert "forward_speed" not in [column.name for column in offered(crowd(Dynamical()), "people")]
    assert [column.name for column in offered(on_cells(5), "people")] == ["desired_speed"]
    assert [column.name for column in offered(walkers(5), "people")] == ["desired_speed", "radius", "sense_radius"]
    assert [column.name for column in offered(two_flocks(), "red")][:3] == ["desired_speed", "separation", "cohesion"]
