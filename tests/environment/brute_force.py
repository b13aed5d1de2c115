"""An environment that compares everybody with everybody, in plain NumPy: it knows no cells and no kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel.agents.state import Floats
from tropel.contracts import Environment, EnvironmentDeclaration, Moment, Near
from tropel.contracts.near import as_lists


class BruteForce(Environment):
    """Who is within the radius is near."""

    declares = EnvironmentDeclaration(periodic_space=True)

    def sense(self, moment: Moment) -> Near:
        return _Compared(moment)


class _Compared(Near):
    def lists(self, radius: Floats) -> Csr:
        return as_lists([self._within(row, reach) for row, reach in enumerate(radius.tolist())])

    def _within(self, row: int, reach: float) -> NDArray[np.int64]:
        offset = self.state.position - self.state.position[row]
        for axis, period in enumerate(self.world.period):
            if period > 0.0:
                offset[:, axis] -= period * np.round(offset[:, axis] / period)
        # Summed axis by axis, which is ten times as fast as a sum along the second axis.
        away2 = offset[:, 0] ** 2
        for axis in range(1, offset.shape[1]):
            away2 += offset[:, axis] ** 2
        return np.flatnonzero(away2 <= reach * reach)
