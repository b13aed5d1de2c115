"""Planners on fields keep up with doors, obstacles, exits and targets, and say what is wrong before the first step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely

from tropel import Door, Group, Obstacle, Simulation, Target, World, events
from tropel.contracts import Guidance
from tropel.errors import GeometryError, ParameterError
from tropel.planning.fields.field import GridField
from tropel.planning.fields.planner import FieldPlanner
from tropel.planning.flow.model import FlowField
from tropel.planning.harmonic import Harmonic
from tropel.world.raster import Raster


class CountsSolves(FlowField):
    """How often it solves anew and how often it repairs."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.solved = self.repaired = 0

    def solve_many(self, raster: Raster, goals: object) -> list[GridField]:
        fields = super().solve_many(raster, goals)  # type: ignore[arg-type]
        self.solved += len(fields)
        return fields

    def repair(self, field: GridField, raster: Raster, goal: np.ndarray) -> GridField:
        self.repaired += 1
        return super().repair(field, raster, goal)


def two_doors() -> World:
    """Two rooms joined by two doors, an exit in the right one."""
    wall = [[(6, 0), (6, 2)], [(6, 3), (6, 9)], [(6, 10), (6, 12)]]
    return World(
        shapely.box(0, 0, 12, 12),
        walls=wall,
        doors={"near": Door([(6, 2), (6, 3)], open=True), "far": Door([(6, 9), (6, 10)], open=True)},
        exits={"out": shapely.box(11, 1, 12, 4)},
    )


def test_people_turn_round_when_a_door_closes_before_them() -> None:
    people = Group("people", positions=[(4.0, 2.5), (3.0, 3.0)], desired_speed=1.0)
    planner = CountsSolves()
    sim = Simulation(two_doors(), people, planning=planner, dt=0.1)
    sim.at(1.0, events.CloseDoor(door="near"))
    sim.run(until=1.0)
    assert (sim.agents.velocity[:, 0] > 0.5).all()
    sim.run(until=3.5)
    assert (sim.agents.velocity[:, 1] > 0.5).all(), "they walk up to the other door"
    assert sim.run(until="empty", limit=60.0).remaining == 0
    assert (planner.solved, planner.repaired) == (1, 1)


def test_people_wait_when_every_door_is_closed_and_go_on_when_one_opens() -> None:
    people = Group("people", positions=[(4.0, 2.5), (3.0, 3.0)])
    planner = FlowField()
    sim = Simulation(two_doors(), people, planning=planner, dt=0.1)
    sim.at(0.0, events.CloseDoor(door="near"))
    sim.at(0.0, events.CloseDoor(door="far"))
    sim.run(until=5.0)
    assert (sim.agents.velocity == 0.0).all()
    assert "no path to the goal" in str(planner.unreachable()["nearest exit"])
    sim.at(6.0, events.OpenDoor(door="far"))
    assert sim.run(until="empty", limit=60.0).remaining == 0
    assert "every free cell" in str(planner.unreachable()["nearest exit"])


def test_an_obstacle_put_into_the_door_sends_people_to_the_other_one() -> None:
    sim = Simulation(two_doors(), Group("one", positions=[(2.0, 2.5)]), planning=FlowField(), dt=0.1)
    sim.at(0.5, events.AddObstacle(name="cart", radius=0.6, position=(6.0, 2.5)))
    highest = 0.0
    while len(sim.agents) and sim.time < 60.0:
        highest = max(highest, float(sim.agents.position[0, 1]))
        sim.step()
    assert len(sim.agents) == 0
    assert highest > 8.5


def test_directions_are_a_function_of_the_world_whatever_happened_before() -> None:
    points = np.random.default_rng(1).uniform(0.5, 11.5, (400, 2))
    people = Group("people", positions=points, radius=1e-3)
    told = []
    for history in ((), ("near",), ("near", "far", "near", "far")):
        world = two_doors()
        planner = FlowField()
        sim = Simulation(world, people, planning=planner)
        out = Guidance(directions=np.zeros_like(sim.agents.position))
        for name in history:
            world.set_door(name, open=not world.doors[name].open)
            planner.direct(sim.moment(), out)
        for name in world.doors:
            world.set_door(name, open=True)
        planner.direct(sim.moment(), out)
        told.append(out.directions.copy())
    np.testing.assert_array_equal(told[0], told[1])
    np.testing.assert_array_equal(told[0], told[2])


def test_the_nearest_exit_is_the_nearest_along_the_way() -> None:
    # Exit "behind" is 2 m away as the crow flies, behind a wall; "far" is 6 m away.
    world = World(
        shapely.box(0, 0, 20, 10),
        walls=[[(8, 0), (8, 9)]],
        exits={"behind": shapely.box(8.5, 0, 9.5, 1), "far": shapely.box(0, 0, 1, 1)},
    )
    sim = Simulation(world, Group("one", positions=[(7.0, 0.5)]), planning=FlowField(), dt=0.1)
    assert sim.run(until="empty", limit=60.0).exits == {"far": 1}


def test_a_goal_in_sight_does_not_lure_from_a_nearer_one_round_the_corner() -> None:
    # From (1, 8) the exit "seen" is in clear sight 18 m away, "hidden" is round a corner 5 m away.
    world = World(
        shapely.box(0, 0, 20, 10),
        walls=[[(2, 7), (20, 7)]],
        exits={"seen": shapely.box(19, 7.5, 20, 9.5), "hidden": shapely.box(4, 4, 6, 6)},
    )
    sim = Simulation(world, Group("one", positions=[(1.0, 8.0)]), planning=FlowField(), dt=0.1)
    assert sim.run(until="empty", limit=60.0).exits == {"hidden": 1}


def test_a_closed_exit_is_no_nearest_exit() -> None:
    world = World(shapely.box(0, 0, 20, 4), exits={"left": shapely.box(0, 1, 1, 3), "right": shapely.box(19, 1, 20, 3)})
    sim = Simulation(world, Group("one", positions=[(4.0, 2.0)]), planning=FlowField(), dt=0.1)
    sim.at(1.0, events.CloseExit(exit="left"))
    assert sim.run(until="empty", limit=60.0).exits == {"right": 1}


def test_a_moving_target_is_followed_round_a_wall() -> None:
    target = Target(motion=lambda t: (9.0, 2.0 + 0.3 * min(t, 20.0)), radius=0.4, absorbs=True)
    world = World(shapely.box(0, 0, 12, 10), walls=[[(5, 0), (5, 8)]], targets={"guide": target})
    sim = Simulation(world, Group("one", positions=[(2.0, 1.0)], goal="guide"), planning=FlowField(), dt=0.1)
    assert sim.run(until="empty", limit=40.0).remaining == 0


def test_in_sight_of_the_goal_the_direction_is_exactly_the_straight_line() -> None:
    world = World(shapely.box(0, 0, 20, 20), targets={"spot": Target(position=(13.3, 17.1), radius=0.2)})
    points = np.random.default_rng(2).uniform(2.0, 18.0, (300, 2))
    people = Group("people", positions=points, radius=1e-3, goal="spot")
    errors = {}
    for look in (True, False):
        planner = FlowField(line_of_sight=look)
        sim = Simulation(world, people, planning=planner)
        out = Guidance(directions=np.zeros_like(points))
        planner.direct(sim.moment(), out)
        straight = np.array([13.3, 17.1]) - points
        far = np.linalg.norm(straight, axis=1) > 1.0
        straight /= np.linalg.norm(straight, axis=1, keepdims=True)
        errors[look] = np.abs(out.directions - straight)[far].max()
    assert errors[True] < 1e-12
    assert errors[False] > 1e-3


def test_those_without_a_goal_stand() -> None:
    world = World(shapely.box(0, 0, 8, 8), exits={"out": shapely.box(7, 3, 8, 5)})
    people = [Group("walk", positions=[(2.0, 2.0)]), Group("stay", positions=[(2.0, 6.0)], goal="none")]
    sim = Simulation(world, people, planning=FlowField(), dt=0.1)
    sim.run(until=2.0)
    assert np.linalg.norm(sim.agents.velocity, axis=1) == pytest.approx([1.34, 0.0], abs=0.05)


@pytest.mark.parametrize("depth", [0.22, 0.3, 1.0])
def test_exits_thinner_than_the_clearance_are_found(depth: float) -> None:
    world = World(shapely.box(0, 0, 10, 6), exits={"out": shapely.box(10 - depth, 2, 10, 4)})
    sim = Simulation(world, Group("people", count=10, region=shapely.box(0, 0, 8, 6)), planning=FlowField(), dt=0.1)
    assert sim.run(until="empty", limit=40.0).remaining == 0


@pytest.mark.parametrize(
    ("targets", "obstacles"),
    [
        ({"spot": (3.0, 3.0)}, {"pillar": Obstacle(radius=1.5, position=(3.0, 3.0))}),
        ({"spot": (0.02, 0.02)}, {"pillar": Obstacle(radius=0.8, position=(0.3, 0.3))}),
    ],
)
def test_a_goal_that_cannot_be_reached_from_any_free_cell_is_an_error(targets: object, obstacles: object) -> None:
    world = World(shapely.box(0, 0, 8, 8), targets=targets, obstacles=obstacles)  # type: ignore[arg-type]
    people = Group("people", positions=[(7.0, 7.0)], goal="spot")
    with pytest.raises(GeometryError, match=r"target 'spot' at .* inside a wall\? Move it, or make cell"):
        Simulation(world, people, planning=FlowField())


def test_a_map_larger_than_memory_is_an_error_before_the_first_step() -> None:
    world = World(shapely.box(0, 0, 5e6, 5e6), exits={"out": shapely.box(0, 0, 9, 9)})
    with pytest.raises(GeometryError, match=r"GiB of memory.*; use cells of [\d.]+ m or more"):
        Simulation(world, Group("people", positions=[(20.0, 20.0)]), planning=FlowField())


def test_an_unknown_goal_is_named() -> None:
    planner = FlowField()
    Simulation(two_doors(), Group("one", positions=[(2.0, 2.0)]), planning=planner)
    with pytest.raises(ParameterError, match="did you mean 'out'"):
        planner.field("outt")


class Compass(FieldPlanner):
    """The smallest field of one's own: everybody along x; counts how often it is asked."""

    asked = 0

    def solve(self, raster: Raster, goal: np.ndarray) -> GridField:
        type(self).asked += 1
        vectors = np.zeros((*raster.shape, raster.dim))
        vectors[..., 0] = 1.0
        return GridField(raster=raster, goal=goal, value=np.zeros(raster.shape), vectors=vectors)


def test_fields_are_kept_on_disk_and_found_by_geometry_and_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TROPEL_PLAN_CACHE", str(tmp_path))
    Compass.asked = 0

    def run(world: World, cache: bool = True, **options: float) -> np.ndarray:
        planner = Compass(cache=cache, **options)
        sim = Simulation(world, Group("one", positions=[(2.0, 5.0)]), planning=planner)
        sim.run(until=0.5)
        return sim.agents.position

    first = run(two_doors())
    assert Compass.asked == 1
    np.testing.assert_array_equal(run(two_doors()), first)
    assert Compass.asked == 1
    run(two_doors(), cell=0.25)
    assert Compass.asked == 2
    run(two_doors(), cache=False)
    assert Compass.asked == 3
    closed = two_doors()
    closed.set_door("near", open=False)
    run(closed)
    assert Compass.asked == 4


def test_a_planner_of_ones_own_keeps_nothing_on_disk_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TROPEL_PLAN_CACHE", str(tmp_path))
    Simulation(two_doors(), Group("one", positions=[(2.0, 5.0)]), planning=Compass())
    assert list(tmp_path.iterdir()) == []
    assert Harmonic().cache


def test_a_field_from_disk_is_followed_like_the_one_that_was_solved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TROPEL_PLAN_CACHE", str(tmp_path))
    points = np.random.default_rng(3).uniform(0.5, 11.5, (200, 2))
    told, hashes = [], set()
    for _ in range(2):
        planner = CountsSolves(cache=True)
        sim = Simulation(two_doors(), Group("people", positions=[(1.0, 8.0), (4.0, 5.0)]), planning=planner, dt=0.1)
        told.append(planner.field("nearest exit").sample(points, sim.world))
        sim.run(until=4.0)
        hashes.add(sim.state_hash())
    assert planner.solved == 0
    np.testing.assert_array_equal(told[0], told[1])
    assert len(hashes) == 1


def test_what_is_unreachable_is_told_of_the_world_as_it_is_now() -> None:
    world = two_doors()
    planner = FlowField()
    Simulation(world, Group("one", positions=[(2.0, 5.0)]), planning=planner)
    for name in world.doors:
        world.set_door(name, open=False)
    assert planner.unreachable()["nearest exit"].cells > 500


def test_a_field_that_was_handed_out_stays_as_it_was() -> None:
    world = two_doors()
    planner = FlowField()
    Simulation(world, Group("one", positions=[(2.0, 5.0)]), planning=planner)
    field = planner.field("nearest exit")
    before = [array.copy() for array in (field.vectors, field.value, field.goal)]
    world.set_door("near", open=False)
    world.set_exit("out", open=False)
    assert not np.array_equal(planner.field("nearest exit").vectors, before[0])
    for array, copy in zip((field.vectors, field.value, field.goal), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_kind_of_field_that_is_never_solved_cannot_be_made() -> None:
    class Unsolved(FieldPlanner):
        pass

    with pytest.raises(TypeError, match=r"Unsolved.*solve"):
        Unsolved()
