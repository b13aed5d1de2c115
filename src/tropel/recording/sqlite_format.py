"""The SQLite trajectory format: JuPedSim's version 2, with tropel's own tables next to it.

PedPy and JuPedSim read the first four tables and ignore those with the prefix `tropel_`.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from tropel.errors import RecordingError
from tropel.foundation.files import LARGEST_GEOMETRY, LARGEST_TRAJECTORY, check_input, open_input

VERSION = 2
#: Version of the tropel_ tables.
EXTRA_VERSION = 1

SCHEMA = """
CREATE TABLE trajectory_data(
  frame INTEGER NOT NULL, id INTEGER NOT NULL,
  pos_x REAL NOT NULL, pos_y REAL NOT NULL, ori_x REAL NOT NULL, ori_y REAL NOT NULL);
CREATE INDEX frame_id_idx ON trajectory_data(frame, id);
CREATE TABLE metadata(key TEXT NOT NULL UNIQUE PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE geometry(hash INTEGER NOT NULL, wkt TEXT NOT NULL);
CREATE UNIQUE INDEX geometry_hash ON geometry(hash);
CREATE TABLE frame_data(frame INTEGER NOT NULL, geometry_hash INTEGER NOT NULL);
CREATE TABLE tropel_metadata(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
-- An agent has a row in the frame in which it appears and in every one in which its group or radius changes.
CREATE TABLE tropel_agents(
  id INTEGER NOT NULL, frame INTEGER NOT NULL, agent_group INTEGER NOT NULL, radius REAL NOT NULL,
  PRIMARY KEY(id, frame)) WITHOUT ROWID;
CREATE TABLE tropel_events(frame INTEGER NOT NULL, step INTEGER NOT NULL, event TEXT NOT NULL);
CREATE TABLE tropel_obstacles(
  frame INTEGER NOT NULL, name TEXT NOT NULL, pos_x REAL NOT NULL, pos_y REAL NOT NULL, radius REAL NOT NULL);
CREATE INDEX tropel_obstacles_frame ON tropel_obstacles(frame);
"""


#: Created if a scene has columns that only some runs have; their names have been checked.
def extra_table(names: Sequence[str]) -> str:
    columns = ", ".join(f'"{name}" REAL NOT NULL' for name in names)
    return (
        f"CREATE TABLE tropel_columns(frame INTEGER NOT NULL, id INTEGER NOT NULL, {columns}, "
        "PRIMARY KEY(frame, id)) WITHOUT ROWID"
    )


#: Created at the end of a run, so the file of a killed run does not have it. Times in seconds.
PEOPLE = """
CREATE TABLE tropel_people(
  id INTEGER PRIMARY KEY, agent_group INTEGER NOT NULL, came REAL NOT NULL, gone REAL, fate TEXT NOT NULL, through TEXT)
"""

_HEADER = b"SQLite format 3\x00"
_TABLES = frozenset({"trajectory_data", "metadata", "geometry", "frame_data"})
_COMPUTED = re.compile(r"\bAS\s*\(", re.IGNORECASE)
#: Files that SQLite keeps next to a database; one left over from another database would be applied to the new one.
SIDECARS = ("-journal", "-wal", "-shm")


def connect(path: Path, mode: str, *, timeout: float = 30.0) -> sqlite3.Connection:
    """Open with mode ro, rw or rwc, without Python's implicit transactions, for use by one thread at a time."""
    for file in (path, *(path.with_name(path.name + suffix) for suffix in SIDECARS)):
        if file.exists():
            check_input(file, largest=LARGEST_TRAJECTORY)
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=timeout)
    # The schema of a file may call only functions that SQLite considers harmless, and no text may fill the memory.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_GEOMETRY)
    return connection


def has_sqlite_header(path: Path) -> bool:
    with open_input(path, largest=LARGEST_TRAJECTORY) as file:
        return file.read(len(_HEADER)) == _HEADER


@contextlib.contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Turn SQLite's errors while reading into one that names the file and what to do."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise RecordingError(f"{path} cannot be read ({error})") from error
    except sqlite3.OperationalError as error:
        if is_busy(error):
            raise RecordingError(f"{path} is being written or locked by another program: try again later") from error
        raise RecordingError(f"{path} cannot be read ({error})") from error
    except OSError as error:
        raise RecordingError(f"{path} cannot be read ({error.strerror or error})") from error
    except (sqlite3.DatabaseError, ArithmeticError, ValueError, TypeError) as error:
        # SQLite accepts any value in any column, so damage can show up as a value of the wrong type.
        raise RecordingError(
            f"{path} is damaged ({error}): record it again, or try  sqlite3 {path.name} .recover  to save what is left"
        ) from error


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another program blocks access. Errors that Python raises itself carry no code."""
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def table_names(connection: sqlite3.Connection) -> set[str]:
    """Names of the tables that store their rows. Views, virtual tables and computed columns may never finish."""
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
    return {name for name, sql in found if not _COMPUTED.search(str(sql))}


def check_is_trajectory(connection: sqlite3.Connection, path: Path) -> set[str]:
    """The names of the tables of a version-2 trajectory; raises on anything else."""
    with explaining(path):
        tables = table_names(connection)
        missing = sorted({"trajectory_data", "metadata"} - tables)
        if missing:
            raise RecordingError(
                f"{path} is a SQLite file without the table '{missing[0]}', so it is not a trajectory: "
                "give another file"
            )
        row = connection.execute("SELECT value FROM metadata WHERE key = 'version'").fetchone()
    version = None if row is None else str(row[0])
    if version != str(VERSION):
        raise RecordingError(
            f"{path} is a trajectory of version {version}; tropel reads version {VERSION}: "
            "convert it with JuPedSim's tools or record it again"
        )
    missing = sorted(_TABLES - tables)
    if missing:
        raise RecordingError(f"{path} lacks the table '{missing[0]}' of a version-{VERSION} trajectory: it is damaged")
    return tables
