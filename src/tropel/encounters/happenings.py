"""What happened to pairs of agents during a step, for those who subscribe to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
class EncounterEvents:
    """What happened to pairs during a step, ordered by time and then by the ids.

    `kind` is "entered", "touched", "parted" or "left". `how` tells more about the first and the last, in the words of
    `began` and `ended` of the table; it is "" for the others.
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
