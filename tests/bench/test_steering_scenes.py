"""The scenes of the steering benchmark, and the shortest ways through them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely

from tropel.bench.steering_scenes import (
    SCENES,
    SENSE_RADII,
    buildings,
    circle_swap,
    four_blocks,
    narrow_door,
    shortest_ways,
    two_way_corridor,
)
from tropel.local.seek import Seek


def test_the_full_scenes_have_as_many_agents_as_they_should() -> None:
    sizes = {name: len(make(Seek()).sim.agents) for name, make in SCENES.items()}
    assert sizes == {"circle": 250, "blocks": 100, "corridor": 300, "door": 200}


@pytest.mark.parametrize("name", SCENES)
def test_nobody_has_arrived_at_the_start_and_nobody_touches(name: str) -> None:
    scene = SCENES[name](Seek())
    assert not scene.arrived().any()
    agents = scene.sim.agents
    apart = np.linalg.norm(agents.position[:, None] - agents.position, axis=2)
    np.fill_diagonal(apart, math.inf)
    assert (apart > agents.radius[:, None] + agents.radius).all()
    np.testing.assert_allclose(agents.sense_radius, SENSE_RADII * agents.radius)


def test_on_the_circle_everybody_goes_to_the_opposite_place() -> None:
    scene = circle_swap(Seek(), agents=7, ring=20.0)
    goals = scene.sim.world.goals().position[scene.sim.agents.goal]
    np.testing.assert_allclose(goals, -scene.sim.agents.position)
    np.testing.assert_allclose(scene.shortest, 40.0 - 1.5)


def test_buildings_stand_in_the_way_of_every_block() -> None:
    scene = four_blocks(Seek())
    assert scene.goals is not None
    solid = shapely.union_all(buildings())
    straight = shapely.linestrings(np.stack([scene.sim.agents.position, scene.goals], axis=1))
    blocked = shapely.crosses(straight, solid)
    assert blocked.reshape(4, 25).any(axis=1).all()
    assert blocked.mean() > 0.5
    detour = scene.shortest - (shapely.length(straight) - scene.within)
    assert (detour[blocked] > 0.0).all()
    assert (detour > -1e-9).all()
    assert len(scene.sim.world.segments) == 16


def test_the_way_through_a_corridor_or_a_door_is_at_least_the_straight_one() -> None:
    corridor = two_way_corridor(Seek(), people=20)
    ends = [corridor.sim.world.exits[name].polygon for name in ("east", "west")]
    places = shapely.points(corridor.sim.agents.position)
    straight = [shapely.distance(p, ends[group]) for p, group in zip(places, corridor.sim.agents.group, strict=True)]
    np.testing.assert_allclose(corridor.shortest, straight)
    door = narrow_door(Seek(), people=20)
    straight = shapely.distance(shapely.points(door.sim.agents.position), door.sim.world.exits["out"].polygon)
    assert (door.shortest >= straight).all()
    assert (door.shortest < straight + 0.5).all()


def test_a_free_way_is_straight() -> None:
    lengths = shortest_ways(np.array([[-5.0, 3.0]]), (5.0, 3.0), [shapely.box(-1, -1, 1, 1)], clearance=1.0)
    np.testing.assert_allclose(lengths, 10.0)


def test_a_way_round_a_square_passes_its_corners() -> None:
    lengths = shortest_ways(
        np.array([[-3.0, 0.0], [-1.0, 1.5]]), (3.0, 0.0), [shapely.box(-1, -1, 1, 1)], clearance=0.0
    )
    np.testing.assert_allclose(lengths, [2.0 * math.hypot(2.0, 1.0) + 2.0, math.hypot(2.0, 0.5) + math.hypot(2.0, 1.0)])


def test_a_way_round_a_post_is_two_tangents_and_an_arc() -> None:
    post, clearance, away = shapely.box(-1e-6, -1e-6, 1e-6, 1e-6), 2.0, 5.0
    lengths = shortest_ways(np.array([[-away, 0.0]]), (away, 0.0), [post], clearance=clearance)
    arc = clearance * (math.pi - 2.0 * math.acos(clearance / away))
    true = 2.0 * math.sqrt(away**2 - clearance**2) + arc
    assert true * 0.998 < lengths[0] <= true + 1e-5
