"""Path-plan layers: the ways of value iteration, on the cells that people stand on, up to date with the world."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Door, Group, Hazard, Lattice, Obstacle, PathPlans, Seek, Simulation, Target, World, events
from tropel.errors import GeometryError
from tropel.world.ground import Filter, Ground
from tropel.world.raster import lattice_cells

FAR = 1 << 62


def hall(**parts: Any) -> World:
    given = {
        "walls": [[(4.2, 0), (4.2, 3.0)]],
        "doors": {"door": Door([(4.2, 3.0), (4.2, 4.8)], open=True)},
        "exits": {"west": shapely.box(0, 0, 0.4, 1.2), "east": shapely.box(7.6, 2, 8, 4)},
        "targets": {"bar": Target(position=(6.2, 1.0), radius=0.3)},
    } | parts
    return World(shapely.box(0, 0, 8, 4.8), **given)


def simulate(world: World, *goals: str, **plans: Any) -> Simulation:
    groups = [Group(f"to {goal}", count=3, goal=goal) for goal in goals]
    return Simulation(world, groups, planning=PathPlans(**plans), local=Lattice(), dt=0.2, seed=1)


def distances(terrain: Ground, goal: int) -> np.ndarray:
    units = terrain.units[terrain.plan_of_goal[goal]]
    return np.where(units < FAR, units / 2744210, np.inf)


def value_iteration(
    free: np.ndarray, goal: np.ndarray, *, gamma: float, equal_moves: bool, corner_cutting: bool
) -> np.ndarray:
    """The paper's: V(s) = max over a of gamma^t(a) V(T(s, a)), with V = 1 on the goal, until nothing changes."""
    rows, columns = free.shape
    value = goal.astype(float)
    wide = np.zeros((rows + 2, columns + 2), dtype=bool)
    wide[1:-1, 1:-1] = free
    while True:
        padded = np.zeros((rows + 2, columns + 2))
        padded[1:-1, 1:-1] = value
        best = value.copy()
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if (dy, dx) == (0, 0):
                    continue
                there = (slice(1 + dy, rows + 1 + dy), slice(1 + dx, columns + 1 + dx))
                beside = wide[1 + dy : rows + 1 + dy, 1:-1] & wide[1:-1, 1 + dx : columns + 1 + dx]
                allowed = free & wide[there] & (beside | corner_cutting | (dy == 0) | (dx == 0))
                time = 1.0 if equal_moves else math.hypot(dy, dx)
                best = np.maximum(best, np.where(allowed, gamma**time * padded[there], 0.0))
        if np.allclose(best, value, rtol=1e-13, atol=0.0):
            return best
        value = best


@pytest.mark.parametrize(("equal_moves", "corner_cutting"), [(False, False), (True, False), (False, True)])
def test_layers_are_the_fixed_point_of_value_iteration(equal_moves: bool, corner_cutting: bool) -> None:
    generator = np.random.default_rng(3)
    blocks = {
        f"block {k}": Obstacle(radius=0.1, position=tuple(place))
        for k, place in enumerate((0.2 + 0.4 * generator.integers(0, (20, 12), (40, 2))).tolist())
    }
    world = hall(obstacles=blocks, targets={})
    sim = simulate(world, "east", "west", equal_moves=equal_moves, corner_cutting=corner_cutting, gamma=0.7)
    terrain = sim.ground
    free = lattice_cells(world).free
    centres = terrain.raster.centre(np.argwhere(np.ones_like(free)))
    for name, number in (("west", 0), ("east", 1)):
        inside = shapely.contains_xy(world.exits[name].polygon, *centres.T).reshape(free.shape) & free
        assert inside.any()
        expected = value_iteration(
            free, inside, gamma=0.7, equal_moves=equal_moves, corner_cutting=corner_cutting
        )  # fmt: skip
        got = np.exp(terrain.log_gamma * distances(terrain, number))
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-300)
    assert len(sim.agents) == 6


def same_as_fresh(sim: Simulation) -> None:
    """The layers on the ground are those that a new planner lays in the world as it is."""
    kept = sim.ground
    fresh = PathPlans()
    fresh.prepare(sim.moment())
    new = fresh.ground
    assert new is not kept is not None
    np.testing.assert_array_equal(kept.raster.free, new.raster.free)
    np.testing.assert_array_equal(kept.moves, new.moves)
    assert set(new.plan_of_goal) <= set(kept.plan_of_goal)
    for goal, plan in new.plan_of_goal.items():
        np.testing.assert_array_equal(kept.units[kept.plan_of_goal[goal]], new.units[plan], err_msg=f"goal {goal}")


CHANGES: list[Any] = [
    events.CloseDoor(door="door"),
    events.AddObstacle(name="rubble", radius=0.9, position=(6.0, 3.0)),
    events.AddTarget(name="new", position=(1.0, 4.0)),
    events.SetGoal(goal="new", group="to bar"),
    events.MoveTarget(name="bar", position=(1.0, 3.0)),
    events.SetGoal(goal="bar", group="to west"),
    events.OpenDoor(door="door"),
    events.MoveObstacle(name="rubble", position=(2.0, 2.0)),
    events.CloseExit(exit="east"),
    events.SetGoal(goal="nearest exit", group="to east"),
    events.RemoveObstacle(name="rubble"),
    events.OpenExit(exit="east"),
    events.SetGoal(goal="nearest target"),
]


@pytest.mark.filterwarnings("ignore:.*have no path to")
def test_after_every_change_of_the_world_the_layers_are_those_of_a_fresh_plan() -> None:
    sim = simulate(hall(), "west", "east", "bar")
    for event in CHANGES:
        sim.at(sim.time, event)
        sim.step()
        same_as_fresh(sim)
        sim.step()


@pytest.mark.filterwarnings("ignore:.*have no path to")
def test_a_closed_door_takes_the_way_and_an_open_one_gives_it_back() -> None:
    sim = simulate(hall(), "west")
    before = distances(sim.ground, 0).copy()
    assert np.isfinite(before[lattice_cells(sim.world).free]).all()
    sim.at(sim.time, events.CloseDoor(door="door"))
    sim.step()
    assert np.isinf(distances(sim.ground, 0)[:, 11:]).all()
    sim.at(sim.time, events.OpenDoor(door="door"))
    sim.step()
    np.testing.assert_array_equal(distances(sim.ground, 0), before)


def test_filters_and_the_crowd_stay_when_a_plan_is_added() -> None:
    sim = simulate(hall(), "west")
    filter_ = Filter(row=0, column=0, log_value=np.zeros((2, 2)))
    sim.ground.set_filter("mine", filter_)
    occupied = sim.layers.models[0].occupied
    sim.set_goal("bar")
    sim.step()
    assert sim.ground.filters == {"mine": filter_}
    assert sim.layers.models[0].occupied is occupied
    assert occupied.any()
    assert len(sim.ground.units) == 2


def test_there_is_one_layer_per_destination_however_many() -> None:
    targets = {f"seat {k}": Target(position=(0.6 + 0.8 * (k % 8), 0.6 + 0.8 * (k // 8)), radius=0.1) for k in range(40)}
    world = World(shapely.box(0, 0, 8, 4.8), targets=targets)
    groups = [Group(f"guest {k}", count=1, goal=f"seat {k}") for k in range(40)]
    sim = Simulation(world, groups, planning=PathPlans(), local=Lattice(), dt=0.2, seed=1)
    assert sim.ground.units.shape == (40, 12, 20)
    sim.run(until=30.0)
    places = np.array([targets[f"seat {k}"].position for k in range(40)])
    there = np.linalg.norm(sim.agents.position - places, axis=1) < 0.3
    assert there.mean() > 0.75  # some still look for a way between those who sit


def test_continuous_agents_follow_the_same_plan() -> None:
    world = hall()
    groups = [Group("walkers", count=10, goal="west"), Group("people", count=10, goal="west")]
    sim = Simulation(
        world, groups, planning=PathPlans(), local={"walkers": Seek(), "people": Lattice()}, dt=0.1, seed=1
    )
    sim.run(until="empty", limit=60.0)
    assert len(sim.agents) == 0


def test_terrain_makes_ways_longer_and_people_go_round() -> None:
    def mud(points: np.ndarray) -> np.ndarray:
        return np.where((points[:, 0] > 3.0) & (points[:, 0] < 5.0) & (points[:, 1] < 3.6), 20.0, 1.0)

    ways = []
    for terrain in (None, mud):
        world = World(shapely.box(0, 0, 8, 4.8), targets={"there": Target(position=(7.8, 0.2), radius=0.1)})
        sim = Simulation(
            world, Group("walker", positions=[(0.2, 0.2)], goal="there"), planning=PathPlans(terrain=terrain),
            local=Lattice(), dt=0.2, seed=1,
        )  # fmt: skip
        highest = 0.0
        while sim.time < 14.0:
            sim.step()
            highest = max(highest, float(sim.agents.position[0, 1]))
        np.testing.assert_allclose(sim.agents.position, [[7.8, 0.2]])
        ways.append(highest)
    assert ways[0] < 0.5
    assert ways[1] > 3.6


def test_an_exit_that_is_on_fire_is_used_again_when_the_fire_is_out() -> None:
    fire = Hazard(inner=2.2, position=(7.8, 3.0), replan=True, until=4.0)
    world = hall(hazards={"fire": fire}, walls=[])
    people = Group("people", count=6, goal="east", region=shapely.box(0, 0, 3, 4.8))
    with pytest.warns(UserWarning, match="6 of 6 agents have no path to 'east' as the world is now"):
        sim = Simulation(world, people, planning=PathPlans(), local=Lattice(), dt=0.2, seed=1)
    sim.run(until=3.8)
    assert len(sim.agents) == 6
    summary = sim.run(until="empty", limit=30.0)
    assert (summary.evacuated, summary.deaths) == (6, 0)


def test_people_can_be_sent_to_an_exit_that_is_on_fire() -> None:
    sim = simulate(hall(walls=[]), "bar")
    sim.at(0.4, events.AddHazard(name="fire", inner=2.2, position=(7.8, 3.0), replan=True))
    sim.at(0.8, events.SetGoal(goal="east"))
    sim.run(until=1.2)
    assert len(sim.agents) + sim.run(until=1.4).evacuated == 3


def test_an_exit_that_nobody_fits_through_is_an_error_also_when_there_is_fire_elsewhere() -> None:
    far = Hazard(inner=0.3, position=(0.4, 4.4), replan=True)
    shape = shapely.box(0, 0, 8, 4.8) | shapely.box(8, 2, 11, 2.1)
    world = World(shape, exits={"east": shapely.box(10.5, 2, 11, 2.1)}, hazards={"fire": far})
    with pytest.raises(GeometryError, match=r"exit 'east' .* cannot be planned for"):
        simulate(world, "east")
