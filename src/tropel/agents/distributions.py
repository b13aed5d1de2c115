"""Distributions that per-agent parameters are drawn from, by counter-based random numbers."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, model_validator

from tropel._kernels.philox import normals, random_key, uniforms
from tropel.errors import ParameterError

Finite = Annotated[float, Field(allow_inf_nan=False)]

_MOST_REDRAWS = 200


class _Distribution(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Normal(_Distribution):
    """A normal distribution; values outside [low, high] are drawn again, so the cut does not pile up at the ends."""

    kind: Literal["normal"] = "normal"
    mean: Finite
    sd: Annotated[NonNegativeFloat, Field(allow_inf_nan=False)]
    low: float = -math.inf
    high: float = math.inf

    def __init__(self, mean: float, sd: float, **more: Any) -> None:
        super().__init__(mean=mean, sd=sd, **more)

    @model_validator(mode="after")
    def _reachable(self) -> Normal:
        if self.low > self.high:
            raise ValueError(f"low ({self.low:g}) must not be above high ({self.high:g})")
        if self.low > self.mean + 4 * self.sd or self.high < self.mean - 4 * self.sd:
            raise ValueError("the range low–high lies more than four standard deviations from the mean")
        return self

    def draw(self, key: np.uint64, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        values = self.mean + self.sd * normals(key, ids, draw=0)[:, 0]
        for attempt in range(1, _MOST_REDRAWS):
            outside = np.flatnonzero((values < self.low) | (values > self.high))
            if len(outside) == 0:
                break
            values[outside] = self.mean + self.sd * normals(key, ids[outside], draw=attempt)[:, 0]
        return np.clip(values, self.low, self.high)


class Uniform(_Distribution):
    """Evenly between low and high."""

    kind: Literal["uniform"] = "uniform"
    low: Finite
    high: Finite

    def __init__(self, low: float, high: float, **more: Any) -> None:
        super().__init__(low=low, high=high, **more)

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        if self.low > self.high:
            raise ValueError(f"low ({self.low:g}) must not be above high ({self.high:g})")
        return self

    def draw(self, key: np.uint64, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.low + (self.high - self.low) * uniforms(key, ids)[:, 0]


Distribution = Annotated[Normal | Uniform, Field(discriminator="kind")]

#: What a per-agent parameter may be given as: one number for all, a distribution, or an array with a value each.
Drawable = float | Normal | Uniform | NDArray[np.float64]


def draw(value: Any, *, seed: int, purpose: str, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Values for the given agents; the same (seed, purpose, id) always gives the same value."""
    if isinstance(value, Normal | Uniform):
        return value.draw(random_key(seed, purpose), ids)
    try:
        values = np.broadcast_to(np.asarray(value, dtype=np.float64), (len(ids),)).copy()
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{purpose}: expected a number, Normal(…), Uniform(…) or {len(ids)} values, got {value!r}"
        ) from error
    if not np.isfinite(values).all():
        raise ParameterError(f"{purpose}: the value for agent {int(ids[np.argmin(np.isfinite(values))])} is not finite")
    return values
