"""Formations: the place of each member relative to its commander, as metres ahead and to the left.

    file      one behind the other              3 2 1 C
    column    two abreast, the commander ahead  4 2
                                                    C
                                                3 1
    line      side by side                      from left to right: … 3 1 C 2 4 …
    wedge     a V with the commander at its tip

Where walls leave no room for it, as in doorways, members walk in file (`local/habits/keep_formation.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel.agents.squads.squad import Formation


def slots(formation: Formation, count: int, spacing: float) -> NDArray[np.float64]:
    """The places of the members (count, 2), the commander not included, in the order of their ids."""
    number = np.arange(count)
    row, side = number // 2 + 1, np.where(number % 2 == 0, 1.0, -1.0)
    if formation == "file":
        ahead, left = -(number + 1.0), np.zeros(count)
    elif formation == "column":
        ahead, left = -row.astype(np.float64), 0.5 * side
    elif formation == "line":
        ahead, left = np.zeros(count), side * row
    else:
        ahead, left = -row.astype(np.float64), side * row
    return spacing * np.stack([ahead, left], axis=1)
