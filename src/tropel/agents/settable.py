"""Parameters of agents that can be set while a simulation runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.distributions import draw_quantity
from tropel.agents.state import AgentState, Column
from tropel.errors import ParameterError, suggest
from tropel.foundation.quantities import is_number

#: Instead of a number: the value of agents for which none is given.
DEFAULT = "default"


def settable_columns(state: AgentState) -> dict[str, Column]:
    """The parameters that can be set during a run, by name."""
    return {name: column for name, column in state.declared.items() if column.settable}


def check_settable(state: AgentState, name: str, value: Any = DEFAULT) -> None:
    """Raise if agents have no such parameter, or if the value is not allowed."""
    settable = settable_columns(state)
    if name not in settable:
        raise ParameterError(f"agents have no parameter '{name}' to set; {suggest(str(name), settable)}")
    if is_number(value):
        settable[name].check(value, "set_parameter")


def set_column(
    state: AgentState, rows: NDArray[np.int64], name: str, value: Any, *, seed: int, group: str | None, step: int
) -> None:
    """Give the agents in these rows a new value of a parameter, drawn for a group (or everybody) in a step."""
    column = state.declared[name]
    if isinstance(value, str) and value == DEFAULT:
        state.columns[name][rows] = column.default
        return
    purpose = f"{group or 'everybody'}/{name}/{step}"
    ids = state.id[rows]
    state.columns[name][rows] = draw_quantity(column, value, seed=seed, purpose=purpose, ids=ids, who="set_parameter")
