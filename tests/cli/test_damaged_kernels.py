"""A command whose compiled kernels are damaged says so in one line and goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

from tropel_command import tropel

import tropel as package
from tropel._kernels.cache import cache_directory

SCENARIO = Path(package.__file__).parent / "scenario" / "builtin" / "corridor.toml"


def _emptied(content: bytes) -> bytes:
    return b""


def _cut(content: bytes) -> bytes:
    return content[:9000]


def _flipped(content: bytes) -> bytes:
    return content[:9000] + bytes([content[9000] ^ 1]) + content[9001:]


def test_a_command_compiles_damaged_kernels_again(tmp_path: Path) -> None:
    tropel("validate", SCENARIO, cwd=tmp_path)
    kept = cache_directory()
    assert kept is not None
    directory = tmp_path / kept.name
    # Files that begin with a dot are being written by others.
    shutil.copytree(kept, directory, ignore=shutil.ignore_patterns(".*"))
    damages = {"words.inner": _emptied, "_fill_uniforms": _cut, "philox4x32.inner": _flipped}
    for name, damaged in damages.items():
        files = list(directory.glob(f"*.philox.{name}-*.kernel"))
        assert files
        for file in files:
            file.write_bytes(damaged(file.read_bytes()))
    environment = {"NUMBA_CACHE_DIR": str(directory.parent)}
    again = tropel("validate", SCENARIO, cwd=tmp_path, environment=environment)
    assert again.stderr.count("warning:") == 1
    assert "compiled again" in again.stderr
    assert tropel("validate", SCENARIO, cwd=tmp_path, environment=environment).stderr == ""
