"""Walk: what it computes, and what people do with it alone, behind others, at doors and in counterflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from walk_reference import velocity

from body_distances import deepest_overlap
from steered_once import PLAIN, model_in_a_file, steered
from time_gap_reference import crowd
from tropel import Group, Obstacle, Simulation, Walk, World
from tropel.errors import ParameterError
from tropel.testing import check_steering
from two_streams import PEOPLE, counterflow
from two_threads import needs_two_threads
from wall_crossings import closed_lines, crossing_rows

Floats = NDArray[np.float64]

# The equations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("parameters", [{}, {"time_gap": 0.8, "look_ahead": 1.2, "worth": 0.0}])
def test_velocities_are_those_of_the_equations(seed: int, parameters: dict[str, float]) -> None:
    people = crowd(seed)
    out = steered(Walk(**parameters), world=PLAIN, dt=0.05, **people)
    told = {"time_gap": 0.45, "look_ahead": 2.0, "worth": 0.1} | parameters
    expected = np.array([velocity(i, people, **told) for i in range(len(people["position"]))])
    np.testing.assert_allclose(out.velocity, expected, atol=1e-9)


def test_behind_somebody_speed_follows_the_gap() -> None:
    for gap in (0.0, 0.1, 0.4, 1.0, 1.5):
        places = [(0.0, 0.0), (0.42 + gap, 0.0)]
        out = steered(
            Walk(worth=1.0),
            places,
            [(1.0, 0), (1.0, 0)],
            velocity=(0.5, 0.0),
            heading=(1.0, 0.0),
            desired_speed=1.34,
            dt=0.05,
        )
        along = math.hypot(*out.velocity[0])
        expected = 1.34 * math.tanh(gap / (1.34 * 0.45)) if gap else 0.134
        assert along == pytest.approx(expected, rel=1e-6)


def test_of_two_in_each_others_way_the_one_that_is_ahead_goes_first() -> None:
    # Both walk to a door on the right, at an angle; the upper person is 5 cm ahead.
    places = [(0.0, 0.25), (-0.05, -0.25)]
    directions = np.array([(1.0, -0.6), (1.0, 0.6)]) / math.hypot(1.0, 0.6)
    out = steered(Walk(worth=1.0), places, directions, heading=directions, desired_speed=1.34, dt=0.05)
    ahead, behind = np.linalg.norm(out.velocity, axis=1)
    assert ahead == pytest.approx(1.34)
    assert behind < 0.5 * ahead


def test_before_oncoming_people_one_turns_right_or_left_as_told() -> None:
    places, directions = [(0.0, 0.0), (2.5, 0.0)], [(1.0, 0.0), (-1.0, 0.0)]
    for angle, side in ((1.0, -1.0), (-1.0, 1.0)):
        out = steered(Walk(keep_right=angle), places, directions, heading=directions, dt=0.05)
        assert np.sign(out.heading[0, 1]) == side
        assert np.sign(out.heading[1, 1]) == -side
    # People that have the same goal, that walk the same way, or that have a wall between them, do not turn.
    door = steered(Walk(), places, directions, heading=directions, goal=np.zeros(2, dtype=np.int32), dt=0.05)
    np.testing.assert_allclose(door.heading, directions)
    same = steered(Walk(), places, [(1.0, 0.0)] * 2, heading=(1.0, 0.0), dt=0.05)
    np.testing.assert_allclose(same.heading, [(1.0, 0.0)] * 2)
    walled = World(bounds=(-60, -60, 60, 60), walls=[[(1.2, -50.0), (1.2, 50.0)]])
    hidden = steered(Walk(look_ahead=0.5), places, directions, world=walled, heading=directions, dt=0.05)
    np.testing.assert_allclose(hidden.heading[:, 1], 0.0, atol=1e-12)


def test_personality_changes_how_closely_quickly_and_suddenly_people_walk() -> None:
    places = [(0.0, 0.0), (0.8, 0.0)]
    kwargs: dict[str, Any] = {"heading": (1.0, 0.0), "velocity": (0.3, 0.0), "dt": 0.05}
    shy = steered(Walk(worth=1.0), places, [(1.0, 0)] * 2, courage=0.0, **kwargs).velocity[0, 0]
    bold = steered(Walk(worth=1.0), places, [(1.0, 0)] * 2, courage=1.0, **kwargs).velocity[0, 0]
    heavy = steered(Walk(), places, [(1.0, 0)] * 2, mass=0.5, **kwargs).velocity[1, 0]
    clumsy = steered(Walk(), places, [(0.0, 1.0)] * 2, agility=0.5, **kwargs).heading[1]
    assert shy < bold
    assert 0.3 < heavy < 1.34
    assert 0.5 < clumsy[0] < 1.0


def test_it_keeps_the_contract_of_steering_models() -> None:
    check_steering(Walk, dims=(2,), ids_matter=True)


@needs_two_threads
def test_the_same_bits_on_two_threads() -> None:
    def hashed(threads: int) -> str:
        world = World(shapely.box(0, 0, 60, 40), exits={"out": shapely.box(59, 15, 60, 25)})
        sim = Simulation(world, Group("p", count=1500, desired_speed=PEOPLE), seed=3, threads=threads)
        for _ in range(20):
            sim.step()
        return sim.state_hash()

    assert hashed(1) == hashed(2)


def test_a_3d_world_is_refused_with_a_word_on_what_to_do() -> None:
    with pytest.raises(ParameterError, match=r"Walk is a 2D model.*Seek"):
        Simulation(World.box((0, 0, 0), (5, 5, 5)), Group("a", count=1, goal="none"), local=Walk())


def test_scenario_files_know_it_by_name(tmp_path: Any) -> None:
    model = model_in_a_file(tmp_path, model="walk", time_gap=0.6)
    assert isinstance(model, Walk)
    assert model.parameters.time_gap == 0.6


# What people do -------------------------------------------------------------------------------------------------------


def test_fifty_lone_walkers_find_the_door() -> None:
    room = shapely.union_all([shapely.box(0, 0, 8, 5), shapely.box(8, 2, 8.4, 3)])
    world = World(room, exits={"out": shapely.box(8.0, 2.0, 8.4, 3.0)})
    starts = np.random.default_rng(0).uniform((0.3, 0.3), (7.7, 4.7), (50, 2))
    out = 0
    for start in starts:
        sim = Simulation(world, Group("one", positions=[tuple(start)]), threads=1)
        sim.run(until="empty", limit=12.0)
        out += len(sim.agents) == 0
    assert out == 50


def doorway(width: float, *, passage: float, seed: int, people: int = 60) -> Simulation:
    """A crowd in a room of 6 m, with a door or a long passage."""
    low, high = 3.0 - width / 2, 3.0 + width / 2
    end = 6.0 + max(passage, 0.2)
    area = shapely.union_all([shapely.box(0, 0, 6, 6), shapely.box(6, low, end, high), shapely.box(end, 0, end + 3, 6)])
    world = World(area, exits={"out": shapely.box(end + 2, 0, end + 3, 6)})
    crowd = Group("crowd", count=people, region=shapely.box(0.2, 0.2, 5.5, 5.8), desired_speed=PEOPLE)
    return Simulation(world, crowd, seed=seed, threads=1)


@pytest.mark.parametrize("passage", [0.0, 5.0])
@pytest.mark.parametrize("width", [0.8, 0.9, 1.0, 1.2])
def test_no_crowd_stops_for_good_in_a_door(width: float, passage: float) -> None:
    for seed in range(2):
        sim = doorway(width, passage=passage, seed=seed)
        deepest, outside, lines = -math.inf, 0, closed_lines(sim.world)
        while len(sim.agents) and sim.time < 240.0:
            before = sim.agents.position.copy(), sim.agents.id.copy()
            sim.step()
            deepest = max(deepest, deepest_overlap(sim.agents.position, sim.agents.radius))
            kept = np.isin(before[1], sim.agents.id)
            outside += len(crossing_rows(before[0][kept], sim.agents.position, lines))
        assert len(sim.agents) == 0, f"seed {seed}: {len(sim.agents)} people are stuck"
        assert deepest < 1e-6
        assert outside == 0


def test_two_streams_pass_each_other_and_the_more_there_are_the_longer_it_takes() -> None:
    for seed in range(3):
        alone, few, many = (counterflow(against, seed=seed)[0] for against in (0, 10, 50))
        assert alone < few < many < 200.0


def test_without_keeping_right_two_streams_block_each_other() -> None:
    # With it, the slowest of these runs takes about 60 s.
    blocked = [counterflow(50, seed=seed, local=Walk(keep_right=0.0), limit=100.0)[0] >= 100.0 for seed in range(3)]
    assert sum(blocked) >= 2


def test_people_walk_around_pillars_that_stand_and_that_move() -> None:
    for motion in (None, "crossing"):
        pillar = (
            Obstacle(radius=0.5, position=(10.0, 0.05))
            if motion is None
            else Obstacle(radius=0.5, motion=lambda t: (10.0, -3.0 + 0.4 * t))
        )
        world = World(
            shapely.box(0, -4, 20, 4), exits={"out": shapely.box(19, -4, 20, 4)}, obstacles={"pillar": pillar}
        )
        sim = Simulation(world, Group("p", count=20, region=shapely.box(0, -2, 5, 2)), seed=1, threads=1)
        sim.run(until="empty", limit=60.0)
        assert len(sim.agents) == 0
