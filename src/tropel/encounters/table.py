"""The results of watching encounters: the table of all encounters, and the events of a step."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import RecordingError
from tropel.foundation.arguments import checked_arguments
from tropel.recording.tables import Columns, read_table, table_format, write_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How encounters begin and end, by the numbers in the log; GOING_ON has no end yet.
ENTERED, PLACED = 0, 1
GOING_ON, LEFT, GONE, MOVED = 0, 1, 2, 3
BEGINNINGS = np.array(["entered", "placed"])
ENDS = np.array(["", "left", "gone", "moved"])

#: Kinds of events, by number.
KINDS = np.array(["entered", "touched", "parted", "left"])
ENTER, TOUCH, PART, LEAVE = 0, 1, 2, 3


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
    return EncounterTable(**{name: np.array(v, dtype=np.str_ if name in texts else None) for name, v in columns.items()})


@dataclass(frozen=True, kw_only=True, eq=False)
class EncounterEvents:
    """What happened to pairs during a step, ordered by time and then by the ids.

    `kind` is "entered", "touched", "parted" or "left". `how` tells more about the first and the last, in the words of
    `EncounterTable.began` and `EncounterTable.ended`; it is "" for the others.
    """

    time: Floats  #: [s]
    id_a: Ints  #: the lower id
    id_b: Ints
    kind: NDArray[np.str_]
    how: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.time)


class EventCollector:
    """Gathers the events of a step, in the order in which they happen to each pair."""

    def __init__(self) -> None:
        self._parts: list[tuple[Floats, Ints, Ints, int, NDArray[np.str_]]] = []

    def add(self, kind: int, time: Floats, id_a: Ints, id_b: Ints, how: NDArray[np.str_] | None = None) -> None:
        if len(time):
            words = np.full(len(time), "", dtype=ENDS.dtype) if how is None else how
            self._parts.append((time, id_a, id_b, kind, words))

    def take(self) -> EncounterEvents:
        """All events since the last call."""
        parts, self._parts = self._parts, []
        time = np.concatenate([np.empty(0), *(part[0] for part in parts)])
        id_a, id_b = (np.concatenate([np.empty(0, dtype=np.int64), *(part[n] for part in parts)]) for n in (1, 2))
        kind = np.repeat(np.array([part[3] for part in parts], dtype=np.int64), [len(part[0]) for part in parts])
        how = np.concatenate([np.empty(0, dtype=ENDS.dtype), *(part[4] for part in parts)])
        # Stable: what happens to a pair at one moment stays in its order.
        order = np.lexsort((id_b, id_a, time))
        return EncounterEvents(
            time=time[order], id_a=id_a[order], id_b=id_b[order], kind=KINDS[kind[order]], how=how[order]
        )
