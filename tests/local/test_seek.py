"""Seek: what walkers do alone, behind others, at each other and in a crowd."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from body_distances import deepest_overlap
from tropel import Grid, Group, Normal, Seek, Simulation, Target, World
from tropel.agents.state import AgentState, Steered
from tropel.contracts import Moment
from tropel.errors import ParameterError

Floats = NDArray[np.float64]

PLAIN = World(bounds=(-50, -50, 50, 50))


def walk(sim: Simulation, seconds: float) -> float:
    """Let them walk, and return the deepest overlap of two bodies in any step."""
    deepest = -math.inf
    for _ in range(round(seconds / sim.dt)):
        sim.step()
        deepest = max(deepest, deepest_overlap(sim.agents.position, sim.agents.radius))
    return deepest


def steered(
    position: Floats, directions: Floats, *, velocity: Any = 0.0, members: Any = None, **fields: Any
) -> Steered:
    """One look at a crowd in the open: what the model writes."""
    dim = position.shape[1]
    state = AgentState(dim)
    state.add(len(position), {"position": position, "velocity": velocity, **fields})
    world = PLAIN if dim == 2 else World.box((-50, -50, -50), (50, 50, 50))
    rows = None if members is None else np.asarray(members, dtype=np.int64)
    moment = Moment.of(state, world, environment=Grid(), directions=directions, members=rows)
    out = Steered.like(state, ())
    Seek().steer(moment, out)
    return out


def long_room(dim: int, goal: Target) -> World:
    if dim == 3:
        return World.box((-5, -5, -5), (40, 5, 5), targets={"t": goal})
    return World(bounds=(-5, -5, 40, 5), targets={"t": goal})


# Alone --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("dt", [0.01, 0.05, 0.4])
def test_alone_one_walks_straight_at_the_desired_speed(dim: int, dt: float) -> None:
    low, high, start, goal = [0.0] * dim, [20.0] * dim, [2.0] * dim, [18.0] * dim
    box = World.box(low, high, targets={"t": goal}) if dim == 3 else World(bounds=(*low, *high), targets={"t": goal})
    sim = Simulation(box, Group("a", positions=[start], goal="t", desired_speed=1.7), dt=dt)
    for _ in range(10):
        sim.step()
        assert np.linalg.norm(sim.agents.velocity[0]) == pytest.approx(1.7)
    expected = np.array(start) + 1.7 * 10 * dt * np.ones(dim) / math.sqrt(dim)
    np.testing.assert_allclose(sim.agents.position[0], expected, atol=1e-9)
    np.testing.assert_allclose(sim.agents.heading[0], np.ones(dim) / math.sqrt(dim))


def test_a_shorter_direction_means_slower_and_none_means_standing() -> None:
    directions = np.array([[0.5, 0.0], [0.0, 0.0], [3.0, 0.0]])
    out = steered(np.array([[0.0, 0], [10, 0], [20, 0]]), directions, desired_speed=2.0, heading=(0.0, 1.0))
    np.testing.assert_allclose(out.velocity, [(1.0, 0), (0, 0), (2.0, 0)])
    np.testing.assert_allclose(out.heading, [(1, 0), (0, 1), (1, 0)])


def test_only_the_members_rows_are_written() -> None:
    out = steered(np.array([[0.0, 0], [10, 0]]), np.array([[1.0, 0], [1.0, 0]]), members=[1])
    assert (out.velocity[0] == 0.0).all()
    assert out.velocity[1, 0] > 1.0


# Behind others ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [0.02, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("dim", [2, 3])
def test_who_cannot_step_aside_stops_behind_a_standing_person_without_touching(dt: float, dim: int) -> None:
    tail = [0.0] * (dim - 1)
    goal = Target(position=(30.0, *tail))
    world = long_room(dim, goal)
    sim = Simulation(
        world,
        [Group("walker", positions=[(0.0, *tail)], goal="t"), Group("stander", positions=[(8.0, *tail)], goal="none")],
        local=Seek(side_angles=(), press=0.0),
        dt=dt,
    )
    assert walk(sim, 20.0) <= 0.0
    gap = sim.agents.position[1, 0] - sim.agents.position[0, 0] - 0.4
    assert 0.0 < gap < 0.05
    assert sim.agents.velocity[0, 0] < 0.01
    np.testing.assert_array_equal(sim.agents.position[1], (8.0, *tail))


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("offset", [0.0, 0.1, -0.3])
def test_who_can_steps_round_a_standing_person_without_touching(dim: int, offset: float) -> None:
    tail = [0.0] * (dim - 1)
    goal = Target(position=(15.0, *tail))
    world = long_room(dim, goal)
    sim = Simulation(
        world,
        [
            Group("walker", positions=[(0.0, *tail)], goal="t"),
            Group("stander", positions=[(6.0, offset, *tail[1:])], goal="none"),
        ],
    )
    assert walk(sim, 15.0) <= 0.0
    assert sim.agents.position[0, 0] > 14.0


@pytest.mark.parametrize("leader", [0.2, 0.4, 0.8, 1.2])
def test_in_single_file_speed_and_distance_follow_the_time_gap(leader: float) -> None:
    # In the steady state everybody walks like the first, at the distance of a body, the margin and v times T.
    world = World(bounds=(0, -1, 200, 1), targets={"t": (199, 0)})
    places = [(20.0 - 1.2 * k, 0.0) for k in range(10)]
    speeds = [leader, *[1.5] * 9]
    sim = Simulation(
        world, Group("a", positions=places, desired_speed=speeds, goal="t"), local=Seek(side_angles=(), time_gap=0.5)
    )
    assert walk(sim, 60.0) <= 0.0
    np.testing.assert_allclose(sim.agents.velocity[:, 0], leader, rtol=0.01)
    np.testing.assert_allclose(-np.diff(sim.agents.position[:, 0]), 0.4 + 0.02 + 0.5 * leader, rtol=0.01)


def test_a_long_time_gap_keeps_people_further_apart_at_the_same_speed() -> None:
    world = World(bounds=(0, -1, 200, 1), targets={"t": (199, 0)})
    distances = []
    for time_gap in (0.5, 1.0, 2.0):
        sim = Simulation(
            world,
            Group("a", positions=[(20, 0), (15, 0)], desired_speed=[0.5, 1.5], goal="t"),
            local=Seek(side_angles=(), time_gap=time_gap),
        )
        walk(sim, 60.0)
        distances.append(float(sim.agents.position[0, 0] - sim.agents.position[1, 0]))
    np.testing.assert_allclose(distances, [0.42 + 0.25, 0.42 + 0.5, 0.42 + 1.0], rtol=0.01)


# At each other ------------------------------------------------------------------------------------------------------


@given(
    offset=st.one_of(st.just(0.0), st.floats(-1.0, 1.0)),
    speeds=st.tuples(st.floats(0.1, 3.0), st.floats(0.1, 3.0)),
    radii=st.tuples(st.floats(0.05, 0.5), st.floats(0.05, 0.5)),
    dt=st.sampled_from([0.02, 0.05, 0.1, 0.3]),
    dim=st.sampled_from([2, 3]),
    turning=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_two_who_walk_at_each_other_pass_or_stop_but_never_overlap(
    offset: float, speeds: tuple[float, float], radii: tuple[float, float], dt: float, dim: int, turning: bool
) -> None:
    tail = [0.0] * (dim - 2)
    targets = {"left": (-20.0, 0.0, *tail), "right": (20.0, 0.0, *tail)}
    if dim == 2:
        world = World(bounds=(-30, -30, 30, 30), targets=targets)
    else:
        world = World.box((-30, -30, -30), (30, 30, 30), targets=targets)
    sim = Simulation(
        world,
        [
            Group("a", positions=[(-3.0, 0.0, *tail)], goal="right", desired_speed=speeds[0], radius=radii[0]),
            Group("b", positions=[(3.0, offset, *tail)], goal="left", desired_speed=speeds[1], radius=radii[1]),
        ],
        dt=dt,
        local=Seek() if turning else Seek(side_angles=()),
    )
    assert walk(sim, 12.0) <= 1e-9


def test_two_equal_ones_head_on_pass_each_other_on_the_right() -> None:
    world = World(bounds=(-30, -30, 30, 30), targets={"left": (-20, 0), "right": (20, 0)})
    sim = Simulation(
        world, [Group("a", positions=[(-4, 0)], goal="right"), Group("b", positions=[(4, 0)], goal="left")]
    )
    lowest, highest = 0.0, 0.0
    for _ in range(200):
        sim.step()
        lowest, highest = min(lowest, sim.agents.position[0, 1]), max(highest, sim.agents.position[1, 1])
    assert sim.agents.position[0, 0] > 4.0
    assert sim.agents.position[1, 0] < -4.0
    assert lowest < -0.1
    assert highest > 0.1


# In a crowd ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_crowd_that_meets_at_one_point_in_the_open_does_not_overlap(dim: int, seed: int) -> None:
    side = 20.0 if dim == 2 else 8.0
    goal = Target(position=[side / 2] * dim, radius=0.5, absorbs=True)
    if dim == 2:
        world = World(bounds=(0, 0, side, side), targets={"t": goal})
    else:
        world = World.box([0] * 3, [side] * 3, targets={"t": goal})
    sim = Simulation(world, Group("a", count=150, goal="t", desired_speed=Normal(1.34, 0.26, low=0.5)), seed=seed)
    assert walk(sim, 25.0) <= 1e-3
    assert len(sim.agents) < 30


def test_two_streams_in_the_open_pass_through_each_other_without_overlap() -> None:
    world = World(bounds=(0, 0, 40, 10), targets={"left": (1, 5), "right": (39, 5)})
    sim = Simulation(
        world,
        [
            Group("a", count=50, goal="left", region=shapely.box(24, 0, 34, 10)),
            Group("b", count=50, goal="right", region=shapely.box(6, 0, 16, 10)),
        ],
    )
    assert walk(sim, 16.0) <= 1e-3
    assert sim.agents.position[sim.agents.group == 0, 0].mean() < 15.0
    assert sim.agents.position[sim.agents.group == 1, 0].mean() > 25.0


@pytest.mark.parametrize("dt", [0.05, 0.1])
def test_a_dense_crowd_gets_through_a_door_without_overlap(dt: float) -> None:
    world = World(
        shapely.box(0, 0, 14, 10),
        walls=[[(10, 0), (10, 4.4)], [(10, 5.6), (10, 10)]],
        targets={"door": Target(position=(10.8, 5), absorbs=True)},
    )
    sim = Simulation(world, Group("a", count=120, region=shapely.box(0, 0, 9.5, 10), goal="door"), dt=dt)
    assert walk(sim, 90.0) < 1e-6
    assert len(sim.agents) == 0


def three_stuck(**parameters: float) -> Simulation:
    """Somebody between two who stand and a wall, with the goal behind them."""
    world = World(bounds=(-5, -5, 15, 5), targets={"t": Target(position=(10.0, 0.0))})
    standing = Group("standing", positions=[(0.36, 0.22), (0.36, -0.22)], goal="none")
    walker = Group("walker", positions=[(0.0, 0.0)], goal="t", sense_radius=1.0)
    return Simulation(world, [standing, walker], local=Seek(side_angles=(), **parameters), dt=0.05, seed=3)


def test_who_is_stuck_presses_and_fidgets_and_who_may_not_stays() -> None:
    walked = []
    for sim in (three_stuck(press=0.0), three_stuck()):
        assert walk(sim, 1.0) < 1e-6
        walked.append(0.0)
        for _ in range(100):
            sim.step()
            walked[-1] += float(np.linalg.norm(sim.agents.velocity[2])) * sim.dt
    assert walked[0] < 0.01
    assert walked[1] > 0.1


def test_walls_beside_the_way_turn_people_to_the_free_side() -> None:
    # Somebody stands in the way; on the right, which is tried first, there is a wall.
    world = World(bounds=(-5, -5, 20, 5), walls=[[(-5, -0.3), (20, -0.3)]], targets={"t": Target(position=(15, 0))})
    people = [Group("walker", positions=[(0, 0)], goal="t"), Group("stander", positions=[(4, 0)], goal="none")]
    sim = Simulation(world, people, dt=0.05)
    assert walk(sim, 8.0) < 1e-6
    assert sim.agents.position[0, 0] > 6.0


# The same everywhere and in every direction -------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("angle", [0.4, 1.9, 3.7, 5.5])
def test_a_rotated_crowd_does_the_same_rotated(dim: int, angle: float) -> None:
    generator = np.random.default_rng(8)
    count = 250
    position = generator.uniform(-7 if dim == 2 else -3, 7 if dim == 2 else 3, (count, dim))
    velocity = generator.normal(0, 0.8, (count, dim))
    directions = generator.normal(0, 1, (count, dim))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    # In space the fan opens along the vertical, so the model is the same only for turns about it.
    rotation = np.eye(dim)
    rotation[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    shift = np.array([11.0, -7.0, 3.0])[:dim]
    straight = steered(position, directions, velocity=velocity, radius=0.1)
    rotated = steered(
        position @ rotation.T + shift, directions @ rotation.T, velocity=velocity @ rotation.T, radius=0.1
    )
    np.testing.assert_allclose(rotated.velocity, straight.velocity @ rotation.T, atol=1e-9)
    np.testing.assert_allclose(rotated.heading, straight.heading @ rotation.T, atol=1e-9)
    speed = np.linalg.norm(straight.velocity, axis=1)
    assert (speed < 1.0).sum() > 20
    assert (speed > 1.3).sum() > 20


def test_speeds_never_exceed_the_desired_one_and_headings_are_unit_vectors() -> None:
    generator = np.random.default_rng(5)
    position = generator.uniform(-6, 6, (400, 2))
    directions = np.column_stack([np.cos(a := generator.uniform(0, 7, 400)), np.sin(a)])
    desired = generator.uniform(0.0, 2.0, 400)
    out = steered(position, directions, velocity=generator.normal(0, 1, (400, 2)), desired_speed=desired)
    assert (np.linalg.norm(out.velocity, axis=1) <= desired * (1 + 1e-12)).all()
    np.testing.assert_allclose(np.linalg.norm(out.heading, axis=1), 1.0)


def test_two_in_the_same_place_do_not_make_anything_infinite() -> None:
    out = steered(np.zeros((3, 2)), np.array([[1.0, 0], [1.0, 0], [0, 1.0]]))
    assert np.isfinite(out.velocity).all()
    assert np.isfinite(out.heading).all()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"time_gap": 0.0}, "time_gap must be a positive number"),
        ({"time_gap": math.nan}, "time_gap must be a positive number"),
        ({"margin": -0.1}, "margin must be a number that is not negative"),
        ({"margin": math.nan}, "margin must be a number that is not negative"),
        ({"side_angles": (0.3, 2.0)}, "side_angles must lie between"),
        ({"side_angles": (0.0,)}, "side_angles must lie between"),
        ({"timegap": 1.0}, "no parameter 'timegap'; did you mean 'time_gap'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Seek(**fields)
