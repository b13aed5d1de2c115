"""Quantities of the whole crowd: the one place where they are taken.

Maxima, medians, counts and "did anything happen" that enter arithmetic or decisions must be those of everybody. On one
process everybody is in the arrays, and nothing is to be done. Where a crowd is shared out, each process sees only its
own part; then this is what they agree by. Nothing here sums up floating-point numbers: such sums depend on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Reductions:
    """Reductions over the whole crowd, on one process."""

    def largest(self, values: NDArray[Any], *, initial: float = 0.0) -> float:
        """The largest of all values; `initial` when there are none, or all are smaller."""
        return float(values.max(initial=initial))

    def any(self, flag: bool | np.bool_) -> bool:
        """Whether it is true for any part of the crowd."""
        return bool(flag)

    def count(self, number: int) -> int:
        """The sum over all parts of the crowd."""
        return int(number)

    def median(self, values: NDArray[np.float64]) -> float:
        """The median of all values; nan when there are none."""
        return float(np.median(values)) if len(values) else float("nan")

    def quantiles(self, values: NDArray[np.float64], shares: Sequence[float]) -> NDArray[np.float64]:
        """For each share the value that so many are below, along the first axis."""
        return np.asarray(np.quantile(values, shares, axis=0))


#: Everybody is here.
ONE_PROCESS = Reductions()
