"""Pairs of agents that came close in a step, from lists of who is near.

Two agents no further apart than the sum of their extents are within twice the larger extent of each other. So the one
with the larger extent has the other on its list if the list reaches that far, and nobody has to look further because of
an agent that jumps. Extents change in every step; lists hold for many only if their radii do not. So a radius is kept
while it is long enough and not much too long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Ragged
from tropel._kernels.compile import kernel
from tropel.agents.state import Floats

#: A radius is at least this times, at first so many times and at most so many times what is needed.
_LEAST, _FIRST, _MOST = 1.01, 1.4, 3.0


class SteadyRadii:
    """Radii by the slot of an agent, each the same for many steps."""

    def __init__(self) -> None:
        self._radius: Floats = np.zeros(0)

    def radii(self, slots: NDArray[np.integer], extent: Floats, room: int) -> Floats:
        """For the agents in these slots, out of so many, radii that are long enough for their extents [m]."""
        if len(self._radius) != room:
            self._radius = np.zeros(room)
        radius, needed = self._radius[slots], 2.0 * extent
        wrong = ~((_LEAST * needed <= radius) & (radius <= _MOST * needed))
        radius[wrong] = _FIRST * needed[wrong]
        self._radius[slots] = radius
        return radius


@kernel
def _write_pairs(lists, position, radius, extent, pairs, fill):
    """Count the pairs whose extents reach each other, or write them: each once, also if both have the other listed."""
    count = 0
    for i in range(position.shape[0]):
        for k in range(lists.start[i], lists.start[i] + lists.length[i]):
            j = lists.items[k]
            away2 = 0.0
            for axis in range(position.shape[1]):
                away = position[i, axis] - position[j, axis]
                away2 += away * away
            reach = extent[i] + extent[j]
            if away2 <= reach * reach and (i < j or not away2 <= radius[j] * radius[j]):
                if fill:
                    pairs[count, 0], pairs[count, 1] = i, j
                count += 1
    return count


def pairs_of(lists: Ragged, position: Floats, radius: Floats, extent: Floats) -> NDArray[np.uint32]:
    """(P, 2): pairs of rows whose extents reach each other, from lists of everybody within the radii."""
    none = np.empty((0, 2), dtype=np.uint32)
    count = _write_pairs(lists, position, radius, extent, none, False)
    pairs = np.empty((count, 2), dtype=np.uint32)
    _write_pairs(lists, position, radius, extent, pairs, True)
    return pairs
