"""Courses: where agents want to be over the next seconds, for models that look further ahead than a direction.

A direction says where to go now. A rider at 12 m/s has to know where the road goes, too. A planner that knows appends a
`Course` for its members to `out.courses`; a model that looks ahead reads it, and all others follow the directions. For
agents without a course, a model that looks ahead takes a straight line from where they are, in the planned direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Road:
    """A line by points in equal steps, from which places and directions are found without a search."""

    points: Floats  #: (P, 2) [m]; a closed road does not repeat the first point
    tangents: Floats  #: (P, 2): unit vectors along the road
    step: float  #: along the road between two points [m]
    closed: bool

    @property
    def length(self) -> float:
        """[m]"""
        return self.step * (len(self.points) if self.closed else len(self.points) - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """Where some agents want to be: on a road, or on a line through a place of their own."""

    rows: NDArray[np.int64]  #: (M,) of the agents
    road: Road | None = None
    stops: bool = False  #: whether agents stop at the end of the road; otherwise they ride on
    at: Floats | None = None  #: (M,), on a road: how far along it they are now [m]
    side: Floats | None = None  #: (M,), on a road: how far to the left of it they want to be [m]
    place: Floats | None = None  #: (M, 2), without a road: where they want to be now [m]
    along: Floats | None = None  #: (M, 2), without a road: unit vectors in which they want to travel
