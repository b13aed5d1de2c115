"""Claims keep two processes from compiling the same kernel, and never keep anybody from going on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tropel._kernels import claims
from tropel._kernels.claims import claimed

pytestmark = pytest.mark.skipif(claims.fcntl is None, reason="there are no such locks here")

_HOLDER = """
import sys, time
from pathlib import Path
from tropel._kernels.claims import claimed
path = Path(sys.argv[1])
with claimed(path):
    print("held", flush=True)
    sys.stdin.readline()
    path.touch()
    time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.kernel"


@pytest.fixture
def holder(path: Path):  # type: ignore[no-untyped-def]
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def _waited(path: Path, patience: float, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the claim was not to be had at once; never waits for longer than `patience` [s]."""
    slept: list[float] = []
    monkeypatch.setattr(claims, "_PATIENCE", patience)
    monkeypatch.setattr(claims.time, "sleep", slept.append)
    with claimed(path):
        return bool(slept)


def test_a_claim_that_nobody_holds_is_there_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _waited(path, 60.0, monkeypatch)


def test_a_claim_of_another_process_is_waited_for_but_not_for_ever(
    path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _waited(path, 0.2, monkeypatch)
    assert not _waited(path.with_name("another.kernel"), 60.0, monkeypatch)


def test_nobody_waits_for_a_kernel_that_is_there(
    path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert holder.stdin is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    end = time.monotonic() + 60.0
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert not _waited(path, 60.0, monkeypatch)


def test_the_claim_of_a_process_that_was_killed_is_free(
    path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    holder.kill()
    holder.wait()
    assert not _waited(path, 60.0, monkeypatch)


def test_where_nothing_can_be_written_there_are_no_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _waited(tmp_path / "no such folder" / "some.kernel", 60.0, monkeypatch)
