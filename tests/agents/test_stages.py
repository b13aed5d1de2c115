"""Stages: lists of things to do, in Python, files, events, records and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from scipy.integrate import trapezoid

from many_seeds import fast_first
from tropel import (
    Condition,
    Door,
    Flocking,
    Go,
    Group,
    Lattice,
    Simulation,
    Source,
    Stage,
    Uniform,
    Until,
    Wait,
    WaitFor,
    World,
    conditions,
    events,
    load_scenario,
    read_trajectory,
)
from tropel.agents.stages.stage import Now, as_stage
from tropel.errors import CheckpointError, ParameterError, ScenarioError
from tropel.registry import CONDITIONS, STAGES
from tropel.scenario import load_builtin

FILE = """
name = "errand"
dt = 0.1

[world]
walkable = { box = [0.0, 0.0, 20.0, 10.0] }
exits.out = { box = [19.0, 4.0, 20.0, 6.0] }
targets.kiosk = { position = [8.0, 5.0], radius = 1.0 }
regions.lounge = { box = [12.0, 2.0, 17.0, 8.0] }
doors.main = { line = [[18.0, 0.0], [18.0, 10.0]], open = false }

[[groups]]
name = "people"
count = 6
region = { box = [1.0, 1.0, 5.0, 9.0] }
stages = [
  { go = "kiosk", within = 1.0 },
  { wait = { kind = "uniform", low = 1.0, high = 4.0 } },
  { go = "lounge" },
  { wait_for = { come = "all" } },
  { wait_for = { open = "main" } },
  { go = "out" },
]

[[events]]
at = 25.0
kind = "open_door"
door = "main"
"""


def hall() -> World:
    return World(
        shapely.box(0, 0, 20, 10),
        exits={"out": shapely.box(19, 4, 20, 6)},
        regions={"lounge": shapely.box(12, 2, 17, 8), "corner": shapely.box(0, 7, 3, 10)},
        targets={"kiosk": (8, 5)},
        doors={"main": Door([(18.5, 0), (18.5, 3)])},
    )


def alone(*stages: Any, **more: Any) -> Simulation:
    return Simulation(hall(), Group("a", positions=[(4, 5)], stages=list(stages), **more), dt=0.1)


def times_of_stages(sim: Simulation, until: float) -> dict[int, float]:
    """When agent 0 began each stage."""
    found: dict[int, float] = {}
    while sim.time < until and 0 in sim.agents.id:
        sim.step()
        if 0 in sim.agents.id:
            found.setdefault(int(sim.agents.stage[0]), float(sim.agents.stage_since[0]))
    return found


# Verbs ----------------------------------------------------------------------------------------------------------------


def test_a_wait_lasts_as_long_as_it_says_and_the_agent_stands() -> None:
    sim = alone(Wait(3.0), Go("out"))
    places = []
    for _ in range(29):
        sim.step()
        places.append(sim.agents.position[0].tolist())
    assert places == [[4.0, 5.0]] * 29
    began = times_of_stages(sim, 5.0)
    assert began[1] == pytest.approx(3.0)
    assert sim.agents.position[0, 0] > 5.0


def test_waiting_needs_no_place_in_the_world() -> None:
    world = World(shapely.box(0, 0, 9, 9))
    sim = Simulation(world, Group("a", positions=[(2, 2)], stages=[Wait(1.0), Go((6.0, 4.0))]), dt=0.1)
    assert sim.check() == []
    sim.run(until=8.0)
    assert np.linalg.norm(sim.agents.position[0] - (6.0, 4.0)) < 0.5


def test_waits_are_drawn_by_each_and_again_in_every_round() -> None:
    group = Group(
        "a", count=200, region=shapely.box(0, 0, 20, 10), stages=[Wait(Uniform(2.0, 4.0)), Wait(1.0)], repeat=True
    )
    sim = Simulation(hall(), group, dt=0.1, seed=3)
    sim.step()
    first = sim.agents.stage_until.copy()
    assert 2.0 <= first.min() < 2.2
    assert 3.8 < first.max() <= 4.0
    assert first.mean() == pytest.approx(3.0, abs=3.0 * (2.0 / 12**0.5) / 200**0.5)
    seen: dict[int, float] = {}
    for _ in range(80):
        sim.step()
        again = np.flatnonzero((sim.agents.stage == 0) & (sim.agents.stage_since > 0.0))
        for row in again.tolist():
            seen.setdefault(row, float(sim.agents.stage_until[row] - sim.agents.stage_since[row]))
    assert len(seen) == 200
    second = np.array([seen[row] for row in range(200)])
    assert ((second >= 2.0) & (second <= 4.0)).all()
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.25


def test_going_ends_on_arrival_within_a_distance_or_by_a_condition() -> None:
    near = times_of_stages(alone(Go((14.0, 5.0)), Go("out")), 20.0)[1]
    within = times_of_stages(alone(Go((14.0, 5.0), within=4.0), Go("out")), 20.0)[1]
    assert near - within == pytest.approx(4.0 / 1.34, abs=0.5)
    early = times_of_stages(alone(Go((14.0, 5.0), until={"after": 2.0}), Go("out")), 20.0)
    assert early[1] == pytest.approx(2.0)


def test_until_goes_on_with_what_was_done() -> None:
    sim = alone(Go((6.0, 5.0), until={"after": 0.5}), Until({"after": 4.0}), Go("out"))
    assert times_of_stages(sim, 3.5) == pytest.approx({0: 0.0, 1: 0.5})
    assert sim.agents.position[0, 0] == pytest.approx(6.0, abs=0.3)


def test_people_who_wait_in_a_region_stand_in_it_each_at_a_spot_of_its_own() -> None:
    for seed in range(3):
        group = Group("a", count=30, region=shapely.box(0, 0, 6, 10), stages=[Go("lounge"), Wait(60.0), Go("out")])
        sim = Simulation(hall(), group, dt=0.1, seed=seed)
        sim.run(until=40.0)
        inside = shapely.contains_xy(hall().regions["lounge"].buffer(0.3), *sim.agents.position.T)
        assert (sim.agents.stage == 1).all()
        assert inside.all()
        assert np.median(np.linalg.norm(sim.agents.velocity, axis=1)) < 0.1
        # They spread over the lounge, which is 5 m by 6 m, instead of standing where they came in.
        assert (np.std(sim.agents.position, axis=0) > (1.0, 1.2)).all()


@pytest.mark.parametrize("local", [None, Flocking(), Lattice()])
def test_stages_work_with_every_kind_of_model(local: Any) -> None:
    group = Group("a", count=4, region=shapely.box(5, 3, 7, 7), stages=[Go("kiosk"), Wait(2.0), Go("out")])
    sim = Simulation(hall(), group, local=local, dt=0.1, seed=1)
    sim.run(until="empty", limit=300.0)
    assert sim.population.departed == 4


def test_the_delay_comes_before_the_first_stage_and_stays_when_the_list_changes() -> None:
    sim = alone(Go("kiosk"), Go("out"), delay=2.0)
    sim.step()
    assert sim.agents.stage.tolist() == [-1]
    sim.set_stages([Go((2.0, 5.0)), Go("out")])
    began = times_of_stages(sim, 6.0)
    assert began[0] == pytest.approx(2.0)
    assert sim.agents.goal[0] == sim.world.goal_numbers["out"]


# Conditions -----------------------------------------------------------------------------------------------------------


def two_at(first: float, second: float, *stages: Any) -> Simulation:
    group = Group("a", positions=[(first, 5), (second, 5)], stages=list(stages))
    return Simulation(hall(), group, dt=0.1)


def test_all_wait_for_the_last_to_come() -> None:
    sim = two_at(11.0, 2.0, Go("lounge"), WaitFor({"come": "all"}), Go("out"))
    since = []
    while sim.agents.stage.max() < 2:
        sim.step()
        since.append(sim.agents.stage.tolist())
    assert [1, 0] in since
    assert sim.agents.stage.tolist() == [2, 2]
    assert sim.agents.stage_since[0] == sim.agents.stage_since[1] > 6.0


def test_those_beyond_the_stage_have_come() -> None:
    sim = two_at(11.0, 2.0, Go("lounge"), Wait(1.0, until={"come": "all"}), WaitFor({"come": "all"}), Go("out"))
    sim.run(until="empty", limit=60.0)
    assert sim.population.departed == 2


def test_some_of_another_group_are_waited_for_at_a_place() -> None:
    hosts = Group(
        "hosts", positions=[(14, 5)], stages=[WaitFor({"come": 2, "to": "lounge", "group": "guests"}), Go("out")]
    )
    guests = Group(
        "guests", positions=[(9, 4), (4, 6), (2, 5)], stages=[Go("lounge"), WaitFor({"after": 30.0}), Go("out")]
    )
    sim = Simulation(hall(), [hosts, guests], dt=0.1)
    sim.run(until=lambda sim: sim.agents.stage[0] == 1, limit=20.0)
    there = shapely.contains_xy(hall().regions["lounge"], *sim.agents.position[1:].T)
    assert there.sum() == 2


def test_a_signal_counts_once_given_and_only_anew_if_so_told() -> None:
    sim = alone(WaitFor({"signal": "go"}), Wait(1.0), WaitFor({"signal": "go", "new": True}), Go("out"))
    sim.at(2.0, events.Signal(name="go"))
    sim.at(5.0, lambda sim: sim.signal("go"))
    began = times_of_stages(sim, 7.0)
    assert began == pytest.approx({0: 0.0, 1: 2.0, 2: 3.0, 3: 5.0})


@pytest.mark.parametrize(
    "told",
    [
        {"event": "open_door", "door": "main"},
        {"open": "main"},
        {"after": 3.0},
        {"any": [{"open": "main"}, {"after": 50.0}]},
        {"all": [{"open": "main"}, {"after": 1.0}]},
        {"attribute": "desired_speed", "below": 1.0},
    ],
)
def test_each_condition_ends_a_wait(told: dict[str, Any]) -> None:
    sim = alone(WaitFor(told), Go("out"))
    sim.at(3.0, events.OpenDoor(door="main"))
    sim.at(3.0, events.SetParameter(name="desired_speed", value=0.9))
    assert times_of_stages(sim, 5.0)[1] == pytest.approx(3.0)


def test_a_function_is_a_condition() -> None:
    def far(now: Now) -> Any:
        return now.state.position[now.members, 0] > 6.0

    sim = two_at(2.0, 5.0, Go("out", until=far), Wait(100.0), Go("out"))
    sim.run(until=2.0)
    assert sim.agents.stage.tolist() == [0, 1]
    wrong = alone(WaitFor(lambda now: "yes"), Go("out"))
    with pytest.raises(Exception, match="must return True or False"):
        wrong.run(until=1.0)


class Bark(Stage):
    """A verb of the user's own, without any registration."""

    def is_over(self, now: Now) -> Any:
        return now.state.stage_since[now.members] + 1.0 <= now.time + 1e-9

    def __str__(self) -> str:
        return "bark"


def test_a_verb_of_ones_own_is_an_object_like_the_others() -> None:
    assert times_of_stages(alone(Bark(), Go("out")), 3.0)[1] == pytest.approx(1.0)


# Changes --------------------------------------------------------------------------------------------------------------


def test_events_give_other_stages_to_groups_and_single_agents() -> None:
    sim = Simulation(hall(), Group("a", count=3, region=shapely.box(1, 1, 6, 6), goal="none"), dt=0.1)
    sim.at(1.0, events.SetStages(stages=[{"wait": 2.0}, {"go": "out"}], ids=[1]))
    sim.run(until=2.0)
    assert sim.agents.agenda.tolist() == [-1, 0, -1]
    sim.set_stages([Go("kiosk"), Go("out")], group="a")
    assert sim.agents.agenda.tolist() == [1, 1, 1]


def test_newcomers_of_sources_and_events_have_stages() -> None:
    stages = [Go("kiosk", within=1.0), Wait(1.0), Go("out")]
    source = Source("a", rate=1.0, total=3, region=shapely.box(1, 1, 6, 6), stages=stages)
    sim = Simulation(hall(), [source], dt=0.1)
    sim.at(1.0, events.AddAgents(group="a", count=2, stages=[{"wait": 0.5}, {"go": "out"}]))
    sim.run(until="empty", limit=90.0)
    assert sim.population.departed == 5


def test_who_goes_to_a_target_that_is_removed_goes_on_with_the_next_stage() -> None:
    sim = alone(Go("kiosk"), Wait(1.0), Go("out"))
    sim.at(0.5, events.RemoveTarget(name="kiosk"))
    assert times_of_stages(sim, 3.0) == pytest.approx({0: 0.0, 1: 0.5, 2: 1.5})


def test_a_successor_takes_over_the_stage_of_its_leader() -> None:
    group = Group("a", count=5, region=shapely.box(1, 1, 6, 6), stages=[Wait(4.0), Go("out")], leader="central")
    sim = Simulation(hall(), group, dt=0.1, seed=2)
    sim.run(until=2.0)
    leader = int(sim.population.bonds.own_leader[0])
    before = sim.agents.stage_until[sim.agents.rows_of([leader])][0]
    sim.remove_agents(ids=[leader])
    sim.run(until=2.2)
    row = sim.agents.rows_of([int(sim.population.bonds.own_leader[0])])[0]
    assert sim.agents.agenda[row] == 0
    assert sim.agents.stage_until[row] == before


# Bits -----------------------------------------------------------------------------------------------------------------


def test_a_resume_in_the_middle_of_a_wait_and_two_threads_give_the_same_bits(tmp_path: Path) -> None:
    (tmp_path / "errand.toml").write_text(FILE)
    scenario = load_scenario(tmp_path / "errand.toml")
    whole, halves = scenario.build(threads=1), scenario.build(threads=2)
    whole.run(until=30.0)
    saved = {at: tmp_path / f"{at:g}.ckpt" for at in (3.0, 9.5, 14.0, 26.0)}
    for at, path in saved.items():
        halves.run(until=at)
        halves.save(path)
    halves.run(until=30.0)
    assert halves.state_hash() == whole.state_hash()
    for at, path in saved.items():
        other = scenario.build(threads=1)
        other.restore(path)
        other.run(until=30.0)
        assert other.state_hash() == whole.state_hash(), f"resumed at {at:g} s"


def test_functions_are_found_again_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    def late(now: Now) -> bool:
        return now.time > 3.0

    def built() -> Simulation:
        return alone(WaitFor(late), Go("out"))

    whole, half, other = built(), built(), built()
    whole.run(until=5.0)
    half.run(until=1.0)
    half.save(tmp_path / "half.ckpt")
    other.restore(tmp_path / "half.ckpt")
    other.run(until=5.0)
    assert other.state_hash() == whole.state_hash()
    half.set_stages([WaitFor(lambda now: True), Go("out")])
    half.save(tmp_path / "half.ckpt")
    with pytest.raises(CheckpointError, match="code of your own"):
        built().restore(tmp_path / "half.ckpt")


def test_a_recorded_run_tells_who_began_what_and_replays(tmp_path: Path) -> None:
    def built() -> Simulation:
        return Simulation(hall(), Group("a", positions=[(4, 5), (2, 5)], goal="none"), dt=0.1)

    first = built()
    first.at(0.5, events.SetStages(stages=[{"wait": 1.0}, {"go": {"exit": "out"}}], ids=[1]))
    summary = first.run(until=5.0, record=tmp_path / "run.sqlite")
    assert summary.doing == {"go to exit 'out'": 1}
    with read_trajectory(tmp_path / "run.sqlite") as recorded:
        stages = recorded.stages()
    assert stages["time"].tolist() == pytest.approx([0.5, 1.5])  # type: ignore[union-attr]
    assert stages["id"].tolist() == [1, 1]  # type: ignore[union-attr]
    assert stages["stage"] == ["wait 1 s", "go to exit 'out'"]
    second = built()
    second.replay(tmp_path / "run.sqlite")
    second.run(until=5.0)
    assert second.state_hash() == first.state_hash()


# Files and errors -----------------------------------------------------------------------------------------------------


def test_every_verb_and_condition_is_a_table_and_back() -> None:
    tables: list[dict[str, Any]] = [
        {"go": "kiosk", "within": 1.0, "critical": True},
        {"go": [3.0, 4.0], "until": {"signal": "now"}},
        {"wait": 3.0, "until": {"event": "open_door", "door": "main", "new": True}},
        {"wait": {"low": 1.0, "high": 2.0, "kind": "uniform"}},
        {"wait_for": {"any": [{"come": "all"}, {"after": 9.0}]}},
        {"wait_for": {"all": [{"come": 3, "to": {"region": "lounge"}, "group": "a"}, {"open": "main"}]}},
        {"until": {"attribute": "courage", "above": 0.2}},
        {"hold": "vault", "time": 60.0},
        {"search": ["vault", {"room": "hall"}], "share": False},
        {"escort": "visitors", "id": 3, "within": 1.5},
        {"cover": {"room": "hall"}},
        {"retreat_to": [3.0, 4.0]},
        {"resume": True},
        {"cover": "hall"},
        {"work": "fire", "stay": True, "until": {"done": "kitchen"}},
        {"work": "any"},
    ]
    for table in tables:
        made = as_stage(table)
        assert made.to_file() == table
        assert as_stage(made.to_file()) == made
    assert {next(name for name in STAGES if name in table) for table in tables} == set(STAGES)
    assert set(CONDITIONS) == {"come", "signal", "event", "open", "after", "attribute", "done", "any", "all"}
    assert isinstance(conditions.Happened.of("open_door", door="main"), Condition)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('go = "kiosk"', 'go = "kisk"', "did you mean 'kiosk'"),
        ('{ go = "kiosk", within = 1.0 }', '{ goo = "kiosk" }', "did you mean 'go'"),
        ("within = 1.0", "wihtin = 1.0", "did you mean 'within'"),
        ("low = 1.0", "low = -1.0", "must be a number from 0"),
        ('{ kind = "uniform", low = 1.0, high = 4.0 }', "nan", "finite"),
        ('{ kind = "uniform", low = 1.0, high = 4.0 }', '{ kind = "normal", mean = 2.0, sd = 1.0 }', "needs a low"),
        ('come = "all"', "come = 7", "at most 6 of the group can come"),
        ('come = "all"', 'signal = "never"', "this run has no such event"),
        ('open = "main"', 'open = "side"', "no door or exit 'side'"),
        ("at = 25.0", "at = 25.0\nids = [1]", "unknown key"),
        ('kind = "open_door"', 'kind = "close_door"', "is closed, and no event opens it"),
        ('  { go = "out" },\n', "", "none by which people leave"),
        ('  { go = "out" },\n]', "]\nrepeat = true", "begin again and again"),
    ],
)
def test_wrong_stages_in_files_are_refused_with_the_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in FILE
    path = tmp_path / "wrong.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ScenarioError, match=said) as raised:
        load_scenario(path).build(threads=1)
    assert "wrong.toml, line" in str(raised.value)


def test_an_empty_list_in_a_file_is_refused(tmp_path: Path) -> None:
    begin, end = FILE.index("stages = ["), FILE.index("[[events]]")
    path = tmp_path / "wrong.toml"
    path.write_text(FILE[:begin] + "stages = []\n\n" + FILE[end:])
    with pytest.raises(ScenarioError, match="list of stages is empty"):
        load_scenario(path).build(threads=1)


def waiting_for_each_other() -> list[Group]:
    meet = [("a", "b", "lounge", "corner"), ("b", "a", "corner", "lounge")]
    return [
        Group(
            own,
            count=3,
            region=shapely.box(1, 1, 6, 6),
            stages=[WaitFor({"come": 2, "to": theirs, "group": other}), Go(mine), WaitFor({"after": 20.0}), Go("out")],
        )
        for own, other, theirs, mine in meet
    ]


def test_groups_that_wait_for_each_other_are_refused() -> None:
    sim = Simulation(hall(), waiting_for_each_other())
    assert [finding.code for finding in sim.check()].count("waits_forever") == 2
    with pytest.raises(ParameterError, match="wait for each other"):
        sim.run(until="empty", limit=90.0)


def test_what_a_function_may_do_is_not_refused() -> None:
    sim = Simulation(hall(), waiting_for_each_other())
    sim.at(1.0, lambda sim: sim.set_stages([Go("out")]))
    sim.run(until="empty", limit=90.0)
    assert sim.population.departed == 6


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"stages": []}, "list of stages is empty"),
        ({"stages": "out"}, "stages is a list"),
        ({"stages": [Go]}, "is the class of a stage"),
        ({"stages": [3]}, "a stage is an object such as"),
        ({"stages": [Go("out")], "goal": "kiosk"}, "either stages or goal"),
        ({"stages": [Go("out"), Wait(1.0)]}, "people leave at 'out'"),
        ({"stages": [Go("none"), Wait(1.0)]}, "'none' is never followed"),
        ({"stages": [WaitFor({"come": 1, "to": "lounge", "group": "c"}), Go("out")]}, "no group 'c'"),
    ],
)
def test_wrong_stages_in_python_are_refused(told: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Simulation(hall(), Group("a", positions=[(1, 1)], **told))


def test_crafted_checkpoints_are_refused(tmp_path: Path) -> None:
    sim = alone(Go("kiosk"), Wait(1.0), Go("out"))
    stored = sim.population.stored()
    for name, wrong in (
        ("agendas/stage", np.array(["{}", "{}", "{}"])),
        ("agendas/stage", np.array(["[" * 100_000] * 3)),
        ("agendas/goal", np.array([99, 0], dtype=np.int32)),
        ("agendas/length", np.array([4])),
        ("agents/stage", np.array([3], dtype=np.int32)),
        ("agents/agenda", np.array([1], dtype=np.int32)),
        ("happened/what", np.array(["nothing"])),
    ):
        with pytest.raises(CheckpointError):
            sim.population.restore({**stored, name: wrong})


# Scenes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", fast_first(range(5), fast=1))
def test_everybody_of_the_concourse_boards_after_the_call_and_nobody_before(seed: int) -> None:
    sim = load_builtin("concourse").build(seed=seed)
    sim.run(until=90.0)
    waiting = (sim.agents.group == 0) & (sim.agents.stage == 3)
    assert sim.population.departed == 0
    assert np.count_nonzero(waiting) >= 15
    sim.run(until=180.0)
    left = sim.population.departures()["time"]
    assert len(left) == 33
    assert left.min() > 90.0
    assert (sim.agents.group == 2).all()


@pytest.mark.parametrize("seed", fast_first(range(3), fast=1))
def test_hikers_arrive_as_late_as_their_tiredness_says(seed: int) -> None:
    sim = load_builtin("hikers").build(seed=seed)
    group, start = sim.agents.group.copy(), sim.agents.position[:, 0].copy()
    sim.run(until="empty", limit=900.0)
    left = sim.population.departures()
    assert len(left["id"]) == 18
    tired = group[left["id"]] == 1
    for agent, time in zip(left["id"][tired], left["time"][tired], strict=True):
        path = np.linspace(0.0, 302.0 - start[agent], 4000)
        speed = 1.34 * (1.0 - 0.5 * (1.0 - np.exp(-path / 100.0)))
        alone_time = float(trapezoid(1.0 / speed, path))
        # They hold each other up a little, and nobody is faster than alone.
        assert 0.99 * alone_time <= time <= 1.1 * alone_time
    means = [left["time"][group[left["id"]] == number].mean() for number in range(3)]
    assert means[0] < 0.75 * means[1]
