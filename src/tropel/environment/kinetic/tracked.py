"""A chosen part of a crowd: only these agents have neighbours; everybody may be one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState, Floats


def tracked_rows(groups: tuple[str, ...] | None, state: AgentState) -> NDArray[np.int64] | None:
    """Ascending rows of the agents of these groups; None if all agents are tracked."""
    if groups is None:
        return None
    numbers = [number for number, name in enumerate(state.group_names) if name in groups]
    return np.flatnonzero(np.isin(state.group, numbers))


def only_tracked(radius: Floats, rows: NDArray[np.int64] | None) -> Floats:
    """The radii of these rows; those of others are below zero, so that nobody is within them."""
    if rows is None:
        return radius
    tracked = np.full(len(radius), -1.0)
    tracked[rows] = radius[rows]
    return tracked
