"""A chosen part of a crowd: only these agents have neighbours; everybody may be one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel.agents.state import AgentState


def tracked_rows(groups: tuple[str, ...] | None, state: AgentState) -> NDArray[np.int64] | None:
    """Ascending rows of the agents of these groups; None if all agents are tracked."""
    if groups is None:
        return None
    numbers = [number for number, name in enumerate(state.group_names) if name in groups]
    return np.flatnonzero(np.isin(state.group, numbers))


def spread_over_rows(lists: Csr, rows: NDArray[np.int64], count: int) -> Csr:
    """Lists of some rows, ascending, as lists of all rows; the other rows have empty ones."""
    length = np.zeros(count, dtype=np.int64)
    length[rows] = np.diff(lists.indptr)
    return Csr(np.concatenate([[0], np.cumsum(length)]), lists.indices)
