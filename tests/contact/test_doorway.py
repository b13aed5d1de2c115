"""Doors that close on people standing exactly on their line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel import Door, World
from tropel.agents.state import AgentState
from tropel.contact.walls import step_off


def standing_at(position: Any, velocity: Any) -> AgentState:
    state = AgentState(2)
    state.add(1, {"position": [position], "velocity": [velocity]})
    return state


@pytest.mark.parametrize("speed", [1e-9, 0.3, 1.3, 1000.0])
@pytest.mark.parametrize("angle", [0.0, 0.5, 1.5, 2.0, 3.0, 4.5, 6.0])
def test_who_is_on_the_line_steps_back_to_the_side_it_came_from(speed: float, angle: float) -> None:
    world = World(shapely.box(0, 0, 10, 4), doors={"d": Door([(5, 0), (5, 4)], open=True)})
    velocity = speed * np.array([math.cos(angle), math.sin(angle)])
    state = standing_at((5.0, 2.0), velocity)
    step_off(state, world, "d", dt=0.05)
    came_from = -math.copysign(1.0, velocity[0])
    assert (state.position[0, 0] - 5.0) * came_from > 0.0
    assert np.linalg.norm(state.position[0] - (5.0, 2.0)) <= 1e-3 + 1e-12


@pytest.mark.parametrize("velocity", [(0.0, 0.0), (0.0, 1.0), (0.0, -1e-12)])
def test_who_stands_on_the_line_or_walks_along_it_takes_either_side(velocity: tuple[float, float]) -> None:
    world = World(shapely.box(0, 0, 10, 4), doors={"d": Door([(5, 0), (5, 4)], open=True)})
    state = standing_at((5.0, 2.0), velocity)
    step_off(state, world, "d", dt=0.05)
    assert abs(state.position[0, 0] - 5.0) == pytest.approx(1e-3)


def test_who_is_beside_the_line_by_one_ulp_stays_where_it_is() -> None:
    world = World(shapely.box(0, 0, 10, 4), doors={"d": Door([(5, 0), (5, 4)], open=True)})
    state = standing_at((math.nextafter(5.0, 6.0), 2.0), (1.0, 0.0))
    step_off(state, world, "d", dt=0.05)
    assert state.position[0, 0] == math.nextafter(5.0, 6.0)


@pytest.mark.parametrize("gap", [5e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("velocity", [(1.0, 0.0), (-1.0, 0.0), (0.0, 0.0)])
def test_nobody_steps_back_through_a_wall_beside_the_door(gap: float, velocity: tuple[float, float]) -> None:
    walls = [[(5 - gap, 0), (5 - gap, 4)], [(5 + gap, 0), (5 + gap, 4)]]
    world = World(shapely.box(0, 0, 10, 4), walls=walls, doors={"d": Door([(5, 0), (5, 4)], open=True)})
    state = standing_at((5.0, 2.0), velocity)
    step_off(state, world, "d", dt=0.05)
    assert 0.0 < abs(state.position[0, 0] - 5.0) < gap


@given(
    seed=st.integers(0, 10**6),
    corner=st.booleans(),
    opening=st.sampled_from([0.01, 0.3, 1.5, 3.0]),
    speed=st.sampled_from([0.0, 1e-6, 1.0]),
)
@settings(max_examples=100, deadline=None)
def test_who_is_on_a_door_with_a_corner_leaves_it_without_crossing_it(
    seed: int, corner: bool, opening: float, speed: float
) -> None:
    generator = np.random.default_rng(seed)
    along = generator.uniform(0, 2 * math.pi)
    tip = np.array([5.0, 5.0])
    ends = [tip + 3 * np.array([math.cos(a), math.sin(a)]) for a in (along, along + opening)]
    line = shapely.LineString([ends[0], tip, ends[1]])
    world = World(shapely.box(0, 0, 10, 10), doors={"d": Door(line, open=True)})
    place = tip if corner else np.array(shapely.get_coordinates(line)[0])
    heading = generator.uniform(0, 2 * math.pi)
    state = standing_at(place, speed * np.array([math.cos(heading), math.sin(heading)]))
    step_off(state, world, "d", dt=0.05)
    aside = state.position[0]
    assert not line.intersects(shapely.Point(aside))
    # Beyond the point itself, the way to there has nothing in common with the door.
    shared = shapely.LineString([place, aside]).intersection(line)
    assert shared.length < 1e-9
