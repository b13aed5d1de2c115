"""A compiled kernel is used again only while all sources that went into it are the same."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import tropel
from tropel._kernels import sources
from tropel._kernels.inner import Kernel

PACKAGE = Path(tropel.__file__).resolve().parent


def modules_with_kernels() -> list[str]:
    return [
        ".".join(["tropel", *file.relative_to(PACKAGE).with_suffix("").parts])
        for file in sorted(PACKAGE.rglob("*.py"))
        if "_kernels.compile import" in file.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", modules_with_kernels())
def test_every_kernel_that_a_module_uses_stands_in_a_file_that_counts(name: str) -> None:
    module = importlib.import_module(name)
    start = Path(inspect.getfile(module)).resolve()
    behind = {start, *sources.files_behind(start)}
    used = [one for one in vars(module).values() if isinstance(one, Kernel)]
    assert {Path(inspect.getfile(one.py_func)).resolve() for one in used} <= behind


def test_files_of_other_models_do_not_count() -> None:
    behind = sources.files_behind(PACKAGE / "local" / "walk" / "model.py")
    assert PACKAGE / "local" / "walk" / "sight.py" in behind  # directly
    assert PACKAGE / "_kernels" / "walls.py" in behind  # through others
    assert not any("kinetic" in file.parts or "orca" in file.parts for file in behind)


def test_an_edit_behind_a_kernel_compiles_it_anew_and_one_elsewhere_does_not(tmp_path: Path) -> None:
    package = tmp_path / "tropel"
    (package / "_kernels").mkdir(parents=True)
    code = (PACKAGE / "_kernels" / "sources.py").read_text(encoding="utf-8")
    (package / "_kernels" / "sources.py").write_text(code, encoding="utf-8")
    for name, text in {
        "__init__": "",
        "_kernels/__init__": "",
        "model": "from tropel.folder import (\n    step,  # a module\n)\nfrom tropel.again import ONE\n",
        "folder/__init__": "",
        "folder/step": "def inside():\n    from tropel import constants as c\n",
        "again": "from tropel.model import nothing",
        "constants": "RATE = 1",
        "other": "",
    }.items():
        file = package / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def digest() -> str:
        script = "import sys; from tropel._kernels.sources import source_digest; print(source_digest(sys.argv[1]))"
        arguments = [sys.executable, "-S", "-c", script, str(package / "model.py")]
        return subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    first = digest()
    (package / "other.py").write_text("EDITED = True", encoding="utf-8")
    assert digest() == first
    (package / "constants.py").write_text("RATE = 2", encoding="utf-8")
    second = digest()
    assert second != first
    (package / "again.py").write_text("ONE = 1", encoding="utf-8")
    assert digest() not in {first, second}
