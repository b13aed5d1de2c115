"""The table of encounters, and the files that hold it."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import RecordingError
from tropel.foundation.arguments import checked_arguments
from tropel.recording.tables import Columns, column_names, read_table, table_format, write_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class EncounterTable:
    """One row per encounter, ordered by the time of its begin and then by the ids.

    `began` is "entered" if the two moved to within the distance of each other, and "placed" if they were there all at
    once: one of them appeared or was moved by an event, or the watching began. `ended` is "left" if they moved apart,
    "gone" if one of them was no longer there, "moved" if an event moved them apart, and "" while the encounter goes on.
    """

    id_a: Ints  #: the lower id
    id_b: Ints
    begin: Floats  #: [s]
    end: Floats  #: [s]; nan while it goes on
    closest: Floats  #: shortest distance of the centres so far [m]
    closest_at: Floats  #: when they were first that close [s]
    touched: Floats  #: when the bodies first touched [s]; nan if they did not
    touching: Floats  #: for how long they touched, in all [s]
    began: NDArray[np.str_]
    ended: NDArray[np.str_]
    within: Floats  #: the distance that was watched [m]; the same in all rows

    def __len__(self) -> int:
        return len(self.id_a)

    @property
    def last_time(self) -> float:
        """The last moment that the table knows of [s]."""
        times = np.concatenate([self.begin, self.end, self.closest_at, self.touched])
        return float(np.max(times[~np.isnan(times)], initial=0.0))

    @property
    def durations(self) -> Floats:
        """How long the encounters lasted [s]; those that go on, until the last moment that the table knows of."""
        return np.where(np.isnan(self.end), self.last_time, self.end) - self.begin

    def contact_times(self) -> tuple[Ints, Floats]:
        """The ids of all agents in the table, ascending, and how long each was near others, summed over them [s]."""
        ids, place = np.unique(np.concatenate([self.id_a, self.id_b]), return_inverse=True)
        seconds = np.bincount(place, weights=np.tile(self.durations, 2), minlength=len(ids))
        return ids, seconds.astype(np.float64)

    def columns(self) -> Columns:
        """All columns by name, texts as lists."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: v.tolist() if v.dtype.kind == "U" else v for name, v in values.items()}

    @checked_arguments
    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write the table as text; missing numbers are empty."""
        return self._write(path, "csv")

    @checked_arguments
    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Write the table as Parquet; missing numbers are nan."""
        return self._write(path, "parquet")

    def _write(self, path: str | os.PathLike[str], kind: str) -> Path:
        if table_format(path) != kind:
            raise RecordingError(f"to_{kind} writes .{kind} files, but this one is called '{Path(path).name}'")
        return write_table(self.columns(), path)


@checked_arguments
def read_encounters(path: str | os.PathLike[str]) -> EncounterTable:
    """Read a table of encounters that was written as CSV or Parquet."""
    texts, whole = ("began", "ended"), ("id_a", "id_b")
    names = [field.name for field in fields(EncounterTable)]
    kinds = {name: str if name in texts else int if name in whole else float for name in names}
    columns: dict[str, Any] = dict(read_table(path, kinds))
    return EncounterTable(
        **{name: np.array(v, dtype=np.str_ if name in texts else None) for name, v in columns.items()}
    )


def holds_encounters(path: Path) -> bool:
    """Whether a file is a table of encounters, by the names of its columns."""
    try:
        return {field.name for field in fields(EncounterTable)} <= set(column_names(path))
    except RecordingError:
        return False
