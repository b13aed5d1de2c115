"""What a user gets without choosing anything: people that find their way out of a building."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Direct, FlowField, Group, Lattice, PathPlans, Seek, Simulation, Walk, World
from tropel.scenario.loading import parse_scenario

ROOM = World(shapely.box(0, 0, 6, 4), exits={"out": shapely.box(5, 1, 6, 3)})


@pytest.mark.parametrize(
    ("world", "planner", "model"),
    [
        (ROOM, FlowField, Walk),
        (World.box((0, 0), (9, 9), open=True), Direct, Seek),
        (World.box((0, 0, 0), (5, 5, 5)), Direct, Seek),
        (World(bounds=(0, 0, 9, 9), walls=[[(1, 1), (2, 2)]]), FlowField, Walk),
    ],
)
def test_with_walls_people_find_their_way_and_walk(world: World, planner: type, model: type) -> None:
    sim = Simulation(world, Group("a", count=1, goal="none"))
    assert [type(each) for each in sim.layers.planners] == [planner]
    assert [type(each) for each in sim.layers.models] == [model]


def test_a_crowd_on_cells_gets_a_planner_that_publishes_a_ground() -> None:
    sim = Simulation(
        ROOM, [Group("cells", count=2), Group("others", count=2)], local={"cells": Lattice(), "others": None}
    )
    assert [type(each) for each in sim.layers.planners] == [PathPlans, FlowField]
    assert [type(each) for each in sim.layers.models] == [Lattice, Walk]


def test_groups_share_one_default() -> None:
    sim = Simulation(ROOM, [Group("a", count=1), Group("b", count=1)])
    assert sim.layers.planners[0] is sim.layers.planners[1]
    assert sim.layers.models[0] is sim.layers.models[1]


def test_a_huge_world_gets_larger_cells_instead_of_an_error() -> None:
    world = World(shapely.box(0, 0, 5000, 3000), exits={"out": shapely.box(4990, 0, 5000, 3000)})
    sim = Simulation(world, Group("a", positions=[(4900.0, 10.0)]))
    sim.step()
    assert sim.agents.velocity[0, 0] > 1.0


def school(draws: np.random.Generator) -> dict[str, Any]:
    """A corridor with rooms on both sides, each with a door of about a metre somewhere along the corridor."""
    rooms = 6
    boxes = [[0.0, 6.0, 8.0 * rooms, 9.0]]
    for number in range(rooms):
        left, right = 8.0 * number, 8.0 * number + 7.8
        for low, high, door in ((0.0, 5.8, (5.8, 6.0)), (9.2, 15.0, (9.0, 9.2))):
            at, width = draws.uniform(left + 0.5, right - 1.7), draws.uniform(0.8, 1.2)
            boxes += [[left, low, right, high], [at, door[0], at + width, door[1]]]
    return {"boxes": boxes, "end": 8.0 * rooms}


@pytest.mark.parametrize("seed", range(3))
def test_three_hundred_people_leave_a_school_of_twelve_rooms(seed: int, tmp_path: Path) -> None:
    plan = school(np.random.default_rng(seed))
    boxes = ",\n".join(f"{{ box = {box} }}" for box in plan["boxes"])
    text = f"""
    name = "school"
    until = "empty"
    limit = 300.0
    [world]
    walkable = [{boxes}]
    [world.exits]
    east = {{ box = [{plan["end"] - 1.0}, 6.0, {plan["end"]}, 9.0] }}
    west = {{ box = [0.0, 6.0, 1.0, 9.0] }}
    [[groups]]
    name = "pupils"
    count = 300
    desired_speed = {{ kind = "normal", mean = 1.34, sd = 0.26, low = 0.5 }}
    """
    sim = parse_scenario(text, source="school", folder=tmp_path).build(seed=seed, threads=1)
    assert sim.check() == []
    summary = sim.run(until="empty", limit=300.0)
    assert len(sim.agents) == 0
    assert summary.evacuation_time is not None
    assert summary.evacuation_time < 150.0
