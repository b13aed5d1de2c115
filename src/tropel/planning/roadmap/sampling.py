"""Samples of the free space: uniform, near obstacles, and inside narrow passages.

Obstacle-based samples are the free one of two points close together of which the other is not free (Boor, Overmars &
van der Stappen, "The Gaussian sampling strategy for probabilistic roadmap planners", 1999). Bridge samples are the free
middle between two points that are not free (Hsu, Jiang, Reif & Sun, "The bridge test for sampling narrow passages",
2003). A dart depends on seed, purpose and its number alone, so it does not matter how many are thrown at a time, and
the work can go on in a later step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import normals, uniforms
from tropel.errors import GeometryError
from tropel.planning.roadmap.space import FreeSpace

Floats = NDArray[np.float64]
Sampling = Literal["mixed", "uniform", "obstacles", "bridge"]
Throw = Callable[[FreeSpace, np.uint64, NDArray[np.int64]], Floats]

#: Shares of the kinds of samples.
SHARES: Mapping[str, Mapping[str, float]] = {
    "uniform": {"uniform": 1.0},
    "obstacles": {"obstacles": 1.0},
    "bridge": {"bridge": 1.0},
    "mixed": {"uniform": 0.6, "obstacles": 0.2, "bridge": 0.2},
}
#: Darts that are thrown for each sample before no more are looked for.
_DARTS_PER_SAMPLE = 200
#: Darts that are thrown at a time.
_FEWEST, _BATCH = 64, 4096
#: How far apart the two points of a pair are: in radii, and in shares of the longer side of the space.
_PAIR_IN_RADII, _PAIR_IN_WORLDS = 3.0, 0.04
#: Draws of the kinds of darts, so that none repeats another.
_DRAWS = {"uniform": 0, "obstacles": 4, "bridge": 12}
#: Uniform darts that fill up where pairs find too few places are numbered from here.
_FILLING = 1 << 40


@dataclass(eq=False, kw_only=True)
class Darts:
    """Darts that are being thrown until there are enough free samples, or until there is no hope of more.

    Where pairs find too few places, such as in a space without obstacles, uniform samples fill up.
    """

    count: int  #: samples that are wanted
    sampling: str
    key: np.uint64
    samples: Floats  #: (N, dim) found so far
    kind: int = 0  #: which kind is being thrown; uniform ones that fill up come last
    had: int = 0  #: samples when this kind began
    thrown: int = 0  #: darts of this kind so far
    _kinds: list[tuple[str, int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shares = SHARES[self.sampling].items()
        self._kinds = [*((kind, round(share * self.count)) for kind, share in shares), ("uniform", self.count)]

    @property
    def done(self) -> bool:
        return self.kind == len(self._kinds)

    def go_on(self, space: FreeSpace, most: int) -> int:
        """Throw at most so many darts; returns how many it were."""
        used = 0
        while not self.done:
            kind, share = self._kinds[self.kind]
            fills_up = self.kind == len(self._kinds) - 1
            have = len(self.samples) - self.had
            missing = self.count - len(self.samples) if fills_up else min(share - have, self.count - len(self.samples))
            left = _DARTS_PER_SAMPLE * (share - (self.had if fills_up else 0)) - self.thrown
            if missing <= 0 or left <= 0:
                self.kind, self.had, self.thrown = self.kind + 1, len(self.samples), 0
                continue
            if used >= most:
                break
            # As many as it seems to take.
            likely = missing if self.thrown == 0 else missing * self.thrown // (have + 1)
            batch = min(max(likely, _FEWEST), _BATCH, left, most - used)
            first = self.thrown + (_FILLING if fills_up else 0)
            found = _THROWS[kind](space, self.key, np.arange(first, first + batch))
            self.samples = np.vstack([self.samples, found[:missing]])
            self.thrown += batch
            used += batch
        return used

    def record(self) -> dict[str, NDArray[Any]]:
        return {"progress": np.array([self.count, self.kind, self.had, self.thrown]), "samples": self.samples,
                "key": np.array([self.key]), "sampling": np.array([self.sampling])}  # fmt: skip

    @classmethod
    def of(cls, stored: Mapping[str, NDArray[Any]], dim: int) -> Darts:
        count, kind, had, thrown = (int(number) for number in stored["progress"])
        sampling, samples = str(stored["sampling"][0]), np.ascontiguousarray(stored["samples"])
        made = cls(count=count, sampling=sampling, key=np.uint64(stored["key"][0]), samples=samples, kind=kind, had=had,
                   thrown=thrown)  # fmt: skip
        if samples.ndim != 2 or samples.shape[1] != dim or not np.isfinite(samples).all():
            raise ValueError("samples must be places")
        if not (0 <= kind <= len(made._kinds) and 0 <= had <= len(samples) <= count and thrown >= 0):
            raise ValueError("the darts of a roadmap do not fit together")
        return made


def free_samples(space: FreeSpace, count: int, *, sampling: str, key: np.uint64) -> Floats:
    """Up to `count` free points (N, dim); fewer only in a space with hardly any room."""
    darts = Darts(count=count, sampling=sampling, key=key, samples=np.empty((0, space.dim)))
    darts.go_on(space, 1 << 40)
    if not len(darts.samples):
        raise no_room(space, count)
    return darts.samples


def no_room(space: FreeSpace, count: int) -> GeometryError:
    return GeometryError(
        f"there is no room for a body of {space.radius:.3g} m radius (with its clearance): none of "
        f"{_DARTS_PER_SAMPLE * count:,} places is free; use a smaller radius or clearance, or fewer obstacles"
    )


def _places(space: FreeSpace, key: np.uint64, numbers: NDArray[np.int64], draw: int) -> Floats:
    low, high = space.box
    unit = np.hstack([uniforms(key, numbers, draw=draw), uniforms(key, numbers, draw=draw + 1)])[:, : space.dim]
    return np.ascontiguousarray(low + unit * (high - low))


def _offsets(space: FreeSpace, key: np.uint64, numbers: NDArray[np.int64], draw: int) -> Floats:
    low, high = space.box
    scale = max(_PAIR_IN_RADII * space.radius, _PAIR_IN_WORLDS * float((high - low).max())) / math.sqrt(space.dim)
    bell = np.hstack([normals(key, numbers, draw=draw), normals(key, numbers, draw=draw + 1)])[:, : space.dim]
    return np.ascontiguousarray(scale * bell)


def _uniform(space: FreeSpace, key: np.uint64, numbers: NDArray[np.int64]) -> Floats:
    places = _places(space, key, numbers, _DRAWS["uniform"])
    return places[space.is_free(places)]


def _near_obstacles(space: FreeSpace, key: np.uint64, numbers: NDArray[np.int64]) -> Floats:
    draw = _DRAWS["obstacles"]
    one = _places(space, key, numbers, draw)
    other = one + _offsets(space, key, numbers, draw + 2)
    one_free, other_free = space.is_free(one), space.is_free(other)
    return np.where(one_free[:, None], one, other)[one_free ^ other_free]


def _in_passages(space: FreeSpace, key: np.uint64, numbers: NDArray[np.int64]) -> Floats:
    draw = _DRAWS["bridge"]
    one = _places(space, key, numbers, draw)
    solid = ~space.is_free(one)
    one = one[solid]
    other = one + _offsets(space, key, numbers[solid], draw + 2)
    middle = 0.5 * (one + other)[~space.is_free(other)]
    return middle[space.is_free(middle)]


_THROWS: Mapping[str, Throw] = {"uniform": _uniform, "obstacles": _near_obstacles, "bridge": _in_passages}
