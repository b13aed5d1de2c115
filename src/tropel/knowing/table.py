"""What everybody knows: a row for each holder (an agent, a group or the world), a column for each thing.

Holders of groups and of the world come first; agents that know for themselves follow, by their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import Floats
from tropel.errors import CheckpointError
from tropel.foundation.stored_arrays import taken
from tropel.knowing.things import UNKNOWN, Kind

#: Instead of the step of an observation: assumed without having been seen, and known from the start.
ASSUMED, FROM_START = -2, -1
#: Instead of the id of who told: known from the start, an announcement, and the manager.
BEFORE, ANNOUNCED, MANAGER = -1, -2, -3
SOURCES = {BEFORE: "the start", ANNOUNCED: "an announcement", MANAGER: "the manager"}

_LAST_STEP, _LAST_ID, _MOST_SEEN = 2**31 - 1, 2**62, 2**15 - 1


class Table:
    """Believed state, step of the observation and source, for each holder and thing."""

    def __init__(self, dim: int, shared: int) -> None:
        self.dim = dim
        self.shared = shared  #: how many holders are groups, or the world
        self.ids: NDArray[np.int64] = np.arange(-shared, 0, dtype=np.int64)  #: of holders; negative for shared ones
        self.state: NDArray[np.int16] = np.empty((shared, 0), dtype=np.int16)
        self.when: NDArray[np.int32] = np.empty((shared, 0), dtype=np.int32)
        self.source: NDArray[np.int64] = np.empty((shared, 0), dtype=np.int64)
        self.place: Floats = np.empty((shared, 0, dim))  #: of targets and hostile groups, which move
        self.slot: NDArray[np.int64] = np.empty(0, dtype=np.int64)  #: column in `place` of each thing, or -1

    def widen(self, kind: NDArray[np.int8], first: NDArray[np.int16], when: NDArray[np.int32], place: Floats) -> None:
        """Enter new things; `first` (holders, things) is what is known of all of them at first."""
        known, holders = self.state.shape[1], len(self.ids)
        self.state = np.hstack([self.state, first[:, known:]])
        self.when = np.hstack([self.when, when[:, known:]])
        self.source = np.hstack([self.source, np.full((holders, len(kind) - known), BEFORE, dtype=np.int64)])
        self._number_places(kind)
        new = np.flatnonzero(self.slot[known:] >= 0) + known
        fresh = np.where((first[:, new] != UNKNOWN)[:, :, None], place[new][None], np.nan)
        self.place = np.concatenate([self.place, fresh.reshape(holders, len(new), self.dim)], axis=1)

    def _number_places(self, kind: NDArray[np.int8]) -> None:
        moves = np.isin(kind, (Kind.TARGET, Kind.GROUP))
        self.slot = np.where(moves, np.cumsum(moves) - 1, -1).astype(np.int64)

    def keep(self, ids: NDArray[np.int64], first: Table) -> None:
        """From now on these agents know for themselves, in this order; newcomers know what `first` has for them."""
        wanted = np.concatenate([self.ids[: self.shared], ids])
        order = np.argsort(self.ids, kind="stable")
        at = np.minimum(np.searchsorted(self.ids, wanted, sorter=order), max(len(self.ids) - 1, 0))
        rows = order[at] if len(self.ids) else np.zeros(len(wanted), dtype=np.int64)
        found = self.ids[rows] == wanted if len(self.ids) else np.zeros(len(wanted), dtype=np.bool_)
        for name in ("state", "when", "source", "place"):
            fresh = getattr(first, name).copy()
            fresh[found] = getattr(self, name)[rows[found]]
            setattr(self, name, fresh)
        self.ids = wanted

    def copy(self) -> Table:
        """The same, as it is now."""
        other = Table(self.dim, self.shared)
        other.ids, other.slot = self.ids, self.slot
        other.state, other.when = self.state.copy(), self.when.copy()
        other.source, other.place = self.source.copy(), self.place.copy()
        return other

    def stored(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ("ids", "state", "when", "source")} | {"places": self.place}

    def read(self, stored: Mapping[str, NDArray[Any]], kind: NDArray[np.int8]) -> Table:
        """What `stored` returned, checked."""
        found, things = Table(self.dim, self.shared), len(kind)
        found.ids = taken(stored, "ids", dtype="int64", shape=(None,))
        holders = len(found.ids)
        own = found.ids[self.shared :]
        if not np.array_equal(found.ids[: self.shared], self.ids[: self.shared]) or (own < 0).any():
            raise CheckpointError("'ids' must be the holders of this simulation, shared ones first")
        if len(np.unique(own)) != len(own):
            raise CheckpointError("'ids' has a holder twice")
        shape = (holders, things)
        found.state = taken(stored, "state", dtype="int16", shape=shape, low=UNKNOWN, high=_MOST_SEEN)
        if (found.state[:, kind != Kind.GROUP] > 1).any():
            raise CheckpointError("'state' must be -1, 0 or 1 for everything but groups")
        found.when = taken(stored, "when", dtype="int32", shape=shape, low=ASSUMED, high=_LAST_STEP)
        found.source = taken(stored, "source", dtype="int64", shape=shape, low=MANAGER, high=_LAST_ID)
        found._number_places(kind)
        slots = int((found.slot >= 0).sum())
        found.place = taken(stored, "places", dtype="float64", shape=(holders, slots, self.dim), finite=False)
        return found
