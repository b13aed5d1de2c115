"""Where cells lie, who is in them and in which order, and when agents are sorted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sorted_crowds import (
    HIGH,
    LOW,
    brute_force,
    canonical_order,
    lists_of,
    make_state,
    make_world,
    sensed,
)
from tropel import Grid, Group, Simulation, World
from tropel.agents.state import AgentState
from tropel.broad_phase import CellGrid
from tropel.broad_phase.cell_sort import CellSort
from tropel.errors import CheckpointError, ModelError
from tropel.recording.checkpoint import load_checkpoint


@pytest.mark.parametrize("dim", [2, 3])
def test_the_cell_list_holds_every_column_in_canonical_order(dim: int) -> None:
    rng = np.random.default_rng(9)
    state = make_state(rng.uniform(LOW - 2.0, HIGH + 2.0, (500, dim)), 1.0)
    cells = CellGrid.of(state, make_world(dim))
    order, listed = canonical_order(state, cells), cells.cell_list
    assert listed.order.tolist() == order.tolist()
    for name in ("position", "velocity"):
        assert np.array_equal(getattr(listed, name), state.columns[name][order].T)
    for name in ("radius", "group", "sense_radius"):
        assert np.array_equal(getattr(listed, name), state.columns[name][order])


def test_rows_by_cell_are_the_members_in_cell_order() -> None:
    rng = np.random.default_rng(10)
    state = make_state(rng.uniform(LOW, HIGH, (300, 2)), 1.0)
    cells = CellGrid()
    sensed(cells, state, make_world(2))
    order = canonical_order(state, cells)
    members = np.flatnonzero(state.group == 1)
    for _ in range(2):
        assert cells.rows_by_cell(members).tolist() == [row for row in order if row in set(members.tolist())]
    assert cells.rows_by_cell(np.arange(300)).tolist() == order.tolist()
    assert cells.rows_by_cell(np.arange(0)).tolist() == []


def test_restored_cells_keep_the_order_although_the_agents_have_changed() -> None:
    rng = np.random.default_rng(11)
    world = make_world(2)
    state = make_state(rng.uniform(LOW, HIGH, (1500, 2)), rng.uniform(0.5, 3.0, 1500))
    running = CellGrid()
    sensed(running, state, world)
    state.keep(state.sense_radius < 1.0)
    resumed, fresh = CellGrid(), CellGrid()
    resumed.restore({name: array.copy() for name, array in running.state().items()})
    expected = lists_of(sensed(running, state, world).csr())
    assert lists_of(sensed(resumed, state, world).csr()) == expected
    assert lists_of(sensed(fresh, state, world).csr()) != expected
    assert {name: a.tolist() for name, a in resumed.state().items()} == {
        name: a.tolist() for name, a in running.state().items()
    }


def test_agents_may_come_and_go() -> None:
    rng = np.random.default_rng(12)
    world, cells = make_world(2), CellGrid()
    state = AgentState(2)
    assert lists_of(sensed(cells, state, world).csr()) == []
    assert cells.state() == {}
    for arriving in (1, 600, 50, 2000):
        state.add(arriving, {"position": rng.uniform(LOW, HIGH, (arriving, 2)), "sense_radius": 0.7})
        assert lists_of(sensed(cells, state, world).csr()) == brute_force(state, cells)
        state.keep(rng.random(len(state)) < 0.5)
        assert lists_of(sensed(cells, state, world).csr()) == brute_force(state, cells)


def test_the_cell_is_chosen_once_and_declared_cells_are_kept() -> None:
    state = make_state(np.random.default_rng(13).uniform(LOW, HIGH, (50, 2)), 2.0)
    cells = CellGrid()
    sensed(cells, state, make_world(2))
    assert cells.state()["cell"] == pytest.approx(2.0, rel=1e-4)
    state.sense_radius[:] = 0.5
    sensed(cells, state, make_world(2))
    assert cells.state()["cell"] == pytest.approx(2.0, rel=1e-4)
    cells.allocate(state, make_world(2))
    assert cells.state()["cell"] == pytest.approx(0.5, rel=1e-4)
    declared = CellGrid(cell=3.0)
    sensed(declared, state, make_world(2))
    assert declared.state()["cell"] == pytest.approx(3.0, rel=1e-4)


def test_another_world_gets_other_cells() -> None:
    state = make_state(np.random.default_rng(14).uniform(LOW, HIGH, (50, 2)), 2.0)
    cells = CellGrid()
    sensed(cells, state, make_world(2))
    sensed(cells, state, make_world(2, high=30.0))
    assert cells.state()["bounds"].tolist() == [[LOW, LOW], [30.0, 30.0]]
    assert lists_of(sensed(cells, state, make_world(2, high=30.0)).csr()) == brute_force(state, cells)


@pytest.mark.parametrize("cell", [None, 0.001])
def test_a_huge_world_has_fewer_and_larger_cells(cell: float | None) -> None:
    rng = np.random.default_rng(15)
    state = make_state(rng.uniform(0.0, 5.0, (200, 2)), 0.5)
    cells = CellGrid(cell=cell)
    near = sensed(cells, state, make_world(2, high=5e4))
    assert len(cells.cell_list.cell_start) - 1 <= 2**24
    assert lists_of(near.csr()) == brute_force(state, cells)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_agent_without_a_place_is_named(wrong: float, axis: int) -> None:
    state = make_state(np.zeros((5000, 3)), 0.0)
    state.keep(state.id != 17)
    state.position[4500, axis] = wrong
    with pytest.raises(ModelError, match="agent 4501 is at"):
        CellGrid.of(state, make_world(3)).sorting  # noqa: B018


@pytest.mark.parametrize("wrong", [np.nan, -1.0])
def test_an_agent_with_an_impossible_sense_radius_is_named(wrong: float) -> None:
    state = make_state(np.zeros((10, 2)), 1.0)
    state.sense_radius[6] = wrong
    with pytest.raises(ModelError, match="agent 6 has a sense radius"):
        CellGrid.of(state, make_world(2)).sorting  # noqa: B018


def test_dimensions_must_agree() -> None:
    with pytest.raises(ModelError, match="dimension"):
        CellGrid.of(make_state(np.zeros((3, 2)), 1.0), make_world(3))


def test_sorting_before_allocating_is_refused() -> None:
    with pytest.raises(ModelError, match="allocate"):
        CellGrid().update(make_state(np.zeros((3, 2)), 1.0))


def test_asking_before_anybody_is_there_to_sort_is_refused() -> None:
    for ask in (lambda: CellGrid().sorting, lambda: CellGrid().cell_list, lambda: CellGrid().reach):
        with pytest.raises(ModelError, match=r"no agents to sort yet; call begin\(state, world\) first"):
            ask()


def test_agents_are_sorted_at_most_once_per_phase_and_only_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_when: list[int] = []
    sort = CellSort.sort

    def counted(self: CellSort, state: AgentState) -> int | None:
        sorted_when.append(phase)
        return sort(self, state)

    monkeypatch.setattr(CellSort, "sort", counted)
    state, world = make_state(np.random.default_rng(16).uniform(LOW, HIGH, (50, 2)), 2.0), make_world(2)
    cells = CellGrid()
    for phase in range(3):
        cells.begin(state, world)
        if phase != 1:
            first, again = cells.sorting.version, cells.sorting.version
            cells.cell_list, cells.reach, cells.rows_by_cell(np.arange(5))
            assert first == again
    assert sorted_when == [0, 2]


def test_agents_stay_where_they_were_sorted_until_the_next_phase() -> None:
    """Whoever moves in the meantime, or changes its heading, is looked for where it was."""
    state, world = make_state(np.array([[0.0, 0.0], [5.0, 5.0], [9.0, 9.0]]), 2.0), make_world(2)
    cells = CellGrid.of(state, world)
    before = cells.cell_list.order.tolist()
    state.position[:] = state.position[::-1].copy()
    assert cells.cell_list.order.tolist() == before
    cells.begin(state, world)
    assert cells.cell_list.order.tolist() == before[::-1]


def test_rows_in_another_order_are_sorted_by_id_within_a_cell() -> None:
    state = make_state(np.zeros((6, 2)), 1.0)
    state.columns = {name: array[[3, 0, 5, 1, 4, 2]] for name, array in state.columns.items()}
    state.touch()
    cells = CellGrid.of(state, make_world(2))
    assert state.id[cells.cell_list.order].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_reach_only_grows_and_a_simulation_stores_it(tmp_path: Path) -> None:
    sim = Simulation(World(bounds=(0, 0, 50, 50)), Group("a", positions=[(5.0, 5.0)], sense_radius=2.0))
    sim.step()
    assert sim.cells.reach == 2.0
    sim.add_agents("a", positions=[(20.0, 20.0)], sense_radius=9.0)
    sim.step()
    sim.remove_agents(ids=[1])
    sim.step()
    assert sim.cells.reach == 9.0
    sim.save(tmp_path / "later")
    stored, _ = load_checkpoint(tmp_path / "later")
    assert sorted(name for name in stored if name.startswith("cells/")) == [
        "cells/bounds",
        "cells/box",
        "cells/cell",
        "cells/period",
        "cells/reach",
    ]
    assert not any(name.startswith("layers/0/") for name in stored)
    fresh = Simulation(World(bounds=(0, 0, 50, 50)), Group("a", positions=[(5.0, 5.0)], sense_radius=2.0))
    fresh.restore(tmp_path / "later")
    assert fresh.cells.reach == 9.0
    assert fresh.state_hash() == sim.state_hash()


def test_the_environment_says_how_large_cells_are() -> None:
    sim = Simulation(World(bounds=(0, 0, 50, 50)), Group("a", count=3), environment=Grid(cell=3.0))
    assert sim.cells.state()["cell"] == pytest.approx(3.0, rel=1e-4)


def test_a_checkpoint_of_something_else_is_refused() -> None:
    with pytest.raises(CheckpointError, match="bounds, box, period, cell and reach"):
        CellGrid().restore({"triangles": np.zeros(3)})
