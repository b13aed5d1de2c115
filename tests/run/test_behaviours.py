"""Behaviours that are switched off and on: each is then as if the crowd had never had it, and the switch is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Direct, Door, Group, Hazard, Lattice, PathPlans, Simulation, World, events
from tropel.errors import ParameterError

DT = 0.25
#: Few are enough to congest the narrow door.
WATCH = {"high": 4.0, "low": 2.0, "every": 2}


def hall(
    *,
    congestion: Any = WATCH,
    separation: float = 0.5,
    outer: float = 5.0,
    count: int = 120,
    **more: Any,
) -> Simulation:
    """Two doors of which the nearer is narrow, and a fire beside the way."""
    world = World(
        shapely.box(0, 0, 24, 12),
        walls=[[(16, 0), (16, 5.4)], [(16, 6.6), (16, 9)]],
        exits={"out": shapely.box(23, 4, 24, 8)},
        doors={"shutter": Door([(16, 9), (16, 12)], open=True)},
        hazards={"fire": Hazard(inner=0.6, outer=outer, position=(12.1, 4.3), intensity=2.0)},
    )
    return Simulation(
        world,
        Group("people", count=count, region=shapely.box(0.4, 0.4, 8, 11.6), desired_speed=1.3),
        planning=PathPlans(congestion=congestion),
        local=Lattice(separation=separation),
        dt=DT,
        seed=3,
        **more,
    )


def without(*names: str, **more: Any) -> Simulation:
    sim = hall(**more)
    for name in names:
        sim.at(0.0, events.SetBehaviour(name=name, on=False))
    return sim


def steps(sim: Simulation, count: int) -> Simulation:
    for _ in range(count):
        sim.step()
    return sim


def same_places(one: Simulation, other: Simulation) -> bool:
    return np.array_equal(one.agents.id, other.agents.id) and np.array_equal(one.agents.position, other.agents.position)


def congestions(sim: Simulation) -> list[str]:
    assert sim.ground is not None
    return [name for name in sim.ground.filters if name.startswith("congestion")]


# What each does -----------------------------------------------------------------------------------------------------


def test_a_crowd_without_a_behaviour_walks_like_one_that_never_had_it() -> None:
    reference = steps(hall(), 60)
    pairs = {
        "congestion": hall(congestion=False),
        "hazard influence": hall(outer=0.6),
        "separation": hall(separation=1.0),
    }
    for name, never in pairs.items():
        switched = steps(without(name), 60)
        assert same_places(switched, steps(never, 60)), name
        assert not same_places(switched, reference), name


def test_everything_can_be_left_out_at_once() -> None:
    bare = steps(without("congestion", "hazard influence", "separation"), 60)
    assert same_places(bare, steps(hall(congestion=False, outer=0.6, separation=1.0), 60))


def test_people_keep_out_of_a_fire_that_they_no_longer_shy_away_from() -> None:
    nearest = {}
    for on in (True, False):
        sim = hall() if on else without("hazard influence")
        distances = []
        for _ in range(80):
            sim.step()
            distances.append(np.linalg.norm(sim.agents.position - (12.1, 4.3), axis=1).min())
        nearest[on] = min(distances)
        assert len(sim.population.deaths()["id"]) == 0
    assert 0.6 < nearest[False] < nearest[True] - 0.5


def test_congestions_go_when_they_are_switched_off_and_come_back() -> None:
    # The paper's rule, under which full doors repel; a rule of detours changes plans and has no values of its own.
    sim = hall(congestion={**WATCH, "replan": False})
    while not congestions(sim) and sim.time < 120.0:
        sim.step()
    sim.set_behaviour("congestion", False)
    assert congestions(sim) == []
    steps(sim, 5)
    assert congestions(sim) == []
    sim.set_behaviour("congestion", True)
    steps(sim, WATCH["every"])
    assert congestions(sim) != []


def test_bottlenecks_of_a_plan_made_meanwhile_are_watched_afterwards() -> None:
    def run(off: bool) -> Simulation:
        sim = hall()
        if off:
            sim.at(2 * DT, events.SetBehaviour(name="congestion", on=False))
        sim.at(4 * DT, events.CloseDoor(door="shutter"))
        sim.at(8 * DT, events.SetBehaviour(name="congestion", on=True))
        return steps(sim, 10)

    watched, unwatched = (run(off).layers.planners[0].watch for off in (False, True))
    before = steps(hall(), 1).layers.planners[0].watch
    cells = [each.cell for each in watched.bottlenecks]
    assert [each.cell for each in unwatched.bottlenecks] == cells
    assert cells != [each.cell for each in before.bottlenecks]


# Which there are ----------------------------------------------------------------------------------------------------


def test_a_simulation_knows_the_behaviours_of_its_layers() -> None:
    always = dict.fromkeys(("hazard influence", "value maps", "separation", "bonds"), True)
    assert hall().behaviours == {"congestion": True, **always}
    assert hall(congestion=False).behaviours == always
    room, person = World(shapely.box(0, 0, 4, 4)), Group("a", count=1, goal="none")
    assert Simulation(room, person).behaviours == {"hazard influence": True}
    assert Simulation(room, person, habits=[]).behaviours == {}


def test_an_unknown_behaviour_is_refused_when_it_is_scheduled() -> None:
    with pytest.raises(ParameterError, match="has the behaviour 'congestions'; did you mean 'congestion'"):
        hall().at(1.0, events.SetBehaviour(name="congestions", on=False))
    with pytest.raises(ParameterError, match="'congestion'; known: bonds, hazard influence, separation, value maps"):
        hall(congestion=False).set_behaviour("congestion", False)


class Humming(Direct):
    """A planner of a user's own with something to switch off."""

    def __init__(self) -> None:
        super().__init__()
        self.behaviours = {"humming": True}

    def set_behaviour(self, name: str, on: bool) -> None:
        self.behaviours[name] = on


def test_a_behaviour_is_switched_in_every_layer_that_has_it() -> None:
    planners = {"a": Humming(), "b": Humming()}
    groups = [Group(name, count=1, goal="none") for name in planners]
    sim = Simulation(World(shapely.box(0, 0, 4, 4)), groups, planning=planners)
    sim.at(0.0, events.SetBehaviour(name="humming", on=False))
    sim.step()
    assert [planner.behaviours for planner in planners.values()] == [{"humming": False}] * 2
    assert sim.behaviours == {"humming": False, "hazard influence": True}


def test_a_layer_that_serves_a_second_simulation_begins_with_everything_on() -> None:
    lattice, plans = Lattice(), PathPlans()
    for _ in range(2):
        world = World(shapely.box(0, 0, 4, 4), exits={"out": shapely.box(3, 0, 4, 4)})
        sim = Simulation(world, Group("a", count=1), planning=plans, local=lattice, dt=DT)
        assert all(sim.behaviours.values())
        for name in sim.behaviours:
            sim.set_behaviour(name, False)


# What is kept -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["congestion", "hazard influence", "separation"])
def test_a_switch_is_part_of_the_state(name: str, tmp_path: Path) -> None:
    sim = steps(hall(), 3)
    before = sim.state_hash()
    sim.set_behaviour(name, False)
    assert sim.state_hash() != before
    sim.save(tmp_path / "off")
    other = hall()
    other.restore(tmp_path / "off")
    assert other.behaviours == sim.behaviours
    assert other.state_hash() == sim.state_hash()
    other.set_behaviour(name, True)
    assert other.state_hash() == before


def test_a_run_with_switches_can_be_resumed_at_any_step(tmp_path: Path) -> None:
    def busy() -> Simulation:
        sim = hall()
        for time, name, on in (
            (4.0, "congestion", False),
            (6.0, "hazard influence", False),
            (9.0, "congestion", True),
            (10.0, "separation", False),
            (11.0, "hazard influence", True),
        ):
            sim.at(time, events.SetBehaviour(name=name, on=on))
        sim.at(7.0, events.CloseDoor(door="shutter"))
        return sim

    whole = busy()
    hashes = [whole.state_hash()]
    for _ in range(60):
        whole.step()
        hashes.append(whole.state_hash())
    sim = busy()
    for stop in (10, 17, 25, 32, 37, 38, 45, 60):
        while sim.step_number < stop:
            sim.step()
            assert sim.state_hash() == hashes[sim.step_number], sim.step_number
        sim.save(tmp_path / "stop")
        sim = busy()
        sim.restore(tmp_path / "stop")
        assert sim.state_hash() == hashes[stop]


def test_one_and_two_threads_agree() -> None:
    hashes = {steps(without("separation", "congestion", threads=threads), 30).state_hash() for threads in (1, 2)}
    assert len(hashes) == 1
