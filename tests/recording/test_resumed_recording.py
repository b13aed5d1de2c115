"""A recording that was continued holds the same as one that was never interrupted."""

import sqlite3
from pathlib import Path

import pytest
import sample_run

from tropel.errors import RecordingError
from tropel.recording import Scene, TrajectoryWriter, open_trajectory, read_trajectory

FORMATS = [("run.sqlite", 2), ("run.parquet", 2), ("run.parquet", 3)]


def start(path: Path, dim: int, **options: int) -> TrajectoryWriter:
    return open_trajectory(path, scene=sample_run.scene(dim), fps=sample_run.FPS, **options)


def uninterrupted(path: Path, dim: int, frames: int = 30) -> Path:
    with start(path, dim) as writer:
        sample_run.write_frames(writer, range(frames), dim)
        writer.close({"frames": frames})
    return path


def interrupted(path: Path, dim: int) -> Path:
    """25 frames in parts of ten, ended without a summary."""
    with start(path, dim) as writer:
        for first, last in ((0, 10), (10, 20), (20, 25)):
            sample_run.write_frames(writer, range(first, last), dim)
            writer.flush()
    return path


def all_tables(path: Path) -> dict[str, list[tuple]]:
    connection = sqlite3.connect(path)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    tables = {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in names}
    connection.close()
    return tables


@pytest.mark.parametrize(("name", "dim"), FORMATS)
@pytest.mark.parametrize("after", [-1, 0, 7, 8, 9, 12, 15, 18, 22, 24])
def test_a_continued_run_equals_an_uninterrupted_one(tmp_path: Path, name: str, dim: int, after: int) -> None:
    whole = uninterrupted(tmp_path / f"whole_{name}", dim)
    parts = interrupted(tmp_path / name, dim)
    with start(parts, dim, append_after=after) as writer:
        assert after < 0 or after in writer
        assert after + 1 not in writer
        sample_run.write_frames(writer, range(after + 1, 30), dim)
        writer.close({"frames": 30})
    assert sample_run.rows_of(parts) == sample_run.rows_of(whole)
    if name.endswith(".sqlite"):
        assert all_tables(parts) == all_tables(whole)


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_a_finished_run_that_is_continued_has_no_summary_until_it_ends_again(
    tmp_path: Path, name: str, dim: int
) -> None:
    path = uninterrupted(tmp_path / name, dim, frames=12)
    writer = start(path, dim, append_after=11)
    writer.flush()
    with read_trajectory(path) as run:
        assert run.summary is None
    sample_run.write_frames(writer, range(12, 30), dim)
    writer.close({"frames": 30})
    assert sample_run.rows_of(path) == sample_run.rows_of(uninterrupted(tmp_path / f"whole_{name}", dim))


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_events_that_will_happen_again_are_removed(tmp_path: Path, name: str) -> None:
    with start(tmp_path / name, 2) as writer:
        for step in range(20):
            writer.event(step // 4, step, f'{{"step": {step}}}')
            if step % 4 == 0:
                writer.write(step // 4, **sample_run.agents(step // 4))
    # The checkpoint was at step 10, between frames 2 and 3.
    with start(tmp_path / name, 2, append_after=2, resume_step=10):
        pass
    with read_trajectory(tmp_path / name) as run:
        assert [event.step for event in run.events] == list(range(10))


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_what_cannot_be_continued_is_left_as_it_is(tmp_path: Path, name: str, dim: int) -> None:
    path = uninterrupted(tmp_path / name, dim, frames=10)
    before = sample_run.rows_of(path)
    good = sample_run.scene(dim)
    entries = {entry: getattr(good, entry) for entry in good.__dataclass_fields__}
    with pytest.raises(RecordingError, match=r"another run \(different: seed\)"):
        open_trajectory(path, scene=Scene(**{**entries, "seed": 8}), fps=sample_run.FPS, append_after=5)
    with pytest.raises(RecordingError, match="different: fps"):
        open_trajectory(path, scene=good, fps=5.0, append_after=5)
    with pytest.raises(RecordingError, match="frames up to 9 and cannot be continued after frame 10"):
        open_trajectory(path, scene=good, fps=sample_run.FPS, append_after=10)
    assert sample_run.rows_of(path) == before


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_doors_and_carts_that_moved_meanwhile_do_not_make_it_another_run(tmp_path: Path, name: str, dim: int) -> None:
    path = uninterrupted(tmp_path / name, dim)
    entries = {entry: getattr(sample_run.scene(dim), entry) for entry in Scene.__dataclass_fields__}
    entries["obstacles"] = {"cart": {"radius": 0.5, "position": [4.0] * dim}}
    entries["doors"] = {door: {**entry, "open": True} for door, entry in entries["doors"].items()}
    open_trajectory(path, scene=Scene(**entries), fps=sample_run.FPS, append_after=5).close()
    with read_trajectory(path) as run:
        assert run.scene == sample_run.scene(dim)
        assert run.frames.tolist() == list(range(6))


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_nothing_to_continue_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match="does not exist"):
        start(tmp_path / name, 2, append_after=3)
    assert list(tmp_path.iterdir()) == []
