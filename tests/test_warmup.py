"""Warming up compiles everything once."""

from __future__ import annotations

import subprocess
import sys

from tropel.warmup import BASICS, PARTS


def test_after_a_warm_up_nothing_is_left_to_compile() -> None:
    script = "from tropel.warmup import is_warm, warm_up; compiled = warm_up(); assert is_warm(); print(compiled)"
    counts = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=True)
        counts.append(int(done.stdout))
    assert counts[1] == 0


def test_the_basics_are_a_part_of_all() -> None:
    assert set(BASICS) < set(PARTS)
