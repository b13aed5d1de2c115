"""A function of the user as a decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tropel.contracts import Decided, Decision, Declaration, Moment
from tropel.errors import ModelError, ParameterError


class Decide(Decision):
    """Lets a function of the moment set attributes of its members.

    It returns a dict with a value for everybody, or one for each of `moment.members`, by name:

    def late(moment):
        return {"desired_speed": np.where(moment.time > 60.0, 1.8, 1.2)}

    decisions = [Decide(late, sets=["desired_speed"])]
    """

    def __init__(self, function: Callable[[Moment], Mapping[str, Any]], *, sets: Sequence[str]) -> None:
        if not callable(function) or isinstance(function, type):
            raise ParameterError(f"Decide needs a function of the moment, not {function!r:.60}")
        named = isinstance(sets, Sequence) and not isinstance(sets, str) and all(isinstance(each, str) for each in sets)
        if not named or not sets:
            raise ParameterError(
                f'Decide: sets lists the attributes that it sets, such as ["courage"], not {sets!r:.60}'
            )
        self.function = function
        self.parameters = f"{getattr(function, '__qualname__', type(function).__name__)}, sets={sorted(sets)}"
        self.declares = Declaration(sets=tuple(sets), periodic_space=True)

    def decide(self, moment: Moment, out: Decided) -> None:
        found = self.function(moment)
        if not isinstance(found, Mapping):
            raise ModelError(f"{self.parameters}: a decision returns a dict of attributes, not {found!r:.60}")
        for name, values in found.items():
            if name not in out.attributes:
                raise ModelError(f"{self.parameters}: it sets '{name}' without having declared that, as in  sets=[…]")
            try:
                out.attributes[name][moment.members] = np.asarray(values)
            except ValueError as error:
                raise ModelError(
                    f"{self.parameters}: '{name}' needs one value, or one for each of {len(moment.members)} members"
                ) from error
