"""Distributions that per-agent parameters are drawn from, with counter-based random numbers."""

from __future__ import annotations

import math
import reprlib
from statistics import NormalDist
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from tropel._kernels.philox import normals, random_key, uniforms
from tropel.errors import ParameterError, readable_errors
from tropel.foundation.arguments import numbers_in
from tropel.foundation.field_types import Finite, NotNegative
from tropel.foundation.quantities import Quantity, is_number

_MOST_REDRAWS = 200
#: No property of an agent is larger; squares and sums of such values stay finite.
_LARGEST = 1e12


_CONFIG = ConfigDict(extra="forbid")


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Normal:
    """A normal distribution; values outside [low, high] are drawn again, so that they do not pile up at the ends."""

    mean: Finite
    sd: NotNegative
    low: Finite | None = None
    high: Finite | None = None
    kind: Literal["normal"] = "normal"

    @model_validator(mode="after")
    def _reachable(self) -> Normal:
        low, high = self._range()
        if low > high:
            raise ValueError(f"low ({low:g}) must not be above high ({high:g})")
        if low > self.mean + 4 * self.sd or high < self.mean - 4 * self.sd:
            raise ValueError("the range low–high lies more than four standard deviations from the mean")
        return self

    def _range(self) -> tuple[float, float]:
        return -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high

    def draw(self, key: np.uint64, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        low, high = self._range()
        values = self.mean + self.sd * normals(key, ids, draw=0)[:, 0]
        for attempt in range(1, _MOST_REDRAWS):
            outside = np.flatnonzero((values < low) | (values > high))
            if len(outside) == 0:
                return values
            values[outside] = self.mean + self.sd * normals(key, ids[outside], draw=attempt)[:, 0]
        # The range is so narrow, or so far out, that it is rarely hit: invert the distribution function in between.
        outside = np.flatnonzero((values < low) | (values > high))
        values[outside] = self._between(uniforms(key, ids[outside], draw=_MOST_REDRAWS)[:, 0])
        return values

    def _between(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = self._range()
        if self.sd == 0.0 or low == high:
            return np.clip(np.full(len(shares), self.mean), low, high)
        standard = NormalDist()
        first, last = standard.cdf((low - self.mean) / self.sd), standard.cdf((high - self.mean) / self.sd)
        inner = [standard.inv_cdf(first + share * (last - first)) for share in np.clip(shares, 1e-12, 1.0 - 1e-12)]
        return np.clip(self.mean + self.sd * np.array(inner), low, high)


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Uniform:
    """A uniform distribution between low and high."""

    low: Finite
    high: Finite
    kind: Literal["uniform"] = "uniform"

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        if self.low > self.high:
            raise ValueError(f"low ({self.low:g}) must not be above high ({self.high:g})")
        return self

    def draw(self, key: np.uint64, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.low + (self.high - self.low) * uniforms(key, ids)[:, 0]


Distribution = Annotated[Normal | Uniform, Field(discriminator="kind")]

#: What a per-agent parameter may be: one number for all agents, a distribution, or an array with one value each.
Drawable = float | Normal | Uniform | NDArray[np.float64]


def draw(value: Any, *, seed: int, purpose: str, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Values for the given agents; the same (seed, purpose, id) always gives the same value."""
    if isinstance(value, Normal | Uniform):
        return value.draw(random_key(seed, purpose), ids)
    given = numbers_in(value)
    if given is None or given.shape not in ((), (1,), (len(ids),)):
        raise ParameterError(
            f"{purpose}: expected a number, Normal(…), Uniform(…) or {len(ids)} values, got {reprlib.repr(value)}"
        )
    values = np.broadcast_to(given, (len(ids),)).copy()
    good = np.abs(values) <= _LARGEST
    if not good.all():
        row = int(np.argmin(good))
        why = f"larger than {_LARGEST:g}" if np.isfinite(values[row]) else "not finite"
        raise ParameterError(f"{purpose}: the value for agent {int(ids[row])} is {why}")
    return values


def draw_quantity(
    quantity: Quantity, value: Any, *, seed: int, purpose: str, ids: NDArray[np.int64], who: str
) -> NDArray[np.float64]:
    """Values of a quantity for the given agents, all of them allowed; `who` begins the message if one is not."""
    if is_number(value):
        quantity.check(value, who)  # even if there are no agents yet
    values = draw(value, seed=seed, purpose=purpose, ids=ids)
    wrong = quantity.is_wrong(values)
    if wrong.any():
        first = int(np.argmax(wrong))
        drew = f"but agent {int(ids[first])} drew {values[first]:g}; give the distribution a 'low' and a 'high'"
        got = drew if isinstance(value, Normal | Uniform) else f"not {values[first]:g}"
        raise ParameterError(f"{who}: {quantity.name} must be {quantity.allowed}, {got}")
    return values
