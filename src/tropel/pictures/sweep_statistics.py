"""What many runs of one scenario, each with its own seed, say together."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.arguments import checked_arguments, numbers_in
from tropel.errors import ParameterError
from tropel.quantities import Quantity

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class SweepStatistics:
    """Shares of the agents that have left by a time, over the runs, and the times at which everybody had left.

    `low` and `high` bound the 95 % confidence interval of the mean at each time by itself (mean ± t · s / √n, Student's
    t with n - 1 degrees of freedom); with one run they are not a number.
    """

    runs: int
    agents: NDArray[np.int64]  #: (runs,) how many there were
    times: Floats  #: [s]
    share: Floats  #: (runs, times) of each run
    mean: Floats  #: (times,)
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    evacuation_times: Floats  #: of the runs in which everybody left [s]
    evacuation_mean: float  #: not a number if there is no such run
    evacuation_low: float  #: 95 % confidence interval of the mean; not a number with fewer than two such runs
    evacuation_high: float
    stayed: NDArray[np.int64]  #: (runs,) how many never left

    @property
    def incomplete(self) -> int:
        """In how many runs somebody never left."""
        return int(np.count_nonzero(self.stayed))


@checked_arguments
def sweep_statistics(
    departures: Sequence[ArrayLike],
    *,
    agents: int | Sequence[int],
    end: float | Sequence[float],
    points: Annotated[int, Quantity(name="points", low=2, high=1e6)] = 400,
) -> SweepStatistics:
    """Put the departure times [s] of several runs together.

    `agents` is how many there were and `end` the time [s] at which the run ended, for all runs or one each. Nothing is
    known of a run after its end if somebody was still there; so the curves end at the earliest such time.
    """
    left = [np.sort(_times(number, times).ravel()) for number, times in enumerate(departures)]
    if not left:
        raise ParameterError("a sweep needs at least one run: give the departure times of each")
    counts: NDArray[np.int64] = _for_each(agents, len(left), "agents").astype(np.int64)
    ends = _for_each(end, len(left), "end")
    for number, times in enumerate(left):
        _check(number, times, int(counts[number]), float(ends[number]))
    stayed = counts - np.array([len(times) for times in left], dtype=np.int64)
    whole = stayed == 0
    finished = np.array([times[-1] if len(times) else 0.0 for times in left])
    horizon = float(ends[~whole].min()) if (~whole).any() else float(finished.max())
    times = np.linspace(0.0, horizon if horizon > 0.0 else 1.0, points)
    share = np.array([np.searchsorted(gone, times, side="right") for gone in left]) / np.maximum(counts, 1)[:, None]
    share[counts == 0] = 1.0
    mean, low, high = _mean_with_interval(share)
    evacuated = finished[whole]
    centre, below, above = _mean_with_interval(evacuated[:, None]) if whole.any() else (np.full(1, np.nan),) * 3
    return SweepStatistics(
        runs=len(left),
        agents=counts,
        times=times,
        share=share,
        mean=mean,
        low=low,
        high=high,
        least=share.min(axis=0),
        most=share.max(axis=0),
        evacuation_times=evacuated,
        evacuation_mean=float(centre[0]),
        evacuation_low=float(below[0]),
        evacuation_high=float(above[0]),
        stayed=stayed,
    )


def _mean_with_interval(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean over the rows, and the ends of its 95 % confidence interval."""
    from scipy.special import stdtrit

    mean = values.mean(axis=0)
    runs = len(values)
    if runs < 2:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown
    reach = stdtrit(runs - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(runs)
    return mean, mean - reach, mean + reach


def _times(number: int, given: ArrayLike) -> Floats:
    times = numbers_in(given)
    if times is None:
        raise ParameterError(f"run {number}: departures must be times in seconds, not {reprlib.repr(given)}")
    return times


def _for_each(value: float | Sequence[float], runs: int, name: str) -> Floats:
    values = np.asarray(value, dtype=np.float64)
    if values.ndim == 0:
        return np.full(runs, float(values))
    if values.shape != (runs,):
        raise ParameterError(f"{name} has {values.size} values for {runs} runs: give one number, or one for each run")
    return values


def _check(number: int, times: Floats, agents: int, end: float) -> None:
    if not np.isfinite(times).all() or (times < 0.0).any():
        raise ParameterError(f"run {number}: a departure time is negative or not a number; leave out who never left")
    if len(times) > agents:
        raise ParameterError(f"run {number}: {len(times)} departures but only {agents} agents")
    if not np.isfinite(end) or end < 0.0 or (len(times) and times[-1] > end * (1 + 1e-9)):
        last = f"; the last departure was at {times[-1]:g} s" if len(times) else ""
        raise ParameterError(f"run {number}: it cannot have ended at {end!r} s{last}")
