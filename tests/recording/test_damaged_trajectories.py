"""Reading what is missing, foreign or damaged: an answer or a RecordingError, never anything else."""

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
import sample_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tropel.errors import RecordingError
from tropel.recording import open_trajectory, read_trajectory


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recorded")
    for name in ("run.sqlite", "run.parquet"):
        with open_trajectory(directory / name, scene=sample_run.scene(), fps=sample_run.FPS) as writer:
            sample_run.write_frames(writer, range(15))
            writer.flush()
            sample_run.write_frames(writer, range(15, 30))
            writer.close({"frames": 30})
    return directory


def read_everything_or_refuse(path: Path) -> None:
    with contextlib.suppress(RecordingError):
        sample_run.rows_of(path)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255), length=st.integers(1, 40))
def test_a_damaged_sqlite_file_is_read_or_refused(
    recorded: Path, tmp_path: Path, place: float, bits: int, length: int
) -> None:
    content = bytearray((recorded / "run.sqlite").read_bytes())
    start = int(place * len(content))
    for offset in range(start, min(start + length, len(content))):
        content[offset] ^= bits
    (tmp_path / "run.sqlite").write_bytes(content)
    read_everything_or_refuse(tmp_path / "run.sqlite")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_sqlite_file_is_read_or_refused(recorded: Path, tmp_path: Path, share: float) -> None:
    content = (recorded / "run.sqlite").read_bytes()
    (tmp_path / "run.sqlite").write_bytes(content[: int(share * len(content))])
    read_everything_or_refuse(tmp_path / "run.sqlite")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), place=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255))
def test_a_damaged_parquet_directory_is_read_or_refused(
    recorded: Path, tmp_path: Path, data: st.DataObject, place: float, bits: int
) -> None:
    files = sorted(path.relative_to(recorded) for path in (recorded / "run.parquet").rglob("*") if path.is_file())
    victim = data.draw(st.sampled_from(files))
    shutil.rmtree(tmp_path / "run.parquet", ignore_errors=True)
    shutil.copytree(recorded / "run.parquet", tmp_path / "run.parquet")
    content = bytearray((recorded / victim).read_bytes())
    content[int(place * len(content))] ^= bits
    (tmp_path / victim).write_bytes(content)
    read_everything_or_refuse(tmp_path / "run.parquet")


@pytest.mark.parametrize("victim", ["scene.json", "parts/part-000000.parquet", "geometry"])
def test_a_parquet_directory_that_lacks_something_says_so(recorded: Path, tmp_path: Path, victim: str) -> None:
    shutil.copytree(recorded / "run.parquet", tmp_path / "run.parquet")
    path = tmp_path / "run.parquet" / victim
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(RecordingError, match=r"run\.parquet"):
        sample_run.rows_of(tmp_path / "run.parquet")


def test_what_is_not_a_trajectory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.sqlite").write_text("not a trajectory")
    (tmp_path / "empty.sqlite").touch()
    (tmp_path / "folder").mkdir()
    connection = sqlite3.connect(tmp_path / "other.sqlite")
    connection.execute("CREATE TABLE addresses(name TEXT)")
    connection.commit()
    connection.close()
    for name, says in {
        "missing.sqlite": "does not exist",
        "notes.sqlite": "neither a SQLite trajectory nor",
        "empty.sqlite": "neither a SQLite trajectory nor",
        "folder": "no scene.json",
        "other.sqlite": "not a trajectory",
    }.items():
        with pytest.raises(RecordingError, match=says):
            read_trajectory(tmp_path / name)


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_reading_changes_nothing(recorded: Path, tmp_path: Path, name: str) -> None:
    source = recorded / name
    target = tmp_path / name
    shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    files = [path for path in [target, *target.rglob("*")] if path.is_file()]
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
    sample_run.rows_of(target)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files} == before
    assert sorted(path for path in [target, *target.rglob("*")] if path.is_file()) == sorted(files)


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_a_frame_that_was_not_recorded_is_named(recorded: Path, name: str) -> None:
    with read_trajectory(recorded / name) as run:
        for read in (run.frame, run.obstacles, run.geometry):
            with pytest.raises(RecordingError, match="no frame 30: its frames are 0 to 29"):
                read(30)
