"""Reading SQLite trajectories: tropel's own, and any other file in JuPedSim's version 2."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import RecordingError
from tropel.recording import sqlite_format
from tropel.recording.checked import (
    check_frames,
    check_obstacle,
    check_rate,
    check_text,
    check_wkt,
    checked_event,
    table_of,
)
from tropel.recording.frames import FrameData, Ints, RecordedEvent
from tropel.recording.people import People
from tropel.recording.scene import Scene
from tropel.recording.trajectory import Trajectory

#: Radius [m] for files that do not store it (JuPedSim's own).
UNKNOWN_RADIUS = 0.2

_ROW = np.dtype([("frame", "i8"), ("id", "i8"), ("x", "f8"), ("y", "f8"), ("heading_x", "f8"), ("heading_y", "f8")])
_ROWS = "SELECT frame, id, pos_x, pos_y, ori_x, ori_y FROM trajectory_data "


class SqliteTrajectory(Trajectory):
    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = _open_read_only(path)
        try:
            self._tables = sqlite_format.check_is_trajectory(self._connection, path)
            with sqlite_format.explaining(path):
                self._metadata = dict(self._connection.execute("SELECT key, value FROM metadata"))
                self.fps = self._number("fps")
                self.frames, self._geometry_of_frame = self._frame_index()
                check_frames(self.frames, self.fps)
                self._wkt = dict(self._connection.execute("SELECT hash, wkt FROM geometry ORDER BY rowid"))
                for wkt in self._wkt.values():
                    check_text(wkt, "a geometry")
                    check_wkt(wkt, "a geometry")
                self._own = self._own_metadata()
                self.scene = self._read_scene()
                self._agents = self._read_agents()
        except RecordingError as error:
            self._connection.close()
            named = str(error).startswith(str(path))
            raise error if named else RecordingError(f"{path}: {error}; record it again") from error
        except BaseException:
            self._connection.close()
            raise

    def ids(self) -> Ints:
        if self._agents is not None:
            return self._agent_numbers.copy()
        with sqlite_format.explaining(self.path):
            rows = self._connection.execute("SELECT DISTINCT id FROM trajectory_data ORDER BY id")
            return np.array([number for (number,) in rows], dtype=np.int64)

    def frame(self, k: int) -> FrameData:
        self._index_of(k)
        rows = self._rows("WHERE frame = ? ORDER BY id", (int(k),))
        group, radius = self._group_and_radius(rows["id"], rows["frame"])
        return self._checked_frame(
            FrameData(
                id=rows["id"].copy(),
                position=np.stack([rows["x"], rows["y"]], axis=1),
                heading=np.stack([rows["heading_x"], rows["heading_y"]], axis=1),
                group=group,
                radius=radius,
                speed=None,
                extra=self._extra("WHERE frame = ? ORDER BY id", (int(k),), rows),
            )
        )

    def table(self) -> dict[str, NDArray[Any]]:
        rows = self._rows("ORDER BY rowid", ())
        # Rows are nearly always in order already; sorting in SQLite would go through the index row by row.
        step = np.diff(rows["frame"])
        if np.any(step < 0) or np.any((step == 0) & (np.diff(rows["id"]) < 0)):
            rows = rows[np.lexsort((rows["id"], rows["frame"]))]
        group, radius = self._group_and_radius(rows["id"], rows["frame"])
        columns: dict[str, NDArray[Any]] = {name: rows[name].copy() for name in _ROW.names or ()}
        columns |= {"group": group, "radius": radius, **self._extra("ORDER BY frame, id", (), rows)}
        self._check_columns(columns)
        return columns

    def entries(self) -> list[RecordedEvent]:
        if "tropel_events" not in self._tables:
            return []
        with sqlite_format.explaining(self.path):
            rows = self._connection.execute("SELECT frame, step, event FROM tropel_events ORDER BY rowid").fetchall()
        with self._naming_the_file():
            return [checked_event(frame, step, self._json(text)) for frame, step, text in rows]

    @property
    def summary(self) -> dict[str, Any] | None:
        text = self._own.get("summary")
        with self._naming_the_file():
            return None if text is None else table_of(self._json(text), "the summary")

    def people(self) -> People | None:
        if "tropel_people" not in self._tables:
            return None
        query = "SELECT id, agent_group, came, gone, fate, through FROM tropel_people ORDER BY id"
        with self._naming_the_file(), sqlite_format.explaining(self.path):
            rows = self._connection.execute(query).fetchall()
            columns = zip(*rows, strict=True) if rows else [()] * 6
            number, group, came, gone, fate, through = columns
            people = People.from_names(
                id=number,
                group=group,
                came=came,
                gone=[np.nan if time is None else time for time in gone],
                fate=fate,
                through=[name or "" for name in through],
            )
        with self._naming_the_file():
            people.check(groups=len(self.scene.groups))
        return people

    def obstacles(self, k: int) -> dict[str, dict[str, Any]]:
        self._index_of(k)
        if "tropel_obstacles" not in self._tables:
            return {}
        query = "SELECT name, pos_x, pos_y, radius FROM tropel_obstacles WHERE frame = ? ORDER BY rowid"
        with sqlite_format.explaining(self.path):
            rows = self._connection.execute(query, (int(k),)).fetchall()
        found = {name: {"radius": radius, "position": [x, y]} for name, x, y, radius in rows}
        with self._naming_the_file():
            for name, entry in found.items():
                check_text(name, f"the name of an obstacle in frame {k}")
                check_obstacle(entry, f"obstacle '{name}' in frame {k}", 2)
        return found

    def geometry(self, k: int) -> str:
        key = int(self._geometry_of_frame[self._index_of(k)])
        if key not in self._wkt:
            raise RecordingError(f"{self.path} lacks the geometry of frame {k}: it is damaged")
        return self._wkt[key]

    def geometries(self) -> list[str]:
        return list(self._wkt.values())

    def close(self) -> None:
        self._connection.close()

    def _rows(self, condition: str, parameters: tuple[int, ...]) -> NDArray[Any]:
        with sqlite_format.explaining(self.path):
            return np.fromiter(self._connection.execute(_ROWS + condition, parameters), dtype=_ROW)

    def _extra(self, condition: str, parameters: tuple[int, ...], rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The columns that only some runs have, for the same rows."""
        names = self.scene.columns
        if not names:
            return {}
        if "tropel_columns" not in self._tables:
            raise RecordingError(f"{self.path} lacks the table tropel_columns, which its scene names: it is damaged")
        quoted = "".join(f', "{name}"' for name in names)
        with sqlite_format.explaining(self.path):
            kind = np.dtype([("frame", np.int64), ("id", np.int64), *((name, np.float64) for name in names)])
            query = f"SELECT frame, id{quoted} FROM tropel_columns {condition}"
            found = np.fromiter(self._connection.execute(query, parameters), dtype=kind)
        if not all(np.array_equal(found[name], rows[name]) for name in ("frame", "id")):
            raise RecordingError(f"{self.path}: tropel_columns has other agents than the frames: it is damaged")
        return {name: found[name].copy() for name in names}

    def _frame_index(self) -> tuple[Ints, Ints]:
        pairs = self._connection.execute("SELECT frame, geometry_hash FROM frame_data")
        table = np.fromiter(pairs, dtype=[("frame", np.int64), ("geometry", np.int64)])
        frames, first = np.unique(table["frame"], return_index=True)
        return frames, table["geometry"][first]

    def _own_metadata(self) -> dict[str, str]:
        if "tropel_metadata" not in self._tables:
            return {}
        own = dict(self._connection.execute("SELECT key, value FROM tropel_metadata"))
        if own.get("version") != str(sqlite_format.EXTRA_VERSION):
            raise RecordingError(
                f"{self.path} was written by another version of tropel (tables of version {own.get('version')}, "
                f"this one reads {sqlite_format.EXTRA_VERSION}): read it with the tropel that wrote it"
            )
        return own

    def _read_scene(self) -> Scene:
        if "scene" in self._own:
            try:
                return Scene.from_json(self._own["scene"])
            except RecordingError as error:
                raise RecordingError(f"{self.path}: {error}") from error
        if self._own:
            raise RecordingError(f"{self.path} lacks its scene: it is damaged")
        return self._scene_from_geometry()

    def _scene_from_geometry(self) -> Scene:
        """The scene of a file that another program wrote, built from its first geometry."""
        if not self._wkt:
            raise RecordingError(f"{self.path} has no geometry: it is damaged, or its run never started")
        first = int(self._geometry_of_frame[0]) if len(self.frames) else None
        wkt = self._wkt.get(first, next(iter(self._wkt.values())))
        if {"xmin", "xmax", "ymin", "ymax"} <= self._metadata.keys():
            low = [self._number("xmin"), self._number("ymin")]
            high = [self._number("xmax"), self._number("ymax")]
        else:
            import shapely

            try:
                xmin, ymin, xmax, ymax = shapely.from_wkt(wkt).bounds
            except shapely.errors.ShapelyError as error:
                raise RecordingError(f"{self.path}: the geometry is not valid WKT ({error})") from error
            low, high = [xmin, ymin], [xmax, ymax]
        return Scene(dim=2, bounds=[low, high], walkable_wkt=wkt, title=self.path.stem, dt=1.0 / self.fps)

    def _read_agents(self) -> NDArray[Any] | None:
        """Rows of tropel_agents by id and frame, or None if the file has no such table."""
        if "tropel_agents" not in self._tables:
            return None
        rows = self._connection.execute("SELECT id, frame, agent_group, radius FROM tropel_agents ORDER BY id, frame")
        agents = np.fromiter(rows, dtype=[("id", "i8"), ("frame", "i8"), ("group", "i4"), ("radius", "f8")])
        self._agent_numbers, rank = np.unique(agents["id"], return_inverse=True)
        # One number that sorts by agent, then by frame.
        self._span = int(max(agents["frame"].max(initial=0), self.frames.max(initial=0))) + 2
        self._agent_key = rank * self._span + agents["frame"]
        return agents

    def _group_and_radius(self, number: Ints, frame: Ints) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """For each row, the latest entry of its agent that is not later than the row's frame."""
        if self._agents is None:
            return np.zeros(len(number), dtype=np.int32), np.full(len(number), UNKNOWN_RADIUS)
        key = np.searchsorted(self._agent_numbers, number) * self._span + frame
        row = np.searchsorted(self._agent_key, key, side="right") - 1
        if np.any(row < 0) or np.any(self._agents["id"][np.minimum(row, len(self._agents) - 1)] != number):
            raise RecordingError(f"{self.path}: some agents have no group and radius: it is damaged")
        return self._agents["group"][row], self._agents["radius"][row]

    def _number(self, key: str) -> float:
        try:
            value = float(self._metadata[key])
        except (KeyError, ValueError, TypeError) as error:
            raise RecordingError(f"{self.path}: the metadata has no usable '{key}': it is damaged") from error
        from tropel.foundation.arguments import LARGEST_LENGTH

        if key == "fps":
            return check_rate(value, "fps")
        if not abs(value) <= LARGEST_LENGTH:
            raise RecordingError(f"{self.path}: the metadata gives {key} = {value}: it is damaged")
        return value

    def _json(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise RecordingError(f"{self.path} contains text that is not JSON ({error}): it is damaged") from error


def _open_read_only(path: Path) -> sqlite3.Connection:
    with sqlite_format.explaining(path):
        connection = sqlite_format.connect(path, "ro")
        try:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
        # The writer was killed during a commit, which must be rolled back first; opening for writing does that.
        try:
            with contextlib.closing(sqlite_format.connect(path, "rw")) as repairing:
                repairing.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.OperationalError as error:
            raise RecordingError(
                f"{path} was interrupted during a commit and must be repaired, but is not writable ({error}): "
                "copy it and the file whose name ends in '-journal' to a place where you can write"
            ) from error
        return sqlite_format.connect(path, "ro")
