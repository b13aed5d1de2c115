"""Times of two ways to do the same, taken in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tropel.bench.result import Row


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Best times [s], the median over the rounds of how often ours was faster, and what came out last."""

    ours: float
    theirs: float
    ratio: float
    our_outcome: Any
    their_outcome: Any

    def row(self, what: str, beside: str) -> Row:
        """A row of a benchmark's result."""
        return pair_row(what, self.ours, beside, self.theirs, self.ratio)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """How long it takes [s], and what comes out."""
    begun = time.perf_counter()
    outcome = work()
    return time.perf_counter() - begun, outcome


def in_turns(rounds: int, ours: Callable[[], Any], theirs: Callable[[], Any]) -> Pair:
    """Time both in every round, so that a machine that is busy for a while slows down both."""
    our_times, their_times = np.empty(rounds), np.empty(rounds)
    our_outcome = their_outcome = None
    for k in range(rounds):
        our_times[k], our_outcome = timed(ours)
        their_times[k], their_outcome = timed(theirs)
    return Pair(
        ours=float(our_times.min()),
        theirs=float(their_times.min()),
        ratio=float(np.median(their_times / our_times)),
        our_outcome=our_outcome,
        their_outcome=their_outcome,
    )


def pair_row(what: str, ours: float, beside: str, theirs: float, ratio: float) -> Row:
    """The row of two times [s] and their ratio."""
    return {
        "what": what,
        "ours_ms": 1e3 * ours,
        "beside": beside,
        "theirs_ms": 1e3 * theirs,
        "theirs_over_ours": ratio,
    }
