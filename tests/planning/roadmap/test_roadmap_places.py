"""Roadmaps lead to every kind of place, around walls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import tropel

PLANNERS = [tropel.Roadmap, tropel.AdaptiveRoadmap, tropel.Rooms]


def two_rooms(planner: type[Any], goal: Any, seed: int, **more: Any) -> tropel.Simulation:
    """Somebody in the corner of one room; the goals are in the other one, or at the door in between."""
    world = tropel.World(
        shapely.box(0.0, 0.0, 20.0, 10.0),
        walls=[[(10.0, 0.0), (10.0, 8.0)]],
        exits={"out": shapely.box(19.0, 4.0, 20.0, 6.0)},
        regions={"lobby": shapely.box(14.0, 1.0, 17.0, 3.0)},
        rooms={"kitchen": shapely.box(12.0, 6.0, 17.0, 10.0)},
        doors={"hatch": tropel.Door([(10.0, 8.0), (10.0, 10.0)], open=True)},
    )
    walker = tropel.Group("walker", positions=[(2.0, 2.0)], goal=goal, **more)
    return tropel.Simulation(world, walker, planning=planner(), local=tropel.Seek(), seed=seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("goal", "where"),
    [
        ("lobby", shapely.box(14.0, 1.0, 17.0, 3.0)),
        ("kitchen", shapely.box(12.0, 6.0, 17.0, 10.0)),
        (tropel.Place(door="hatch"), shapely.LineString([(10.0, 8.0), (10.0, 10.0)]).buffer(0.25)),
        ((15.0, 2.0), shapely.Point(15.0, 2.0).buffer(0.25)),
    ],
)
def test_any_place_is_reached_around_a_wall(planner: type[Any], goal: Any, where: Any, seed: int) -> None:
    sim = two_rooms(planner, goal, seed)
    sim.run(until=40.0)
    assert where.covers(shapely.Point(sim.agents.position[0]))


def test_a_route_of_points_goes_on_after_a_resume_to_the_same_bits(tmp_path: Path) -> None:
    def build() -> tropel.Simulation:
        return two_rooms(tropel.Roadmap, (15.0, 2.0), 1, then=[(3.0, 8.0), "lobby"])

    whole, resumed = build(), build()
    whole.run(until=12.0)
    whole.save(tmp_path / "half")
    resumed.restore(tmp_path / "half")
    for sim in (whole, resumed):
        sim.run(until=70.0)
    assert np.array_equal(whole.agents.position, resumed.agents.position)
    assert shapely.box(14.0, 1.0, 17.0, 3.0).covers(shapely.Point(whole.agents.position[0]))


@pytest.mark.parametrize("planner", [tropel.Roadmap, tropel.AdaptiveRoadmap, tropel.Rooms])
def test_a_narrow_gap_is_found_whatever_the_seed(planner: type) -> None:
    """A room of 600 m² with few samples and a gap of 1 m: nodes are added until there is a path."""
    for seed in range(6):
        walls = [[(15.0, 0.0), (15.0, 9.5)], [(15.0, 10.5), (15.0, 20.0)]]
        world = tropel.World(shapely.box(0, 0, 30, 20), walls=walls, exits={"out": shapely.box(29, 2, 30, 4)})
        people = tropel.Group("a", count=3, region=shapely.box(1, 1, 8, 19), goal="out")
        sim = tropel.Simulation(world, people, planning=planner(), seed=seed)
        sim.run(until="empty", limit=60.0)
        assert len(sim.agents) == 0
