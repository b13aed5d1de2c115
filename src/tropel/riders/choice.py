"""The choice among the futures of a map (section 4 of RIDERS), in NumPy, without anybody to avoid.

The engine's own search (`local/mobility_map/search.py`) also looks at walls, obstacles and bodies. This one serves
experiments with few riders, and whoever wants to control a character of their own from Python.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.riders.maps import MobilityMap

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Chosen:
    """What N riders chose: the state of the map, the two best actions, the share of the first, and the turn."""

    state: NDArray[np.int64]
    best: NDArray[np.int64]
    second: NDArray[np.int64]
    share: Floats
    turn: Floats  #: wanted change of heading [rad]


def choose_turns(
    map_: MobilityMap, states: Floats, course: Floats, course_heading: Floats, *, t_max: float, ratio: float
) -> Chosen:
    """The turns that come nearest to a course.

    `states` (N, K) are the riders' reduced states; `course` (N, T, 2) and `course_heading` (N, T) say where each rider
    wants to be at the times of the map, seen from the rider: origin and +x are where it is and faces now. Errors of
    position count with `ratio` and of heading with 1 - `ratio` up to `t_max` (eq. 5); after it neither counts.
    """
    last = min(max(1, round(t_max / map_.interval)), len(map_.times) - 1)
    if course.shape[1] <= last or course_heading.shape != course.shape[:2]:
        raise ParameterError(
            f"the course must reach up to t_max = {t_max:g} s: {last + 1} places, not {course.shape[1]}"
        )
    away = (map_.weights * (map_.states[np.newaxis] - states[:, np.newaxis]) ** 2).sum(axis=2)
    chosen = np.argmin(away, axis=1)
    upto = slice(1, last + 1)
    gap = np.linalg.norm(map_.position[chosen, :, upto] - course[:, np.newaxis, upto], axis=3)
    turned = map_.heading[chosen, :, upto] - course_heading[:, np.newaxis, upto]
    turned -= 2.0 * np.pi * np.rint(turned / (2.0 * np.pi))
    scores = (ratio * gap + (1.0 - ratio) * np.abs(turned)).sum(axis=2)
    falls = map_.lasts[chosen] < t_max - 1e-9
    # If every future ends in a fall, the one that lasts longest is least bad.
    scores = np.where(falls, 1e9 - map_.lasts[chosen], scores)
    order = np.argsort(scores, axis=1, kind="stable")
    row = np.arange(len(chosen))
    best, second = order[:, 0], order[:, 1]
    second = np.where(falls[row, second], best, second)
    near, other = gap[row, best, -1], gap[row, second, -1]
    total = near + other
    share = np.where(total > 0.0, other / np.where(total > 0.0, total, 1.0), 0.5)
    turn = share * map_.actions[best] + (1.0 - share) * map_.actions[second]
    return Chosen(chosen, best, second, share, turn)
