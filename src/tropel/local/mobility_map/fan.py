"""A mobility map as kernels read it, and poses along its trajectories.

The cubic splines of a map are kept as values and slopes at the knots, which determine them: between two knots there is
one cubic with these values and slopes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel
from tropel.riders.maps import STATE_VARIABLES, MobilityMap

Floats = NDArray[np.float64]

#: What a knot holds.
X, Y, HEADING, LEAN, STEER = range(5)
_COLUMNS = {"heading": HEADING, "lean": LEAN, "steer": STEER}


class Fan(NamedTuple):
    """The trajectories of a map; a plain tuple of arrays, so that kernels take it as one argument."""

    states: Floats  #: (S, K)
    weights: Floats  #: (K,)
    variables: NDArray[np.int64]  #: (K, 2): column of a knot, and whether it is the value (0) or the slope (1)
    actions: Floats  #: (A,) [rad]
    knots: Floats  #: (S, A, T, 5): x, y, heading, lean and steer
    slopes: Floats  #: the same per second
    facing: Floats  #: (S, A, T, 2): cosine and sine of the heading
    lasts: Floats  #: (S, A) [s]
    interval: float  #: between knots [s]
    speed: float  #: [m/s]


def fan_of(found: MobilityMap) -> Fan:
    """Pack a map."""
    names = ("position", "heading", "lean", "steer")
    values, slopes = [], []
    for name in names:
        array = getattr(found, name)
        slope = np.moveaxis(found.spline(name)(found.times, 1), 0, 2)
        values.append(array if name == "position" else array[..., np.newaxis])
        slopes.append(slope if name == "position" else slope[..., np.newaxis])
    variables = [(_COLUMNS[STATE_VARIABLES[name][0]], STATE_VARIABLES[name][1]) for name in found.state_names]
    return Fan(
        states=np.ascontiguousarray(found.states),
        weights=np.ascontiguousarray(found.weights),
        variables=np.array(variables, dtype=np.int64),
        actions=np.ascontiguousarray(found.actions),
        knots=np.ascontiguousarray(np.concatenate(values, axis=-1)),
        slopes=np.ascontiguousarray(np.concatenate(slopes, axis=-1)),
        facing=np.ascontiguousarray(np.stack([np.cos(found.heading), np.sin(found.heading)], axis=-1)),
        lasts=np.ascontiguousarray(found.lasts),
        interval=found.interval,
        speed=found.speed,
    )


@kernel
def nearest_state(fan, reduced, row):
    """The initial state with the least weighted squared distance (eq. 3); the first of equals."""
    best, least = np.int64(0), math.inf
    for s in range(fan.states.shape[0]):
        total = 0.0
        for k in range(fan.weights.size):
            gap = fan.states[s, k] - reduced[row, k]
            total += fan.weights[k] * gap * gap
        if total < least:
            best, least = np.int64(s), total
    return best


@inlined_kernel
def value_and_slope(fan, s, a, column, time):
    """A column of a trajectory at a time, and its rate; held after the last knot."""
    last = fan.knots.shape[2] - 1
    place = min(max(time / fan.interval, 0.0), np.float64(last))
    k = min(np.int64(place), last - 1)
    u = place - k
    low, high = fan.knots[s, a, k, column], fan.knots[s, a, k + 1, column]
    rise, fall = fan.slopes[s, a, k, column] * fan.interval, fan.slopes[s, a, k + 1, column] * fan.interval
    # The cubic with these values and slopes at both ends (Hermite).
    bend = 3.0 * (high - low) - 2.0 * rise - fall
    twist = 2.0 * (low - high) + rise + fall
    value = low + u * (rise + u * (bend + u * twist))
    slope = (rise + u * (2.0 * bend + 3.0 * u * twist)) / fan.interval
    return value, slope
