"""A lattice crowd as one would write it with NumPy alone: the same decision, for the benchmark to compare with.

A straightforward frame of the paper: occupancy and its influence over the whole map, the best of eight cells by the
product of layers, random ties and random winners. Everybody moves one cell a frame, straight or diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_STEPS = np.array([(0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)])


class NumpyLattice:
    """Agents on cells (row, column) with a goal each, and a layer of values per goal with a border of vetoed cells."""

    def __init__(
        self, cells: NDArray[np.int64], goal: NDArray[np.int64], layers: NDArray[np.float64], seed: int
    ) -> None:
        self.cells = cells + 1
        self.goal = goal
        #: Logarithms, -inf on the border.
        self.layers = np.pad(layers, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        self.rng = np.random.default_rng(seed)

    def frame(self) -> int:
        """Let everybody decide once; returns how many moved."""
        occupied = np.zeros(self.layers.shape[1:], dtype=np.int64)
        occupied[self.cells[:, 0], self.cells[:, 1]] = 1
        around = np.zeros_like(occupied)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                around += np.roll(occupied, (dy, dx), axis=(0, 1))
        candidates = self.cells[:, None, :] + _STEPS
        rows, columns = candidates[..., 0], candidates[..., 1]
        worth = self.layers[self.goal[:, None], rows, columns] + np.log(0.5) * around[rows, columns]
        worth[occupied[rows, columns] == 1] = -np.inf
        best = worth.max(axis=1, keepdims=True)
        tied = np.where(worth == best, self.rng.random(worth.shape), -1.0)
        choice = tied.argmax(axis=1)
        wanted = candidates[np.arange(len(choice)), choice]
        number = wanted[:, 0] * len(occupied[0]) + wanted[:, 1]
        order = np.lexsort((self.rng.random(len(number)), number))
        first = np.append(True, np.diff(number[order]) != 0)
        goes = np.zeros(len(order), dtype=np.bool_)
        goes[order[first]] = True
        goes &= worth.max(axis=1) > -np.inf
        self.cells[goes] = wanted[goes]
        return int(goes.sum())
