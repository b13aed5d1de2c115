"""Walking out: people that have reached an exit are in the way of those behind for a moment, and then gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import tropel
from tropel import Group, Model, Normal, Seek, Simulation, Walk, World, events
from tropel.contracts import ModelDeclaration
from tropel.errors import CheckpointError, ParameterError
from tropel.recording.checkpoint import load_checkpoint, save_checkpoint


def corridor(**more: Any) -> World:
    return World(shapely.box(0, 0, 12, 2), exits={"out": shapely.box(10, 0, 12, 2)}, **more)


def test_people_are_seen_in_the_exit_but_left_when_they_reached_it() -> None:
    sim = Simulation(corridor(), Group("p", positions=[(8.0, 1.0)], desired_speed=1.0), local=Walk(walk_on=0.6))
    seen = []
    while len(sim.agents):
        sim.step()
        seen += sim.agents.position[:, 0].tolist()
    assert max(seen) == pytest.approx(10.55, abs=0.051)
    (left,) = sim.population.departures()["time"]
    assert left == pytest.approx(2.0, abs=0.06)
    assert sim.time == pytest.approx(left + 0.6, abs=0.051)


def test_a_model_that_does_not_say_so_lets_people_vanish_at_once() -> None:
    sim = Simulation(corridor(), Group("p", positions=[(8.0, 1.0)]), local=Seek())
    sim.run(until="empty", limit=10.0)
    assert sim.population.departures()["time"].tolist() == [sim.time]
    assert "leaves_by" not in sim.agents.columns


def flow(walk_on: float, *, exit_depth: float, seed: int) -> float:
    """People per second out of a room by an opening of 1 m, if the exit begins so far behind it."""
    area = shapely.union_all([shapely.box(0, 0, 6, 6), shapely.box(6, 2.5, 6.2, 3.5), shapely.box(6.2, 0, 10, 6)])
    world = World(area, exits={"out": shapely.box(6.2 + exit_depth, 0, 10, 6)})
    people = Group("p", count=60, region=shapely.box(0, 0, 5.5, 6), desired_speed=Normal(1.34, 0.26, low=0.5))
    sim = Simulation(world, people, local=Walk(walk_on=walk_on), seed=seed, threads=1)
    sim.run(until="empty", limit=120.0)
    left = sim.population.departures()["time"]
    return 40 / float(left[50] - left[10])


def test_a_doorway_lets_as_many_out_as_into_another_room() -> None:
    seeds = range(4)
    behind = np.mean([flow(0.65, exit_depth=2.5, seed=seed) for seed in seeds])
    in_it = np.mean([flow(0.65, exit_depth=0.0, seed=seed) for seed in seeds])
    vanishing = np.mean([flow(0.0, exit_depth=0.0, seed=seed) for seed in seeds])
    assert in_it == pytest.approx(behind, rel=0.15)
    assert vanishing > 1.25 * behind


def test_a_run_that_is_resumed_while_people_walk_out_is_the_same(tmp_path: Path) -> None:
    def crowd() -> Simulation:
        return Simulation(corridor(), Group("p", count=12, region=shapely.box(5, 0, 9, 2)), seed=2, threads=1)

    whole = crowd()
    whole.run(until=1.5)
    assert (whole.agents.leaves_by >= 0).any()
    whole.save(tmp_path / "half.npz")
    resumed = crowd()
    resumed.restore(tmp_path / "half.npz")
    for sim in (whole, resumed):
        sim.run(until="empty", limit=60.0)
    assert resumed.state_hash() == whole.state_hash()
    np.testing.assert_array_equal(resumed.population.departures()["time"], whole.population.departures()["time"])
    arrays, meta = load_checkpoint(tmp_path / "half.npz")
    arrays["agents/leaves_by"] = np.full_like(arrays["agents/leaves_by"], 7)
    save_checkpoint(tmp_path / "forged.npz", arrays=arrays, meta=meta)
    with pytest.raises(CheckpointError, match="leaves_by"):
        crowd().restore(tmp_path / "forged.npz")


def test_an_exit_that_closes_behind_people_does_not_bring_them_back() -> None:
    sim = Simulation(corridor(), Group("p", positions=[(9.8, 1.0), (2.0, 1.0)]), local=Walk(walk_on=2.0))
    sim.at(1.0, events.CloseExit(exit="out"))
    sim.run(until=5.0)
    assert sim.agents.id.tolist() == [1]


def test_those_that_die_while_they_walk_out_stay() -> None:
    sim = Simulation(corridor(), Group("p", positions=[(9.9, 1.0)]), local=Walk(walk_on=3.0))
    sim.at(0.5, events.AddHazard(name="blast", inner=2.0, position=(10, 1), type="explosion", until=1.0, deadly=True))
    sim.run(until=4.0)
    assert sim.agents.dead.tolist() == [1]
    assert sim.population.departed == 0


def test_only_models_that_follow_directions_let_people_walk_on() -> None:
    with pytest.raises(ParameterError, match="walk_on is for agents that follow directions"):
        ModelDeclaration(walk_on=1.0, follows=tropel.contracts.Follows.GROUND)
    with pytest.raises(ParameterError, match="walk_on"):
        ModelDeclaration(walk_on=-1.0)

    class Wrong(Model):
        walk_on = 1.0

        def steer(self, moment: Any, out: Any) -> None: ...

    with pytest.raises(ParameterError, match="declare it as"):
        Simulation(corridor(), Group("p", count=1), local=Wrong())
