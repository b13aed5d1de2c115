"""No kernel reads or writes outside its arrays.

(N, 2) and (N, 3) are the same type to Numba, and without checks `position[i, 2]` in a 2D world reads the next agent. So
everything runs once with Numba's own checks, compiled for that from scratch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.bounds
def test_every_layer_stays_within_its_arrays_in_2d_and_3d(tmp_path: Path, python: Callable[..., str]) -> None:
    scenes = Path(__file__).parents[1] / "determinism"
    checked = {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(tmp_path),
        # An error that another thread meets does not reach Python.
        "NUMBA_NUM_THREADS": "1",
        # Most of the time goes into compiling, and nothing here needs to be fast.
        "NUMBA_OPT": "0",
    }
    said = python(Path(__file__).with_name("checked_run.py"), scenes, environment=checked)
    assert "bounds are checked" in said
    assert "hall has run" in said
    assert "box has run" in said
    assert "contracts are kept" in said
    assert "never called:\n" in said, "a kernel that nothing here calls is not checked: call it in checked_run.py"
