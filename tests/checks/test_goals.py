"""Groups that want to go where there is nothing, or nothing open."""

from __future__ import annotations

import shapely

from tropel import Flocking, Group, Planner, Simulation, Target, World, events
from tropel.contracts import Moment
from tropel.contracts.moment import Guidance

ROOM = shapely.box(0.0, 0.0, 10.0, 10.0)
EXITS = {"west": shapely.box(0.0, 4.0, 1.0, 6.0), "east": shapely.box(9.0, 4.0, 10.0, 6.0)}
PEOPLE = Group("people", count=5, region=shapely.box(2.0, 2.0, 8.0, 8.0))


def told(sim: Simulation) -> list[tuple[str, str]]:
    return [(found.code, found.severity) for found in sim.check()]


def closed_world() -> World:
    world = World(ROOM, exits=EXITS)
    for name in EXITS:
        world.set_exit(name, open=False)
    return world


def test_no_exit_and_no_target() -> None:
    sim = Simulation(World(ROOM), PEOPLE)
    assert told(sim) == [("no_goal", "warning")]
    assert "5 people of group 'people' cannot go to the nearest exit" in sim.check()[0].message
    assert told(Simulation(World(ROOM), Group("people", count=5, goal="none"))) == []
    assert told(Simulation(World(ROOM, targets={"stage": (5.0, 5.0)}), PEOPLE)) == []


def test_a_target_or_a_goal_that_comes_later_is_a_note() -> None:
    sim = Simulation(World(ROOM), PEOPLE)
    sim.at(5.0, events.AddTarget(name="stage", position=(5.0, 5.0)))
    assert told(sim) == [("no_goal", "note")]


def test_planners_of_ones_own_and_flocks_need_no_goal() -> None:
    class Northwards(Planner):
        def direct(self, moment: Moment, out: Guidance) -> None:
            out.directions[moment.members] = 0.0, 1.0

    assert told(Simulation(World(ROOM), PEOPLE, planning=Northwards())) == [("no_goal", "note")]
    assert told(Simulation(World(ROOM), PEOPLE, local=Flocking())) == []


def test_all_exits_closed() -> None:
    assert told(Simulation(closed_world(), PEOPLE)) == [("exits_closed", "warning")]
    one_open = closed_world()
    one_open.set_exit("east", open=True)
    assert told(Simulation(one_open, PEOPLE)) == []


def test_exits_that_open_later_are_a_note_with_the_time() -> None:
    sim = Simulation(closed_world(), PEOPLE)
    sim.at(12.0, events.OpenExit(exit="west"))
    sim.at(9.0, events.OpenExit(exit="east"))
    assert told(sim) == [("exits_closed", "note")]
    assert "until 9 s" in sim.check()[0].message


def test_a_closed_exit_by_name() -> None:
    crowd = Group("people", count=5, region=shapely.box(2.0, 2.0, 8.0, 8.0), goal="west")
    world = closed_world()
    world.set_exit("east", open=True)
    assert told(Simulation(world, crowd)) == [("exits_closed", "warning")]
    world.set_exit("west", open=True)
    assert told(Simulation(world, crowd)) == []
    world.set_exit("west", open=False)
    sim = Simulation(world, crowd)
    sim.at(3.0, events.SetGoal(goal="east"))
    assert told(sim) == [("exits_closed", "note")]


def test_a_target_next_to_closed_exits() -> None:
    world = closed_world()
    world.add_target("stage", Target(position=(5.0, 5.0)))
    crowd = Group("people", count=5, region=shapely.box(2.0, 2.0, 8.0, 8.0), goal="nearest target")
    assert told(Simulation(world, crowd)) == []
