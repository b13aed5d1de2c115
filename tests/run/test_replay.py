"""Recorded runs that are repeated from their events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shapely
from budget_scenes import Clock, budget, juggler

from tropel import Group, Hazard, Lattice, PathPlans, Simulation, World, events
from tropel.errors import EventError, ParameterError
from tropel.events.queue import event_json


def lattice(**more: Any) -> Simulation:
    """A crowd on cells with everything that a budget may leave out, and events of its own."""
    world = World(
        shapely.box(0, 0, 16, 8),
        walls=[[(12, 0), (12, 3.4)], [(12, 4.6), (12, 8)]],
        exits={"out": shapely.box(15, 3, 16, 5)},
        hazards={"fire": Hazard(inner=0.5, position=(9, 2.2), growth=0.01)},
    )
    sim = Simulation(
        world,
        Group("people", count=80, region=shapely.box(0.4, 0.4, 7, 7.6)),
        planning=PathPlans(congestion={"high": 4.0, "low": 2.0, "every": 2}),
        local=Lattice(),
        dt=0.25,
        **more,
    )
    sim.at(3.0, events.MoveHazard(name="fire", position=(9, 6)))
    sim.at(4.0, events.Drift(name="desired_speed", to=1.0, over=3.0))
    sim.at(5.0, events.AddAgents(group="people", count=3))
    sim.at(50.0, events.RemoveHazard(name="fire"))
    return sim


def waves(step: int) -> float:
    """Load that comes and goes [ms]."""
    return 14.0 if step // 20 % 2 else 3.0


ORDER = ("congestion", "separation", "hazard influence")


def budgeted(sim: Simulation, path: Path | None, *, until: float = 20.0, **more: Any) -> Any:
    clock = Clock(sim, waves, congestion=1.0, separation=1.0)
    return sim.run(until=until, budget=budget(clock, order=ORDER), record=path, **more)


@pytest.mark.parametrize("kind", ["sqlite", "parquet"])
def test_a_budgeted_run_is_repeated_bit_for_bit_without_its_clock(kind: str, tmp_path: Path) -> None:
    first = budgeted(lattice(), tmp_path / f"first.{kind}")
    assert len(first.budget.switches) > 5
    again = lattice()
    again.replay(tmp_path / f"first.{kind}")
    assert again.run(until=20.0).state_hash == first.state_hash
    assert lattice().run(until=20.0).state_hash != first.state_hash


def test_every_step_is_the_same_and_so_is_a_replay_of_the_replay(tmp_path: Path) -> None:
    hashes: list[str] = []
    budgeted(lattice(), tmp_path / "first.sqlite", progress=lambda sim: hashes.append(sim.state_hash()))
    for source, record in (("first", "second"), ("second", "third")):
        told: list[str] = []
        sim = lattice(threads=1)
        sim.replay(tmp_path / f"{source}.sqlite")
        sim.run(until=20.0, record=tmp_path / f"{record}.sqlite", progress=lambda s, t=told: t.append(s.state_hash()))
        assert told == hashes


def test_a_budgeted_run_that_was_resumed_is_repeated_too(tmp_path: Path) -> None:
    sim = lattice()
    budgeted(sim, tmp_path / "run.sqlite", until=7.0, checkpoint=tmp_path / "half")
    assert sim.spared
    resumed = lattice()
    resumed.restore(tmp_path / "half")
    assert resumed.spared == sim.spared
    # After the resume the load is low: what the first half left out comes back.
    last = resumed.run(until=20.0, record=tmp_path / "run.sqlite", budget=budget(Clock(resumed, 1), order=ORDER))
    assert {each.name for each in last.budget.switches if each.on} == sim.spared
    assert last.budget.left_out == ()
    again = lattice()
    again.replay(tmp_path / "run.sqlite")
    assert again.run(until=20.0).state_hash == last.state_hash


def test_a_replay_can_begin_at_a_checkpoint(tmp_path: Path) -> None:
    first = budgeted(lattice(), tmp_path / "run.sqlite")
    sim = lattice()
    sim.replay(tmp_path / "run.sqlite")
    sim.run(until=9.0)
    sim.save(tmp_path / "half")
    resumed = lattice()
    resumed.restore(tmp_path / "half")
    resumed.replay(tmp_path / "run.sqlite")
    assert resumed.run(until=20.0).state_hash == first.state_hash


def test_declared_events_happen_once_and_those_after_the_record_happen_too(tmp_path: Path) -> None:
    budgeted(lattice(), tmp_path / "run.sqlite")
    sim = lattice()
    sim.replay(tmp_path / "run.sqlite")
    sim.run(until=20.0)
    assert sim.agents.next_id == 83
    assert "fire" in sim.world.hazards
    sim.run(until=51.0)
    assert "fire" not in sim.world.hazards


def test_a_file_of_lines_is_a_record_too(tmp_path: Path) -> None:
    sim = juggler()
    first = sim.run(until=6.0, budget=budget(Clock(sim, 5, a=0, b=9, c=1)))
    lines = []
    for each in first.budget.switches:
        event = {"kind": "set_behaviour", "name": each.name, "on": each.on, "by": "budget"}
        lines.append(json.dumps({"step": each.step, "event": event}))
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    again = juggler()
    again.replay(tmp_path / "events.jsonl")
    assert again.run(until=6.0).state_hash == first.state_hash


def test_those_whom_the_record_brings_in_are_waited_for(tmp_path: Path) -> None:
    line = {"step": 30, "event": {"kind": "add_agents", "group": "people", "count": 2}}
    (tmp_path / "more.jsonl").write_text(json.dumps(line))
    world = World(shapely.box(0, 0, 8, 4), exits={"out": shapely.box(6, 0, 8, 4)})
    sim = Simulation(world, Group("people", positions=[(5.0, 2.0)]), dt=0.1)
    sim.replay(tmp_path / "more.jsonl")
    assert sim.run(until="empty", limit=60.0).evacuated == 3


# Functions ----------------------------------------------------------------------------------------------------------


def hurry(sim: Simulation) -> None:
    sim.at(sim.time, events.SetParameter(name="desired_speed", value=1.6))
    sim.at(sim.time + 0.5, events.SetParameter(name="desired_speed", value=1.5))


def test_what_a_function_schedules_happens_once(tmp_path: Path) -> None:
    def with_function() -> Simulation:
        sim = juggler()
        sim.at(2.0, hurry)
        sim.every(1.0, lambda sim: None)
        return sim

    sim = with_function()
    first = sim.run(until=6.0, budget=budget(Clock(sim, 5, a=0, b=9, c=1)), record=tmp_path / "run.sqlite")
    again = with_function()
    again.replay(tmp_path / "run.sqlite")
    again.run(until=6.0, record=tmp_path / "again.sqlite")
    assert again.state_hash() == first.state_hash


def test_a_function_that_is_not_scheduled_here_cannot_be_repeated(tmp_path: Path) -> None:
    sim = juggler()
    sim.at(2.0, hurry)
    sim.run(until=3.0, record=tmp_path / "run.sqlite")
    again = juggler()
    again.replay(tmp_path / "run.sqlite")
    with pytest.raises(EventError, match="called the function 'hurry' at step 20; a file cannot hold functions"):
        again.run(until=3.0)


# What is refused ----------------------------------------------------------------------------------------------------


def test_a_record_of_another_run_is_noticed(tmp_path: Path) -> None:
    juggler().run(until=3.0, record=tmp_path / "run.sqlite")
    other = juggler()
    other.at(1.0, events.SetBehaviour(name="a", on=False))
    other.replay(tmp_path / "run.sqlite")
    with pytest.raises(EventError, match=r"not a record of this run: at step 10 it has no .*set_behaviour"):
        other.run(until=3.0)


def test_events_in_another_order_are_noticed(tmp_path: Path) -> None:
    def both(*order: bool) -> Simulation:
        sim = juggler()
        for on in order:
            sim.at(1.0, events.SetBehaviour(name="a", on=on))
        return sim

    both(True, False).run(until=3.0, record=tmp_path / "run.sqlite")
    other = both(False, True)
    other.replay(tmp_path / "run.sqlite")
    with pytest.raises(EventError, match="in another order"):
        other.run(until=3.0)


def test_another_time_step_is_refused_and_another_seed_warned_of(tmp_path: Path) -> None:
    lattice().run(until=1.0, record=tmp_path / "run.sqlite")
    with pytest.raises(EventError, match=r"recorded with dt = 0.25 s, but dt is 0.1 s here"):
        juggler().replay(tmp_path / "run.sqlite")
    with pytest.warns(UserWarning, match="recorded with the seed 0"):
        lattice(seed=1).replay(tmp_path / "run.sqlite")


def test_a_replay_has_no_budget(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    sim = juggler()
    sim.replay(tmp_path / "none.jsonl")
    with pytest.raises(ParameterError, match="replayed has no budget"):
        sim.run(until=1.0, budget=budget(Clock(sim, 1)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", "line 1: each line must be like"),
        ('{"step": 1}', "line 1"),
        ('\n{"step": -1, "event": {}}', "line 2.*not negative"),
        ('{"step": 1.5, "event": {}}', "whole number"),
        ("[1, 2]", "line 1"),
        ('{"step": 1, "event": {"kind": "set_behavior", "name": "a", "on": true}}', "at step 1 is not an event"),
        ('{"step": 1, "event": 5}', "at step 1 is not an event"),
    ],
)
def test_a_file_that_holds_no_events_is_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(text)
    with pytest.raises(EventError, match=says):
        juggler().replay(tmp_path / "bad.jsonl")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EventError, match=r"cannot read .*gone.jsonl"):
        juggler().replay(tmp_path / "gone.jsonl")


# What cannot happen here --------------------------------------------------------------------------------------------


def lines(*entries: tuple[int, Any]) -> str:
    return "\n".join(json.dumps({"step": step, "event": json.loads(event_json(event))}) for step, event in entries)


def test_events_of_a_file_that_cannot_happen_are_found_when_it_is_read(tmp_path: Path) -> None:
    record = tmp_path / "events.jsonl"
    put = events.AddObstacle(name="rock", radius=0.2, position=(1.0, 1.0))
    move = events.MoveObstacle(name="rock", position=(1.0, 1.0))
    record.write_text(lines((3, put), (5, events.RemoveObstacle(name="rock")), (7, move), (8, move)))
    with pytest.raises(EventError) as caught:
        juggler().replay(record)
    gone = "there is no obstacle 'rock' any more: 'remove obstacle' removes it at t = 0.5 s"
    assert str(caught.value).splitlines() == [f"{record}, line 3: {gone}", f"{record}, line 4: {gone}"]
    record.write_text(lines((3, put), (5, move)))
    sim = juggler()
    sim.replay(record)
    assert len(sim.events) == 0, "reading a record schedules nothing"


def test_what_comes_after_a_recorded_function_cannot_be_known(tmp_path: Path) -> None:
    record = tmp_path / "events.jsonl"
    function = json.dumps({"step": 2, "event": {"kind": "function", "name": "anything"}})
    move = lines((3, events.MoveObstacle(name="rock", position=(1.0, 1.0))))
    record.write_text(f"{function}\n{move}")
    juggler().replay(record)
    record.write_text(move)
    with pytest.raises(EventError, match="line 1: there is no obstacle 'rock'; none are defined"):
        juggler().replay(record)


def test_what_the_scenario_has_for_after_the_record_is_known_too(tmp_path: Path) -> None:
    record = tmp_path / "events.jsonl"
    sim = juggler()
    sim.at(0.5, events.AddObstacle(name="rock", radius=0.2, position=(1.0, 1.0)))
    record.write_text(lines((5, events.MoveObstacle(name="rock", position=(1.0, 1.0)))))
    sim.replay(record)
    sim.run(until=1.0)
    assert "rock" in sim.world.obstacles
