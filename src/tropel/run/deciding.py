"""The stage `decide`: agents go on to the next of their stages, and decisions change what they are like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import POINT, AgentState
from tropel.contracts import Decided, Decision, Layer, Moment, Rows
from tropel.errors import ModelError, ParameterError, suggest
from tropel.world import World

#: What may be set besides parameters: the columns that say where an agent goes.
GOAL_COLUMNS = ("goal", "goal_point")

Members = Callable[[tuple[int, ...]], Rows]


def decisions_of(groups: Sequence[str], told: Any) -> list[tuple[Decision, tuple[int, ...]]]:
    """Every decision once, in the order given, with the numbers of the groups that it is for."""
    if isinstance(told, Mapping):
        for name in told:
            if name not in groups:
                raise ParameterError(f"decisions: there is no group '{name}'; {suggest(name, groups)}")
    found: dict[int, tuple[Decision, list[int]]] = {}
    for number, name in enumerate(groups):
        own = told.get(name, ()) if isinstance(told, Mapping) else told
        if isinstance(own, Decision) or not isinstance(own, Sequence):
            raise ParameterError(f"decisions: give a list of them, such as [Tired()], not {own!r:.60}")
        for decision in own:
            if not isinstance(decision, Decision):
                raise ParameterError(f"decisions: {decision!r:.60} is not a decision; use objects such as Tired()")
            found.setdefault(id(decision), (decision, []))[1].append(number)
    return [(decision, tuple(numbers)) for decision, numbers in found.values()]


def let_decide(decisions: Iterable[tuple[Decision, tuple[int, ...]]], moment: Moment, members: Members) -> None:
    """Call the decisions one after the other; each gets what the one before has decided."""
    for decision, groups in decisions:
        state = moment.state
        out = Decided(
            attributes={name: state.columns[name].copy() for name in decision.declares.sets},
            memory={name: state.columns[name].copy() for name in decision.memory_names},
        )
        own = replace(moment, members=members(groups), groups=groups)
        decision.decide(own, out)
        swap_in(out.attributes, decision, state, moment.world, own.members)
        state.columns |= out.memory


def swap_in(
    attributes: Mapping[str, NDArray[Any]], layer: Layer | str, state: AgentState, world: World, members: Rows
) -> None:
    """Make new attributes those of the agents, if they are allowed."""
    who = layer if isinstance(layer, str) else type(layer).__name__
    for name, values in attributes.items():
        if wrong := what_is_wrong(name, values[members], state, world):
            row, why = wrong
            raise ModelError(f"{who} sets {name} of agent {int(state.id[members[row]])} to {why}")
    state.columns |= attributes


def what_is_wrong(name: str, values: NDArray[Any], state: AgentState, world: World) -> tuple[int, str] | None:
    """The first row with a value that is not allowed for an attribute, and what it must be; None if all are fine."""
    column = state.declared[name]
    flat = values if values.ndim > 1 else values[:, None]
    # A default of nan means the model's own value.
    unset = np.isnan(flat) & np.isnan(column.default) if column.dtype == "float64" else np.zeros(flat.shape, dtype=bool)
    wrong = column.is_wrong(flat) & ~unset
    allowed = column.allowed
    if name == "goal":
        wrong |= (flat < POINT) | (flat >= len(world.goal_numbers))
        allowed = f"the number of a goal, up to {len(world.goal_numbers) - 1}, or one of NEAREST_…, NO_GOAL and POINT"
    if not wrong.any():
        return None
    row = int(np.argmax(wrong.any(axis=1)))
    return row, f"{flat[row].tolist() if flat.shape[1] > 1 else flat[row, 0].item()!r}; it must be {allowed}"
