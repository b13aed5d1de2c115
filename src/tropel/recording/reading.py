"""Opening trajectories of either format for reading."""

from __future__ import annotations

import os
from pathlib import Path

from tropel.errors import RecordingError
from tropel.foundation.arguments import checked_arguments
from tropel.recording import sqlite_format
from tropel.recording.trajectory import Trajectory


@checked_arguments
def read_trajectory(path: str | os.PathLike[str]) -> Trajectory:
    """Open a recorded run: a SQLite file (tropel's or JuPedSim's version 2) or a Parquet directory."""
    path = Path(path)
    try:
        if path.is_dir():
            from tropel.recording.parquet_reader import ParquetTrajectory

            return ParquetTrajectory(path)
        if not path.exists():
            raise RecordingError(f"{path} does not exist: give the .sqlite file or .parquet directory of a run")
        if not sqlite_format.has_sqlite_header(path):
            raise RecordingError(
                f"{path} is neither a SQLite trajectory nor a Parquet directory: give a file that a run recorded"
            )
    except OSError as error:
        raise RecordingError(f"{path} cannot be read ({error.strerror or error})") from error
    from tropel.recording.sqlite_reader import SqliteTrajectory

    return SqliteTrajectory(path)
