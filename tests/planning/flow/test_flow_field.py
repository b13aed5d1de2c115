"""Flow layers against value iteration and scipy's Dijkstra, and agents that follow them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel import Direct, Group, Simulation, Target, World
from tropel.contracts import Guidance
from tropel.errors import GeometryError, ParameterError
from tropel.planning.flow.model import FlowField
from tropel.planning.flow.path_plan import MOVES, PathPlan, solve_path_plans
from tropel.testing import check_planner
from tropel.world.raster import Raster


def random_map(seed: int, *, ny: int = 21, nx: int = 27, share: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    free = generator.random((ny, nx)) > share
    goal = np.zeros_like(free)
    for _ in range(generator.integers(1, 4)):
        goal[tuple(generator.integers(0, (ny, nx)))] = True
    return free | goal, goal


def shifted(array: np.ndarray, sy: int, sx: int, outside: Any) -> np.ndarray:
    """The array as seen one step further: result[y, x] = array[y + sy, x + sx]."""
    padded = np.pad(array, 1, constant_values=outside)
    return padded[1 + sy : 1 + sy + array.shape[0], 1 + sx : 1 + sx + array.shape[1]]


def allowed(free: np.ndarray, sx: int, sy: int, corner_cutting: bool) -> np.ndarray:
    move = free & shifted(free, sy, sx, False)
    if sx and sy and not corner_cutting:
        move &= shifted(free, 0, sx, False) & shifted(free, sy, 0, False)
    return move


def value_iteration(free: np.ndarray, goal: np.ndarray, gamma: float, *, diagonal: float, cut: bool) -> np.ndarray:
    """V = 1 on the goal, V(s) = max gamma^t(a) V(T(s, a)) elsewhere, until nothing changes; plain NumPy."""
    value = goal.astype(float)
    while True:
        best = value.copy()
        for sx, sy in MOVES.tolist():
            t = diagonal if sx and sy else 1.0
            there = np.where(allowed(free, sx, sy, cut), shifted(value, sy, sx, 0.0), 0.0)
            best = np.maximum(best, gamma**t * there)
        best[goal] = 1.0
        if np.array_equal(best, value):
            return value
        value = best


def graph_of(free: np.ndarray, *, diagonal: float, terrain: np.ndarray | None = None) -> scipy.sparse.csr_array:
    number = np.arange(free.size).reshape(free.shape)
    factor = np.ones(free.shape) if terrain is None else terrain
    rows, columns, lengths = [], [], []
    for sx, sy in MOVES.tolist():
        move = allowed(free, sx, sy, False)
        rows.append(number[move])
        columns.append(shifted(number, sy, sx, -1)[move])
        length = diagonal if sx and sy else 1.0
        lengths.append(length * 0.5 * (factor + shifted(factor, sy, sx, 1.0))[move])
    ends = (np.concatenate(rows), np.concatenate(columns))
    return scipy.sparse.csr_array((np.concatenate(lengths), ends), shape=(free.size,) * 2)


def scipy_lengths(free: np.ndarray, goal: np.ndarray, **options: Any) -> np.ndarray:
    graph = graph_of(free, **options)
    lengths = scipy.sparse.csgraph.dijkstra(graph, indices=np.flatnonzero(goal), min_only=True)
    return lengths.reshape(free.shape)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    gamma=st.sampled_from([0.3, 0.6, 0.9]),
    equal_moves=st.booleans(),
    cut=st.booleans(),
)
def test_one_pass_gives_what_value_iteration_converges_to(
    seed: int, gamma: float, equal_moves: bool, cut: bool
) -> None:
    free, goal = random_map(seed)
    plan = PathPlan(free, goal, equal_moves=equal_moves, corner_cutting=cut)
    value = value_iteration(free, goal, gamma, diagonal=1.0 if equal_moves else math.sqrt(2.0), cut=cut)
    np.testing.assert_array_equal(value > 0.0, np.isfinite(plan.distance))
    reached = value > 0.0
    np.testing.assert_allclose(plan.log_value(gamma)[reached], np.log(value[reached]), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.exp(plan.log_value(gamma)), value, rtol=1e-11)
    # The same policy: the first move to a neighbour of the highest value. Rounding in V makes ties inexact.
    with np.errstate(divide="ignore"):
        log_value = np.log(value)
    best = np.stack([np.where(allowed(free, x, y, cut), shifted(log_value, y, x, -np.inf), -np.inf) for x, y in MOVES])
    highest = best.max(axis=0)
    expected = (best >= highest - 1e-9).argmax(axis=0)
    moving = reached & ~goal
    np.testing.assert_array_equal(plan.policy()[moving], expected[moving])
    assert (plan.policy()[goal] == 8).all()
    assert (plan.policy()[~reached] == 255).all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.0, 0.4), equal_moves=st.booleans())
def test_lengths_are_those_of_scipy(seed: int, share: float, equal_moves: bool) -> None:
    free, goal = random_map(seed, ny=60, nx=45, share=share)
    plan = PathPlan(free, goal, equal_moves=equal_moves)
    expected = scipy_lengths(free, goal, diagonal=1.0 if equal_moves else math.sqrt(2.0))
    np.testing.assert_allclose(plan.distance, expected, rtol=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), dearest=st.sampled_from([1.5, 8.0, 900.0]))
def test_lengths_over_terrain_are_those_of_scipy(seed: int, dearest: float) -> None:
    free, goal = random_map(seed, ny=40, nx=35)
    terrain = np.round(np.random.default_rng(seed).uniform(1.0, dearest, free.shape) * 1024.0) / 1024.0
    plan = PathPlan(free, goal, terrain=terrain)
    expected = scipy_lengths(free, goal, diagonal=math.sqrt(2.0), terrain=terrain)
    np.testing.assert_allclose(plan.distance, expected, rtol=1e-6)


def test_values_do_not_underflow_at_the_far_end_of_a_maze() -> None:
    free = np.ones((401, 120), dtype=bool)
    free[1::2] = False
    for k, row in enumerate(range(1, 401, 2)):
        free[row, -1 if k % 2 == 0 else 0] = True
    goal = np.zeros_like(free)
    goal[0, 0] = True
    plan = PathPlan(free, goal)
    assert plan.log_value(0.6).min(where=free, initial=0.0) == pytest.approx(math.log(0.6) * (201 * 119 + 400))
    assert np.exp(plan.log_value(0.6)).min() == 0.0
    assert (plan.policy()[free & ~goal] < 8).all()


def test_corners_are_cut_only_when_asked() -> None:
    free = np.array([[True, False], [True, True]])
    goal = np.array([[True, False], [False, False]])
    assert PathPlan(free, goal).distance[1, 1] == 2.0
    assert PathPlan(free, goal, corner_cutting=True).distance[1, 1] == pytest.approx(math.sqrt(2.0), rel=1e-13)


def test_many_goals_at_once_are_the_same_as_one_by_one() -> None:
    free, _ = random_map(3, ny=80, nx=90)
    goals = []
    for k in range(5):
        goal = np.zeros_like(free)
        goal.flat[np.flatnonzero(free)[[k * 400, k * 500 + 7]]] = True
        goals.append(goal)
    for together, goal in zip(solve_path_plans(free, goals), goals, strict=True):
        alone = PathPlan(free, goal)
        np.testing.assert_array_equal(together.units, alone.units)
        np.testing.assert_array_equal(together.vectors, alone.vectors)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.0, 0.35))
def test_vectors_point_down_and_never_at_blocked_cells(seed: int, share: float) -> None:
    free, goal = random_map(seed, ny=40, nx=40, share=share)
    plan = PathPlan(free, goal)
    moving = np.isfinite(plan.distance) & ~goal
    np.testing.assert_allclose(np.linalg.norm(plan.vectors[moving], axis=-1), 1.0, rtol=1e-6)
    assert (plan.vectors[~moving] == 0.0).all()
    for y, x in np.argwhere(moving):
        vx, vy = plan.vectors[y, x]
        for sx, sy in ((np.sign(vx), 0), (0, np.sign(vy)), (np.sign(vx), np.sign(vy))):
            near = y + int(sy), x + int(sx)
            if abs(vx) > 1e-6 and abs(vy) > 1e-6:
                assert free[near]
        # Half a step along: between the cell, a straight neighbour and a diagonal one, the way is shorter.
        u, v = sorted((abs(vx), abs(vy)), reverse=True)
        straight = (y, x + int(np.sign(vx))) if abs(vx) >= abs(vy) else (y + int(np.sign(vy)), x)
        corner = (y + int(np.sign(vy)), x + int(np.sign(vx))) if v > 1e-6 else straight
        slope = u * (plan.distance[straight] - plan.distance[y, x])
        slope += v * (plan.distance[corner] - plan.distance[straight])
        assert slope < 0.0


U_TRAP = [[(6.0, 14.0), (14.0, 14.0), (14.0, 6.0), (6.0, 6.0)]]


def u_trap() -> World:
    target = Target(position=(21.0, 10.0), radius=0.5, absorbs=True)
    return World(bounds=(0, 0, 24, 20), walls=U_TRAP, targets={"target": target})


def test_everybody_leaves_the_u_that_holds_those_who_go_straight() -> None:
    region = shapely.box(6.5, 6.5, 13.7, 13.5)
    people = Group("people", count=25, region=region, goal="target")
    left = {}
    for planner in (FlowField(), Direct()):
        sim = Simulation(u_trap(), people, planning=planner, dt=0.1)
        left[type(planner).__name__] = sim.run(until="empty", limit=60.0).remaining
    assert left == {"FlowField": 0, "Direct": 25}


def test_people_pressed_into_corners_get_out() -> None:
    corners = [(13.75, 13.75), (13.75, 6.25), (6.1, 13.75), (13.75, 10.0), (9.0, 14.25), (6.0, 14.3)]
    sim = Simulation(u_trap(), Group("people", positions=corners, goal="target"), planning=FlowField(), dt=0.1)
    assert sim.run(until="empty", limit=60.0).remaining == 0


def walked(field_planner: FlowField, world: World, starts: np.ndarray, steps: int, stride: float) -> np.ndarray:
    """Points that follow the directions with nothing else to guide them."""
    sim = Simulation(world, Group("points", positions=starts, radius=1e-3, goal="target"), planning=field_planner)
    out = Guidance(directions=np.zeros_like(sim.agents.position))
    tracks = [sim.agents.position.copy()]
    for _ in range(steps):
        field_planner.direct(sim.moment(), out)
        sim.agents.position[:] += stride * out.directions
        tracks.append(sim.agents.position.copy())
    return np.stack(tracks, axis=1)


@pytest.mark.parametrize("line_of_sight", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_from_every_cell_the_directions_lead_to_the_goal_and_through_no_wall(seed: int, line_of_sight: bool) -> None:
    generator = np.random.default_rng(seed)
    ends = generator.uniform((1, 1), (15, 11), (14, 2, 2))
    walls = [shapely.LineString(pair) for pair in ends]
    world = World(shapely.box(0, 0, 16, 12), walls=walls, targets={"target": Target(position=(15.2, 0.8), radius=0.3)})
    planner = FlowField(line_of_sight=line_of_sight)
    Simulation(world, Group("one", positions=[(15.2, 0.8)], goal="target"), planning=planner)
    field = planner.field("target")
    starts = field.raster.centre(np.argwhere(field.reachable))
    tracks = walked(planner, world, starts, steps=900, stride=0.05)
    np.testing.assert_array_less(np.linalg.norm(tracks[:, -1] - (15.2, 0.8), axis=1), 0.36)
    assert shapely.STRtree(walls).query(shapely.linestrings(tracks), predicate="intersects").size == 0


def test_straightened_ways_are_almost_as_short_as_they_can_be() -> None:
    # Round the end of one wall: two straight lines. Cell by cell, along axes and diagonals, it is longer.
    wall = [(8.0, 4.0), (8.0, 12.0)]
    world = World(shapely.box(0, 0, 16, 12), walls=[wall], targets={"target": Target(position=(15, 9), radius=0.1)})
    start = np.array([[1.0, 6.5]])
    track = walked(FlowField(), world, start, steps=900, stride=0.02)[0]
    length = 0.02 * np.flatnonzero(np.linalg.norm(track - (15, 9), axis=1) < 0.15)[0]
    shortest = math.hypot(7.0, 2.5) + math.hypot(7.0, 5.0)
    assert length < 1.03 * shortest


def test_a_larger_clearance_keeps_further_from_walls() -> None:
    wall = shapely.LineString([(8.0, 4.0), (8.0, 12.0)])
    world = World(shapely.box(0, 0, 16, 12), walls=[wall], targets={"target": Target(position=(15, 9), radius=0.3)})
    nearest = []
    for clearance in (0.1, 0.5, 1.0):
        track = walked(FlowField(clearance=clearance, cell=0.1), world, np.array([[1.0, 9.0]]), steps=500, stride=0.05)
        nearest.append(shapely.LineString(track[0]).distance(wall))
    assert nearest[0] < 0.2
    assert nearest[1] == pytest.approx(0.5, abs=0.1)
    assert nearest[2] == pytest.approx(1.0, abs=0.1)


def test_mud_is_walked_round() -> None:
    mud = shapely.box(6, 2, 10, 12)

    def terrain(points: np.ndarray) -> np.ndarray:
        return np.where(shapely.contains_xy(mud, points), 5.0, 1.0)

    world = World(shapely.box(0, 0, 16, 12), targets={"target": Target(position=(15, 9), radius=0.3)})
    start = np.array([[1.0, 8.0]])
    plain = shapely.LineString(walked(FlowField(), world, start, steps=600, stride=0.05)[0])
    dry = shapely.LineString(walked(FlowField(terrain=terrain), world, start, steps=600, stride=0.05)[0])
    assert plain.intersection(mud).length > 3.9
    assert dry.intersection(mud).length < 0.3
    assert dry.distance(shapely.Point(15, 9)) < 0.4


def test_it_keeps_the_contract_of_a_planner() -> None:
    check_planner(FlowField, dims=(2,))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"gamma": 1.0}, "gamma"),
        ({"gamma": 0.0}, "gamma"),
        ({"cell": -1.0}, "cell"),
        ({"clearance": -1.0}, "clearance"),
    ],
)
def test_meaningless_parameters_are_refused(options: dict[str, float], what: str) -> None:
    with pytest.raises(ParameterError, match=what):
        FlowField(**options)


def test_terrain_below_one_or_of_another_shape_is_refused() -> None:
    free, goal = random_map(1)
    terrain = np.ones(free.shape)
    terrain[2, 3] = 0.5
    with pytest.raises(ParameterError, match=r"cell \[2, 3\] has 0.5"):
        PathPlan(free, goal, terrain=terrain)
    with pytest.raises(ParameterError, match="factor per cell"):
        PathPlan(free, goal, terrain=np.ones((2, 2)))


def test_a_box_is_refused() -> None:
    world = World.box((0, 0, 0), (4, 4, 4), targets={"target": (3, 3, 3)})
    with pytest.raises(ParameterError, match="2D"):
        Simulation(world, Group("some", count=2, goal="target"), planning=FlowField())


def test_a_raster_of_ones_own_can_be_solved() -> None:
    free = np.ones((3, 4), dtype=bool)
    goal = np.zeros_like(free)
    goal[1, 0] = True
    field = FlowField().solve(Raster(origin=np.zeros(2), cell=0.5, free=free), goal)
    assert field.length is not None
    assert field.length[1, 3] == pytest.approx(1.5)
    assert field.value[1, 3] == pytest.approx(3.0 * math.log(0.6))


def test_a_map_without_room_is_refused() -> None:
    world = World(shapely.box(0, 0, 5, 0.3), exits={"out": shapely.box(4, 0, 5, 0.3)})
    people = Group("people", positions=[(1.0, 0.15)], radius=0.1)
    with pytest.raises(GeometryError, match=r"none of the 25 × 2 cells"):
        Simulation(world, people, planning=FlowField())
