"""Processes that are killed, that run out of disk, that die of errors: what was recorded stays readable."""

import random
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import sample_run

from tropel.errors import RecordingError
from tropel.recording import open_trajectory, read_trajectory

SCRIPT = Path(__file__).with_name("writing_process.py")
FORMATS = [("run.sqlite", 2), ("run.parquet", 3)]


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def count_whole_frames(path: Path, dim: int, counts: dict[int, int] | None = None, default: int = 40) -> int:
    """The frames in a file, each of them checked to be there with all that belongs to it, from 0 on without gap."""
    with read_trajectory(path) as run:
        assert run.frames.tolist() == list(range(len(run)))
        for k in run.frames.tolist():
            expected = sample_run.agents(k, dim, (counts or {}).get(k, default))
            found = run.frame(k)
            np.testing.assert_array_equal(found.id, expected["id"])
            np.testing.assert_array_equal(found.position, expected["position"])
            np.testing.assert_array_equal(found.radius, expected["radius"])
            assert len(run.obstacles(k)) == (k % 3 > 0)
        return len(run)


@pytest.mark.parametrize(("name", "dim"), FORMATS)
@pytest.mark.parametrize("attempt", range(6))
def test_a_killed_process_leaves_whole_frames_up_to_the_last_commit(
    tmp_path: Path, name: str, dim: int, attempt: int
) -> None:
    chance = random.Random(f"{name}{attempt}")
    with start("endless", tmp_path / name, dim) as process:
        assert process.stdout is not None
        flushed = -1
        for _ in range(chance.randint(1, 15)):
            flushed = int(process.stdout.readline())
        moment = time.monotonic() + chance.uniform(0.0, 0.02)
        while time.monotonic() < moment:
            pass
        process.kill()
        process.communicate()
    assert count_whole_frames(tmp_path / name, dim, default=400) >= flushed + 1


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_a_killed_run_can_be_continued(tmp_path: Path, name: str, dim: int) -> None:
    with start("endless", tmp_path / name, dim) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 12:
            pass
        process.kill()
        process.communicate()
    with open_trajectory(tmp_path / name, scene=sample_run.scene(dim), fps=sample_run.FPS, append_after=10) as writer:
        sample_run.write_frames(writer, range(11, 30), dim, count=400)
    with open_trajectory(tmp_path / f"whole_{name}", scene=sample_run.scene(dim), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(30), dim, count=400)
    assert sample_run.rows_of(tmp_path / name) == sample_run.rows_of(tmp_path / f"whole_{name}")


@pytest.mark.parametrize(("name", "dim", "size"), [("run.sqlite", 2, 3_000_000), ("run.parquet", 3, 400_000)])
def test_a_full_disk_is_an_error_and_leaves_a_readable_file(tmp_path: Path, name: str, dim: int, size: int) -> None:
    process = start("limited", tmp_path / name, dim, size)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 3, errors
    assert f"recording to {tmp_path / name} failed" in output
    counts = {k: 40 if k < 10 else 2000 * k for k in range(1000)}
    assert count_whole_frames(tmp_path / name, dim, counts) >= 10
    leftovers = [path for path in tmp_path.rglob("*") if path.name.endswith((".tmp", "-journal"))]
    assert leftovers == []


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_a_disk_too_full_to_begin_keeps_the_trajectory_that_was_there(tmp_path: Path, name: str, dim: int) -> None:
    with open_trajectory(tmp_path / name, scene=sample_run.scene(dim), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(5), dim)
    process = start("limited", tmp_path / name, dim, 200)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 3, errors
    assert "cannot create" in output
    assert count_whole_frames(tmp_path / name, dim) == 5
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_a_program_that_dies_without_closing_keeps_all_its_frames_and_ends(tmp_path: Path, name: str, dim: int) -> None:
    process = start("unclosed", tmp_path / name, dim)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "a model went wrong" in errors
    assert count_whole_frames(tmp_path / name, dim) == 5


def recording_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tropel-recording"]


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_an_error_in_the_run_closes_the_file_and_ends_the_thread(tmp_path: Path, name: str, dim: int) -> None:
    def run_into_an_error() -> None:
        with open_trajectory(tmp_path / name, scene=sample_run.scene(dim), fps=sample_run.FPS) as writer:
            sample_run.write_frames(writer, range(7), dim)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_into_an_error()
    assert recording_threads() == []
    assert count_whole_frames(tmp_path / name, dim) == 7


def test_a_writer_that_is_forgotten_ends_its_thread(tmp_path: Path) -> None:
    writer = open_trajectory(tmp_path / "run.sqlite", scene=sample_run.scene(), fps=sample_run.FPS)
    sample_run.write_frames(writer, range(3))
    assert len(recording_threads()) == 1
    del writer
    assert recording_threads() == []
    assert count_whole_frames(tmp_path / "run.sqlite", 2) == 3


def test_a_reader_that_holds_the_file_delays_the_end_but_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    writer = open_trajectory(path, scene=sample_run.scene(), fps=sample_run.FPS)
    sample_run.write_frames(writer, range(3))
    writer.flush()
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM trajectory_data").fetchone()
    sample_run.write_frames(writer, range(3, 6))
    closing = threading.Thread(target=writer.close)
    closing.start()
    closing.join(0.3)
    assert closing.is_alive()
    reader.execute("COMMIT")
    reader.close()
    closing.join(30)
    assert not closing.is_alive()
    assert count_whole_frames(path, 2) == 6


def test_a_commit_that_was_cut_off_in_the_middle_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with open_trajectory(path, scene=sample_run.scene(), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(5))
    # A small cache makes SQLite write pages before the commit, where the process then kills itself.
    code = f"""
import os, sqlite3
connection = sqlite3.connect({str(path)!r}, isolation_level=None)
connection.execute("PRAGMA cache_size = 2")
connection.execute("BEGIN")
connection.execute("UPDATE trajectory_data SET pos_x = -99")
connection.execute("DELETE FROM frame_data")
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert path.with_name("run.sqlite-journal").exists()
    assert count_whole_frames(path, 2) == 5
    assert not path.with_name("run.sqlite-journal").exists()


def test_a_journal_left_by_a_killed_run_does_not_touch_the_run_that_replaces_it(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with open_trajectory(path, scene=sample_run.scene(), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(5))
    code = f"""
import os, sqlite3
connection = sqlite3.connect({str(path)!r}, isolation_level=None)
connection.execute("PRAGMA cache_size = 2")
connection.execute("BEGIN")
connection.execute("UPDATE trajectory_data SET pos_x = -99")
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    with open_trajectory(path, scene=sample_run.scene(), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(3))
    assert count_whole_frames(path, 2) == 3


def test_an_error_of_the_writing_thread_is_raised_and_closing_is_quiet_then(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    writer = open_trajectory(path, scene=sample_run.scene(), fps=sample_run.FPS)
    sample_run.write_frames(writer, range(3))
    writer.flush()
    (path / "parts").rename(tmp_path / "parts")
    sample_run.write_frames(writer, range(3, 6))
    with pytest.raises(RecordingError, match="the frames up to 2 were written"):
        writer.flush()
    with pytest.raises(RecordingError, match="failed"):
        sample_run.write_frames(writer, range(6, 7))
    writer.close()
    assert recording_threads() == []
    with pytest.raises(RecordingError, match="is closed"):
        writer.flush()
    (tmp_path / "parts").rename(path / "parts")
    assert count_whole_frames(path, 2) == 3


def test_an_error_that_nobody_has_heard_of_is_raised_by_closing(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    writer = open_trajectory(path, scene=sample_run.scene(), fps=sample_run.FPS)
    sample_run.write_frames(writer, range(3))
    (path / "parts").rename(tmp_path / "parts")
    with pytest.raises(RecordingError, match="no frame of this run was written"):
        writer.close({"frames": 3})
    assert recording_threads() == []
