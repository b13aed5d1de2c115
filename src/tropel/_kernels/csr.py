"""Lists of different lengths, one per agent, laid end to end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel


class Csr(NamedTuple):
    """The list of row i is indices[indptr[i] : indptr[i + 1]]."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]


@kernel
def sum_up(length, indptr):
    """Fill indptr from the lengths of the lists; returns the length of all together."""
    total = 0
    indptr[0] = 0
    for i in range(length.shape[0]):
        total += length[i]
        indptr[i + 1] = total
    return total
