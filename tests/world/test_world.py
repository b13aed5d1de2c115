"""The world: what it is made of, what it refuses, what events change in it, and that all of that can be put back."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Door, Obstacle, Orbit, Target, Waypoints, World
from tropel.errors import GeometryError, ParameterError

HALL = shapely.box(0, 0, 20, 10)


def furnished() -> World:
    return World(
        HALL,
        walls=[[(5, 0), (5, 4)], [(5, 6), (5, 10)]],
        doors={"middle": [(5, 4), (5, 6)], "open": Door([(8, 0), (8, 10)], open=True)},
        exits={"east": shapely.box(19, 4, 21, 6), "west": "POLYGON ((0 4, 1 4, 1 6, 0 6, 0 4))"},
        regions={"start": [[10, 1], [14, 1], [14, 9], [10, 9]]},
        obstacles={
            "pillar": Obstacle(radius=0.5, position=(12, 5)),
            "cart": Obstacle(radius=0.3, motion=Waypoints(points=((15, 1), (15, 9)), speed=1.0)),
            "ball": Obstacle(radius=0.2, motion=lambda t: (16 + t, 5.0)),
        },
        targets={
            "bar": (3, 3),
            "waiter": Target(motion=Orbit(center=(10, 5), radius=2, period=8), radius=0.4),
            "ghost": Target(motion=lambda t: (1.0 + t, 1.0), absorbs=True),
        },
    )


# What it is made of -----------------------------------------------------------------------------------------------


def test_walls_are_the_rings_of_the_area_the_walls_and_the_closed_doors() -> None:
    world = furnished()
    assert world.dim == 2
    assert len(world.segments) == 4 + 2 + 2
    closed = shapely.MultiLineString(world.segments[world.blocking > 0].reshape(-1, 2, 2).tolist())
    door = shapely.LineString([(5, 4), (5, 6)])
    expected = shapely.union_all([HALL.boundary, *world.walls, door])
    assert shapely.equals(shapely.union_all(closed), expected)


def test_a_door_given_as_a_shape_is_closed_at_first() -> None:
    world = furnished()
    assert {name: door.open for name, door in world.doors.items()} == {"middle": False, "open": True}


def test_goals_are_numbered_exits_first_and_described_by_arrays() -> None:
    world = furnished()
    assert world.goal_numbers == {"east": 0, "west": 1, "bar": 2, "waiter": 3, "ghost": 4}
    goals = world.goals()
    assert goals.is_exit.tolist() == [1, 1, 0, 0, 0]
    assert goals.usable.tolist() == [1] * 5
    assert goals.absorbs.tolist() == [1, 1, 0, 0, 1]
    np.testing.assert_allclose(goals.position[2:], [(3, 3), (12, 5), (1, 1)])
    np.testing.assert_allclose(goals.radius[2:], [0.5, 0.4, 0.5])
    for number, exit_ in enumerate(world.exits.values()):
        edges = goals.edges[goals.edge_start[number] : goals.edge_start[number + 1]]
        assert shapely.union_all(shapely.linestrings(edges.reshape(-1, 2, 2))).equals(exit_.polygon.boundary)


def test_bounds_hold_the_area_and_every_wall_and_door() -> None:
    world = World(HALL, walls=[[(5, 5), (25, 5)]], doors={"out": [(0, 0), (-3, 0)]})
    np.testing.assert_array_equal(world.bounds, [(-3, 0), (25, 10)])


def test_open_space_needs_bounds_and_nothing_else() -> None:
    world = World(bounds=(-5, -5, 5, 5))
    assert world.walkable is None
    assert len(world.segments) == 0
    assert world.wall_grid(1.0).segments.shape == (0, 4)
    np.testing.assert_array_equal(world.bounds, [(-5, -5), (5, 5)])


def test_several_areas_make_one_world() -> None:
    world = World(shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(5, 5, 6, 6)]))
    assert len(world.segments) == 8
    np.testing.assert_array_equal(world.bounds, [(0, 0), (6, 6)])


def test_a_box_is_a_world_of_three_dimensions() -> None:
    world = World.box(
        (0, 0, 0),
        (10, 8, 6),
        obstacles={"ball": Obstacle(radius=1, position=(5, 4, 3))},
        targets={"top": (5, 4, 5), "fly": Target(motion=Orbit(center=(5, 4, 2), radius=1, period=2))},
        regions={"floor": ((0, 0, 0), (10, 8, 1))},
    )
    assert world.dim == 3
    np.testing.assert_array_equal(world.bounds, [(0, 0, 0), (10, 8, 6)])
    assert world.goals().position.shape == (2, 3)
    low, high = world.region("floor")
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == [10, 8, 1]


def test_a_region_is_found_by_name_and_so_is_an_exit() -> None:
    world = furnished()
    assert world.region("start").area == 32.0
    assert world.region("east").area == 4.0
    with pytest.raises(ParameterError, match="no region 'strat'; did you mean 'start'"):
        world.region("strat")


def test_a_wall_grid_is_built_once_per_reach_and_sees_doors_change() -> None:
    world = furnished()
    assert world.wall_grid(0.9) is world.wall_grid(1.0)
    grid = world.wall_grid(1.0)
    closed = int(grid.blocking.sum())
    world.set_door("middle", open=True)
    assert int(world.wall_grid(1.0).blocking.sum()) == closed - 1
    assert grid.blocking.sum() == closed - 1


# What it refuses --------------------------------------------------------------------------------------------------

BOW_TIE = [(0, 0), (4, 4), (4, 0), (0, 4)]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"walkable": BOW_TIE}, "walkable area: Self-intersection"),
        ({"walkable": "POLYGON EMPTY"}, "walkable area: .*empty"),
        ({"walkable": [(0, 0), (1, 0), (math.nan, 1)]}, "walkable area: point 2"),
        ({}, "a world needs a walkable area, or bounds"),
        ({"bounds": (0, 0, 1)}, "bounds must be"),
        ({"bounds": (0, 0, 0, 1)}, "bounds must be"),
        ({"bounds": (1, 0, 0, 1)}, "bounds must be"),
        ({"bounds": (0, 0, math.nan, 1)}, "bounds must be"),
        ({"bounds": ("a", 0, 1, 1)}, "bounds must be"),
        ({"walkable": HALL, "walls": [[(0, 0), (1, 1)], [(1, 1), (1, 1)]]}, "wall 1: .*no length"),
        ({"walkable": HALL, "walls": [[(0, 0), (1, math.inf)]]}, "wall 0: .*finite"),
        ({"walkable": HALL, "doors": {"d": [(1, 1)]}}, "door 'd': .*2 points"),
        ({"walkable": HALL, "exits": {"x": BOW_TIE}}, "exit 'x': Self-intersection"),
        ({"walkable": HALL, "exits": {"x": shapely.box(30, 0, 31, 1)}}, r"exit 'x' lies outside .*\(30\.5, 0\.5\)"),
        ({"walkable": HALL, "exits": {"x": shapely.box(20, 0, 21, 1)}}, "exit 'x' lies outside"),
        ({"walkable": HALL, "exits": {"x": shapely.Point(1, 1)}}, "exit 'x': expected a polygon"),
        ({"walkable": HALL, "regions": {"r": shapely.box(-5, 0, -1, 1)}}, "region 'r' lies outside"),
        ({"walkable": HALL, "regions": {"r": [(0, 0), (1, 0), (1, math.nan)]}}, "region 'r': point 2"),
        ({"walkable": HALL, "targets": {"t": (30, 5)}}, r"target 't' at \(30, 5\) lies outside"),
        ({"walkable": HALL, "targets": {"t": (math.nan, 5)}}, "target 't': .*finite"),
        ({"walkable": HALL, "targets": {"t": (1, 2, 3)}}, "target 't': expected 2 coordinates"),
        ({"walkable": HALL, "targets": {"t": Target(motion=lambda t: (t,))}}, "target 't': .* 2 finite coordinates"),
        ({"walkable": HALL, "obstacles": {"o": Obstacle(radius=1, position=(1, math.nan))}}, "obstacle 'o': .*finite"),
        ({"walkable": HALL, "obstacles": {"o": Obstacle(radius=1, position=(1, 2, 3))}}, "obstacle 'o': expected 2"),
        ({"walkable": HALL, "obstacles": {"o": Obstacle(radius=1, motion=lambda t: None)}}, "obstacle 'o': .*finite"),
        ({"walkable": HALL, "exits": {"a": shapely.box(0, 0, 1, 1)}, "targets": {"a": (1, 1)}}, "goal 'a' already"),
    ],
)
def test_a_world_that_makes_no_sense_is_refused_with_the_name_of_the_shape(given: dict[str, Any], says: str) -> None:
    with pytest.raises(GeometryError, match=says):
        World(**given)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Obstacle(radius=0.0, position=(1, 1)),
        lambda: Obstacle(radius=-1.0, position=(1, 1)),
        lambda: Obstacle(radius=1.0),
        lambda: Obstacle(radius=1.0, position=(1, 1), motion=lambda t: (t, t)),
        lambda: Target(),
        lambda: Target(position=(1, 1), motion=lambda t: (t, t)),
        lambda: Target(position=(1, 1), radius=-0.1),
        lambda: Door([(1, 1), (1, 1)]),
        lambda: World.box((0, 0, 0), (1, 1, 0)),
        lambda: World.box((0,), (1,)),
        lambda: World.box((0, 0), (1, 1, 1)),
        lambda: World.box((0, 0, 0), (1, 1, math.nan)),
        lambda: World.box((0, 0, 0), (1, 1, 1), regions={"r": ((2, 2, 2), (3, 3, 3))}),
        lambda: World.box((0, 0, 0), (1, 1, 1), targets={"t": (0.5, 0.5)}),
        lambda: World.box((0, 0, 0), (1, 1, 1), targets={"t": (0.5, 0.5, 2.0)}),
        lambda: World.box((0, 0, 0), (1, 1, 1), obstacles={"o": Obstacle(radius=1, position=(0.5, 0.5))}),
    ],
)
def test_things_that_make_no_sense_are_refused(make: Any) -> None:
    with pytest.raises(GeometryError):
        make()


def test_a_target_that_comes_later_must_lie_inside_too() -> None:
    world = furnished()
    with pytest.raises(GeometryError, match=r"target 'far' at \(50, 5\) lies outside"):
        world.add_target("far", (50, 5))
    assert "far" not in world.goal_numbers
    with pytest.raises(GeometryError, match=r"target 'bar' at \(-1, 5\) lies outside"):
        world.move_target("bar", (-1, 5))
    np.testing.assert_array_equal(world.goals().position[world.goal_numbers["bar"]], (3, 3))


def test_two_things_of_one_name_are_refused() -> None:
    world = furnished()
    with pytest.raises(GeometryError, match="obstacle 'pillar' already"):
        world.obstacles.add("pillar", Obstacle(radius=1, position=(1, 1)))
    with pytest.raises(GeometryError, match="goal 'east' already"):
        world.add_target("east", (1, 1))


# What events change -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w: w.set_door("midle", open=True), "no door 'midle'; did you mean 'middle'"),
        (lambda w: w.set_exit("eastt", open=True), "no exit 'eastt'; did you mean 'east'"),
        (lambda w: w.move_target("bra", (1, 1)), "no target 'bra'; did you mean 'bar'"),
        (lambda w: w.obstacles.move("pilar", (1, 1)), "no obstacle 'pilar'; did you mean 'pillar'"),
        (lambda w: w.obstacles.remove("nothing like it"), "known: ball, cart, pillar"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(change: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        change(furnished())


def test_doors_and_exits_open_and_close() -> None:
    world = furnished()
    rows = world.door_segments("middle")
    np.testing.assert_array_equal(rows, [[5, 4, 5, 6]])
    world.set_door("middle", open=True)
    world.set_exit("east", open=False)
    assert world.doors["middle"].open
    assert world.goals().usable.tolist() == [0, 1, 1, 1, 1]
    world.set_exit("east", open=True)
    assert world.goals().usable.tolist() == [1] * 5


def test_moving_things_follow_their_motion_and_obstacles_know_their_velocity() -> None:
    world = furnished()
    world.advance(2.0, 0.5)
    rows = {name: row for row, name in enumerate(world.obstacles.names)}
    np.testing.assert_allclose(world.obstacles.position[rows["cart"]], (15, 3))
    np.testing.assert_allclose(world.obstacles.velocity[rows["cart"]], (0, 1))
    np.testing.assert_allclose(world.obstacles.position[rows["ball"]], (18, 5))
    np.testing.assert_allclose(world.obstacles.velocity[rows["ball"]], (1, 0))
    np.testing.assert_allclose(world.obstacles.velocity[rows["pillar"]], 0)
    goals = world.goals()
    np.testing.assert_allclose(goals.position[world.goal_numbers["waiter"]], (10, 7), atol=1e-12)
    np.testing.assert_allclose(goals.position[world.goal_numbers["ghost"]], (3, 1))


def test_a_thing_put_elsewhere_stays_there() -> None:
    world = furnished()
    world.move_target("waiter", (2, 2))
    world.obstacles.move("cart", (14, 4))
    world.advance(3.0, 0.1)
    np.testing.assert_array_equal(world.goals().position[world.goal_numbers["waiter"]], (2, 2))
    assert world.targets["waiter"].radius == 0.4
    row = world.obstacles.names.index("cart")
    np.testing.assert_array_equal(world.obstacles.position[row], (14, 4))
    np.testing.assert_array_equal(world.obstacles.velocity[row], (0, 0))
    assert world.obstacles.moving == ["ball"]


def test_obstacles_come_and_go_and_the_others_keep_their_rows_together() -> None:
    world = furnished()
    world.obstacles.remove("pillar")
    world.advance(1.0, 0.5)
    assert world.obstacles.names == ["cart", "ball"]
    np.testing.assert_allclose(world.obstacles.position, [(15, 2), (17, 5)])
    np.testing.assert_allclose(world.obstacles.radius, [0.3, 0.2])
    world.obstacles.add("new", Obstacle(radius=0.7, motion=lambda t: (t, t)), time=1.0, dt=0.5)
    np.testing.assert_allclose(world.obstacles.position[2], (1, 1))
    np.testing.assert_allclose(world.obstacles.velocity[2], (1, 1))


def test_the_grid_of_obstacles_follows_them() -> None:
    world = furnished()
    world.advance(0.0, 0.5)
    first = world.obstacles.grid(1.0).position.copy()
    world.advance(5.0, 0.5)
    second = world.obstacles.grid(1.0).position
    assert not np.array_equal(first, second)
    world.obstacles.remove("cart")
    assert len(world.obstacles.grid(1.0).radius) == 2


def test_an_obstacle_whose_motion_fails_is_not_left_half_added() -> None:
    world = furnished()
    with pytest.raises(GeometryError):
        world.obstacles.add("bad", Obstacle(radius=1, motion=lambda t: (t,)))
    assert world.obstacles.names == ["pillar", "cart", "ball"]
    assert len(world.obstacles.position) == 3
    world.advance(1.0, 0.5)


# Putting back -----------------------------------------------------------------------------------------------------


def changed(world: World) -> World:
    world.advance(1.5, 0.25)
    world.set_door("middle", open=True)
    world.set_door("open", open=False)
    world.set_exit("west", open=False)
    world.move_target("waiter", (2, 2))
    world.add_target("late", Target(motion=Waypoints(points=((1, 1), (2, 2)), speed=1), radius=0.1, absorbs=True))
    world.obstacles.remove("pillar")
    world.obstacles.move("cart", (14, 4))
    world.obstacles.add("rock", Obstacle(radius=0.4, position=(1, 8)), time=1.5, dt=0.25)
    world.obstacles.add("fan", Obstacle(radius=0.4, motion=Orbit(center=(9, 5), radius=1, period=3)), time=1.5, dt=0.25)
    return world


def test_state_goes_through_json_and_back_into_a_fresh_world() -> None:
    world = changed(furnished())
    stored = json.loads(json.dumps(world.state()))
    fresh = furnished()
    fresh.restore(stored, dt=0.25)
    assert fresh.state() == world.state()
    assert fresh.time == 1.5
    np.testing.assert_array_equal(fresh.blocking, world.blocking)
    for ours, theirs in zip(fresh.goals(), world.goals(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for name in ("position", "velocity", "radius"):
        np.testing.assert_array_equal(getattr(fresh.obstacles, name), getattr(world.obstacles, name))
    for either in (world, fresh):
        either.advance(4.0, 0.25)
    np.testing.assert_array_equal(fresh.goals().position, world.goals().position)
    np.testing.assert_array_equal(fresh.obstacles.position, world.obstacles.position)


def test_a_function_that_the_script_no_longer_has_is_missed_by_name() -> None:
    stored = furnished().state()
    without = World(HALL, doors={"middle": [(5, 4), (5, 6)], "open": [(8, 0), (8, 10)]},
                    exits={"east": shapely.box(19, 4, 21, 6), "west": shapely.box(0, 4, 1, 6)})  # fmt: skip
    with pytest.raises(ParameterError, match=r"'(ghost|ball)' moves by a function"):
        without.restore(stored, dt=0.1)


def test_the_digest_depends_on_the_geometry_and_the_names_and_not_on_what_has_happened() -> None:
    assert changed(furnished()).digest() == furnished().digest()
    assert World(HALL).digest() != World(shapely.box(0, 0, 20, 10.0000001)).digest()
    exit_ = shapely.box(0, 0, 1, 1)
    assert World(HALL, exits={"a": exit_}).digest() != World(HALL, exits={"b": exit_}).digest()
    assert World.box((0, 0, 0), (1, 1, 1)).digest() != World.box((0, 0, 0), (1, 1, 2)).digest()
