"""Congestion: bottlenecks are monitored during a run, and avoided while they are full.

Banerjee, Abukmail & Kraemer, SIMULATION 85, 2009, sections 6.2 and 6.3. The agents in a square around each bottleneck
are counted every few frames, for a part of the bottlenecks in each frame. Above a threshold T_hi a congestion is placed
there: a dynamic obstacle with the size of the square as its inner radius. Its influence (equation 4 with a = 2, not
clipped by walls) reaches as far as agents see. It is removed when the count falls below T_lo. Agents inside push on.

Where two squares overlap, a queue at a narrow door raises a false alarm at the wide door next to it (figure 10). So
thresholds here are persons per metre of the passage's width, as the paper proposes. For a passage wider than the
square, they are per metre of the part inside it. Plain counts as in the paper are also possible (`scaled=False`).

The paper's obstacle makes evacuations longer. So by default there is none: agents plan around the wait (`detours.py`),
and only those in the queue count, not those who have passed it. `replan=False` is the paper's rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.contracts.offers import CountedBottleneck, OfferedCongestion
from tropel.errors import CheckpointError, ParameterError, named_parameters
from tropel.foundation import quantities
from tropel.foundation.stored_arrays import taken
from tropel.planning.path_plans.bottlenecks import Bottleneck
from tropel.world.ground import Filter, Ground, log_avoidance
from tropel.world.raster import Raster


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Congestion:
    """When a bottleneck counts as congested, and how strongly agents then avoid it."""

    high: float = quantities.number(
        10.0, above=0.0, about="a congestion begins above this (T_hi) [persons per metre of width, or persons]"
    )
    low: float = quantities.number(5.0, low=0.0, about="a congestion ends below this (T_lo)")
    scaled: bool = True  #: thresholds are per metre of a bottleneck's width
    replan: bool = True  #: agents plan around the wait; if false, they are repelled, as in the paper
    flow: float = quantities.number(
        1.9, above=0.0, unit="1/(m s)", about="people that pass a congested bottleneck, for the wait there"
    )
    area: float = quantities.number(
        4.0, above=0.0, unit="m", about="side of the square that is monitored around each bottleneck"
    )
    every: int = quantities.number(10, whole=True, low=1, about="steps between two counts at the same bottleneck")
    intensity: float = quantities.number(2.0, above=0.0, about="a in equation 4; for replan = false")
    reach: float = quantities.number(
        8.0, above=1.0, about="ratio of outer to inner radius of a congestion; for replan = false"
    )

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ParameterError(
                f"Congestion: low must lie below high, but low = {self.low!r} and high = {self.high!r}; a congestion "
                f"begins above high and ends below low"
            )

    def thresholds(self, width: float) -> tuple[float, float]:
        """T_hi and T_lo [persons] at a bottleneck of this width [m]."""
        seen = min(width, self.area) if self.scaled else 1.0
        return self.high * seen, self.low * seen


@dataclass(frozen=True, kw_only=True, eq=False)
class Looks:
    """The counts at one bottleneck over time."""

    steps: NDArray[np.int64]
    counts: NDArray[np.int64]  #: agents in the square
    congested: NDArray[np.bool_]  #: as decided by that count


#: Bottlenecks, agents around each, whether each is congested, and all counts.
Watched = tuple[tuple[Bottleneck, ...], NDArray[np.int64], NDArray[np.bool_], list[tuple[int, ...]]]


class CongestionWatch:
    """Counts agents around bottlenecks and keeps the congestion filters of a ground up to date.

    With `keep_history` every count is stored (`looks`). Each takes about 32 bytes, so this is off by default.
    """

    def __init__(
        self,
        terrain: Ground,
        bottlenecks: Sequence[Bottleneck],
        parameters: Congestion | None = None,
        *,
        keep_history: bool = False,
    ) -> None:
        self.parameters = parameters or Congestion()
        self.keep_history = bool(keep_history)
        self._terrain = terrain
        self._bottlenecks = tuple(bottlenecks)
        self._counts = np.zeros(len(self._bottlenecks), dtype=np.int64)
        self._congested = np.zeros(len(self._bottlenecks), dtype=np.bool_)
        self._history: list[tuple[int, ...]] = []
        #: The cells that are counted at each bottleneck, by number; None for those of its square.
        self.queues: list[NDArray[np.int64]] | None = None

    # Queries ----------------------------------------------------------------------------------------------------

    @property
    def bottlenecks(self) -> tuple[Bottleneck, ...]:
        return self._bottlenecks

    @property
    def counts(self) -> NDArray[np.int64]:
        """Agents around each bottleneck at its last count."""
        return self._counts.copy()

    @property
    def congested(self) -> NDArray[np.bool_]:
        """Which bottlenecks are congested."""
        return self._congested.copy()

    def thresholds(self, bottleneck: Bottleneck) -> tuple[float, float]:
        """T_hi and T_lo [persons] at a bottleneck."""
        return self.parameters.thresholds(bottleneck.width)

    def waits(self) -> list[int]:
        """How long newcomers wait at each bottleneck [s]; zero where it is not congested."""
        width = np.array([min(each.width, self.parameters.area) for each in self._bottlenecks])
        waits = np.rint(self._counts / (self.parameters.flow * width)) * self._congested
        return [int(wait) for wait in waits.tolist()]

    def looks(self, bottleneck: Bottleneck) -> Looks:
        """All counts at a bottleneck."""
        if not self.keep_history:
            raise ParameterError("this CongestionWatch stores no counts; create it with keep_history=True")
        told = np.array(self._history, dtype=np.int64).reshape(-1, 5)
        own = told[(told[:, 1] == bottleneck.cell[0]) & (told[:, 2] == bottleneck.cell[1])]
        return Looks(steps=own[:, 0], counts=own[:, 3], congested=own[:, 4] != 0)

    def offers(self) -> tuple[object, ...]:
        return (OfferedCongestion(raster=self._raster, counted=self._counted, filters=self._filters),)

    def _raster(self) -> Raster:
        return self._terrain.raster

    def _counted(self) -> list[CountedBottleneck]:
        return [
            CountedBottleneck(
                bottleneck=bottleneck,
                count=int(count),
                full=self.thresholds(bottleneck)[0],
                congested=bool(congested),
                area=self.parameters.area,
            )
            for bottleneck, count, congested in zip(self._bottlenecks, self._counts, self._congested, strict=True)
        ]

    def _filters(self) -> list[Filter]:
        filters = self._terrain.filters
        names = {filter_name(bottleneck) for bottleneck in self._bottlenecks}
        return [filters[name] for name in sorted(names & filters.keys())]

    # Calls from a planner ---------------------------------------------------------------------------------------

    def is_due(self, step: int) -> bool:
        """Whether any bottleneck is counted in this step."""
        return step % self.parameters.every < len(self._bottlenecks)

    def look(self, step: int, occupied: NDArray[Any], dead: NDArray[Any] | None = None) -> None:
        """Count at the bottlenecks that are due, and place or remove congestions.

        `occupied` (ny, nx) is nonzero in cells with an agent. Agents that will never move again are not a congestion:
        `dead` is nonzero in their cells.
        """
        shape = self._terrain.raster.shape
        for name, cells in (("occupied", occupied), ("dead", dead)):
            if cells is not None and cells.shape != shape:
                raise ParameterError(f"CongestionWatch: {name} must be cells {shape}, not {cells.shape}")
        every = self.parameters.every
        for number in range(step % every, len(self._bottlenecks), every):
            bottleneck = self._bottlenecks[number]
            count = self._count_at(number, occupied)
            if dead is not None:
                count -= self._count_at(number, dead)
            self._counts[number] = count
            high, low = self.thresholds(bottleneck)
            was = bool(self._congested[number])
            now = count > high or (was and count >= low)
            if now != was:
                self._congested[number] = now
                self._show(number)
            if self.keep_history:
                self._history.append((step, *bottleneck.cell, count, int(now)))

    def _count_at(self, number: int, cells: NDArray[Any]) -> int:
        if self.queues is not None:
            return int(np.count_nonzero(cells.reshape(-1)[self.queues[number]]))
        return int(np.count_nonzero(cells[_square(self._bottlenecks[number], self.parameters.area, self._raster())]))

    def replan(self, terrain: Ground, bottlenecks: Sequence[Bottleneck]) -> None:
        """Switch to the bottlenecks of another plan. Those in the same cell stay as congested as they are."""
        known = {each.cell: number for number, each in enumerate(self._bottlenecks)}
        self._clear()
        before, counts, congested = [known.get(each.cell) for each in bottlenecks], self._counts, self._congested
        self._terrain, self.queues = terrain, None
        self._bottlenecks = tuple(bottlenecks)
        self._counts = np.array([0 if k is None else counts[k] for k in before], dtype=np.int64)
        self._congested = np.array([k is not None and congested[k] for k in before], dtype=np.bool_)
        self._show_all()

    def rest(self) -> None:
        """Remove all congestions; the next counts find them again."""
        self._clear()
        self._congested[:] = False

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the next count depends on."""
        return {
            "bottlenecks": np.array([_row(each) for each in self._bottlenecks]).reshape(-1, 9),
            "counts": self._counts.copy(),
            "congested": self._congested.copy(),
            "history": np.array(self._history, dtype=np.int64).reshape(-1, 5),
        }

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        """Go back to a stored state, and publish its congestions."""
        self.put_back(self.read(stored))

    def read(self, stored: Mapping[str, NDArray[Any]]) -> Watched:
        """What `state` returned, checked: the bottlenecks, their last counts, and all counts over time."""
        rows = taken(stored, "bottlenecks", dtype="float64", shape=(None, 9), finite=False)
        count = len(rows)
        # An open place has an infinite width, and its passage has no ends.
        if not np.isfinite(rows[:, :4]).all() or not (rows[:, 4] >= 0.0).all() or np.isinf(rows[:, 5:]).any():
            raise CheckpointError("'bottlenecks' in it must be cells, places and widths")
        bottlenecks = tuple(_bottleneck(row) for row in rows.tolist())
        ny, nx = self._terrain.raster.shape
        if any(not (0 <= each.cell[0] < ny and 0 <= each.cell[1] < nx) for each in bottlenecks):
            raise CheckpointError(
                f"the checkpoint has bottlenecks outside the {ny} × {nx} cells of this map; resume with the scene "
                "and the cell size that it was made with"
            )
        history = taken(stored, "history", dtype="int64", shape=(None, 5))
        return (
            bottlenecks,
            taken(stored, "counts", dtype="int64", shape=(count,)),
            taken(stored, "congested", dtype="bool", shape=(count,)),
            [tuple(row) for row in history.tolist()],
        )

    def put_back(self, watched: Watched) -> None:
        """Go back to what was read, and publish its congestions."""
        self._clear()
        self._bottlenecks, self._counts, self._congested, self._history = watched
        self.queues = None
        self._show_all()

    # Filters ----------------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        for bottleneck in self._bottlenecks:
            self._terrain.drop_filter(filter_name(bottleneck))

    def _show_all(self) -> None:
        for number in np.flatnonzero(self._congested).tolist():
            self._show(number)

    def _show(self, number: int) -> None:
        bottleneck = self._bottlenecks[number]
        if self._congested[number] and not self.parameters.replan:
            new = congestion_filter(bottleneck, self.parameters, self._terrain.raster)
            self._terrain.set_filter(filter_name(bottleneck), new)
        else:
            self._terrain.drop_filter(filter_name(bottleneck))


def filter_name(bottleneck: Bottleneck) -> str:
    """The name of the filter of a congestion on the ground."""
    row, column = bottleneck.cell
    return f"congestion [{row}, {column}]"


def congestion_filter(bottleneck: Bottleneck, parameters: Congestion, raster: Raster) -> Filter:
    """The filter of a congestion on the cells around a bottleneck; walls do not clip it."""
    inner = 0.5 * parameters.area
    outer = parameters.reach * inner
    x, y = bottleneck.position
    low = raster.index_of([x - outer, y - outer])
    high = raster.index_of([x + outer, y + outer]) + 1
    rows, columns = np.arange(low[0], high[0]), np.arange(low[1], high[1])
    centre_y = raster.origin[1] + (rows + 0.5) * raster.cell
    centre_x = raster.origin[0] + (columns + 0.5) * raster.cell
    distance = np.sqrt((centre_x[None, :] - x) ** 2 + (centre_y[:, None] - y) ** 2)
    value = log_avoidance(distance, inner=inner, outer=outer, intensity=parameters.intensity)
    return Filter(row=int(low[0]), column=int(low[1]), log_value=value, spares_inside=True)


def _square(bottleneck: Bottleneck, area: float, raster: Raster) -> tuple[slice, slice]:
    """The cells that are monitored around a bottleneck."""
    side = max(round(area / raster.cell), 1)
    first, left = (max(k - side // 2, 0) for k in bottleneck.cell)
    last, right = (k - side // 2 + side for k in bottleneck.cell)
    return slice(first, last), slice(left, right)


def _row(bottleneck: Bottleneck) -> list[float]:
    """A bottleneck as nine numbers."""
    ends = bottleneck.passage or ((math.nan, math.nan), (math.nan, math.nan))
    return [*bottleneck.cell, *bottleneck.position, bottleneck.width, *ends[0], *ends[1]]


def _bottleneck(row: Sequence[float]) -> Bottleneck:
    passage = None if math.isnan(row[5]) else ((row[5], row[6]), (row[7], row[8]))
    return Bottleneck(cell=(int(row[0]), int(row[1])), position=(row[2], row[3]), width=row[4], passage=passage)
