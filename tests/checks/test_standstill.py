"""A run in which nobody moves says so once; a run in which people wait on purpose does not."""

from __future__ import annotations

import warnings

import pytest
import shapely

from tropel import Direct, FlowField, Group, Lattice, PathPlans, Simulation, Source, Target, World, events
from tropel.checks import FindingWarning
from tropel.run.loop import Summary

GAP = [(5.0, 2.0), (5.0, 3.0)]
PEOPLE = Group("people", count=12, region=shapely.box(0.5, 0.5, 4.0, 4.5))
SEEDS = range(3)


def two_rooms(*, open: bool = False) -> World:
    """Two rooms of 5 m with a door between them, and the exit in the right one."""
    walls = [[(5.0, 0.0), (5.0, 2.0)], [(5.0, 3.0), (5.0, 5.0)]]
    world = World(shapely.box(0, 0, 10, 5), walls=walls, doors={"door": GAP}, exits={"out": shapely.box(9, 2, 10, 3)})
    world.set_door("door", open=open)
    return world


def run(sim: Simulation, seconds: float = 45.0) -> tuple[Summary, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        summary = sim.run(until="empty", limit=seconds)
    said = [str(w.message) for w in caught if issubclass(w.category, FindingWarning)]
    return summary, [text for text in said if text.startswith("nobody has moved")]


def stood_still(summary: Summary) -> bool:
    return any(found.code == "standstill" for found in summary.findings)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("planner", [FlowField(), Direct()])
def test_a_crowd_behind_a_closed_door_is_told_once(seed: int, planner: Direct | FlowField) -> None:
    summary, said = run(Simulation(two_rooms(), PEOPLE, planning=planner, seed=seed, threads=1), seconds=90.0)
    assert len(said) == 1
    assert stood_still(summary)
    assert "12 people should: " in said[0]
    reason = "12 held by others or by walls" if isinstance(planner, Direct) else "12 without a direction"
    assert reason in said[0]
    found = next(found for found in summary.findings if found.code == "standstill")
    assert found.place is not None
    assert found.place[0] < 5.0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crowd_on_cells_too(seed: int) -> None:
    sim = Simulation(two_rooms(), PEOPLE, planning=PathPlans(), local=Lattice(), seed=seed, dt=0.25, threads=1)
    summary, said = run(sim)
    assert len(said) == 1
    assert stood_still(summary)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_open_door_lets_them_out_in_silence(seed: int) -> None:
    summary, said = run(Simulation(two_rooms(open=True), PEOPLE, planning=FlowField(), seed=seed, threads=1))
    assert (said, stood_still(summary), summary.evacuated) == ([], False, 12)


@pytest.mark.parametrize("seed", SEEDS)
def test_people_who_wait_for_an_event_stand_on_purpose(seed: int) -> None:
    sim = Simulation(two_rooms(), PEOPLE, planning=FlowField(), seed=seed, threads=1)
    sim.at(50.0, events.OpenDoor(door="door"))
    summary, said = run(sim, seconds=120.0)
    assert (said, stood_still(summary), summary.evacuated) == ([], False, 12)


def test_the_event_is_waited_for_only_until_it_has_happened() -> None:
    sim = Simulation(two_rooms(), PEOPLE, planning=FlowField(), threads=1)
    sim.at(
        50.0, events.SetBehaviour(name="repair", on=True) if "repair" in sim.behaviours else events.SetGoal(goal="out")
    )
    _, said = run(sim, seconds=79.0)
    assert said == []
    sim = Simulation(two_rooms(), PEOPLE, planning=FlowField(), threads=1)
    sim.at(50.0, events.SetGoal(goal="out"))
    _, said = run(sim, seconds=90.0)
    assert len(said) == 1


@pytest.mark.parametrize("told", [{"goal": "none"}, {"delay": 1000.0}, {"desired_speed": 0.0}])
def test_people_who_do_not_want_to_move_stand_on_purpose(told: dict[str, object]) -> None:
    crowd = Group("people", count=12, region=shapely.box(0.5, 0.5, 4.0, 4.5), **told)  # type: ignore[arg-type]
    summary, said = run(Simulation(two_rooms(open=True), crowd, planning=FlowField(), threads=1))
    assert (said, stood_still(summary)) == ([], False)


def test_a_delay_counts_from_its_end() -> None:
    crowd = Group("people", count=12, region=shapely.box(0.5, 0.5, 4.0, 4.5), delay=40.0)
    sim = Simulation(two_rooms(), crowd, planning=FlowField(), threads=1)
    assert run(sim, seconds=65.0)[1] == []
    assert len(run(sim, seconds=75.0)[1]) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crowd_that_has_gathered_around_a_target_has_arrived(seed: int) -> None:
    world = World(shapely.box(0, 0, 20, 20), targets={"stage": Target(position=(10.0, 10.0), radius=0.5)})
    crowd = Group("people", count=60, goal="stage")
    summary, said = run(Simulation(world, crowd, seed=seed, threads=1), seconds=90.0)
    assert (said, stood_still(summary)) == ([], False)


def test_all_exits_closed_is_the_reason() -> None:
    world = two_rooms(open=True)
    world.set_exit("out", open=False)
    _, said = run(Simulation(world, PEOPLE, planning=FlowField(), threads=1))
    assert len(said) == 1
    assert "12 without any open exit" in said[0]


def test_newcomers_count_as_a_change() -> None:
    source = Source("people", rate=0.2, region=shapely.box(0.5, 0.5, 4.0, 4.5), total=20)
    _, said = run(Simulation(two_rooms(), source, planning=FlowField(), threads=1), seconds=95.0)
    assert said == []


def test_runs_in_small_pieces_are_watched_as_one() -> None:
    sim = Simulation(two_rooms(), PEOPLE, planning=FlowField(), threads=1)
    said = [text for second in range(1, 41) for text in run(sim, seconds=float(second))[1]]
    assert len(said) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_the_watch_changes_no_bit(seed: int) -> None:
    watched = Simulation(two_rooms(), PEOPLE, planning=FlowField(), seed=seed, threads=1)
    run(watched, seconds=40.0)
    assert watched.standstill.finding is not None
    plain = Simulation(two_rooms(), PEOPLE, planning=FlowField(), seed=seed, threads=1)
    while plain.step_number < watched.step_number:
        plain.step()
    assert plain.state_hash() == watched.state_hash()
