"""The ground: the value of each cell to agents that decide where to step next.

This is "intelligence in the terrain" (Banerjee, Abukmail & Kraemer, SIMULATION 85, 2009, section 2): planners and
hazards write values, a lattice crowd reads them. The paper calls them information layers: a path-plan layer per goal,
and sub-layers. An agent steps to the neighbouring cell with the largest product of values. All values here are
logarithms, so that products become sums and nothing underflows. Minus infinity vetoes a cell.

A path plan covers the whole map, one per goal. Everything else is a `Filter`: a rectangle of cells, only where values
differ from 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.grid_moves import DIAGONAL, NO_PATH, bits_to_drop, shorten_lengths
from tropel.errors import GeometryError
from tropel.foundation.memory import require_memory
from tropel.world.raster import Raster

#: Querying the free memory is slow, so it is done only after filters have grown by this much [bytes].
_UNASKED = 1 << 26


@dataclass(frozen=True, kw_only=True, eq=False)
class Filter:
    """The value of the cells in a rectangle, as logarithms; outside it the filter changes nothing."""

    row: int  #: of the first cell of the rectangle
    column: int
    log_value: NDArray[np.float64]  #: (rows, columns): 0 does not matter, -inf vetoes
    group: int = -1  #: number of the group it applies to, -1 for all agents
    spares_inside: bool = False  #: agents on a vetoed cell are not affected (they push on out of congestion)


@dataclass(kw_only=True, eq=False)
class Ground:
    """The path plans and filters of a map."""

    raster: Raster
    moves: NDArray[np.uint8]  #: (ny, nx): bit m is set if move m of a cell is allowed
    log_gamma: float  #: logarithm of the discount per cell of path length
    #: (plans, ny, nx): path plans: path lengths, in units of `_kernels/grid_moves.py`
    units: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0, 0), dtype=np.int64))
    plan_of_goal: dict[int, int] = field(default_factory=dict)  #: the plan that leads to a goal
    filters: dict[str, Filter] = field(default_factory=dict)  #: filters by name
    longest_move: int = DIAGONAL  #: length of the most expensive move between two cells
    drawn: tuple[bytes, ...] = ()  #: the doors and obstacles that the raster shows (`what_is_drawn`)
    version: int = 0  #: changes whenever a filter does
    _short: NDArray[np.uint32] | None = None
    _filtered: int = 0  #: memory of all filters [bytes]
    _allowed: int = 0  #: memory they may take before free memory is queried again [bytes]

    @property
    def margin(self) -> int:
        """How many numbers `short_lengths` has before and after those of cells: a row, and a few next to a cell."""
        return self.units.shape[2] + 4

    def short_lengths(self) -> NDArray[np.uint32]:
        """The path plans as a crowd reads them (`_kernels/grid_moves.py`): flat, with a margin before and after.

        Kernels read the neighbours of a cell without checking whether they exist, which the margin makes safe.
        """
        if self._short is None or self._short.size != self.units.size + 2 * self.margin:
            self.renew_short_lengths()
        assert self._short is not None
        return self._short

    def renew_short_lengths(self, plans: Iterable[int] | None = None) -> None:
        """Copy what has changed in `units`: in these plans, or in all."""
        cells = self.units[0].size if len(self.units) else 0
        if self._short is None or self._short.size != self.units.size + 2 * self.margin or plans is None:
            self._short = np.full(self.units.size + 2 * self.margin, NO_PATH, dtype=np.uint32)
            plans = range(len(self.units))
        for plan in plans:
            first = self.margin + plan * cells
            shorten_lengths(self.units[plan].reshape(-1), self.dropped_bits, self._short[first : first + cells])

    @property
    def dropped_bits(self) -> int:
        """How many of the lowest bits of path lengths `short_lengths` leaves out."""
        return bits_to_drop(self.longest_move)

    def set_filter(self, name: str, new: Filter) -> None:
        """Add a filter, or replace the one of that name."""
        old = self.filters.get(name)
        total = self._filtered + new.log_value.nbytes - (0 if old is None else old.log_value.nbytes)
        if total > self._allowed:
            # A crowd reads filters from its own array, so that they are in memory twice.
            require_memory(
                float(total + _UNASKED),
                f"{len(self.filters) + 1} hazards and value maps on cells of {self.raster.cell:g} m",
                "use larger cells, smaller outer radii of hazards, or fewer of them",
                error=GeometryError,
            )
            self._allowed = total + _UNASKED
        self._filtered = total
        self.filters[name] = new
        self.version += 1

    def drop_filter(self, name: str) -> None:
        """Remove a filter, if it exists."""
        if (old := self.filters.pop(name, None)) is not None:
            self._filtered -= old.log_value.nbytes
            self.version += 1


def log_avoidance(
    distance: NDArray[np.float64], *, inner: float, outer: float, intensity: float
) -> NDArray[np.float64]:
    """Logarithm of the value of places at a distance from something to avoid (equation 4 of the paper).

    0 if d <= inner;   ((d - inner) / (outer - inner))^intensity if inner < d <= outer;   1 beyond
    """
    share = np.clip((distance - inner) / (outer - inner), 0.0, 1.0) if outer > inner else (distance > inner) * 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        graded = intensity * np.log(share)
    return np.where(distance <= inner, -np.inf, np.where(distance > outer, 0.0, graded))
