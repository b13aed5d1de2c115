"""Kernels inside of other kernels: no machine code of their own, and the same results."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel


@kernel
def _rooted(values, i):  # type: ignore[no-untyped-def]
    if values[i] < 0.0:
        raise ValueError("below zero")
    return np.sqrt(values[i])


@inlined_kernel
def _shifted(values, i, by):  # type: ignore[no-untyped-def]
    return _rooted(values, i) + by


@parallel_kernel
def _all_shifted(values, out):  # type: ignore[no-untyped-def]
    for i in numba.prange(values.shape[0]):
        out[i] = _shifted(values, i, 1) + _shifted(values, i, 2)


@kernel
def _first_and_all(values, out):  # type: ignore[no-untyped-def]
    _all_shifted(values, out)
    return _rooted(values, 0)


@numba.njit
def _of_a_user(values):  # type: ignore[no-untyped-def]
    return _rooted(values, 1) + _shifted(values, 2, 1)


@numba.njit(parallel=True)
def _of_a_user_on_threads(values, out):  # type: ignore[no-untyped-def]
    for i in numba.prange(values.shape[0]):
        out[i] = _shifted(values, i, 0)
    _all_shifted(values, out)


VALUES = np.arange(9.0) ** 2


def test_kernels_can_be_called_from_python_and_from_each_other() -> None:
    out = np.zeros(9)
    assert _rooted(VALUES, 3) == 3.0
    _all_shifted(VALUES, out)
    assert out.tolist() == (2.0 * np.arange(9.0) + 3.0).tolist()
    assert _first_and_all(VALUES, out) == 0.0


def test_functions_of_a_user_can_call_kernels() -> None:
    out = np.zeros(9)
    assert _of_a_user(VALUES) == 4.0
    _of_a_user_on_threads(VALUES, out)
    assert out.tolist() == (2.0 * np.arange(9.0) + 3.0).tolist()


def test_an_error_in_an_inner_kernel_is_an_error_of_the_call() -> None:
    with pytest.raises(ValueError, match="below zero"):
        _first_and_all(np.full(9, -1.0), np.zeros(9))


def test_an_inner_kernel_has_no_machine_code(python: Callable[..., str], tmp_path: Path) -> None:
    found = python(
        """
import numpy as np
from tests._kernels.test_inner_kernels import VALUES, _all_shifted, _rooted, _shifted
_all_shifted(VALUES, np.zeros(9))
assert not _rooted.signatures and not _shifted.signatures
assert _rooted.is_compiled and _all_shifted.is_compiled
for one in _rooted.inner.overloads.values():
    assert one.library.get_pointer_to_function(one.fndesc.llvm_func_name) == 0
# Once for all numbers that are written down in calls.
print(len(_shifted.inner.overloads))
""",
        # Kernels that were kept are not compiled, nor what they call.
        environment={"NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert int(found) <= 2  # the index of a parallel loop is typed before and after it is one


def test_what_an_inlined_kernel_calls_need_not_be_inlined() -> None:
    _all_shifted(VALUES, np.zeros(9))
    assert all("alwaysinline" not in one.library.get_llvm_str() for one in _rooted.inner.overloads.values())


def test_the_collector_is_as_it_was_after_compiling() -> None:
    for switch, on in ((gc.disable, False), (gc.enable, True)):
        switch()
        try:

            @kernel
            def fresh(x):  # type: ignore[no-untyped-def]
                return x + 1

            fresh(1)
            assert gc.isenabled() == on
        finally:
            gc.enable()
