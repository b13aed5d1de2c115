"""Warming up compiles everything once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tropel import warmup
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


def test_what_cannot_be_kept_is_not_compiled_in_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    parts = [*BASICS, "something else"]
    monkeypatch.setattr(warmup, "PARTS", {what: lambda what=what: used.append(what) for what in parts})
    monkeypatch.setattr(warmup, "kernels_are_kept", lambda: False)
    monkeypatch.setattr(warmup, "_compile_elsewhere", lambda what: pytest.fail(f"{what} was compiled for nothing"))
    told: list[str] = []
    assert warmup.warm_up(lambda done, what: told.append(what)) == 0
    assert used == list(BASICS)
    assert "none of them kept" in told[-1]


def test_what_another_process_warns_of_is_said_in_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with pytest.warns(UserWarning, match=f"chmod go-w '{tmp_path}'"):
        _, what = warmup._compile_elsewhere("influence of hazards")
    assert what == "influence of hazards"
