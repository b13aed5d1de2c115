"""Who learnt what, when and from whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import CheckpointError

#: One line of the log: the step, the holder's id, the number of the thing, its believed state, and the source.
ENTRY = np.dtype(
    [("step", np.int64), ("holder", np.int64), ("thing", np.int64), ("state", np.int64), ("source", np.int64)]
)


class Log:
    """Lines in the order of steps, and within a step by holder and thing."""

    def __init__(self) -> None:
        self._parts: list[NDArray[Any]] = []
        self._all: NDArray[Any] = np.empty(0, dtype=ENTRY)

    def __len__(self) -> int:
        return len(self.lines)

    def note(
        self, step: int, ids: NDArray[np.int64], thing: NDArray[np.int64], state: NDArray[Any], source: NDArray[Any]
    ) -> NDArray[Any]:
        """Note what was learnt in a step, and return it."""
        lines = np.empty(len(ids), dtype=ENTRY)
        lines["step"], lines["holder"], lines["thing"], lines["state"], lines["source"] = (
            step,
            ids,
            thing,
            state,
            source,
        )
        lines = lines[np.lexsort((lines["thing"], lines["holder"]))]
        self._parts.append(lines)
        return lines

    @property
    def lines(self) -> NDArray[Any]:
        if self._parts:
            self._all = np.concatenate([self._all, *self._parts])
            self._parts = []
        return self._all

    def stored(self) -> dict[str, NDArray[Any]]:
        return {f"log_{name}": np.ascontiguousarray(self.lines[name]) for name in ENTRY.names or ()}

    def read(self, stored: Mapping[str, NDArray[Any]], things: int) -> NDArray[Any]:
        """What `stored` returned, checked."""
        columns = [stored.get(f"log_{name}", np.empty(0, dtype=np.int64)) for name in ENTRY.names or ()]
        if any(column.dtype != np.int64 or column.shape != columns[0].shape or column.ndim != 1 for column in columns):
            raise CheckpointError("the log of what was learnt must be columns of whole numbers of one length")
        lines = np.empty(len(columns[0]), dtype=ENTRY)
        for name, column in zip(ENTRY.names or (), columns, strict=True):
            lines[name] = column
        if len(lines) and ((lines["thing"] < 0) | (lines["thing"] >= things)).any():
            raise CheckpointError("the log of what was learnt names things that are not there")
        return lines

    def put_back(self, lines: NDArray[Any]) -> None:
        self._parts, self._all = [], lines
