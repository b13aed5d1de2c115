"""Headways: a cell stays empty for a while after an agent has left it, so that crowds flow like people.

People keep a time gap to those ahead. Without it a queue on cells closes up at once, and doors let too many pass. The
time is given for 0.4 m of width, and a cell as wide as w waits for its part of it:

    (headway + 0.4 m / 1.34 m/s) · 0.4 m / w - cell / 1.34 m/s

The second term is the time that an agent itself needs to cross the cell, so the flow over a cell is proportional to w.
That is the width of the cell, times its share of what a wall cuts off next to it (`widths.py`).

A part of the headway is random, with an exponential distribution. It makes speed fall gradually with density, as
Weidmann's curve does. With a constant headway people walk freely up to 1.2 per square metre and then slow down at once.

Calibrated by measuring (docs/measurements.md). Friction at conflicts (Kirchner, Nishinari & Schadschneider, Physical
Review E 67, 2003), where with some probability none of those that want a cell moves, was tried and not taken: there are
too few conflicts. Nor do agents look for another cell while one is closed: then they spread sideways, and dense crowds
stand still.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import CheckpointError
from tropel.foundation.stored_arrays import taken
from tropel.local.lattice.cells import Headways
from tropel.local.lattice.widths import width_shares
from tropel.world import World
from tropel.world.raster import Raster

#: The width [m] that a headway is given for, and the speed [m/s] of an agent that crosses it.
_WIDTH, _SPEED = 0.4, 1.34


class CellHeadways:
    """The headways of all cells, and how long those that agents have left stay closed."""

    def __init__(self, headway: float, spread: float) -> None:
        self._headway, self._spread = headway, spread
        self.begin(0)

    def begin(self, cells: int) -> None:
        """Open all cells; there are this many with those of the border."""
        self._closed_until = np.zeros(cells if self._headway > 0.0 else 0, dtype=np.int64)
        self._raster: Raster | None = None
        self._seconds = np.empty(0)

    def at(self, raster: Raster, world: World) -> Headways:
        """The headways as kernels read them, computed again only after the raster has changed."""
        if self._headway > 0.0 and raster is not self._raster:
            lane = (self._headway + _WIDTH / _SPEED) * _WIDTH / (raster.cell * width_shares(raster, world))
            self._seconds = np.maximum(lane - raster.cell / _SPEED, 0.0)
            self._raster = raster
        return Headways(self._closed_until, self._seconds, self._spread)

    def state(self) -> dict[str, NDArray[Any]]:
        """The cells that have been closed, and until when."""
        if self._headway == 0.0:
            return {}
        cells = np.flatnonzero(self._closed_until)
        return {"closed_cells": np.column_stack([cells, self._closed_until[cells]])}

    def read(self, stored: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """Until when each cell is closed, from what `state` returned."""
        closed_until = np.zeros_like(self._closed_until)
        if self._headway > 0.0:
            closed = taken(stored, "closed_cells", dtype="int64", shape=(None, 2), low=0)
            if (closed[:, 0] >= closed_until.size).any():
                raise CheckpointError(
                    "'closed_cells' in it has cells outside this map; resume with the scene and the cell size that it "
                    "was made with"
                )
            closed_until[closed[:, 0]] = closed[:, 1]
        return closed_until

    def put_back(self, closed_until: NDArray[np.int64]) -> None:
        self._closed_until = closed_until
