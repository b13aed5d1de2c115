"""Planners plan with what agents believe: fields, harmonic fields, roadmaps and rooms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

import tropel
from tropel.contracts import Moment
from tropel.events import AddHazard, AddObstacle, Announce, CloseDoor, CloseExit, OpenDoor, RemoveHazard
from tropel.knowing.believing import distinct
from tropel.knowing.things import Kind, Things
from tropel.world.believed import BelievedWorld, Blocked

PLANNERS = {
    "flow field": lambda: tropel.FlowField(),
    "harmonic": lambda: tropel.Harmonic(cell=0.5),
    "roadmap": lambda: tropel.Roadmap(samples=150),
    "rooms": lambda: tropel.Rooms(samples=40),
    "rooms, doors seen": lambda: tropel.Rooms(samples=40, doors="seen"),
}


def two_ways() -> tropel.World:
    """A short way through `near` and a long one through `far`, from the left half to the right."""
    return tropel.World(
        shapely.box(0.0, 0.0, 20.0, 20.0),
        walls=[[(10.0, 0.0), (10.0, 1.0)], [(10.0, 4.0), (10.0, 16.0)], [(10.0, 19.0), (10.0, 20.0)]],
        doors={
            "near": tropel.Door([(10.0, 1.0), (10.0, 4.0)], open=True),
            "far": tropel.Door([(10.0, 16.0), (10.0, 19.0)], open=True),
        },
        exits={"out": shapely.box(18.0, 1.0, 19.5, 4.0)},
        regions={"start": shapely.box(2.0, 2.0, 5.0, 5.0)},
    )


def people(planner: Any, knowledge: Any, *, count: int = 2, world: tropel.World | None = None) -> tropel.Simulation:
    group = tropel.Group("a", positions=[(4.0 - 0.6 * k, 3.0) for k in range(count)], goal="out")
    return tropel.Simulation(world or two_ways(), group, planning=planner, knowledge=knowledge, seed=2, dt=0.1)


def way_taken(sim: tropel.Simulation, limit: float = 60.0) -> list[str]:
    """Through which door each agent has left, by id."""
    through: dict[int, str] = {}
    while len(sim.agents) and sim.time < limit:
        before = dict(zip(sim.agents.id.tolist(), sim.agents.position.tolist(), strict=True))
        sim.step()
        for number, (x, y) in zip(sim.agents.id.tolist(), sim.agents.position.tolist(), strict=True):
            if before.get(number, (20.0, 0.0))[0] < 10.0 <= x:
                through[number] = "near" if y < 10.0 else "far"
    return [through.get(number, "none") for number in range(len(through) or 1)]


@pytest.mark.parametrize("name", PLANNERS)
def test_plans_follow_beliefs_not_the_world(name: str) -> None:
    blind = tropel.Knowledge(sight=0.0, share=False)
    lied_to = people(PLANNERS[name](), blind)
    lied_to.at(0.0, Announce(door="near", state="shut", ids=(1,)))  # it is open
    assert way_taken(lied_to) == ["near", "far"]


@pytest.mark.parametrize("name", ["flow field", "roadmap", "rooms"])
def test_whoever_does_not_know_runs_into_the_shut_door_and_turns_back_when_it_sees_it(name: str) -> None:
    sim = people(PLANNERS[name](), tropel.Knowledge(sight=3.0), count=1)
    sim.at(0.5, CloseDoor(door="near"))
    sim.run(until=2.5)
    deepest = sim.agents.position[0, 0]
    assert deepest > 5.5
    assert sim.knowledge.who_knows("near", "shut").tolist() == []
    assert way_taken(sim) == ["far"]
    informed = people(PLANNERS[name](), None, count=1)
    informed.at(0.5, CloseDoor(door="near"))
    informed.run(until=2.5)
    assert informed.agents.position[0, 0] < deepest - 0.5


def test_hazards_and_obstacles_block_only_the_plans_of_those_that_know_of_them() -> None:
    for event, thing in (
        (AddHazard(name="fire", position=(10.0, 2.5), inner=1.6, replan=True, deadly=False), "hazard"),
        (AddObstacle(name="fire", position=(10.0, 2.5), radius=1.6), "obstacle"),
    ):
        sim = people(tropel.FlowField(), tropel.Knowledge(sight=0.0, share=False))
        sim.at(0.0, event)
        sim.at(0.0, Announce(**{thing: "fire", "ids": (1,)}))
        sim.run(until=1.0)
        directions = sim.directions
        assert directions[0, 0] > 0.9, thing
        assert directions[1, 1] > 0.5, thing


def test_a_hazard_that_is_gone_is_still_avoided_by_those_that_do_not_know() -> None:
    sim = people(tropel.FlowField(), tropel.Knowledge(sight=0.0, share=False))
    sim.at(0.0, AddHazard(name="fire", position=(10.0, 2.5), inner=1.6, replan=True, deadly=False))
    sim.at(0.0, Announce(hazard="fire"))
    sim.at(0.5, RemoveHazard(name="fire"))
    sim.at(1.0, Announce(hazard="fire", ids=(0,)))
    sim.run(until=1.5)
    assert sim.directions[0, 0] > 0.7
    assert sim.directions[1, 1] > 0.5


def test_exits_are_chosen_by_belief() -> None:
    exits = {"west": shapely.box(0.0, 4.0, 1.0, 6.0), "east": shapely.box(19.0, 4.0, 20.0, 6.0)}
    world = tropel.World(shapely.box(0.0, 0.0, 20.0, 10.0), exits=exits)
    group = tropel.Group("a", positions=[(6.0, 5.0), (6.0, 3.0)])
    sim = tropel.Simulation(world, group, knowledge=tropel.Knowledge(sight=0.0, share=False), seed=1)
    sim.at(0.0, CloseExit(exit="west"))
    sim.at(0.0, Announce(exit="west", ids=(0,)))
    sim.run(until=2.0)
    assert sim.directions[0, 0] > 0.9
    assert sim.directions[1, 0] < -0.9


def test_those_that_are_right_share_the_plans_of_the_world_itself() -> None:
    planner = tropel.FlowField()
    sim = people(planner, tropel.Knowledge(sight=0.0, share=False))
    sim.run(until=1.0)
    assert planner._by_belief == {}
    sim.at(1.0, Announce(door="near", state="shut", ids=(0,)))
    sim.run(until=1.1)
    assert list(planner._by_belief) == [b"door near\n"]


def test_a_believed_world_follows_the_world() -> None:
    world = two_ways()
    believed = BelievedWorld(world, Blocked(doors={"near"}, exits={"out"}, obstacles={}, hazards={}))
    assert believed.blocking.sum() == world.blocking.sum() + 1
    assert not world.blocking[world.door_rows["near"]].any()
    assert believed.goals().usable.tolist() == [0]
    assert world.goals().usable.tolist() == [1]
    assert believed.wall_grid(1.0).blocking is believed.blocking
    world.hazards.add("fire", tropel.Hazard(position=(5.0, 5.0), inner=1.0))
    believed.refresh(Blocked(doors={"near"}, exits={"out"}, obstacles={}, hazards={}))
    assert len(believed.hazards) == 0
    assert len(world.hazards) == 1
    there = tropel.Hazard(position=(6.0, 6.0), inner=1.0)
    other = BelievedWorld(world, Blocked(doors=set(), exits=set(), obstacles={}, hazards={"fire": there}))
    assert other.hazards.position.tolist() == [[5.0, 5.0]]  # where it is
    world.hazards.remove("fire")
    other.refresh(Blocked(doors=set(), exits=set(), obstacles={}, hazards={"fire": there}))
    assert other.hazards.position.tolist() == [[6.0, 6.0]]  # where it was


def test_rare_beliefs_take_the_plan_of_the_most_similar_one() -> None:
    doors = {f"d{k}": tropel.Door([(k, 5.0), (k + 0.5, 5.0)], open=True) for k in range(1, 5)}
    world = tropel.World(shapely.box(0, 0, 10, 10), doors=doors)
    things = Things(world, [])
    assert [Kind(k) for k in things.kind.tolist()] == [Kind.DOOR] * 4
    state = np.array([[1, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 1]], dtype=np.int16)
    truth, weight = np.ones(4, dtype=np.int16), np.ones(5, dtype=np.int64)
    every = distinct(state, truth, things, weight, 16)
    assert sorted(every.keys) == [b"", b"door d1\n", b"door d2\ndoor d3\n", b"door d2\ndoor d3\ndoor d4\n"]
    few = distinct(state, truth, things, np.array([1, 1, 1, 3, 1]), 1)
    assert few.keys == [b"", b"door d2\ndoor d3\ndoor d4\n"]
    assert few.of_holder.tolist() == [0, 0, 0, 1, 1]


def test_a_planner_of_your_own_gets_the_beliefs() -> None:
    seen: list[Any] = []

    class Asks(tropel.Planner):
        def direct(self, moment: Moment, out: Any) -> None:
            assert moment.beliefs is not None
            parts = moment.beliefs.by_world(moment.members)
            seen.append([(part.key, part.rows.tolist()) for part in parts])
            seen.append(moment.beliefs.shut_doors(moment.members).tolist())
            out.directions[moment.members] = 0.0

    sim = people(Asks(), tropel.Knowledge(sight=0.0, share=False))
    sim.at(0.0, Announce(door="far", state="shut", ids=(1,)))
    sim.at(0.0, OpenDoor(door="near"))
    sim.step()
    assert seen[0] == [(b"", [0]), (b"door far\n", [1])]
    assert seen[1] == [[False, False], [False, True]]
