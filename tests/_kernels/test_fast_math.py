"""exp and arctangent for vector loops, against the library's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.fast_math import fast_atan, fast_exp

Floats = NDArray[np.float64]


@kernel
def exp_of_all(x, out):
    for k in range(x.size):
        out[k] = fast_exp(x[k])


@kernel
def atan_of_all(x, out):
    for k in range(x.size):
        out[k] = fast_atan(x[k])


def test_exp_is_right_to_a_few_units_of_the_last_place() -> None:
    x = np.linspace(-700.0, 700.0, 400_001)
    ours = np.empty_like(x)
    exp_of_all(x, ours)
    np.testing.assert_allclose(ours, np.exp(x), rtol=1e-15 * 4)


def test_exp_stays_finite_beyond_its_range_and_is_exact_at_zero() -> None:
    assert fast_exp(0.0) == 1.0
    assert fast_exp(-math.inf) == pytest.approx(math.exp(-700.0))
    assert fast_exp(1e300) == pytest.approx(math.exp(700.0))


def test_arctangent_is_right_on_the_unit_interval() -> None:
    t = np.linspace(0.0, 1.0, 100_001)
    ours = np.empty_like(t)
    atan_of_all(t, ours)
    np.testing.assert_allclose(ours, np.arctan(t), rtol=1e-14)


@given(values=st.lists(st.floats(-40.0, 1.0), min_size=1, max_size=40))
def test_the_bits_are_the_same_alone_and_among_others(values: list[float]) -> None:
    together = np.empty(len(values))
    exp_of_all(np.array(values), together)
    alone = np.empty(1)
    for value, among in zip(values, together, strict=True):
        exp_of_all(np.array([value]), alone)
        assert alone[0] == among
