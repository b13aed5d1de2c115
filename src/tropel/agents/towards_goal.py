"""The direction to an agent's goal, as the crow flies: an assigned exit or target, or the nearest one."""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import nearest_image
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.predicates import inside_edges
from tropel._kernels.walls import nearest_on_segment
from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET
from tropel.world.goals import GoalArrays


@inlined_kernel
def _to_goal(i, position, goal, goals):
    """The offset from agent i to its goal, as the crow flies; zero if it is there or has none."""
    dim = position.shape[1]
    best = math.inf
    dx = dy = dz = 0.0
    if goal[i] >= 0:
        # User code may write a number into the column that belongs to no goal.
        first, last = np.int64(goal[i]), min(np.int64(goal[i]) + 1, np.int64(goals.is_exit.size))
    else:
        first, last = np.int64(0), goals.is_exit.size
    for g in range(first, last):
        if goal[i] < 0:
            # "Nearest" considers only usable goals of the wanted kind; an assigned goal is kept even when closed.
            wanted = 1 if goal[i] == NEAREST_EXIT else 0
            if goals.is_exit[g] != wanted or not goals.usable[g]:
                continue
            if goal[i] != NEAREST_EXIT and goal[i] != NEAREST_TARGET:
                continue
        if goals.is_exit[g]:
            if inside_edges(position[i, 0], position[i, 1], goals.edges, goals.edge_start[g], goals.edge_start[g + 1]):
                best = dx = dy = dz = 0.0
                continue
            for e in range(goals.approach_start[g], goals.approach_start[g + 1]):
                x0, y0 = goals.approach[e, 0], goals.approach[e, 1]
                x1, y1 = goals.approach[e, 2], goals.approach[e, 3]
                qx, qy = nearest_on_segment(position[i, 0], position[i, 1], x0, y0, x1, y1)
                away = math.sqrt((qx - position[i, 0]) ** 2 + (qy - position[i, 1]) ** 2)
                if away < best:
                    best = away
                    dx, dy, dz = qx - position[i, 0], qy - position[i, 1], 0.0
        else:
            ex = nearest_image(goals.position[g, 0] - position[i, 0], goals.period[0])
            ey = nearest_image(goals.position[g, 1] - position[i, 1], goals.period[1])
            ez = nearest_image(goals.position[g, 2] - position[i, 2], goals.period[2]) if dim == 3 else 0.0
            away = math.sqrt(ex * ex + ey * ey + ez * ez)
            if away < best:
                best = away
                dx, dy, dz = ex, ey, ez
                if away <= goals.radius[g]:
                    dx = dy = dz = 0.0
    return dx, dy, dz


@parallel_kernel
def towards_goal(position, goal, members, goals, out):
    """Write a unit vector straight to the goal, or zero, into the rows of `members`."""
    for k in numba.prange(members.size):
        i = members[k]
        dx, dy, dz = _to_goal(i, position, goal, goals)
        length = math.sqrt(dx * dx + dy * dy + dz * dz)
        scale = 1.0 / length if length > 0.0 else 0.0
        out[i, 0] = dx * scale
        out[i, 1] = dy * scale
        if position.shape[1] == 3:
            out[i, 2] = dz * scale


@kernel
def _write_offsets(position, goal, goals, out):
    for i in range(position.shape[0]):
        out[i, 0], out[i, 1], _ = _to_goal(i, position, goal, goals)


def offset_to_goal(position: NDArray[np.float64], goal: NDArray[np.int32], goals: GoalArrays) -> NDArray[np.float64]:
    """Offsets (N, 2) [m] from places in 2D to a point just inside the goal of each; zero for agents that arrived."""
    out = np.empty((len(position), 2))
    _write_offsets(position, goal, goals, out)
    return out
