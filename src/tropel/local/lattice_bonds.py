"""Bonds between people of a lattice crowd: families keep together, followers keep to their leader's way.

A bond is a layer of its own for those it binds, worth most on a short line and less with the distance d from it:

    max(least, 1 - d / reach)^strength

For a family the line is a point, the centroid of its members. For followers it is the long axis of an ellipse on the
leader, which lies along the leader's heading; `reach` is its short semi-axis. (Section 9 of the paper names both as
future work: "a sink of values sloping in toward the centroid", "an ellipsoid filter attached to the leader, and sloping
in toward the major axis".) `least` is positive, so that a bond never vetoes a cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel

#: What a place out of reach is worth to those bound, at strength 1.
_LEAST = 0.05


class Bonds(NamedTuple):
    """Bonds, and who has which."""

    of: NDArray[np.int64]  #: (agents, 2): numbers of an agent's bonds, -1 for none; no rows where nobody has any
    line: NDArray[np.float64]  #: (bonds, 4): x0, y0, x1, y1 [m]
    reach: NDArray[np.float64]  #: (bonds,) [m]
    strength: NDArray[np.float64]  #: (bonds,)


def no_bonds() -> Bonds:
    return Bonds(np.empty((0, 2), dtype=np.int64), np.empty((0, 4)), np.empty(0), np.empty(0))


@inlined_kernel
def worth_of_bonds(i, x, y, bonds):
    """Logarithm of what the place (x, y) is worth to agent i by its bonds."""
    worth = 0.0
    for k in range(2):
        b = bonds.of[i, k]
        if b < 0:
            continue
        x0, y0 = bonds.line[b, 0], bonds.line[b, 1]
        ux, uy = bonds.line[b, 2] - x0, bonds.line[b, 3] - y0
        length2 = ux * ux + uy * uy
        t = min(max(((x - x0) * ux + (y - y0) * uy) / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
        away = math.sqrt((x - x0 - t * ux) ** 2 + (y - y0 - t * uy) ** 2)
        worth += bonds.strength[b] * math.log(max(1.0 - away / bonds.reach[b], _LEAST))
    return worth
