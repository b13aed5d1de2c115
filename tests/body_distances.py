"""How near bodies come to each other, in plain NumPy and scipy: what tests compare the cell lists and kernels with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Floats = NDArray[np.float64]


def closest_in_step(before: Floats, after: Floats) -> Floats:
    """Closest distance of every pair during the step, in which all go straight on."""
    first, second = np.triu_indices(len(before), 1)
    offset = before[first] - before[second]
    moved = (after[first] - after[second]) - offset
    length2 = np.maximum((moved**2).sum(axis=1), 1e-300)
    time = np.clip(-(offset * moved).sum(axis=1) / length2, 0.0, 1.0)
    return np.linalg.norm(offset + time[:, None] * moved, axis=1)


def distances(position: Floats) -> Floats:
    first, second = np.triu_indices(len(position), 1)
    return np.linalg.norm(position[first] - position[second], axis=1)


def contacts(radius: Floats) -> Floats:
    """At which distances pairs touch."""
    first, second = np.triu_indices(len(radius), 1)
    return radius[first] + radius[second]


def deepest_overlap(position: Floats, radius: Floats) -> float:
    """By how much the two bodies that overlap most do [m]; negative when none touch. For many bodies."""
    if len(position) < 2:
        return -np.inf
    pairs = cKDTree(position).query_pairs(2 * float(radius.max()), output_type="ndarray")
    away = np.linalg.norm(position[pairs[:, 0]] - position[pairs[:, 1]], axis=1)
    return float((radius[pairs].sum(axis=1) - away).max(initial=-np.inf))
