"""Who leaves: through which exits and targets, and who does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel import Group, Target, World
from tropel.agents.leaving import STAYS, arrived
from tropel.agents.population import Population

HALL = shapely.box(0, 0, 20, 10)
U_SHAPE = shapely.Polygon([(1, 1), (5, 1), (5, 5), (4, 5), (4, 2), (2, 2), (2, 5), (1, 5)])


def world() -> World:
    return World(
        HALL,
        exits={"left": U_SHAPE, "right": shapely.box(15, 4, 20, 6)},
        targets={
            "bar": (10, 5),
            "portal": Target(position=(10, 8), radius=0.7, absorbs=True),
            "cab": Target(motion=lambda t: (10 + t, 2.0), radius=0.5, absorbs=True),
        },
    )


def leaving(where: World, positions: object, goal: str) -> list[str | None]:
    population = Population(where, [Group("all", positions=positions, goal=goal)], seed=0)
    population.spawn_all(())
    names = {number: name for name, number in where.goal_numbers.items()} | {STAYS: None}
    goals = arrived(population.state, where)
    return [None] * len(population.state) if goals is None else [names[int(g)] for g in goals]


@given(st.lists(st.tuples(st.floats(0.1, 19.9), st.floats(0.1, 9.9)), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_whoever_is_in_the_polygon_of_an_open_exit_leaves(positions: list[tuple[float, float]]) -> None:
    scene = world()
    found = leaving(scene, positions, "nearest exit")
    for place, name in zip(positions, found, strict=True):
        inside = [n for n, e in scene.exits.items() if e.polygon.covers(shapely.Point(place))]
        assert name == (inside[0] if inside else None)


def test_only_ones_own_exit_takes_one_out() -> None:
    inside_left, inside_right = (1.5, 3.0), (16.0, 5.0)
    assert leaving(world(), [inside_left, inside_right], "left") == ["left", None]
    assert leaving(world(), [inside_left, inside_right], "nearest exit") == ["left", "right"]
    assert leaving(world(), [inside_left, inside_right], "bar") == [None, None]
    assert leaving(world(), [inside_left, inside_right], "none") == [None, None]
    assert leaving(world(), [inside_left, inside_right], "nearest target") == [None, None]


def test_a_closed_exit_takes_nobody() -> None:
    scene = world()
    scene.set_exit("right", open=False)
    assert leaving(scene, [(1.5, 3.0), (16.0, 5.0)], "nearest exit") == ["left", None]
    assert leaving(scene, [(16.0, 5.0)], "right") == [None]
    scene.set_exit("right", open=True)
    assert leaving(scene, [(16.0, 5.0)], "right") == ["right"]


def test_a_target_that_absorbs_takes_those_who_want_it_within_its_radius() -> None:
    places = [(10.0, 8.0), (10.7, 8.0), (10.0 + math.nextafter(0.7, 1.0) + 1e-12, 8.0), (10.0, 5.0)]
    assert leaving(world(), places, "portal") == ["portal", "portal", None, None]
    assert leaving(world(), places, "nearest target") == ["portal", "portal", None, None]
    assert leaving(world(), places, "nearest exit") == [None] * 4
    assert leaving(world(), places, "bar") == [None] * 4


def test_a_moving_target_takes_people_where_it_is_now() -> None:
    scene = world()
    assert leaving(scene, [(10.0, 2.0), (13.0, 2.0)], "cab") == ["cab", None]
    scene.advance(3.0, 0.1)
    assert leaving(scene, [(10.0, 2.0), (13.0, 2.0)], "cab") == [None, "cab"]


def test_without_agents_or_goals_nobody_leaves() -> None:
    assert leaving(world(), [], "nearest exit") == []
    assert leaving(World(HALL), [(1, 1)], "nearest exit") == [None]


def test_in_a_box_absorbing_targets_are_balls() -> None:
    scene = World.box((0, 0, 0), (10, 10, 10), targets={"gate": Target(position=(5, 5, 5), radius=1, absorbs=True)})
    assert leaving(scene, [(5, 5, 5.9), (5, 5, 6.1), (5.7, 5.7, 5.7)], "gate") == ["gate", None, None]
    assert leaving(scene, [(5.5, 5.5, 5.5)], "nearest exit") == ["gate"]  # a world without exits: targets serve


@pytest.mark.parametrize("count", [10, 5000])
def test_those_who_leave_are_remembered_with_time_and_goal_and_the_others_keep_their_order(count: int) -> None:
    generator = np.random.default_rng(1)
    positions = generator.uniform((0.1, 0.1), (19.9, 9.9), (count, 2))
    scene = world()
    population = Population(scene, [Group("all", positions=positions)], seed=0)
    population.spawn_all(())
    goals = arrived(population.state, scene)
    assert goals is not None
    population.let_out(goals, 12.5)
    left = population.departures()
    assert left["id"].tolist() == np.flatnonzero(goals != STAYS).tolist()
    assert (left["time"] == 12.5).all()
    assert left["goal"].tolist() == goals[goals != STAYS].tolist()
    assert population.state.id.tolist() == np.flatnonzero(goals == STAYS).tolist()
    np.testing.assert_array_equal(population.state.position, positions[goals == STAYS])
