"""Arrays are copied and cleared whole, whatever their type and size."""

from __future__ import annotations

import numpy as np
import pytest

from tropel._kernels.arrays import clear, copy

#: Below and above the size from which all threads take part.
SHAPES = [(0, 2), (7,), (1 << 18, 3), ((1 << 20) + 5,)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8"])
def test_a_copy_is_the_same_and_clearing_leaves_nothing(shape: tuple[int, ...], dtype: str) -> None:
    array = (np.random.default_rng(1).random(shape) * 200.0).astype(dtype)
    out = np.ones(shape, dtype=dtype)
    copy(array, out)
    assert out.tobytes() == array.tobytes()
    assert not np.shares_memory(array, out)
    clear(out)
    assert not out.any()
