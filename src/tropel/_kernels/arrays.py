"""Array helpers: ragged lists, and copying and clearing of whole arrays.

All threads work on large arrays, because a single thread cannot use the full memory bandwidth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel, parallel_kernel


class Csr(NamedTuple):
    """Lists of different lengths, one per row, end to end: row i has indices[indptr[i] : indptr[i + 1]]."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]


class Ragged(NamedTuple):
    """Lists of different lengths, one per row, anywhere in one array: items[start[i] : start[i] + length[i]]."""

    start: NDArray[np.int64]
    length: NDArray[np.int64]
    items: NDArray[np.int32]

    def of(self, row: int) -> NDArray[np.int32]:
        """The list of a row."""
        return self.items[self.start[row] : self.start[row] + self.length[row]]


def as_ragged(lists: Csr | Ragged) -> Ragged:
    """The same lists, without a copy."""
    if isinstance(lists, Ragged):
        return lists
    return Ragged(lists.indptr[:-1], np.diff(lists.indptr), lists.indices)


@kernel
def sum_up(length, indptr):
    """Fill indptr from the lengths of the lists; returns the total length."""
    total = 0
    indptr[0] = 0
    for i in range(length.shape[0]):
        total += length[i]
        indptr[i + 1] = total
    return total


@kernel
def _first_difference(one, other):
    for k in range(one.size):
        if one[k] != other[k]:
            return k
    return one.size


def are_equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays of one dimension have the same numbers; several times as fast as NumPy's `array_equal`."""
    return one is other or (len(one) == len(other) and bool(_first_difference(one, other) == len(one)))


#: From this size on, several threads are faster than one [bytes].
_LARGE = 1 << 20


@parallel_kernel
def _copy(words, out):
    for k in numba.prange(words.size):
        out[k] = words[k]


@parallel_kernel
def _clear(out):
    for k in numba.prange(out.size):
        out[k] = 0


def as_words(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as unsigned numbers of at most eight bytes, so that one kernel serves many types."""
    return array.reshape(-1).view(f"u{min(array.dtype.itemsize, 8)}")


def copy(array: NDArray[Any], out: NDArray[Any]) -> None:
    """Copy an array into another of the same type and shape."""
    if array.nbytes < _LARGE:
        np.copyto(out, array)
    else:
        _copy(as_words(array), as_words(out))


def clear(out: NDArray[Any]) -> None:
    """Set a whole array to zero."""
    if out.nbytes < _LARGE:
        out.fill(0)
    else:
        _clear(as_words(out))
