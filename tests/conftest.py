"""What all tests share: the same hypothesis settings, and no test that leaves its number of threads behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numba
import pytest
from hypothesis import HealthCheck, settings

# A kernel may be compiled within an example, and the machine may be shared: time says nothing about an example.
settings.register_profile("tropel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tropel")


#: The longest first: at the end, all other workers would wait for them.
_FIRST = (
    "test_documentation",
    "test_warmup",
    "test_flock_scenes",
    "test_kernel_cache",
    "test_leaders",
    "test_planned_scenes",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def turn(item: pytest.Item) -> int:
        return next((number for number, name in enumerate(_FIRST) if name in item.nodeid), len(_FIRST))

    items.sort(key=turn)


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


@pytest.fixture
def python() -> Callable[..., str]:
    """Run code, or a script with arguments, in a fresh Python; returns what it printed."""

    def run(code: str | Path, *arguments: object, environment: Mapping[str, str] | None = None) -> str:
        start = [str(code)] if isinstance(code, Path) else ["-c", code]
        done = subprocess.run(
            [sys.executable, *start, *map(str, arguments)],
            env=os.environ | dict(environment or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=1500,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
