"""Events: each kind from Python and from JSON, their order, their time, and what is said when one cannot be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tropel import (
    Direct,
    Disc,
    Door,
    Flocking,
    Go,
    Group,
    Hazard,
    Knowledge,
    Lattice,
    Normal,
    Obstacle,
    Openness,
    Orbit,
    PathPlans,
    Simulation,
    Source,
    Squad,
    Target,
    Task,
    Uniform,
    ValueMap,
    Waypoints,
    World,
    events,
)
from tropel.contracts.layers import Behaviours
from tropel.errors import EventError, ParameterError, TropelError
from tropel.events.queue import event_from_json, event_json, step_at
from tropel.registry import EVENTS

HALL = shapely.box(0, 0, 20, 10)


def hall(**more: Any) -> World:
    return World(
        HALL,
        exits={"east": shapely.box(18, 4, 20, 6), "west": shapely.box(0, 4, 2, 6)},
        doors={"main": Door([(10, 0), (10, 10)], open=True), "side": [(14, 0), (14, 3)]},
        regions={"start": shapely.box(3, 1, 8, 9)},
        targets={"bar": (5, 5)},
        obstacles={"cart": Obstacle(radius=0.3, position=(12, 8))},
        hazards={"fire": Hazard(inner=0.3, position=(16, 2))},
        **more,
    )


class Whistling(Direct):
    """A planner with something to switch off."""

    def __init__(self) -> None:
        super().__init__()
        self.behaviours = Behaviours("whistling")
        self.set_behaviour = self.behaviours.switch
        self.state, self.restore = self.behaviours.state, self.behaviours.restore


def simulation(**more: Any) -> Simulation:
    groups = [Group("a", count=5, region="start"), Group("b", count=5, region="start")]
    return Simulation(hall(), groups, **{"planning": Whistling(), **more})


def both_ways(event: Any) -> list[Any]:
    """The event as made in Python, and as read back from what a file or checkpoint holds."""
    return [event, event_from_json(event_json(event))]


# One of each kind ---------------------------------------------------------------------------------------------------

ONE_OF_EACH = [
    events.OpenDoor(door="side"),
    events.CloseDoor(door="main"),
    events.OpenExit(exit="west"),
    events.CloseExit(exit="east"),
    events.AddObstacle(name="rock", radius=0.5, position=(15, 8)),
    events.AddObstacle(name="fan", radius=0.5, motion=Orbit(center=(15, 5), radius=1, period=3)),
    events.MoveObstacle(name="cart", position=(13, 7)),
    events.RemoveObstacle(name="cart"),
    events.AddHazard(name="spill", inner=0.5, position=(15, 8), type="water", until=9.0, replan=True, deadly=False),
    events.AddHazard(name="cloud", inner=0.5, motion=Orbit(center=(15, 5), radius=1, period=3), growth=0.1, largest=2),
    events.MoveHazard(name="fire", position=(17, 3)),
    events.GrowHazard(name="fire", inner=0.5, outer=0.7),
    events.RemoveHazard(name="fire"),
    events.AddTarget(name="new", position=(7, 7), radius=0.1, absorbs=True),
    events.AddTarget(name="train", motion=Waypoints(points=((1, 1), (9, 9)), speed=2.0, repeat="once")),
    events.MoveTarget(name="bar", position=(6, 2)),
    events.RemoveTarget(name="bar"),
    events.SetGoal(goal="bar", group="a"),
    events.SetStages(stages=[{"go": "bar"}, {"wait": 2.0}, {"go": "east"}], group="a"),
    events.Signal(name="now"),
    events.AddTask(name="sweep", work=2.0, place="bar", agents=2, needs={"desired_speed": 0.5}),
    events.RemoveTask(name="mop"),
    events.Announce(door="main", state="shut", group="a"),
    events.Order(squad="a", stages=[{"retreat_to": "bar"}], formation="line"),
    events.SetLeader(group="a", leader="central"),
    events.SetParameter(name="desired_speed", value=Normal(1.0, 0.1), group="b"),
    events.SetParameter(name="radius", value=0.1),
    events.Drift(name="desired_speed", to=Uniform(0.5, 0.9), over=0.3, group="a"),
    events.Surge(name="desired_speed", factor=1.5, fade=0.5),
    events.Tire(over=0.3, group="b"),
    events.Alarm(fade=0.5),
    events.SetBehaviour(name="whistling", on=False),
    events.AddAgents(
        group="a", count=3, region="start", radius=Uniform(0.1, 0.2), desired_speed=Normal(1, 0.2, low=0.5)
    ),
    events.RemoveAgents(group="b", region="start"),
    events.AddValueMap(name="puddle", values=((0.5, 0.0), (1.0, 0.2)), position=(6, 4), cell=0.8, group="a"),
    events.AddValueMap(name="cart", values=Disc(outer=2.0), motion=Orbit(center=(15, 5), radius=1, period=3)),
    events.RemoveValueMap(name="edges"),
]


def simulation_for(event: Any) -> Simulation:
    """One in which the event can happen: layers need somebody who lays them."""
    if event.kind == "set_leader":
        return simulation(local=Flocking())
    if event.kind in ("add_task", "remove_task"):
        return simulation(tasks={"mop": Task(work=1.0, place="bar")})
    if event.kind == "announce":
        return simulation(knowledge=Knowledge())
    if event.kind == "order":
        squad = Group("a", count=5, region="start", squad=Squad(), stages=[Go("east")])
        return Simulation(hall(), [squad, Group("b", count=5, region="start")])
    if event.kind not in ("add_value_map", "remove_value_map"):
        return simulation()
    return simulation(planning=PathPlans(value_maps={"edges": ValueMap(Openness())}), local=Lattice())


def test_the_examples_cover_every_kind() -> None:
    assert {type(event) for event in ONE_OF_EACH} == {entry.load() for entry in EVENTS.values()}


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.kind)
def test_every_kind_survives_json(event: Any) -> None:
    assert event_from_json(event_json(event)) == event


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.kind)
def test_every_kind_does_the_same_from_python_and_from_json(event: Any) -> None:
    hashes = []
    for either in both_ways(event):
        sim = simulation_for(event)
        sim.at(0.1, either)
        for _ in range(4):
            sim.step()
        hashes.append(sim.state_hash())
    assert hashes[0] == hashes[1]
    untouched = simulation_for(event)
    for _ in range(4):
        untouched.step()
    if not isinstance(event, events.OpenExit):  # the west exit is open already
        assert hashes[0] != untouched.state_hash()


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.kind)
def test_an_event_still_to_come_survives_a_checkpoint(event: Any, tmp_path: Any) -> None:
    through = simulation_for(event)
    through.at(0.2, event)
    for _ in range(8):
        through.step()
    first = simulation_for(event)
    first.at(0.2, event)
    first.step()
    first.save(tmp_path / "early.ckpt")
    second = simulation_for(event)
    second.restore(tmp_path / "early.ckpt")
    for _ in range(7):
        second.step()
    assert second.state_hash() == through.state_hash()


def apply_now(sim: Simulation, event: Any) -> None:
    sim.at(sim.time, event)
    sim.step()


def test_doors_open_and_close() -> None:
    sim = simulation()
    apply_now(sim, events.OpenDoor(door="side"))
    apply_now(sim, events.CloseDoor(door="main"))
    assert sim.world.doors["side"].open
    assert not sim.world.doors["main"].open


def test_exits_open_and_close() -> None:
    sim = simulation()
    apply_now(sim, events.CloseExit(exit="east"))
    assert not sim.world.exits["east"].open
    apply_now(sim, events.OpenExit(exit="east"))
    assert sim.world.exits["east"].open


def test_obstacles_come_move_and_go() -> None:
    sim = simulation()
    apply_now(sim, events.AddObstacle(name="rock", radius=0.5, position=(15, 8)))
    apply_now(sim, events.MoveObstacle(name="rock", position=(16, 8)))
    np.testing.assert_array_equal(sim.world.obstacles.position, [(12, 8), (16, 8)])
    apply_now(sim, events.RemoveObstacle(name="cart"))
    assert sim.world.obstacles.names == ["rock"]


def test_targets_come_and_move_and_people_can_be_sent_to_them() -> None:
    sim = simulation()
    apply_now(sim, events.AddTarget(name="new", position=(7, 7)))
    apply_now(sim, events.SetGoal(goal="new", group="a"))
    number = sim.world.goal_numbers["new"]
    assert (sim.agents.goal[sim.agents.group == 0] == number).all()
    assert (sim.agents.goal[sim.agents.group == 1] != number).all()
    apply_now(sim, events.MoveTarget(name="new", position=(7, 2)))
    np.testing.assert_array_equal(sim.world.goals().position[number], (7, 2))
    apply_now(sim, events.SetGoal(goal="none"))
    before = sim.agents.position.copy()
    sim.step()
    np.testing.assert_array_equal(sim.agents.position, before)


def test_parameters_change_for_one_group_or_for_all() -> None:
    sim = simulation()
    apply_now(sim, events.SetParameter(name="desired_speed", value=0.25, group="b"))
    assert (sim.agents.desired_speed[sim.agents.group == 1] == 0.25).all()
    assert (sim.agents.desired_speed[sim.agents.group == 0] == 1.34).all()
    apply_now(sim, events.SetParameter(name="desired_speed", value=Uniform(0.5, 0.6)))
    assert ((sim.agents.desired_speed >= 0.5) & (sim.agents.desired_speed <= 0.6)).all()
    assert len(np.unique(sim.agents.desired_speed)) == 10
    apply_now(sim, events.SetParameter(name="desired_speed", value="default", group="a"))
    assert (sim.agents.desired_speed[sim.agents.group == 0] == 1.34).all()
    assert (sim.agents.desired_speed[sim.agents.group == 1] < 0.61).all()


def test_agents_come_and_go_and_ids_stay_stable() -> None:
    sim = simulation()
    apply_now(sim, events.RemoveAgents(group="a"))
    assert sim.agents.id.tolist() == [5, 6, 7, 8, 9]
    apply_now(sim, events.AddAgents(group="a", count=3, region="start", desired_speed=0.5, delay=2.0))
    assert sim.agents.id.tolist() == [5, 6, 7, 8, 9, 10, 11, 12]
    assert sim.agents.group.tolist() == [1] * 5 + [0] * 3
    np.testing.assert_allclose(sim.agents.stage_until[5:], 2.05)
    assert sim.population.departures()["id"].size == 0
    apply_now(sim, events.RemoveAgents(region="start"))
    inside = shapely.contains_xy(sim.world.regions["start"], *sim.agents.position.T)
    assert not inside.any()
    assert (np.diff(sim.agents.id) > 0).all()


# When ---------------------------------------------------------------------------------------------------------------


@given(step=st.integers(0, 30_000_000), dt=st.sampled_from([0.1, 0.05, 0.04, 0.01, 1 / 3, 0.3, 1.0, 0.125]))
@settings(max_examples=300)
@example(step=3, dt=0.1)
@example(step=22_369_622, dt=0.1)
def test_the_time_of_a_step_means_that_step(step: int, dt: float) -> None:
    assert step_at(step * dt, dt) == step


@given(time=st.floats(0, 1e6), dt=st.floats(1e-3, 2.0))
@settings(max_examples=300)
@example(time=0.3, dt=0.1)
@example(time=0.7, dt=0.1)
@example(time=0.30000000000000004, dt=0.1)
@example(time=1e-12, dt=0.1)
def test_an_event_is_due_at_the_first_step_that_is_not_before_it(time: float, dt: float) -> None:
    step = step_at(time, dt)
    assert step * dt >= time - 1e-9 * dt
    assert step == 0 or (step - 1) * dt < time - 1e-9 * dt


@pytest.mark.parametrize("time", [1e15, 1e30, 1e300])
def test_even_absurd_times_have_a_step(time: float) -> None:
    assert step_at(time, 0.1) > 0


@pytest.mark.parametrize(
    ("time", "step"), [(0.3, 3), (0.30000000000000004, 3), (0.29, 3), (0.31, 4), (0.0, 0), (0.7, 7), (1e-13, 0)]
)
def test_a_function_is_called_at_the_step_its_time_says(time: float, step: int) -> None:
    sim = simulation(dt=0.1)
    called: list[int] = []
    sim.at(time, lambda s: called.append(s.step_number))
    for _ in range(6 if step < 6 else 9):
        sim.step()
    assert called == [step]


def test_events_of_one_step_happen_in_the_order_they_were_scheduled() -> None:
    sim = simulation(dt=0.1)
    seen: list[str] = []
    for time, name in ((0.2, "second b"), (0.1, "first"), (0.2, "second c"), (0.15, "second d"), (0.3, "third")):
        sim.at(time, lambda s, name=name: seen.append(name))
    for _ in range(4):
        sim.step()
    assert seen == ["first", "second b", "second c", "second d", "third"]


def test_what_an_event_schedules_for_now_happens_now() -> None:
    sim = simulation(dt=0.1)
    seen: list[tuple[str, int]] = []

    def first(s: Simulation) -> None:
        seen.append(("first", s.step_number))
        s.at(s.time, lambda s: seen.append(("then", s.step_number)))
        s.at(s.time + 0.1, lambda s: seen.append(("later", s.step_number)))

    sim.at(0.1, first)
    for _ in range(4):
        sim.step()
    assert seen == [("first", 1), ("then", 1), ("later", 2)]


def test_now_is_not_too_late_but_before_is() -> None:
    sim = simulation(dt=0.1)
    for _ in range(3):
        sim.step()
    sim.at(0.3, events.CloseDoor(door="main"))
    with pytest.raises(ParameterError, match=r"t = 0\.2 s has already passed \(it is 0\.3 s now\)"):
        sim.at(0.2, events.CloseDoor(door="main"))
    sim.step()
    assert not sim.world.doors["main"].open


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_no_number_is_refused(time: float) -> None:
    with pytest.raises(ParameterError, match="time must be a number"):
        simulation().at(time, events.CloseDoor(door="main"))


def test_a_negative_time_is_over() -> None:
    sim = simulation()
    sim.step()
    with pytest.raises(ParameterError, match="has already passed"):
        sim.at(-1.0, events.CloseDoor(door="main"))


# What cannot be -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (events.OpenDoor(door="mian"), "no door 'mian'; did you mean 'main'"),
        (events.CloseDoor(door="mian"), "no door 'mian'; did you mean 'main'"),
        (events.OpenExit(exit="eastt"), "no exit 'eastt'; did you mean 'east'"),
        (events.CloseExit(exit="north"), "no exit 'north'; known: east, west"),
        (events.SetGoal(goal="bar", group="c"), "no group 'c'; known: a, b"),
        (events.SetParameter(name="desired_sped", value=1.0), "'desired_sped' .*did you mean 'desired_speed'"),
        (events.SetParameter(name="position", value=1.0), "no parameter 'position' to set"),
        (events.SetParameter(name="id", value=1.0), "no parameter 'id' to set"),
        (events.AddAgents(group="c", count=1), "no group 'c'"),
        (events.AddAgents(group="a", count=1, region="strat"), "no region 'strat'; did you mean 'start'"),
        (events.RemoveAgents(region="strat"), "no region 'strat'; did you mean 'start'"),
        (events.AddObstacle(name="o", radius=1.0), "either a position or a motion"),
        (events.AddTarget(name="o"), "either a position"),
        (events.MoveObstacle(name="crat", position=(1, 1)), "no obstacle 'crat'; did you mean 'cart'"),
        (events.RemoveObstacle(name="crat"), "no obstacle 'crat'; did you mean 'cart'"),
        (events.AddObstacle(name="cart", radius=1, position=(1, 1)), "obstacle 'cart' already"),
        (events.AddObstacle(name="ball", radius=1, position=(1, 1, 1)), "expected 2 coordinates"),
        (events.AddObstacle(name="ball", radius=1, position=(1, 12)), "outside the world"),
        (events.AddObstacle(name="ball", radius=1, motion=Orbit(center=(1, 1, 1), radius=1, period=1)), "2 finite"),
        (events.MoveObstacle(name="cart", position=(1, 1, 1)), "expected 2 coordinates"),
        (events.MoveObstacle(name="cart", position=(-5, 1)), "outside the world"),
        (events.MoveHazard(name="fier", position=(1, 1)), "no hazard 'fier'; did you mean 'fire'"),
        (events.MoveHazard(name="fire", position=(1, 1, 1)), "expected 2 coordinates"),
        (events.GrowHazard(name="fier", inner=1.0), "no hazard 'fier'"),
        (events.RemoveHazard(name="fier"), "no hazard 'fier'"),
        (events.AddHazard(name="fire", inner=1.0, position=(1, 1)), "hazard 'fire' already"),
        (events.AddHazard(name="new", inner=1.0, position=(1, 1), until=0.5), "over when it is added at 1 s"),
        (
            events.AddHazard(name="new", inner=1.0, motion=Waypoints(points=((1, 1), (1, 99)), speed=50)),
            "outside the world",
        ),
        (events.AddTarget(name="bar", position=(1, 1)), "target 'bar' already"),
        (events.AddTarget(name="east", position=(1, 1)), "exit 'east' already"),
        (events.AddTarget(name="far", position=(100, 1)), "outside the walkable area"),
        (events.MoveTarget(name="bra", position=(1, 1)), "no target 'bra'; did you mean 'bar'"),
        (events.MoveTarget(name="east", position=(1, 1)), "no target 'east'"),
        (events.MoveTarget(name="bar", position=(100, 1)), "outside the walkable area"),
        (events.RemoveTarget(name="bra"), "no target 'bra'; did you mean 'bar'"),
        (events.SetGoal(goal="bra"), "no goal 'bra'; did you mean 'bar'"),
        (events.SetGoal(goal="nearest exti"), "did you mean 'nearest exit'"),
        (events.SetParameter(name="radius", value=-1.0), "radius must be a positive number"),
        (events.SetParameter(name="radius", value=0.0), "radius must be a positive number"),
        (events.SetBehaviour(name="wistling", on=False), "did you mean 'whistling'"),
        (events.AddAgents(group="a", count=1, goal="bra"), "no goal 'bra'"),
        (events.AddAgents(group="a", count=1, follow="c"), "no group 'c'"),
        (events.AddAgents(group="a", count=1, around=(1, 1, 1)), "expected 2 coordinates"),
        (events.AddAgents(group="a", count=1, around=(90, 1)), "outside the walkable area"),
        (events.AddAgents(group="a", count=1, parameters={"patience": 1.0}), "no parameter 'patience'"),
        (events.Drift(name="desired_sped", to=1.0, over=1.0), "did you mean 'desired_speed'"),
        (events.Alarm(group="c"), "no group 'c'"),
        (events.AddValueMap(name="x", values=((1.0,),), position=(3, 3)), "no planner here publishes value maps"),
        (events.RemoveValueMap(name="x"), "no planner here publishes value maps"),
        (events.CloseDoor, "one of tropel.events or a function"),
        ("close the door", "one of tropel.events or a function"),
        (None, "one of tropel.events or a function"),
    ],
)  # fmt: skip
def test_what_can_be_seen_beforehand_is_refused_when_it_is_scheduled(event: Any, says: str) -> None:
    sim = simulation()
    with pytest.raises(TropelError, match=says):
        sim.at(1.0, event)
    assert len(sim.events) == 0


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (events.MoveObstacle(name="cart", position=(1, 1)), "no obstacle 'cart'"),
        (events.AddObstacle(name="new", radius=1, position=(1, 1)), "obstacle 'new' already"),
        (events.MoveTarget(name="bar", position=(1, 1)), "no target 'bar'"),
        (events.SetParameter(name="radius", value=Uniform(-2.0, -1.0)), "radius must be a positive number"),
        (events.AddAgents(group="a", count=5000, region="start"), "5000 agents .* do not fit"),
    ],
)
def test_what_goes_wrong_when_its_time_has_come_says_which_event_and_when(event: Any, says: str) -> None:
    def surprise(sim: Simulation) -> None:
        sim.world.obstacles.remove("cart")
        sim.world.obstacles.add("new", Obstacle(radius=0.2, position=(19, 9)))
        sim.world.remove_target("bar")

    sim = simulation(dt=0.1)
    sim.at(0.1, surprise)
    sim.at(0.2, event)
    with pytest.raises(EventError, match=rf"event .*{event.kind}.* at t = 0\.2 s: .*{says}"):
        sim.run(until=1.0)
    assert sim.step_number == 2


def test_a_function_that_fails_is_named_with_its_time() -> None:
    def evacuate(sim: Simulation) -> None:
        raise ZeroDivisionError("no plan")

    sim = simulation(dt=0.1)
    sim.at(0.2, evacuate)
    with pytest.raises(EventError, match=r"evacuate.* at t = 0\.2 s: ZeroDivisionError: no plan"):
        sim.run(until=1.0)


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "open_dor", "door": "main"}',
        '{"kind": "open_door"}',
        '{"kind": "open_door", "door": "main", "when": 3}',
        '{"kind": "add_obstacle", "name": "o", "radius": -1, "position": [1, 1]}',
        '{"kind": "add_obstacle", "name": "o", "radius": 1, "position": [1]}',
        '{"kind": "add_agents", "group": "a", "count": 0}',
        '{"kind": "add_agents", "group": "a", "count": 2.5}',
        '{"kind": "set_parameter", "name": "radius", "value": "big"}',
        "[]",
        "{",
    ],
)
def test_a_file_with_a_wrong_event_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        event_from_json(text)


def test_an_event_cannot_be_changed_once_made() -> None:
    with pytest.raises(ValidationError):
        events.OpenDoor(door="main").door = "side"


def test_the_run_knows_whether_somebody_may_still_be_brought_in() -> None:
    sim = simulation()
    assert not sim.events.adds_agents()
    sim.at(5.0, events.CloseDoor(door="main"))
    assert not sim.events.adds_agents()
    sim.at(5.0, events.AddAgents(group="a", count=1))
    assert sim.events.adds_agents()


def test_a_function_due_after_a_checkpoint_must_be_scheduled_again(tmp_path: Any) -> None:
    def later(sim: Simulation) -> None:
        sim.set_goal("none")

    first = simulation()
    first.at(0.5, later)
    first.step()
    first.save(tmp_path / "c.ckpt")
    same = simulation()
    same.at(0.5, later)
    same.restore(tmp_path / "c.ckpt")
    assert len(same.events) == 1
    with pytest.raises(TropelError, match=r"function '.*later', due at step 10, is not scheduled"):
        simulation().restore(tmp_path / "c.ckpt")


def test_sources_and_events_together_keep_rows_in_the_order_of_ids() -> None:
    world = hall()
    sim = Simulation(
        world,
        [Group("a", count=5, region="start"), Source("b", rate=8.0, region=shapely.box(12, 1, 17, 3), goal="bar")],
        dt=0.1,
    )
    for k in range(1, 12):
        sim.at(0.2 * k, events.AddAgents(group="a", count=2, region="start"))
        sim.at(0.2 * k + 0.1, lambda s, k=k: s.remove_agents(ids=[k, 2 * k]))
    gone: set[int] = set()
    before: dict[int, float] = {}
    for _ in range(30):
        sim.step()
        assert (np.diff(sim.agents.id) > 0).all()
        now = dict(zip(sim.agents.id.tolist(), sim.agents.desired_speed.tolist(), strict=True))
        gone |= set(before) - set(now)
        assert not gone & set(now)
        before = now
    assert len(gone) >= 15


def test_a_target_made_by_an_event_can_absorb() -> None:
    sim = Simulation(hall(), Group("a", positions=[(5, 8)], goal="none"), dt=0.1)
    sim.at(0.1, events.AddTarget(name="gate", position=(5, 7), radius=0.5, absorbs=True))
    sim.at(0.1, events.SetGoal(goal="gate"))
    summary = sim.run(until="empty", limit=10.0)
    assert summary.exits == {"gate": 1}
    assert isinstance(sim.world.targets["gate"], Target)


def test_agents_can_be_added_around_a_place() -> None:
    sim = Simulation(hall(), Group("visitors", count=2, region="start"), seed=4, threads=1)
    sim.at(0.0, events.AddAgents(group="visitors", count=6, around=(16.0, 7.0), within=1.5))
    sim.step()
    added = sim.agents.position[2:]
    assert len(added) == 6
    # They have gone one step of 0.05 s since.
    assert (np.linalg.norm(added - [16.0, 7.0], axis=1) < 1.5 + 0.1).all()


def test_in_space_agents_are_added_in_the_cube_around_a_place() -> None:
    world = World.box((0, 0, 0), (10, 10, 10))
    sim = Simulation(world, Group("birds", count=1, goal="none"), seed=4, threads=1)
    sim.at(0.0, events.AddAgents(group="birds", count=5, around=(9.5, 5.0, 5.0), within=1.0, goal="none"))
    sim.step()
    assert (np.abs(sim.agents.position[1:] - [9.5, 5.0, 5.0]) <= 1.1).all()


def test_a_region_and_a_place_exclude_each_other() -> None:
    sim = Simulation(hall(), Group("visitors", count=2, region="start"), threads=1)
    with pytest.raises(ParameterError, match="give only one of the two"):
        sim.at(1.0, events.AddAgents(group="visitors", count=1, region="start", around=(5.0, 5.0)))
