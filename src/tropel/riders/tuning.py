"""Tuning of the two weights of the search, `t_max` and `ratio`, by simulated annealing (table 2 of RIDERS).

For path following the cost is the mean error of position [m] plus that of heading [rad] on the seven curves. For
herding it is measured on a shift by 4 m to the right: mean fork velocity [rad/s], lateral velocity [m/s], error of
heading [rad] and error of position [m], added up with equal weights, as the paper gives none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tropel.errors import ParameterError
from tropel.foundation.long_work import report
from tropel.riders.character import Character
from tropel.riders.maps import MobilityMap
from tropel.riders.tracks import Ridden, lane_shift, ride_lines, seven_curves

#: What the paper found: t_max [s] and ratio, by task and character.
PUBLISHED = {
    "path": {"human": (1.3, 0.28), "alien": (0.82, 0.84)},
    "herd": {"human": (1.5, 0.30), "alien": (2.4, 0.39)},
}
TASKS = tuple(PUBLISHED)
_BOUNDS = ((0.2, 3.0), (0.0, 1.0))
#: Where annealing begins: what the search uses if nobody tuned it.
_START = (1.3, 0.28)
#: A rider who falls costs more than any who stays up.
_FALL = 1e3


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The best values of a task and what they cost."""

    task: str
    t_max: float
    ratio: float
    cost: float
    evaluations: int


def cost_of(
    character: Character, map_: MobilityMap, task: str, *, t_max: float, ratio: float, controller: str = "map"
) -> float:
    """The cost of a task with full physics."""
    if task not in TASKS:
        raise ParameterError(f"the task must be one of {TASKS}, not {task!r:.40}")
    if task == "path":
        lines, _ = seven_curves(map_.speed, straight=1.0)
        ridden = ride_lines(character, map_, lines, controller=controller, t_max=t_max, ratio=ratio)
        cost = float(ridden.position_error.mean() + ridden.heading_error.mean())
    else:
        ridden = ride_lines(
            character, map_, [lane_shift(map_.speed)], controller=controller, t_max=t_max, ratio=ratio, seconds=8.0
        )
        cost = _shift_cost(ridden)
    return cost + _FALL * float(ridden.fallen.mean())


def _shift_cost(ridden: Ridden, interval: float = 0.1) -> float:
    fork = np.abs(np.diff(ridden.steer, axis=1)).mean() / interval
    lateral = np.abs(np.diff(ridden.place[..., 1], axis=1)).mean() / interval
    return float(fork + lateral + ridden.heading_error.mean() + ridden.position_error.mean())


def tune(character: Character, map_: MobilityMap, task: str, *, evaluations: int = 60, seed: int = 0) -> Tuned:
    """Anneal; `evaluations` rides of the whole task, each of which takes seconds."""
    from scipy.optimize import dual_annealing

    if evaluations < 4:
        raise ParameterError("tuning needs at least 4 evaluations")
    tried: dict[tuple[float, float], float] = {}

    def cost(values: np.ndarray) -> float:
        # The map knows times a fixed interval apart, so nothing lies between them.
        key = (round(round(float(values[0]) / map_.interval) * map_.interval, 6), round(float(values[1]), 2))
        if key not in tried:
            report(f"tuning '{map_.character}' for {task}", min(len(tried), evaluations), evaluations)
            tried[key] = cost_of(character, map_, task, t_max=key[0], ratio=key[1])
        return tried[key]

    # Annealing alone: a local search would follow noise between the steps of t_max.
    dual_annealing(cost, _BOUNDS, x0=_START, maxfun=evaluations, rng=np.random.default_rng(seed), no_local_search=True)
    report(f"tuning '{map_.character}' for {task}", evaluations, evaluations)
    (t_max, ratio), least = min(tried.items(), key=lambda item: (item[1], item[0]))
    return Tuned(task=task, t_max=t_max, ratio=ratio, cost=least, evaluations=len(tried))
