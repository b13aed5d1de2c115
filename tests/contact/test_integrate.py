"""Walls and closed doors are never crossed: every chord between consecutive positions is shown to shapely."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel import Door, World
from tropel.agents.state import AgentState, Steered
from tropel.broad_phase import CellGrid
from tropel.contact.bodies import Bodies
from tropel.contact.integrate import integrate
from tropel.contracts.declarations import Moves
from tropel.errors import ModelError
from wall_crossings import closed_lines, crossings, pieces

Floats = NDArray[np.float64]


def agents_at(position: Floats, *, radius: float | Floats = 0.2, dim: int = 2) -> AgentState:
    state = AgentState(dim)
    state.add(len(position), {"position": position, "radius": radius})
    return state


def move(state: AgentState, world: World, wanted: Floats, *, dt: float = 1.0, moves_itself: bool = False) -> None:
    """One step by the displacement `wanted`, given as a velocity or, for models that move themselves, as a place."""
    steered = Steered.like(state, ())
    if moves_itself:
        steered.position[:] = state.position + wanted
        steered.velocity[:] = np.nan
    else:
        steered.velocity[:] = wanted / dt
    integrate(state, steered, world, dt, moves=Moves.ITSELF if moves_itself else Moves.FREELY)


def cruel_world(generator: np.random.Generator, size: float) -> World:
    """A jagged room with holes, thin walls in pairs, single walls, needle-sharp corners and doors, of about a size."""
    corners = int(generator.integers(5, 14))
    angles = np.sort(generator.uniform(0, 2 * math.pi, corners))
    reach = size * generator.uniform(0.15, 0.5, corners)
    ring = np.column_stack([reach * np.cos(angles), reach * np.sin(angles)]) + size / 2
    area = shapely.make_valid(shapely.Polygon(ring)).buffer(size * 0.02, join_style="mitre", mitre_limit=20)
    for _ in range(int(generator.integers(0, 4))):
        x, y = generator.uniform(0.2 * size, 0.8 * size, 2)
        tip = shapely.Polygon([(x, y), (x + 0.2 * size, y + 0.001 * size), (x + 0.2 * size, y + 0.004 * size)])
        area = area.difference(shapely.affinity.rotate(tip, generator.uniform(0, 360), origin=(x, y)))
    area = max(shapely.get_parts(area), key=lambda part: part.area)
    walls: list[shapely.LineString] = []
    for _ in range(int(generator.integers(1, 5))):
        a, b = generator.uniform(0, size, (2, 2))
        walls.append(shapely.LineString([a, b]))
        # Its twin, from a hand's breadth to a few atoms away.
        normal = np.array([a[1] - b[1], b[0] - a[0]]) / np.hypot(*(b - a))
        twin = normal * size * 10.0 ** generator.uniform(-13, -2)
        walls.append(shapely.LineString([a + twin, b + twin]))
    for _ in range(int(generator.integers(0, 3))):
        tip, along = generator.uniform(0, size, 2), generator.uniform(0, 2 * math.pi)
        opening = 10.0 ** generator.uniform(-6, -0.5)
        arms = [tip + 0.3 * size * np.array([math.cos(a), math.sin(a)]) for a in (along, along + opening)]
        walls.append(shapely.LineString([arms[0], tip, arms[1]]))
    doors = {
        f"door {k}": Door(generator.uniform(0, size, (2, 2)).tolist(), open=bool(generator.integers(2)))
        for k in range(int(generator.integers(0, 4)))
    }
    return World(area, walls=walls, doors=doors)


def starting_points(generator: np.random.Generator, world: World, count: int) -> Floats:
    """Half of them anywhere inside, half a hair's breadth from a wall or corner; none on a wall."""
    assert world.walkable is not None
    x0, y0, x1, y1 = world.walkable.bounds
    anywhere = generator.uniform((x0, y0), (x1, y1), (count, 2))
    segments = world.segments[generator.integers(len(world.segments), size=count)]
    share = np.where(generator.random(count) < 0.3, generator.integers(0, 2, count), generator.random(count))
    on_wall = segments[:, :2] + share[:, None] * (segments[:, 2:] - segments[:, :2])
    near = on_wall + generator.normal(0, 1, (count, 2)) * 10.0 ** generator.uniform(-14, -1, (count, 1))
    points = np.concatenate([anywhere, near])
    lines = pieces(shapely.MultiLineString(world.segments.reshape(-1, 2, 2).tolist()))
    on_line, _ = shapely.STRtree(lines).query(shapely.points(points), predicate="intersects")
    clear = shapely.contains_xy(world.walkable, points[:, 0], points[:, 1])
    clear[on_line] = False
    return points[clear]


def wanted_moves(generator: np.random.Generator, position: Floats, world: World, size: float) -> Floats:
    """Steps from tiny to a thousand times the room; some at corners, some along a wall, some straight onto a wall."""
    count = len(position)
    length = 10.0 ** generator.uniform(-9, math.log10(1000 * size), (count, 1))
    angle = generator.uniform(0, 2 * math.pi, count)
    free = length * np.column_stack([np.cos(angle), np.sin(angle)])
    segments = world.segments[generator.integers(len(world.segments), size=count)]
    to_corner = segments[:, :2] - position
    through_corner = to_corner * 10.0 ** generator.uniform(-1, 3, (count, 1))
    along = segments[:, 2:] - segments[:, :2]
    along *= generator.choice([-1.0, 1e-6, 1.0, 100.0], (count, 1))
    onto = segments[:, :2] + generator.random((count, 1)) * (segments[:, 2:] - segments[:, :2]) - position
    kinds = generator.integers(0, 6, count)
    return np.select(
        [(kinds == k)[:, None] for k in range(5)], [to_corner, through_corner, along, onto, free * 1e-3], default=free
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([1.0, 10.0, 10.0, 300.0]),
    moves_itself=st.booleans(),
    radius=st.sampled_from([0.2, 0.2, 1e-6, 3.0]),
)
@settings(max_examples=100, deadline=None)
def test_no_chord_ever_touches_a_wall_or_a_closed_door(
    seed: int, size: float, moves_itself: bool, radius: float
) -> None:
    generator = np.random.default_rng(seed)
    world = cruel_world(generator, size)
    position = starting_points(generator, world, 80)
    state = agents_at(position, radius=radius)
    for step in range(12):
        if step % 4 == 2:
            for name, door in world.doors.items():
                standing = crossings(state.position, state.position, shapely.MultiLineString([door.line])) > 0
                world.set_door(name, open=standing or bool(generator.integers(2)))
        before = state.position.copy()
        move(state, world, wanted_moves(generator, before, world, size), moves_itself=moves_itself)
        assert crossings(before, state.position, closed_lines(world)) == 0


def test_the_same_moves_without_the_check_do_cross_walls_and_agents_do_get_near_them() -> None:
    wanted_crossings, moved, near, total = 0, 0, 0, 0
    for seed in range(12):
        generator = np.random.default_rng(seed)
        world = cruel_world(generator, 10.0)
        state = agents_at(starting_points(generator, world, 80))
        lines = closed_lines(world)
        for _ in range(6):
            before = state.position.copy()
            wanted = wanted_moves(generator, before, world, 10.0)
            wanted_crossings += crossings(before, before + wanted, lines)
            move(state, world, wanted)
            moved += int((before != state.position).any(axis=1).sum())
            near += int((shapely.distance(shapely.points(state.position), lines) < 0.3).sum())
            total += len(state)
    assert wanted_crossings > 0.3 * total
    assert moved > 0.5 * total
    assert near > 0.3 * total


@pytest.mark.parametrize("speed", [1e6, 1e12, 1e18, 1e30, 1e150, 1e200, 1e300])
def test_absurd_speeds_stay_inside(speed: float) -> None:
    world = World(shapely.box(0, 0, 10, 10), walls=[[(4, 0), (4, 6)]])
    angles = np.linspace(0, 2 * math.pi, 64)
    state = agents_at(np.full((64, 2), (5.0, 5.0)))
    for _ in range(3):
        before = state.position.copy()
        move(state, world, speed * np.column_stack([np.cos(angles), np.sin(angles)]))
        assert crossings(before, state.position, closed_lines(world)) == 0
        assert shapely.contains_xy(world.walkable, state.position[:, 0], state.position[:, 1]).all()


def test_walls_beyond_the_bounds_of_open_space_hold_too() -> None:
    world = World(walls=[[(20, -5), (20, 5)], [(-50, 0), (-40, 1)]], bounds=(0, 0, 10, 10))
    state = agents_at(np.array([[19.5, 0.0], [15.0, 0.0], [-45.0, 0.2], [-45.0, 30.0]]))
    for _ in range(40):
        before = state.position.copy()
        move(state, world, np.array([[0.3, 0.01], [0.3, 0.0], [0.0, 0.3], [0.0, -1.3]]))
        assert crossings(before, state.position, closed_lines(world)) == 0


def test_map_coordinates_far_from_zero_are_as_safe() -> None:
    offset = np.array([5.6e6, 5.8e6])
    generator = np.random.default_rng(5)
    world = World(shapely.box(*offset, *(offset + 20)), walls=[np.array([(7, 3), (9, 18)]) + offset])
    state = agents_at(starting_points(generator, world, 200))
    for _ in range(30):
        before = state.position.copy()
        move(state, world, wanted_moves(generator, before, world, 20.0))
        assert crossings(before, state.position, closed_lines(world)) == 0


def test_a_room_of_a_hundred_kilometres_has_walls_that_hold() -> None:
    generator = np.random.default_rng(6)
    world = World(shapely.box(0, 0, 1e5, 1e5), walls=[[(2e4, 0), (8e4, 9e4)], [(10, 1), (10, 9)]])
    state = agents_at(starting_points(generator, world, 200))
    for _ in range(20):
        before = state.position.copy()
        move(state, world, wanted_moves(generator, before, world, 100.0))
        assert crossings(before, state.position, closed_lines(world)) == 0


# Sliding -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [0.01, 0.05, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("degrees", [20, 45, 70, 85])
@pytest.mark.parametrize("turn", [0.0, 0.7])
def test_who_pushes_obliquely_against_a_wall_goes_along_it(dt: float, degrees: float, turn: float) -> None:
    rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    room = np.array([[0, 0], [60, 0], [60, 30], [0, 30]]) @ rotation.T
    world = World(shapely.Polygon(room))
    velocity = 1.3 * np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))])
    state = agents_at(np.array([[1.0, 29.0]]) @ rotation.T)
    steps = round(20.0 / dt)
    for _ in range(steps):
        move(state, world, np.array([velocity]) @ rotation.T * dt, dt=dt)
    along, across = (state.position[0] @ rotation).tolist()
    free = 1.0 + 20.0 * velocity[0]
    assert along == pytest.approx(free, abs=0.05 * velocity[0] * 20.0 + 2 * velocity[0] * dt)
    assert 30.0 - across == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("dt", [0.05, 1.0])
def test_who_walks_straight_at_a_wall_stops_a_radius_before_it(dt: float) -> None:
    world = World(shapely.box(0, 0, 10, 10))
    state = agents_at(np.array([[5.0, 5.0]]))
    for _ in range(round(10 / dt)):
        move(state, world, np.array([[1.3 * dt, 0.0]]), dt=dt)
    assert state.position[0] == pytest.approx([9.8, 5.0], abs=0.02)
    np.testing.assert_allclose(state.velocity, 0.0, atol=1e-3)


@pytest.mark.parametrize("dt", [0.05, 0.5])
def test_who_walks_into_a_corner_keeps_its_radius_from_both_walls(dt: float) -> None:
    world = World(shapely.box(0, 0, 10, 10))
    state = agents_at(np.array([[5.0, 6.0]]))
    for _ in range(round(12 / dt)):
        move(state, world, np.array([[0.9 * dt, 0.9 * dt]]), dt=dt)
    assert (state.position[0] <= 9.8 + 0.02).all()
    assert (state.position[0] >= 9.8 - 0.9 * dt).all()


def test_who_stands_too_near_a_wall_drifts_off_when_it_walks_along() -> None:
    world = World(shapely.box(0, 0, 100, 10))
    state = agents_at(np.array([[1.0, 1e-9]]))
    for _ in range(200):
        before = state.position[0, 1]
        move(state, world, np.array([[0.065, 0.0]]), dt=0.05)
        assert state.position[0, 1] - before < 0.1 * 0.2 + 1e-9
    assert state.position[0, 1] == pytest.approx(0.2, abs=1e-3)
    assert state.position[0, 0] > 1.0 + 0.95 * 200 * 0.065


@pytest.mark.parametrize(
    ("width", "start", "gets_through"),
    [(0.45, (1.0, 5.0), True), (0.45, (1.0, 5.1), True), (0.2, (1.0, 5.0), False), (0.2, (4.0, 5.02), True)],
)
def test_a_body_enters_a_passage_only_if_it_fits_but_gets_out_of_a_narrower_one(
    width: float, start: tuple[float, float], gets_through: bool
) -> None:
    low, high = 5 - width / 2, 5 + width / 2
    world = World(shapely.box(0, 0, 10, 10), walls=[[(3, 0), (3, low), (7, low)], [(3, 10), (3, high), (7, high)]])
    state = agents_at(np.array([start]))
    for _ in range(200):
        before = state.position.copy()
        move(state, world, np.array([[0.065, 0.0]]), dt=0.05)
        assert crossings(before, state.position, closed_lines(world)) == 0
    assert (state.position[0, 0] > 7.0) == gets_through


@pytest.mark.parametrize("dt", [0.05, 0.4])
def test_who_aims_past_the_end_of_a_wall_walks_round_it(dt: float) -> None:
    world = World(shapely.box(0, 0, 20, 20), walls=[[(10, 0), (10, 10)]])
    state = agents_at(np.array([[9.0, 9.0]]))
    for _ in range(round(8 / dt)):
        aim = (
            np.array([12.0, 9.0]) if state.position[0, 1] > 10.25 or state.position[0, 0] > 10 else np.array([9.9, 11])
        )
        way = aim - state.position[0]
        move(state, world, np.array([way / np.linalg.norm(way) * 1.3 * dt]), dt=dt)
    assert state.position[0, 0] > 10.2


# What a step leaves behind ----------------------------------------------------------------------------------------


def test_velocity_is_the_displacement_over_dt_and_heading_stays_as_steered() -> None:
    world = World(shapely.box(0, 0, 10, 10))
    state = agents_at(np.array([[5.0, 5.0], [9.7, 5.0]]))
    before = state.position.copy()
    steered = Steered.like(state, ())
    steered.velocity[:] = (2.0, 1.0)
    steered.heading[:] = (0.0, -1.0)
    integrate(state, steered, world, 0.25)
    np.testing.assert_array_equal(state.velocity, (state.position - before) / 0.25)
    np.testing.assert_allclose(state.position[0], (5.5, 5.25))
    np.testing.assert_array_equal(state.heading, [[0.0, -1.0]] * 2)


def test_only_the_rows_that_move_themselves_take_their_position_from_the_model() -> None:
    world = World(shapely.box(0, 0, 10, 10))
    state = agents_at(np.array([[2.0, 5.0], [5.0, 5.0]]))
    steered = Steered.like(state, ())
    steered.velocity[:] = (0.1, 0.0)
    steered.position[:] = (7.0, 7.0)
    integrate(state, steered, world, 1.0, moves=np.array([Moves.FREELY, Moves.ITSELF], dtype=np.uint8))
    np.testing.assert_allclose(state.position, [[2.1, 5.0], [7.0, 7.0]])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("moves_itself", [False, True])
def test_a_wanted_place_that_is_not_finite_is_refused_by_name_and_nobody_moves(bad: float, moves_itself: bool) -> None:
    world = World(shapely.box(0, 0, 10, 10))
    state = agents_at(np.array([[2.0, 5.0], [5.0, 5.0]]))
    state.columns["id"] += 40
    before = state.position.copy()
    wanted = np.array([[0.1, 0.0], [bad, 0.0]])
    with pytest.raises(ModelError, match=r"agent 41 .*not finite"):
        move(state, world, wanted, moves_itself=moves_itself)
    np.testing.assert_array_equal(state.position, before)


def test_a_world_without_agents_can_be_integrated() -> None:
    state = agents_at(np.empty((0, 2)))
    move(state, World(shapely.box(0, 0, 1, 1)), np.empty((0, 2)))
    assert len(state) == 0


def test_nobody_leaves_the_box_of_a_3d_world() -> None:
    generator = np.random.default_rng(2)
    world = World.box((0, 0, 0), (10, 5, 3))
    state = agents_at(generator.uniform(0.2, 2.8, (200, 3)), dim=3)
    for _ in range(20):
        length = 10.0 ** generator.uniform(-3, 5, (200, 1))
        move(state, world, length * generator.normal(0, 1, (200, 3)))
        assert (state.position >= 0.2 - 1e-12).all()
        assert (state.position <= np.array([10, 5, 3]) - 0.2 + 1e-12).all()


# How agents move -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alike", [False, True])
def test_who_moves_exactly_has_the_place_and_velocity_the_model_wrote_or_stays(alike: bool) -> None:
    # Nearer to the wall than a radius, and through it.
    world = World(shapely.box(0, 0, 10, 10))
    state = agents_at(np.array([[9.0, 5.0], [9.0, 7.0]]))
    steered = Steered.like(state, ())
    steered.position[:] = [(9.95, 5.0), (10.5, 7.0)]
    steered.velocity[:] = (0.3, 0.0)
    integrate(state, steered, world, 1.0, moves=Moves.EXACTLY if alike else np.full(2, Moves.EXACTLY, dtype=np.uint8))
    np.testing.assert_array_equal(state.position, [(9.95, 5.0), (9.0, 7.0)])
    np.testing.assert_array_equal(state.velocity, [(0.3, 0.0), (0.0, 0.0)])


def test_whose_turn_it_is_not_keeps_place_and_velocity() -> None:
    state = agents_at(np.array([[2.0, 5.0], [5.0, 5.0]]))
    state.velocity[:] = (0.7, 0.1)
    steered = Steered.like(state, ())
    steered.velocity[:] = (0.2, 0.0)
    codes = np.array([Moves.FREELY, Moves.NOT_NOW], dtype=np.uint8)
    integrate(state, steered, World(shapely.box(0, 0, 10, 10)), 1.0, moves=codes)
    np.testing.assert_allclose(state.position, [(2.2, 5.0), (5.0, 5.0)])
    np.testing.assert_allclose(state.velocity, [(0.2, 0.0), (0.7, 0.1)])


def test_whose_turn_it_is_not_is_a_body_that_stands() -> None:
    world = World(bounds=(0, 0, 10, 10))
    state = agents_at(np.array([[5.0, 5.0], [5.45, 5.0]]))
    codes = np.array([Moves.FREELY, Moves.NOT_NOW], dtype=np.uint8)
    for step in range(5):
        steered = Steered.like(state, ())
        steered.velocity[:] = [(1.0, 0.0), (0.0, 0.0)]
        bodies = Bodies(CellGrid.of(state, world), np.ones(2, dtype=bool), np.uint64(1), step)
        integrate(state, steered, world, 0.1, moves=codes, bodies=bodies)
    assert (state.position[1] == (5.45, 5.0)).all()
    assert 5.0 < state.position[0, 0] <= 5.05 + 1e-8


def test_solid_bodies_that_move_exactly_are_pressed_nowhere_and_go_all_the_way_or_not_at_all() -> None:
    world = World(bounds=(0, 0, 10, 10))
    codes = np.array([Moves.FREELY, Moves.EXACTLY], dtype=np.uint8)
    outcomes = set()
    for step in range(40):
        state = agents_at(np.array([[5.0, 5.0], [5.5, 5.0]]))
        steered = Steered.like(state, ())
        steered.velocity[0] = (1.5, 0.0)
        steered.position[1] = (5.43, 5.0)
        steered.velocity[1] = (-0.7, 0.0)
        bodies = Bodies(CellGrid.of(state, world), np.ones(2, dtype=bool), np.uint64(1), step)
        integrate(state, steered, world, 0.1, moves=codes, bodies=bodies)
        assert state.position[1, 0] - state.position[0, 0] >= 0.4 - 1e-8
        outcomes.add((state.position[1, 0], state.velocity[1, 0]))
    assert outcomes <= {(5.43, -0.7), (5.5, 0.0)}
    assert (5.43, -0.7) in outcomes
