"""Samples of the free space: uniform, near obstacles, and inside narrow passages.

Obstacle-based samples are the free one of two points close together of which the other is not free (Boor, Overmars &
van der Stappen, "The Gaussian sampling strategy for probabilistic roadmap planners", 1999). Bridge samples are the free
middle between two points that are not free (Hsu, Jiang, Reif & Sun, "The bridge test for sampling narrow passages",
2003). Numbers are drawn by counter, so a sample depends on seed, purpose and number alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import normals, uniforms
from tropel.errors import GeometryError
from tropel.planning.roadmap.space import FreeSpace

Floats = NDArray[np.float64]
Sampling = Literal["mixed", "uniform", "obstacles", "bridge"]
Darts = Callable[[FreeSpace, np.uint64, NDArray[np.int64]], Floats]

#: Shares of the kinds of samples.
SHARES: Mapping[str, Mapping[str, float]] = {
    "uniform": {"uniform": 1.0},
    "obstacles": {"obstacles": 1.0},
    "bridge": {"bridge": 1.0},
    "mixed": {"uniform": 0.6, "obstacles": 0.2, "bridge": 0.2},
}
#: Darts that are thrown for each sample before no more are looked for.
_DARTS_PER_SAMPLE = 200
_BATCH = 4096
#: How far apart the two points of a pair are: in radii, and in shares of the longer side of the space.
_PAIR_IN_RADII, _PAIR_IN_WORLDS = 3.0, 0.04
#: Draws of the kinds of darts, so that none repeats another.
_DRAWS = {"uniform": 0, "obstacles": 4, "bridge": 12}


def free_samples(space: FreeSpace, count: int, *, sampling: str, key: np.uint64, first: int = 0) -> Floats:
    """Up to `count` free points (N, dim); fewer only in a space with hardly any room. `first` numbers the first dart.

    Where pairs find too few places, such as in a space without obstacles, uniform samples fill up.
    """
    found: list[Floats] = [np.empty((0, space.dim))]
    for kind, share in SHARES[sampling].items():
        found.append(_thrown(space, kind, round(share * count), key, first))
    missing = count - sum(map(len, found))
    if missing > 0:
        found.append(_thrown(space, "uniform", missing, key, first + (1 << 40)))
    samples = np.vstack(found)[:count]
    if not len(samples):
        raise GeometryError(
            f"there is no room for a body of {space.radius:.3g} m radius (with its clearance): none of "
            f"{_DARTS_PER_SAMPLE * count:,} places is free; use a smaller radius or clearance, or fewer obstacles"
        )
    return samples


def _thrown(space: FreeSpace, kind: str, count: int, key: np.uint64, first: int) -> Floats:
    """Free samples of one kind, from as many darts as it takes, up to a limit."""
    throw = {"uniform": _uniform, "obstacles": _near_obstacles, "bridge": _in_passages}[kind]
    found: list[Floats] = [np.empty((0, space.dim))]
    have, thrown, most = 0, 0, _DARTS_PER_SAMPLE * count
    while have < count and thrown < most:
        # The first batch is what an empty space needs.
        batch = min(max(count - have, 64) if thrown == 0 else _BATCH, most - thrown)
        got = throw(space, key, np.arange(first + thrown, first + thrown + batch))
        found.append(got)
        thrown += batch
        have += len(got)
    return np.vstack(found)[:count]


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
    one = one[~space.is_free(one)]
    other = one + _offsets(space, key, numbers[: len(one)], draw + 2)
    middle = 0.5 * (one + other)[~space.is_free(other)]
    return middle[space.is_free(middle)]
