"""In which order a structure is built, and where its vertices are nudged: functions of numbers, without randomness."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

#: Points that a round of insertion begins with, at least.
_SMALL_ROUND = 64


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers scrambled so that neighbouring ones have nothing in common (the finaliser of SplitMix64)."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@functools.lru_cache(maxsize=4)
def nudges(count: int) -> NDArray[np.float64]:
    """A vector for each number, with components between -1 and 1."""
    digits = _mixed(np.arange(3 * count, dtype=np.uint64)).reshape(count, 3)
    return (digits >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def _spread_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Two zeros between the bits of ten-bit numbers."""
    for shift, mask in ((16, 0x030000FF), (8, 0x0300F00F), (4, 0x030C30C3), (2, 0x09249249)):
        values = (values | (values << np.uint64(shift))) & np.uint64(mask)
    return values


def along_a_curve(position: NDArray[np.float64]) -> NDArray[np.uint64]:
    """A number for each point; points with near numbers are near each other (Morton's curve)."""
    low = position.min(axis=0)
    size = max(float((position.max(axis=0) - low).max()), 1e-300)
    cell = np.minimum((position - low) / size * 1024.0, 1023.0).astype(np.uint64)
    x, y, z = (_spread_bits(cell[:, axis]) for axis in range(3))
    return x | (y << np.uint64(1)) | (z << np.uint64(2))


def insertion_order(position: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rounds that double in size, each along a curve that keeps near points together.

    After Amenta, Choi and Rote, "Incremental constructions con BRIO", 2003: walks stay short, and the early rounds keep
    cavities small. The last point alone would be as near, but leaves long tetrahedra at the front.
    """
    count = len(position)
    if count == 0:
        return np.empty(0, dtype=np.int64)
    # A scrambled number with many leading zeros comes early.
    share = _mixed(np.arange(count, dtype=np.uint64) + np.uint64(1 << 40)).astype(np.float64) * 2.0**-64
    first = np.log2(_SMALL_ROUND / max(count, _SMALL_ROUND))
    rounds = np.maximum(np.floor(np.log2(np.maximum(share, 1e-300))), first)
    return np.lexsort((along_a_curve(position), rounds))
