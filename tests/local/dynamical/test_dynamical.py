"""The dynamical model: what does not depend on the point of view, what agents do, and what never breaks."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from tropel import Direct, Door, Group, Normal, Obstacle, Simulation, Target, Uniform, World
from tropel._kernels.compile import SMALL_RUN
from tropel.errors import ParameterError, ScenarioError
from tropel.figures.phase_portraits import TurnRateCurve, turn_rate_curve
from tropel.local.dynamical.model import Dynamical
from tropel.local.dynamical.parameters import Repulsion
from tropel.local.dynamical.sums import _CONTACT, _DX, _DY, _DZ, SLOPE, SUMS, TABLE, _weigh
from tropel.scenario import parse_scenario
from tropel.testing import check_steering

Floats = NDArray[np.float64]

#: The papers' model alone, without noise.
PAPERS: dict[str, Any] = {
    "d0_base": 1.0,
    "c2": 2.5,
    "noise": 0.0,
    "anticipation": 0.0,
    "crowding": "all",
    "weight_memory": 0.0,
    "solid_bodies": False,
}


def curve(sim: Simulation, **options: Any) -> TurnRateCurve:
    """phi' over phi of the first agent of a simulation, every half degree."""
    model = sim.all_layers()[-1]
    moment = replace(sim._stages.plan(), sensed=sim.sense())
    headings = np.radians(np.linspace(-180.0, 180.0, 721))
    return turn_rate_curve(model, moment, agent=0, headings=headings, **options)


# The point of view ----------------------------------------------------------------------------------------------------


class Crossing:
    """Twelve agents, three obstacles and (in 2D) two walls, placed at random; everything can be moved as a whole."""

    def __init__(self, dim: int, seed: int = 3) -> None:
        random = np.random.default_rng(seed)
        self.obstacles = random.uniform(-4.0, 4.0, (3, dim))
        anywhere = random.uniform(-4.0, 4.0, (60, dim))
        free = np.linalg.norm(anywhere[:, None] - self.obstacles, axis=-1).min(axis=1) > 0.7
        self.places = anywhere[free][:12]
        headings = random.standard_normal((12, dim))
        self.headings = headings / np.linalg.norm(headings, axis=1, keepdims=True)
        self.target = random.uniform(-6.0, 6.0, dim)
        self.walls = random.uniform(-5.0, 5.0, (2, 2, 2)) if dim == 2 else np.empty((0, 2, 2))
        self.courage = random.uniform(0.2, 0.8, 12)
        self.agility = random.uniform(0.3, 1.0, 12)
        self.mass = random.uniform(0.0, 0.6, 12)

    def walked(self, turn: Floats, shift: Floats, *, steps: int = 50, **parameters: Any) -> tuple[Floats, Floats]:
        """Where all are, and how they face, after some steps in the scene as moved."""
        dim = len(shift)

        def moved(points: Floats) -> Floats:
            return points @ turn.T + shift

        things: dict[str, Any] = {
            "targets": {"t": Target(position=moved(self.target))},
            "obstacles": {
                f"o{k}": Obstacle(radius=0.4, position=tuple(moved(p))) for k, p in enumerate(self.obstacles)
            },
        }
        low, high = shift - 30.0, shift + 30.0
        if dim == 3:
            world = World.box(low, high, **things)
        else:
            walls = [moved(wall).tolist() for wall in self.walls]
            world = World(bounds=(*low, *high), walls=walls, **things)
        personality = {"courage": self.courage, "agility": self.agility, "mass": self.mass}
        group = Group("a", positions=moved(self.places), goal="t", parameters=personality)
        model = Dynamical(**{"noise": 0.0, "solid_bodies": False, **parameters})
        sim = Simulation(world, group, planning=Direct(), local=model, dt=0.05)
        sim.agents.heading[:] = self.headings @ turn.T
        for _ in range(steps):
            sim.step()
        return sim.agents.position, sim.agents.heading

    def flat_in_3d(self) -> Crossing:
        """The same agents and obstacles on a plane in space; there are no walls in 3D."""
        flat = Crossing.__new__(Crossing)
        flat.__dict__.update(self.__dict__)
        for name in ("places", "headings", "obstacles", "target"):
            array = getattr(self, name)
            setattr(flat, name, np.concatenate([array, np.zeros((*array.shape[:-1], 1))], axis=-1))
        flat.walls = np.empty((0, 2, 2))
        return flat


def turned(angle: float) -> Floats:
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


POINTS_OF_VIEW = {
    "shifted": (2, np.eye(2), np.array([113.7, -41.9])),
    "turned by 0.7": (2, turned(0.7), np.zeros(2)),
    "turned by 3.1 and shifted": (2, turned(3.1), np.array([-5.0, 8.0])),
    "mirrored": (2, np.diag([1.0, -1.0]), np.zeros(2)),
    "mirrored, turned and shifted": (2, turned(1.9) @ np.diag([1.0, -1.0]), np.array([3.0, 3.0])),
    "turned in space": (3, Rotation.from_rotvec([0.5, -1.1, 0.8]).as_matrix(), np.zeros(3)),
    "mirrored and shifted in space": (3, np.diag([1.0, 1.0, -1.0]), np.array([7.0, -20.0, 4.0])),
}
VARIANTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "the papers' model": PAPERS,
    "classes apart, derivative law": {"classes": "apart", "speed_law": "derivative"},
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("view", POINTS_OF_VIEW)
def test_a_crowd_walks_the_same_from_every_point_of_view(view: str, variant: str) -> None:
    dim, turn, shift = POINTS_OF_VIEW[view]
    scene = Crossing(dim)
    position, heading = scene.walked(np.eye(dim), np.zeros(dim), **VARIANTS[variant])
    assert np.linalg.norm(position - scene.places, axis=1).max() > 1.0
    seen_position, seen_heading = scene.walked(turn, shift, **VARIANTS[variant])
    np.testing.assert_allclose(seen_position, position @ turn.T + shift, rtol=0, atol=1e-9)
    np.testing.assert_allclose(seen_heading, heading @ turn.T, rtol=0, atol=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_in_a_plane_space_and_plane_give_the_same(variant: str, seed: int) -> None:
    flat = Crossing(2, seed)
    flat.walls = np.empty((0, 2, 2))
    position, heading = flat.walked(np.eye(2), np.zeros(2), **VARIANTS[variant])
    in_space, heading_in_space = flat.flat_in_3d().walked(np.eye(3), np.zeros(3), **VARIANTS[variant])
    np.testing.assert_allclose(in_space[:, :2], position, rtol=0, atol=1e-9)
    np.testing.assert_allclose(heading_in_space[:, :2], heading, rtol=0, atol=1e-9)
    np.testing.assert_allclose(in_space[:, 2], 0.0, rtol=0, atol=1e-9)


directions_in_space = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1)


@given(facing=directions_in_space, to_object=directions_in_space, to_target=directions_in_space, dpsi=st.floats(0.1, 1))
def test_the_slope_in_space_is_that_of_turning_about_the_targets_axis(
    facing: tuple[float, ...], to_object: tuple[float, ...], to_target: tuple[float, ...], dpsi: float
) -> None:
    h, u, e = (np.array(v) / np.linalg.norm(v) for v in (facing, to_object, to_target))
    axis = np.cross(h, e)
    if np.linalg.norm(axis) < 0.05 or np.linalg.norm(np.cross(h, u)) < 0.01:
        return
    axis /= np.linalg.norm(axis)

    def felt(heading: Floats) -> Floats:
        sums, table = np.zeros(SUMS), np.zeros(TABLE)
        away = 3.0
        table[[_DX, _DY, _DZ]], table[_CONTACT] = away * u, away * math.sin(dpsi)
        kind = (1.3, math.cos(0.8), math.sin(0.8))
        _weigh(table, np.uint64(1), True, tuple(heading), tuple(axis), 1.0, 0.0, 6.0, 6.0, kind, 1.0, -2.0, 0.0, sums,
               1e9)  # fmt: skip
        return sums

    eps = 1e-6
    after, before = (felt(Rotation.from_rotvec(angle * axis).apply(h)) for angle in (eps, -eps))
    slope = (after[:3] - before[:3]) @ axis / (2 * eps)
    assert felt(h)[SLOPE] == pytest.approx(slope, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(("what", "dim"), [("agent", 2), ("agent", 3), ("obstacle", 2), ("obstacle", 3), ("wall", 2)])
def test_what_is_farther_away_than_the_cut_has_no_effect(what: str, dim: int) -> None:
    """Seven d0 ahead and a little to the left: nothing by default, and a turn to the right without the cut."""
    turned = []
    tail = (5.0,) * (dim - 2)
    place = (7.0 * 0.3 + 0.4, 0.05, *tail)
    for cut in (6.0, 8.0, 700.0):
        obstacles = {"post": Obstacle(position=place, radius=0.2)} if what == "obstacle" else None
        targets = {"t": (90.0, 0.0, *tail)}
        if what == "wall":
            wall = [(place[0] - 0.2, -0.5), (place[0] - 0.2, 0.6)]
            world = World(bounds=(-9.0, -9.0, 99.0, 9.0), walls=[wall], targets=targets)
        else:
            low = (-9.0, -9.0, 0.0)[:dim]
            world = World.box(low, (99.0, 9.0, 9.0)[:dim], open=True, obstacles=obstacles, targets=targets)
        groups = [Group("a", positions=[(0.0, 0.0, *tail)], goal="t", radius=0.2, sense_radius=6.0)]
        if what == "agent":
            groups.append(Group("b", positions=[place], goal="none", radius=0.2, desired_speed=0.0))
        model = Dynamical(cut=cut, competition=False, noise=0.0)
        sim = Simulation(world, groups, planning=Direct(), local=model, dt=0.05)
        sim.agents.heading[0] = (1.0, *(0.0,) * (dim - 1))
        sim.step()
        turned.append(float(sim.agents.heading[0][1]))
    assert turned[0] == 0.0
    assert turned[1] == pytest.approx(turned[2], rel=1e-9)
    assert turned[1] < 0.0


# The heading ----------------------------------------------------------------------------------------------------------


def facing_a_gap(gap: float, *, radius: float = 0.3, away: float = 2.0, **parameters: Any) -> Simulation:
    """An agent that faces the middle of two obstacles, and its target straight behind them."""
    side = gap / 2 + 0.5
    world = World(
        bounds=(-10, -10, 10, 10),
        obstacles={"l": Obstacle(radius=0.5, position=(away, side)), "r": Obstacle(radius=0.5, position=(away, -side))},
        targets={"t": (8.0, 0.0)},
    )
    group = Group("a", positions=[(0.0, 0.0)], goal="t", radius=radius, sense_radius=6.0)
    return Simulation(world, group, local=Dynamical(**{**PAPERS, **parameters}), dt=0.05)


@given(radius=st.floats(0.1, 0.6), away=st.floats(1.8, 4.0))
@settings(max_examples=25)
def test_two_obstacles_let_through_exactly_what_fits_between_them(radius: float, away: float) -> None:
    for gap, passable in ((1.9 * radius, False), (2.1 * radius, True)):
        seen = curve(facing_a_gap(gap, radius=radius, away=away))
        middle = len(seen.heading) // 2
        slope = seen.obstacles[middle + 1] - seen.obstacles[middle - 1]
        assert (slope < 0.0) == passable


def test_competition_removes_the_spurious_way_between_impassable_obstacles() -> None:
    narrow = 0.4
    with_it = curve(facing_a_gap(narrow)).balances()
    without = curve(facing_a_gap(narrow, competition=False, attraction=3.0)).balances()
    assert np.abs(without).min() < 0.02
    assert np.abs(with_it).min() > 0.3


def test_the_curve_is_what_the_agent_does() -> None:
    for phi in (-2.0, -0.4, 0.3, 1.0):
        sim = facing_a_gap(1.0)
        sim.agents.heading[0] = math.cos(phi), math.sin(phi)
        seen = curve(sim)
        before = sim.agents.heading[0].copy()
        sim.step()
        after = sim.agents.heading[0]
        turn = math.atan2(before[0] * after[1] - before[1] * after[0], before @ after) / sim.dt
        assert turn == pytest.approx(float(np.interp(phi, seen.heading, seen.turn_rate)), abs=2e-3)
        assert sim.agents.weight_target[0] == pytest.approx(
            float(np.interp(phi, seen.heading, seen.weight_target)), abs=2e-2
        )


def test_alone_the_heading_falls_to_the_target_as_the_attractor_says() -> None:
    # phi' = -a sin(phi - psi) has the closed form tan((phi - psi) / 2) = tan(start / 2) exp(-a t). The target is far.
    world = World(bounds=(-10, -10, 10_000, 10), targets={"t": (9_000.0, 0.0)})
    sim = Simulation(world, Group("a", positions=[(0, 0)], goal="t"), local=Dynamical(**PAPERS), dt=0.001)
    sim.agents.heading[0] = math.cos(2.0), math.sin(2.0)
    for _ in range(1500):
        sim.step()
    expected = 2 * math.atan(math.tan(1.0) * math.exp(-1.5))
    assert math.atan2(*sim.agents.heading[0, ::-1]) == pytest.approx(expected, abs=2e-3)


def test_a_closed_door_repels_and_an_open_one_does_not() -> None:
    for is_open in (True, False):
        world = World(
            bounds=(-5, -5, 5, 5), doors={"d": Door([(1.0, -2.0), (1.0, 1.0)], open=is_open)}, targets={"t": (4, 0)}
        )
        sim = Simulation(world, Group("a", positions=[(0, 0)], goal="t"), local=Dynamical(**PAPERS))
        assert (np.abs(curve(sim).obstacles).max() > 0.1) == (not is_open)


def test_stronger_and_further_reaching_repulsion_turns_more() -> None:
    def hardest(**repulsion: float) -> float:
        return float(np.abs(curve(facing_a_gap(1.0, obstacles=Repulsion(**repulsion))).obstacles).max())

    assert hardest(strength=2.0) == pytest.approx(2 * hardest())
    assert hardest(reach=2.0) > 1.5 * hardest()


# Speed and personality ------------------------------------------------------------------------------------------------


def towards_a_wall(*, steps: int, **parameters: Any) -> Simulation:
    world = World(bounds=(-10, -10, 10, 10), walls=[[(4, -9), (4, 9)]], targets={"t": (9, 0)})
    local = Dynamical(**{**PAPERS, "walls": Repulsion(strength=0.0), **parameters})
    one = Group("a", positions=[(0, 0)], goal="t", desired_speed=1.0)
    sim = Simulation(world, one, planning=Direct(), local=local, dt=0.05)
    for _ in range(steps):
        sim.step()
    return sim


def test_time_to_contact_brings_one_to_a_stand_at_the_safety_distance() -> None:
    sim = towards_a_wall(steps=600, safety=1.5, time_to_contact=0.8)
    gap = 4.0 - sim.agents.position[0, 0] - sim.agents.radius[0]
    assert gap == pytest.approx(1.5 - 0.8, abs=1e-3)
    assert sim.agents.forward_speed[0] == pytest.approx(0.0, abs=1e-3)


def test_too_near_one_retreats_backwards_facing_what_is_in_front() -> None:
    sim = towards_a_wall(steps=600, safety=1.5, time_to_contact=0.8)
    sim.agents.position[0, 0] = 3.5
    sim.step()
    assert sim.agents.forward_speed[0] == pytest.approx(-0.5)
    assert sim.agents.velocity[0, 0] < 0.0
    assert sim.agents.heading[0, 0] > 0.99


@pytest.mark.parametrize(("mass", "courage"), [(0.0, 0.5), (0.5, 0.5), (1.0, 0.2), (1.0, 0.9), (0.3, 1.0), (0.0, 1.0)])
def test_time_to_rest_stops_heavy_and_bold_ones_in_time_where_time_to_contact_does_not(
    mass: float, courage: float
) -> None:
    def nearest(law: str) -> float:
        world = World(bounds=(-20, -10, 10, 10), walls=[[(4, -9), (4, 9)]], targets={"t": (9, 0)})
        local = Dynamical(
            **{**PAPERS, "walls": Repulsion(strength=0.0), "speed_law": law, "safety": 1.5, "retreat": 0.0}
        )
        traits = {"mass": mass, "courage": courage}
        one = Group("a", positions=[(-8, 0)], goal="t", desired_speed=1.0, sense_radius=6.0, parameters=traits)
        sim = Simulation(world, one, planning=Direct(), local=local, dt=0.05)
        gaps = []
        for _ in range(800):
            sim.step()
            gaps.append(4.0 - sim.agents.position[0, 0] - sim.agents.radius[0])
        return float(min(gaps))

    d1 = (1.5 if courage < 0.5 else 3.0 * (1.0 - courage)) - 1.0
    # With a finite step it comes a little nearer than in continuous time.
    assert nearest("time_to_rest") == pytest.approx(max(d1, 0.05), abs=0.02)
    if mass > 0.25 or d1 < 0.0:
        assert nearest("time_to_contact") < max(d1, 0.05) - 0.04


def test_one_who_comes_to_rest_follows_the_solution_of_its_law() -> None:
    tau, t2c, dt = 1.5, 0.5, 0.01
    local = Dynamical(**{**PAPERS, "walls": Repulsion(strength=0.0), "speed_law": "time_to_rest", "safety": 1.5},
                      time_to_contact=t2c)  # fmt: skip
    world = World(bounds=(-20, -10, 10, 10), walls=[[(4, -9), (4, 9)]], targets={"t": (9, 0)})
    one = Group("a", positions=[(-8, 0)], goal="t", desired_speed=1.0, sense_radius=6.0, parameters={"mass": tau / 3.0})
    sim = Simulation(world, one, planning=Direct(), local=local, dt=dt)
    rest = 1.5 - t2c

    def left() -> float:
        return 4.0 - sim.agents.position[0, 0] - sim.agents.radius[0] - rest

    # It brakes as soon as it would come to rest, at full speed, with no more time to contact than it wants.
    while left() > tau + t2c:
        sim.step()
    start, came = sim.time, left()
    while sim.time < start + 6.0:
        sim.step()
        t = sim.time - start
        solution = (tau**2 * math.exp(-t / tau) - t2c**2 * math.exp(-t / t2c)) / (tau - t2c)
        assert left() == pytest.approx(solution + came - tau - t2c, abs=0.02)


def test_the_constant_law_keeps_the_speed_and_the_derivative_law_slows_before_what_repels() -> None:
    assert towards_a_wall(steps=40, speed_law="constant").agents.forward_speed[0] == pytest.approx(1.0)
    sim = towards_a_wall(steps=40, speed_law="derivative", walls=Repulsion(strength=3.0), competition=False)
    assert 0.0 < sim.agents.forward_speed[0] < 0.8


def test_turning_and_speeding_up_do_not_depend_on_the_time_step() -> None:
    reached = []
    for dt in (0.01, 0.1):
        world = World(bounds=(-10, -10, 2_000, 10), targets={"t": (1_900.0, 0.0)})
        group = Group("a", positions=[(0, 0)], goal="t", parameters={"agility": 0.4, "mass": 0.5})
        sim = Simulation(world, group, local=Dynamical(**PAPERS), dt=dt)
        sim.agents.heading[0] = 0.0, 1.0
        for _ in range(round(1.0 / dt)):
            sim.step()
        reached.append((float(sim.agents.forward_speed[0]), math.atan2(*sim.agents.heading[0, ::-1])))
    assert reached[0][0] == pytest.approx(reached[1][0], rel=1e-9)
    assert reached[0][1] == pytest.approx(reached[1][1], abs=0.03)


def passing_distance(**personality: float) -> float:
    """How near somebody comes to an obstacle beside the way."""
    world = World(
        bounds=(-10, -10, 20, 10), obstacles={"o": Obstacle(radius=0.5, position=(5, 0.1))}, targets={"t": (12, 0)}
    )
    group = Group("a", positions=[(0, 0)], goal="t", sense_radius=5.0, parameters=personality)
    sim = Simulation(world, group, local=Dynamical(**{**PAPERS, "speed_law": "constant"}), dt=0.05)
    nearest = math.inf
    for _ in range(160):
        sim.step()
        nearest = min(nearest, float(np.linalg.norm(sim.agents.position[0] - (5, 0.1))) - 0.7)
    return nearest


def test_the_timid_keep_further_off() -> None:
    assert passing_distance(courage=0.2) > passing_distance(courage=0.5) > passing_distance(courage=0.9)


def test_personality_is_drawn_per_group_and_changes_while_running() -> None:
    world = World(bounds=(-20, -20, 20, 20), targets={"t": (15, 0)})
    drawn = {"courage": Normal(0.5, 0.2, low=0.0, high=1.0), "agility": Uniform(0.2, 0.9)}
    groups = [
        Group("mixed", count=50, region=shapely.box(-20, -20, 0, 20), goal="t", parameters=drawn),
        Group("plain", count=5, region=shapely.box(0, -20, 10, 20), goal="t"),
    ]
    sim = Simulation(world, groups, local=Dynamical())
    assert 0.1 < sim.agents.courage[:50].std() < 0.3
    assert (sim.agents.courage[50:] == 0.5).all()
    sim.at(0.1, lambda s: s.set_parameter("courage", 0.9, group="plain"))
    sim.run(until=0.5)
    assert (sim.agents.courage[50:] == 0.9).all()
    assert sim.agents.courage[:50].std() > 0.1


@pytest.mark.parametrize(("crowding", "expected"), [("ahead", 1.0), ("all", 0.0)])
def test_who_has_a_crowd_behind_keeps_the_target_unless_all_around_are_counted(crowding: str, expected: float) -> None:
    world = World(bounds=(-10, -10, 10, 10), targets={"t": (9, 0)})
    behind = [(-0.7 - 0.6 * row, 0.6 * column - 0.9) for row in range(3) for column in range(4)]
    groups = [Group("first", positions=[(0, 0)], goal="t"), Group("others", positions=behind, goal="none")]
    sim = Simulation(world, groups, local=Dynamical(**{**PAPERS, "crowding": crowding}))
    sim.step()
    assert sim.agents.weight_target[0] == pytest.approx(expected, abs=0.01)


# What never breaks ----------------------------------------------------------------------------------------------------


def tight_spots(dim: int, **parameters: Any) -> Simulation:
    tail = [0.0] * (dim - 2)
    ball = {"o": Obstacle(radius=1.0, position=(3.0, 0.0, *tail))}
    targets = {"t": (8.0, 0.0, *tail)}
    places = [
        *[(0.0, 0.0, *tail)] * 3,  # on top of each other
        (3.0, 0.0, *tail),  # in the middle of an obstacle
        (2.5, 0.2, *tail),  # inside it
        (6.0, 0.0, *tail),  # on a wall
        (6.0, 1.0, *tail),  # on the end of a wall
        (6.0, 3.0, *tail),  # on the line of a wall
        (6.0 + 1e-14, 0.5, *tail),
        (8.0, 0.0, *tail),  # at the target
        (-3.0, 0.0, *tail),
        (-3.0 - 1e-13, 0.0, *tail),
    ]
    if dim == 3:
        world = World.box((-9, -9, -9), (9, 9, 9), obstacles=ball, targets=targets)
    else:
        world = World(bounds=(-9, -9, 9, 9), obstacles=ball, targets=targets, walls=[[(6, -1), (6, 1)]])
    spread = [(0.5 * k - 8.0, 8.0, *tail) for k in range(len(places))]
    sim = Simulation(world, Group("a", positions=spread, goal="t"), local=Dynamical(**parameters), dt=0.05)
    sim.agents.position[:] = places
    return sim


@pytest.mark.parametrize("radius", [0.2, 1e-12, 0.0])
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("variant", [{}, {**PAPERS}, {"speed_law": "derivative", "classes": "apart"}])
def test_tight_spots_and_bodies_of_no_size_give_numbers(dim: int, radius: float, variant: dict[str, Any]) -> None:
    sim = tight_spots(dim, **variant)
    sim.agents.radius[:] = radius
    for _ in range(20):
        sim.step()
        for name in ("position", "velocity", "heading", "turn_rate", "forward_speed", "weight_target", "weights"):
            assert np.isfinite(getattr(sim.agents, name)).all(), name
        np.testing.assert_allclose(np.linalg.norm(sim.agents.heading, axis=1), 1.0)


@pytest.mark.parametrize("variant", [{}, {**PAPERS, "noise": 0.1}, {"classes": "apart", "speed_law": "derivative"}])
def test_the_contract_of_steering_models_is_kept(variant: dict[str, Any]) -> None:
    check_steering(Dynamical(**variant), ids_matter=True)


def busy(threads: int) -> Simulation:
    world = World(
        shapely.box(0, 0, 60, 60),
        walls=[[(30, 10), (30, 50)]],
        obstacles={"o": Obstacle(radius=2.0, position=(40, 30))},
        targets={"t": (55, 30)},
    )
    traits = {name: Uniform(0.1, 0.9) for name in ("agility", "mass", "courage")}
    group = Group("a", count=SMALL_RUN + 200, goal="t", parameters=traits)
    return Simulation(world, group, local=Dynamical(noise=0.2), threads=threads, seed=4, dt=0.1)


def test_one_thread_and_two_and_a_resumed_run_give_the_same_bits(tmp_path: Path) -> None:
    one, two = busy(1), busy(2)
    for _ in range(4):
        one.step()
        two.step()
    two.save(tmp_path / "half.npz")
    resumed = busy(2)
    resumed.restore(tmp_path / "half.npz")
    for sim in (one, two, resumed):
        for _ in range(4):
            sim.step()
    assert one.state_hash() == two.state_hash() == resumed.state_hash()


# Parameters -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"atraction": 1.0}, "did you mean 'attraction'"),
        ({"agents": {"strenght": 2.0}}, "did you mean 'strength'"),
        ({"agents": 2.0}, "agents must be a Repulsion"),
        ({"walls": {"margin": 4.0}}, "margin must be a number from 0 to 3.142 rad"),
        ({"speed_law": "fast"}, "speed_law must be 'constant' or"),
        ({"d0_base": 0.0}, "d0_base must be a positive number"),
        ({"noise": -1.0}, "noise must be a number that is not negative"),
    ],
)
def test_wrong_parameters_are_told_with_the_remedy(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Dynamical(**parameters)


SCENE = """
name = "s"
[world]
bounds = [0.0, 0.0, 9.0, 9.0]
[world.targets]
t = { position = [8.0, 8.0] }
[[groups]]
name = "a"
count = 2
[local]
model = "dynamical"
agents = { strength = 2.0, reach = 0.5 }
"""


def test_tables_in_scenario_files_become_repulsions() -> None:
    sim = parse_scenario(SCENE, source="s.toml", folder=Path()).build()
    model = sim.all_layers()[-1]
    assert model.parameters.agents == Repulsion(strength=2.0, reach=0.5)
    assert model.parameters.walls == Dynamical().parameters.walls
    with pytest.raises(ScenarioError, match=r"local.*did you mean 'strength'"):
        parse_scenario(SCENE.replace("strength", "strengh"), source="s.toml", folder=Path()).build()
