"""Calls from Python with a wrong argument: those of `tests/wrong_calls`, one a case."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import json
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .outcome import ACCEPTED, REFUSED, Outcome, finding

CALLS = Path(__file__).parents[1] / "wrong_calls"
_PLAN = "case.json"
#: What the caller says of a call, in the frame's words.
_VERDICTS = {"accepted": ACCEPTED, "refused": REFUSED, "refused later": REFUSED}
_KINDS = {"another error": "traceback", "broke later": "traceback", "too long": "hang"}


class ApiCalls:
    name = "api"
    seconds = 20.0
    share = 0.4

    def prepare(self, folder: Path) -> None:
        pass

    def make(self, chance: random.Random, folder: Path, prepared: Path) -> None:
        wrong = chance.choice(_every_call())
        (folder / _PLAN).write_text(json.dumps(dataclasses.asdict(wrong)))

    def run(self, folder: Path) -> Outcome:
        caller = _caller()
        # Whoever draws calls puts their files into a folder that is gone then; those of cases outlast them.
        bench = _bench()
        bench.folder = _folder()
        if bench.recorded is not None and not bench.recorded.exists():
            bench.recorded = None
        wrong = caller.Wrong(**json.loads((folder / _PLAN).read_text()))
        outcome = caller.try_call(wrong)
        if outcome.kind in _VERDICTS:
            return Outcome(_VERDICTS[outcome.kind], said=outcome.said)
        return finding(_KINDS.get(outcome.kind, outcome.kind), f"{wrong.call}({wrong.argument})", outcome.said)

    def shrink(self, folder: Path, still: Callable[[], bool]) -> None:
        pass


@functools.cache
def _caller() -> Any:
    sys.path.insert(0, str(CALLS))
    import random_caller

    signal.signal(signal.SIGALRM, random_caller._too_long)
    np.seterr(all="ignore")
    return random_caller


def _bench() -> Any:
    from public_calls import Bench

    return Bench


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _every_call() -> list[Any]:
    calls: list[Any] = _caller().draw_calls(0, 0)
    return calls
