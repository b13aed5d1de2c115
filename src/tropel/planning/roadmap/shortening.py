"""Cutting paths short wherever a body can go straight, among what stands still and, if times matter, what moves.

Greedy: from each point on to the farthest one in reach. The work stops when it is used up and goes on in a later step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel.planning.roadmap.moving import leg_blocked
from tropel.planning.roadmap.space import Moving
from tropel.planning.roadmap.sweeps import Solid, height_of, sweep_blocked

Floats = NDArray[np.float64]

#: Between two turns a path gets so many points, which lets it hug corners.
_POINTS = 40
#: The time of those that go at any time.
ANY_TIME = -1.0


class Going(NamedTuple):
    """How a traveller goes, for kernels."""

    radius: float  #: that it keeps free [m]
    first: float = 0.0  #: the same where it begins, which may be nearer to a wall
    last: float = 0.0  #: and where it ends
    speed: float = 1.0
    slack: float = 0.0  #: how many seconds early or late what moves may be
    passed: float = 0.0  #: since the times of nodes were right [s]
    horizon: float = math.inf  #: what moves is expected to go on for so long [s]


@kernel
def walk_blocked(place, a, b, begin, radius, going, walls, discs, sides, moving):
    """Whether a body cannot go from point a, where it is at the time `begin`, to b; times below 0 mean any time."""
    ax, ay, az = place[a, 0], place[a, 1], height_of(place, a)
    bx, by, bz = place[b, 0], place[b, 1], height_of(place, b)
    if sweep_blocked(ax, ay, az, bx, by, bz, radius, walls, discs, sides):
        return True
    if begin < 0.0:
        return False
    # What moves is expected to stop at the horizon.
    t0 = min(max(begin - going.passed, 0.0), going.horizon)
    t1 = min(t0 + math.sqrt((ax - bx) ** 2 + (ay - by) ** 2 + (az - bz) ** 2) / going.speed, going.horizon)
    return leg_blocked(ax, ay, az, bx, by, bz, t0, t1, going.radius, going.slack, moving) < math.inf


@kernel
def apart(place, a, b):
    """How far two points are from each other."""
    away2 = 0.0
    for axis in range(place.shape[1]):
        away2 += (place[a, axis] - place[b, axis]) ** 2
    return math.sqrt(away2)


@kernel
def _shorten(place, keep, at, time, going, walls, discs, sides, moving, most):
    """Go on from the point at[0], of which the points behind at[1] are not in reach; returns the tests it took."""
    last = place.shape[0] - 1
    tests = 0
    while at[0] < last:
        here, there = at[0], at[1]
        if there > here + 1:
            # Legs that begin or end near a wall are not made longer.
            if (here == 0 and going.first < going.radius) or (there == last and going.last < going.radius):
                at[1] = there - 1
                continue
            if tests >= most:
                return tests
            tests += 1
            if walk_blocked(place, here, there, time[0], going.radius, going, walls, discs, sides, moving):
                at[1] = there - 1
                continue
        if time[0] >= 0.0:
            time[0] += apart(place, here, there) / going.speed
        keep[there] = True
        at[0], at[1] = there, last
    return tests


@dataclass(eq=False, kw_only=True)
class Shortening:
    """A path that is being cut short: so many times between its points, each time with more points along it."""

    points: Floats  #: (L, dim)
    keep: NDArray[np.bool_]  #: (L,) which ones stay
    at: NDArray[np.int64]  #: (3,) the last point that stays, the one that is tried next, and turns that are left
    time: Floats  #: (1,) when the traveller is at the last point that stays [s]

    @classmethod
    def begin(cls, points: Floats, *, turns: int = 1, since: float = ANY_TIME) -> Shortening:
        made = cls(points=np.ascontiguousarray(points), keep=np.empty(0, dtype=np.bool_), at=np.array([0, 0, turns]),
                   time=np.array([float(since)]))  # fmt: skip
        made._begin_turn(made.points)
        return made

    def _begin_turn(self, points: Floats) -> None:
        self.points, self.keep = points, np.zeros(len(points), dtype=np.bool_)
        self.keep[:1] = True
        self.at[:2] = 0, len(points) - 1

    @property
    def done(self) -> bool:
        return self.at[2] == 0 or len(self.points) < 3

    def go_on(self, going: Going, solid: Solid, moving: Moving, most: int) -> int:
        """Test at most so many segments; returns how many it were. When it is done, `points` are those that stay."""
        used = 0
        while not self.done:
            used += _shorten(self.points, self.keep, self.at, self.time, going, *solid, moving, int(most - used))
            if self.at[0] < len(self.points) - 1:
                break
            self.at[2] -= 1
            kept = self.points[self.keep]
            self._begin_turn(resampled(kept) if self.at[2] else kept)
        return int(used)

    def record(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in self.names()}

    @staticmethod
    def names() -> tuple[str, ...]:
        return ("points", "keep", "at", "time")

    @classmethod
    def of(cls, stored: Mapping[str, NDArray[Any]]) -> Shortening:
        made = cls(points=np.ascontiguousarray(stored["points"]), keep=stored["keep"].astype(np.bool_),
                   at=stored["at"].astype(np.int64), time=stored["time"].astype(np.float64))  # fmt: skip
        last = len(made.points) - 1
        if made.points.ndim != 2 or made.keep.shape != (last + 1,) or made.at.shape != (3,) or made.time.shape != (1,):
            raise ValueError("a path that is being cut short does not fit together")
        if not (0 <= made.at[0] <= made.at[1] <= last and made.at[2] >= 0):
            raise ValueError("a path is being cut short at a point that it does not have")
        return made


def resampled(points: Floats) -> Floats:
    """A path with points all along it; its own corners are among them."""
    length = np.linalg.norm(np.diff(points, axis=0), axis=1)
    step = max(float(length.sum()) / _POINTS, 1e-12)
    legs = [
        begin + np.linspace(0.0, 1.0, max(math.ceil(long / step), 1), endpoint=False)[:, None] * (end - begin)
        for begin, end, long in zip(points[:-1], points[1:], length.tolist(), strict=True)
    ]
    return np.vstack([*legs, points[-1:]])
