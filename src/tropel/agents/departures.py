"""Who has arrived at a goal that takes people out: an open exit, or a target that absorbs."""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import parallel_kernel
from tropel._kernels.polygons import inside_edges
from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, AgentState
from tropel.world import World

STAYS = -1


@parallel_kernel
def _arrived(position, goal, dead, goals, out):
    """Write through which goal everybody leaves; returns how many do."""
    dim = position.shape[1]
    leaving = 0
    for i in numba.prange(position.shape[0]):
        out[i] = STAYS
        if dead[i]:
            continue
        for g in range(goals.is_exit.size):
            if not (goals.absorbs[g] and goals.usable[g]):
                continue
            nearest = NEAREST_EXIT if goals.is_exit[g] else NEAREST_TARGET
            if goal[i] != g and goal[i] != nearest:
                continue
            if goals.is_exit[g]:
                first, last = goals.edge_start[g], goals.edge_start[g + 1]
                here = inside_edges(position[i, 0], position[i, 1], goals.edges, first, last)
            else:
                away2 = 0.0
                for axis in range(dim):
                    away2 += (position[i, axis] - goals.position[g, axis]) ** 2
                here = math.sqrt(away2) <= goals.radius[g]
            if here:
                out[i] = g
                leaving += 1
                break
    return leaving


def arrived(state: AgentState, world: World) -> NDArray[np.int32] | None:
    """For each agent the number of the goal through which it leaves now, or STAYS; None when nobody leaves.

    The dead leave nowhere.
    """
    out = np.empty(len(state), dtype=np.int32)
    return out if _arrived(state.position, state.goal, state.dead, world.goals(), out) else None
