"""Numbers with a meaning: the name, default, unit, limits and help text of a number are written once, in a `Quantity`.

Everything that handles the number takes them from there: checks of Python arguments and files, the JSON schema of
scenario files, events, `set_parameter`, sliders of the viewer. Columns of agents are quantities (`agents/state.py`),
and so are the parameters of layers, as fields of their dataclasses:

    @named_parameters
    @dataclass(frozen=True, kw_only=True)
    class SeekParameters:
        time_gap: float = number(0.5, above=0.0, unit="s", about="time kept to the agent ahead")
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number: what it is, its default, and which values are allowed."""

    name: str
    default: Any = 0.0
    unit: str = ""
    about: str = ""
    low: float = -math.inf  #: the smallest value allowed
    high: float = math.inf  #: the largest
    above: float | None = None  #: values must be greater than this; instead of `low`
    below: float | None = None  #: values must be less than this; instead of `high`
    whole: bool = False  #: a whole number
    optional: bool = False  #: None is allowed and means "not given"

    @property
    def allowed(self) -> str:
        """The allowed values, as the tail of a sentence: "a positive number"."""
        kind = "whole number" if self.whole else "number"
        low = self.low if self.above is None else self.above
        high = self.high if self.below is None else self.below
        unit = f" {self.unit}" if self.unit else ""
        if low == 0.0 and self.above is not None and self.below is None and 1000.0 <= high < math.inf:
            return f"a positive {kind}, at most {high:.4g}{unit}"
        if math.isfinite(low) and math.isfinite(high):
            ends = "" if self.above is None and self.below is None else ", ends excluded"
            if self.above is not None and self.below is None:
                ends = f", {low:.4g} excluded"
            elif self.above is None and self.below is not None:
                ends = f", {high:.4g} excluded"
            return f"a {kind} from {low:.4g} to {high:.4g}{unit}{ends}"
        if math.isfinite(low):
            if low == 0.0:
                return f"a positive {kind}" if self.above is not None else f"a {kind} that is not negative"
            return f"a {kind} {'above' if self.above is not None else 'of at least'} {low:.4g}{unit}"
        if math.isfinite(high):
            return f"a {kind} {'below' if self.below is not None else 'of at most'} {high:.4g}{unit}"
        return f"a finite {kind}"

    def is_wrong(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of many values are not allowed."""
        wrong = ~np.isfinite(values) | (values < self.low) | (values > self.high)
        if self.above is not None:
            wrong |= values <= self.above
        if self.below is not None:
            wrong |= values >= self.below
        if self.whole:
            wrong |= values != np.floor(values)
        return np.asarray(wrong, dtype=np.bool_)

    def allows(self, value: Any) -> bool:
        """Whether a single value of any type is allowed."""
        if value is None:
            return self.optional
        try:
            return is_number(value) and not self.is_wrong(np.array(float(value)))
        except OverflowError:
            return False

    def check(self, value: Any, who: str) -> None:
        """Raise unless a value is allowed; `who` is its owner, and begins the message."""
        if not self.allows(value):
            raise ParameterError(f"{who}: {self.name} must be {self.allowed}, not {reprlib.repr(value)}")

    @property
    def help(self) -> str:
        """A line for people: what it is, and its unit."""
        return f"{self.about} [{self.unit}]" if self.unit else self.about

    def limits_in_schema(self) -> dict[str, float]:
        """Its limits in the terms of JSON Schema."""
        limits = {
            "exclusiveMinimum": self.above,
            "exclusiveMaximum": self.below,
            "minimum": self.low if math.isfinite(self.low) and self.above is None else None,
            "maximum": self.high if math.isfinite(self.high) and self.below is None else None,
        }
        return {name: limit for name, limit in limits.items() if limit is not None}


def is_number(value: object) -> bool:
    """Whether it is a real number; booleans, including NumPy's, are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def number(default: float | None, **declared: Any) -> Any:
    """A field of a dataclass of parameters that holds a number; `declared` are the fields of `Quantity`."""
    return dataclasses.field(default=default, metadata={"quantity": declared})


def quantity_of(field: dataclasses.Field[Any]) -> Quantity | None:
    """The quantity that a field of a dataclass declares with `number`; None for other fields."""
    declared = field.metadata.get("quantity")
    if declared is None:
        return None
    default = None if field.default is dataclasses.MISSING else field.default
    return Quantity(name=field.name, default=default, **{"optional": default is None, **declared})


def check_numbers(kind: type, given: dict[str, Any]) -> None:
    """Raise if a value given for a field of a dataclass is not what the field declares."""
    for field in dataclasses.fields(kind):
        quantity = quantity_of(field)
        if quantity is not None and field.name in given:
            quantity.check(given[field.name], kind.__name__.removesuffix("Parameters"))
