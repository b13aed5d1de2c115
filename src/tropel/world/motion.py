"""How obstacles and targets move: along waypoints, on a circle, or by a function of time.

A motion is a pure function of time, so that it needs no memory and a resumed run finds everything where it was.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from tropel.errors import GeometryError, readable_errors
from tropel.foundation.arguments import CHECKED_ELSEWHERE, LARGEST_LENGTH
from tropel.foundation.field_types import Finite
from tropel.world.shapes import Coordinate, PositiveLength

Point = tuple[float, ...]
#: Shortest period of an orbit [s]; the angles of shorter ones would overflow.
_SHORTEST_PERIOD = 1e-9
PointField = Annotated[tuple[Coordinate, ...], Field(min_length=2, max_length=3)]


@readable_errors
class _Motion(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Waypoints(_Motion):
    """Along a polyline at constant speed [m/s]: once, round and round, or back and forth."""

    kind: Literal["waypoints"] = "waypoints"
    points: Annotated[tuple[PointField, ...], Field(min_length=2)]
    speed: Annotated[PositiveLength, Field(description="metres per second")]
    repeat: Literal["once", "cycle", "back_and_forth"] = "back_and_forth"

    @model_validator(mode="after")
    def _some_way_to_go(self) -> Waypoints:
        if len({len(point) for point in self.points}) != 1:
            raise ValueError("all waypoints need the same number of coordinates")
        if self._marks()[-1] == 0.0:
            raise ValueError("the waypoints must not all be the same point")
        return self

    def _way(self) -> Sequence[Point]:
        return (*self.points, self.points[0]) if self.repeat == "cycle" else self.points

    def path(self) -> Sequence[Point]:
        """The path, as a polyline."""
        return self._way()

    def _marks(self) -> list[float]:
        way = self._way()
        return list(itertools.accumulate((math.dist(a, b) for a, b in itertools.pairwise(way)), initial=0.0))

    def at(self, time: float) -> Point:
        way, marks = self._way(), self._marks()
        length = marks[-1]
        done = max(time, 0.0) * self.speed
        if self.repeat == "once":
            done = min(done, length)
        elif self.repeat == "cycle":
            done = math.fmod(done, length)
        else:
            done = math.fmod(done, 2.0 * length)
            done = min(done, 2.0 * length - done)
        leg = min(max(bisect.bisect_right(marks, done) - 1, 0), len(way) - 2)
        while marks[leg + 1] == marks[leg]:
            leg -= 1
        share = (done - marks[leg]) / (marks[leg + 1] - marks[leg])
        return tuple(a + share * (b - a) for a, b in zip(way[leg], way[leg + 1], strict=True))


class Orbit(_Motion):
    """On a circle of the given radius [m] about a centre, one turn per period [s]; in 3D in the horizontal plane."""

    kind: Literal["orbit"] = "orbit"
    center: PointField
    radius: PositiveLength
    period: Annotated[Finite, Field(description="seconds per turn; negative runs clockwise")]
    phase: Annotated[Finite, Field(description="angle at time zero, in radians")] = 0.0

    @model_validator(mode="after")
    def _period_is_not_zero(self) -> Orbit:
        if not abs(self.period) >= _SHORTEST_PERIOD:
            raise ValueError(f"the period must not be zero, nor shorter than {_SHORTEST_PERIOD:g} s")
        return self

    def path(self) -> Sequence[Point]:
        """The path, as a polyline."""
        return [self.at(self.period * k / 48) for k in range(49)]

    def at(self, time: float) -> Point:
        angle = self.phase + 2.0 * math.pi * time / self.period
        x = self.center[0] + self.radius * math.cos(angle)
        y = self.center[1] + self.radius * math.sin(angle)
        return (x, y, *self.center[2:])


#: A motion that a file can store.
Motion = Annotated[Waypoints | Orbit, Field(discriminator="kind")]

#: A position; the world it belongs to knows how many coordinates it has, and checks them.
Position = Annotated[Sequence[float], CHECKED_ELSEWHERE]
#: An orbit may reach slightly beyond the largest coordinate of a world, but not far.
_FARTHEST = 4.0 * LARGEST_LENGTH

#: Anything that moves an object: a motion, or any pure function of time that returns a point.
MotionLike = Waypoints | Orbit | Callable[[float], Sequence[float]]


def position_at(motion: MotionLike, time: float, *, what: str, dim: int) -> NDArray[np.float64]:
    """The position of a motion at a time [s], checked: as many coordinates as the world has, all finite."""
    point = motion.at(time) if isinstance(motion, Waypoints | Orbit) else motion(time)
    try:
        position = np.asarray(point, dtype=np.float64)
    except (TypeError, ValueError):
        position = np.empty(0)
    if position.shape != (dim,) or not (np.abs(position) <= _FARTHEST).all():
        raise GeometryError(
            f"{what}: its motion gives {point!r} at t = {time:g} s; it must give {dim} finite coordinates at every time"
        )
    return position


def stored_motion(motion: MotionLike) -> Any:
    """A motion as plain data; for a function, only the word "function"."""
    return motion.model_dump(mode="json") if isinstance(motion, Waypoints | Orbit) else "function"


def restored_motion(stored: Mapping[str, Any]) -> Waypoints | Orbit:
    """The motion that `stored_motion` turned into data."""
    return _motion.validate_python(stored)


_motion: TypeAdapter[Waypoints | Orbit] = TypeAdapter(Motion)
