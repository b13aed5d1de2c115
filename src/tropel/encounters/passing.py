"""When two agents that move in straight lines are within a distance of each other, and when they touch.

During a step the offset of two agents is d + t m, with t from 0 to 1. It is at most L long between the roots of

    |m|² t² + 2 (d·m) t + |d|² - L² = 0

The length of d + t m is a convex function of t, so there is one such interval, and it is the whole step if the offset
is short enough at both ends. Three choices keep the roots accurate:

- the discriminant is |m|² L² - |d × m|², which does not cancel when the agents come from far away;
- of the two forms of a root, the one without a difference of nearly equal numbers is used;
- whether the pair is near at the ends of a step is decided by the positions there. The end of one step and the start of
  the next are computed from the same numbers, so a pair cannot be lost or found between two steps by rounding.

Nothing here depends on how pairs were found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.cells import nearest_image
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel

Floats = NDArray[np.float64]

#: Bodies touch while the gap between them is at most this share of the sum of their radii: 0.4 mm for two people. Solid
#: bodies that press on each other keep half of that between them (`SLACK` in contact/contacts.py), so without it nobody
#: in a solid crowd would ever touch.
TOUCH_TOLERANCE = 1e-3

_NEVER = math.nan


@kernel
def _time_within(limit, start, end, square, slope, cross2):
    """First and last share of the step at which the offset is at most `limit` long; nan if it never is.

    `start` and `end` are its lengths at both ends, `square` is |m|², `slope` d·m and `cross2` |d × m|².
    """
    starts_inside, ends_inside = start <= limit, end <= limit
    if starts_inside and ends_inside:
        return 0.0, 1.0
    discriminant = square * limit * limit - cross2
    # Nearest in the middle of the step, not at one of its ends.
    passes = slope < 0.0 and -slope < square and discriminant >= 0.0
    if not (starts_inside or ends_inside or passes):
        return _NEVER, _NEVER
    root = math.sqrt(max(discriminant, 0.0))
    outside = (start - limit) * (start + limit)
    first, last = 0.0, 1.0
    if not starts_inside:
        first = outside / (root - slope) if root > slope else 1.0
    if not ends_inside:
        if slope < 0.0:
            last = (root - slope) / square if square > 0.0 else 1.0
        else:
            last = -outside / (slope + root) if slope + root > 0.0 else 1.0
    first = min(max(first, 0.0), 1.0)
    return first, min(max(last, first), 1.0)


@inlined_kernel
def _offset_after(before, after, i, j, axis, offset, period):
    """The offset at the end of the step to the image that was at `offset` at its start.

    That is not always the nearest one: a pair may be nearly half a period apart and still be a candidate.
    """
    raw = after[j, axis] - after[i, axis]
    if period[axis] == 0.0:
        return raw
    move_i = nearest_image(after[i, axis] - before[i, axis], period[axis])
    move_j = nearest_image(after[j, axis] - before[j, axis], period[axis])
    expected = offset + (move_j - move_i)
    return raw - period[axis] * math.floor((raw - expected) / period[axis] + 0.5)


@parallel_kernel
def _follow(pairs, before, after, radius, period, distance, tolerance, figures, flags):
    spatial = before.shape[1] == 3
    for n in prange(pairs.shape[0]):
        i, j = np.uint64(pairs[n, 0]), np.uint64(pairs[n, 1])
        dx = nearest_image(before[j, 0] - before[i, 0], period[0])
        dy = nearest_image(before[j, 1] - before[i, 1], period[1])
        dz = nearest_image(before[j, 2] - before[i, 2], period[2]) if spatial else 0.0
        ex = _offset_after(before, after, i, j, 0, dx, period)
        ey = _offset_after(before, after, i, j, 1, dy, period)
        ez = _offset_after(before, after, i, j, 2, dz, period) if spatial else 0.0
        mx, my, mz = ex - dx, ey - dy, ez - dz
        start = math.sqrt(dx * dx + dy * dy + dz * dz)
        end = math.sqrt(ex * ex + ey * ey + ez * ez)
        square = mx * mx + my * my + mz * mz
        slope = dx * mx + dy * my + dz * mz
        cross2 = (dx * my - dy * mx) ** 2 + (dy * mz - dz * my) ** 2 + (dz * mx - dx * mz) ** 2
        contact = min((radius[i] + radius[j]) * (1.0 + tolerance), distance)
        closest, when = start, 0.0
        if slope < 0.0:
            if -slope < square:
                closest, when = min(math.sqrt(cross2 / square), start, end), -slope / square
            else:
                closest, when = end, 1.0
        figures[0, n], figures[1, n] = _time_within(distance, start, end, square, slope, cross2)
        figures[2, n], figures[3, n] = closest, when
        figures[4, n], figures[5, n] = _time_within(contact, start, end, square, slope, cross2)
        flags[0, n], flags[1, n] = start <= distance, end <= distance
        flags[2, n], flags[3, n] = start <= contact, end <= contact


@dataclass(frozen=True, kw_only=True)
class Passages:
    """Pairs that were near each other during a step; times are shares of the step.

    Touching is part of being near: bodies that are wider than the distance touch while they are near.
    """

    pair: NDArray[np.uint32]  #: (P, 2): rows
    first: Floats  #: when the pair was near first; 0 if it was so at the start
    last: Floats  #: 1 if it still was at the end
    closest: Floats  #: shortest distance [m]
    when: Floats  #: time of the shortest distance
    first_touch: Floats  #: nan if the bodies did not touch
    last_touch: Floats
    near_at_start: NDArray[np.bool_]
    near_at_end: NDArray[np.bool_]
    touching_at_start: NDArray[np.bool_]
    touching_at_end: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.pair)


def passages(
    pairs: NDArray[np.uint32], *, before: Floats, after: Floats, radius: Floats, period: Floats, distance: float
) -> Passages:
    """Those of the given pairs of rows, each listed once, that came within the distance [m] between two positions.

    `before` and `after` have a row per agent. In periodic space the distance and the steps of a pair together must be
    shorter than half of the period.
    """
    figures, flags = np.empty((6, len(pairs))), np.empty((4, len(pairs)), dtype=np.bool_)
    _follow(pairs, before, after, radius, np.asarray(period), distance, TOUCH_TOLERANCE, figures, flags)
    near = np.flatnonzero(~np.isnan(figures[0]))
    first, last, closest, when, first_touch, last_touch = figures[:, near]
    near_at_start, near_at_end, touching_at_start, touching_at_end = flags[:, near]
    return Passages(
        pair=pairs[near],
        first=first,
        last=last,
        closest=closest,
        when=when,
        first_touch=first_touch,
        last_touch=last_touch,
        near_at_start=near_at_start,
        near_at_end=near_at_end,
        touching_at_start=touching_at_start,
        touching_at_end=touching_at_end,
    )
