"""Planning around the wait: evacuations are not longer with it than without, and it stops when nobody waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Group, Lattice, PathPlans, Simulation, World
from tropel.events import SetBehaviour
from tropel.planning.flow.path_plan import PathPlan
from tropel.planning.path_plans.bottlenecks import Bottleneck, onward_cells
from tropel.planning.path_plans.detours import Detours, queue_cells
from tropel.world.raster import Raster

Layout = Callable[..., Simulation]


def simulation(world: World, people: Group, *, congestion: Any, seed: int, headway: float) -> Simulation:
    return Simulation(
        world, people, planning=PathPlans(congestion=congestion), local=Lattice(headway=headway), dt=0.25, seed=seed,
        threads=1, watch_collisions=False,
    )  # fmt: skip


def two_doors(south: float, north: float) -> Layout:
    """A room with two doors of these widths [m], and an exit beyond them that is nearer to the southern one."""

    def layout(**options: Any) -> Simulation:
        wall = [0.0, 3.0 - south / 2, 3.0 + south / 2, 9.0 - north / 2, 9.0 + north / 2, 12.0]
        world = World(
            shapely.box(0, 0, 18, 12),
            walls=[[(12, low), (12, high)] for low, high in zip(wall[::2], wall[1::2], strict=True)],
            exits={"out": shapely.box(17.2, 0, 18, 3)},
        )
        return simulation(world, Group("people", count=200, region=shapely.box(1, 0, 11.5, 12)), **options)

    return layout


def near_and_far(**options: Any) -> Simulation:
    """A hall with a door at each end and a crowd at one of them."""
    ends = [[(x, low), (x, high)] for x in (0, 32) for low, high in ((0.0, 3.4), (4.6, 8.0))]
    exits = {"near": shapely.box(-2, 0, -1.2, 8), "far": shapely.box(33.2, 0, 34, 8)}
    world = World(shapely.box(-2, 0, 34, 8), walls=ends, exits=exits)
    return simulation(world, Group("people", count=200, region=shapely.box(0.8, 0, 14, 8)), **options)


def one_door(**options: Any) -> Simulation:
    """There is no other path."""
    world = World(
        shapely.box(0, 0, 12, 8),
        walls=[[(8, 0), (8, 3.4)], [(8, 4.6), (8, 8)]],
        exits={"out": shapely.box(11.2, 0, 12, 8)},
    )
    return simulation(world, Group("people", count=100, region=shapely.box(0, 0, 7.5, 8)), **options)


LAYOUTS = {
    "narrow door near, wide one far": two_doors(1.0, 2.4),
    "wide door near, narrow one far": two_doors(2.4, 1.0),
    "equal doors": two_doors(1.2, 1.2),
    "near and far exit": near_and_far,
}


def evacuation_time(layout: Layout, **options: Any) -> float:
    sim = layout(**options)
    sim.run(until="empty", limit=400.0)
    assert len(sim.agents) == 0
    return sim.time


@pytest.mark.parametrize("headway", [0.0, 0.7])
@pytest.mark.parametrize("name", LAYOUTS)
def test_evacuations_are_not_longer_with_it_than_without(name: str, headway: float) -> None:
    for seed in (1, 2, 3):
        options = {"seed": seed, "headway": headway}
        planned, without = (evacuation_time(LAYOUTS[name], congestion=on, **options) for on in (True, False))
        assert planned <= without


def test_where_a_door_is_the_only_one_it_costs_nothing() -> None:
    times = np.array(
        [[evacuation_time(one_door, congestion=on, seed=s, headway=0.7) for on in (True, False)] for s in (1, 2, 3, 4)]
    )
    planned, without = times.mean(axis=0)
    assert planned < 1.05 * without


def test_the_wait_at_a_queue_is_the_length_that_its_ground_counts_more() -> None:
    """A corridor of one cell's width: the sum is known."""
    free = np.ones((1, 60), dtype=np.bool_)
    goal = np.zeros_like(free)
    goal[0, 59] = True
    raster = Raster(origin=np.zeros(2), cell=0.5, free=free)
    plan = PathPlan(free, goal)
    door = Bottleneck(cell=(0, 30), position=(15.25, 0.25), width=0.5, passage=((15.25, 0.0), (15.25, 0.5)))
    detours = Detours(area=6.0)
    detours.begin({0: plan}, [door], raster, None)
    (queue,) = detours.queues()
    assert queue.tolist() == list(range(24, 30)), "of the square, only what lies before the door"
    assert not detours.update([0])
    assert detours.plans == {}
    assert detours.update([10])
    longer = detours.plans[0].distance - plan.distance
    # In 10 s people walk 13.4 m. At the door half of a move of 0.5 m is left, a twelfth of the 3 m of the queue.
    assert 0.5 * longer[0, 0] == pytest.approx(13.4, abs=0.01)
    assert 0.5 * longer[0, 29] == pytest.approx(13.4 / 12.0, abs=0.01)
    assert (longer[0, 30:] == 0.0).all()
    assert detours.update([0])
    assert detours.plans == {}


def test_a_queue_is_where_the_plan_leads_through_the_bottleneck() -> None:
    """Compared with following the plan from every cell."""
    generator = np.random.default_rng(4)
    for _ in range(5):
        free = generator.random((24, 30)) > 0.15
        free[:, 15] = False
        free[9:13, 15] = True
        goal = np.zeros_like(free)
        goal[11, 29] = free[11, 29] = True
        raster = Raster(origin=np.zeros(2), cell=0.4, free=free)
        plan = PathPlan(free, goal)
        onward = onward_cells(plan.units, plan.moves)
        door = Bottleneck(cell=(11, 15), position=(6.2, 4.4), width=1.6, passage=((6.2, 3.6), (6.2, 5.2)))
        gate = {row * 30 + 15 for row in range(9, 13)}
        expected = []
        for row, column in np.argwhere(free).tolist():
            centre = np.array([(column + 0.5) * 0.4, (row + 0.5) * 0.4])
            if (np.abs(centre - door.position) <= 2.0).all() and row * 30 + column not in gate:
                now = row * 30 + column
                for _ in range(20):
                    now = int(onward[now])
                if now != row * 30 + column and column < 15 and plan.units[row, column] < 2**62:
                    expected.append(row * 30 + column)
        assert sorted(queue_cells(door, onward, raster, 4.0).tolist()) == expected


def test_it_can_be_switched_off_during_a_run_and_a_resumed_run_is_the_same(tmp_path: Path) -> None:
    sim = two_doors(1.0, 2.4)(congestion=True, seed=3, headway=0.7)
    sim.run(until=12.0)
    sim.save(tmp_path / "checkpoint.npz")
    lengths = sim.ground.units[list(sim.ground.plan_of_goal.values())].copy()
    sim.run(until=20.0)
    later = sim.state_hash()
    sim.restore(tmp_path / "checkpoint.npz")
    sim.run(until=20.0)
    assert sim.state_hash() == later
    other = two_doors(1.0, 2.4)(congestion=True, seed=3, headway=0.7)
    other.restore(tmp_path / "checkpoint.npz")
    other.run(until=20.0)
    assert other.state_hash() == later
    plain = two_doors(1.0, 2.4)(congestion=False, seed=3, headway=0.7)
    plain.step()
    without = plain.ground.units[list(plain.ground.plan_of_goal.values())]
    assert (lengths > without).any()
    sim.at(sim.time, SetBehaviour(name="congestion", on=False))
    sim.step()
    np.testing.assert_array_equal(sim.ground.units[list(sim.ground.plan_of_goal.values())], without)
