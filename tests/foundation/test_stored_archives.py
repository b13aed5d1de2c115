"""Archives of arrays with a checksum, and files that appear whole or not at all."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.foundation.files import replacing
from tropel.foundation.stored_arrays import CHANGED, NO_END, TOO_SHORT, archive_fault, unstorable, write_archive

MARK = b"tropel-test sha256="
ARRAYS: dict[str, NDArray[Any]] = {"a": np.arange(12.0).reshape(3, 4), "b/c": np.array(["x", "yy"])}


def stored(key: str = "") -> bytes:
    file = io.BytesIO()
    write_archive(file, ARRAYS, mark=MARK, key=key, texts={"note.txt": b"text"})
    return file.getvalue()


def test_what_numpy_reads_is_what_was_written() -> None:
    with np.load(io.BytesIO(stored()), allow_pickle=False) as found:
        assert all(np.array_equal(found[name], array) for name, array in ARRAYS.items())


@given(place=st.integers(0, len(stored()) - 1), bit=st.integers(0, 7))
def test_no_flipped_bit_goes_unseen(place: int, bit: int) -> None:
    content = bytearray(stored())
    assert archive_fault(io.BytesIO(content), mark=MARK) == ""
    content[place] ^= 1 << bit
    assert archive_fault(io.BytesIO(content), mark=MARK) in (NO_END, CHANGED)


@given(left=st.integers(0, len(stored()) - 1))
def test_no_missing_end_goes_unseen(left: int) -> None:
    assert archive_fault(io.BytesIO(stored()[:left]), mark=MARK) in (TOO_SHORT, NO_END)


def test_another_kind_of_file_and_another_key_are_told_apart() -> None:
    assert archive_fault(io.BytesIO(stored("one")), mark=MARK, key="one") == ""
    assert archive_fault(io.BytesIO(stored("one")), mark=MARK, key="two") == CHANGED
    assert archive_fault(io.BytesIO(stored()), mark=b"tropel-other sha256=") == NO_END


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("", np.zeros(1), "cannot be stored"),
        ("a\0b", np.zeros(1), "cannot be stored"),
        ("\ud800", np.zeros(1), "not valid Unicode"),
        ("a", np.array([object()]), "Python objects"),
        ("a", np.zeros(2, dtype=[("x", "f8"), ("y", "O")]), "Python objects"),
    ],
)
def test_what_cannot_be_stored_is_named(name: str, array: NDArray[Any], reason: str) -> None:
    assert reason in unstorable(name, array)
    assert unstorable("a/b.c", np.zeros(1)) == ""


@pytest.mark.parametrize("lasting", [True, False])
def test_after_an_error_the_old_file_is_there_and_nothing_else(tmp_path: Path, lasting: bool) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail() -> None:
        with replacing(path, lasting=lasting) as file:
            file.write(b"new")
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError, match="in between"):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]
    with replacing(path, lasting=lasting) as file:
        file.write(b"new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="owners and bits of the mode say nothing there")
def test_files_are_as_open_as_the_mode_and_the_umask_say(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        for mode, expected in ((0o666, 0o664), (0o600, 0o600)):
            with replacing(tmp_path / "file", mode=mode) as file:
                file.write(b"x")
            assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == expected
    finally:
        os.umask(before)


def test_a_path_that_names_no_file_is_refused() -> None:
    with pytest.raises(ParameterError, match="not the name of a file"), replacing(Path("/")):
        pass
