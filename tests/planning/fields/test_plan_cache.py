"""Plans on disk: kept whole, found again, and made again when they are damaged."""

from __future__ import annotations

import os
import resource
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tropel.errors import ParameterError
from tropel.planning.fields import cache as plan_cache

KEY = "0123456789abcdef" * 2
OTHER = "fedcba9876543210" * 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(plan_cache.VARIABLE, str(tmp_path / "plans"))
    return tmp_path / "plans"


def plan() -> dict[str, np.ndarray]:
    value = np.array([[0.0, -1.5], [-np.inf, -7.25]])
    return {"value": value, "vectors": np.arange(8.0).reshape(2, 2, 2), "free": np.array([[True, False]])}


def file_in(folder: Path) -> Path:
    (file,) = folder.glob("*.npz")
    return file


def test_what_was_stored_is_found_again_bit_for_bit(folder: Path) -> None:
    assert plan_cache.load(KEY) is None
    plan_cache.store(KEY, plan())
    found = plan_cache.load(KEY)
    assert found is not None
    assert set(found) == set(plan())
    for name, array in plan().items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()
    assert plan_cache.load(OTHER) is None


def test_a_plan_is_a_plain_npz_that_numpy_reads_without_pickle(folder: Path) -> None:
    plan_cache.store(KEY, plan())
    with np.load(file_in(folder), allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["vectors"], plan()["vectors"])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(where=st.floats(0.0, 1.0, exclude_max=True), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found_and_the_file_is_dropped(folder: Path, where: float, bit: int) -> None:
    plan_cache.store(KEY, plan())
    file = file_in(folder)
    content = bytearray(file.read_bytes())
    content[int(where * len(content))] ^= 1 << bit
    file.write_bytes(content)
    with pytest.warns(UserWarning, match="damaged"):
        assert plan_cache.load(KEY) is None
    assert not file.exists()
    plan_cache.store(KEY, plan())
    assert plan_cache.load(KEY) is not None


@pytest.mark.parametrize("kept", [0, 10, 200, -1])
def test_a_cut_off_file_is_found(folder: Path, kept: int) -> None:
    plan_cache.store(KEY, plan())
    file = file_in(folder)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.warns(UserWarning, match=r"damaged .*; it is made again"):
        assert plan_cache.load(KEY) is None


def test_a_plan_under_the_name_of_another_is_not_believed(folder: Path) -> None:
    plan_cache.store(KEY, plan())
    file = file_in(folder)
    file.rename(file.with_name(file.name.replace(KEY, OTHER)))
    with pytest.warns(UserWarning, match="checksum"):
        assert plan_cache.load(OTHER) is None


def test_plans_not_used_for_longest_make_room(folder: Path) -> None:
    keys = [f"{number:032x}" for number in range(6)]
    for age, key in enumerate(keys[:5]):
        plan_cache.store(key, {"value": np.zeros(1000)})
        os.utime(next(folder.glob(f"*{key}.npz")), (1e9 + age, 1e9 + age))
    assert plan_cache.load(keys[0]) is not None  # used now, so that 1 and 2 are the oldest
    plan_cache.store(keys[5], {"value": np.zeros(1000)}, largest_total=4 * 8500)
    left = [key for key in keys if plan_cache.load(key) is not None]
    assert left == [keys[0], keys[3], keys[4], keys[5]]


def test_a_plan_too_large_for_the_cache_is_not_stored(folder: Path) -> None:
    plan_cache.store(KEY, {"value": np.zeros(1000)}, largest_total=10_000)
    assert plan_cache.load(KEY) is None


def test_what_nobody_finished_is_swept_up(folder: Path) -> None:
    folder.mkdir()
    old, new = (folder / f".0123456789ab-{OTHER}.npz.{process}-0.tmp" for process in (1, 2))
    for file in (old, new):
        file.write_bytes(b"begun")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    plan_cache.store(KEY, plan())
    assert not old.exists()
    assert new.exists()


def test_what_is_no_plan_is_never_deleted(folder: Path) -> None:
    folder.mkdir()
    others = [folder / name for name in ("results.npz", f"{KEY}.npz", "letter.tmp", ".letter.npz.1-0.tmp")]
    for file in others:
        file.write_bytes(b"x" * 50_000)
        os.utime(file, (1e9, 1e9))
    plan_cache.store(OTHER, plan())
    plan_cache.store(KEY, plan(), largest_total=2000)
    assert all(file.exists() for file in others)
    assert plan_cache.load(KEY) is not None


def test_a_plan_that_cannot_be_opened_now_is_kept(folder: Path) -> None:
    plan_cache.store(KEY, plan())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        with pytest.warns(UserWarning, match="cannot be read"):
            found = plan_cache.load(KEY)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found is None
    assert plan_cache.load(KEY) is not None


@pytest.mark.parametrize("name", ["harmonic/solver.py", "flow/model.py", "fields/planner.py", "painted.py"])
def test_plans_of_other_sources_are_not_found(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    sources = shutil.copytree(plan_cache._SOURCES, tmp_path / "planning")
    monkeypatch.setattr(plan_cache, "_SOURCES", sources)
    try:
        plan_cache._made_with.cache_clear()
        plan_cache.store(KEY, plan())
        plan_cache._made_with.cache_clear()
        assert plan_cache.load(KEY) is not None
        with (sources / name).open("a") as file:
            file.write("# changed\n")
        plan_cache._made_with.cache_clear()
        assert plan_cache.load(KEY) is None
    finally:
        plan_cache._made_with.cache_clear()


def test_switched_off_nothing_is_written_or_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_cache.store(KEY, plan())
    monkeypatch.setenv(plan_cache.VARIABLE, "off")
    assert plan_cache.folder() is None
    assert plan_cache.load(KEY) is None
    plan_cache.store(OTHER, plan())
    assert len(list(folder.iterdir())) == 1


def test_the_user_s_cache_directory_is_used_when_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(plan_cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert plan_cache.folder() == tmp_path / "tropel" / "plans"


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(plan_cache.VARIABLE, str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="file .it is not a directory.*TROPEL_PLAN_CACHE"):
        plan_cache.store(KEY, plan())
    with pytest.warns(UserWarning, match="not cached"):
        assert plan_cache.load(KEY) is None
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_folder_that_others_can_write_to_is_not_used(folder: Path) -> None:
    plan_cache.store(KEY, plan())
    assert folder.stat().st_mode & 0o077 == 0
    folder.chmod(0o777)
    with pytest.warns(UserWarning, match="chmod go-w"):
        assert plan_cache.load(KEY) is None
    with pytest.warns(UserWarning, match="chmod go-w"):
        plan_cache.store(OTHER, plan())
    folder.chmod(0o700)
    assert plan_cache.load(KEY) is not None
    assert plan_cache.load(OTHER) is None


def test_a_full_disk_is_a_warning_and_leaves_nothing(folder: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        with pytest.warns(UserWarning, match="cannot be cached"):
            plan_cache.store(KEY, plan())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(folder.iterdir()) == []


def test_keys_and_arrays_that_cannot_be_stored_are_refused(folder: Path) -> None:
    with pytest.raises(ParameterError, match="hexadecimal"):
        plan_cache.load("../../etc/passwd")
    with pytest.raises(ParameterError, match="'value'"):
        plan_cache.store(KEY, {"value": np.array([object()])})
