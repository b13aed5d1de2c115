"""Compiled kernels on disk: whatever happens to them, every command goes on, and says in one line what was wrong.

Each start is a process of its own: what is damaged could otherwise bring down the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROCESS = Path(__file__).with_name("summing_process.py")
ALL, NONE = 2, 0


@dataclass
class Started:
    compiled: int
    kept: bool
    warned: list[str]


@dataclass
class Cache:
    directory: Path
    environment: dict[str, str]

    def start(self, *words: str) -> Started:
        """Use two kernels, of which one calls the other, in a fresh process."""
        done = subprocess.run(
            [sys.executable, str(PROCESS), *words],
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr}"
        told: dict[str, Any] = json.loads(done.stdout)
        assert told.pop("found") == 20.0
        return Started(**told)

    def files(self) -> list[Path]:
        return sorted(self.directory.glob("kernels-*/*.kernel"))


def _cache_in(folder: Path) -> Cache:
    directory = folder / "kernels"
    return Cache(directory, {"NUMBA_CACHE_DIR": str(directory), "XDG_CACHE_HOME": str(folder / "home")})


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return _cache_in(tmp_path)


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    cache = _cache_in(tmp_path_factory.mktemp("compiled"))
    assert cache.start() == Started(ALL, True, [])
    assert len(cache.files()) == ALL
    return cache


@pytest.fixture
def filled(cache: Cache, compiled_once: Cache) -> Cache:
    """A cache of its own with both kernels in it."""
    shutil.copytree(compiled_once.directory, cache.directory)
    return cache


def give_away(path: Path, cache: Cache) -> None:
    """Let a directory belong to somebody else."""
    if os.geteuid() == 0:
        os.chown(path, 54321, -1)
    else:
        cache.environment["PYTHONPATH"] = os.pathsep.join(
            [_somebody_else(path.parent), os.environ.get("PYTHONPATH", "")]
        )


def _somebody_else(folder: Path) -> str:
    """A folder that makes Python believe that it is run by another user, for those who cannot give anything away."""
    (folder / "sitecustomize.py").write_text(f"import os\nos.geteuid = lambda: {os.geteuid() + 1}\n")
    return str(folder)


def test_a_second_start_compiles_nothing_and_writes_nothing(filled: Cache) -> None:
    before = {path: path.stat().st_mtime_ns for path in filled.files()}
    assert filled.start() == Started(NONE, True, [])
    assert {path: path.stat().st_mtime_ns for path in filled.files()} == before


def test_only_the_owner_can_use_what_is_made(filled: Cache) -> None:
    made = [filled.directory, *filled.directory.rglob("*")]
    assert len(made) == 3 + ALL  # two folders, and the file of claims
    assert [oct(path.stat().st_mode & 0o077) for path in made] == ["0o0"] * len(made)


def _flip(where: float) -> Callable[[bytes], bytes]:
    def flipped(content: bytes) -> bytes:
        at = min(int(where * len(content)), len(content) - 1)
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]

    return flipped


@pytest.mark.parametrize(
    "damages",
    [
        pytest.param((lambda content: b"", lambda content: content[:1]), id="emptied"),
        pytest.param((lambda content: content[:60], lambda content: content[: len(content) // 2]), id="cut"),
        pytest.param((lambda content: content[:-1], lambda content: content + b"\0"), id="a byte less or more"),
        pytest.param((lambda content: bytes(len(content)), _flip(0.0)), id="no mark"),
        pytest.param((_flip(0.001), _flip(0.02)), id="flipped near the beginning"),
        pytest.param((_flip(0.5), _flip(1.0)), id="flipped in the middle and at the end"),
    ],
)
def test_damaged_files_are_thrown_away_and_compiled_again(
    filled: Cache, damages: tuple[Callable[[bytes], bytes], ...]
) -> None:
    for path, damage in zip(filled.files(), damages, strict=True):
        path.write_bytes(damage(path.read_bytes()))
    again = filled.start()
    assert again.compiled == ALL
    (line,) = again.warned
    assert str(filled.directory) in line
    assert "compiled again" in line
    assert "\n" not in line


def test_what_was_compiled_again_is_kept(filled: Cache) -> None:
    for path in filled.files():
        path.write_bytes(b"")
    assert filled.start().compiled == ALL
    assert filled.start() == Started(NONE, True, [])


def test_a_pickle_that_runs_code_is_not_unpickled(filled: Cache, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    command = f"cos\nmkdir\n(S'{ran}'\ntR.".encode()
    for path in filled.files():
        content = path.read_bytes()
        path.write_bytes(command if path.stem.count("total") else content[:54] + command)
    assert filled.start().compiled == ALL
    assert not ran.exists()


def test_a_file_under_another_kernel_s_name_is_not_used(filled: Cache) -> None:
    one, other = filled.files()
    one.write_bytes(other.read_bytes())
    again = filled.start()
    assert again.compiled == 1
    assert "checksum" in again.warned[0]


def test_a_file_that_others_can_write_to_is_not_used(filled: Cache) -> None:
    one, _ = filled.files()
    one.chmod(0o666)
    again = filled.start()
    assert again.compiled == 1
    assert "other users could write to it" in again.warned[0]


def test_a_directory_in_the_place_of_a_file_is_a_warning(filled: Cache) -> None:
    one, _ = filled.files()
    one.unlink()
    one.mkdir()
    again = filled.start()
    assert again.compiled == 1
    assert len(again.warned) == 2
    assert str(one) in again.warned[0]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("full", "No space left on device"), ("read-only", "Read-only file system"), ("forbidden", "Permission denied")],
)
def test_what_cannot_be_written_is_compiled_in_memory_and_said_once(cache: Cache, fault: str, reason: str) -> None:
    started = cache.start(fault)
    assert started.compiled == ALL
    assert not started.kept
    (line,) = started.warned
    assert f"{cache.directory}/kernels-" in line
    assert reason in line
    assert "NUMBA_CACHE_DIR" in line
    assert cache.files() == []


def test_a_writer_that_is_killed_leaves_nothing_that_counts(filled: Cache) -> None:
    one, _ = filled.files()
    content = one.read_bytes()
    old, new = (one.with_name(f".{one.name}.{word}.tmp") for word in ("abcdefgh", "ijklmnop"))
    for path in (old, new):
        path.write_bytes(content[:1000])
    os.utime(old, (0.0, 0.0))
    assert filled.start() == Started(NONE, True, [])
    one.unlink()
    assert filled.start() == Started(1, True, [])
    assert not old.exists()
    assert new.exists(), "another process may still be writing it"


def test_processes_that_write_at_once_leave_whole_files(cache: Cache) -> None:
    environment = os.environ | cache.environment
    running = [subprocess.Popen([sys.executable, str(PROCESS)], env=environment, stdout=-3) for _ in range(4)]
    assert [one.wait(timeout=600) for one in running] == [0] * 4
    assert cache.start() == Started(NONE, True, [])


@pytest.mark.parametrize(
    ("mode", "remedy"), [(0o777, "chmod go-w"), (0o720, "chmod go-w"), (0o1777, "choose a directory below it")]
)
def test_a_directory_that_others_can_write_to_is_refused(cache: Cache, mode: int, remedy: str) -> None:
    cache.directory.mkdir()
    cache.directory.chmod(mode)
    started = cache.start()
    assert started.kept
    (line,) = started.warned
    assert f"other users can write to {cache.directory}; " in line
    assert remedy in line
    assert "home/tropel instead" in line
    assert list(cache.directory.iterdir()) == []


def test_a_directory_of_somebody_else_is_refused(cache: Cache) -> None:
    cache.directory.mkdir()
    give_away(cache.directory, cache)
    started = cache.start()
    (line,) = started.warned
    assert "belongs to another user" in line
    assert list(cache.directory.iterdir()) == []


def test_kernels_that_somebody_else_left_are_not_used(filled: Cache) -> None:
    (inside,) = filled.directory.iterdir()
    inside.chmod(0o777)
    started = filled.start()
    assert started.compiled == ALL
    assert f"chmod go-w '{inside}'" in started.warned[0]


def test_a_directory_that_others_could_replace_is_refused(cache: Cache) -> None:
    cache.directory.mkdir()
    cache.directory.chmod(0o777)
    cache.environment["NUMBA_CACHE_DIR"] = str(cache.directory / "mine")
    (line,) = cache.start().warned
    assert f"chmod go-w '{cache.directory}'" in line
    assert not (cache.directory / "mine").exists()
    # In a directory like /tmp nobody can replace what belongs to others.
    cache.directory.chmod(0o1777)
    assert cache.start() == Started(ALL, True, [])


def test_a_link_leads_to_what_is_checked(cache: Cache, tmp_path: Path) -> None:
    real = tmp_path / "open to all"
    real.mkdir()
    real.chmod(0o777)
    cache.directory.symlink_to(real)
    (line,) = cache.start().warned
    assert f"chmod go-w '{real}'" in line
    assert list(real.iterdir()) == []
    real.chmod(0o700)
    cache.start()
    assert len(list(real.rglob("*.kernel"))) == ALL


def test_without_any_private_directory_kernels_are_compiled_in_memory(cache: Cache, tmp_path: Path) -> None:
    for name in ("kernels", "home"):
        (tmp_path / name).write_text("in the way")
    started = cache.start()
    assert started.compiled == ALL
    assert not started.kept
    (line,) = started.warned
    assert "not a directory" in line.lower()
    assert "NUMBA_CACHE_DIR is a directory of your own" in line
