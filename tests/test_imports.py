"""Importing tropel is light: it loads nothing heavy, and no import compiles anything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

import tropel

HEAVY = ("numba", "scipy", "matplotlib", "pydantic", "pandas", "pyarrow", "shapely", "PIL", "rich", "typer", "numpy")

_ALL_MODULES = """
import importlib, json, pkgutil, tropel
names = [m.name for m in pkgutil.walk_packages(tropel.__path__, "tropel.") if not m.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
from tropel._kernels.compile import compiled_kernels
print(json.dumps({
    "modules": names,
    "kernels": len(compiled_kernels()),
    "compiled": [k.py_func.__qualname__ for k in compiled_kernels() if k.is_compiled],
}))
"""


def test_import_loads_no_heavy_package(python: Callable[..., str]) -> None:
    loaded = json.loads(python("import sys, json, tropel; print(json.dumps(sorted(sys.modules)))"))
    assert [name for name in HEAVY if name in loaded] == []


def test_importing_every_module_compiles_nothing(python: Callable[..., str]) -> None:
    told = json.loads(python(_ALL_MODULES))
    assert {"tropel.simulation", "tropel.environment.grid", "tropel.local.seek", "tropel.testing"} <= set(
        told["modules"]
    )
    assert told["kernels"] > 20
    assert told["compiled"] == []


def test_matplotlib_and_scipy_wait_until_they_are_needed(python: Callable[..., str]) -> None:
    loaded = json.loads(python("import sys, json, tropel; tropel.Simulation; print(json.dumps(sorted(sys.modules)))"))
    assert [name for name in ("matplotlib", "scipy.spatial", "pandas", "pyarrow") if name in loaded] == []


@pytest.mark.parametrize("name", tropel.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(tropel, name) is not None
    assert name in dir(tropel)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Simulatoin"):
        tropel.Simulatoin  # noqa: B018


def test_import_time_is_reported(record_property: Callable[[str, object], None]) -> None:
    """A figure for the log, in milliseconds; times are not asserted."""
    for what in ("import tropel", "from tropel import Simulation"):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", what], capture_output=True, text=True, check=True
        )
        rows = [line.removeprefix("import time:").split("|") for line in done.stderr.splitlines()[1:]]
        total = max(int(row[1]) for row in rows if row[2].strip().startswith("tropel"))
        record_property(f"{what} [ms]", total / 1000)
        print(f"{what}: {total / 1000:.1f} ms")
