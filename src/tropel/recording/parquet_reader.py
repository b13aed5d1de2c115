"""Reading Parquet trajectories, one row group at a time."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import RecordingError
from tropel.recording import parquet_format as layout
from tropel.recording.checked import check_frames, check_obstacle, check_text, table_of
from tropel.recording.frames import FrameData, Ints, RecordedEvent
from tropel.recording.people import People
from tropel.recording.trajectory import Trajectory, vector_columns

#: Row groups kept in memory (8 MB each); a replay visits one after the other.
_ROW_GROUPS_KEPT = 4


class ParquetTrajectory(Trajectory):
    def __init__(self, directory: Path) -> None:
        self.path = directory
        self.scene, self.fps = layout.read_header(directory)
        self._parts = layout.part_files(directory / layout.PARTS)
        for number, path in enumerate(self._parts):
            if path.name != layout.part_name(number):
                raise RecordingError(f"{directory} has no {layout.part_name(number)}: it is damaged")
        indices = [layout.read_part_index(path) for path in self._parts]
        self.frames = np.array([frame for index in indices for frame in index.frames], dtype=np.int64)
        if np.any(np.diff(self.frames) <= 0):
            raise RecordingError(f"{directory} has frames that are out of order: it is damaged")
        with self._naming_the_file():
            check_frames(self.frames, self.fps)
        self._rows = np.array([rows for index in indices for rows in index.rows], dtype=np.int64)
        self._geometry = [name for index in indices for name in index.geometry]
        self._part = np.repeat(np.arange(len(indices)), [len(index.frames) for index in indices])
        #: First row of each frame within its part.
        self._start = np.array(
            [start for index in indices for start in np.cumsum([0, *index.rows])[:-1].tolist()], dtype=np.int64
        )
        self._columns = [
            *("frame", "id"),
            *vector_columns("", self.scene.dim),
            *vector_columns("heading_", self.scene.dim),
            *("speed", "group", "radius"),
            *self.scene.columns,
        ]
        # Caches of this object, so that they are freed with it.
        self._row_group = functools.lru_cache(_ROW_GROUPS_KEPT)(self._read_row_group)
        self._obstacle_table = functools.lru_cache(1)(layout.read_part)
        self._file = functools.lru_cache(_ROW_GROUPS_KEPT)(lambda number: layout.open_part(self._parts[number]))

    def ids(self) -> Ints:
        distinct = np.zeros(0, dtype=np.int64)
        for number in range(len(self._parts)):
            distinct = np.union1d(distinct, self._read(number, None, ["id"])["id"])
        return distinct

    def frame(self, k: int) -> FrameData:
        index = self._index_of(k)
        columns = self._slice(int(self._part[index]), int(self._start[index]), int(self._rows[index]))
        dim = self.scene.dim
        return self._checked_frame(
            FrameData(
                id=columns["id"],
                position=np.stack([columns[name] for name in vector_columns("", dim)], axis=1),
                heading=np.stack([columns[name] for name in vector_columns("heading_", dim)], axis=1),
                group=columns["group"],
                radius=columns["radius"],
                speed=columns["speed"],
                extra={name: columns[name] for name in self.scene.columns},
            )
        )

    def table(self) -> dict[str, NDArray[Any]]:
        parts = [self._read(number, None, self._columns) for number in range(len(self._parts))]
        empty = _empty(self._columns)
        columns = {name: np.concatenate([empty[name], *(part[name] for part in parts)]) for name in self._columns}
        self._check_columns(columns)
        return columns

    def entries(self) -> list[RecordedEvent]:
        return layout.read_events(self.path)

    @property
    def summary(self) -> dict[str, Any] | None:
        path = self.path / layout.SUMMARY
        with self._naming_the_file():
            return table_of(layout.read_json(path), layout.SUMMARY) if path.exists() else None

    def people(self) -> People | None:
        path = self.path / layout.PEOPLE
        if not path.exists():
            return None
        table = layout.read_part(path)
        with self._naming_the_file(), layout.explaining(path):
            people = People.from_names(
                id=_numbers(table.column("id")),
                group=_numbers(table.column("group")),
                came=_numbers(table.column("came")),
                gone=_numbers(table.column("gone")),
                fate=table.column("fate").to_pylist(),
                through=table.column("through").to_pylist(),
            )
        with self._naming_the_file():
            people.check(groups=len(self.scene.groups))
        return people

    def obstacles(self, k: int) -> dict[str, dict[str, Any]]:
        path = self.path / layout.OBSTACLES / layout.part_name(int(self._part[self._index_of(k)]))
        if not path.exists():
            return {}
        found = {}
        with layout.explaining(path):
            table = self._obstacle_table(path)
            for row in np.flatnonzero(_numbers(table.column("frame")) == k).tolist():
                entry = table.slice(row, 1).to_pylist()[0]
                position = [entry[axis] for axis in vector_columns("", self.scene.dim)]
                found[entry["name"]] = {"radius": entry["radius"], "position": position}
        with self._naming_the_file():
            for name, entry in found.items():
                check_text(name, f"the name of an obstacle in frame {k}")
                check_obstacle(entry, f"obstacle '{name}' in frame {k}", self.scene.dim)
        return found

    def geometry(self, k: int) -> str:
        return layout.read_geometry(self.path, self._geometry[self._index_of(k)])

    def geometries(self) -> list[str]:
        return [layout.read_geometry(self.path, name) for name in dict.fromkeys(self._geometry)]

    def close(self) -> None:
        self._row_group.cache_clear()
        self._obstacle_table.cache_clear()
        self._file.cache_clear()

    def _read(self, number: int, group: int | None, columns: list[str]) -> dict[str, NDArray[Any]]:
        """Columns of a row group of a part, or of the whole part."""
        file = self._file(number)
        with layout.explaining(self._parts[number]):
            table = file.read(columns=columns) if group is None else file.read_row_group(group, columns=columns)
            read = {name: _numbers(table.column(name)) for name in columns}
        wanted = _empty(columns)
        for name, column in read.items():
            if column.dtype != wanted[name].dtype:
                raise RecordingError(f"{self._parts[number]}: '{name}' has the type {column.dtype}: it is damaged")
        return read

    def _read_row_group(self, number: int, group: int) -> dict[str, NDArray[Any]]:
        return self._read(number, group, self._columns)

    def _slice(self, number: int, start: int, count: int) -> dict[str, NDArray[Any]]:
        """Rows of a part, from the row groups that hold them. The arrays belong to the caller."""
        footer = self._file(number).metadata
        pieces = [_empty(self._columns)]
        first = 0
        for group in range(footer.num_row_groups):
            size = footer.row_group(group).num_rows
            low, high = max(start, first), min(start + count, first + size)
            if low < high:
                rows = self._row_group(number, group)
                pieces.append({name: rows[name][low - first : high - first] for name in self._columns})
            first += size
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in self._columns}


def _empty(columns: list[str]) -> dict[str, NDArray[Any]]:
    types = {"frame": np.int64, "id": np.int64, "group": np.int32}
    return {name: np.zeros(0, dtype=types.get(name, np.float64)) for name in columns}


def _numbers(column: Any) -> NDArray[Any]:
    # Arrow's own `to_numpy` imports pandas first, which takes half a second.
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
    return chunks[0] if len(chunks) == 1 else np.concatenate([np.zeros(0, column.type.to_pandas_dtype()), *chunks])
