"""The iterative solver of harmonic fields: successive over-relaxation of v = u / h, away from the target.

For grids whose direct solution would take too much memory or time, which is 3D: there the grid is only some hundred
cells wide, and the number of sweeps is a few times that. h follows u, so that v stays near 1 and the stopping rule is
about relative errors everywhere, also where u is exp(-5000).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel.foundation.long_work import report
from tropel.planning.harmonic.grid import Unknowns

#: Largest relative residual of any cell when the sweeps end.
TOLERANCE = 1e-10
_SWEEPS_BETWEEN_SCALING = 20


def relaxation(half_width: float, dim: int) -> float:
    """The best factor of over-relaxation for a passage between walls that are 2 half_width cells apart."""
    across = math.cos(math.pi / max(2.0 * half_width, 2.0))
    radius = (1.0 + (dim - 1) * across) / dim
    return 2.0 / (1.0 + math.sqrt(1.0 - radius * radius))


def sweeps_expected(factor: float) -> int:
    """About how many sweeps with the best factor bring the residual from 1 to the tolerance."""
    return math.ceil(math.log(TOLERANCE) / math.log(max(factor - 1.0, 0.1)))


def solve_by_sweeps(
    unknowns: Unknowns, log_u: NDArray[np.float64], *, factor: float, most: int
) -> tuple[NDArray[np.float64], float]:
    """Improve `log_u` until the tolerance is met or `most` sweeps were made: log u and the largest residual left."""
    log_u = log_u.copy()
    v, share, source = np.empty(unknowns.count), np.empty(unknowns.neighbours.shape), np.empty(unknowns.count)
    residual = math.inf
    # The residual falls by about the same factor in every sweep, so its logarithm tells how much is done.
    digits = -math.log10(TOLERANCE)
    for swept in range(0, most, _SWEEPS_BETWEEN_SCALING):
        _scale(unknowns.neighbours, unknowns.log_source, unknowns.weight, log_u, share, source)
        v[:] = 1.0
        for _ in range(_SWEEPS_BETWEEN_SCALING):
            residual = _relax(unknowns.neighbours, share, source, factor, v)
        log_u += np.log(v)
        far = digits + math.log10(max(residual, TOLERANCE)) if residual < 1.0 else digits
        report("harmonic field: sweeps", max(swept / most, 1.0 - far / digits), 1.0)
        if residual < TOLERANCE:
            break
    return log_u, residual


@kernel
def _scale(neighbours, log_source, weight, log_u, share, source):
    for i in range(log_u.size):
        source[i] = weight[i] * np.exp(log_source[i] - log_u[i])
        for k in range(neighbours.shape[1]):
            j = neighbours[i, k]
            share[i, k] = weight[i] * np.exp(log_u[j] - log_u[i]) if j >= 0 else 0.0


@kernel
def _relax(neighbours, share, source, factor, v):
    """One sweep; returns the largest relative residual met."""
    largest = 0.0
    for i in range(v.size):
        mean = source[i]
        for k in range(neighbours.shape[1]):
            j = neighbours[i, k]
            if j >= 0:
                mean += share[i, k] * v[j]
        largest = max(largest, abs(mean - v[i]) / max(mean, v[i]))
        # Over-relaxation may overshoot below zero while the estimate is bad; u never is.
        v[i] = max(v[i] + factor * (mean - v[i]), 0.2 * mean)
    return largest
