"""Looking at a database before it is opened must not end the locks that its writer holds in the same process."""

import multiprocessing
import sqlite3
from pathlib import Path

import sample_run

from tropel.recording import open_trajectory, sqlite_format


def _begin_writing(path: str) -> str:
    connection = sqlite3.connect(path, timeout=0.1, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        return str(error)
    return "began"


def test_another_connection_leaves_the_writer_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with open_trajectory(path, scene=sample_run.scene(), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(3))
        writer.flush()
        sqlite_format.connect(path, "ro").close()
        with multiprocessing.get_context("spawn").Pool(1) as others:
            assert others.apply(_begin_writing, (str(path),)) == "database is locked"
