"""Following pairs of agents from step to step: when they come near each other, touch, part and leave.

The path of an agent is the straight chord between its positions before and after each step, and all times are exact for
such paths. A pair is near while its centres are at most `distance` apart, and touching while the bodies are
(`TOUCH_TOLERANCE`). What happens between steps is this:

- agents that appear near others, or that an event puts there, begin an encounter at that moment ("placed");
- an encounter of an agent that has left, or was removed, ends at the end of the last step that it made ("gone");
- a pair that an event moves apart ends its encounter at that moment ("moved").

The dead stay where they are, and encounters with them go on. Agents that are removed between two steps are noticed when
the next step begins.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState
from tropel.broad_phase.pair_search import KnownPairs
from tropel.encounters.happenings import (
    BEGINNINGS,
    ENDS,
    ENTER,
    ENTERED,
    GOING_ON,
    GONE,
    LEAVE,
    LEFT,
    MOVED,
    PART,
    PLACED,
    TOUCH,
    EncounterEvents,
    EventCollector,
)
from tropel.encounters.passing import Passages, passages
from tropel.encounters.search import CandidateSearch
from tropel.errors import CheckpointError, ParameterError
from tropel.foundation.arguments import LARGEST_LENGTH, checked_arguments
from tropel.foundation.quantities import Quantity
from tropel.foundation.stored_arrays import taken
from tropel.recording.encounter_table import EncounterTable
from tropel.world import World

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Subscriber = Callable[[EncounterEvents], object]

#: How near agents have to come to be watched.
ENCOUNTER_DISTANCE = Quantity(
    name="distance", default=1.5, above=0.0, high=LARGEST_LENGTH, unit="m", about="between the centres of two agents"
)

#: Key of a pair: the lower id in the upper half, the other in the lower.
_HALF = 32
_MOST_IDS = 1 << 31

_LOG = np.dtype(
    [
        ("id_a", np.int64),
        ("id_b", np.int64),
        ("begin", np.float64),
        ("end", np.float64),
        ("closest", np.float64),
        ("closest_at", np.float64),
        ("touched", np.float64),
        ("touching", np.float64),
        ("began", np.int8),
        ("ended", np.int8),
    ]
)


@dataclass(frozen=True, kw_only=True)
class EncounterReport:
    """What a run's summary reports about encounters."""

    within: float  #: [m]
    count: int
    pairs: int  #: different pairs
    touched: int  #: how many of them touched


class _Subscribers(list[Subscriber]):
    """Functions to call; the copy of a simulation has none, as it has no observers."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _Subscribers:
        return _Subscribers()


class EncounterWatch:
    """Watches who comes within `distance` [m] of whom; `sim.watch_encounters` makes one."""

    def __init__(self, distance: float, world: World) -> None:
        if 2.0 * distance >= world.shortest_period:
            raise ParameterError(
                f"encounters cannot be watched within {distance:g} m where space repeats every "
                f"{world.shortest_period:g} m: the distance must be less than half of that, or agents would meet on "
                f"two sides at once"
            )
        self.distance = float(distance)
        self._search = CandidateSearch(self.distance)
        self._rows = np.empty(0, dtype=_LOG)
        self._count = 0
        # Encounters that go on: their keys, sorted, their rows in the log, and since when the bodies touch (or nan).
        self._open_key = np.empty(0, dtype=np.int64)
        self._open_row = np.empty(0, dtype=np.int64)
        self._open_touch = np.empty(0)
        self._now = 0.0  #: end of the last step that was watched [s]
        self._before: Floats | None = None  #: positions at the start of the step
        self._version = -1  #: of the agents when those that are gone were last looked for
        self._events = EventCollector()
        self._subscribers = _Subscribers()

    # Results ----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of encounters so far."""
        return self._count

    def table(self) -> EncounterTable:
        """A copy of all encounters so far."""
        rows = self._rows[: self._count].copy()
        touching = self._open_row[~np.isnan(self._open_touch)]
        rows["touching"][touching] += self._now - self._open_touch[~np.isnan(self._open_touch)]
        rows = rows[np.lexsort((rows["id_b"], rows["id_a"], rows["begin"]))]
        columns = {name: np.ascontiguousarray(rows[name]) for name in _LOG.names or ()}
        columns |= {"began": BEGINNINGS[rows["began"]], "ended": ENDS[rows["ended"]]}
        return EncounterTable(**columns, within=np.full(len(rows), self.distance))

    def report(self) -> EncounterReport:
        rows = self._rows[: self._count]
        keys = _pair_keys(rows["id_a"], rows["id_b"])
        return EncounterReport(
            within=self.distance,
            count=self._count,
            pairs=len(np.unique(keys)),
            touched=len(np.unique(keys[~np.isnan(rows["touched"])])),
        )

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write all encounters so far as text."""
        return self.table().to_csv(path)

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Write all encounters so far as Parquet."""
        return self.table().to_parquet(path)

    @checked_arguments
    def subscribe(self, function: Callable[[EncounterEvents], object]) -> None:
        """Call a function at the end of every step with its events, even if there are none.

        The function must change nothing in the simulation; an exception in it ends the run.
        """
        self._subscribers.append(function)

    @checked_arguments
    def unsubscribe(self, function: Callable[[EncounterEvents], object]) -> None:
        """Stop calling a function."""
        if function not in self._subscribers:
            raise ParameterError(f"{function!r} is not subscribed to these encounters")
        self._subscribers.remove(function)

    # Called by the simulation -----------------------------------------------------------------------------------

    def begin(self, state: AgentState, world: World, *, time: float) -> None:
        """A step begins; events have happened already."""
        self._close_gone(state, time)
        self._before = state.position.copy()

    def look(self, state: AgentState, world: World, *, step: int, dt: float, known: KnownPairs | None = None) -> None:
        """Follow all pairs through the step that has just been made, before anyone leaves.

        `known` may know which pairs came close.
        """
        self._now = (step + 1) * dt
        if self._before is None:  # the watch was made in the middle of the step
            return
        found = passages(
            self._search.find(state, self._before, world, known),
            before=self._before,
            after=state.position,
            radius=state.radius,
            period=world.period,
            distance=self.distance,
        )
        self._before = None
        self._note(state.id, found, step, dt)

    def finish(self, state: AgentState, *, time: float) -> None:
        """The step is over, and agents have left."""
        self._close_gone(state, time)
        if self._subscribers:
            events = self._events.take()
            for function in tuple(self._subscribers):
                function(events)

    # The log ----------------------------------------------------------------------------------------------------

    def _close_gone(self, state: AgentState, time: float) -> None:
        """End the encounters of agents that are no longer there."""
        if state.version == self._version:
            return
        self._version = state.version
        ids = np.stack([self._rows["id_a"][self._open_row], self._rows["id_b"][self._open_row]])
        gone = (state.row_of(ids.reshape(-1)) < 0).reshape(ids.shape)
        self._close(gone[0] | gone[1], time, GONE)

    def _close(self, chosen: NDArray[np.bool_], time: float, reason: int) -> None:
        """End some of the open encounters from outside of a step."""
        if not chosen.any():
            return
        rows, since = self._open_row[chosen], self._open_touch[chosen]
        touching = ~np.isnan(since)
        self._part(rows[touching], since[touching], np.full(int(touching.sum()), time))
        self._leave(rows, np.full(len(rows), time), reason)
        self._keep_open(self._open_key[~chosen], self._open_row[~chosen], self._open_touch[~chosen])

    def _part(self, rows: Ints, since: Floats, time: Floats) -> None:
        self._rows["touching"][rows] += time - since
        self._tell(PART, time, rows)

    def _leave(self, rows: Ints, time: Floats, reason: int) -> None:
        self._rows["end"][rows] = time
        self._rows["ended"][rows] = reason
        self._tell(LEAVE, time, rows, ENDS[self._rows["ended"][rows]])

    def _tell(self, kind: int, time: Floats, rows: Ints, how: NDArray[np.str_] | None = None) -> None:
        if self._subscribers:
            self._events.add(kind, time, self._rows["id_a"][rows], self._rows["id_b"][rows], how)

    def _keep_open(self, key: Ints, row: Ints, touch: Floats) -> None:
        self._open_key, self._open_row, self._open_touch = key, row, touch

    def _note(self, ids: Ints, found: Passages, step: int, dt: float) -> None:
        """Continue the encounters of pairs that were near already, begin new ones, and end those that are over."""
        one, other = ids[found.pair[:, 0]], ids[found.pair[:, 1]]
        id_a, id_b = np.minimum(one, other), np.maximum(one, other)
        keys = _pair_keys(id_a, id_b)
        # Sorted by ids, so that neither the order of the cells nor that of the rows matters.
        order = np.argsort(keys)
        keys, start = keys[order], step * dt

        def moment(share: Floats, chosen: Ints) -> Floats:
            """Shares of the step as times; only those of the few pairs to which something happens."""
            return np.asarray((step + share[order[chosen]]) * dt)

        closest = found.closest[order]
        near_at_start, near_at_end = found.near_at_start[order], found.near_at_end[order]
        touching_at_start, touching_at_end = found.touching_at_start[order], found.touching_at_end[order]

        place = np.searchsorted(self._open_key, keys)
        known = place < len(self._open_key)
        known[known] = self._open_key[place[known]] == keys[known]
        goes_on = known & near_at_start
        lost = np.ones(len(self._open_key), dtype=bool)
        lost[place[goes_on]] = False
        rows, since = np.empty(len(keys), dtype=np.int64), np.full(len(keys), np.nan)
        rows[goes_on], since[goes_on] = self._open_row[place[goes_on]], self._open_touch[place[goes_on]]
        self._close(lost, start, MOVED)

        closer = np.flatnonzero(goes_on)
        closer = closer[closest[closer] < self._rows["closest"][rows[closer]]]
        self._rows["closest"][rows[closer]] = closest[closer]
        self._rows["closest_at"][rows[closer]] = moment(found.when, closer)

        fresh = np.flatnonzero(~goes_on)
        rows[fresh] = np.arange(self._count, self._count + len(fresh))
        begin = moment(found.first, fresh)
        self._append(
            id_a=id_a[order[fresh]],
            id_b=id_b[order[fresh]],
            begin=begin,
            end=np.nan,
            closest=closest[fresh],
            closest_at=moment(found.when, fresh),
            touched=np.nan,
            touching=0.0,
            began=np.where(near_at_start[fresh], PLACED, ENTERED),
            ended=GOING_ON,
        )
        self._tell(ENTER, begin, rows[fresh], BEGINNINGS[self._rows["began"][rows[fresh]]])

        # An event may have moved bodies apart, or made them smaller, while the pair stayed near.
        parted = np.flatnonzero(~np.isnan(since) & ~touching_at_start)
        self._part(rows[parted], since[parted], np.full(len(parted), start))
        since[parted] = np.nan
        touches = np.flatnonzero(np.isnan(since) & ~np.isnan(found.first_touch)[order])
        since[touches] = moment(found.first_touch, touches)
        untouched = touches[np.isnan(self._rows["touched"][rows[touches]])]
        self._rows["touched"][rows[untouched]] = since[untouched]
        self._tell(TOUCH, since[touches], rows[touches])
        parts = np.flatnonzero(~np.isnan(since) & ~touching_at_end)
        self._part(rows[parts], since[parts], moment(found.last_touch, parts))
        since[parts] = np.nan
        leaves = np.flatnonzero(~near_at_end)
        self._leave(rows[leaves], moment(found.last, leaves), LEFT)
        self._keep_open(keys[near_at_end], rows[near_at_end], since[near_at_end])

    def _append(self, *, id_a: Ints, **columns: Any) -> None:
        end = self._count + len(id_a)
        if end > len(self._rows):
            grown = np.zeros(2 * end, dtype=_LOG)
            grown[: self._count] = self._rows[: self._count]
            self._rows = grown
        for name, values in {"id_a": id_a, **columns}.items():
            self._rows[name][self._count : end] = values
        self._count = end

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """The log, and which of its encounters go on."""
        return {
            "distance": np.array(self.distance),
            "now": np.array(self._now),
            "log": self._rows[: self._count].copy(),
            "open": self._open_row.copy(),
            "touching_since": self._open_touch.copy(),
        }

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned; subscribers stay."""
        if set(stored) != set(self.state()) or stored["log"].dtype != _LOG or stored["log"].ndim != 1:
            raise CheckpointError("the encounters in the checkpoint are not a log of this version of tropel")
        rows = stored["log"]
        columns = {name: rows[name] for name in _LOG.names or ()}
        for name, low, high in (
            ("id_a", 0, _MOST_IDS - 1),
            ("id_b", 0, _MOST_IDS - 1),
            ("began", 0, len(BEGINNINGS) - 1),
            ("ended", 0, len(ENDS) - 1),
        ):
            taken(columns, name, dtype=_LOG[name], shape=rows.shape, low=low, high=high)
        for name in ("begin", "closest", "closest_at", "touching"):
            taken(columns, name, dtype="float64", shape=rows.shape)
        unfinished = taken(stored, "open", dtype="int64", shape=(None,), low=0, high=len(rows) - 1)
        keys = _pair_keys(rows["id_a"][unfinished], rows["id_b"][unfinished])
        if (np.diff(keys) <= 0).any():
            raise CheckpointError("the encounters that go on in the checkpoint are out of order")
        since = taken(stored, "touching_since", dtype="float64", shape=unfinished.shape, finite=False)
        self._now = float(taken(stored, "now", dtype="float64", shape=()))
        self._rows, self._count = rows.copy(), len(rows)
        self._keep_open(keys, unfinished, since)
        self._before, self._version = None, -1
        self._events = EventCollector()


def stored_distance(stored: Mapping[str, NDArray[Any]]) -> float:
    """The distance [m] of the watch that wrote these arrays."""
    return float(taken(stored, "distance", dtype="float64", shape=(), low=1e-300, high=LARGEST_LENGTH))


def _pair_keys(id_a: Ints, id_b: Ints) -> Ints:
    """One number for each pair, in the order of the first id and then the second."""
    return (id_a << _HALF) + id_b
