"""Routes: the next goal on arrival, in Python, events, files and checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely

from tropel import Direct, Flocking, Group, Seek, Simulation, World, events, load_scenario
from tropel.agents.goals import goal_name
from tropel.errors import CheckpointError, ParameterError

FILE = """
name = "tour"
dt = 0.1
until = 30.0

[world]
walkable = { box = [0.0, 0.0, 12.0, 8.0] }
exits.out = { box = [11.5, 3.0, 12.0, 5.0] }
rooms.kitchen = { box = [0.0, 5.0, 3.0, 8.0] }
doors.hatch = { line = [[6.0, 0.0], [6.0, 2.0]], open = true }

[[groups]]
name = "visitors"
positions = [[1.0, 1.0], [2.0, 2.0]]
goal = { door = "hatch" }
then = [[8.0, 6.0], "kitchen", "out"]

[[groups]]
name = "guard"
positions = [[4.0, 4.0]]
goal = [9.0, 4.0]
then = [[4.0, 4.0]]
repeat = true

[[events]]
at = 1.0
kind = "set_goal"
goal = { room = "kitchen" }
ids = [1]
"""


def room() -> World:
    return World(
        shapely.box(0, 0, 12, 8),
        exits={"out": shapely.box(11.5, 3, 12, 5)},
        regions={"corner": shapely.box(0, 6, 2, 8)},
        targets={"bar": (6, 4)},
    )


def visited(sim: Simulation, until: float) -> list[str]:
    """The goals of agent 0, in the order in which it had them."""
    seen: list[str] = []
    while sim.time < until and 0 in sim.agents.id:
        name = goal_name(sim.world, int(sim.agents.goal[0]), sim.agents.goal_point[0])
        if not seen or seen[-1] != name:
            seen.append(name)
        sim.step()
    return seen


def test_agents_go_on_when_they_arrive_and_not_before() -> None:
    sim = Simulation(room(), Group("a", positions=[(1, 1)], goal="bar", then=["corner", (6, 1), "out"]), dt=0.1)
    assert visited(sim, 60.0) == ["bar", "region corner", "(6, 1)", "out"]
    assert sim.population.departed == 1


def test_a_route_that_repeats_begins_again() -> None:
    sim = Simulation(room(), Group("a", positions=[(1, 1)], goal=(2, 2), then=[(6, 2)], repeat=True), dt=0.1)
    assert visited(sim, 30.0)[:5] == ["(2, 2)", "(6, 2)", "(2, 2)", "(6, 2)", "(2, 2)"]


def test_every_agent_is_on_its_own_leg() -> None:
    near_and_far = Group("a", positions=[(5, 4), (1, 1)], goal="bar", then=["corner"])
    sim = Simulation(room(), near_and_far, dt=0.1)
    sim.run(until=1.0)
    assert sim.agents.stage.tolist() == [1, 0]


def test_a_new_goal_ends_the_route() -> None:
    sim = Simulation(room(), Group("a", count=2, goal="bar", then=["corner"]), dt=0.1, seed=1)
    sim.set_goal("out", ids=[0])
    assert sim.agents.agenda.tolist() == [-1, 0]
    sim.set_goal((3, 3), then=["bar"], ids=[0])
    assert sim.agents.agenda.tolist() == [1, 0]
    assert len(sim.population.agendas) == 2


def test_boids_arrive_when_they_see_the_place_and_no_wall_hides_it() -> None:
    def legs(x: float, walls: list[list[tuple[float, float]]]) -> list[int]:
        world = World(shapely.box(0, 0, 12, 8), walls=walls)
        boids = Group("a", positions=[(x, 1)], goal=(6, 1), then=[(6, 7)], sense_radius=2.0, radius=0.05)
        sim = Simulation(world, boids, planning=Direct(), local=Flocking(), dt=0.1, seed=1)
        sim.step()
        return sim.agents.stage.tolist()

    assert legs(4.1, []) == [1]
    assert legs(3.9, []) == [0]
    assert legs(4.1, [[(5, 0), (5, 3)]]) == [0]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"goal": "out", "then": ["bar"]}, "people leave at 'out'"),
        ({"goal": "bar", "then": ["out"], "repeat": True}, "people leave at 'out'"),
        ({"goal": "none", "then": ["bar"]}, "'none' is never followed"),
        ({"goal": "bar", "repeat": True}, "repeat is for several goals"),
        ({"goal": "bar", "then": "corner"}, "then is a list of goals"),
        ({"goal": "bar", "then": ["cornr"]}, "did you mean 'corner'"),
    ],
)
def test_routes_that_cannot_be_walked_are_refused(told: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Simulation(room(), Group("a", positions=[(1, 1)], **told))  # type: ignore[arg-type]


def test_files_have_the_same_fields(tmp_path: Path) -> None:
    path = tmp_path / "tour.toml"
    path.write_text(FILE)
    sim = load_scenario(path).build(threads=1)
    sim.run(until=1.5)
    names = [goal_name(sim.world, g, p) for g, p in zip(sim.agents.goal, sim.agents.goal_point, strict=True)]
    assert names == ["door hatch", "room kitchen", "(9, 4)"]
    sim.run(until=30.0)
    assert sim.population.departures()["id"].tolist() == [0]


def test_a_file_with_a_goal_that_is_no_place_says_where(tmp_path: Path) -> None:
    from tropel.errors import ScenarioError

    for old, new, said in (
        ('{ door = "hatch" }', '{ door = "hutch" }', "did you mean 'hatch'"),
        ("[9.0, 4.0]", "[9.0, nan]", "finite"),
        ("[9.0, 4.0]", "[90.0, 4.0]", "outside the walkable area"),
        ("[9.0, 4.0]", "[9.0]", "a point such as"),
        ('goal = { room = "kitchen" }', 'goal = { rom = "kitchen" }', "did you mean 'room'"),
    ):
        path = tmp_path / "wrong.toml"
        path.write_text(FILE.replace(old, new))
        with pytest.raises(ScenarioError, match=said) as raised:
            load_scenario(path).build(threads=1)
        assert "wrong.toml" in str(raised.value)


def test_a_resumed_run_and_two_threads_have_the_same_bits(tmp_path: Path) -> None:
    (tmp_path / "tour.toml").write_text(FILE)
    scenario = load_scenario(tmp_path / "tour.toml")
    whole, half, other = scenario.build(threads=1), scenario.build(threads=2), scenario.build(threads=1)
    whole.run(until=20.0)
    half.run(until=9.0)
    half.save(tmp_path / "half.ckpt")
    other.restore(tmp_path / "half.ckpt")
    other.run(until=20.0)
    half.run(until=20.0)
    assert other.state_hash() == whole.state_hash() == half.state_hash()


def test_a_checkpoint_with_a_leg_beyond_its_route_is_refused(tmp_path: Path) -> None:
    sim = Simulation(room(), Group("a", positions=[(1, 1)], goal="bar", then=["corner"]), dt=0.1)
    sim.agents.stage[:] = 7
    sim.save(tmp_path / "bad.ckpt")
    with pytest.raises(CheckpointError, match="beyond the end of a list"):
        sim.restore(tmp_path / "bad.ckpt")


def test_a_replayed_run_sends_the_same_agents(tmp_path: Path) -> None:
    def built() -> Simulation:
        return Simulation(room(), Group("a", count=4, goal="none"), planning=Direct(), local=Seek(), dt=0.1, seed=5)

    first = built()
    first.at(0.5, events.SetGoal(goal=(6.0, 2.0), ids=[1, 2], then=["corner", {"exit": "out"}]))
    first.run(until=25.0, record=tmp_path / "run.sqlite")
    second = built()
    second.replay(tmp_path / "run.sqlite")
    second.run(until=25.0)
    assert second.state_hash() == first.state_hash()
    assert np.isin([1, 2], first.population.departures()["id"]).all()
