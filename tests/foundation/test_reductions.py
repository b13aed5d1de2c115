"""Quantities of the whole crowd are taken in one place: reductions over agents anywhere else are found by reading."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import tropel
from tropel.foundation.reductions import ONE_PROCESS

SOURCES = Path(tropel.__file__).parent
#: Where arithmetic and decisions of a step are made.
PARTS = ("broad_phase", "contact", "contracts", "environment", "local", "planning")
MODULES = ("simulation.py", "run/group_layers.py", "run/phases.py", "run/stages.py", "agents/population.py",
           "agents/leaving.py")  # fmt: skip
#: What makes one number of many.
REDUCTIONS = {"max", "min", "any", "all", "sum", "mean", "median", "quantile", "argmax", "argmin", "count_nonzero",
              "amax", "amin"}  # fmt: skip
#: Functions that may: what they find does not move anybody, or concerns this part of the crowd alone.
ALLOWED = {
    ("broad_phase/cell_grid.py", "_check_periodic"): "names an agent in an error",
    ("contact/wanted.py", "_lowest_id"): "names an agent in an error",
    ("contracts/moment.py", "of"): "how many groups there are, for agents that no simulation has",
    ("local/collision_free_speed.py", "prepare"): "names an agent in an error",
    ("local/flocking/model.py", "relations"): "whether somebody here is dead decides between two kernels, same bits",
    ("local/flocking/model.py", "leaders"): "saves work where nobody is dead, with the same result",
    ("local/flocking/model.py", "with_dead_apart"): "saves work where nobody is dead, with the same result",
    ("local/lattice/model.py", "steer"): "names an agent in an error",
    ("planning/path_plans/model.py", "_warn_of_the_lost"): "is said in a warning",
}


def reductions_in(source: Path) -> Iterator[tuple[str, int, str]]:
    """Function, line and text of every reduction over something of `state`, or of `agents`, but those by `reduce`."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        if any("kernel" in ast.unparse(decorator) for decorator in function.decorator_list):
            continue  # kernels get arrays, and what they return is looked at where they are called
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in REDUCTIONS:
                whole = ast.unparse(call)
                if ".reduce." in whole or "_reduce." in whole or whole.startswith("reduce."):
                    continue
                if any(word in whole for word in ("state.", "self.agents.", "state[")):
                    yield function.name, call.lineno, whole


def test_every_reduction_over_the_crowd_goes_through_one_object() -> None:
    found = []
    files = [file for part in PARTS for file in sorted((SOURCES / part).rglob("*.py"))]
    for source in [*files, *(SOURCES / module for module in MODULES)]:
        name = source.relative_to(SOURCES).as_posix()
        found += [
            f"{name}:{line} in {function}: {text}"
            for function, line, text in reductions_in(source)
            if (name, function) not in ALLOWED
        ]
    assert not found, "take these by moment.reduce, or say in ALLOWED why not:\n" + "\n".join(found)


def test_what_is_allowed_is_still_there() -> None:
    used = {
        (name, function) for name in {name for name, _ in ALLOWED} for function, _, _ in reductions_in(SOURCES / name)
    }
    assert set(ALLOWED) <= used


def test_the_reading_finds_reductions(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(
        "def steer(moment, out):\n"
        "    a = float(moment.state.radius.max(initial=0.0))\n"
        "    b = np.median(state.sense_radius)\n"
        "    c = moment.reduce.largest(state.radius)\n"
    )
    assert sorted(line for _, line, _ in reductions_in(source)) == [2, 3]


def test_one_process_reduces_like_numpy() -> None:
    values = np.random.default_rng(0).normal(size=101)
    assert ONE_PROCESS.largest(values, initial=-9.0) == values.max()
    assert ONE_PROCESS.largest(values[:0]) == 0.0
    assert ONE_PROCESS.median(values) == np.median(values)
    assert np.isnan(ONE_PROCESS.median(values[:0]))
    assert np.array_equal(ONE_PROCESS.quantiles(values, [0.1, 0.9]), np.quantile(values, [0.1, 0.9]))
    assert ONE_PROCESS.count(3) == 3
    assert ONE_PROCESS.any(np.bool_(True)) is True
