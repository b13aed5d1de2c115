"""Who dies: whoever stands within the inner radius of a deadly hazard."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.periodic import nearest_image
from tropel.agents.state import AgentState
from tropel.world import World


@kernel
def _note_killed(position, dead, centre, reach, period, out):
    """Write whom hazards kill now; returns how many these are."""
    found = 0
    for i in range(position.shape[0]):
        out[i] = False
        if dead[i]:
            continue
        for h in range(reach.size):
            away2 = 0.0
            for axis in range(position.shape[1]):
                away2 += nearest_image(position[i, axis] - centre[h, axis], period[axis]) ** 2
            if away2 <= reach[h] * reach[h]:
                out[i] = True
                found += 1
                break
    return found


def killed_now(state: AgentState, world: World) -> NDArray[np.int64] | None:
    """Rows of the living who are within the inner radius of a deadly hazard; None when nobody is."""
    rows = world.hazards.rows_where("deadly") if len(world.hazards) else ()
    if not len(rows):
        return None
    out = np.empty(len(state), dtype=np.bool_)
    hazards = world.hazards
    found = _note_killed(state.position, state.dead, hazards.position[rows], hazards.inner[rows], world.period, out)
    return np.flatnonzero(out) if found else None
