"""Spawning: nobody overlaps, everybody is inside and clear of everything, and the error says when they do not fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from body_distances import deepest_overlap
from tropel import Door, Group, Normal, Obstacle, Uniform, World
from tropel.agents.population import Population
from tropel.agents.state import AgentState
from tropel.errors import GeometryError, ParameterError, SpawnError

L_ROOM = shapely.Polygon(
    [(0, 0), (12, 0), (12, 5), (5, 5), (5, 12), (0, 12)], [[(2, 2), (4, 2), (4, 4), (2, 4)], [(7, 1), (8, 1), (7.5, 3)]]
)


def furnished() -> World:
    return World(
        L_ROOM,
        walls=[[(1, 6), (4, 9)]],
        doors={"shut": [(5, 0), (5, 2)], "open": Door([(9, 0), (9, 5)], open=True)},
        obstacles={
            "pillar": Obstacle(radius=0.7, position=(10, 2)),
            "cart": Obstacle(radius=0.5, motion=lambda t: (2.0, 11.0)),
        },
        regions={"leg": shapely.box(0, 6, 5, 12)},
    )


def spawn(world: World, *groups: Group, seed: int = 0) -> AgentState:
    population = Population(world, groups, seed=seed)
    population.spawn_all(())
    return population.state


def assert_clear(state: AgentState, world: World) -> None:
    assert deepest_overlap(state.position, state.radius) <= 0.0
    points = shapely.points(state.position)
    assert world.walkable is None or shapely.contains_properly(world.walkable, points).all()
    walls = world.segments[world.blocking > 0]
    if len(walls):
        lines = shapely.MultiLineString(walls.reshape(-1, 2, 2).tolist())
        assert (shapely.distance(points, lines) >= state.radius - 1e-9).all()
    for centre, radius in zip(world.obstacles.position, world.obstacles.radius, strict=True):
        assert (np.linalg.norm(state.position - centre, axis=1) >= radius + state.radius - 1e-9).all()


@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 150),
    radius=st.sampled_from([0.15, Uniform(0.1, 0.3), Normal(0.2, 0.05, low=0.05, high=0.35)]),
)
@settings(max_examples=25, deadline=None)
def test_nobody_overlaps_and_everybody_is_clear_of_walls_closed_doors_and_obstacles(
    seed: int, count: int, radius: Any
) -> None:
    world = furnished()
    state = spawn(world, Group("all", count=count, radius=radius), seed=seed)
    assert len(state) == count
    assert_clear(state, world)


def test_groups_leave_room_for_each_other_and_stay_in_their_regions() -> None:
    world = furnished()
    state = spawn(
        world,
        Group("a", count=40, region="leg"),
        Group("b", count=40, region=shapely.box(4, 0, 12, 5), radius=0.25),
        Group("c", count=20, region="POLYGON ((0 0, 5 0, 5 6, 0 6, 0 0))"),
        Group("d", count=10),
    )
    assert_clear(state, world)
    assert shapely.contains_xy(world.regions["leg"], *state.position[state.group == 0].T).all()
    assert shapely.contains_xy(shapely.box(4, 0, 12, 5), *state.position[state.group == 1].T).all()
    assert np.bincount(state.group).tolist() == [40, 40, 20, 10]


def test_positions_fill_the_region_evenly() -> None:
    state = spawn(World(shapely.box(0, 0, 40, 40)), Group("all", count=1600, radius=0.05))
    histogram, _, _ = np.histogram2d(state.position[:, 0], state.position[:, 1], bins=4, range=[[0, 40], [0, 40]])
    assert histogram.min() > 60
    assert histogram.max() < 140


def test_a_density_means_agents_per_square_metre_of_the_walkable_part_of_the_region() -> None:
    world = furnished()
    region = shapely.box(3, 3, 20, 20)
    state = spawn(world, Group("all", density=1.5, region=region, radius=0.1))
    assert len(state) == round(1.5 * region.intersection(L_ROOM).area)
    assert_clear(state, world)


@pytest.mark.parametrize("share", [0.7, 0.8, 0.86])
def test_a_crowd_too_dense_for_chance_is_packed_hexagonally(share: float) -> None:
    world = World(shapely.box(0, 0, 10, 10))
    radius = 0.2
    # Of the largest share that equal disks can cover, 0.9069, the walls take some.
    count = int(share * 9.6**2 / (math.pi * radius**2))
    state = spawn(world, Group("all", count=count, radius=radius))
    assert len(state) == count
    assert_clear(state, world)


def test_a_dense_group_leaves_those_already_there_alone() -> None:
    world = World(shapely.box(0, 0, 10, 10))
    first = Group("first", count=30, radius=0.35)
    state = spawn(world, first, Group("second", count=250, radius=0.2))
    alone = spawn(world, first)
    np.testing.assert_array_equal(state.position[:30], alone.position)
    assert_clear(state, world)


def test_as_many_fit_as_a_hexagonal_packing_of_the_room_has() -> None:
    # Bodies of radius 0.2 in a room of 4 by 4 m: centres in a square of side 3.6 m, ten a row, rows 0.3464 m apart.
    world = World(shapely.box(0, 0, 4, 4))
    rows = math.floor(3.6 / (0.4 * math.sqrt(0.75))) + 1
    least = (rows - 1) * 8 + 9
    assert len(spawn(world, Group("all", count=least, radius=0.2 - 1e-5))) == least


@pytest.mark.parametrize(
    ("world", "group", "says"),
    [
        (World(shapely.box(0, 0, 4, 4)), Group("crowd", count=500), r"'crowd': 500 agents .* do not fit .*16\.0 m²"),
        (World(shapely.box(0, 0, 4, 4)), Group("crowd", density=50.0), r"'crowd': 800 agents"),
        (furnished(), Group("crowd", count=300, region="leg"), r"region 'leg'"),
        (World(shapely.box(0, 0, 0.3, 9)), Group("crowd", count=1), r"about 0 do"),
        (World(shapely.box(0, 0, 4, 4)), Group("crowd", count=1, region=shapely.box(8, 8, 9, 9)), r"0\.0 m²"),
        (World.box((0, 0, 0), (2, 2, 2)), Group("crowd", count=500), r"8\.0 m³|m³"),
        (World.box((0, 0, 0), (0.3, 2, 2)), Group("crowd", count=1), r"about 0 do"),
    ],
)  # fmt: skip
def test_those_who_do_not_fit_are_refused_with_how_many_would(world: World, group: Group, says: str) -> None:
    with pytest.raises(SpawnError, match=says):
        spawn(world, group)


def test_the_number_that_would_fit_does_fit() -> None:
    world = World(shapely.box(0, 0, 4, 4))
    with pytest.raises(SpawnError) as refused:
        spawn(world, Group("crowd", count=500))
    fit = int(str(refused.value).split("about ")[1].split()[0])
    assert 60 < fit <= 16 * 0.9069 / (math.pi * 0.2**2)
    assert len(spawn(world, Group("crowd", count=fit))) == fit


def test_in_space_balls_do_not_overlap_and_stay_in_the_box() -> None:
    world = World.box(
        (0, 0, 0),
        (6, 5, 4),
        obstacles={"ball": Obstacle(radius=1.0, position=(3, 3, 2))},
        regions={"low": ((0, 0, 0), (6, 5, 1.5))},
    )
    state = spawn(world, Group("a", count=150, radius=Uniform(0.1, 0.25)), Group("b", count=60, region="low"),
                  Group("c", density=0.5, region=((0, 0, 2), (3, 5, 4))))  # fmt: skip
    assert np.bincount(state.group).tolist() == [150, 60, 15]
    assert deepest_overlap(state.position, state.radius) <= 0.0
    assert (state.position >= state.radius[:, None]).all()
    assert (state.position <= np.array([6, 5, 4]) - state.radius[:, None]).all()
    assert (np.linalg.norm(state.position - (3, 3, 2), axis=1) >= 1.0 + state.radius).all()
    assert (state.position[state.group == 1, 2] <= 1.5).all()


def test_in_space_a_dense_crowd_is_packed_like_oranges() -> None:
    state = spawn(World.box((0, 0, 0), (3, 3, 3)), Group("all", count=350, radius=0.2))
    assert len(state) == 350
    assert deepest_overlap(state.position, state.radius) <= 0.0


def test_in_open_space_the_bounds_are_the_region() -> None:
    state = spawn(World(bounds=(-5, -5, 5, 5)), Group("all", count=100))
    assert (np.abs(state.position) <= 5.0).all()
    assert deepest_overlap(state.position, state.radius) <= 0.0


def test_the_same_seed_gives_the_same_places_and_another_seed_others() -> None:
    world = furnished()
    group = Group("all", count=50)
    first, again, other = spawn(world, group, seed=1), spawn(world, group, seed=1), spawn(world, group, seed=2)
    np.testing.assert_array_equal(first.position, again.position)
    assert (first.position != other.position).all()


def test_ids_count_up_and_columns_take_what_was_given() -> None:
    world = World(shapely.box(0, 0, 20, 20), targets={"bar": (3, 3)}, exits={"out": shapely.box(0, 0, 1, 1)})
    state = spawn(
        world,
        Group("a", count=3, goal="bar", radius=[0.1, 0.2, 0.3], desired_speed=1.0, sense_radius=5.0, delay=2.0),
        Group("b", positions=[(5, 5), (6, 6)]),
    )
    assert state.id.tolist() == [0, 1, 2, 3, 4]
    assert state.group.tolist() == [0, 0, 0, 1, 1]
    assert state.radius.tolist() == [0.1, 0.2, 0.3, 0.2, 0.2]
    assert state.goal.tolist() == [1, 1, 1, -1, -1]
    assert state.stage_until.tolist() == [2.0, 2.0, 2.0, 0.0, 0.0]
    assert state.desired_speed.tolist() == [1.0, 1.0, 1.0, 1.34, 1.34]
    assert state.sense_radius.tolist() == [5.0, 5.0, 5.0, 3.0, 3.0]
    np.testing.assert_array_equal(state.position[3:], [(5, 5), (6, 6)])
    np.testing.assert_allclose(np.linalg.norm(state.heading, axis=1), 1.0)
    assert (state.velocity == 0.0).all()


@pytest.mark.parametrize("none", [{"count": 0}, {"positions": []}, {"positions": np.empty((0, 2))}])
def test_a_group_may_have_nobody_in_it(none: dict[str, Any]) -> None:
    assert len(spawn(furnished(), Group("none", **none))) == 0
    assert len(spawn(furnished())) == 0


# Positions given by the user ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("positions", "says"),
    [
        ([(1, 1), (30, 1)], r"position 1 at \[30.0, 1.0\] is outside the walkable area"),
        ([(3, 3)], "outside the walkable area"),  # in the hole
        ([(12, 1)], "outside the walkable area|on a wall"),
        ([(1, 1), (2.5, 7.5)], "position 1 .*exactly on a wall or door"),
        ([(5, 1)], "exactly on a wall or door"),
        ([(9, 1)], "exactly on a wall or door"),
        ([(10.2, 2.2)], "inside the obstacle 'pillar'"),
        ([(1, 1), (math.nan, 1), (math.inf, 1)], r"position 1 .*is not finite \(and 1 more\)"),
        ([(1, 1, 1)], r"shape \(N, 2\)"),
        ([1, 2, 3], r"shape \(N, 2\)"),
        ([[[1, 1]]], r"shape \(N, 2\)"),
    ],
)
def test_positions_that_cannot_be_are_refused_with_group_and_number(positions: Any, says: str) -> None:
    with pytest.raises(SpawnError, match=f"group 'visitors': .*(?:{says})"):
        spawn(furnished(), Group("visitors", positions=positions))


@pytest.mark.parametrize("positions", [[(1, 1), (2,)], "here", [("a", "b")], {"x": 1}])
def test_positions_that_are_no_numbers_are_refused_with_the_group(positions: Any) -> None:
    with pytest.raises(ParameterError, match="group 'visitors': positions must be numbers"):
        Group("visitors", positions=positions)


def test_positions_outside_the_box_are_refused() -> None:
    with pytest.raises(SpawnError, match="outside the box"):
        spawn(World.box((0, 0, 0), (1, 1, 1)), Group("fish", positions=[(0.5, 0.5, 1.5)]))
    with pytest.raises(SpawnError, match=r"shape \(N, 3\)"):
        spawn(World.box((0, 0, 0), (1, 1, 1)), Group("fish", positions=[(0.5, 0.5)]))


# What a group may not be --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "exactly one of count, density or positions, not nothing"),
        ({"count": 3, "density": 1.0}, "not count and density"),
        ({"count": -1}, "whole number"),
        ({"count": 2.5}, "whole number"),
        ({"count": math.nan}, "whole number"),
        ({"count": math.inf}, "whole number"),
        ({"count": "many"}, "whole number"),
        ({"density": 0.0}, "density must be positive"),
        ({"density": math.nan}, "density must be positive"),
        ({"density": "high"}, "density must be positive"),
        ({"count": 1, "raduis": 0.2}, "no parameter 'raduis'; did you mean 'radius'"),
        ({"count": 1, "speed": 1.0}, "no parameter 'speed'"),
    ],
)
def test_a_group_that_makes_no_sense_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Group("visitors", **fields)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"radius": 0.0}, "radius must be a positive number"),
        ({"radius": [0.2, -0.1, 0.2]}, "radius must be a positive number.* not -0.1"),
        ({"radius": Normal(0.1, 0.2)}, "give the distribution a 'low'"),
        ({"desired_speed": -1.0}, "desired_speed must be a number from 0"),
        ({"sense_radius": -1.0}, "sense_radius must be a number from 0"),
        ({"delay": -1.0}, "delay must be a number from 0"),
        ({"desired_speed": math.nan}, "not nan"),
        ({"goal": "east exit"}, "'visitors' has the goal 'east exit'; "),
        ({"parameters": {"patience": 1.0}}, "no parameter 'patience'"),
        ({"region": "nowhere"}, "no region 'nowhere'; "),
    ],
)
def test_a_group_whose_values_make_no_sense_is_refused(fields: dict[str, Any], says: str) -> None:
    count = 3 if isinstance(fields.get("radius"), list) else 40
    with pytest.raises(ParameterError, match=says):
        spawn(furnished(), Group("visitors", count=count, **fields))


def test_a_region_that_is_no_shape_is_refused() -> None:
    with pytest.raises(GeometryError, match="region of 'visitors'"):
        spawn(furnished(), Group("visitors", count=1, region="POLYGON ((0 0, 1 1"))
    with pytest.raises(ParameterError, match="pair of corners"):
        spawn(World.box((0, 0, 0), (1, 1, 1)), Group("fish", count=1, region=5))


def test_groups_are_known_by_their_names() -> None:
    with pytest.raises(ParameterError, match="two groups are called 'a'"):
        spawn(furnished(), Group("a", count=1), Group("a", count=1))
    with pytest.raises(ParameterError, match=r"Group\(…\) or Source\(…\)"):
        Population(furnished(), [{"count": 3}], seed=0)  # type: ignore[list-item]


def test_newcomers_face_their_goal_and_look_along_x_without_one() -> None:
    world = World(shapely.box(0, 0, 20, 20), targets={"bar": (10, 18)}, exits={"out": shapely.box(0, 0, 2, 20)})
    state = spawn(
        world,
        Group("up", positions=[(10, 2)], goal="bar"),
        Group("out", positions=[(9, 9)], goal="nearest exit"),
        Group("idle", positions=[(15, 5)], goal="none"),
    )
    np.testing.assert_allclose(state.heading, [(0, 1), (-1, 0), (1, 0)], atol=1e-12)


def test_a_large_crowd_is_numbered_by_place_and_a_small_one_as_it_falls() -> None:
    world = World(shapely.box(0, 0, 100, 100))
    apart = []
    for count in (1_500, 3_000):
        position = spawn(world, Group("a", count=count)).position
        apart.append(float(np.median(np.linalg.norm(np.diff(position, axis=0), axis=1))))
    assert apart[0] > 30.0
    assert apart[1] < 6.0


def test_numbering_by_place_keeps_bodies_of_different_size_apart() -> None:
    radius = np.random.default_rng(0).uniform(0.1, 0.6, 3_000)
    state = spawn(World(shapely.box(0, 0, 100, 100)), Group("a", count=3_000, radius=radius))
    np.testing.assert_array_equal(state.radius, radius)
    near = cKDTree(state.position).query_pairs(1.2, output_type="ndarray")
    away = np.linalg.norm(state.position[near[:, 0]] - state.position[near[:, 1]], axis=1)
    assert (away >= radius[near[:, 0]] + radius[near[:, 1]]).all()
