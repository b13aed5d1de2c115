"""A sweep of very many seeds holds no more of them than are being run."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest

from tropel.scenario import execute as sweeps
from tropel.scenario import load_builtin


class _Pool:
    """Runs nothing until it is asked for a result, and counts how much waits."""

    waiting = 0
    most = 0

    def __init__(self, **_: Any) -> None: ...

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def submit(self, function: Any, *told: Any) -> Future[sweeps.SeedResult]:
        _Pool.waiting += 1
        _Pool.most = max(_Pool.most, _Pool.waiting)
        future: Future[sweeps.SeedResult] = Future()
        future.set_result(sweeps.SeedResult(row={"seed": told[-1]}, departures=np.empty(0)))
        return future

    def shutdown(self, **_: Any) -> None: ...


class _StoppedError(Exception):
    """Enough has been seen."""


def _completed(waiting: Any) -> Iterator[Any]:
    _Pool.waiting -= 1
    yield next(iter(waiting))


def test_of_a_billion_seeds_only_a_few_wait_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "ProcessPoolExecutor", _Pool)
    monkeypatch.setattr(sweeps, "as_completed", _completed)
    table = tmp_path / "sweep.csv"

    def told(done: int, _: str) -> None:
        if done == 100:
            raise _StoppedError

    with pytest.raises(_StoppedError):
        sweeps.sweep(load_builtin("u_trap"), range(10**9), table=table, workers=2, told=told)
    assert 0 < _Pool.most <= 8
    assert len(table.read_text().splitlines()) == 101
