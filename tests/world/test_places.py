"""Places: names, points and tables for exits, targets, regions, doors and rooms."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import (
    Direct,
    FlowField,
    Group,
    Harmonic,
    Lattice,
    PathPlans,
    Place,
    Seek,
    Simulation,
    Target,
    World,
    events,
)
from tropel.agents.arriving import at_goal
from tropel.agents.goals import check_goal, goal_name
from tropel.errors import GeometryError, ParameterError, TropelError
from tropel.world.goals import distance_to_shape, shape_of_goal


def hall() -> World:
    return World(
        shapely.box(0, 0, 20, 10),
        walls=[[(8, 0), (8, 4)]],
        exits={"out": shapely.box(19, 4, 20, 6)},
        regions={"lobby": shapely.box(10, 1, 13, 4), "main": shapely.box(1, 1, 2, 2)},
        rooms={"kitchen": shapely.box(0, 5, 5, 10)},
        doors={"main": [(15, 0), (15, 10)]},
        targets={"bar": Target(position=(12, 8), radius=0.5)},
    )


def walkers(world: World, *goals: Any, planning: Any = None, **told: Any) -> Simulation:
    people = [Group(f"g{k}", positions=[(4.0 + 0.6 * k, 3.0)], goal=goal, **told) for k, goal in enumerate(goals)]
    return Simulation(world, people, planning=planning, local=Seek(), seed=3)


def test_a_place_is_one_thing_and_says_so() -> None:
    assert str(Place(door="main")) == "door 'main'"
    assert str(Place(point=(3, 4.5))) == "(3, 4.5)"
    for wrong in ({}, {"door": "a", "exit": "b"}, {"dor": "main"}):
        with pytest.raises(ParameterError):
            Place(**wrong)


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("out", Place(exit="out")),
        ("bar", Place(target="bar")),
        ("lobby", Place(region="lobby")),
        ("kitchen", Place(room="kitchen")),
        ("door main", Place(door="main")),
        ({"door": "main"}, Place(door="main")),
        ((3, 4), Place(point=(3.0, 4.0))),
        (np.array([3.0, 4.0]), Place(point=(3.0, 4.0))),
        ("nearest exit", "nearest exit"),
    ],
)
def test_names_points_and_tables_mean_places(told: Any, meant: Any) -> None:
    assert check_goal(hall(), told, "they") == meant


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("loby", "did you mean 'lobby'"),
        ("main", 'region and a door; say which: { region = "main" } or { door = "main" }'),
        ({"door": "mian"}, "no door 'mian'; did you mean 'main'"),
        ({"dor": "main"}, "did you mean 'door'"),
        ((30, 4), "outside the walkable area"),
        ((8, 2), "lies on a wall"),
        ((3, 4, 5), "coordinates"),
        ((math.nan, 4), "finite"),
        ((1, "a"), "the name of a place, a point"),
        (7, "the name of a place, a point"),
    ],
)
def test_goals_that_cannot_be_are_refused_with_a_remedy(told: Any, said: str) -> None:
    with pytest.raises(TropelError, match=said.replace("(", r"\(").replace("{", r"\{").replace("}", r"\}")):
        walkers(hall(), told)


def test_a_point_in_an_obstacle_is_refused() -> None:
    world = hall()
    from tropel import Obstacle

    world.obstacles.add("pillar", Obstacle(radius=1.0, position=(5.0, 5.0)))
    with pytest.raises(GeometryError, match="inside the obstacle 'pillar'"):
        walkers(world, (5.2, 5.0))


def test_a_target_cannot_take_the_name_of_another_place() -> None:
    with pytest.raises(GeometryError, match="already stands for the door 'main'"):
        hall().add_target("door main", (3, 3))


def test_only_places_that_somebody_is_sent_to_have_numbers() -> None:
    world = hall()
    assert list(world.goal_numbers) == ["out", "bar"]
    walkers(world, "lobby", Place(door="main"), "lobby", (6, 6))
    assert list(world.goal_numbers) == ["out", "bar", "region lobby", "door main"]


@pytest.mark.parametrize("planner", [Direct, FlowField])
def test_people_walk_to_every_kind_of_place_and_stay_there(planner: type) -> None:
    world = World(
        shapely.box(0, 0, 20, 10),
        regions={"lobby": shapely.box(10, 1, 13, 4)},
        rooms={"kitchen": shapely.box(0, 6, 5, 10)},
        doors={"shut": [(15, 0), (15, 10)], "open": ([(7, 5), (7, 10)])},
        targets={"bar": (12, 8)},
    )
    world.set_door("open", open=True)
    sim = walkers(world, "lobby", "kitchen", "shut", "open", (9.0, 6.0), "bar", planning=planner())
    sim.run(until=20.0)
    rows = np.arange(len(sim.agents))
    assert at_goal(sim.agents, world, rows).all()
    # Against shapely: the centre is inside areas, and the body reaches lines and points.
    names = ["region lobby", "room kitchen", "door shut", "door open"]
    away = [distance_to_shape(shape_of_goal(world, n), sim.agents.position[[k]])[0] for k, n in enumerate(names)]
    assert away[0] == 0.0 == away[1]
    assert away[2] <= sim.agents.radius[2]
    assert away[3] <= sim.agents.radius[3]
    assert np.linalg.norm(sim.agents.position[4] - (9.0, 6.0)) <= sim.agents.radius[4]
    before = sim.agents.position.copy()
    sim.run(until=25.0)
    assert np.abs(sim.agents.position - before).max() < 0.05


def test_points_cost_no_field_each() -> None:
    planner = FlowField()
    sim = walkers(hall(), "lobby", *[(2.0 + 0.5 * k, 8.0) for k in range(9)], planning=planner)
    sim.run(until=0.5)
    assert planner.goals() == ("region lobby",)
    with pytest.raises(ParameterError, match="no field"):
        planner.field((3.0, 3.0))  # type: ignore[arg-type]


def test_a_field_for_a_place_that_nobody_goes_to_does_not_change_the_world() -> None:
    sim = walkers(hall(), "out", planning=FlowField())
    before = sim.state_hash()
    with pytest.raises(ParameterError, match="nobody has been sent"):
        sim.planners["g0"].field("lobby")  # type: ignore[attr-defined]
    assert sim.state_hash() == before


def test_a_crowd_on_cells_goes_to_regions_and_refuses_points() -> None:
    world = World(shapely.box(0, 0, 20, 10), regions={"lobby": shapely.box(10, 1, 14, 5)})
    people = Group("people", count=20, region=shapely.box(1, 1, 6, 8), goal="lobby")
    sim = Simulation(world, people, planning=PathPlans(), local=Lattice(), dt=0.25, seed=1)
    sim.run(until=40.0)
    assert at_goal(sim.agents, world, np.arange(20)).mean() > 0.9
    for sent in (lambda: sim.set_goal((3, 3)), lambda: sim.at(41.0, events.SetGoal(goal=(3, 3)))):
        with pytest.raises(ParameterError, match=r"walks on cells.*add a target there"):
            sent()


def test_in_space_people_go_to_boxes_and_points() -> None:
    world = World.box((0, 0, 0), (10, 10, 10), regions={"corner": ((7, 7, 7), (9, 9, 9))})
    flyers = [
        Group("a", positions=[(1, 1, 1)], goal="corner"),
        Group("b", positions=[(1, 2, 1)], goal=(2.0, 8.0, 3.0)),
    ]
    for planner in (Direct(), Harmonic(cell=0.5)):
        sim = Simulation(world, flyers, planning=planner, local=Seek(), seed=1)
        sim.run(until=15.0)
        assert at_goal(sim.agents, world, np.arange(2)).all()
        assert ((sim.agents.position[0] >= 7) & (sim.agents.position[0] <= 9)).all()
        assert np.linalg.norm(sim.agents.position[1] - (2, 8, 3)) <= sim.agents.radius[1]


def test_set_goal_sends_agents_by_id_and_groups_to_points() -> None:
    sim = Simulation(hall(), [Group("a", count=4, region=shapely.box(1, 1, 4, 4)), Group("b", positions=[(6, 6)])])
    sim.set_goal((3, 8), ids=[1, 3])
    sim.set_goal(Place(door="main"), group="b")
    assert [goal_name(sim.world, g, p) for g, p in zip(sim.agents.goal, sim.agents.goal_point, strict=True)] == [
        *("nearest exit", "(3, 8)", "nearest exit", "(3, 8)", "door main")
    ]
    with pytest.raises(ParameterError, match="no agent has ever had the id 9"):
        sim.set_goal("out", ids=[9])
    with pytest.raises(ParameterError, match="whole numbers"):
        sim.set_goal("out", ids=[0.5])


def test_the_event_knows_names_before_it_is_due() -> None:
    sim = walkers(hall(), "out")
    sim.at(1.0, events.SetGoal(goal="lobby"))
    sim.at(1.0, events.SetGoal(goal={"door": "main"}, ids=[0]))
    sim.at(1.0, events.SetGoal(goal=(3, 3), then=("kitchen", (6, 6)), repeat=True))
    for goal, said in (("loby", "did you mean 'lobby'"), ({"room": "kitchn"}, "did you mean 'kitchen'")):
        with pytest.raises(ParameterError, match=said):
            sim.at(1.0, events.SetGoal(goal=goal))
    with pytest.raises(GeometryError, match="outside"):
        sim.at(1.0, events.SetGoal(goal=(99, 3)))


def test_the_event_is_stored_as_the_table_of_a_file() -> None:
    event = events.SetGoal(goal={"door": "main"}, then=((3, 3),))
    told = json.loads(event.model_dump_json(exclude_none=True))
    assert told["goal"] == {"door": "main"}
    assert events.SetGoal.model_validate(told) == event
