"""Numbers that sum up a list of departure times [s]."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def flow_rate(times: Floats) -> float:
    """Persons per second between the first and the last one; NaN where that is no span of time.

    n people have n - 1 gaps between them, so a person every two seconds is a flow of 0.5 whatever their number.
    """
    span = float(np.ptp(times)) if len(times) else 0.0
    return (len(times) - 1) / span if span > 0.0 else math.nan


def time_by_share(times: Floats, *, total: int, share: float) -> float:
    """When a share (0 to 1) of `total` people had left [s]; NaN if so many never did."""
    needed = max(1, math.ceil(share * total - 1e-9))
    return float(np.partition(times, needed - 1)[needed - 1]) if needed <= len(times) else math.nan
