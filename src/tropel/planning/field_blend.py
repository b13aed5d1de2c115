"""Blend planners: 0.7 of a flow field and 0.3 of what somebody painted.

The direction is the weighted mean of those planners that say something at a place: where one of them is silent (zero),
the others count fully, so nobody slows down because a field has gaps. Directions that contradict each other make a
shorter vector, and people go slower there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.arguments import checked_arguments
from tropel.contracts import Declaration, Guidance, Moment, Planner
from tropel.errors import ParameterError, is_finite
from tropel.offers import inner_offers
from tropel.registry import PLANNERS


class Blend(Planner):
    """A weighted mean of planners, given as pairs (weight, planner).

    A planner may be a name such as "flow_field", or a table {"model": "harmonic", "walls": "reflecting"}, which is how
    scenario files do.
    """

    @checked_arguments
    def __init__(self, parts: Sequence[Any]) -> None:
        if not len(parts):
            raise ParameterError("Blend needs one planner or more, as pairs (weight, planner)")
        self.parts: list[tuple[float, Planner]] = []
        for number, part in enumerate(parts):
            if not isinstance(part, Sequence) or isinstance(part, str) or len(part) != 2:
                raise ParameterError(f"part {number} of a Blend must be a pair (weight, planner), not {part!r}")
            weight, planner = part
            if not (is_finite(weight) and weight > 0.0):
                raise ParameterError(f"part {number} of a Blend needs a weight above 0, not {weight!r}")
            self.parts.append((float(weight), planner_named(planner, f"part {number} of a Blend")))
        self.inner = tuple(planner for _, planner in self.parts)
        self.declares: Declaration = declared_by(self.inner)

    @property
    def parameters(self) -> str:
        return ", ".join(f"{weight!r} {planner.describe()}" for weight, planner in self.parts)

    def offers(self) -> tuple[object, ...]:
        return inner_offers(self.inner)

    def prepare(self, moment: Moment) -> None:
        """Called once before the first step."""
        for _, planner in self.parts:
            planner.prepare(moment)

    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write the mean of what the planners say for the members."""
        members = moment.members
        total = np.zeros((len(members), out.directions.shape[1]))
        weights = np.zeros(len(members))
        own = replace(out, directions=np.zeros_like(out.directions))
        for weight, planner in self.parts:
            own.directions[members] = 0.0
            planner.direct(moment, own)
            said = own.directions[members]
            total += weight * said
            weights += weight * said.any(axis=1)
        out.directions[members] = total / np.where(weights > 0.0, weights, 1.0)[:, None]

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


def planner_named(planner: Any, what: str) -> Planner:
    """A planner by its short name, or by a table of its name as `model` and its parameters; others as they are."""
    if isinstance(planner, str):
        planner = {"model": planner}
    found = PLANNERS.make(planner) if isinstance(planner, Mapping) else planner
    if not isinstance(found, Planner):
        raise ParameterError(f"{what} must be a planner, of a class that extends tropel.Planner, not {found!r}")
    return found


def declared_by(planners: Sequence[Planner]) -> Declaration:
    """What a planner declares that asks others: all that these need, and no more space than all of them know."""
    return Declaration(
        columns=tuple(dict.fromkeys(column for planner in planners for column in planner.declares.columns)),
        memory=tuple(dict.fromkeys(column for planner in planners for column in planner.declares.memory)),
        periodic_space=all(planner.declares.periodic_space for planner in planners),
    )
