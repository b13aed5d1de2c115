"""Trajectories as SQLite files (JuPedSim's format, version 2).

Measured for 20,000 agents a frame: one statement per row (`executemany`) takes 1.8 µs a row, one statement per 256 rows
0.8 µs. Python releases its lock at every statement, so next to a busy simulation thread the former also waits for that
lock once per row. Write-ahead logging is slower (2.5 µs a row), and its files cannot be opened in a directory without
write permission. `synchronous=NORMAL` costs 5 % over OFF. With it a killed process leaves no journal to roll back,
unless it died during a commit, so the file can be read without write permission.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tropel.errors import RecordingError
from tropel.foundation.files import temporary_name
from tropel.recording import sqlite_format
from tropel.recording.frames import Floats, Ints, RecordedEvent, RecordedFrame
from tropel.recording.people import People
from tropel.recording.scene import Scene, geometry_key

#: Rows of trajectory_data per statement. Only a few sizes, so that every statement stays compiled.
_BATCHES = (256, 32, 4, 1)
_COLUMNS = 6
#: Uncommitted rows stay in memory (about 63 bytes each); beyond this number they are committed early.
_MOST_UNCOMMITTED = 2**20
#: How long a commit waits for readers before it is postponed [s], and the tries at the end, when it cannot be.
_WAIT_FOR_READERS = 1.0
_LAST_TRIES = 60


class SqliteSink:
    """Writes one SQLite trajectory. Made by `create` or `resume`, then used by the writing thread."""

    def __init__(self, connection: sqlite3.Connection, *, area_wkt: str) -> None:
        self._connection = connection
        self._uncommitted = 0
        self._geometry = self._last_geometry(area_wkt)
        self._agent_id: Ints
        self._agent_id, self._agent_group, self._agent_radius = _latest_agents(connection)
        connection.execute("BEGIN IMMEDIATE")

    @classmethod
    def create(cls, path: Path, *, scene: Scene, fps: float) -> SqliteSink:
        """Create a file, replacing an existing trajectory. The old one is removed only once the new one exists."""
        _check_two_dimensions(path, scene)
        if path.exists():
            _check_replaceable(path)
        fresh = temporary_name(path)
        try:
            with contextlib.closing(sqlite_format.connect(fresh, "rwc")) as connection:
                connection.executescript(f"BEGIN; {sqlite_format.SCHEMA} COMMIT;")
                connection.execute("BEGIN")
                _write_header(connection, scene, fps)
                if scene.columns:
                    connection.execute(sqlite_format.extra_table(scene.columns))
                connection.execute("COMMIT")
            # SQLite finds a journal by the name of its file, so nothing may be open or left over during the rename.
            for suffix in sqlite_format.SIDECARS:
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            fresh.replace(path)
            return cls(_connect_for_writing(path), area_wkt=scene.area_wkt())
        except (sqlite3.Error, OSError) as error:
            raise RecordingError(
                f"cannot create {path} ({error}): check that the directory is writable and the disk has room"
            ) from error
        finally:
            for suffix in ("", *sqlite_format.SIDECARS):
                with contextlib.suppress(OSError):
                    fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)

    @classmethod
    def resume(cls, path: Path, *, scene: Scene, fps: float, after: int, resume_step: int | None) -> SqliteSink:
        """Open an existing file of the same scene, cut back to the frames up to `after`."""
        _check_two_dimensions(path, scene)
        _check_ours(path)
        with sqlite_format.explaining(path):
            connection = _connect_for_writing(path)
            try:
                connection.execute("BEGIN IMMEDIATE")
                _check_same_run(connection, path, scene, fps, after)
                _cut_back(connection, after, resume_step)
                connection.execute("COMMIT")
                return cls(connection, area_wkt=scene.area_wkt())
            except BaseException:
                connection.close()
                raise

    @property
    def full(self) -> bool:
        return self._uncommitted >= _MOST_UNCOMMITTED

    def write(self, frame: RecordedFrame) -> None:
        self._insert_rows(frame)
        self._insert_agents(frame)
        if frame.extra:
            self._insert_extra(frame)
        if frame.geometry_wkt is not None:
            self._geometry = self._store_geometry(frame.geometry_wkt)
        self._connection.execute("INSERT INTO frame_data VALUES(?, ?)", (frame.number, self._geometry))
        if frame.obstacles is not None:
            self._connection.executemany(
                "INSERT INTO tropel_obstacles VALUES(?, ?, ?, ?, ?)",
                [
                    (frame.number, name, x, y, radius)
                    for name, (x, y), radius in zip(
                        frame.obstacles.names,
                        frame.obstacles.position.tolist(),
                        frame.obstacles.radius.tolist(),
                        strict=True,
                    )
                ],
            )
        self._uncommitted += len(frame.id) + 1

    def event(self, event: RecordedEvent) -> None:
        row = (event.frame, event.step, json.dumps(event.event, ensure_ascii=False))
        self._connection.execute("INSERT INTO tropel_events VALUES(?, ?, ?)", row)

    def commit(self) -> bool:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if sqlite_format.is_busy(error):
                return False
            raise
        self._uncommitted = 0
        # The lock is taken again at once: readers may read, but no other program can start writing to this file.
        self._connection.execute("BEGIN IMMEDIATE")
        return True

    def finish(self, summary: str | None, people: People | None) -> None:
        if people is not None:
            self._insert_people(people)
        if summary is not None:
            self._connection.execute("INSERT OR REPLACE INTO tropel_metadata VALUES('summary', ?)", (summary,))
        for _ in range(_LAST_TRIES):
            if self.commit():
                break
        else:
            raise RecordingError("another program keeps reading the file, so the last frames could not be written")
        self._connection.execute("ROLLBACK")
        self._connection.close()

    def abandon(self) -> None:
        # Closing rolls back what is not committed; if that fails too, the next program to open the file does it.
        self._connection.close()

    def _insert_rows(self, frame: RecordedFrame) -> None:
        values: list[Any] = [frame.number] * (_COLUMNS * len(frame.id))
        values[1::_COLUMNS] = frame.id.tolist()
        values[2::_COLUMNS] = frame.position[:, 0].tolist()
        values[3::_COLUMNS] = frame.position[:, 1].tolist()
        values[4::_COLUMNS] = frame.heading[:, 0].tolist()
        values[5::_COLUMNS] = frame.heading[:, 1].tolist()
        start = 0
        for rows in _BATCHES:
            width = rows * _COLUMNS
            end = start + (len(values) - start) // width * width
            if end > start:
                self._connection.executemany(_INSERT[rows], _pieces(values, start, end, width))
            start = end

    def _insert_agents(self, frame: RecordedFrame) -> None:
        """Store group and radius of the agents that are new or have changed."""
        if (
            np.array_equal(frame.id, self._agent_id)
            and np.array_equal(frame.group, self._agent_group)
            and np.array_equal(frame.radius, self._agent_radius)
        ):
            return
        row = np.searchsorted(self._agent_id, frame.id)
        known = np.zeros(len(frame.id), dtype=bool)
        inside = row < len(self._agent_id)
        known[inside] = self._agent_id[row[inside]] == frame.id[inside]
        changed = ~known
        changed[known] = (self._agent_group[row[known]] != frame.group[known]) | (
            self._agent_radius[row[known]] != frame.radius[known]
        )
        if not changed.any():
            return
        columns = (frame.id[changed], frame.group[changed], frame.radius[changed])
        self._connection.executemany(
            "INSERT INTO tropel_agents VALUES(?, ?, ?, ?)",
            [
                (number, frame.number, group, radius)
                for number, group, radius in zip(*(c.tolist() for c in columns), strict=True)
            ],
        )
        gone = np.isin(self._agent_id, columns[0], invert=True)
        merged = np.concatenate([self._agent_id[gone], columns[0]])
        order = np.argsort(merged, kind="stable")
        self._agent_id = merged[order]
        self._agent_group = np.concatenate([self._agent_group[gone], columns[1]])[order]
        self._agent_radius = np.concatenate([self._agent_radius[gone], columns[2]])[order]

    def _insert_extra(self, frame: RecordedFrame) -> None:
        marks = ", ".join("?" * (2 + len(frame.extra)))
        columns = (frame.id.tolist(), *(column.tolist() for column in frame.extra.values()))
        rows = ((frame.number, *row) for row in zip(*columns, strict=True))
        self._connection.executemany(f"INSERT INTO tropel_columns VALUES({marks})", rows)

    def _insert_people(self, people: People) -> None:
        self._connection.execute(sqlite_format.PEOPLE)
        # Python turns NaN into NULL by itself, but does not document it.
        gone = [None if time != time else time for time in people.gone.tolist()]
        columns = (people.id.tolist(), people.group.tolist(), people.came.tolist(), gone)
        through = (name or None for name in people.place_names())
        rows = zip(*columns, people.fate_names(), through, strict=True)
        self._connection.executemany("INSERT INTO tropel_people VALUES(?, ?, ?, ?, ?, ?)", rows)

    def _store_geometry(self, wkt: str) -> int:
        key = geometry_key(wkt)
        self._connection.execute("INSERT OR IGNORE INTO geometry VALUES(?, ?)", (key, wkt))
        return key

    def _last_geometry(self, area_wkt: str) -> int:
        row = self._connection.execute("SELECT geometry_hash FROM frame_data ORDER BY rowid DESC LIMIT 1").fetchone()
        return geometry_key(area_wkt) if row is None else int(row[0])


_INSERT = {rows: "INSERT INTO trajectory_data VALUES " + ",".join(["(?,?,?,?,?,?)"] * rows) for rows in _BATCHES}


def _pieces(values: list[Any], start: int, end: int, width: int) -> Iterator[list[Any]]:
    return (values[i : i + width] for i in range(start, end, width))


def _connect_for_writing(path: Path) -> sqlite3.Connection:
    connection = sqlite_format.connect(path, "rw", timeout=_WAIT_FOR_READERS)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = NORMAL")
    # Otherwise SQLite writes pages before the commit and locks readers out in the meantime.
    connection.execute("PRAGMA cache_spill = OFF")
    return connection


def _write_header(connection: sqlite3.Connection, scene: Scene, fps: float) -> None:
    (xmin, ymin), (xmax, ymax) = scene.bounds
    area = scene.area_wkt()
    connection.executemany(
        "INSERT INTO metadata VALUES(?, ?)",
        [
            ("version", str(sqlite_format.VERSION)),
            ("fps", repr(float(fps))),
            ("xmin", repr(float(xmin))),
            ("xmax", repr(float(xmax))),
            ("ymin", repr(float(ymin))),
            ("ymax", repr(float(ymax))),
        ],
    )
    connection.execute("INSERT INTO geometry VALUES(?, ?)", (geometry_key(area), area))
    connection.executemany(
        "INSERT INTO tropel_metadata VALUES(?, ?)",
        [("version", str(sqlite_format.EXTRA_VERSION)), ("scene", scene.to_json())],
    )


def _check_two_dimensions(path: Path, scene: Scene) -> None:
    if scene.dim != 2:
        raise RecordingError(
            f"{path.name}: the SQLite format has no z coordinate, but this scene has 3 dimensions: "
            f"record to a Parquet directory instead ({path.stem}.parquet)"
        )


def _check_replaceable(path: Path) -> None:
    """Refuse to overwrite anything but a trajectory that no other program is writing."""
    if not path.is_file():
        raise RecordingError(f"{path} is not a file: remove it or record to another name")
    if path.stat().st_size == 0:
        return
    try:
        problem = _why_not_replaceable(path)
    except sqlite3.OperationalError as error:
        if sqlite_format.is_busy(error):
            raise RecordingError(
                f"{path} is being written by another program: wait for it to finish, or record to another name"
            ) from error
        problem = str(error)
    except (OSError, sqlite3.Error) as error:
        problem = str(error)
    if problem:
        raise RecordingError(f"{path} exists and is not replaced ({problem}): remove it or record to another name")


def _why_not_replaceable(path: Path) -> str:
    if not sqlite_format.has_sqlite_header(path):
        return "it is not a SQLite file"
    with contextlib.closing(sqlite_format.connect(path, "rw", timeout=0.0)) as connection:
        if not {"trajectory_data", "metadata"} <= sqlite_format.table_names(connection):
            return "it is some other SQLite file"
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    return ""


def _check_ours(path: Path) -> None:
    if not path.is_file():
        raise RecordingError(f"{path} does not exist, so the run cannot be continued there: record to a new file")
    if not sqlite_format.has_sqlite_header(path):
        raise RecordingError(f"{path} is not a SQLite trajectory, so the run cannot be continued there")
    with sqlite_format.explaining(path), contextlib.closing(sqlite_format.connect(path, "rw")) as connection:
        if "tropel_metadata" not in sqlite_format.check_is_trajectory(connection, path):
            raise RecordingError(f"{path} was not written by tropel, so the run cannot be continued there")


def _check_same_run(connection: sqlite3.Connection, path: Path, scene: Scene, fps: float, after: int) -> None:
    (text,) = connection.execute("SELECT value FROM tropel_metadata WHERE key = 'scene'").fetchone()
    differences = scene.differences(Scene.from_json(text))
    (stored_fps,) = connection.execute("SELECT value FROM metadata WHERE key = 'fps'").fetchone()
    if float(stored_fps) != float(fps):
        differences.append("fps")
    if differences:
        raise RecordingError(
            f"{path} belongs to another run (different: {', '.join(differences)}): "
            "continue with the scene it was recorded with, or record to a new file"
        )
    (last,) = connection.execute("SELECT max(frame) FROM frame_data").fetchone()
    if after >= 0 and (last is None or last < after):
        held = "no frames" if last is None else f"frames up to {last}"
        raise RecordingError(
            f"{path} holds {held} and cannot be continued after frame {after}: "
            "resume from an earlier checkpoint, or record to a new file"
        )


def _cut_back(connection: sqlite3.Connection, after: int, resume_step: int | None) -> None:
    tables = ["trajectory_data", "frame_data", "tropel_agents", "tropel_obstacles", "tropel_events"]
    tables += sorted({"tropel_columns"} & sqlite_format.table_names(connection))
    for table in tables:
        connection.execute(f"DELETE FROM {table} WHERE frame > ?", (after,))
    if resume_step is not None:
        connection.execute("DELETE FROM tropel_events WHERE step >= ?", (resume_step,))
    connection.execute("DELETE FROM tropel_metadata WHERE key = 'summary'")
    connection.execute("DROP TABLE IF EXISTS tropel_people")
    # The first geometry belongs to the scene and stays, even if no frame refers to it any more.
    connection.execute(
        "DELETE FROM geometry WHERE hash NOT IN (SELECT geometry_hash FROM frame_data)"
        " AND rowid > (SELECT min(rowid) FROM geometry)"
    )


def _latest_agents(connection: sqlite3.Connection) -> tuple[Ints, Any, Floats]:
    """The latest id, group and radius of every agent."""
    rows: Iterable[tuple[int, int, float]] = connection.execute(
        "SELECT id, agent_group, radius FROM tropel_agents AS one"
        " WHERE frame = (SELECT max(frame) FROM tropel_agents WHERE id = one.id) ORDER BY id"
    )
    table = np.fromiter(rows, dtype=[("id", np.int64), ("group", np.int32), ("radius", np.float64)])
    return table["id"].copy(), table["group"].copy(), table["radius"].copy()
