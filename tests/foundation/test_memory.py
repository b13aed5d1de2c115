"""How much memory a process may take: the machine's, its control groups' and that of its address space."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tropel.errors import GeometryError
from tropel.foundation import memory

MIB = 1 << 20


def _files(folder: Path, **texts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_tightest_control_group_around_the_process_counts(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    _files(root / "box" / "inner", memory__max="max\n", memory__current="1000\n", memory__stat="inactive_file 10\n")
    _files(root / "box", memory__max="900000\n", memory__current="500000\n", memory__stat="inactive_file 100000\n")
    (tmp_path / "membership").write_text("0::/box/inner\n")
    assert list(memory._control_groups(tmp_path / "membership", root)) == [(900000.0, 400000.0)]


def test_control_groups_of_the_first_version_are_read_too(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    _files(root / "memory", memory__limit_in_bytes="9223372036854771712\n", memory__usage_in_bytes="5\n")
    _files(root / "memory" / "job", memory__limit_in_bytes="8000\n", memory__usage_in_bytes="3000\n")
    (tmp_path / "membership").write_text("9:name=systemd:/\n4:memory:/job\n0::/\n")
    assert list(memory._control_groups(tmp_path / "membership", root)) == [(8000.0, 3000.0)]


def test_a_machine_without_control_groups_has_no_such_limit(tmp_path: Path) -> None:
    assert list(memory._control_groups(tmp_path / "nothing", tmp_path)) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_limit_on_the_address_space_counts() -> None:
    script = """
import resource
from tropel.foundation.memory import memory_available, memory_limit
limit = 600 << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
assert memory_limit() <= limit, memory_limit()
assert 0 < memory_available() < limit, memory_available()
before = memory_available()
block = bytearray(100 << 20)
assert memory_available() <= before - (90 << 20), (before, memory_available())
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


def test_what_does_not_fit_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_available", lambda: 100.0 * MIB)
    memory.require_memory(70.0 * MIB, "it", "make it smaller", error=GeometryError)
    with pytest.raises(
        GeometryError, match=r"^it would need 0\.0781 GiB of memory, but only 0\.0732 GiB .* make it smaller$"
    ):
        memory.require_memory(80.0 * MIB, "it", "make it smaller", error=GeometryError)


def test_a_need_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_available", lambda: float("inf"))
    with pytest.raises(GeometryError):
        memory.require_memory(float("nan"), "it", "make it smaller", error=GeometryError)
