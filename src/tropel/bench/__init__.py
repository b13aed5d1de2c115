"""Benchmarks: each measures tropel and an alternative in the same run, and reports the ratio of the two.

A benchmark is a module of this package with a function `measure(progress) -> BenchResult`, entered in `_MODULES`.
"""

from __future__ import annotations

import importlib

from tropel.bench.result import BenchResult, Progress
from tropel.errors import ParameterError, suggest
from tropel.foundation.arguments import checked_arguments

__all__ = ["BenchResult", "Progress", "names", "run"]

_MODULES = {
    "flock": "tropel.bench.flock",
    "knowledge": "tropel.bench.knowledge",
    "lattice": "tropel.bench.lattice",
    "neighbours": "tropel.bench.neighbours",
    "orca": "tropel.bench.orca",
    "kinetic": "tropel.bench.kinetic",
    "planning": "tropel.bench.planning",
    "riders": "tropel.bench.riders",
    "roadmap": "tropel.bench.roadmap",
    "stages": "tropel.bench.stages",
    "steering": "tropel.bench.steering",
}


def names() -> list[str]:
    """Names of all benchmarks."""
    return sorted(_MODULES)


@checked_arguments
def run(name: str, *, progress: Progress | None = None) -> BenchResult:
    """Run one benchmark; `progress(what, done, total)` is called as it proceeds."""
    if name not in _MODULES:
        raise ParameterError(f"unknown benchmark '{name}'; {suggest(name, _MODULES)}")
    module = importlib.import_module(_MODULES[name])
    result: BenchResult = module.measure(progress or _silent)
    return result


def _silent(what: str, done: int, total: int) -> None:
    pass
