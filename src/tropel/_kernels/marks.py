"""Sorting sets of small numbers: a bit for each number, read off in ascending order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel
from tropel._kernels.simd import trailing_zeros

_ZERO, _ONE, _SIX, _LAST = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)


class Marks(NamedTuple):
    """A bit for each number, and one for each word of them that is not zero."""

    words: NDArray[np.uint64]
    any_in: NDArray[np.uint64]


def new_marks(numbers: int, lanes: int) -> Marks:
    """Marks for numbers below this one, for each of some lanes; none is set."""
    words = numbers // 64 + 1
    return Marks(np.zeros((lanes, words), dtype=np.uint64), np.zeros((lanes, words // 64 + 1), dtype=np.uint64))


@inlined_kernel
def set_mark(marks, lane, number):
    """Mark a number (uint64)."""
    word = number >> _SIX
    marks.words[lane, word] |= _ONE << (number & _LAST)
    marks.any_in[lane, word >> _SIX] |= _ONE << (word & _LAST)


@inlined_kernel
def read_marks(marks, lane, out):
    """Write all marked numbers in ascending order, and take the marks away; returns how many there were.

    This takes a few instructions for each number, and one for 4096 numbers that are not marked.
    """
    count = np.uint64(0)
    for block in range(np.uint64(marks.any_in.shape[1])):
        blocks = marks.any_in[lane, block]
        if blocks == _ZERO:
            continue
        marks.any_in[lane, block] = _ZERO
        while blocks != _ZERO:
            word = (block << _SIX) + trailing_zeros(blocks)
            blocks &= blocks - _ONE
            bits = marks.words[lane, word]
            marks.words[lane, word] = _ZERO
            while bits != _ZERO:
                out[count] = (word << _SIX) + trailing_zeros(bits)
                bits &= bits - _ONE
                count += _ONE
    return count
