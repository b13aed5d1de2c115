"""Warming up compiles everything once."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tropel import warmup
from tropel._kernels.processes import CompilingProcess
from tropel.warmup import BASICS
from tropel.warmup_scenes import PARTS

#: Runs the planned scenes twice, the second time with plans from the cache, and prints what had to be compiled.
_PLANNED_SCENES = """
import sys, tempfile
from pathlib import Path
from tropel._kernels.compile import watch_compiling
from tropel.scenario import builtin_names, load_builtin
from tropel.scenario.plan import draw_scenario_fields
from tropel.warmup import warm_up

warm_up()
scenes = map(load_builtin, builtin_names())
planned = [s for s in scenes if s.spec.planning is not None and s.spec.planning.model != "direct"]
assert len(planned) >= 5
with watch_compiling(lambda name: print("compiled", name)), tempfile.TemporaryDirectory() as folder:
    for scenario in planned * 2:
        scenario.build().run(until=0.5)
        draw_scenario_fields(scenario, Path(folder))
"""


#: What `tropel demo` does; prints what had to be compiled.
_DEMO = """
import sys
from tropel._kernels.compile import watch_compiling
from tropel.cli.commands import app
with watch_compiling(lambda name: print("compiled", name, file=sys.__stdout__)):
    sys.stdout = sys.stderr
    app(["demo", "--until", "2", "--out", sys.argv[1], "--quiet"], standalone_mode=False)
"""


def test_after_a_warm_up_nothing_is_left_to_compile(python: Callable[..., str]) -> None:
    script = "from tropel.warmup import is_warm, warm_up; compiled = warm_up(); assert is_warm(); print(compiled)"
    # `make test` has warmed up before.
    if int(python(script)) > 0:
        assert int(python(script)) == 0


@pytest.mark.long
def test_after_a_warm_up_planned_scenes_compile_nothing(tmp_path: Path, python: Callable[..., str]) -> None:
    assert python(_PLANNED_SCENES, environment={"TROPEL_PLAN_CACHE": str(tmp_path)}) == ""


def test_what_was_compiled_from_other_sources_is_not_warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = _SomeParts(monkeypatch, tmp_path)
    monkeypatch.setattr(warmup, "_cores", lambda: 1)
    warmup.warm_up(parts=BASICS)
    assert warmup.is_warm()
    monkeypatch.setattr(warmup, "kernel_digest", lambda: "another")
    assert not warmup.is_warm()
    warmup.warm_up(parts=BASICS)
    assert warmup.is_warm()
    assert parts.done_here == [*BASICS, *BASICS]


def test_the_basics_are_a_part_of_all() -> None:
    assert set(BASICS) < set(PARTS)


def test_what_cannot_be_kept_is_not_compiled_in_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    parts = [*BASICS, "something else"]
    monkeypatch.setattr(warmup, "PARTS", {what: lambda what=what: used.append(what) for what in parts})
    monkeypatch.setattr(warmup, "kernels_are_kept", lambda: False)
    monkeypatch.setattr(warmup, "CompilingProcess", lambda *what: pytest.fail("something was compiled for nothing"))
    told: list[str] = []
    assert warmup.warm_up(lambda done, what: told.append(what)) == 0
    assert used == list(BASICS)
    assert "none of them kept" in told[-1]


def test_what_another_process_warns_of_is_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    helper = CompilingProcess("tropel.warmup", "_compile_part")
    answer = helper.do("influence of hazards")
    helper.stop()
    assert answer is not None
    assert any(f"chmod go-w '{tmp_path}'" in text for text in answer[1])


def test_a_process_that_fails_or_is_stopped_says_so() -> None:
    helper = CompilingProcess("tropel.warmup", "_compile_part")
    assert helper.do("what is no part") is None
    helper.stop()
    assert helper.do("influence of hazards") is None


class _SomeParts:
    """Parts that compile nothing, and who did them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self.done_here: list[str] = []
        self.parts = [*BASICS, "flocks", "something else"]
        monkeypatch.setattr(warmup, "PARTS", {what: partial(self.done_here.append, what) for what in self.parts})
        monkeypatch.setattr(warmup, "cache_directory", lambda: directory)
        monkeypatch.setattr(warmup, "_cores", lambda: 2)


def test_parts_are_shared_with_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = _SomeParts(monkeypatch, tmp_path)
    done_there: list[str] = []

    class Fake:
        def __init__(self, *what: str) -> None:
            pass

        def do(self, what: str) -> tuple[int, list[str]]:
            done_there.append(what)
            _until(lambda: parts.done_here)
            return 3, ["the disk is full"]

        def stop(self) -> None:
            done_there.append("stopped")

    # Each waits until the other one has had a part too.
    monkeypatch.setattr(
        warmup, "_compile_part", lambda what: (_until(lambda: done_there), parts.done_here.append(what))
    )
    monkeypatch.setattr(warmup, "CompilingProcess", Fake)
    with pytest.warns(UserWarning, match="the disk is full"):
        assert warmup.warm_up() == 3 * (len(done_there) - 1)
    assert sorted([*parts.done_here, *done_there]) == sorted([*parts.parts, "stopped"])
    assert parts.done_here
    assert len(done_there) > 1


def test_what_another_process_leaves_undone_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = _SomeParts(monkeypatch, tmp_path)
    failed: list[str] = []

    class Failing:
        def __init__(self, *what: str) -> None:
            pass

        def do(self, what: str) -> None:
            failed.append(what)

        def stop(self) -> None:
            pass

    monkeypatch.setattr(warmup, "CompilingProcess", Failing)
    told: list[int] = []
    warmup.warm_up(lambda done, what: told.append(done))
    assert len(failed) == 1
    assert sorted(parts.done_here) == sorted(parts.parts)
    assert told[-1] == len(parts.parts)
    assert warmup.is_warm(parts.parts)


def _until(happened: Callable[[], object], patience: float = 60.0) -> None:
    end = time.monotonic() + patience
    while not happened() and time.monotonic() < end:
        time.sleep(0.001)


def test_a_first_demo_compiles_only_the_basics(tmp_path: Path, python: Callable[..., str]) -> None:
    python("from tropel.warmup import BASICS, warm_up; warm_up(parts=BASICS)")
    assert python(_DEMO, tmp_path) == ""
