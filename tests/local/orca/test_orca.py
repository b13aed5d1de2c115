"""ORCA against brute force from the paper's definitions, and in crowds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from orca_reference import best_velocity, disc_line, wall_line
from record_rvo2 import RECORDED, SEEDS, rvo2_crowd
from scipy.spatial.distance import pdist

from steered_once import PLAIN, model_in_a_file, moved, steered, turning
from tropel import ORCA, Group, Obstacle, Planner, Simulation, Target, Waypoints, World
from tropel.bench import orca
from tropel.errors import ParameterError
from tropel.testing import check_steering
from two_threads import needs_two_threads

Floats = NDArray[np.float64]

WALLS = np.array([[(2.0, 2.0), (2.0, 5.0)], [(4.0, 6.0), (7.0, 6.5)]])


def furnished(turn: Floats | None = None, shift: Any = (0.0, 0.0)) -> World:
    """Two walls and a moving pillar, all turned and shifted."""
    turn = np.eye(2) if turn is None else turn
    places = [tuple(turn @ place + shift) for place in np.array([(5.0, 3.0), (7.0, 3.5)])]
    pillar = Obstacle(radius=0.6, motion=Waypoints(points=places, speed=0.8))
    return World(bounds=(-60, -60, 60, 60), walls=list(WALLS @ turn.T + np.array(shift)), obstacles={"pillar": pillar})


def crowd(seed: int, count: int = 60, side: float = 8.0) -> dict[str, Floats]:
    """People of all kinds, some of whom overlap."""
    draws = np.random.default_rng(seed)
    angle = draws.uniform(0, 2 * math.pi, count)
    pace = draws.uniform(0.0, 1.2, count)
    return {
        "position": draws.uniform(0.0, side, (count, 2)),
        "directions": np.minimum(pace, 1.0)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]),
        "velocity": draws.normal(0.0, 0.8, (count, 2)),
        "desired_speed": draws.uniform(0.5, 2.0, count),
        "radius": draws.uniform(0.1, 0.3, count),
        "sense_radius": draws.uniform(1.0, 4.0, count),
    }


def reference(people: dict[str, Floats], world: World, *, dt: float, many: int) -> tuple[Floats, int]:
    """Velocities agent by agent, and for how many of them no velocity is in all half-planes."""
    horizon, wall_horizon, limit = 2.0, 0.5, 1.5
    lines = [shapely.LineString(segment.reshape(2, 2)) for segment in world.segments]
    discs = world.obstacles
    found, impossible = np.zeros_like(people["position"]), 0
    for i, here in enumerate(people["position"]):
        own, radius, sense = people["velocity"][i], people["radius"][i], people["sense_radius"][i]
        points = [np.array(line.interpolate(line.project(shapely.Point(here))).coords[0]) - here for line in lines]
        walls = [wall_line(q, radius, wall_horizon) for q in points if np.linalg.norm(q) <= sense]
        others = [
            disc_line(place - here, own, velocity, radius + size, horizon=wall_horizon, dt=dt, share=1.0)
            for place, velocity, size in zip(discs.position, discs.velocity, discs.radius, strict=True)
            if np.linalg.norm(place - here) <= sense + size
        ]
        away = np.linalg.norm(people["position"] - here, axis=1)
        for j in np.lexsort((np.arange(len(away)), away))[1 : many + 1]:
            if away[j] <= sense:
                offset, contact = people["position"][j] - here, radius + people["radius"][j]
                others.append(disc_line(offset, own, people["velocity"][j], contact, horizon=horizon, dt=dt, share=0.5))
        wanted = people["desired_speed"][i] * people["directions"][i]
        found[i], broken = best_velocity(walls, others, limit * people["desired_speed"][i], wanted)
        impossible += broken > 0.0
    return found, impossible


# The definitions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("world", [PLAIN, furnished()], ids=["in the open", "among walls and a pillar"])
@pytest.mark.parametrize("many", [3, 10])
def test_velocities_are_those_of_brute_force(seed: int, world: World, many: int) -> None:
    people = crowd(seed)
    expected, impossible = reference(people, world, dt=0.1, many=many)
    out = steered(ORCA(max_neighbours=many), **people, world=world)
    np.testing.assert_allclose(out.velocity, expected, atol=1e-6)
    assert 3 <= impossible <= 57, "both kinds of problems must be among them"
    np.testing.assert_allclose(np.linalg.norm(out.heading, axis=1), 1.0)


def test_a_shorter_direction_means_slower_and_none_means_standing() -> None:
    directions = [(0.5, 0.0), (0, 0), (3.0, 0.0)]
    out = steered(ORCA(), [(0, 0), (10, 0), (20, 0)], directions, desired_speed=2.0, heading=(0, 1))
    np.testing.assert_allclose(out.velocity, [(1, 0), (0, 0), (2, 0)])
    np.testing.assert_allclose(out.heading, [(1, 0), (0, 1), (1, 0)])


FACING: dict[str, Any] = {
    "position": [(0, 0), (2, 0)],
    "directions": [(1, 0), (-1, 0)],
    "desired_speed": 1.0,
    "radius": 0.2,
}


@pytest.mark.parametrize("horizon", [0.5, 1.0, 4.0])
def test_two_who_begin_to_walk_towards_each_other_take_half_of_the_gap_each(horizon: float) -> None:
    pace = min(1.0, 0.5 * 1.6 / horizon)
    out = steered(ORCA(time_horizon=horizon), **FACING)
    np.testing.assert_allclose(out.velocity, [(pace, 0), (-pace, 0)], atol=1e-12)


@pytest.mark.parametrize("horizon", [1.0, 4.0])
def test_two_who_meet_exactly_head_on_both_turn_right_onto_the_tangent(horizon: float) -> None:
    out = steered(ORCA(time_horizon=horizon), **FACING, velocity=[(1.0, 0), (-1.0, 0)])
    turn = math.asin(0.4 / 2.0)
    expected = np.array([math.cos(turn) ** 2, -math.cos(turn) * math.sin(turn)])
    np.testing.assert_allclose(out.velocity, [expected, -expected], atol=1e-12)


def test_a_horizon_below_the_time_step_does_not_lead_into_a_wall() -> None:
    world = World(bounds=(-9, -9, 9, 9), walls=[[(-5, 0), (5, 0)]])
    model = ORCA(time_horizon_obstacles=0.01)
    out = steered(model, [(0, 0.25)], [(0, -1)], world=world, desired_speed=1.0, radius=0.2, dt=0.2)
    assert out.velocity[0, 1] == pytest.approx(-0.05 / 0.2)


def test_agents_may_sense_without_limit() -> None:
    people = crowd(4)
    wide, all_of_it = (steered(ORCA(), **(people | {"sense_radius": reach})) for reach in (100.0, math.inf))
    np.testing.assert_array_equal(wide.velocity, all_of_it.velocity)


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.3])
def test_nobody_approaches_a_wall_faster_than_the_gap_over_the_horizon(gap: float) -> None:
    world = World(bounds=(-9, -9, 9, 9), walls=[[(-5, 0), (5, 0)]])
    out = steered(ORCA(), [(0, 0.2 + gap)], [(0.6, -0.8)], world=world, desired_speed=1.0, radius=0.2)
    np.testing.assert_allclose(out.velocity[0], (0.6, -min(0.8, gap / 0.5)), atol=1e-12)


def test_of_equally_near_neighbours_those_with_the_lower_ids_count() -> None:
    around = [(math.cos(a), math.sin(a)) for a in (0.0, math.pi / 2, math.pi, 3 * math.pi / 2)]
    people: dict[str, Any] = {"directions": [(1, 0), *[(0, 0)] * 4], "radius": 0.4, "desired_speed": 1.0}
    two = steered(ORCA(max_neighbours=2), [(0, 0), *around], **people).velocity[0]
    alone = steered(ORCA(), [(0, 0), *around[:2]], **{**people, "directions": [(1, 0), (0, 0), (0, 0)]}).velocity[0]
    np.testing.assert_array_equal(two, alone)
    moved = steered(ORCA(max_neighbours=2), [(0, 0), *around[::-1]], **people).velocity[0]
    assert moved[0] > two[0] + 0.1


def test_dense_crowds_have_the_nearest_neighbours_too() -> None:
    # The search begins in a small disc; a cluster beside an empty half makes its guess wrong both ways.
    draws = np.random.default_rng(5)
    places = np.vstack([draws.normal(0.0, 0.7, (150, 2)), draws.uniform(-4.0, 4.0, (80, 2)), [(40.0, 40.0)]])
    people = crowd(6, count=len(places)) | {"position": places, "sense_radius": np.full(len(places), 4.0)}
    expected, _ = reference(people, PLAIN, dt=0.1, many=10)
    np.testing.assert_allclose(steered(ORCA(), **people).velocity, expected, atol=1e-6)


@given(angle=st.floats(0, 2 * math.pi), shift=st.tuples(st.floats(-20, 20), st.floats(-20, 20)), mirror=st.booleans())
@settings(max_examples=20)
def test_a_turned_moved_or_mirrored_crowd_does_the_same(angle: float, shift: tuple[float, float], mirror: bool) -> None:
    people, turn = crowd(3), turning(angle, mirror=mirror)
    here = steered(ORCA(), **people, world=furnished())
    there = steered(ORCA(), **moved(people, turn, shift), world=furnished(turn, shift))
    np.testing.assert_allclose(there.velocity, here.velocity @ turn.T, atol=1e-6)


# Walking --------------------------------------------------------------------------------------------------------------


class ToOwnGoals(Planner):
    """Straight to a goal of one's own, slower in the last metre."""

    def __init__(self, goals: Floats) -> None:
        self.goals = goals

    def direct(self, moment: Any, out: Any) -> None:
        way = self.goals[moment.state.id[moment.members]] - moment.state.position[moment.members]
        out.directions[moment.members] = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1.0)


def walk(start: Floats, goals: Floats, *, until: float, world: World = PLAIN, **fields: Any) -> tuple[Floats, float]:
    """How far everybody is from the goal in the end, and the smallest distance of two centres at any step."""
    group = Group("a", positions=start, goal="none", **{"radius": 0.2, "desired_speed": 1.3, **fields})
    sim = Simulation(world, group, planning=ToOwnGoals(goals), local=ORCA(), dt=0.1, threads=1)
    nearest = math.inf
    while sim.time < until:
        sim.step()
        nearest = min(nearest, float(pdist(sim.agents.position).min()))
    return np.linalg.norm(sim.agents.position - goals, axis=1), nearest


def test_two_who_meet_pass_without_touching() -> None:
    draws = np.random.default_rng(0)
    passed = 0
    for _ in range(20):
        start = np.array([(-5.0, draws.uniform(-0.2, 0.2)), (5.0, draws.uniform(-0.2, 0.2))])
        left, nearest = walk(start, -start, until=14.0)
        assert nearest > 0.4 - 1e-6
        passed += bool((left < 0.3).all())
    assert passed >= 19


def test_everybody_on_a_circle_gets_to_the_other_side() -> None:
    arrived = []
    for seed in range(5):
        draws = np.random.default_rng(seed)
        bearing = 2.0 * math.pi * np.arange(30) / 30
        start = 8.0 * np.column_stack([np.cos(bearing), np.sin(bearing)]) + draws.normal(0.0, 0.02, (30, 2))
        left, nearest = walk(start, -start, until=45.0)
        # Bodies overlap in the middle, in RVO2 as deep as here, but nobody walks through another.
        assert nearest > 0.2
        arrived.append(float((left < 0.3).mean()))
    assert np.mean(arrived) >= 0.98, arrived


@pytest.mark.parametrize("seed", range(3))
def test_bodies_in_a_corridor_do_not_reach_into_walls(seed: int) -> None:
    corridor = shapely.box(0, 0, 20, 2.5)
    world = World(corridor, targets={"east": Target(position=(19.5, 1.25)), "west": Target(position=(0.5, 1.25))})
    groups = [
        Group("a", count=14, goal="east", region=shapely.box(0.3, 0.3, 6, 2.2)),
        Group("b", count=14, goal="west", region=shapely.box(14, 0.3, 19.7, 2.2)),
    ]
    sim = Simulation(world, groups, local=ORCA(), dt=0.1, seed=seed, threads=1)
    radius = sim.agents.radius.copy()
    for _ in range(200):
        sim.step()
        assert (shapely.distance(shapely.points(sim.agents.position), corridor.exterior) > radius - 1e-6).all()
        assert corridor.contains(shapely.MultiPoint(sim.agents.position))


def test_standing_people_step_out_of_the_way_of_an_obstacle() -> None:
    roller = Obstacle(radius=0.8, motion=Waypoints(points=[(-8, 0.1), (8, 0.1)], speed=0.7))
    world = World(bounds=(-10, -10, 10, 10), obstacles={"roller": roller})
    sim = Simulation(world, Group("a", positions=[(0, 0), (3, 0.3)], goal="none"), local=ORCA(), dt=0.05)
    for _ in range(400):
        sim.step()
        gap = np.linalg.norm(sim.agents.position - sim.world.obstacles.position[0], axis=1) - 0.8 - sim.agents.radius
        assert gap.min() > -1e-6
    assert (np.abs(sim.agents.position[:, 1] - 0.1) > 0.9).all()


def test_solid_bodies_are_off_by_default_and_keep_bodies_apart_when_on() -> None:
    assert not ORCA().declares.solid_bodies
    nearest = {}
    for solid in (False, True):
        people = Group("a", count=60, region=shapely.box(-4, -4, 4, 4), goal="t")
        world = World(bounds=(-9, -9, 9, 9), targets={"t": (0, 0)})
        sim = Simulation(world, people, local=ORCA(solid_bodies=solid), dt=0.3, seed=1, threads=1)
        nearest[solid] = math.inf
        for _ in range(40):
            sim.step()
            nearest[solid] = min(nearest[solid], float(pdist(sim.agents.position).min()))
    assert nearest[True] > 0.4 - 1e-6
    assert nearest[False] < 0.39


def test_agents_that_have_not_started_stand_still() -> None:
    group = Group("late", positions=[(0, 0)], goal="t", delay=5.0)
    world = World(bounds=(-9, -9, 9, 9), targets={"t": (-8, 0)})
    sim = Simulation(world, [group, Group("a", positions=[(3, 0.1)], goal="t")], local=ORCA(), dt=0.1)
    sim.run(until=4.0)
    np.testing.assert_array_equal(sim.agents.position[0], (0, 0))
    assert sim.agents.position[1, 0] < 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crowd_moves_as_in_rvo2(seed: int) -> None:
    theirs = np.array(json.loads(RECORDED.read_text(encoding="utf-8"))["velocities"][str(seed)])
    apart = np.linalg.norm(steered(ORCA(), **rvo2_crowd(seed)).velocity - theirs, axis=1)
    assert np.median(apart) < 1e-6
    assert (apart < 1e-3).mean() > 0.97


def test_a_circle_moves_as_in_rvo2() -> None:
    theirs = np.array(json.loads(RECORDED.read_text(encoding="utf-8"))["circle"])
    ours = orca.simulation(orca.circle(60))
    for _ in range(20):
        ours.step()
    np.testing.assert_allclose(theirs, ours.agents.position, atol=0.05)


# The promises ---------------------------------------------------------------------------------------------------------


@needs_two_threads
def test_one_and_two_threads_give_the_same_bits() -> None:
    hashes = set()
    for threads in (1, 2):
        world = World(shapely.box(0, 0, 60, 60), targets={"t": (50, 30)})
        sim = Simulation(world, Group("a", count=2_500, goal="t"), local=ORCA(), dt=0.1, seed=2, threads=threads)
        for _ in range(10):
            sim.step()
        hashes.add(sim.state_hash())
    assert len(hashes) == 1


def test_it_keeps_the_contract_of_steering_models() -> None:
    check_steering(ORCA, dims=(2,), ids_matter=True)
    check_steering(lambda: ORCA(solid_bodies=True, max_neighbours=3), dims=(2,), ids_matter=True)


@pytest.mark.parametrize("radius", [0.0, 0.2, 5.0])
def test_on_top_of_each_other_in_a_wall_or_an_obstacle_everything_stays_finite(radius: float) -> None:
    world = World(
        bounds=(-9, -9, 9, 9), walls=[[(0, -2), (0, 2)]], obstacles={"p": Obstacle(radius=1.0, position=(3, 0))}
    )
    places = [(0, 0), (0, 0), (0, 0), (3, 0), (3.1, 0), (1e-200, 0), (1e-9, 1e-9)]
    out = steered(ORCA(), places, [(1, 0)] * 4 + [(0, 1)] * 3, world=world, radius=radius)
    assert np.isfinite(out.velocity).all()
    assert (np.linalg.norm(out.velocity, axis=1) <= 1.5 * 1.34 * (1 + 1e-9)).all()


def test_without_neighbours_to_look_at_everybody_goes_as_planned() -> None:
    people = crowd(1)
    out = steered(ORCA(max_neighbours=0), **people)
    np.testing.assert_allclose(out.velocity, people["desired_speed"][:, None] * people["directions"], atol=1e-12)


def test_a_3d_world_is_refused_with_a_word_on_what_to_do() -> None:
    with pytest.raises(ParameterError, match=r"ORCA is a 2D model, and this world has 3 dimensions; use a 2D world"):
        Simulation(World.box((0, 0, 0), (9, 9, 9)), Group("a", count=2, goal="none"), local=ORCA())


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"time_horizon": 0.0}, "ORCA: time_horizon must be a positive number, not 0.0"),
        ({"max_neighbours": 2.5}, "max_neighbours must be a whole number from 0 to 1000"),
        ({"speed_limit": math.inf}, "speed_limit must be a number from 0 to 100, 0 excluded"),
        ({"time_horizont": 1.0}, "no parameter 'time_horizont'; did you mean 'time_horizon'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        ORCA(**fields)


def test_scenario_files_know_it_by_name(tmp_path: Path) -> None:
    model = model_in_a_file(tmp_path, model="orca", time_horizon=3.0)
    assert isinstance(model, ORCA)
    assert model.parameters.time_horizon == 3.0
