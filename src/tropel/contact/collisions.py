"""Collisions: which bodies came closer than touching, when, and how deep; logged step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import CellList
from tropel.agents.state import AgentState
from tropel.broad_phase.pair_search import KnownPairs
from tropel.contact.collision_search import TOLERANCE, CollisionSearch, Found
from tropel.errors import CheckpointError
from tropel.foundation.stored_arrays import taken
from tropel.world import World

#: How many of the deepest collisions a report names.
_NAMED = 10
#: Key of a pair: the first id in the upper half, the second, which is negative for obstacles, in the lower.
_HALF = 32
_MIDDLE = 1 << 31
_LOWER = (1 << _HALF) - 1

_LOG = np.dtype(
    [
        ("id_a", np.int64),
        ("id_b", np.int64),
        ("begin", np.float64),
        ("depth", np.float64),
        ("deepest_at", np.float64),
        ("begun", np.bool_),
    ]
)


@dataclass(frozen=True, kw_only=True)
class CollisionLog:
    """Every collision so far, one row each, in the order of the steps and then of the ids."""

    id_a: NDArray[np.int64]  #: an agent; the lower id if both are agents
    id_b: NDArray[np.int64]  #: the other agent, or -1 - k for the obstacle named `obstacles[k]`
    begin: NDArray[np.float64]  #: first contact [s]
    depth: NDArray[np.float64]  #: deepest overlap [m]
    deepest_at: NDArray[np.float64]  #: when it was deepest [s]
    begun: NDArray[np.bool_]  #: false if the bodies were placed, or grew, into each other instead of moving there
    obstacles: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.id_a)


@dataclass(frozen=True, kw_only=True)
class Collision:
    """One collision, for people to read."""

    who: int
    whom: int | str  #: id of an agent or name of an obstacle
    begin: float  #: first contact [s]
    depth: float  #: deepest overlap [m]
    deepest_at: float  #: [s]


@dataclass(frozen=True, kw_only=True)
class CollisionReport:
    """What a run's summary reports about collisions."""

    begun: int  #: bodies that moved into each other
    pairs: int  #: different pairs that ever overlapped, for whatever reason
    with_obstacles: int  #: how many of these pairs were an agent and an obstacle
    deepest_overlap: float  #: [m]
    deepest: tuple[Collision, ...]  #: the deepest ones, deepest first


class CollisionWatch:
    """Checks every step for collisions, and keeps a log of them."""

    def __init__(self) -> None:
        self._rows = np.empty(0, dtype=_LOG)
        self._count = 0
        self._obstacles: list[str] = []
        # Pairs that overlapped at the end of the previous step, sorted, and their rows in the log.
        self._open_key = np.empty(0, dtype=np.int64)
        self._open_row = np.empty(0, dtype=np.int64)
        self._search = CollisionSearch()

    def look(
        self,
        state: AgentState,
        cells: CellList,
        world: World,
        *,
        step: int,
        dt: float,
        known: KnownPairs | None = None,
    ) -> None:
        """Log the collisions of the step that has just been made.

        `cells` has the positions at its start, `state` those at its end; obstacles are still where they were at the
        start. Sets the column `collided`. `known` may know which pairs came close.
        """
        state.collided.fill(0)
        found = self._search.find(state, cells, world, dt, known)
        if len(found) == 0:
            self._open_key, self._open_row = self._open_key[:0], self._open_row[:0]
            return
        row = cells.order[found.place]
        with_agent = found.other >= 0
        other_row = cells.order[np.where(with_agent, found.other, 0)]
        state.collided[row] = 1
        state.collided[other_row[with_agent]] = 1
        own, other = state.id[row], state.id[other_row]
        id_a = np.where(with_agent, np.minimum(own, other), own)
        id_b = np.where(with_agent, np.maximum(own, other), self._obstacle_codes(world, found.other))
        self._note(id_a, id_b, found, step, dt)

    def _obstacle_codes(self, world: World, other: NDArray[np.int64]) -> NDArray[np.int64]:
        """Log codes of the obstacles -1 - m in `other`; rows m change when an obstacle is removed, names do not."""
        codes = np.zeros(len(world.obstacles) + 1, dtype=np.int64)
        names = world.obstacles.names
        for m in np.unique(-1 - other[other < 0]).tolist():
            if names[m] not in self._obstacles:
                self._obstacles.append(names[m])
            codes[m] = -1 - self._obstacles.index(names[m])
        return codes[np.where(other < 0, -1 - other, len(names))]

    def _note(self, id_a: NDArray[np.int64], id_b: NDArray[np.int64], found: Found, step: int, dt: float) -> None:
        """Continue the rows of pairs that already overlapped when the step began, and add rows for the others."""
        keys = _pair_keys(id_a, id_b)
        begun = found.at_start <= TOLERANCE
        deepest_at = (step + found.when) * dt
        goes_on = np.zeros(len(keys), dtype=bool)
        rows = np.empty(len(keys), dtype=np.int64)
        if len(self._open_key):
            place = np.minimum(np.searchsorted(self._open_key, keys), len(self._open_key) - 1)
            goes_on = (self._open_key[place] == keys) & ~begun
            rows[goes_on] = self._open_row[place[goes_on]]
        deeper = np.flatnonzero(goes_on)
        deeper = deeper[found.depth[deeper] > self._rows["depth"][rows[deeper]]]
        self._rows["depth"][rows[deeper]] = found.depth[deeper]
        self._rows["deepest_at"][rows[deeper]] = deepest_at[deeper]

        # Sorted by ids, so that the order of the cells does not matter.
        fresh = np.flatnonzero(~goes_on)
        fresh = fresh[np.argsort(keys[fresh])]
        rows[fresh] = np.arange(self._count, self._count + len(fresh))
        self._append(
            id_a=id_a[fresh],
            id_b=id_b[fresh],
            begin=(step + found.first[fresh]) * dt,
            depth=found.depth[fresh],
            deepest_at=deepest_at[fresh],
            begun=begun[fresh],
        )
        open_now = np.flatnonzero(found.at_end > TOLERANCE)
        open_now = open_now[np.argsort(keys[open_now])]
        self._open_key, self._open_row = keys[open_now], rows[open_now]

    def _append(self, **columns: NDArray[Any]) -> None:
        end = self._count + len(columns["id_a"])
        if end > len(self._rows):
            grown = np.zeros(2 * end, dtype=_LOG)
            grown[: self._count] = self._rows[: self._count]
            self._rows = grown
        for name, values in columns.items():
            self._rows[name][self._count : end] = values
        self._count = end

    @property
    def log(self) -> CollisionLog:
        """A copy of everything logged so far."""
        rows = self._rows[: self._count]
        return CollisionLog(**{name: rows[name].copy() for name in _LOG.names or ()}, obstacles=tuple(self._obstacles))

    def report(self) -> CollisionReport:
        log = self.log
        pairs = np.unique(_pair_keys(log.id_a, log.id_b))
        deepest = np.argsort(-log.depth, kind="stable")[:_NAMED]
        return CollisionReport(
            begun=int(log.begun.sum()),
            pairs=len(pairs),
            with_obstacles=int(((pairs & _LOWER) < _MIDDLE).sum()),
            deepest_overlap=float(log.depth.max(initial=0.0)),
            deepest=tuple(
                Collision(
                    who=int(log.id_a[row]),
                    whom=int(log.id_b[row]) if log.id_b[row] >= 0 else log.obstacles[-1 - int(log.id_b[row])],
                    begin=float(log.begin[row]),
                    depth=float(log.depth[row]),
                    deepest_at=float(log.deepest_at[row]),
                )
                for row in deepest
            ),
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """The log, and which of its collisions are still going on."""
        return {
            "log": self._rows[: self._count].copy(),
            "open": self._open_row.copy(),
            "obstacles": np.array(self._obstacles, dtype=np.str_),
        }

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        if set(stored) != {"log", "open", "obstacles"} or stored["log"].dtype != _LOG:
            raise CheckpointError("the checkpoint has no collision log; write it again with this version of tropel")
        rows = stored["log"]
        obstacles = stored["obstacles"]
        if rows.ndim != 1 or obstacles.ndim != 1 or obstacles.dtype.kind != "U":
            raise CheckpointError("the collision log in the checkpoint is not a list of rows and obstacle names")
        columns = {name: rows[name] for name in _LOG.names or ()}
        taken(columns, "id_a", dtype="int64", shape=rows.shape, low=0, high=_MIDDLE - 1)
        taken(columns, "id_b", dtype="int64", shape=rows.shape, low=-len(obstacles), high=_MIDDLE - 1)
        for name in ("begin", "depth", "deepest_at"):
            taken(columns, name, dtype="float64", shape=rows.shape)
        unfinished = taken(stored, "open", dtype="int64", shape=(None,), low=0, high=len(rows) - 1)
        keys = _pair_keys(rows["id_a"][unfinished], rows["id_b"][unfinished])
        if (np.diff(keys) <= 0).any():
            raise CheckpointError("the unfinished collisions in the checkpoint are out of order")
        self._rows, self._count = rows.copy(), len(rows)
        self._obstacles = [str(name) for name in obstacles]
        self._open_row, self._open_key = unfinished, keys


def _pair_keys(id_a: NDArray[np.int64], id_b: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each pair, in the order of the first id and then the second."""
    return (id_a << _HALF) + (id_b + _MIDDLE)
