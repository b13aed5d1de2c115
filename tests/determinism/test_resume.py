"""A run that is stopped, stored and resumed is bitwise the run that was never stopped."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from busy_scenes import CROWDS, DT, SCENES, busy_hall, hall, schedule_more, steps

import tropel
from tropel.errors import CheckpointError

LAST = 100


@pytest.mark.parametrize("scene", SCENES)
def test_every_step_after_a_resume_has_the_hash_of_the_uninterrupted_run(scene: str, tmp_path: Path) -> None:
    going_on = steps(SCENES[scene](), LAST // 2)
    going_on.save(tmp_path / "half")
    resumed = SCENES[scene]()
    resumed.restore(tmp_path / "half")
    while going_on.step_number < LAST:
        assert resumed.state_hash() == going_on.state_hash(), f"step {going_on.step_number}"
        going_on.step()
        resumed.step()
    assert resumed.state_hash() == going_on.state_hash()
    assert going_on.step_number == resumed.step_number == LAST


@pytest.mark.parametrize("scene", SCENES)
def test_a_run_can_be_stopped_at_any_step_and_more_than_once(scene: str, tmp_path: Path) -> None:
    sim = SCENES[scene]()
    for stop in (0, 1, 20, 31, 61, 67, 99):
        steps(sim, stop).save(tmp_path / "checkpoint")
        sim = SCENES[scene]()
        sim.restore(tmp_path / "checkpoint")
    assert steps(sim, LAST).state_hash() == steps(SCENES[scene](), LAST).state_hash()


def test_the_scene_is_as_busy_as_these_tests_assume() -> None:
    sim = busy_hall()
    waiting = len(sim.events)
    steps(sim, LAST // 2)
    assert 0 < len(sim.events) < waiting
    left, emitted = len(sim.population.departures()["id"]), list(sim.population.emitted)
    assert left > 0
    assert min(emitted) > 0
    steps(sim, LAST)
    assert len(sim.events) == 0
    assert len(sim.population.departures()["id"]) > left
    assert sum(sim.population.emitted) > sum(emitted)
    assert (sim.agents.stage_until > DT * LAST / 2).any()
    assert np.abs(np.diff(sim.agents.id)).max() > 1


def test_a_simulation_that_has_run_already_can_go_back_to_a_checkpoint(tmp_path: Path) -> None:
    # Without functions as events: those that are over cannot be found again.
    sim = steps(hall(), 30)
    sim.save(tmp_path / "checkpoint")
    first = steps(sim, 60).state_hash()
    sim.restore(tmp_path / "checkpoint")
    assert sim.step_number == 30
    assert steps(sim, 60).state_hash() == first


@pytest.mark.parametrize(("scene", "last"), [("hall", LAST), ("box", LAST), ("plaza", 40), ("swarm", 40)])
def test_a_resume_in_another_process_with_other_threads_and_hash_seed(
    scene: str, last: int, tmp_path: Path, python: Callable[..., str]
) -> None:
    script = Path(__file__).with_name("busy_scenes.py")
    half = tmp_path / "half"
    python(script, scene, 1, 0, last // 2, "-", half, environment={"PYTHONHASHSEED": "1"})
    other = {"PYTHONHASHSEED": "77", "NUMBA_NUM_THREADS": "4"}
    resumed = python(script, scene, 3, last // 2, last, half, environment=other)
    assert resumed.strip() == steps((SCENES | CROWDS)[scene](), last).state_hash()


def test_a_restore_on_the_same_machine_does_not_warn(tmp_path: Path) -> None:
    hall().save(tmp_path / "checkpoint")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hall().restore(tmp_path / "checkpoint")


def test_a_checkpoint_of_another_version_warns_and_is_restored(tmp_path: Path, python: Callable[..., str]) -> None:
    path = tmp_path / "checkpoint"
    python(
        "import sys, tropel; tropel.__version__ = '0.0.9'; sys.path.insert(0, sys.argv[1])\n"
        "from busy_scenes import hall, steps\nsteps(hall(), 10).save(sys.argv[2])",
        Path(__file__).parent,
        path,
    )
    sim = hall()
    with pytest.warns(UserWarning, match=rf"tropel: 0\.0\.9 when it was saved, {tropel.__version__} here"):
        sim.restore(path)
    assert sim.state_hash() == steps(hall(), 10).state_hash()


def test_an_event_scheduled_by_a_function_waits_in_the_same_place_after_a_resume(tmp_path: Path) -> None:
    def build() -> tropel.Simulation:
        sim = hall()
        sim.at(0.2, schedule_more)
        sim.at(0.8, schedule_more)
        return sim

    going_on = steps(build(), 12)
    going_on.save(tmp_path / "checkpoint")
    resumed = build()
    resumed.restore(tmp_path / "checkpoint")
    assert steps(resumed, 17).state_hash() == steps(going_on, 17).state_hash()


# What is refused ------------------------------------------------------------------------------------------------


class OtherSeek(tropel.Seek):
    pass


def room(
    *, size: float = 8.0, exit_from: float = 3.0, wall: float = 5.0, door_open: bool = False, pillar: float = 0.4,
    target: float = 2.0, orbit: float = 5.0, **simulation: Any,
) -> tropel.Simulation:  # fmt: skip
    world = tropel.World(
        shapely.box(0, 0, size, 8),
        walls=[[(wall, 1), (wall, 3)]],
        exits={"out": shapely.box(7, exit_from, 8, 5)},
        doors={"door": tropel.Door([(6, 0), (6, 2)], open=door_open)},
        obstacles={
            "pillar": tropel.Obstacle(radius=pillar, position=(4, 6)),
            "cart": tropel.Obstacle(radius=0.2, motion=tropel.Orbit(center=(2, 6), radius=1, period=orbit)),
        },
        targets={"stall": (target, 2)},
    )
    given: dict[str, Any] = {"agents": [tropel.Group("people", count=10)], "dt": 0.05, "seed": 1, **simulation}
    return tropel.Simulation(world, given.pop("agents"), **given)


def people(**personal: Any) -> dict[str, Any]:
    return {"agents": [tropel.Group("people", **({"count": 10} | personal))]}


def coming(**source: Any) -> dict[str, Any]:
    given = {"rate": 1.0, "region": shapely.box(1, 1, 3, 3)} | source
    return {"agents": [tropel.Group("people", count=10), tropel.Source("people", **given)]}


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ({}, {"dt": 0.1}),
        ({}, {"seed": 2}),
        ({}, {"size": 8.5}),
        ({}, {"exit_from": 3.5}),
        ({}, {"wall": 5.0000001}),
        ({}, {"door_open": True}),
        ({}, {"pillar": 0.5}),
        ({}, {"target": 2.5}),
        ({}, {"orbit": 6.0}),
        ({}, people(count=11)),
        ({}, people(desired_speed=1.2)),
        ({}, people(goal="stall")),
        ({}, {"agents": [tropel.Group("others", count=10)]}),
        ({}, {"agents": [tropel.Group("people", count=10), tropel.Group("none", count=0)]}),
        ({}, coming()),
        (coming(), coming(rate=2.0)),
        (coming(), coming(arrivals="random")),
        (coming(), coming(desired_speed=tropel.Normal(1.3, 0.2))),
        (coming(), coming(region=shapely.box(1, 1, 3, 3.00001))),
        ({}, {"local": tropel.Seek(time_gap=0.9)}),
        ({}, {"local": OtherSeek()}),
        ({}, {"environment": tropel.Grid(cell=2.0)}),
        ({"environment": tropel.Grid(cell=2.0)}, {"environment": tropel.Grid(cell=3.0)}),
    ],
)
def test_a_checkpoint_of_another_setup_is_refused(here: dict[str, Any], there: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    steps(room(**here), 3).save(path)
    other = room(**there)
    before = other.state_hash()
    with pytest.raises(CheckpointError, match="belongs to another simulation"):
        other.restore(path)
    assert other.state_hash() == before, "a refused checkpoint must change nothing"
    room(**here).restore(path)


def test_a_checkpoint_of_layers_given_to_other_groups_is_refused(tmp_path: Path) -> None:
    def build(of_middle_group: int) -> tropel.Simulation:
        models = [tropel.Seek(), tropel.Seek(time_gap=0.9)]
        local = {"first": models[0], "middle": models[of_middle_group], "last": models[1]}
        return room(agents=[tropel.Group(name, count=3) for name in local], local=local)

    build(0).save(tmp_path / "checkpoint")
    build(0).restore(tmp_path / "checkpoint")
    with pytest.raises(CheckpointError, match="belongs to another simulation"):
        build(1).restore(tmp_path / "checkpoint")


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "missing", "foreign"])
def test_a_damaged_checkpoint_is_refused_by_name(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    steps(room(), 3).save(path)
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        flipped = bytearray(content)
        flipped[len(content) // 3] ^= 4
        damaged = {"cut": content[:-100], "flipped": bytes(flipped), "emptied": b"", "foreign": b"x" * 5000}
        path.write_bytes(damaged[damage])
    with pytest.raises(CheckpointError, match="checkpoint"):
        room().restore(path)


def test_a_pending_function_must_be_scheduled_again(tmp_path: Path) -> None:
    def later(sim: tropel.Simulation) -> None:
        sim.set_goal("stall")

    sim = room()
    sim.at(1.0, later)
    steps(sim, 5).save(tmp_path / "checkpoint")
    with pytest.raises(CheckpointError, match="later"):
        room().restore(tmp_path / "checkpoint")


def test_another_function_in_the_place_of_the_pending_one_is_refused(tmp_path: Path) -> None:
    def stop(sim: tropel.Simulation) -> None:
        sim.set_goal("none")

    def go(sim: tropel.Simulation) -> None:
        sim.set_goal("stall")

    sim, other = room(), room()
    sim.at(1.0, stop)
    other.at(1.0, go)
    steps(sim, 5).save(tmp_path / "checkpoint")
    with pytest.raises(CheckpointError, match="stop"):
        other.restore(tmp_path / "checkpoint")
