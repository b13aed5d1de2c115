"""Blend planners: 0.7 of a flow field and 0.3 of what somebody painted.

The direction is the weighted mean of those planners that say something at a place: where one of them is silent (zero),
the others count fully, so nobody slows down because a field has gaps. Directions that contradict each other make a
shorter vector, and people go slower there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState
from tropel.arguments import checked_arguments
from tropel.errors import ParameterError, is_finite
from tropel.offers import inner_offers
from tropel.registry import PLANNERS
from tropel.world import World


class Blend:
    """A weighted mean of planners, given as pairs (weight, planner).

    A planner may be a name such as "flow_field", or a table {"model": "harmonic", "walls": "reflecting"}, which is how
    scenario files do.
    """

    @checked_arguments
    def __init__(self, parts: Sequence[Any]) -> None:
        if not len(parts):
            raise ParameterError("Blend needs one planner or more, as pairs (weight, planner)")
        self.parts: list[tuple[float, Wrapped]] = []
        for number, part in enumerate(parts):
            if not isinstance(part, Sequence) or isinstance(part, str) or len(part) != 2:
                raise ParameterError(f"part {number} of a Blend must be a pair (weight, planner), not {part!r}")
            weight, planner = part
            if not (is_finite(weight) and weight > 0.0):
                raise ParameterError(f"part {number} of a Blend needs a weight above 0, not {weight!r}")
            self.parts.append((float(weight), Wrapped(planner_named(planner), f"part {number} of a Blend")))

    @property
    def parameters(self) -> str:
        return ", ".join(f"{weight!r} {planner.description}" for weight, planner in self.parts)

    @property
    def inner(self) -> tuple[Any, ...]:
        """The planners that are blended."""
        return tuple(part.planner for _, part in self.parts)

    @property
    def periodic_space(self) -> bool:
        return all(getattr(planner, "periodic_space", False) for planner in self.inner)

    @property
    def columns(self) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(column for _, planner in self.parts for column in planner.columns))

    def offers(self) -> tuple[object, ...]:
        return inner_offers(self.inner)

    def prepare(self, state: AgentState, world: World, seed: int) -> None:
        """Called once before the first step."""
        for _, planner in self.parts:
            planner.prepare(state, world, seed)

    def direct(self, state: AgentState, members: NDArray[np.int64], out: NDArray[np.float64]) -> None:
        """Write the mean of what the planners say into the rows of `members`."""
        total = np.zeros((len(members), out.shape[1]))
        weights = np.zeros(len(members))
        own = np.zeros_like(out)
        for weight, planner in self.parts:
            own[members] = 0.0
            planner.direct(state, members, own)
            said = own[members]
            total += weight * said
            weights += weight * said.any(axis=1)
        out[members] = total / np.where(weights > 0.0, weights, 1.0)[:, None]

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            f"{number}.{name}": array
            for number, (_, planner) in enumerate(self.parts)
            for name, array in planner.state().items()
        }

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        for number, (_, planner) in enumerate(self.parts):
            head = f"{number}."
            planner.restore({name.removeprefix(head): array for name, array in stored.items() if name.startswith(head)})


class Wrapped:
    """A planner inside another one: what it does not have counts as empty."""

    def __init__(self, planner: Any, what: str) -> None:
        if not callable(getattr(planner, "direct", None)):
            raise ParameterError(f"{what} must be a planner with a method direct(state, members, out), not {planner!r}")
        self.planner = planner

    @property
    def columns(self) -> tuple[Any, ...]:
        return (*getattr(self.planner, "columns", ()), *getattr(self.planner, "memory", ()))

    @property
    def description(self) -> str:
        kind = type(self.planner)
        return f"{kind.__module__}.{kind.__qualname__}({getattr(self.planner, 'parameters', '')})"

    def prepare(self, state: AgentState, world: World, seed: int) -> None:
        method = getattr(self.planner, "prepare", None)
        if method is not None:
            method(state, world, seed)

    def direct(self, state: AgentState, members: NDArray[np.int64], out: NDArray[np.float64]) -> None:
        self.planner.direct(state, members, out)

    def state(self) -> dict[str, NDArray[Any]]:
        method = getattr(self.planner, "state", None)
        return {} if method is None else dict(method())

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        method = getattr(self.planner, "restore", None)
        if method is not None:
            method(dict(stored))


def planner_named(planner: Any) -> Any:
    """A planner by its short name, or by a table of its name as `model` and its parameters; others as they are."""
    if isinstance(planner, str):
        planner = {"model": planner}
    return PLANNERS.make(planner) if isinstance(planner, Mapping) else planner
