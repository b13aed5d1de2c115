"""Encounters: everybody who comes near anybody at any time of a step is found, with the right times."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from straight_walks import DT, Jittery, Straight, brute_force, empty, straight

from tropel import Group, Simulation, Source, World, events
from tropel.contact.contacts import SLACK
from tropel.contracts import ModelDeclaration
from tropel.encounters import EncounterEvents, read_encounters
from tropel.encounters.passing import TOUCH_TOLERANCE, passages
from tropel.errors import ModelError, ParameterError, RecordingError, TropelError

# Against brute force ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("dim", "periodic"), [(2, False), (3, False), (2, True), (3, True)])
@pytest.mark.parametrize("speed", [1.5, 9.0])
def test_times_and_distances_are_those_of_brute_force(seed: int, dim: int, periodic: bool, speed: float) -> None:
    random = np.random.default_rng(seed)
    size, count, steps, distance = 6.5, 14 if dim == 2 else 24, 15, 1.1
    positions = random.uniform(0.01, size - 0.01, (count, dim))
    world = empty(size, dim, periodic=True) if periodic else empty(size, dim, open=True)
    group = Group("a", positions=positions, goal="none", radius=0.25, sense_radius=1.0)
    sim = Simulation(world, group, local=Jittery(speed, seed), dt=DT)
    sim.watch_encounters(distance=distance)
    path = [sim.agents.position.copy()]
    for _ in range(steps):
        sim.step()
        path.append(sim.agents.position.copy())
    contact = np.full(count, 0.25 * (1.0 + TOUCH_TOLERANCE))
    expected = brute_force(np.array(path), contact, distance, DT, size if periodic else 0.0)
    table = sim.encounters.table()
    found: dict[tuple[int, int], list[int]] = {}
    for row, pair in enumerate(zip(table.id_a.tolist(), table.id_b.tolist(), strict=True)):
        found.setdefault(pair, []).append(row)
    assert sum(map(len, expected.values())) >= 5
    assert {pair: len(rows) for pair, rows in found.items()} == {pair: len(rows) for pair, rows in expected.items()}
    for pair, rows in found.items():
        for row, right in zip(rows, expected[pair], strict=True):
            for name in ("begin", "end", "touched", "touching"):
                # Roots of NumPy's companion matrix lose half of the digits where a pair only grazes the circle.
                assert getattr(table, name)[row] == pytest.approx(getattr(right, name), abs=1e-7, nan_ok=True), name
            assert table.closest[row] == pytest.approx(right.closest, abs=2e-3)
            assert table.closest[row] <= right.closest + 1e-12
            assert table.began[row] == ("placed" if right.begin == 0.0 else "entered")


def test_a_few_fast_agents_among_many_slow_ones_miss_nobody() -> None:
    random = np.random.default_rng(5)
    count, distance = 400, 0.6
    positions = random.uniform(0, 40, (count, 2))
    velocity = random.normal(0, 1, (count, 2))
    velocity[:5] *= 200.0
    sim = straight(positions, velocity, world=empty(40.0, open=True))
    sim.watch_encounters(distance=distance)
    before = sim.agents.position.copy()
    sim.step()
    after = sim.agents.position
    i, j = np.triu_indices(count, 1)
    times = np.linspace(0, 1, 20001)[:, None]
    d, m = before[j] - before[i], (after[j] - after[i]) - (before[j] - before[i])
    square = np.maximum((m * m).sum(axis=1), 1e-300)
    when = np.clip(-(d * m).sum(axis=1) / square, 0.0, 1.0)
    near = np.linalg.norm(d + when[:, None] * m, axis=1) <= distance
    table = sim.encounters.table()
    assert set(zip(i[near].tolist(), j[near].tolist(), strict=True)) == set(
        zip(table.id_a.tolist(), table.id_b.tolist(), strict=True)
    )
    assert near[(i < 5)].sum() > 20
    for row in np.flatnonzero(table.id_a < 5)[:20].tolist():
        a, b = table.id_a[row], table.id_b[row]
        sampled = np.linalg.norm((before[b] - before[a]) + times * ((after - before)[b] - (after - before)[a]), axis=1)
        inside = np.flatnonzero(sampled <= distance)
        if len(inside) > 1:
            assert table.begin[row] == pytest.approx(times[inside[0], 0] * DT, abs=1e-5)


# Closed forms -------------------------------------------------------------------------------------------------------


def test_two_people_who_pass_each_other() -> None:
    """On parallel lines 0.9 m apart, 2 m/s relative to each other, from 6 m away: near while |6 - 2 t| ≤ 1.2 m."""
    sim = straight([(4, 5), (10, 5.9)], [(1, 0), (-1, 0)], radius=0.2)
    sim.watch_encounters(distance=1.5)
    sim.run(until=5.0)
    table = sim.encounters.table()
    assert (table.id_a.tolist(), table.id_b.tolist()) == ([0], [1])
    assert table.begin == pytest.approx([2.4], abs=1e-12)
    assert table.end == pytest.approx([3.6], abs=1e-12)
    assert table.closest == pytest.approx([0.9], abs=1e-12)
    assert table.closest_at == pytest.approx([3.0], abs=1e-12)
    assert np.isnan(table.touched[0])
    assert table.touching.tolist() == [0.0]
    assert (table.began.tolist(), table.ended.tolist()) == (["entered"], ["left"])


def test_two_people_head_on_touch_and_part() -> None:
    sim = straight([(4, 5), (10, 5)], [(1, 0), (-1, 0)], radius=0.2)
    sim.watch_encounters(distance=1.5)
    seen: list[EncounterEvents] = []
    sim.encounters.subscribe(seen.append)
    sim.run(until=5.0)
    table = sim.encounters.table()
    slack = 0.4 * TOUCH_TOLERANCE / 2.0
    assert table.begin == pytest.approx([2.25], abs=1e-12)
    assert table.end == pytest.approx([3.75], abs=1e-12)
    assert table.closest == pytest.approx([0.0], abs=1e-12)
    assert table.touched == pytest.approx([2.8 - slack], abs=1e-12)
    assert table.touching == pytest.approx([0.4 + 2 * slack], abs=1e-12)
    assert len(seen) == 50
    happened = [(kind, how) for each in seen for kind, how in zip(each.kind.tolist(), each.how.tolist(), strict=True)]
    assert happened == [("entered", "entered"), ("touched", ""), ("parted", ""), ("left", "left")]
    times = np.concatenate([each.time for each in seen])
    assert times == pytest.approx([2.25, 2.8 - slack, 3.2 + slack, 3.75], abs=1e-12)


def test_overtaking_between_two_steps_at_high_speed() -> None:
    """80 m/s past somebody at rest, 1 m to the side: in and out within one step, sqrt(1.5² - 1) m on either side."""
    sim = straight([(1.0, 5.0), (5.0, 6.0)], [(80, 0), (0, 0)])
    sim.watch_encounters(distance=1.5)
    sim.step()
    table = sim.encounters.table()
    half = math.sqrt(1.25)
    assert table.begin == pytest.approx([(4.0 - half) / 80.0], abs=1e-14)
    assert table.end == pytest.approx([(4.0 + half) / 80.0], abs=1e-14)
    assert table.closest == pytest.approx([1.0], abs=1e-14)


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_a_pair_that_comes_from_far_away_is_as_exact_as_its_positions(far: float) -> None:
    """The textbook form of the roots loses all digits here: c is far² with 1 m² in its last places."""
    before = np.array([[0.0, 0.0], [far, 0.5]])
    after = np.array([[0.0, 0.0], [-far, 0.5]])
    found = passages(
        np.array([[0, 1]], dtype=np.uint32),
        before=before,
        after=after,
        radius=np.array([0.1, 0.1]),
        period=np.zeros(3),
        distance=1.0,
    )
    half = math.sqrt(0.75)
    assert 2.0 * far * found.first[0] == pytest.approx(far - half, abs=4e-16 * far)
    assert 2.0 * far * found.last[0] == pytest.approx(far + half, abs=4e-16 * far)
    assert 2.0 * far * (found.last[0] - found.first[0]) == pytest.approx(2.0 * half, abs=1e-15 * far)


def test_people_exactly_at_the_distance_are_near_and_stay_so() -> None:
    sim = straight([(4.0, 5.0), (5.5, 5.0), (8.0, 5.0)], [(0.3, 0.1), (0.3, 0.1), (0, 0)])
    sim.watch_encounters(distance=1.5)
    sim.run(until=0.5)
    assert sim.encounters.table().id_b.tolist() == [1]


def test_a_distance_within_the_bodies_counts_touching_only_while_near() -> None:
    sim = straight([(4, 5), (10, 5)], [(1, 0), (-1, 0)], radius=0.5)
    sim.watch_encounters(distance=0.4)
    sim.run(until=5.0)
    table = sim.encounters.table()
    assert table.begin == pytest.approx([2.8])
    assert table.touched.tolist() == table.begin.tolist()
    assert table.touching == pytest.approx([0.4])


# Who is there -------------------------------------------------------------------------------------------------------


def test_nobody_one_person_and_everybody_on_one_point() -> None:
    world = World(shapely.box(0, 0, 10, 10))
    nobody = Simulation(world, Source("a", rate=0.001, region=shapely.box(0, 0, 2, 2), goal="none"))
    nobody.watch_encounters()
    nobody.run(until=0.5)
    assert len(nobody.encounters) == len(nobody.encounters.table()) == 0
    alone = straight([(5, 5)], [(1, 0)])
    alone.watch_encounters()
    alone.run(until=0.5)
    assert len(alone.encounters) == 0
    heap = straight([(5.0, 5.0)] * 6, [(0, 0)] * 6)
    heap.watch_encounters()
    heap.run(until=0.5)
    table = heap.encounters.table()
    assert len(table) == 15
    assert table.closest.tolist() == table.touched.tolist() == table.begin.tolist() == [0.0] * 15
    assert table.touching == pytest.approx([0.5] * 15)
    assert np.isnan(table.end).all()


def test_agents_that_come_and_go() -> None:
    sim = straight([(5, 5), (6, 5), (15, 15)], np.zeros((10, 2)))
    sim.watch_encounters(distance=1.5)
    sim.at(0.3, lambda s: s.add_agents("a", positions=[(5.5, 5.0)], goal="none"))
    sim.at(0.6, lambda s: s.remove_agents(ids=[0]))
    sim.run(until=1.0)
    rows = {(int(a), int(b)): n for n, (a, b) in enumerate(zip(*_ids(sim), strict=True))}
    table = sim.encounters.table()
    assert set(rows) == {(0, 1), (0, 3), (1, 3)}
    for pair, begin, end, ended in (
        ((0, 1), 0.0, 0.6, "gone"),
        ((0, 3), 0.3, 0.6, "gone"),
        ((1, 3), 0.3, math.nan, ""),
    ):
        row = rows[pair]
        assert table.begin[row] == pytest.approx(begin)
        assert table.end[row] == pytest.approx(end, nan_ok=True)
        assert (table.began[row], table.ended[row]) == ("placed", ended)


def _ids(sim: Simulation) -> tuple[list[int], list[int]]:
    table = sim.encounters.table()
    return table.id_a.tolist(), table.id_b.tolist()


def test_an_encounter_ends_with_the_step_in_which_somebody_leaves_by_an_exit() -> None:
    world = World(shapely.box(0, 0, 10, 4), exits={"out": shapely.box(9, 0, 10, 4)})
    sim = Simulation(world, Group("a", positions=[(8, 2), (7, 2)]), dt=DT)
    sim.watch_encounters(distance=1.5)
    sim.run(until="empty", limit=30.0)
    table = sim.encounters.table()
    assert table.ended.tolist() == ["gone"]
    left = sim.population.departures()["time"].min()
    assert left - 1e-9 <= table.end[0] <= sim.time


def test_an_event_that_moves_agents_ends_and_begins_encounters_at_its_moment() -> None:
    def jump(to: float) -> Any:
        def move(sim: Simulation) -> None:
            sim.agents.position[0, 0] = to

        return move

    sim = straight([(5, 5), (5.3, 5), (12, 5)], np.zeros((3, 2)), radius=0.2)
    sim.watch_encounters(distance=1.0)
    seen: list[EncounterEvents] = []
    sim.encounters.subscribe(seen.append)
    sim.at(0.5, jump(12.8))
    sim.run(until=1.0)
    table = sim.encounters.table()
    assert (table.id_a.tolist(), table.id_b.tolist()) == ([0, 0], [1, 2])
    assert table.begin == pytest.approx([0.0, 0.5])
    assert table.end == pytest.approx([0.5, math.nan], nan_ok=True)
    assert (table.began.tolist(), table.ended.tolist()) == (["placed", "placed"], ["moved", ""])
    assert table.touching == pytest.approx([0.5, 0.0])
    at_jump = [each for each in seen if len(each)][1]
    assert at_jump.kind.tolist() == ["parted", "left", "entered"]
    assert at_jump.how.tolist() == ["", "moved", "placed"]


def test_bodies_that_shrink_part() -> None:
    sim = straight([(5, 5), (5.3, 5)], np.zeros((2, 2)), radius=0.2)
    sim.watch_encounters(distance=1.0)
    sim.at(0.5, events.SetParameter(name="radius", value=0.1))
    sim.run(until=1.0)
    assert sim.encounters.table().touching == pytest.approx([0.5])
    assert np.isnan(sim.encounters.table().end).all()


class Solid(Straight):
    """Straight on, until a body is in the way."""

    declares = ModelDeclaration(solid_bodies=True)


def test_solid_bodies_that_press_on_each_other_touch() -> None:
    """The solver keeps a gap between them, which the tolerance covers."""
    assert SLACK < TOUCH_TOLERANCE
    group = Group("a", positions=[(4, 5), (6, 5)], goal="none", radius=0.2)
    sim = Simulation(empty(), group, local=Solid([(1, 0), (-1, 0)]), dt=DT)
    sim.watch_encounters(distance=1.0)
    sim.run(until=1.2)
    table = sim.encounters.table()
    assert table.closest == pytest.approx([0.4 * (1.0 + SLACK)], abs=1e-6)
    assert table.touched == pytest.approx([0.8], abs=1e-3)
    assert table.touching[0] > 0.1


# Calls --------------------------------------------------------------------------------------------------------------


def test_encounters_that_are_not_watched_cannot_be_asked_for() -> None:
    sim = straight([(5, 5)], [(0, 0)])
    with pytest.raises(ParameterError, match="watch_encounters"):
        _ = sim.encounters


@pytest.mark.parametrize("distance", [0.0, -1.0, math.nan, math.inf, 1e30, "far", True, None])
def test_a_distance_must_be_a_length(distance: Any) -> None:
    sim = straight([(5, 5)], [(0, 0)])
    with pytest.raises(ParameterError, match="distance"):
        sim.watch_encounters(distance=distance)
    assert sim.encounter_watch is None


def test_encounters_are_watched_once() -> None:
    sim = straight([(5, 5)], [(0, 0)])
    sim.watch_encounters(distance=2.0)
    with pytest.raises(ParameterError, match="already, within 2 m"):
        sim.watch_encounters(distance=1.0)


def test_a_distance_of_half_the_period_is_refused() -> None:
    sim = straight([(5, 5)], [(0, 0)], world=empty(10.0, periodic=True), sense_radius=1.0)
    with pytest.raises(ParameterError, match="repeats every 10 m"):
        sim.watch_encounters(distance=5.0)
    sim.watch_encounters(distance=4.9)
    sim.step()


def test_steps_that_are_too_long_for_periodic_space_are_refused() -> None:
    sim = straight([(5, 5), (1, 1)], [(12, 0), (0, 0)], world=empty(10.0, periodic=True), sense_radius=1.0)
    sim.watch_encounters(distance=4.0)
    with pytest.raises(ModelError, match=r"agent 0 made a step of 1\.2 m"):
        sim.step()


def test_pairs_across_half_of_a_periodic_world_do_not_meet() -> None:
    """They are nearly half a period apart, and the nearest image changes during the step."""
    velocity = [(-8, 0), (8, 0)]
    sim = straight([(2.55, 5), (7.45, 5)], velocity, world=empty(10.0, periodic=True), sense_radius=1.0)
    sim.watch_encounters(distance=2.5)
    sim.step()
    assert len(sim.encounters) == 0


def test_subscribers_are_functions_and_can_leave() -> None:
    sim = straight([(5, 5), (5.5, 5)], np.zeros((2, 2)))
    sim.watch_encounters()
    seen: list[int] = []

    def note(happened: EncounterEvents) -> None:
        seen.append(len(happened))

    sim.encounters.subscribe(note)
    sim.step()
    sim.encounters.unsubscribe(note)
    sim.step()
    assert seen == [1]
    with pytest.raises(ParameterError, match="not subscribed"):
        sim.encounters.unsubscribe(note)
    with pytest.raises(ParameterError):
        sim.encounters.subscribe("print")  # type: ignore[arg-type]


def test_the_table_is_written_and_read(tmp_path: Path) -> None:
    sim = straight([(4, 5), (10, 5), (5, 5)], [(1, 0), (-1, 0), (0, 0)])
    sim.watch_encounters(distance=1.5)
    sim.run(until=4.0)
    table = sim.encounters.table()
    assert len(table) >= 3
    paths = [sim.encounters.to_parquet(tmp_path / "e.parquet"), sim.encounters.to_csv(tmp_path / "e.csv")]
    for path, exact in zip(paths, (True, False), strict=True):
        again = read_encounters(path)
        for name, values in vars(table).items():
            if values.dtype.kind == "f" and not exact:
                np.testing.assert_allclose(getattr(again, name), values, rtol=1e-9, atol=1e-9)
            else:
                np.testing.assert_array_equal(getattr(again, name), values)
    order = list(zip(table.begin.tolist(), table.id_a.tolist(), table.id_b.tolist(), strict=True))
    assert order == sorted(order)
    with pytest.raises(RecordingError, match=r"to_csv writes \.csv"):
        sim.encounters.to_csv(tmp_path / "e.parquet")
    (tmp_path / "bad.csv").write_text("id_a,id_b\n1,2\n")
    with pytest.raises(TropelError, match="no column 'begin'"):
        read_encounters(tmp_path / "bad.csv")
    (tmp_path / "bad.parquet").write_bytes(b"nonsense")
    with pytest.raises(TropelError, match="not a table"):
        read_encounters(tmp_path / "bad.parquet")
