"""A mark for tests that compare one thread with two."""

from __future__ import annotations

import numba
import pytest

needs_two_threads = pytest.mark.skipif(
    numba.config.NUMBA_NUM_THREADS < 2,  # type: ignore[attr-defined]
    reason="this machine, or NUMBA_NUM_THREADS, has one thread",
)
