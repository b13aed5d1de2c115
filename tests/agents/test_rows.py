"""Rows of agents: what they mean, until when, and whose they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import tropel
from tropel.agents.state import AgentState, Column
from tropel.errors import ParameterError

PATIENCE = Column(name="patience", default=3.0)


def people(count: int, *extra: Column) -> AgentState:
    state = AgentState(2, extra)
    state.add(count, {"position": np.arange(2.0 * count).reshape(count, 2)})
    return state


def shuffled(state: AgentState, seed: int = 1) -> np.ndarray:
    """Put rows into another order; returns which row is where."""
    order = np.random.default_rng(seed).permutation(len(state))
    state.columns = {name: array[order] for name, array in state.columns.items()}
    state.touch()
    return order


def rows_of_others(state: AgentState, ids: Any) -> dict[str, np.ndarray]:
    """Columns of agents that are moved elsewhere."""
    columns = {name: column.filled(len(ids), state.dim) for name, column in state.declared.items()}
    columns["id"] = np.array(ids, dtype=np.int64)
    columns["position"] = np.full((len(ids), state.dim), 50.0)
    return columns


# Whom rows mean -----------------------------------------------------------------------------------------------------


def test_the_version_is_another_one_whenever_rows_mean_others() -> None:
    state = people(4)
    snapshot = state.snapshot()
    seen = [state.version]
    for change in (
        lambda: state.add(1, {}),
        lambda: state.drop(np.array([1])),
        lambda: state.keep(state.id != 3),
        lambda: state.restore(snapshot),
        lambda: state.look_at(rows_of_others(state, [70, 71])),
        lambda: state.look_at(rows_of_others(state, [])),
        state.touch,
    ):
        change()
        seen.append(state.version)
    assert len(set(seen)) == len(seen)


def test_the_version_stays_while_the_same_agents_move_and_change() -> None:
    world = tropel.World(shapely.box(0, 0, 10, 10), targets={"there": (9, 9)})
    sim = tropel.Simulation(world, tropel.Group("a", count=5, goal="there"))
    before = sim.agents.version
    for _ in range(3):
        sim.step()
    sim.set_parameter("desired_speed", 2.0)
    assert sim.agents.version == before
    sim.remove_agents(ids=[2])
    assert sim.agents.version != before


def test_no_two_states_have_the_same_version() -> None:
    assert people(3).version != people(3).version


def test_a_restored_simulation_has_another_version(tmp_path: Any) -> None:
    sim = tropel.Simulation(tropel.World(shapely.box(0, 0, 10, 10)), tropel.Group("a", count=5))
    sim.save(tmp_path / "c")
    before = sim.agents.version
    sim.restore(tmp_path / "c")
    assert sim.agents.version != before


# Which row an id has ------------------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 30)), st.lists(st.integers(-3, 40), max_size=20), st.booleans(), st.integers(0, 99))
def test_rows_of_ids_are_those_of_a_plain_search(leave: set[int], asked: list[int], mixed: bool, seed: int) -> None:
    state = people(31)
    state.keep(~np.isin(state.id, list(leave)))
    if mixed:
        shuffled(state, seed)
    place = {int(who): row for row, who in enumerate(state.id)}
    assert state.row_of(np.array(asked, dtype=np.int64)).tolist() == [place.get(who, -1) for who in asked]
    assert state.rows_of(asked).tolist() == [place[who] for who in asked if who in place]
    assert state.in_id_order == (np.diff(state.id) > 0).all()


def test_nobody_has_no_row() -> None:
    state = AgentState(2)
    assert state.row_of(np.array([0, 5])).tolist() == [-1, -1]
    assert state.rows_of([0, 5]).tolist() == []
    assert state.row_of(np.empty(0, dtype=np.int64)).tolist() == []
    assert people(3).rows_of([]).tolist() == []


def test_rows_are_found_after_each_change_of_who_is_there() -> None:
    state = people(6)
    assert state.rows_of([4]).tolist() == [4]
    order = shuffled(state)
    assert state.rows_of([4]).tolist() == np.flatnonzero(order == 4).tolist()
    state.keep(state.id != 4)
    assert state.rows_of([4]).tolist() == []
    assert state.id[state.rows_of([5, 0, 2])].tolist() == [5, 0, 2]
    state.add(1, {})
    assert state.id[state.rows_of([6])].tolist() == [6]


# Whose rows they are ------------------------------------------------------------------------------------------------


def test_those_who_are_moved_elsewhere_come_behind_ones_own() -> None:
    state = people(3, PATIENCE)
    assert (state.owned, state.ghosts) == (3, 0)
    before = state.position.copy()
    state.look_at(rows_of_others(state, [90, 80]))
    assert state.id.tolist() == [0, 1, 2, 90, 80]
    assert (len(state), state.owned, state.ghosts) == (5, 3, 2)
    np.testing.assert_array_equal(state.position[:3], before)
    np.testing.assert_array_equal(state.position[3:], [(50.0, 50.0)] * 2)
    np.testing.assert_array_equal(state.patience, [3.0] * 5)
    assert state.rows_of([80, 1]).tolist() == [4, 1]
    assert state.next_id == 3


def test_others_replace_those_from_before() -> None:
    state = people(3)
    state.look_at(rows_of_others(state, [90, 80]))
    state.look_at(rows_of_others(state, [60]))
    assert state.id.tolist() == [0, 1, 2, 60]
    state.look_at(rows_of_others(state, []))
    assert state.id.tolist() == [0, 1, 2]
    assert (state.owned, state.ghosts) == (3, 0)


def test_columns_keep_their_types_whatever_others_have() -> None:
    state = people(2)
    others = rows_of_others(state, [7])
    others["group"] = others["group"].astype(np.int64)
    state.look_at(others)
    for name, column in state.declared.items():
        assert state.columns[name].dtype == np.dtype(column.dtype), name


@pytest.mark.parametrize("change", ["missing", "unknown"])
def test_rows_of_others_have_the_columns_of_ones_own(change: str) -> None:
    state = people(2, PATIENCE)
    others = rows_of_others(state, [7])
    if change == "missing":
        del others["patience"]
    else:
        others["hunger"] = np.zeros(1)
    with pytest.raises(ParameterError, match=r"differ in (patience|hunger)"):
        state.look_at(others)
    assert len(state) == 2


def test_restored_agents_are_all_ones_own() -> None:
    state = people(3)
    snapshot = state.snapshot()
    state.look_at(rows_of_others(state, [90]))
    state.restore(snapshot)
    assert (len(state), state.owned) == (3, 3)


def test_members_are_ones_own_living() -> None:
    world = tropel.World(shapely.box(0, 0, 99, 99))
    sim = tropel.Simulation(world, [tropel.Group("a", count=3), tropel.Group("b", count=2)])
    sim.agents.dead[1] = 1
    sim.agents.look_at(rows_of_others(sim.agents, [90, 91]))
    sim.population._members.clear()
    assert sim.population.members((0, 1)).tolist() == [0, 2, 3, 4]
    assert sim.population.members((0,)).tolist() == [0, 2]
    assert sim.population.members((1,)).tolist() == [3, 4]
    assert sim.population.living == 4
    assert sim.moment().members.tolist() == [0, 2, 3, 4]
