"""Files that never end, that nobody writes to, or that are larger than any memory: refused at once, wherever named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tropel.errors import TropelError
from tropel.foundation.files import open_input, read_bytes, read_text
from tropel.planning.painted import image_field
from tropel.recording import load_checkpoint, read_trajectory
from tropel.run.replay import Replay
from tropel.scenario import load_scenario
from tropel.world.maps import read_plan
from tropel.world.shapes import read_shape_file

READERS: dict[str, Callable[[Path], object]] = {
    "scenario.toml": load_scenario,
    "shape.wkt": read_shape_file,
    "shape.geojson": read_shape_file,
    "cells.map": read_plan,
    "plan.png": lambda path: read_plan(path, scale=0.1),
    "field.png": lambda path: image_field(path, cell=1.0),
    "checkpoint.npz": load_checkpoint,
    "run.sqlite": read_trajectory,
    "events.jsonl": lambda path: Replay.read(path, None),  # type: ignore[arg-type]
}


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def too_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 41)


@pytest.mark.parametrize("make", [fifo, endless, too_large])
@pytest.mark.parametrize("name", READERS)
def test_only_regular_files_up_to_a_size_are_read(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    make(tmp_path / name)
    with pytest.raises(TropelError, match=name.replace(".", r"\.")) as refused:
        READERS[name](tmp_path / name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("make", [fifo, endless, too_large])
@pytest.mark.parametrize("part", ["scene.json", "events.jsonl", "people.parquet", "parts/part-000000.parquet"])
def test_the_parts_of_a_parquet_trajectory_are_regular_files_too(
    tmp_path: Path, part: str, make: Callable[[Path], None]
) -> None:
    from tropel.recording import Scene, open_trajectory

    scene = Scene(dim=2, bounds=[[0.0, 0.0], [9.0, 9.0]], dt=0.1)
    with open_trajectory(tmp_path / "run.parquet", scene=scene, fps=10.0) as writer:
        writer.write(0, id=[1], position=[[1, 1]], heading=[[1, 0]], group=[0], radius=[0.2], speed=[1])
    (tmp_path / "run.parquet" / part).unlink(missing_ok=True)
    make(tmp_path / "run.parquet" / part)
    with pytest.raises(TropelError, match=part.replace(".", r"\.")):
        read_everything(tmp_path / "run.parquet")


def read_everything(path: Path) -> None:
    with read_trajectory(path) as run:
        run.entries()
        run.people()


def test_a_journal_that_nobody_writes_to_does_not_hold_up_sqlite(tmp_path: Path) -> None:
    import sqlite3

    sqlite3.connect(tmp_path / "run.sqlite").execute("CREATE TABLE t(x)").connection.close()
    os.mkfifo(tmp_path / "run.sqlite-journal")
    with pytest.raises(TropelError, match="FIFO"):
        read_trajectory(tmp_path / "run.sqlite")


def test_the_limit_is_on_what_is_read_not_only_on_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\r\nb\n" * 10)
    assert read_bytes(path, largest=50) == b"a\r\nb\n" * 10
    assert read_text(path, largest=50) == "a\nb\n" * 10
    with pytest.raises(OSError, match="at most"):
        read_bytes(path, largest=49)
    # Files of the kernel say that they are empty.
    with pytest.raises(OSError, match="at most"):
        read_bytes("/proc/self/maps", largest=10)


def test_an_opened_file_is_not_left_open_when_it_is_refused(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with pytest.raises(OSError, match="directory"):
            open_input(tmp_path, largest=10)
    assert len(os.listdir("/proc/self/fd")) == before
