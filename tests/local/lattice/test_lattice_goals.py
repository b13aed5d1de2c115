"""Where lattice agents go to and how they leave: exits and targets of all sizes, open and closed, old and new."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Group, Lattice, PathPlans, Simulation, Target, World, events

CELL = 0.4


def simulate(world: World, *groups: Group) -> Simulation:
    return Simulation(world, list(groups), planning=PathPlans(), local=Lattice(headway=0.0), dt=0.1, seed=2)


def hall(**parts: Any) -> World:
    return World(shapely.box(0, 0, 8, 4), **parts)


def unique_cells(sim: Simulation) -> int:
    return len(np.unique(np.floor(sim.agents.position / CELL + 1e-9), axis=0))


@pytest.mark.parametrize(
    "exit",
    [
        shapely.box(7.6, 1.6, 8.0, 2.4),  # two cells
        shapely.box(7.97, 1.95, 8.0, 2.05),  # a slit in the wall, smaller than a cell
        shapely.box(7.85, 0.0, 8.2, 4.0),  # centres of all its cells are outside of it
        shapely.box(3.99, 2.01, 4.01, 2.03),  # in the middle of the hall, smaller than a cell
        shapely.Polygon([(7.2, 4.0), (8.0, 3.2), (8.0, 4.0)]),  # cuts cells
        shapely.box(7.9, 0.0, 9.0, 4.0),  # mostly outside of the walkable area
    ],
)
def test_everybody_leaves_through_exits_of_any_size(exit: shapely.Polygon) -> None:
    for goal in ("nearest exit", "out"):
        sim = simulate(hall(exits={"out": exit}), Group("people", count=60, goal=goal))
        while len(sim.agents) and sim.time < 120.0:
            sim.step()
            assert unique_cells(sim) == len(sim.agents)
        assert len(sim.agents) == 0
        assert sorted(sim.population.departures()["id"].tolist()) == list(range(60))


@pytest.mark.parametrize("radius", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("goal", ["well", "nearest target"])
def test_targets_that_absorb_take_everybody_in(radius: float, goal: str) -> None:
    world = hall(targets={"well": Target(position=(6.03, 2.11), radius=radius, absorbs=True)})
    sim = simulate(world, Group("people", count=30, goal=goal))
    sim.run(until="empty", limit=60.0)
    assert len(sim.agents) == 0


def test_people_stand_together_at_a_target_that_does_not_absorb() -> None:
    sim = simulate(
        hall(targets={"bar": Target(position=(6.2, 2.2), radius=0.1)}), Group("people", count=25, goal="bar")
    )
    sim.run(until=20.0)
    assert len(sim.agents) == unique_cells(sim) == 25
    away = np.linalg.norm(sim.agents.position - (6.2, 2.2), axis=1)
    assert away.min() < 1e-9
    assert away.mean() < 2.0


def test_nearest_target_takes_in_only_where_it_absorbs() -> None:
    world = hall(
        targets={
            "bar": Target(position=(1.0, 2.1), radius=0.0),
            "well": Target(position=(7.0, 2.1), radius=0.0, absorbs=True),
        }
    )
    sim = simulate(world, Group("people", positions=[(1.8, 2.2), (6.2, 2.2)], goal="nearest target"))
    sim.run(until=10.0)
    assert sim.agents.id.tolist() == [0]
    np.testing.assert_allclose(np.mod(sim.agents.position / CELL, 1.0), 0.5)


@pytest.mark.parametrize("exit", [shapely.box(7.6, 0.8, 8.0, 3.2), shapely.box(7.97, 1.95, 8.0, 2.05)])
def test_who_was_told_to_use_a_closed_exit_waits_on_cells_before_it(exit: shapely.Polygon) -> None:
    world = hall(exits={"out": exit})
    world.set_exit("out", open=False)
    sim = simulate(world, Group("people", count=40, goal="out"))
    for _ in range(150):
        sim.step()
        assert unique_cells(sim) == 40
    np.testing.assert_allclose(np.mod(sim.agents.position / CELL, 1.0), 0.5)
    sim.at(sim.time, events.OpenExit(exit="out"))
    sim.run(until="empty", limit=sim.time + 60.0)
    assert len(sim.agents) == 0


def test_nearest_exit_is_the_nearest_open_one_along_the_way_and_assigned_exits_are_kept() -> None:
    world = hall(
        walls=[[(6.2, 0.0), (6.2, 3.6)]],
        exits={"west": shapely.box(0, 0, 0.4, 4), "east": shapely.box(7.6, 0, 8, 0.8)},
    )
    sim = simulate(
        world,
        # As the crow flies nearer to the east, along the way nearer to the west.
        Group("free", positions=[(4.6, 0.6)]),
        Group("told", positions=[(1.0, 2.0)], goal="east"),
    )
    sim.run(until="empty", limit=30.0)
    left = sim.population.departures()
    assert dict(zip(left["id"].tolist(), left["goal"].tolist(), strict=True)) == {0: 0, 1: 1}


def test_an_exit_that_closes_sends_people_to_another_and_back_when_it_opens() -> None:
    world = hall(exits={"west": shapely.box(0, 0, 0.4, 4), "east": shapely.box(7.6, 0, 8, 4)})
    sim = simulate(world, Group("people", positions=[(2.2, 2.2)], desired_speed=1.0))
    sim.at(0.8, events.CloseExit(exit="west"))
    sim.at(2.8, events.OpenExit(exit="west"))
    way = []
    while len(sim.agents):
        way.append(float(sim.agents.position[0, 0]))
        sim.step()
    turn = int(np.argmax(way))
    assert way[8] < way[0]
    assert way[turn] > way[8]
    assert sim.population.departures()["goal"].tolist() == [0]


def test_without_an_open_exit_everybody_stands_and_nobody_is_doubled() -> None:
    world = hall(exits={"west": shapely.box(0, 0, 0.4, 4)})
    sim = simulate(world, Group("people", count=20))
    sim.at(0.5, events.CloseExit(exit="west"))
    sim.run(until=1.0)
    before = sim.agents.position.copy()
    sim.run(until=2.0)
    np.testing.assert_array_equal(sim.agents.position, before)


def test_a_target_that_is_added_or_moved_while_running_gets_a_plan() -> None:
    sim = simulate(hall(), Group("people", positions=[(1.0, 1.0)], goal="none"), Group("others", count=0, goal="none"))
    sim.at(0.5, events.AddTarget(name="new", position=(7.0, 3.0), radius=0.1))
    sim.at(1.0, events.SetGoal(goal="new", group="people"))
    sim.at(9.0, events.MoveTarget(name="new", position=(1.0, 3.0)))
    sim.run(until=1.0)
    np.testing.assert_allclose(sim.agents.position, [[1.0, 1.0]])
    sim.run(until=8.0)
    np.testing.assert_allclose(sim.agents.position, [[7.0, 3.0]])
    sim.run(until=16.0)
    np.testing.assert_allclose(sim.agents.position, [[1.0, 3.0]])


@pytest.mark.filterwarnings("ignore:.*have no path to")
def test_nearest_target_begins_to_mean_something_when_the_first_target_is_added() -> None:
    sim = simulate(hall(), Group("people", positions=[(1.0, 1.0)], goal="nearest target"))
    sim.run(until=1.0)
    np.testing.assert_allclose(sim.agents.position, [[1.0, 1.0]])
    sim.at(1.0, events.AddTarget(name="new", position=(7.0, 3.0), radius=0.1))
    sim.run(until=9.0)
    np.testing.assert_allclose(sim.agents.position, [[7.0, 3.0]])


def test_nobody_at_all_is_a_run_too_and_newcomers_find_their_way() -> None:
    sim = simulate(hall(exits={"out": shapely.box(7.6, 0, 8, 4)}), Group("people", count=0))
    sim.step()
    sim.add_agents("people", count=5)
    sim.run(until="empty", limit=20.0)
    assert len(sim.population.departures()["id"]) == 5
    sim.step()
    sim.add_agents("people", count=5)
    sim.step()
    assert len(sim.agents) > 0
