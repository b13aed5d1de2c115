"""Sources: agents that come in while the simulation runs."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import numpy as np

from tropel._kernels.philox import normals, random_key, uniforms
from tropel.agents.bonds import check_bonds
from tropel.agents.groups import Personal
from tropel.agents.presets import shares_of
from tropel.arguments import CHECKED_ELSEWHERE, LATEST
from tropel.errors import ParameterError, is_finite, named_parameters
from tropel.quantities import is_number

#: [1/s]; beyond it arrivals could not be counted.
_HIGHEST_RATE = 1e9
#: Poisson numbers of a mean above this are normal ones, to more digits than anybody counts.
_NORMAL_FROM = 1e6
#: Poisson numbers of a larger mean are summed from smaller ones: exp(-mean) must not vanish.
_LARGEST_MEAN = 500.0


@named_parameters
@dataclass(frozen=True)
class Source(Personal):
    """Lets agents in at a rate [1/s], into a region, between two times [s], as long as there is room.

    Who finds no room waits outside and comes in as soon as there is some. `arrivals` is "even" (one every 1/rate
    seconds) or "random" (a Poisson process). `group` names the group the newcomers join.
    """

    group: str
    _: KW_ONLY
    rate: Annotated[float, CHECKED_ELSEWHERE]
    region: Any
    begin: float = 0.0
    end: Annotated[float, CHECKED_ELSEWHERE] = math.inf
    total: int | None = None
    arrivals: Literal["even", "random"] = "even"

    def __post_init__(self) -> None:
        group = self.group
        if not (is_finite(self.rate) and 0 < self.rate <= _HIGHEST_RATE):
            raise ParameterError(
                f"the source of '{group}': the rate must be positive and at most {_HIGHEST_RATE:g} per second, "
                f"not {self.rate!r}"
            )
        if not (is_number(self.end) and not math.isnan(self.end) and abs(self.begin) <= LATEST):
            raise ParameterError(
                f"the source of '{group}': begin and end are times in seconds, not {self.begin!r} and {self.end!r}"
            )
        if not self.begin <= self.end:
            raise ParameterError(f"the source of '{group}' ends ({self.end:g} s) before it begins ({self.begin:g} s)")
        if self.total is not None and self.total < 0:
            raise ParameterError(f"the source of '{group}': total must not be negative, got {self.total}")
        if self.personality is not None:
            shares_of(self.personality, f"the source of '{group}'")
        if self.families is not None:
            raise ParameterError(
                f"the source of '{group}' lets people in one by one, not in families; add families with AddAgents"
            )
        check_bonds(None, self.follow, self.parameters, group=group, who=f"the source of '{group}'")

    def arriving(self, *, seed: int, number: int, step: int, dt: float) -> int:
        """How many arrive at the door during this step; a pure function of the step."""
        begin, end = max(step * dt, self.begin), min((step + 1) * dt, self.end)
        if end <= begin:
            return 0
        if self.arrivals == "even":
            return _whole((end - self.begin) * self.rate) - _whole((begin - self.begin) * self.rate)
        mean = self.rate * (end - begin)
        parts = math.ceil(mean / _LARGEST_MEAN)
        key, numbers = random_key(seed, f"source {number}"), np.array([number])
        if mean > _NORMAL_FROM:
            return max(round(mean + math.sqrt(mean) * float(normals(key, numbers, step=step)[0, 0])), 0)
        return sum(
            _poisson(mean / parts, float(uniforms(key, numbers, step=step, draw=part)[0, 0])) for part in range(parts)
        )


def _poisson(mean: float, u: float) -> int:
    """The number with the cumulative probability u, by summing up probabilities."""
    count, term = 0, math.exp(-mean)
    total = term
    # The terms vanish before a u next to one is reached, because their sum is rounded.
    while u > total and (term > 0.0 or count < mean):
        count += 1
        term *= mean / count
        total += term
    return count


def _whole(value: float) -> int:
    # A rate such as 0.1 per second must not lose an arrival to rounding at t = 10 s.
    return math.floor(value + 1e-9)
