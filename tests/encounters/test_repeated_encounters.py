"""Encounters are the same bits on any number of threads, in any order of rows, and after a resume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely
from straight_walks import Jittery, empty, straight

from tropel import Group, Simulation, Source, World
from tropel.encounters import EncounterTable
from tropel.encounters.passing import passages
from tropel.encounters.search import CandidateSearch
from tropel.errors import CheckpointError
from two_threads import needs_two_threads


def same(one: EncounterTable, other: EncounterTable) -> None:
    for name, column in vars(one).items():
        np.testing.assert_array_equal(column, getattr(other, name), err_msg=name)


def crowd(threads: int = 1, seed: int = 3) -> Simulation:
    random = np.random.default_rng(seed)
    group = Group("a", positions=random.uniform(1, 49, (2500, 2)), goal="none", radius=0.25, sense_radius=1.0)
    sim = Simulation(empty(50.0), group, local=Jittery(3.0, seed), dt=0.1, threads=threads)
    sim.watch_encounters(distance=1.0)
    return sim


@needs_two_threads
def test_one_thread_and_two_give_the_same_table_and_hash() -> None:
    alone, together = crowd(1), crowd(2)
    for sim in (alone, together):
        for _ in range(6):
            sim.step()
    assert len(alone.encounters) > 3_000
    same(alone.encounters.table(), together.encounters.table())
    assert alone.state_hash() == together.state_hash()


def test_the_order_of_rows_does_not_matter() -> None:
    random = np.random.default_rng(1)
    before, after = random.uniform(0, 5, (60, 2)), random.uniform(0, 5, (60, 2))
    radius, order = random.uniform(0.1, 0.3, 60), random.permutation(60)
    tables = []
    for rows in (np.arange(60), order):
        world = empty(5.0, open=True)
        sim = Simulation(world, Group("a", positions=before[rows], goal="none"), local=Jittery(1.0, 1), dt=0.1)
        search = CandidateSearch(0.5)
        sim.agents.position[:] = after[rows]
        found = passages(
            search.find(sim.agents, before[rows], world),
            before=before[rows],
            after=after[rows],
            radius=radius[rows],
            period=np.zeros(3),
            distance=0.5,
        )
        pair = np.sort(rows[found.pair], axis=1)
        sorter = np.lexsort((pair[:, 1], pair[:, 0]))
        tables.append(np.column_stack([pair, found.first, found.last, found.closest, found.when])[sorter])
    assert len(tables[0]) > 50
    np.testing.assert_array_equal(*tables)


def coming_and_going(threads: int = 1) -> Simulation:
    world = World(shapely.box(0, 0, 12, 6), exits={"out": shapely.box(11, 2, 12, 4)})
    agents = [
        Group("a", count=25, region=shapely.box(0, 0, 8, 6)),
        Source("a", rate=4.0, region=shapely.box(0, 0, 2, 6), arrivals="random"),
    ]
    return Simulation(world, agents, dt=0.1, threads=threads, seed=2)


@pytest.mark.parametrize("watches_before", [True, False])
def test_a_resumed_run_has_the_same_encounters(tmp_path: Path, watches_before: bool) -> None:
    whole = coming_and_going()
    whole.watch_encounters(distance=1.2)
    whole.run(until=4.0)
    whole.save(tmp_path / "checkpoint.npz")
    resumed = coming_and_going()
    if watches_before:
        resumed.watch_encounters(distance=1.2)
    resumed.restore(tmp_path / "checkpoint.npz")
    same(whole.encounters.table(), resumed.encounters.table())
    for sim in (whole, resumed):
        sim.run(until=9.0)
    table = whole.encounters.table()
    assert {"left", "gone", ""} <= set(table.ended.tolist())
    same(table, resumed.encounters.table())
    assert whole.state_hash() == resumed.state_hash()


def test_events_go_on_after_a_resume(tmp_path: Path) -> None:
    whole = coming_and_going()
    whole.watch_encounters(distance=1.2)
    whole.run(until=2.0)
    whole.save(tmp_path / "checkpoint.npz")
    resumed = coming_and_going()
    resumed.watch_encounters(distance=1.2)
    logs = []
    resumed.restore(tmp_path / "checkpoint.npz")
    for sim in (whole, resumed):
        log: list[tuple[object, ...]] = []
        logs.append(log)
        sim.encounters.subscribe(
            lambda e, log=log: log.extend(
                zip(e.time.tolist(), e.id_a.tolist(), e.id_b.tolist(), e.kind.tolist(), e.how.tolist(), strict=True)
            )
        )
        sim.run(until=4.0)
    assert len(logs[0]) > 20
    assert logs[0] == logs[1]
    assert [event[:3] for event in logs[0]] == sorted(event[:3] for event in logs[0])


def test_checkpoints_of_another_watch_are_refused(tmp_path: Path) -> None:
    without = straight([(5, 5), (6, 5)], np.zeros((2, 2)))
    without.save(tmp_path / "without.npz")
    sim = straight([(5, 5), (6, 5)], np.zeros((2, 2)))
    sim.watch_encounters(distance=2.0)
    with pytest.raises(CheckpointError, match="after restore"):
        sim.restore(tmp_path / "without.npz")
    sim.step()
    sim.save(tmp_path / "two.npz")
    other = straight([(5, 5), (6, 5)], np.zeros((2, 2)))
    other.watch_encounters(distance=1.0)
    with pytest.raises(CheckpointError, match="within 2 m"):
        other.restore(tmp_path / "two.npz")
    assert other.step_number == 0


def test_watching_changes_nothing_in_the_motion() -> None:
    plain, watched = coming_and_going(), coming_and_going()
    watched.watch_encounters(distance=1.2)
    for sim in (plain, watched):
        sim.run(until=2.0)
    np.testing.assert_array_equal(plain.agents.position, watched.agents.position)
