"""Path lengths in 32 bits, for code that only compares neighbouring cells.

A crowd on a large map waits for memory, and this halves the traffic. Only the lowest bits of a length are kept.
Differences between neighbours are correct nevertheless, because they are small. Only AT_GOAL stands for the goal, and
only NO_PATH for a path that does not exist.
"""

from __future__ import annotations

import numba
import numpy as np

from tropel._kernels.compile import parallel_kernel
from tropel._kernels.grid_moves import FAR

AT_GOAL, NO_PATH = 0, 0xFFFFFFFF
_LOW = np.int64(0xFFFFFFFF)


def bits_to_drop(longest_move: int) -> int:
    """How many of the lowest bits of lengths to drop, so that differences of a few moves this long still fit."""
    return max(0, longest_move.bit_length() - 29)


@parallel_kernel
def shorten_lengths(units, drop, out):
    """Write path lengths without their `drop` lowest bits and without their highest bits."""
    for cell in numba.prange(units.size):
        way = units[cell]
        low = np.uint32(min(max((way >> drop) & _LOW, AT_GOAL + 1), NO_PATH - 1))
        out[cell] = np.uint32(AT_GOAL) if way == 0 else np.uint32(NO_PATH) if way >= FAR else low
