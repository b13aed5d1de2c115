"""Whom an agent knows of, by definition: every pair and every wall is tested. For displays and checks.

An agent is cut off from another one in its disk if a wall with both ends outside of the disk is between them (LAYERS
§5.1). The other one is hidden from it if any wall is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.predicates import segments_touch
from tropel.agents.state import Floats


@kernel
def _is_between(x, y, px, py, radius, any_wall, walls, found):
    """For each of the places p, whether a wall is in between; only walls with both ends outside, unless `any_wall`."""
    limit = radius * radius
    for wall in range(walls.shape[0]):
        ax, ay, bx, by = walls[wall, 0], walls[wall, 1], walls[wall, 2], walls[wall, 3]
        inside = (ax - x) * (ax - x) + (ay - y) * (ay - y) <= limit
        inside |= (bx - x) * (bx - x) + (by - y) * (by - y) <= limit
        if any_wall or not inside:
            for k in range(px.size):
                found[k] |= segments_touch(x, y, px[k], py[k], ax, ay, bx, by)


def hidden_by(here: Floats, others: Floats, walls: Floats) -> NDArray[np.bool_]:
    """Which of the others (K, 2) are behind any of these walls (W, 4)."""
    return _between(here, others, 0.0, True, walls)


def cut_off_by(here: Floats, others: Floats, radius: float, walls: Floats) -> NDArray[np.bool_]:
    """Which of the others (K, 2) are behind a wall that has both ends outside of the disk."""
    return _between(here, others, radius, False, walls)


def _between(here: Floats, others: Floats, radius: float, any_wall: bool, walls: Floats) -> NDArray[np.bool_]:
    found = np.zeros(len(others), dtype=np.bool_)
    x, y = (np.ascontiguousarray(others[:, axis]) for axis in range(2))
    _is_between(float(here[0]), float(here[1]), x, y, float(radius), any_wall, np.ascontiguousarray(walls), found)
    return found
