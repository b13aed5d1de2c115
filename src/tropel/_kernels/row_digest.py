"""Digests of rows that add up: the same for the same rows in any order, and on several processes the sum of theirs.

Every number of a row goes through a mixing function (the finaliser of SplitMix64; Steele, Lea & Flood, "Fast splittable
pseudorandom number generators", 2014) together with the digest so far, beginning with a key of the column; two lanes
with other keys make 128 bits. Sums of integers do not depend on their order. It tells states apart and protects from
nobody: whoever wants two states with the same digest can make them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, parallel_kernel

_LANES = 2


@inlined_kernel
def _mixed(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@parallel_kernel
def _mix_in(words, key, digest):
    """Let the words of each row change its digest."""
    for row in numba.prange(words.shape[0]):
        for lane in range(digest.shape[1]):
            z = digest[row, lane] + key[lane]
            for k in range(words.shape[1]):
                z = _mixed(z ^ np.uint64(words[row, k]))
            digest[row, lane] = _mixed(z)


def sum_of_row_digests(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.uint64]:
    """The sum of the digests of all rows of a table: two numbers."""
    count = len(next(iter(columns.values()), ()))
    digest = np.zeros((count, _LANES), dtype=np.uint64)
    for name in sorted(columns):
        column = np.ascontiguousarray(columns[name])
        column = column.reshape(count, column[:1].size if count else 1)
        key = np.frombuffer(hashlib.blake2b(name.encode(), digest_size=8 * _LANES).digest(), dtype=np.uint64)
        _mix_in(column.view(f"u{column.dtype.itemsize}"), key, digest)
    return np.asarray(digest.sum(axis=0, dtype=np.uint64))
