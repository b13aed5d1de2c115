"""Quantities of the whole crowd: the one place where they are computed.

Maxima, medians, counts and "did anything happen" that enter arithmetic or decisions must cover all agents. On one
process all agents are in the arrays, and there is nothing to do. If processes share a crowd, each sees only its own
part, and these reductions make them agree. Nothing here sums floating-point numbers: such sums depend on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Reductions:
    """Reductions over the whole crowd, on one process."""

    def largest(self, values: NDArray[Any], *, initial: float = 0.0) -> float:
        """The largest of all values; `initial` if there are none, or all are smaller."""
        return float(values.max(initial=initial))

    def any(self, flag: bool | np.bool_) -> bool:
        """Whether it is true for any part of the crowd."""
        return bool(flag)

    def count(self, number: int) -> int:
        """The sum over all parts of the crowd."""
        return int(number)

    def counts(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums over all parts of the crowd, number by number."""
        return numbers

    def union(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The distinct values of all parts of the crowd, ascending."""
        return np.unique(values)

    def median(self, values: NDArray[np.float64]) -> float:
        """The median of all values; nan if there are none."""
        return float(np.median(values)) if len(values) else float("nan")

    def quantiles(self, values: NDArray[np.float64], shares: Sequence[float]) -> NDArray[np.float64]:
        """For each share, the value that this share of all values lies below, along the first axis."""
        return np.asarray(np.quantile(values, shares, axis=0))


#: All agents are in this process.
ONE_PROCESS = Reductions()
