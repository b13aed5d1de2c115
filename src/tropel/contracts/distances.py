"""What planners tell of distances: how long the path to a place is that they would lead agents along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.agents.goals import Aim

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class OfferedDistance:
    """The length of paths to a place."""

    #: From each position (N, dim) of a body with a radius [m] to a place: the length of the path [m], infinite where
    #: there is none; None if the planner leads to that place in a straight line, or knows no lengths.
    length: Callable[[Aim, Floats, float], Floats | None]
