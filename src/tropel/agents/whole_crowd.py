"""What all processes that share a crowd know alike: which agents are there, and what is in their columns.

On one process this is a look into the rows. Each agent is moved by one process; the others add zeros to the bits that
this one tells, so nothing is rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState
from tropel.foundation.reductions import Reductions

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Steps per metre in which places are added up: sums of integers are the same in any order.
STEPS_PER_METRE = 2.0**20


def own_rows(ids: Ints, state: AgentState) -> tuple[Ints, NDArray[np.bool_]]:
    """Rows of agents, and which of them this process moves."""
    rows = state.row_of(ids)
    return rows, (rows >= 0) & (rows < state.owned)


def ids_of(rows: Ints, state: AgentState, reduce: Reductions) -> Ints:
    """The ids of the agents in these rows of all processes, ascending."""
    return reduce.union(state.id[rows[rows < state.owned]])


def are_there(ids: Ints, state: AgentState, reduce: Reductions) -> NDArray[np.bool_]:
    """Which agents are present and alive."""
    rows, own = own_rows(ids, state)
    own[own] = state.dead[rows[own]] == 0
    return np.asarray(reduce.counts(own.astype(np.int64)) > 0)


def values_of(ids: Ints, name: str, state: AgentState, reduce: Reductions) -> NDArray[Any]:
    """A column of some agents; zero for those that are not present."""
    rows, own = own_rows(ids, state)
    column = state.columns[name]
    mine = np.zeros((len(ids), *column.shape[1:]), dtype=column.dtype)
    mine[own] = column[rows[own]]
    if mine.dtype == np.float64:
        return reduce.counts(mine.view(np.int64)).view(np.float64)
    return reduce.counts(mine.astype(np.int64)).astype(column.dtype)


def middle_of_crowd(position: Floats, reduce: Reductions) -> Floats:
    """The mean of places that may be on several processes, the same in any order [m]."""
    count = reduce.count(len(position))
    total = reduce.counts(np.floor(position * STEPS_PER_METRE + 0.5).astype(np.int64).sum(axis=0))
    return np.asarray(total / (max(count, 1) * STEPS_PER_METRE))
