"""Lengths of ways in 32 bits, for those who only compare neighbouring cells.

A crowd on a large map waits for memory, and that is halved so. Only the lowest bits of a length are kept: differences
between neighbours are right nevertheless, because they are small. Nothing stands for the goal but AT_GOAL, and for a
way that does not exist but NO_WAY.
"""

from __future__ import annotations

import numba
import numpy as np

from tropel._kernels.compile import parallel_kernel
from tropel._kernels.grid_moves import FAR

AT_GOAL, NO_PATH = 0, 0xFFFFFFFF
_LOW = np.int64(0xFFFFFFFF)


def bits_to_drop(longest_move: int) -> int:
    """How many of the lowest bits of lengths must go, so that differences of a few moves this long still fit."""
    return max(0, longest_move.bit_length() - 29)


@parallel_kernel
def shorten_lengths(units, drop, out):
    """Write lengths of ways without so many of their lowest, and without their highest bits."""
    for cell in numba.prange(units.size):
        way = units[cell]
        low = np.uint32(min(max((way >> drop) & _LOW, AT_GOAL + 1), NO_PATH - 1))
        out[cell] = np.uint32(AT_GOAL) if way == 0 else np.uint32(NO_PATH) if way >= FAR else low
