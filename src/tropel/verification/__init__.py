"""Verification: the standard tests of pedestrian dynamics, run against the engine with a steering model.

A test is a module of this package with a function `check(model, *, model_name, picture) -> Verdict`, entered in
`_MODULES`. RiMEA is the German guideline for microscopic evacuation analysis; its tests are the standard of the field.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tropel.errors import ParameterError, suggest
from tropel.foundation.arguments import checked_arguments
from tropel.verification.verdict import Verdict, verdict_table
from tropel.verification.walkers import Model, model_names, named_model

__all__ = ["Model", "Verdict", "model_names", "names", "run", "verdict_table"]

_MODULES = {
    "rimea_1": "tropel.verification.corridor",
    "rimea_4": "tropel.verification.fundamental_diagram",
    "rimea_6": "tropel.verification.corner",
    "doors": "tropel.verification.doors",
}


def names() -> list[str]:
    """Names of all tests, in the order in which they run."""
    return list(_MODULES)


@checked_arguments
def run(
    *,
    models: Sequence[str] = (),
    tests: Sequence[str] = (),
    out: Path | None = None,
    told: Callable[[int, str], None] | None = None,
) -> Iterator[Verdict]:
    """Run tests (all by default) with steering models by name (by default all that scenario files know).

    With `out`, each test draws a picture into that folder. `told(done, what)` is called before each test.
    """
    chosen = list(tests) or names()
    for test in chosen:
        if test not in _MODULES:
            raise ParameterError(f"unknown verification test '{test}'; {suggest(test, _MODULES)}")
    makers = {name: named_model(name) for name in (models or model_names())}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    done = 0
    for test in chosen:
        check = importlib.import_module(_MODULES[test]).check
        for name, model in makers.items():
            if told is not None:
                told(done, f"{test} with {name}")
            picture = None if out is None else out / f"{test}-{name.rpartition(':')[2]}.png"
            verdict: Verdict = check(model, model_name=name, picture=picture)
            yield verdict
            done += 1
