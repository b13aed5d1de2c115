"""Choice of exits: people leave a queue for another exit if that is sooner, few at a time, and not back and forth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

from tropel import FlowField, Group, Normal, Simulation, World
from tropel.planning.fields import planner as planner_module
from tropel.planning.fields.exit_choice import capacity, narrowest
from tropel.planning.fields.field import GridField
from two_threads import needs_two_threads

SEEDS = range(4)


def hall(count: int, *, seed: int = 0, threads: int = 1, doors: tuple[float, float] = (1.0, 1.0), **planning: bool
         ) -> Simulation:  # fmt: skip
    """A room of 20 x 8 m with doors to the left and to the right; people stand on the left."""
    left, right = doors
    area = shapely.union_all(
        [
            shapely.box(0, 0, 20, 8),
            shapely.box(-2, 4 - left / 2, 0, 4 + left / 2),
            shapely.box(20, 4 - right / 2, 22, 4 + right / 2),
        ]
    )
    exits = {"left": shapely.box(-2, 0, -1, 8), "right": shapely.box(21, 0, 22, 8)}
    people = Group("p", count=count, region=shapely.box(1, 0.5, 9, 7.5), desired_speed=Normal(1.34, 0.26, low=0.5))
    return Simulation(
        World(area, exits={name: shapely.intersection(each, area) for name, each in exits.items()}),
        people,
        planning=FlowField(**planning),
        seed=seed,
        threads=threads,
    )


def used(sim: Simulation) -> dict[str, int]:
    by = sim.population.departures()["goal"]
    return {name: int((by == sim.world.goal_numbers[name]).sum()) for name in ("left", "right")}


def chosen(sim: Simulation) -> NDArray[np.int32]:
    return sim.agents.columns["chosen_exit"]


def field_to(sim: Simulation, name: str) -> GridField:
    planner = sim.planners["p"]
    assert isinstance(planner, FlowField)
    return planner.field(name)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crowd_uses_both_exits_and_is_out_sooner(seed: int) -> None:
    times = {}
    for choose in (True, False):
        sim = hall(150, seed=seed, choose_exits=choose)
        sim.run(until="empty", limit=300.0)
        times[choose] = sim.time
        assert used(sim)["right"] == 0 if not choose else 30 < used(sim)["right"] < 75
    assert times[True] < 0.8 * times[False]


@pytest.mark.parametrize("seed", SEEDS)
def test_few_people_take_the_nearest_exit(seed: int) -> None:
    sim = hall(6, seed=seed)
    sim.run(until="empty", limit=60.0)
    assert used(sim) == {"left": 6, "right": 0}


@pytest.mark.parametrize("seed", SEEDS)
def test_people_do_not_change_their_minds_back_and_forth(seed: int) -> None:
    sim = hall(150, seed=seed)
    changes = np.zeros(150, dtype=int)
    sim.step()
    while len(sim.agents):
        before = dict(zip(sim.agents.id.tolist(), chosen(sim).tolist(), strict=True))
        sim.step()
        for number, exit_number in zip(sim.agents.id.tolist(), chosen(sim).tolist(), strict=True):
            changes[number] += before[number] != exit_number
    assert 0 < changes.sum() < 75
    assert changes.max() <= 3


def lengths(sim: Simulation, name: str) -> NDArray[np.float64]:
    """Path lengths of everybody, by the cell that they are in; nan next to walls."""
    field = field_to(sim, name)
    y, x = field.raster.index_of(sim.agents.position).T
    assert field.length is not None
    return np.where(field.raster.free[y, x], np.abs(field.length[y, x]), np.nan)


def times_by_loop(sim: Simulation, far: dict[str, NDArray[np.float64]], i: int) -> dict[str, float]:
    """How long each exit takes person i."""
    times = {}
    for name in ("left", "right"):
        number = sim.world.goal_numbers[name]
        ahead = sum(
            chosen(sim)[j] == number and far[name][j] // 0.5 < far[name][i] // 0.5 for j in range(len(sim.agents))
        )
        times[name] = max(far[name][i] / sim.agents.desired_speed[i], ahead / capacity(narrowest(field_to(sim, name))))
    return times


def test_decisions_are_those_of_a_plain_loop() -> None:
    sim = hall(150, doors=(1.0, 1.6))
    names = {number: name for name, number in sim.world.goal_numbers.items()}
    other = {"left": "right", "right": "left"}
    compared = moved = 0
    sim.step()
    for second in range(1, 13):
        sim.run(until=float(second))  # the next step looks at queues
        far = {name: lengths(sim, name) for name in other}
        if any(np.isnan(each).any() for each in far.values()):
            continue  # somebody is next to a wall
        before, gains, expected = {}, {}, {}
        for i, number in enumerate(sim.agents.id.tolist()):
            times, own = times_by_loop(sim, far, i), names[int(chosen(sim)[i])]
            before[number] = expected[number] = own
            gain = times[own] - times[other[own]]
            gains[number] = gain if gain > 2.0 and gain > 0.1 * times[own] else 0.0
        for number, own in before.items():
            most = max(gains[n] for n in before if before[n] == own)
            if gains[number] > 0.0 and gains[number] >= 0.8 * most:
                expected[number] = other[own]
        sim.step()
        for number, now in zip(sim.agents.id.tolist(), chosen(sim).tolist(), strict=True):
            assert names[now] == expected[number]
            compared += 1
            moved += expected[number] != before[number]
    assert compared > 500
    assert moved > 20


def test_a_closed_exit_is_given_up_at_once() -> None:
    sim = hall(20)
    sim.run(until=2.0)
    assert set(chosen(sim).tolist()) == {sim.world.goal_numbers["left"]}
    sim.world.set_exit("left", open=False)
    sim.step()
    assert set(chosen(sim).tolist()) == {-1}  # there is nothing to choose
    assert (sim.directions[:, 0] > 0.0).all()
    sim.run(until="empty", limit=60.0)
    assert used(sim) == {"left": 0, "right": 20}


@pytest.mark.parametrize("width", [0.8, 1.2, 2.0, 4.0])
def test_the_narrowest_place_before_an_exit(width: float) -> None:
    sim = hall(1, doors=(width, 1.0))
    assert narrowest(field_to(sim, "left")) == pytest.approx(width, abs=0.2)


@pytest.mark.parametrize("width", [1.0, 2.0, 4.0])
def test_far_corners_of_a_small_room_are_not_narrow(width: float) -> None:
    area = shapely.union_all([shapely.box(0, 0, 4, 4), shapely.box(4, 2 - width / 2, 5.4, 2 + width / 2)])
    world = World(area, exits={"out": shapely.box(5, 2 - width / 2, 5.4, 2 + width / 2)})
    sim = Simulation(world, Group("p", count=1, region=shapely.box(0, 0, 3, 4)), planning=FlowField(), threads=1)
    assert narrowest(field_to(sim, "out")) == pytest.approx(width, abs=0.2)


def test_the_flow_of_a_door_is_the_published_one() -> None:
    assert capacity(2.0) == pytest.approx(1.92 * 2.0 - 0.07)
    assert capacity(0.0) > 0.0


def test_where_fields_to_all_exits_would_take_too_much_memory_people_take_the_nearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planner_module, "_MOST_BYTES", 1e4)
    sim = hall(150)
    sim.run(until="empty", limit=300.0)
    assert used(sim) == {"left": 150, "right": 0}


@needs_two_threads
def test_the_same_bits_on_two_threads_and_after_a_resume(tmp_path: Path) -> None:
    hashes = set()
    for threads in (1, 2):
        sim = hall(150, threads=threads)
        sim.run(until=7.0)
        hashes.add(sim.state_hash())
    resumed = hall(150)
    resumed.run(until=3.33)
    resumed.save(tmp_path / "half")
    resumed = hall(150)
    resumed.restore(tmp_path / "half")
    resumed.run(until=7.0)
    hashes.add(resumed.state_hash())
    assert len(hashes) == 1
