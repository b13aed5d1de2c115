"""Tasks: shared out by cost, done by teams, shared out anew, stored, resumed and recorded."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Go, Group, Hazard, Roadmap, Simulation, Task, Wait, WaitFor, Work, World, events, read_trajectory
from tropel.agents.goals import Aim
from tropel.contracts.distances import OfferedDistance
from tropel.contracts.offers import offered
from tropel.deciding import sharing
from tropel.errors import CheckpointError, EventError, ParameterError, ScenarioError, TropelError
from tropel.scenario import parse_scenario

PLACES = {"a": (3.0, 9.0), "b": (17.0, 9.0), "c": (10.0, 1.0)}


def hall(**more: Any) -> World:
    return World(
        shapely.box(0, 0, 20, 10), exits={"out": shapely.box(19, 4, 20, 6)}, targets=PLACES,
        regions={"base": shapely.box(1, 1, 6, 4)}, **more,
    )  # fmt: skip


def crew(count: int = 6, **more: Any) -> Group:
    return Group("crew", **({"count": count, "region": "base", "stages": [Work("any"), Go("out")]} | more))


def tasks_at(*names: str, **more: Any) -> dict[str, Task]:
    return {name: Task(**({"place": name, "work": 2.0, "within": 1.0} | more)) for name in names}


def built(tasks: dict[str, Task], group: Group | None = None, **more: Any) -> Simulation:
    return Simulation(
        more.pop("world", None) or hall(), group or crew(), tasks=tasks, **({"dt": 0.1, "seed": 1} | more)
    )


def test_everything_is_done_once_by_the_team_it_takes_and_then_people_leave() -> None:
    sim = built(tasks_at("a", "b", "c", agents=2))
    summary = sim.run(until="empty", limit=120.0)
    assert summary.reason == "everybody has left"
    assert summary.tasks == {"done": 3, "begun": 0, "assigned": 0, "waiting": 0, "dropped": 0}
    told, parts = sim.tasks, sim.task_parts
    assert told["task"] == ["a", "b", "c"]
    assert np.asarray(told["done"]) - np.asarray(told["begun"]) == pytest.approx(2.0)
    assert sorted(parts["task"]) == ["a", "a", "b", "b", "c", "c"]
    assert sorted(np.asarray(parts["id"]).tolist()) == list(range(6))
    for name in "abc":
        own = [k for k, task in enumerate(parts["task"]) if task == name]
        # Nobody works before the last one of the team has come.
        assert np.asarray(parts["arrived"])[own].max() == np.asarray(told["begun"])[told["task"].index(name)]


def test_the_cheapest_team_goes_and_the_others_stand() -> None:
    group = crew(positions=[(2.0, 2.0), (5.0, 2.0), (12.0, 5.0)], count=None, region=None)
    sim = built(tasks_at("b"), group)
    sim.step()
    assert sim.agents.task.tolist() == [-1, -1, 0]
    where = sim.agents.position[:2].copy()
    sim.run(until=3.0)
    assert np.abs(sim.agents.position[:2] - where).max() < 0.1
    # Faster agents get there sooner, from farther away.
    fast = dataclasses.replace(group, desired_speed=np.array([1.0, 6.0, 1.0]))
    sim = built(tasks_at("b"), fast)
    sim.step()
    assert sim.agents.task.tolist() == [-1, 0, -1]


def test_needs_are_met_and_what_suits_counts() -> None:
    group = crew(positions=[(2.0, 2.0), (5.0, 2.0), (12.0, 5.0)], count=None, region=None,
                 parameters={"strength": np.array([0.9, 0.2, 0.1])})  # fmt: skip
    sim = built(tasks_at("b", needs={"strength": 0.5}), group)
    sim.step()
    assert sim.agents.task.tolist() == [0, -1, -1]
    for worth, who in ((0.0, 2), (5.0, 2), (40.0, 0)):
        sim = built(tasks_at("b", suits={"strength": worth}), group)
        sim.step()
        assert np.flatnonzero(sim.agents.task == 0).tolist() == [who]


def test_only_groups_that_may_do_a_task_and_stages_of_its_type_count() -> None:
    groups = [
        Group("near", positions=[(15.0, 8.0)], stages=[Work("any"), Go("out")]),
        Group("far", positions=[(2.0, 2.0)], stages=[Work("rescue"), Go("out")]),
        Group("idle", positions=[(16.0, 8.0)], stages=[Wait(50.0), Go("out")]),
    ]
    for task, who in (({}, "near"), ({"groups": ("far",)}, None), ({"type": "rescue", "groups": ("far",)}, "far")):
        sim = Simulation(hall(), groups, tasks=tasks_at("b", **task), dt=0.1)
        sim.step()
        assert [groups[k].name for k in np.flatnonzero(sim.agents.task == 0)] == ([] if who is None else [who])


@pytest.mark.parametrize("how", ["removed", "dead", "ordered elsewhere", "other stages"])
def test_when_somebody_drops_out_another_one_takes_over(how: str) -> None:
    sim = built(tasks_at("b", work=4.0), crew(3))
    sim.run(until=2.0)
    (first,) = np.flatnonzero(sim.agents.task == 0)
    agent = int(sim.agents.id[first])
    if how == "removed":
        sim.remove_agents(ids=[agent])
    elif how == "dead":
        sim.world.hazards.add("bomb", Hazard(inner=0.1, position=sim.agents.position[first], until=2.15), time=sim.time)
    elif how == "ordered elsewhere":
        sim.set_goal("a", ids=[agent])
    else:
        sim.set_stages([Go("a")], ids=[agent])
    sim.run(until=2.3)
    parts = sim.task_parts
    assert np.asarray(parts["id"])[0] == agent
    assert parts["how"][0] == "dropped out"
    assert len(parts["how"]) == 2
    assert parts["how"][1] == ""
    assert np.asarray(parts["id"])[1] != agent
    if how in ("ordered elsewhere", "other stages"):
        assert sim.agents.goal[sim.agents.rows_of([agent])[0]] == sim.world.goal_numbers["a"]
    sim.run(until=60.0)
    assert sim.tasks["done"][0] > 2.0


def test_work_goes_on_where_it_was_left_when_a_team_is_complete_again() -> None:
    sim = built(tasks_at("a", work=6.0, agents=2), crew(3))
    sim.run(until=lambda sim: sim.task_board().posted[0].worked == 30, limit=30.0)
    leaving = int(np.asarray(sim.task_parts["id"])[0])
    sim.remove_agents(ids=[leaving])
    sim.run(until=lambda sim: sim.task_board().posted[0].status == 1, limit=60.0)
    # Thirty steps before, none while one was missing, thirty after.
    assert sim.task_board().posted[0].worked == 61
    assert sim.tasks["done"][0] - sim.tasks["begun"][0] > 6.5


def test_new_tasks_by_events_are_shared_out_and_removed_ones_free_their_people() -> None:
    group = crew(1, stages=[Work("any", stay=True, until={"done": "c"}), Go("out")])
    sim = built({}, group)
    sim.at(1.0, events.AddTask(name="b", place="b", work=100.0, priority=1.0))
    sim.at(3.0, events.AddTask(name="c", place="c", work=1.0, within=0.5))
    sim.at(6.0, events.RemoveTask(name="b"))
    sim.run(until=0.9)
    assert sim.agents.task.tolist() == [-1]
    sim.run(until=2.0)
    assert sim.agents.task.tolist() == [0]
    sim.run(until=6.2)
    assert sim.agents.task.tolist() == [1]
    sim.run(until="empty", limit=60.0)
    assert sim.task_parts["how"][-1] == "done"
    assert sim.tasks["dropped"][0] == pytest.approx(6.0)
    assert len(sim.agents) == 0


def test_a_new_task_recalls_people_on_their_way_except_with_random_sharing() -> None:
    for how, tasks in ((sharing.Optimal(), [1]), (sharing.AtRandom(), [0])):
        sim = built(tasks_at("b"), crew(1), sharing=how)
        sim.at(1.0, events.AddTask(name="a", place="a", work=1.0, priority=1.0))
        sim.run(until=1.3)
        assert sim.agents.task.tolist() == tasks


def test_teams_that_cannot_be_complete_do_not_wait_for_each_other() -> None:
    sim = built(tasks_at("a", "b", agents=2), crew(3))
    sim.run(until="empty", limit=120.0)
    told = sim.tasks
    assert np.isfinite(told["done"]).all()
    assert max(told["begun"]) > min(told["done"])


def test_higher_priorities_come_first() -> None:
    for priority, first in ((1.0, "b"), (-1.0, "a")):
        tasks = tasks_at("a", "b") | tasks_at("b", priority=priority)
        sim = built(tasks, crew(1))
        sim.run(until="empty", limit=120.0)
        assert sim.task_parts["task"][0] == first


def test_a_fire_goes_out_when_its_task_is_done_and_events_about_it_are_past() -> None:
    world = hall(hazards={"fire": Hazard(inner=0.5, position=(17.0, 9.0))})
    sim = built({"fire": Task(hazard="fire", place="b", work=3.0, agents=2, within=1.0)}, world=world, habits=[])
    sim.at(40.0, events.GrowHazard(name="fire", inner=3.0))
    sim.at(41.0, events.RemoveHazard(name="fire"))
    sim.run(until=lambda sim: sim.tasks["done"][0] > 0.0, limit=39.0)
    assert "fire" not in sim.world.hazards
    assert len(sim.population.deaths()["id"]) == 0
    sim.run(until="empty", limit=60.0)
    sim.run(until=42.0)
    # A fire that goes out by itself leaves nothing to do.
    world = hall(hazards={"fire": Hazard(inner=0.5, position=(17.0, 9.0), until=2.0)})
    sim = built({"fire": Task(hazard="fire", work=3.0)}, world=world)
    sim.run(until=3.0)
    assert sim.tasks["dropped"][0] == pytest.approx(2.0)


def test_distances_follow_the_plan_around_walls() -> None:
    walls = [[(8.0, 0.0), (8.0, 9.0)]]
    group = crew(positions=[(6.0, 1.0), (14.0, 8.0)], count=None, region=None)
    for planner in (None, Roadmap(samples=200)):
        sim = built(tasks_at("c"), group, world=hall(walls=walls), planning=planner)
        sim.step()
        # The one that is four metres away as the crow flies has to walk around the wall.
        assert sim.agents.task.tolist() == [-1, 0]
        offer = offered([sim.layers.planners[0]], OfferedDistance)[0]
        length = offer.length(Aim(sim.world.goal_numbers["c"], (0.0, 0.0)), sim.agents.position, 0.2)
        # Through the middle of the gap, which is a metre wide.
        around = 2.0 * np.hypot(2.0, 8.5)
        assert around - 1.0 < length[0] < 1.15 * around
        assert length[1] == pytest.approx(np.hypot(4.0, 7.0), rel=0.1)


@pytest.mark.parametrize("how", [sharing.Optimal(), sharing.Auction(bids=1), sharing.Greedy(), sharing.AtRandom()])
def test_tasks_end_in_the_same_bits_on_any_threads_and_after_a_resume(how: Any, tmp_path: Path) -> None:
    def made(threads: int) -> Simulation:
        fresh = type(how)(**dataclasses.asdict(how.parameters)) if how.parameters else type(how)()
        sim = built(tasks_at("a", "b", "c", agents=2), crew(5), sharing=fresh, threads=threads)
        sim.at(3.0, events.AddTask(name="d", place=(10.0, 8.0), work=1.0, type="late"))
        return sim

    whole, half, resumed = made(1), made(2), made(1)
    whole.run(until=20.0)
    half.run(until=0.2)
    half.save(tmp_path / "early.npz")
    resumed.restore(tmp_path / "early.npz")
    resumed.run(until=9.0)
    resumed.save(tmp_path / "late.npz")
    again = made(1)
    again.restore(tmp_path / "late.npz")
    again.run(until=20.0)
    half.run(until=20.0)
    assert again.state_hash() == whole.state_hash() == half.state_hash()
    assert again.task_parts["task"] == whole.task_parts["task"]


def test_rows_do_not_matter() -> None:
    """The same crowd with its rows in another order is sent to the same tasks."""
    one, other = (built(tasks_at("a", "b", "c", agents=2), crew(8)) for _ in range(2))
    order = np.random.default_rng(0).permutation(8)
    for name, column in other.agents.columns.items():
        other.agents.columns[name] = column[order].copy()
    other.agents.touch()
    other.population._members.clear()
    one.step()
    other.step()
    assert dict(zip(one.agents.id.tolist(), one.agents.task.tolist(), strict=True)) == dict(
        zip(other.agents.id.tolist(), other.agents.task.tolist(), strict=True)
    )


def test_a_damaged_board_is_refused() -> None:
    sim = built(tasks_at("a", "b"))
    sim.run(until=1.0)
    board = sim.task_board()
    good = board.state()
    kept = {"goals": len(sim.world.goal_numbers), "next_id": sim.agents.next_id}
    assert board.read(good, **kept).state().keys() == good.keys()
    wrong = {
        "tasks/told": np.array(["{}", "nonsense"]),
        "tasks/numbers": good["tasks/numbers"] + 99,
        "tasks/parts": good["tasks/parts"] + 50,
        "tasks/available": np.array([77]),
    }
    for name, array in wrong.items():
        with pytest.raises(CheckpointError):
            board.read({**good, name: array}, **kept)
    twice = np.vstack([good["tasks/parts"], good["tasks/parts"][:1]])
    with pytest.raises(CheckpointError, match="nobody's part"):
        board.read({**good, "tasks/parts": twice}, **kept)


def test_a_record_tells_what_happened_to_tasks(tmp_path: Path) -> None:
    sim = built(tasks_at("a", agents=2), crew(3))
    sim.run(until=15.0, record=tmp_path / "run.sqlite")
    with read_trajectory(tmp_path / "run.sqlite") as run:
        told = run.tasks()
    assert [told["what"].count(what) for what in ("assigned", "arrived", "begun", "done")] == [2, 2, 2, 2]
    assert set(told["task"]) == {"a"}
    done = np.asarray(told["time"])[[what == "done" for what in told["what"]]]
    assert done == pytest.approx(sim.tasks["done"][0])


def test_waiting_for_a_task() -> None:
    guests = Group("guests", positions=[(5.0, 8.0)], stages=[WaitFor({"done": "a"}), Go("out")])
    sim = Simulation(hall(), [crew(2), guests], tasks=tasks_at("a", work=3.0), dt=0.1)
    sim.run(until="empty", limit=90.0)
    left = sim.population.departures()
    assert left["time"][left["id"] == 2][0] > sim.tasks["done"][0]


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"place": "nowhere"}, "task 'x' has the goal 'nowhere'"),
        ({"place": "out"}, "people leave at 'out'"),
        ({"place": "nearest exit"}, "one place or a point"),
        ({"place": (99.0, 9.0)}, "outside"),
        ({"hazard": "smoke"}, "no hazard 'smoke'"),
        ({"place": "a", "groups": ("crow",)}, "no group 'crow'.*crew"),
        ({"place": "a", "needs": {"strenght": 0.5}}, "no attribute 'strenght'.*strength"),
        ({"place": "a", "suits": {"position": 1.0}}, "no attribute 'position'"),
    ],
)
def test_tasks_that_cannot_be_are_refused(task: dict[str, Any], said: str) -> None:
    with pytest.raises(TropelError, match=said):
        built({"x": Task(work=1.0, **task)})


@pytest.mark.parametrize(
    "wrong",
    [{"work": -1.0}, {"work": float("nan")}, {"agents": 0}, {"agents": 1.5}, {"agents": True}, {"place": None},
     {"priority": float("inf")}, {"needs": {"strength": "much"}}, {"groups": ()}, {"skill": 1}, {"within": -1.0}],
)  # fmt: skip
def test_wrong_fields_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Task(**({"place": "a", "work": 1.0} | wrong))


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ParameterError, match="no tasks to work on"):
        Simulation(hall(), crew())
    with pytest.raises(ParameterError, match="no tasks here"):
        Simulation(hall(), Group("a", count=1)).add_task("x", Task(place="a", work=1.0))
    sim = built(tasks_at("a"))
    with pytest.raises(ParameterError, match="already"):
        sim.add_task("a", Task(place="b", work=1.0))
    with pytest.raises(ParameterError, match="no task 'q'"):
        sim.remove_task("q")
    with pytest.raises(ParameterError, match="no task 'q'"):
        sim.at(1.0, events.RemoveTask(name="q"))
    with pytest.raises(ParameterError, match="there is a task 'a' already"):
        sim.at(1.0, events.AddTask(name="a", place="b", work=1.0))
    with pytest.raises(ParameterError, match="no hazard 'h'"):
        sim.at(1.0, events.AddTask(name="n", hazard="h", work=1.0))
    with pytest.raises(ParameterError, match="sharing needs"):
        built(tasks_at("a"), sharing="optimal")
    with pytest.raises(ParameterError, match="tasks are given by name"):
        Simulation(hall(), crew(), tasks=[Task(place="a", work=1.0)])  # type: ignore[arg-type]
    sim.at(1.0, lambda sim: sim.add_task("a", Task(place="b", work=1.0)))
    with pytest.raises(EventError, match="already"):
        sim.run(until=2.0)


def test_too_few_for_a_task_is_a_warning() -> None:
    for tasks, group in (
        (tasks_at("a", agents=7), crew(6)),
        (tasks_at("a", type="rescue"), crew(6, stages=[Work("fire"), Go("out")])),
        (tasks_at("a", needs={"strength": 0.9}), crew(6)),
        (tasks_at("a"), crew(0)),
    ):
        findings = [each for each in built(tasks, group).check() if each.code == "task_without_team"]
        assert len(findings) == 1
        assert "task 'a' takes" in findings[0].message
    assert built(tasks_at("a", agents=6)).check() == []


FILE = """
name = "x"
until = 5.0
{more}
[world]
walkable = {{ box = [0, 0, 20, 10] }}
targets.a = {{ position = [3, 9] }}
[[groups]]
name = "crew"
count = 3
stages = [{{ work = "any" }}]
[tasks.first]
{task}
"""


@pytest.mark.parametrize(
    ("task", "more", "said"),
    [
        ('place = "b"\nwork = 3', "", "tasks.first"),
        ('place = "a"\nwork = 3\nagents = 0', "", "tasks.first.agents"),
        ('place = "a"', "", "tasks.first.*work"),
        ('place = "a"\nwork = 3', 'sharing = "bazaar"', "no sharing of tasks 'bazaar'"),
        ('place = "a"\nwork = 3', 'sharing = { model = "auction", slack = -1 }', "slack"),
        ('place = "a"\nwork = nan', "", "tasks.first.work"),
    ],
)
def test_bad_files_are_refused_with_line_and_key(task: str, more: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said) as error:
        parse_scenario(FILE.format(task=task, more=more), source="f.toml", folder=Path()).build()
    assert "f.toml, line" in str(error.value)


def test_a_file_has_tasks_and_a_sharing() -> None:
    text = FILE.format(task='place = "a"\nwork = 3.0\nagents = 2', more='sharing = { model = "auction", slack = 2.0 }')
    sim = parse_scenario(text, source="f.toml", folder=Path()).build()
    assert isinstance(sim.layers.sharing, sharing.Auction)
    assert sim.layers.sharing.parameters.slack == 2.0
    sim.step()
    assert np.count_nonzero(sim.agents.task == 0) == 2
