"""Warming up compiles everything once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tropel.warmup import BASICS, PARTS

#: Runs the planned scenes twice, the second time with plans from the cache, and prints what had to be compiled.
_PLANNED_SCENES = """
import sys, tempfile
from pathlib import Path
from tropel._kernels.compile import watch_compiling
from tropel.scenario import builtin_names, load_builtin
from tropel.scenario.plan import draw_scenario_fields
from tropel.warmup import warm_up

warm_up()
planned = [s for s in map(load_builtin, builtin_names()) if s.spec.planning.model != "direct"]
assert len(planned) >= 5
with watch_compiling(lambda name: print("compiled", name)), tempfile.TemporaryDirectory() as folder:
    for scenario in planned * 2:
        scenario.build().run(until=0.5)
        draw_scenario_fields(scenario, Path(folder))
"""


def test_after_a_warm_up_nothing_is_left_to_compile() -> None:
    script = "from tropel.warmup import is_warm, warm_up; compiled = warm_up(); assert is_warm(); print(compiled)"
    counts = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=True)
        counts.append(int(done.stdout))
    assert counts[1] == 0


@pytest.mark.long
def test_after_a_warm_up_planned_scenes_compile_nothing(tmp_path: Path, python: Callable[..., str]) -> None:
    assert python(_PLANNED_SCENES, environment={"TROPEL_PLAN_CACHE": str(tmp_path)}) == ""


def test_the_basics_are_a_part_of_all() -> None:
    assert set(BASICS) < set(PARTS)
