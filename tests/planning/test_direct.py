"""Direct: unit vectors to the goal, against shapely's nearest points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel import Direct, Group, Orbit, Target, World
from tropel.agents.population import Population
from tropel.agents.state import AgentState
from tropel.contracts import Guidance, Moment

Floats = NDArray[np.float64]

HALL = shapely.box(0, 0, 30, 20)
EXITS = {
    "door": shapely.box(28, 8, 31, 12),
    "slit": shapely.box(0, 0, 0.2, 6),
    "tee": shapely.Polygon([(10, 17), (20, 17), (20, 20), (10, 20)], [[(14, 18), (16, 18), (16, 19), (14, 19)]]),
}
TARGETS: dict[str, Any] = {
    "bar": (5.0, 10.0),
    "stage": Target(position=(20.0, 5.0), radius=2.0),
    "train": Target(motion=Orbit(center=(15, 10), radius=4, period=10)),
}


def inner_part(polygon: shapely.Polygon) -> shapely.Polygon:
    """What people aim at: the exit without a border of 40 cm, or of half of that again and again where it is narrow."""
    border = 0.4
    while polygon.buffer(-border).is_empty:
        border /= 2
    return polygon.buffer(-border)


def crowd(world: World, positions: Any, goal: str) -> AgentState:
    population = Population(world, [Group("all", positions=positions, goal=goal)], seed=0)
    population.spawn_all(())
    return population.state


def directions(world: World, positions: Any, goal: str, members: NDArray[np.int64] | None = None) -> Floats:
    state = crowd(world, positions, goal)
    moment, out = Moment.of(state, world, members=members), Guidance(directions=np.zeros_like(state.position))
    planner = Direct()
    planner.prepare(moment)
    planner.direct(moment, out)
    return out.directions


def unit(vector: Any) -> Floats:
    vector = np.asarray(vector, dtype=np.float64)
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector


places = st.lists(st.tuples(st.floats(0.1, 29.9), st.floats(0.1, 19.9)), min_size=1, max_size=30)


@given(places, st.sampled_from(["nearest exit", "door", "slit", "tee"]), st.sampled_from([None, "door", "tee"]))
@settings(max_examples=80, deadline=None)
def test_people_go_to_the_nearest_point_of_their_exit(
    positions: list[tuple[float, float]], goal: str, closed: str | None
) -> None:
    world = World(HALL, exits=EXITS, targets=TARGETS)
    if closed is not None:
        world.set_exit(closed, open=False)
    for place, direction in zip(positions, directions(world, positions, goal), strict=True):
        here = shapely.Point(place)
        usable = [goal] if goal in EXITS else [name for name in EXITS if name != closed]
        if any(EXITS[name].covers(here) for name in usable):
            assert (direction == 0.0).all()
            continue
        aims = [shapely.shortest_line(here, inner_part(EXITS[name] & HALL).boundary) for name in usable]
        lengths = sorted(line.length for line in aims)
        best = min(aims, key=lambda line: line.length)
        assert np.linalg.norm(direction) == pytest.approx(1.0)
        if len(lengths) == 1 or lengths[1] - lengths[0] > 1e-6:
            way = np.subtract(best.coords[1], best.coords[0])
            # Where two points of one exit are equally near, either will do.
            along = shapely.LineString([place, np.add(place, direction * (best.length + 1e-6))])
            assert (
                direction == pytest.approx(unit(way), abs=1e-6)
                or along.distance(
                    inner_part(
                        EXITS[min(usable, key=lambda n: here.distance(inner_part(EXITS[n] & HALL).boundary))] & HALL
                    )
                )
                < 1e-5
            )


def test_whoever_aims_at_an_exit_steps_into_it() -> None:
    generator = np.random.default_rng(0)
    world = World(HALL, exits=EXITS)
    positions = generator.uniform((0.3, 0.3), (29.7, 16.9), (300, 2))
    for place, direction in zip(positions, directions(world, positions, "nearest exit"), strict=True):
        ray = shapely.LineString([place, place + 60 * direction])
        assert any(ray.intersects(polygon) for polygon in EXITS.values())


@given(places, st.sampled_from(["bar", "stage", "train", "nearest target"]), st.floats(0, 30))
@settings(max_examples=80, deadline=None)
def test_people_go_to_their_target_where_it_is_now_and_stop_within_its_radius(
    positions: list[tuple[float, float]], goal: str, time: float
) -> None:
    world = World(HALL, exits=EXITS, targets=TARGETS)
    world.advance(time, 0.05)
    turn = 2 * math.pi * time / 10
    where = {
        "bar": np.array([5.0, 10.0]),
        "stage": np.array([20.0, 5.0]),
        "train": np.array([15 + 4 * math.cos(turn), 10 + 4 * math.sin(turn)]),
    }
    radius = {"bar": 0.5, "stage": 2.0, "train": 0.5}
    for place, direction in zip(positions, directions(world, positions, goal), strict=True):
        away = {name: float(np.linalg.norm(point - place)) for name, point in where.items()}
        name = goal if goal in where else min(away, key=away.__getitem__)
        if sorted(away.values())[1] - min(away.values()) < 1e-9 and goal not in where:
            continue
        if abs(away[name] - radius[name]) < 1e-9:
            continue
        expected = np.zeros(2) if away[name] <= radius[name] else unit(where[name] - place)
        np.testing.assert_allclose(direction, expected, atol=1e-9)


def test_an_assigned_exit_is_kept_when_it_closes_and_nearest_means_another() -> None:
    world = World(HALL, exits=EXITS)
    world.set_exit("door", open=False)
    towards_door, elsewhere = (directions(world, [(26, 10)], goal)[0] for goal in ("door", "nearest exit"))
    assert towards_door[0] > 0.99
    assert elsewhere[0] < 0.0
    for name in EXITS:
        world.set_exit(name, open=False)
    assert (directions(world, [(26, 10)], "nearest exit") == 0.0).all()


@pytest.mark.parametrize("goal", ["none", "nearest exit", "nearest target"])
def test_who_has_no_goal_stands(goal: str) -> None:
    assert (directions(World(HALL), [(3, 3)], goal) == 0.0).all()


def test_without_exits_the_nearest_exit_is_the_nearest_target() -> None:
    world = World(HALL, targets={"bar": (5, 10)})
    np.testing.assert_allclose(directions(world, [(5, 3)], "nearest exit"), [(0, 1)])


def test_exactly_on_a_target_of_no_radius_one_stands() -> None:
    world = World(HALL, targets={"dot": Target(position=(5, 10), radius=0.0)})
    out = directions(world, [(5, 10), (5, 10 + 1e-12)], "dot")
    np.testing.assert_allclose(out, [(0, 0), (0, -1)])


def test_only_the_members_rows_are_written() -> None:
    world = World(HALL, targets={"bar": (5, 10)})
    state = crowd(world, [(1, 1), (2, 2), (3, 3)], "bar")
    moment = Moment.of(state, world, members=np.array([1], dtype=np.int64))
    out = Guidance(directions=np.full((3, 2), 7.0))
    planner = Direct()
    planner.prepare(moment)
    planner.direct(moment, out)
    assert (out.directions[[0, 2]] == 7.0).all()
    assert np.linalg.norm(out.directions[1]) == pytest.approx(1.0)


def test_in_space_targets_are_approached_along_the_straight_line() -> None:
    generator = np.random.default_rng(3)
    world = World.box((0, 0, 0), (10, 10, 10), targets={"a": (2, 2, 8), "b": Target(motion=lambda t: (8, 8, 2 + t))})
    world.advance(1.5, 0.1)
    points = generator.uniform(0.5, 9.5, (200, 3))
    goals = np.array([(2, 2, 8), (8, 8, 3.5)])
    away = np.linalg.norm(points[:, None] - goals, axis=2)
    expected = goals[away.argmin(axis=1)] - points
    expected /= np.linalg.norm(expected, axis=1)[:, None]
    expected[away.min(axis=1) <= 0.5] = 0.0
    np.testing.assert_allclose(directions(world, points, "nearest target"), expected, atol=1e-12)


@pytest.mark.parametrize("angle", [0.3, 1.7, 4.0])
def test_a_rotated_world_has_rotated_directions(angle: float) -> None:
    generator = np.random.default_rng(2)
    rotation = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    positions = generator.uniform((0.5, 0.5), (29.5, 16.5), (100, 2))

    def turned(shape: shapely.Geometry) -> shapely.Geometry:
        return shapely.transform(shape, lambda xy: xy @ rotation.T)

    straight = directions(World(HALL, exits={"d": EXITS["door"]}), positions, "d")
    rotated = directions(World(turned(HALL), exits={"d": turned(EXITS["door"])}), positions @ rotation.T, "d")
    np.testing.assert_allclose(rotated, straight @ rotation.T, atol=1e-9)
