"""The struct of arrays: stable ids, rows in their order, columns by name, and copies that can be put back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel.agents.state import AgentState, Column, Steered
from tropel.errors import ParameterError

PATIENCE = Column(name="patience", default=3.0, unit="s")
DRIFT = Column(name="drift", vector=True)


@given(st.lists(st.tuples(st.integers(0, 6), st.lists(st.integers(0, 60), max_size=6)), max_size=12))
@settings(max_examples=100, deadline=None)
def test_ids_are_never_reused_and_rows_stay_in_their_order(script: list[tuple[int, list[int]]]) -> None:
    state = AgentState(2)
    there: list[int] = []
    made = 0
    for count, leave in script:
        ids = state.add(count, {"position": np.full((count, 2), float(made)), "radius": 0.1 + made})
        assert ids.tolist() == list(range(made, made + count))
        there += ids.tolist()
        made += count
        state.keep(~np.isin(state.id, leave))
        there = [agent for agent in there if agent not in leave]
        assert state.id.tolist() == there
        assert all(len(column) == len(there) for column in state.columns.values())
        assert state.next_id == made
        rows = state.rows_of([*leave, *there[:3], 10_000])
        assert state.id[rows].tolist() == there[:3]


def test_columns_are_attributes_and_unknown_ones_suggest_the_nearest() -> None:
    state = AgentState(3, [PATIENCE, DRIFT])
    state.add(2, {"position": [(1, 2, 3), (4, 5, 6)], "drift": (0, 0, 1)})
    assert state.patience.tolist() == [3.0, 3.0]
    np.testing.assert_array_equal(state.drift, [(0, 0, 1)] * 2)
    with pytest.raises(AttributeError, match="no column 'patiense'; did you mean 'patience'"):
        _ = state.patiense
    with pytest.raises(ParameterError, match="no parameter 'raduis'; did you mean 'radius'"):
        state.add(1, {"raduis": 1.0})
    assert len(state) == 2


def test_two_models_may_share_a_column_of_one_type_only() -> None:
    assert "patience" in AgentState(2, [PATIENCE, Column(name="patience")]).declared
    with pytest.raises(ParameterError, match="'patience' with different types"):
        AgentState(2, [PATIENCE, Column(name="patience", vector=True)])
    with pytest.raises(ParameterError, match="'radius' with different types"):
        AgentState(2, [Column(name="radius", dtype="int64")])


@pytest.mark.parametrize("dim", [0, 1, 4])
def test_a_world_has_two_or_three_dimensions(dim: int) -> None:
    with pytest.raises(ParameterError, match="2 or 3 dimensions"):
        AgentState(dim)


def test_a_snapshot_is_a_copy_and_can_be_put_back() -> None:
    state = AgentState(2, [PATIENCE])
    state.add(4, {"position": np.arange(8.0).reshape(4, 2), "patience": [1, 2, 3, 4]})
    state.keep(np.array([True, False, True, True]))
    kept = state.snapshot()
    state.position[:] = -1.0
    state.add(1, {})
    fresh = AgentState(2, [PATIENCE])
    fresh.restore(kept)
    assert fresh.id.tolist() == [0, 2, 3]
    assert fresh.next_id == 4
    assert fresh.patience.tolist() == [1, 3, 4]
    np.testing.assert_array_equal(fresh.position, [(0, 1), (4, 5), (6, 7)])
    assert fresh.add(1, {}).tolist() == [4]


def test_a_snapshot_of_other_columns_is_refused_by_their_names() -> None:
    with pytest.raises(ParameterError, match="patience"):
        AgentState(2).restore(AgentState(2, [PATIENCE]).snapshot())
    with pytest.raises(ParameterError, match="patience"):
        AgentState(2, [PATIENCE]).restore(AgentState(2).snapshot())


def test_a_buffer_begins_as_standing_still_with_everything_else_as_it_was() -> None:
    state = AgentState(2, [PATIENCE])
    state.add(3, {"position": np.ones((3, 2)), "heading": (0.0, 1.0), "patience": 5.0})
    buffer = Steered.like(state, ["patience"])
    buffer.velocity[:] = 9.0
    buffer.heading[:] = 9.0
    buffer.position[:] = 9.0
    buffer.memory["patience"][:] = 9.0
    buffer.begin(state)
    assert (buffer.velocity == 0.0).all()
    np.testing.assert_array_equal(buffer.heading, state.heading)
    np.testing.assert_array_equal(buffer.position, state.position)
    np.testing.assert_array_equal(buffer.memory["patience"], state.patience)
    state.drop(np.array([1]))
    buffer.shrink(2)
    buffer.begin(state)
    assert len(buffer) == len(state) == 2
    np.testing.assert_array_equal(buffer.memory["patience"], state.patience)
