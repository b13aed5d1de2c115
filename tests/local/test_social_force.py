"""The social force model against numerical gradients of its potentials, closed forms, and in crowds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from steered_once import PLAIN, model_in_a_file, moved, steered, turning
from tropel import Direct, Group, Obstacle, Simulation, SocialForce, Target, Waypoints, World
from tropel.errors import ParameterError
from tropel.testing import check_steering
from two_threads import needs_two_threads

Floats = NDArray[np.float64]

TAU, V0, SIGMA, U0, R, STEP, BEHIND, FASTEST = 0.5, 2.1, 0.3, 10.0, 0.2, 2.0, 0.5, 1.3
COS_VIEW = math.cos(math.radians(100.0))
#: Short enough that a step is one Euler step and nobody reaches the largest speed by far.
DT = 0.01


def gradient(potential: Any, place: Floats) -> Floats:
    """By central differences of fourth order."""
    h = 1e-4
    found = []
    for axis in np.eye(2):
        far = potential(place - 2 * h * axis) - potential(place + 2 * h * axis)
        near = potential(place + h * axis) - potential(place - h * axis)
        found.append((far + 8.0 * near) / (12.0 * h))
    return np.array(found)


def repulsion(place: Floats, other: Floats, velocity: Floats) -> Floats:
    def potential(here: Floats) -> float:
        r, step = here - other, STEP * velocity
        both = np.linalg.norm(r) + np.linalg.norm(r - step)
        return float(V0 * np.exp(-0.5 * np.sqrt(both**2 - step @ step) / SIGMA))

    return -gradient(potential, place)


def from_border(place: Floats, distance: Any) -> Floats:
    return -gradient(lambda here: U0 * math.exp(-distance(here) / R), place)


def weighted(force: Floats, facing: Floats) -> Floats:
    seen = -force @ facing >= np.linalg.norm(force) * COS_VIEW
    return force if seen else BEHIND * force


def reference(people: dict[str, Floats], world: World) -> Floats:
    """Velocities after one Euler step, agent by agent."""
    lines = [shapely.LineString(segment.reshape(2, 2)) for segment in world.segments]
    found = np.zeros_like(people["position"])
    for i, here in enumerate(people["position"]):
        pace = float(np.linalg.norm(people["directions"][i]))
        facing = people["directions"][i] / pace
        wanted = people["desired_speed"][i] * people["directions"][i]
        force = (wanted - people["velocity"][i]) / TAU
        sense = people["sense_radius"][i]
        for j, there in enumerate(people["position"]):
            if j != i and np.linalg.norm(there - here) <= sense:
                force = force + weighted(repulsion(here, there, people["velocity"][j]), facing)
        for line in lines:
            if line.distance(shapely.Point(here)) <= sense:
                force = force + from_border(here, lambda place, line=line: line.distance(shapely.Point(place)))
        for place, size in zip(world.obstacles.position, world.obstacles.radius, strict=True):
            if np.linalg.norm(here - place) - size <= sense:
                force = force + from_border(here, lambda q, place=place, size=size: np.linalg.norm(q - place) - size)
        new = people["velocity"][i] + DT * force
        speed, most = np.linalg.norm(new), FASTEST * people["desired_speed"][i]
        found[i] = new * min(1.0, most / speed)
    return found


WALLS = np.array([[(2.0, 2.0), (2.0, 5.0)], [(4.0, 6.0), (7.0, 6.5)]])


def furnished(turn: Floats | None = None, shift: Any = (0.0, 0.0)) -> World:
    turn = np.eye(2) if turn is None else turn
    pillar = Obstacle(radius=0.6, position=tuple(turn @ (5.0, 3.0) + shift))
    return World(bounds=(-60, -60, 60, 60), walls=list(WALLS @ turn.T + np.array(shift)), obstacles={"pillar": pillar})


def crowd(seed: int, count: int = 40, side: float = 8.0) -> dict[str, Floats]:
    """People of all kinds who walk, outside of the pillar and off the walls."""
    draws = np.random.default_rng(seed)
    things = [shapely.LineString(wall) for wall in WALLS] + [shapely.Point(5, 3).buffer(0.6)]
    places: list[Floats] = []
    while len(places) < count:
        place = draws.uniform(0.0, side, 2)
        if min(shapely.Point(place).distance(thing) for thing in things) > 0.05:
            places.append(place)
    angle = draws.uniform(0, 2 * math.pi, count)
    return {
        "position": np.array(places),
        "directions": draws.uniform(0.3, 1.0, (count, 1)) * np.column_stack([np.cos(angle), np.sin(angle)]),
        "velocity": draws.normal(0.0, 0.6, (count, 2)),
        "desired_speed": draws.uniform(0.8, 2.0, count),
        "sense_radius": draws.uniform(1.0, 5.0, count),
    }


# The equations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("world", [PLAIN, furnished()], ids=["in the open", "among walls and a pillar"])
def test_accelerations_are_the_gradients_of_the_potentials(seed: int, world: World) -> None:
    people = crowd(seed)
    out = steered(SocialForce(), **people, world=world, dt=DT)
    expected = reference(people, world)
    np.testing.assert_allclose(out.velocity, expected, atol=2e-5)
    limit = FASTEST * people["desired_speed"]
    assert (np.linalg.norm(expected, axis=1) < 0.99 * limit).sum() > 10
    assert (np.linalg.norm(out.velocity, axis=1) <= limit * (1 + 1e-12)).all()


@pytest.mark.parametrize("dt", [0.01, 0.05])
def test_a_walker_alone_relaxes_to_the_desired_speed_exponentially(dt: float) -> None:
    world = World(bounds=(-5, -5, 50, 5), targets={"t": (49, 0)})
    sim = Simulation(world, Group("a", positions=[(0, 0)], desired_speed=1.4, goal="t"), local=SocialForce(), dt=dt)
    for step in range(1, round(2.0 / dt) + 1):
        sim.step()
        speed = float(np.linalg.norm(sim.agents.velocity[0]))
        # Exactly what Euler steps give, which is the closed form up to a share of dt / tau.
        assert speed == pytest.approx(1.4 * (1.0 - (1.0 - dt / TAU) ** step), rel=1e-9)
        assert speed == pytest.approx(1.4 * (1.0 - math.exp(-step * dt / TAU)), abs=1.4 * 0.5 * dt / TAU)


@pytest.mark.parametrize("away", [0.05, 0.2, 0.5, 1.5])
def test_a_wall_and_a_pillar_push_by_the_exponential_of_the_distance(away: float) -> None:
    wall = World(bounds=(-9, -9, 9, 9), walls=[[(-5, 0), (5, 0)]])
    pillar = World(bounds=(-9, -9, 9, 9), obstacles={"p": Obstacle(radius=1.0, position=(0, -1))})
    for world in (wall, pillar):
        out = steered(SocialForce(speed_limit=50.0), [(0, away)], [(0, 0)], world=world, dt=DT)
        np.testing.assert_allclose(out.velocity[0], (0, DT * U0 / R * math.exp(-away / R)), atol=1e-12)


def pushed(place: tuple[float, float], walls: list[Any]) -> Floats:
    """The acceleration by walls of somebody who stands."""
    world = World(bounds=(-9, -9, 9, 9), walls=walls)
    return steered(SocialForce(speed_limit=50.0), [place], [(0, 0)], world=world, dt=DT).velocity[0] / DT


@pytest.mark.parametrize("x", [-1.0, 0.3, 0.5, 0.7, 2.0])
def test_a_wall_in_pieces_pushes_like_a_whole_one(x: float) -> None:
    pieces = [[(a, 0), (a + 0.5, 0)] for a in np.arange(-4.0, 4.0, 0.5)]
    np.testing.assert_allclose(pushed((x, 0.3), pieces), pushed((x, 0.3), [[(-4, 0), (4, 0)]]), atol=1e-9)


def test_a_corner_pushes_once_and_the_two_walls_of_a_niche_both_push() -> None:
    corner = [[(0, 0), (3, 0)], [(0, 0), (0, -3)]]
    outside, away = np.array([-0.3, 0.4]), 0.5
    np.testing.assert_allclose(pushed((-0.3, 0.4), corner), U0 / R * math.exp(-away / R) * outside / away, atol=1e-9)
    inside = U0 / R * np.exp(-np.array([0.3, 0.4]) / R)
    np.testing.assert_allclose(pushed((0.3, -0.4), corner), inside * (1, -1), atol=1e-9)


@pytest.mark.parametrize("edges", [16, 64])
def test_a_column_of_many_short_walls_pushes_like_a_round_one(edges: int) -> None:
    column = shapely.Point(0, 0).buffer(1.0, quad_segs=edges // 4).exterior
    draws = np.random.default_rng(edges)
    for angle in draws.uniform(0, 2 * math.pi, 10):
        place = 1.4 * np.array([math.cos(angle), math.sin(angle)])
        force = pushed((place[0], place[1]), [column])
        away = column.distance(shapely.Point(place))
        # The middle of the edge at the back is nearer than its ends: it pushes too, 2.4 m away.
        assert np.linalg.norm(force) == pytest.approx(U0 / R * math.exp(-away / R), rel=1e-3)


def test_others_behind_count_half_and_the_limit_is_a_hundred_degrees() -> None:
    pushes = {}
    for angle in (0.0, 90.0, 99.0, 101.0, 180.0):
        place = 0.8 * np.array([math.cos(math.radians(angle)), math.sin(math.radians(angle))])
        slow = SocialForce(relaxation_time=1e6)
        out = steered(slow, [(0, 0), place], [(1e-9, 0), (0, 0)], heading=[(1, 0), (1, 0)], dt=DT)
        pushes[angle] = float(np.linalg.norm(out.velocity[0]))
    full = DT * V0 / SIGMA * math.exp(-0.8 / SIGMA)
    for angle, push in pushes.items():
        assert push == pytest.approx(full if angle < 100.0 else 0.5 * full, rel=1e-6)


def test_others_push_farther_ahead_of_their_own_steps() -> None:
    def push(velocity: tuple[float, float]) -> float:
        fields = {"velocity": [(0, 0), velocity], "sense_radius": 5.0}
        out = steered(SocialForce(), [(0, 0), (1.5, 0.1)], [(0, 0), (0, 0)], heading=(1, 0), dt=DT, **fields)
        return float(np.linalg.norm(out.velocity[0]))

    assert push((-1.0, 0)) > 10.0 * push((0, 0)) > 10.0 * push((1.0, 0))


def test_who_is_exactly_on_the_line_of_anothers_steps_is_not_pushed() -> None:
    out = steered(SocialForce(), [(0, 0), (1, 0)], [(0, 0), (0, 0)], velocity=[(0, 0), (-1, 0)], dt=DT)
    np.testing.assert_allclose(out.velocity[0], 0.0, atol=1e-6)


def test_others_behind_a_wall_count() -> None:
    people: dict[str, Any] = {"position": [(-0.4, 0), (0.4, 0)], "directions": [(0, 0), (0, 0)], "dt": DT}
    between = World(bounds=(-9, -9, 9, 9), walls=[[(0, -2), (0, 2)]])
    without_walls = SocialForce(wall_strength=0.0)
    hidden, seen = (steered(without_walls, **people, world=world).velocity for world in (between, PLAIN))
    np.testing.assert_array_equal(hidden, seen)
    assert np.abs(seen).max() > 0.001


# Time steps -----------------------------------------------------------------------------------------------------------


def test_long_steps_are_divided_and_end_near_what_short_ones_do() -> None:
    assert SocialForce().longest_part == pytest.approx(0.2 / math.sqrt(10.0))
    assert SocialForce(wall_strength=0.0).longest_part == pytest.approx(0.1)
    wall = World(bounds=(-9, -9, 9, 9), walls=[[(-5, 0), (5, 0)]])
    # In free fall onto a wall: one step of 0.4 s, and many short ones by plain Python.
    y, v, h = 1.0, -1.3, 1e-4
    for _ in range(4000):
        v += h * ((-1.3 - v) / TAU + U0 / R * math.exp(-y / R))
        y += h * v
    long = steered(SocialForce(), [(0, 1.0)], [(0, -1)], world=wall, velocity=(0, -1.3), desired_speed=1.3, dt=0.4)
    assert long.velocity[0, 1] == pytest.approx(v, abs=0.1)
    assert v > -1.1, "the wall must have slowed it down"


@pytest.mark.parametrize("dt", [0.05, 0.1, 0.3])
def test_in_front_of_a_wall_people_come_to_rest_where_forces_balance(dt: float) -> None:
    world = World(bounds=(-9, -9, 9, 9), walls=[[(-9, 0), (9, 0)]], targets={"t": (0, -8)})
    group = Group("a", positions=[(0, 3)], desired_speed=1.3, goal="t")
    sim = Simulation(world, group, planning=Direct(), local=SocialForce(), dt=dt)
    sim.run(until=15.0)
    rest = R * math.log(U0 / R / (1.3 / TAU))
    assert sim.agents.position[0, 1] == pytest.approx(rest, abs=0.02)
    assert np.linalg.norm(sim.agents.velocity[0]) < 0.05


# Walking --------------------------------------------------------------------------------------------------------------


def test_two_streams_in_a_corridor_pass_each_other() -> None:
    shares = []
    for seed in range(4):
        corridor = shapely.box(0, 0, 20, 4)
        world = World(
            corridor,
            targets={"east": Target(position=(19, 2), absorbs=True), "west": Target(position=(1, 2), absorbs=True)},
        )
        groups = [
            Group("a", count=12, goal="east", region=shapely.box(2, 0.5, 8, 3.5)),
            Group("b", count=12, goal="west", region=shapely.box(12, 0.5, 18, 3.5)),
        ]
        sim = Simulation(world, groups, local=SocialForce(), dt=0.05, seed=seed, threads=1)
        for _ in range(800):
            sim.step()
            assert not len(sim.agents) or corridor.contains(shapely.MultiPoint(sim.agents.position))
        shares.append(1.0 - len(sim.agents) / 24.0)
    assert np.mean(shares) >= 0.95, shares


def test_solid_bodies_are_off_by_default_and_keep_bodies_apart_when_on() -> None:
    assert not SocialForce().declares.solid_bodies
    nearest = {}
    for solid in (False, True):
        people = Group("a", count=80, region=shapely.box(-4, -4, 4, 4), goal="t")
        world = World(bounds=(-9, -9, 9, 9), targets={"t": (0, 0)})
        sim = Simulation(world, people, local=SocialForce(solid_bodies=solid), dt=0.05, seed=1, threads=1)
        nearest[solid] = math.inf
        for _ in range(120):
            sim.step()
            nearest[solid] = min(nearest[solid], float(pdist(sim.agents.position).min()))
    assert nearest[True] > 0.4 - 1e-6
    assert nearest[False] < 0.38


def test_a_moving_obstacle_drives_people_before_it() -> None:
    roller = Obstacle(radius=0.8, motion=Waypoints(points=[(-4, 0.1), (6, 0.1)], speed=0.7))
    world = World(bounds=(-10, -10, 10, 10), obstacles={"roller": roller})
    sim = Simulation(world, Group("a", positions=[(0, 0)], goal="none"), local=SocialForce(), dt=0.05)
    sim.run(until=14.0)
    assert abs(sim.agents.position[0, 1] - 0.1) > 0.8


# The promises ---------------------------------------------------------------------------------------------------------


@given(angle=st.floats(0, 2 * math.pi), shift=st.tuples(st.floats(-20, 20), st.floats(-20, 20)), mirror=st.booleans())
@settings(max_examples=20)
def test_a_turned_moved_or_mirrored_crowd_does_the_same(angle: float, shift: tuple[float, float], mirror: bool) -> None:
    people, turn = crowd(3), turning(angle, mirror=mirror)
    here = steered(SocialForce(), **people, world=furnished())
    there = steered(SocialForce(), **moved(people, turn, shift), world=furnished(turn, shift))
    np.testing.assert_allclose(there.velocity, here.velocity @ turn.T, atol=1e-6)


@needs_two_threads
def test_one_and_two_threads_give_the_same_bits() -> None:
    hashes = set()
    for threads in (1, 2):
        world = World(shapely.box(0, 0, 60, 60), targets={"t": (50, 30)})
        sim = Simulation(world, Group("a", count=2_500, goal="t"), local=SocialForce(), seed=2, threads=threads)
        for _ in range(10):
            sim.step()
        hashes.add(sim.state_hash())
    assert len(hashes) == 1


def test_it_keeps_the_contract_of_steering_models() -> None:
    check_steering(SocialForce, dims=(2,))
    check_steering(lambda: SocialForce(solid_bodies=True), dims=(2,), ids_matter=True)


@pytest.mark.parametrize("radius", [0.0, 0.2, 5.0])
def test_on_top_of_each_other_in_a_wall_or_an_obstacle_everything_stays_finite(radius: float) -> None:
    world = World(
        bounds=(-9, -9, 9, 9), walls=[[(0, -2), (0, 2)]], obstacles={"p": Obstacle(radius=1.0, position=(3, 0))}
    )
    places = [(0, 0), (0, 0), (0, 0), (3, 0), (3.1, 0), (1e-200, 0), (1e-9, 1e-9)]
    out = steered(SocialForce(), places, [(1, 0)] * 4 + [(0, 1)] * 3, world=world, radius=radius, velocity=(0.3, 0.0))
    assert np.isfinite(out.velocity).all()
    assert (np.linalg.norm(out.velocity, axis=1) <= 1.3 * 1.34 * (1 + 1e-12)).all()


def test_a_3d_world_is_refused_with_a_word_on_what_to_do() -> None:
    with pytest.raises(ParameterError, match=r"SocialForce is a 2D model, and this world has 3 dimensions; use a 2D"):
        Simulation(World.box((0, 0, 0), (9, 9, 9)), Group("a", count=2, goal="none"), local=SocialForce())


@pytest.mark.parametrize(
    "fields",
    [{"neighbour_strength": 1e300}, {"wall_strength": 1e12}, {"relaxation_time": 1e-9}, {"wall_range": 1e-300}],
)
def test_forces_that_would_take_forever_to_solve_are_refused(fields: dict[str, Any]) -> None:
    people = Group("a", count=2, goal="none")
    with pytest.raises(ParameterError, match=r"SocialForce needs steps of \S+ s for these forces, and dt is 0\.05 s;"):
        Simulation(World(bounds=(0, 0, 9, 9)), people, local=SocialForce(**fields))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"relaxation_time": 0.0}, "SocialForce: relaxation_time must be a positive number, not 0.0"),
        ({"field_of_view": 400.0}, "field_of_view must be a number from 0 to 360 °"),
        ({"weight_behind": 1.5}, "weight_behind must be a number from 0 to 1"),
        ({"relaxationtime": 1.0}, "no parameter 'relaxationtime'; did you mean 'relaxation_time'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        SocialForce(**fields)


def test_scenario_files_know_it_by_name(tmp_path: Path) -> None:
    model = model_in_a_file(tmp_path, model="social_force", relaxation_time=0.7)
    assert isinstance(model, SocialForce)
    assert model.parameters.relaxation_time == 0.7
