"""Roadmap planners from outside: they arrive, keep the contracts, resume, and say before the run what cannot work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from cluttered_worlds import exact_gap

import tropel
from tropel._kernels.compile import threads_restored
from tropel.errors import GeometryError, ParameterError, PathError
from tropel.testing import check_planner
from tropel.world import Door, Obstacle, Target, Waypoints, World

PLANNERS = {"roadmap": tropel.Roadmap, "adaptive": tropel.AdaptiveRoadmap, "rooms": tropel.Rooms}


@pytest.mark.parametrize("planner", PLANNERS.values(), ids=PLANNERS)
@pytest.mark.long
def test_roadmap_planners_keep_the_contract(planner: type) -> None:
    check_planner(planner, ids_matter=True, dims=(2,) if planner is tropel.Rooms else (2, 3))


def winding(**more: Any) -> World:
    """Two walls to walk around, with a door in the first."""
    return World(
        shapely.box(0, 0, 20, 12),
        walls=[[(6, 0), (6, 8)], [(12, 12), (12, 4)]],
        doors={"door": Door([(6, 8), (6, 12)], open=True)},
        targets={"goal": Target(position=(18, 10), radius=0.5, absorbs=True)},
        **more,
    )


def walked(planner: tropel.Planner, world: World | None = None, *, seed: int = 1, **group: Any) -> tropel.Simulation:
    people = tropel.Group("people", **({"positions": [[1, 1], [2, 2]], "goal": "goal"} | group))
    return tropel.Simulation(winding() if world is None else world, people, planning=planner, dt=0.05, seed=seed)


@pytest.mark.parametrize("planner", PLANNERS.values(), ids=PLANNERS)
def test_people_find_their_way_around_walls(planner: type) -> None:
    for seed in range(3):
        sim = walked(planner(), seed=seed)
        sim.run(until="empty", limit=60.0)
        assert len(sim.agents) == 0
        assert sim.time < 30.0  # the shortest path is 24.3 m long, and people walk 1.3 m/s


@pytest.mark.parametrize("planner", [tropel.Roadmap, tropel.AdaptiveRoadmap])
def test_paths_are_free_and_not_much_longer_than_the_shortest(planner: type) -> None:
    lengths = []
    for seed in range(8):
        made = planner()
        sim = walked(made, seed=seed, positions=[[1, 1]])
        path = made.travellers.people[0].path
        gap = exact_gap(sim.world, path.points[:-1], path.points[1:], doors=True)
        assert (gap > made.radius_of(float(sim.agents.radius[0])) - 1e-9).all()
        lengths.append(path.length)
    straight = np.array([[1, 1], [6, 8], [12, 4], [18, 10]])
    shortest = np.linalg.norm(np.diff(straight, axis=0), axis=1).sum()
    assert shortest < min(lengths)
    assert np.median(lengths) < 1.15 * shortest


def test_birds_find_their_way_in_3d() -> None:
    balls = {f"{y} {z}": Obstacle(radius=1.2, position=(5.0, 2.0 * y, 2.0 * z)) for y in range(5) for z in range(5)}
    del balls["1 3"]
    world = World.box((0, 0, 0), (10, 8, 8), obstacles=balls, targets={"goal": Target(position=(9, 4, 4), radius=0.5)})
    for planner in (tropel.Roadmap, tropel.AdaptiveRoadmap):
        made = planner(samples=600)
        sim = walked(made, world, positions=[[1, 4, 4]], radius=0.1, desired_speed=1.0)
        sim.run(until=40.0)
        assert np.linalg.norm(sim.agents.position[0] - (9, 4, 4)) < 1.0


@pytest.mark.parametrize("planner", PLANNERS.values(), ids=PLANNERS)
def test_a_door_that_closes_makes_people_wait_and_one_that_opens_lets_them_go(planner: type) -> None:
    sim = walked(planner())
    sim.at(1.0, tropel.events.CloseDoor(door="door"))
    sim.at(20.0, tropel.events.OpenDoor(door="door"))
    sim.run(until=19.0)
    assert (sim.agents.position[:, 0] < 6.0).all()
    assert len(sim.agents) == 2
    sim.run(until=60.0)
    assert len(sim.agents) == 0


@pytest.mark.parametrize("planner", PLANNERS.values(), ids=PLANNERS)
def test_a_goal_that_changes_or_moves_is_followed(planner: type) -> None:
    cat = Target(motion=Waypoints(points=((2.0, 10.0), (18.0, 2.0)), speed=0.5, repeat="once"), radius=0.6)
    world = World(shapely.box(0, 0, 20, 12), walls=[[(10, 0), (10, 5)], [(10, 7), (10, 12)]],
                  targets={"first": Target(position=(2, 10)), "cat": cat})  # fmt: skip
    sim = walked(planner(), world, positions=[[2.0, 2.0]], goal="first")
    sim.at(5.0, tropel.events.SetGoal(group="people", goal="cat"))
    sim.run(until=45.0)
    assert np.linalg.norm(sim.agents.position[0] - (18.0, 2.0)) < 1.0


@pytest.mark.parametrize("planner", PLANNERS.values(), ids=PLANNERS)
def test_the_same_bits_on_two_threads_and_after_a_resume(planner: type, tmp_path: Path) -> None:
    def made() -> tropel.Simulation:
        carts = {
            f"cart {k}": Obstacle(
                radius=0.4, motion=Waypoints(points=((2.0 + 3 * k, 1.0), (2.0 + 3 * k, 11.0)), speed=1.0)
            )
            for k in range(6)
        }
        sim = walked(
            planner(budget=100), winding(obstacles=carts), positions=None, count=12, region=shapely.box(0, 0, 5, 5)
        )
        sim.at(6.0, tropel.events.CloseDoor(door="door"))
        sim.at(9.0, tropel.events.OpenDoor(door="door"))
        return sim

    sim = made()
    hashes = []
    for k in range(1, 5):
        sim.run(until=3.0 * k)
        hashes.append(sim.state_hash())
        sim.save(tmp_path / f"{k}.ckpt")
    with threads_restored(2):
        again = made()
        again.run(until=12.0)
    assert again.state_hash() == hashes[-1]
    for k in range(1, 4):
        resumed = made()
        resumed.restore(tmp_path / f"{k}.ckpt")
        resumed.run(until=12.0)
        assert resumed.state_hash() == hashes[-1]


def test_whoever_leads_is_an_agent_with_a_goal_and_others_may_have_none() -> None:
    made = tropel.Roadmap()
    flock = tropel.Group("flock", count=10, region=shapely.box(0, 0, 4, 4), goal="none", follow="leader")
    leader = tropel.Group("leader", positions=[[4.0, 4.0]], goal="goal")
    sim = tropel.Simulation(winding(), [leader, flock], planning=made, local=tropel.Flocking(), dt=0.05)
    sim.run(until=2.0)
    assert len(made.travellers) == 1


# What cannot work is said before the run ----------------------------------------------------------------------------


def test_an_unsolvable_query_names_the_two_components() -> None:
    world = World(shapely.box(0, 0, 20, 10), walls=[[(10, 0), (10, 10)]], targets={"goal": Target(position=(15, 5))})
    for planner in (tropel.Roadmap, tropel.AdaptiveRoadmap):
        with pytest.raises(PathError) as told:
            walked(planner(), world, positions=[[5.0, 5.0]])
        text = str(told.value)
        assert "agent 0 of group 'people' at (5, 5) cannot get to 'goal'" in text
        assert "starts in component 1" in text or "starts in component 2" in text
        assert text.count("component ") == 2
    with pytest.raises(PathError, match=r"in room \d .* 'goal' is in room \d .* of 2 rooms, which no doors join"):
        walked(tropel.Rooms(), world, positions=[[5.0, 5.0]])


@pytest.mark.parametrize("planner", PLANNERS.values(), ids=PLANNERS)
def test_a_goal_in_an_obstacle_is_an_error(planner: type) -> None:
    world = World(shapely.box(0, 0, 20, 10), obstacles={"rock": Obstacle(radius=1.0, position=(15, 5))},
                  targets={"goal": Target(position=(15, 5), radius=0.2)})  # fmt: skip
    with pytest.raises(PathError, match="'goal' is in a wall or obstacle"):
        walked(planner(), world, positions=[[5.0, 5.0]])


def test_rooms_need_a_floor_plan_and_doors_in_walls() -> None:
    box = World.box((0, 0, 0), (5, 5, 5), targets={"goal": Target(position=(4, 4, 4))})
    with pytest.raises(GeometryError, match="2D world with a walkable area"):
        walked(tropel.Rooms(), box, positions=[[1, 1, 1]])
    loose = World(shapely.box(0, 0, 20, 10), doors={"loose": Door([(10, 3), (10, 5)])},
                  targets={"goal": Target(position=(15, 5))})  # fmt: skip
    with pytest.raises(GeometryError, match="door 'loose' stands in no wall"):
        walked(tropel.Rooms(), loose, positions=[[5, 5]])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"samples": 0}, "samples"), ({"neighbours": 1.5}, "neighbours"), ({"sampling": "dense"}, "sampling"),
     ({"clearance": -1.0}, "clearance"), ({"sample": 3}, "sample")],
)  # fmt: skip
def test_wrong_parameters_are_named(wrong: dict[str, Any], said: str) -> None:
    for planner in PLANNERS.values():
        with pytest.raises((ParameterError, TypeError), match=said):
            planner(**wrong)


def test_people_behind_shut_doors_wait_instead_of_failing() -> None:
    for planner in PLANNERS.values():
        world = winding()
        world.set_door("door", open=False)
        sim = walked(planner(), world)
        sim.run(until=1.0)
        assert len(sim.agents) == 2
