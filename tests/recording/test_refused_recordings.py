"""Files that are not ours to overwrite, places where nothing can be written, and data that makes no sense."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
import sample_run

from tropel.errors import RecordingError
from tropel.recording import open_trajectory, read_trajectory


def open_here(path: Path, dim: int = 2) -> None:
    open_trajectory(path, scene=sample_run.scene(dim), fps=sample_run.FPS).close()


def other_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE addresses(name TEXT)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("name", ["run.csv", "run", "run.h5", "run.sqlite.gz"])
def test_an_unknown_suffix_names_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match=r"\.sqlite .* or \.parquet"):
        open_here(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_three_dimensions_in_sqlite_name_parquet(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"no z coordinate.*box\.parquet"):
        open_here(tmp_path / "box.sqlite", dim=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_a_missing_directory_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match=r"directory .*nowhere does not exist"):
        open_here(tmp_path / "nowhere" / name)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a directory in which nobody, not even root, writes")
@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_a_directory_without_permission_is_an_error(name: str) -> None:
    with pytest.raises(RecordingError, match="cannot create /proc/"):
        open_here(Path("/proc") / name)


@pytest.mark.parametrize("fps", [0.0, -1.0, float("nan"), float("inf")])
def test_a_frame_rate_that_is_none_is_refused(tmp_path: Path, fps: float) -> None:
    with pytest.raises(RecordingError, match="fps is"):
        open_trajectory(tmp_path / "run.sqlite", scene=sample_run.scene(), fps=fps)


def test_a_foreign_file_is_not_overwritten(tmp_path: Path) -> None:
    for name in ("notes.sqlite", "notes.parquet"):
        (tmp_path / name).write_text("not a trajectory " * 100)
        with pytest.raises(RecordingError, match="remove it or record to another name"):
            open_here(tmp_path / name)
        assert (tmp_path / name).read_text() == "not a trajectory " * 100
    assert len(list(tmp_path.iterdir())) == 2


def test_another_database_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "addresses.db"
    other_database(path)
    before = path.read_bytes()
    with pytest.raises(RecordingError, match="some other SQLite file"):
        open_here(path)
    with pytest.raises(RecordingError, match="without the table"):
        open_trajectory(path, scene=sample_run.scene(), fps=sample_run.FPS, append_after=0)
    assert path.read_bytes() == before


def test_a_foreign_directory_is_not_overwritten(tmp_path: Path) -> None:
    directory = tmp_path / "results.parquet"
    directory.mkdir()
    (directory / "part-0.parquet").write_text("of somebody else")
    with pytest.raises(RecordingError, match=r"it holds 'part-0\.parquet'"):
        open_here(directory)
    assert (directory / "part-0.parquet").read_text() == "of somebody else"
    (tmp_path / "folder.sqlite").mkdir()
    with pytest.raises(RecordingError, match="not a file"):
        open_here(tmp_path / "folder.sqlite")


def test_a_trajectory_to_which_somebody_added_a_file_is_not_overwritten(tmp_path: Path) -> None:
    open_here(tmp_path / "run.parquet")
    (tmp_path / "run.parquet" / "thesis.txt").write_text("five years")
    with pytest.raises(RecordingError, match=r"thesis\.txt"):
        open_here(tmp_path / "run.parquet")
    assert (tmp_path / "run.parquet" / "thesis.txt").read_text() == "five years"


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_an_older_run_or_an_empty_place_is_replaced(tmp_path: Path, name: str) -> None:
    if name.endswith(".sqlite"):
        (tmp_path / name).touch()
    else:
        (tmp_path / name).mkdir()
    for frames in (20, 3):
        with open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=sample_run.FPS) as writer:
            sample_run.write_frames(writer, range(frames))
        with read_trajectory(tmp_path / name) as run:
            assert len(run) == frames
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_a_run_that_is_being_recorded_is_neither_replaced_nor_continued(tmp_path: Path, name: str) -> None:
    with open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(3))
        writer.flush()
        with pytest.raises(RecordingError, match="being written"):
            open_here(tmp_path / name)
        with pytest.raises(RecordingError, match="being written"):
            open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=sample_run.FPS, append_after=1)
        sample_run.write_frames(writer, range(3, 5))
    with read_trajectory(tmp_path / name) as run:
        assert run.frames.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"position": np.full((30, 2), np.nan)}, "position of agent 0 in frame 1 is not a finite number"),
        ({"heading": np.full((30, 2), np.inf)}, "heading of agent 0"),
        ({"position": np.zeros((30, 3))}, r"shape \(30, 3\), not \(30, 2\)"),
        ({"group": np.zeros(29)}, r"group of the agents in frame 1 has shape \(29,\)"),
        ({"id": np.zeros(30)}, "agent 0 is in frame 1 twice"),
    ],
)
def test_a_frame_that_makes_no_sense_is_refused_and_the_others_are_kept(
    tmp_path: Path, change: dict, says: str
) -> None:
    frame = {
        "id": np.arange(30),
        "position": np.zeros((30, 2)),
        "heading": np.ones((30, 2)),
        "group": np.zeros(30, dtype=np.int32),
        "radius": np.ones(30),
        "speed": np.zeros(30),
    }
    with open_trajectory(tmp_path / "run.sqlite", scene=sample_run.scene(), fps=sample_run.FPS) as writer:
        writer.write(0, **frame)
        with pytest.raises(RecordingError, match=says):
            writer.write(1, **{**frame, **change})
        with pytest.raises(RecordingError, match="frame 0 comes after frame 0"):
            writer.write(0, **frame)
        with pytest.raises(RecordingError, match="not JSON"):
            writer.event(0, 0, "{door")
        with pytest.raises(RecordingError, match=r"summary\.model is a"):
            writer.close({"model": object()})
    with read_trajectory(tmp_path / "run.sqlite") as run:
        assert run.frames.tolist() == [0]


def test_obstacles_come_right_before_or_right_after_their_frame(tmp_path: Path) -> None:
    with open_trajectory(tmp_path / "run.sqlite", scene=sample_run.scene(), fps=sample_run.FPS) as writer:
        writer.obstacles(0, ["cart"], [[1.0, 2.0]], [0.5])
        writer.write(0, **sample_run.agents(0))
        writer.write(1, **sample_run.agents(1))
        writer.obstacles(1, ["cart", "bus"], [[2.0, 2.0], [5.0, 5.0]], [0.5, 2.0])
        with pytest.raises(RecordingError, match="too late"):
            writer.obstacles(0, ["cart"], [[1.0, 2.0]], [0.5])
        writer.obstacles(3, ["cart"], [[1.0, 2.0]], [0.5])
        with pytest.raises(RecordingError, match="recorded for frame 3, but the next frame is 2"):
            writer.write(2, **sample_run.agents(2))
    with read_trajectory(tmp_path / "run.sqlite") as run:
        assert run.obstacles(0) == {"cart": {"radius": 0.5, "position": [1.0, 2.0]}}
        assert list(run.obstacles(1)) == ["cart", "bus"]
