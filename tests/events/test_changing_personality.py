"""What changes while people walk: drifts, surges, fatigue, adrenaline and functions called again and again."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel import Dynamical, Group, Normal, Seek, Simulation, Source, Uniform, World, events, read_trajectory
from tropel.contracts import Guidance, Moment, Planner
from tropel.errors import CheckpointError, EventError, ParameterError
from tropel.events.queue import event_from_json, event_json
from tropel.registry import EVENTS

HALL = shapely.box(0, 0, 30, 20)
START = shapely.box(1, 1, 12, 19)


def people(*, dt: float = 0.1, local: Any = None, goal: str = "none", **more: Any) -> Simulation:
    world = World(HALL, exits={"east": shapely.box(29, 8, 30, 12)})
    groups = [
        Group("a", count=12, region=START, goal=goal, personality={"calm": 0.5, "nimble": 0.5}),
        Group("b", count=6, region=START, goal=goal, desired_speed=Uniform(0.8, 1.6)),
    ]
    if local is not None:
        groups = [Group("a", count=12, region=START, goal=goal), Group("b", count=6, region=START, goal=goal)]
    return Simulation(world, groups, local=local or Dynamical(), dt=dt, threads=1, **more)


def steps(sim: Simulation, until: float) -> None:
    while sim.step_number < round(until / sim.dt):
        sim.step()


def column(sim: Simulation, name: str, group: str = "a") -> NDArray[np.float64]:
    """Values of a group during the last step."""
    return sim.agents.columns[name][sim.agents.group == sim.groups.index(group)].copy()


# The course of a shift, against its closed form -----------------------------------------------------------------------


@pytest.mark.parametrize("dt", [0.05, 0.1, 0.25])
@pytest.mark.parametrize("time", [1.5, 2.5, 4.0, 7.5])
def test_a_drift_is_linear_in_time_for_every_time_step(dt: float, time: float) -> None:
    sim = people(dt=dt)
    mass, speed = column(sim, "mass"), column(sim, "desired_speed")
    sim.at(1.0, events.Drift(name="mass", to=0.9, share=0.5, over=4.0, group="a"))
    sim.at(1.0, events.Drift(name="desired_speed", factor=0.6, over=4.0, group="a"))
    steps(sim, time + dt)  # the step that begins at `time` moves with the values of that time
    done = min((time - 1.0) / 4.0, 1.0)
    np.testing.assert_allclose(column(sim, "mass"), mass + 0.5 * done * (0.9 - mass), rtol=1e-12)
    np.testing.assert_allclose(column(sim, "desired_speed"), speed * (1.0 - 0.4 * done), rtol=1e-12)


@pytest.mark.parametrize("dt", [0.05, 0.1, 0.25])
@pytest.mark.parametrize("time", [1.0, 1.5, 4.0, 30.0])
def test_a_surge_jumps_and_fades_exponentially_for_every_time_step(dt: float, time: float) -> None:
    sim = people(dt=dt)
    courage, speed = column(sim, "courage"), column(sim, "desired_speed")
    sim.at(1.0, events.Surge(name="courage", to=1.0, share=0.8, fade=2.0, group="a"))
    sim.at(1.0, events.Surge(name="desired_speed", factor=1.5, fade=2.0, group="a"))
    steps(sim, time + dt)
    left = math.exp(-(time - 1.0) / 2.0)
    np.testing.assert_allclose(column(sim, "courage"), courage + 0.8 * left * (1.0 - courage), rtol=1e-12)
    np.testing.assert_allclose(column(sim, "desired_speed"), speed * (1.0 + 0.5 * left), rtol=1e-12)


def test_a_drift_ends_on_the_value_itself_and_a_surge_leaves_nothing_behind_it() -> None:
    sim = people()
    before = column(sim, "courage")
    sim.at(0.0, events.Drift(name="mass", to=0.7, over=0.95))
    sim.at(0.0, events.Surge(name="courage", to=1.0, share=0.99, fade=0.1))
    steps(sim, 4.0)
    assert (sim.agents.mass == 0.7).all()
    np.testing.assert_allclose(column(sim, "courage"), before, atol=1e-12)
    assert len(sim.events) == 0


@given(
    over=st.floats(0.01, 3.0), share=st.floats(0.01, 1.0), to=st.floats(0.0, 1.0), dt=st.sampled_from([0.03, 0.1, 0.7])
)
@settings(max_examples=25)
def test_every_drift_ends_and_stays_between_where_it_began_and_where_it_goes(
    over: float, share: float, to: float, dt: float
) -> None:
    sim = people(dt=dt)
    begin = sim.agents.agility.copy()
    sim.at(0.0, events.Drift(name="agility", to=to, share=share, over=over))
    for _ in range(math.ceil(over / dt) + 2):
        for event in sim.events.due(sim.step_number):
            event.apply(sim)  # type: ignore[union-attr]
        sim.step_number += 1
        low, high = np.minimum(begin, to) - 1e-12, np.maximum(begin, to) + 1e-12
        assert ((sim.agents.agility >= low) & (sim.agents.agility <= high)).all()
    assert len(sim.events) == 0
    np.testing.assert_allclose(sim.agents.agility, begin + share * (to - begin), atol=1e-12)


def test_each_agent_may_drift_to_a_value_of_its_own() -> None:
    sim = people()
    sim.at(0.0, events.Drift(name="mass", to=Normal(0.5, 0.1, low=0.0, high=1.0), over=1.0))
    steps(sim, 1.2)
    assert len(set(sim.agents.mass)) == len(sim.agents)
    assert abs(sim.agents.mass.mean() - 0.5) < 0.15


def test_shifts_of_one_speed_multiply_whatever_their_order() -> None:
    sim = people()
    speed = column(sim, "desired_speed")
    sim.at(0.5, events.Drift(name="desired_speed", factor=0.5, over=2.0))
    sim.at(1.0, events.Surge(name="desired_speed", factor=2.0, fade=1.0))
    steps(sim, 2.1)
    np.testing.assert_allclose(
        column(sim, "desired_speed"), speed * (1 - 0.5 * 1.5 / 2.0) * (1 + math.exp(-1.0)), rtol=1e-12
    )


def test_only_the_group_named_changes_and_only_those_who_were_there() -> None:
    world = World(HALL)
    crowd = [Group("a", count=5, goal="none"), Group("b", count=5, goal="none")]
    source = Source("a", rate=2.0, region=START, begin=1.0, end=3.0, goal="none")
    sim = Simulation(world, [*crowd, source], dt=0.1, threads=1)
    sim.at(0.5, events.Surge(name="desired_speed", factor=2.0, fade=1.0, group="a"))
    steps(sim, 40.0)
    assert len(sim.agents) > 10
    np.testing.assert_allclose(sim.agents.desired_speed, 1.34, rtol=1e-12)
    again = Simulation(world, crowd, dt=0.1, threads=1)
    again.at(0.5, events.Surge(name="desired_speed", factor=2.0, fade=1.0, group="a"))
    steps(again, 1.0)
    assert (column(again, "desired_speed") > 1.5).all()
    assert (column(again, "desired_speed", "b") == 1.34).all()


# Fatigue and adrenaline -----------------------------------------------------------------------------------------------


def test_tired_people_have_become_slower_and_heavier_by_the_end() -> None:
    sim = people()
    speed, mass, courage = (column(sim, name) for name in ("desired_speed", "mass", "courage"))
    sim.at(0.0, events.Tire(over=3.0, speed=0.7, mass=0.5, group="a"))
    steps(sim, 4.0)
    np.testing.assert_allclose(column(sim, "desired_speed"), 0.7 * speed)
    np.testing.assert_allclose(column(sim, "mass"), mass + 0.5 * (1.0 - mass))
    np.testing.assert_array_equal(column(sim, "courage"), courage)


def test_alarmed_people_are_faster_braver_and_more_agile_and_calm_down_again() -> None:
    sim = people()
    names = ("desired_speed", "courage", "agility")
    before = {name: column(sim, name) for name in names}
    sim.at(1.0, events.Alarm(fade=1.0, group="a"))
    steps(sim, 1.1)
    np.testing.assert_allclose(column(sim, "desired_speed"), 1.5 * before["desired_speed"])
    for name in ("courage", "agility"):
        np.testing.assert_allclose(column(sim, name), before[name] + 0.6 * (1.0 - before[name]))
    steps(sim, 40.0)
    for name in names:
        np.testing.assert_allclose(column(sim, name), before[name], rtol=1e-12)


def test_a_model_without_personality_tires_by_its_speed_alone() -> None:
    sim = people(local=Seek())
    sim.at(0.0, events.Tire(over=1.0, speed=0.5))
    steps(sim, 2.0)
    np.testing.assert_allclose(sim.agents.desired_speed, 0.67)


def distance_walked(*happens: tuple[float, Any], seconds: float = 12.0) -> float:
    """How far, on average, people get who have all their room and follow their desired speed at once."""
    lanes = [(0.5, 4.0 * k) for k in range(8)]
    group = Group("a", positions=lanes, goal="none", desired_speed=1.3)
    world = World(bounds=(0, -5, 60, 40))
    sim = Simulation(world, group, planning=Eastwards(), local=Dynamical(noise=0.0), dt=0.1, threads=1)
    for time, event in happens:
        sim.at(time, event)
    sim.run(until=seconds)
    return float(sim.agents.position[:, 0].mean()) - 0.5


class Eastwards(Planner):
    def direct(self, moment: Moment, out: Guidance) -> None:
        out.directions[moment.members, 0] = 1.0


def test_the_tired_get_less_far_and_the_alarmed_further_by_the_integral_of_their_speed() -> None:
    plain = distance_walked()
    assert plain == pytest.approx(1.3 * 12.0, rel=1e-9)
    # Speeds: 1.3 (1 - 0.4 t/10) for ten seconds from t = 2 on.
    tired = distance_walked((2.0, events.Tire(over=10.0, speed=0.6, mass=0.0)))
    assert plain - tired == pytest.approx(1.3 * 0.4 * 10.0 / 2.0, rel=0.02)
    # 1.3 · 0.5 exp(-t/3) more, for ten seconds.
    alarmed = distance_walked((2.0, events.Alarm(fade=3.0, speed=1.5)))
    assert alarmed - plain == pytest.approx(1.3 * 0.5 * 3.0 * (1.0 - math.exp(-10.0 / 3.0)), rel=0.02)
    switched_off = distance_walked((2.0, events.Alarm(fade=3.0, speed=1.0, courage=0.0, agility=0.0)))
    assert switched_off == pytest.approx(plain, rel=1e-12)


# Checkpoints and records ----------------------------------------------------------------------------------------------

UNDER_WAY = [
    events.Drift(name="mass", to=Uniform(0.2, 0.9), share=0.7, over=8.0),
    events.Drift(name="desired_speed", factor=0.5, over=8.0, group="a"),
    events.Surge(name="courage", to=1.0, share=0.9, fade=3.0, group="b"),
    events.Tire(over=8.0),
    events.Alarm(fade=2.0),
]


@pytest.mark.parametrize("event", UNDER_WAY, ids=lambda event: event.kind)
def test_a_hundred_steps_are_fifty_a_checkpoint_and_fifty_more_to_the_last_bit(event: Any, tmp_path: Path) -> None:
    def scheduled() -> Simulation:
        sim = people(goal="nearest exit", seed=4)
        sim.at(2.0, event)
        return sim

    whole, first, second = scheduled(), scheduled(), scheduled()
    steps(whole, 10.0)
    steps(first, 5.0)
    assert len(first.events) > 0, "it must be under way when the checkpoint is written"
    first.save(tmp_path / "half.npz")
    second.restore(tmp_path / "half.npz")
    assert second.state_hash() == first.state_hash()
    steps(second, 10.0)
    assert second.state_hash() == whole.state_hash()
    untouched = people(goal="nearest exit", seed=4)
    steps(untouched, 10.0)
    assert untouched.state_hash() != whole.state_hash()


@pytest.mark.parametrize("event", UNDER_WAY, ids=lambda event: event.kind)
def test_files_can_hold_them(event: Any) -> None:
    assert EVENTS[event.kind].load() is type(event)
    assert event_from_json(event_json(event)) == event


def test_the_record_of_a_run_has_a_shift_and_a_repeated_function_once(tmp_path: Path) -> None:
    sim = people()
    sim.at(1.0, events.Drift(name="mass", to=0.5, over=2.0))
    sim.at(1.0, events.Tire(over=2.0))
    sim.every(0.5, count_people)
    sim.run(until=4.0, record=tmp_path / "run.sqlite")
    with read_trajectory(tmp_path / "run.sqlite") as recorded:
        kinds = [entry.event["kind"] for entry in recorded.events]
    assert sorted(kinds) == ["drift", "function", "tire"]


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (events.Drift(name="masss", to=0.5, over=1.0), "no parameter 'masss' to set; did you mean 'mass'"),
        (events.Drift(name="mass", to=0.5, over=1.0, group="aa"), "no group 'aa'"),
        (events.Drift(name="mass", to=1.5, over=1.0), r"mass must be a number from 0 to 1, so it cannot become 1\.5"),
        (events.Drift(name="desired_speed", to=-1.0, over=1.0), "desired_speed must be a number from 0"),
        (events.Drift(name="radius", to=0.0, over=1.0), "radius must be a positive number"),
        (events.Drift(name="courage", factor=1.5, over=1.0), "raise it with to = 1 and a share"),
        (events.Drift(name="turn_rate", to=0.0, over=1.0), "no parameter 'turn_rate' to set"),
        (events.Drift(name="position", to=0.0, over=1.0), "no parameter 'position' to set"),
        (events.Tire(over=1.0, group="aa"), "no group 'aa'"),
        (events.Alarm(group="aa"), "no group 'aa'"),
    ],
)
def test_what_cannot_be_shifted_is_refused_when_it_is_scheduled(event: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        people().at(1.0, event)


def test_a_distribution_that_leaves_what_is_possible_is_refused_when_it_is_drawn() -> None:
    sim = people()
    sim.at(1.0, events.Drift(name="mass", to=Normal(0.9, 0.5), over=1.0))
    with pytest.raises(EventError, match=r"drift.* at t = 1 s: mass must be a number from 0 to 1"):
        sim.run(until=2.0)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (events.Drift, {"name": "mass", "over": 1.0}),
        (events.Drift, {"name": "mass", "to": 0.5, "factor": 0.5, "over": 1.0}),
        (events.Drift, {"name": "mass", "factor": 0.5, "share": 0.5, "over": 1.0}),
        (events.Drift, {"name": "mass", "to": 0.5, "over": 0.0}),
        (events.Surge, {"name": "mass", "to": 0.5, "share": 1.0, "fade": 1.0}),
        (events.Surge, {"name": "mass", "to": 0.5, "fade": 1.0}),
        (events.Surge, {"name": "mass", "factor": 0.0, "fade": 1.0}),
        (events.Tire, {"over": -1.0}),
        (events.Alarm, {"speed": 0.5}),
    ],
)
def test_a_shift_that_makes_no_sense_cannot_be_made(kind: Any, fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, ParameterError)):
        kind(**fields)


# Functions called again and again -------------------------------------------------------------------------------------


def count_people(sim: Simulation) -> None:
    assert len(sim.agents) >= 0


def tire_a_little(sim: Simulation) -> None:
    sim.agents.desired_speed[:] *= 0.99


def cheer_up(sim: Simulation) -> None:
    sim.agents.courage[:] += 0.1 * (1.0 - sim.agents.courage)


@pytest.mark.parametrize("dt", [0.1, 0.25, 0.3])
def test_every_calls_at_the_first_step_at_or_after_each_of_its_times(dt: float) -> None:
    sim = people(dt=dt)
    called: list[int] = []
    sim.every(0.7, lambda sim: called.append(sim.step_number), begin=1.0)
    steps(sim, 6.0)
    due = [math.ceil((1.0 + 0.7 * k) / dt - 1e-9) for k in range(20)]
    assert called == [step for step in due if step < sim.step_number]


def test_every_step_is_every_dt() -> None:
    sim = people(dt=0.1)
    called: list[int] = []
    sim.every(0.1, lambda sim: called.append(sim.step_number))
    steps(sim, 3.0)
    assert called == list(range(30))


def test_a_run_until_empty_ends_although_a_function_is_still_called() -> None:
    sim = people(goal="nearest exit")
    sim.every(1.0, count_people)
    summary = sim.run(until="empty", limit=200.0)
    assert len(sim.agents) == 0
    assert summary.evacuated == 18


def test_functions_called_again_and_again_go_on_after_a_resume_to_the_last_bit(tmp_path: Path) -> None:
    def scheduled() -> Simulation:
        sim = people(goal="nearest exit", seed=2)
        sim.every(0.7, tire_a_little)
        sim.every(0.7, cheer_up, begin=1.0)
        sim.every(0.7, tire_a_little)
        return sim

    whole, first, second = scheduled(), scheduled(), scheduled()
    steps(whole, 10.0)
    steps(first, 5.0)
    first.save(tmp_path / "half.npz")
    second.restore(tmp_path / "half.npz")
    steps(second, 10.0)
    assert second.state_hash() == whole.state_hash()
    assert len(second.events) == 3


@pytest.mark.parametrize(
    "schedule",
    [
        lambda sim: None,
        lambda sim: sim.every(1.0, cheer_up),
        lambda sim: sim.every(2.0, tire_a_little),
        lambda sim: sim.every(1.0, tire_a_little, begin=3.0),
    ],
)
def test_a_script_that_does_not_schedule_the_function_again_is_refused(
    schedule: Callable[[Simulation], None], tmp_path: Path
) -> None:
    first = people()
    first.every(1.0, tire_a_little)
    steps(first, 1.5)
    first.save(tmp_path / "c.npz")
    second = people()
    schedule(second)
    says = r"function 'tire_a_little' is not scheduled by this script; .* every\(1\.0, tire_a_little, begin=0\.0\)"
    with pytest.raises(CheckpointError, match=says):
        second.restore(tmp_path / "c.npz")


@pytest.mark.parametrize(("seconds", "function"), [(0.0, count_people), (0.05, count_people), (math.nan, count_people)])
def test_a_time_shorter_than_a_step_is_refused(seconds: float, function: Any) -> None:
    with pytest.raises(ParameterError, match=r"at least dt = 0\.1 s|seconds must be a positive number"):
        people().every(seconds, function)


@pytest.mark.parametrize("function", [events.OpenDoor(door="x"), "tire", None, events.OpenDoor])
def test_only_functions_can_be_called_again_and_again(function: Any) -> None:
    with pytest.raises(ParameterError, match="function must be a function"):
        people().every(1.0, function)


def test_a_repeated_function_that_fails_is_named_with_its_time() -> None:
    def evacuate(sim: Simulation) -> None:
        if sim.time > 1.5:
            raise ZeroDivisionError("no plan")

    sim = people()
    sim.every(1.0, evacuate)
    with pytest.raises(EventError, match=r"evacuate.* at t = 2 s: ZeroDivisionError: no plan"):
        sim.run(until=5.0)
