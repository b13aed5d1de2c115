"""Roads from a few points: a smooth line through them, in equal steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.contracts.courses import Road
from tropel.errors import ParameterError

Floats = NDArray[np.float64]

#: Between the points of a road [m], and how many it may have.
_STEP, _MOST_POINTS = 0.5, 1_000_000
#: Points closer than this are one [m].
_SAME = 1e-6


def road_through(points: Any, *, closed: bool, smooth: bool) -> Road:
    """A road through points (P, 2): a cubic spline, or straight pieces."""
    try:
        given = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim != 2 or given.shape[1] != 2 or len(given) < 2 or not np.isfinite(given).all():
        raise ParameterError(
            f"FollowPath: points must be a list of at least two places [x, y] in metres, not {points!r:.60}"
        )
    if closed and np.linalg.norm(given[0] - given[-1]) < _SAME:
        given = given[:-1]
    ring = np.vstack([given, given[:1]]) if closed else given
    chords = np.linalg.norm(np.diff(ring, axis=0), axis=1)
    if (chords < _SAME).any():
        number = int(np.argmax(chords < _SAME))
        raise ParameterError(
            f"FollowPath: points {number} and {(number + 1) % len(given)} are the same, {given[number].tolist()}"
        )
    if closed and len(given) < 3:
        raise ParameterError("FollowPath: a closed path needs at least three points")
    if chords.sum() / _STEP > _MOST_POINTS:
        raise ParameterError(f"FollowPath: a path of {chords.sum():.4g} m is longer than {_STEP * _MOST_POINTS:g} m")
    dense = _spline(ring, chords, closed) if smooth and len(given) > 2 else ring
    return _equal_steps(dense, closed)


def _spline(ring: Floats, chords: Floats, closed: bool) -> Floats:
    """Many points of the cubic spline through the given ones, by the length of chords."""
    from scipy.interpolate import CubicSpline

    knots = np.concatenate([[0.0], np.cumsum(chords)])
    spline = CubicSpline(knots, ring, bc_type="periodic" if closed else "natural")
    count = int(np.ceil(knots[-1] / (0.1 * _STEP)))
    return np.asarray(spline(np.linspace(0.0, knots[-1], max(count, 2) + 1)))


def _equal_steps(line: Floats, closed: bool) -> Road:
    """The same line by points in equal steps; tangents are those of the chords between neighbours."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    count = max(int(np.ceil(along[-1] / _STEP)), 3 if closed else 1)
    places = np.linspace(0.0, along[-1], count + 1)
    points = np.column_stack([np.interp(places, along, line[:, axis]) for axis in range(2)])
    if closed:
        points = points[:-1]
        chords = np.roll(points, -1, axis=0) - np.roll(points, 1, axis=0)
    else:
        chords = np.gradient(points, axis=0)
    size = np.linalg.norm(chords, axis=1)
    if (size < _SAME).any():
        place = points[int(np.argmax(size < _SAME))]
        raise ParameterError(f"FollowPath: the path turns back on itself at ({place[0]:.4g}, {place[1]:.4g})")
    return Road(
        points=np.ascontiguousarray(points),
        tangents=np.ascontiguousarray(chords / size[:, None]),
        step=float(along[-1] / count),
        closed=closed,
    )


def curvature_of(road: Road) -> Floats:
    """How much the road turns to the left per metre, at each of its points [1/m]."""
    angle = np.arctan2(road.tangents[:, 1], road.tangents[:, 0])
    if road.closed:
        turned = np.roll(angle, -1) - np.roll(angle, 1)
        span = np.full(len(angle), 2.0 * road.step)
    else:
        turned = np.empty_like(angle)
        turned[1:-1] = angle[2:] - angle[:-2]
        turned[0], turned[-1] = angle[1] - angle[0], angle[-1] - angle[-2]
        span = np.full(len(angle), 2.0 * road.step)
        span[0] = span[-1] = road.step
    return (turned + np.pi) % (2.0 * np.pi) / span - np.pi / span
