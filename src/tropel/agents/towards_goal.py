"""The direction to an agent's goal, as the crow flies: an assigned place or point, or the nearest exit or target."""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import nearest_image
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.predicates import inside_edges
from tropel._kernels.walls import nearest_on_segment
from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, POINT, AgentState
from tropel.world.goals import GoalArrays


@inlined_kernel
def to_box(x, y, z, goals, g):
    """The offset from a point to the middle of a box in space; zero if it is there."""
    return (
        _to_interval(x, goals.low[g, 0], goals.high[g, 0]),
        _to_interval(y, goals.low[g, 1], goals.high[g, 1]),
        _to_interval(z, goals.low[g, 2], goals.high[g, 2]),
    )


@inlined_kernel
def _to_interval(x, low, high):
    margin = 0.25 * (high - low)
    return min(max(x, low + margin), high - margin) - x


@inlined_kernel
def _to_point(i, position, x, y, z, goals):
    """The offset from agent i to a point, by the shortest path, and its length."""
    ex = nearest_image(x - position[i, 0], goals.period[0])
    ey = nearest_image(y - position[i, 1], goals.period[1])
    ez = nearest_image(z - position[i, 2], goals.period[2]) if position.shape[1] == 3 else 0.0
    return ex, ey, ez, math.sqrt(ex * ex + ey * ey + ez * ez)


@inlined_kernel
def is_in_outline(x, y, radius, goals, g):
    """Whether a body is at an exit, a region or a room (its centre is inside) or at a door (the body touches it)."""
    if not goals.is_line[g]:
        return inside_edges(x, y, goals.edges, goals.edge_start[g], goals.edge_start[g + 1])
    for e in range(goals.edge_start[g], goals.edge_start[g + 1]):
        qx, qy = nearest_on_segment(x, y, goals.edges[e, 0], goals.edges[e, 1], goals.edges[e, 2], goals.edges[e, 3])
        if math.sqrt((qx - x) ** 2 + (qy - y) ** 2) <= radius:
            return True
    return False


@inlined_kernel
def stops_in(x, y, radius, goals, g):
    """Whether a body need not go on: it is in an exit, in the middle of a region or room, or at a door."""
    if goals.is_exit[g] or goals.is_line[g]:
        return is_in_outline(x, y, radius, goals, g)
    return inside_edges(x, y, goals.approach, goals.approach_start[g], goals.approach_start[g + 1])


@inlined_kernel
def _to_goal(i, position, radius, goal, point, goals):
    """The offset from agent i to its goal, as the crow flies; zero if it is there or has none."""
    spatial = position.shape[1] == 3
    best = math.inf
    dx = dy = dz = 0.0
    if goal[i] == POINT:
        ex, ey, ez, away = _to_point(i, position, point[i, 0], point[i, 1], point[i, 2] if spatial else 0.0, goals)
        if away > radius[i]:
            dx, dy, dz = ex, ey, ez
        return dx, dy, dz
    if goal[i] >= 0:
        # User code may write a number into the column that belongs to no goal.
        first, last = np.int64(goal[i]), min(np.int64(goal[i]) + 1, np.int64(goals.is_exit.size))
    else:
        first, last = np.int64(0), goals.is_exit.size
    for g in range(first, last):
        if goal[i] < 0:
            # "Nearest" considers only usable goals of the wanted kind; an assigned goal is kept even when closed.
            if goal[i] != NEAREST_EXIT and goal[i] != NEAREST_TARGET:
                continue
            is_wanted = goals.is_exit[g] if goal[i] == NEAREST_EXIT else goals.is_target[g]
            if not is_wanted or not goals.usable[g]:
                continue
        if goals.is_target[g]:
            z = goals.position[g, 2] if spatial else 0.0
            ex, ey, ez, away = _to_point(i, position, goals.position[g, 0], goals.position[g, 1], z, goals)
            if away < best:
                best = away
                dx, dy, dz = ex, ey, ez
                if away <= goals.radius[g]:
                    dx = dy = dz = 0.0
        elif spatial:
            dx, dy, dz = to_box(position[i, 0], position[i, 1], position[i, 2], goals, g)
        else:
            if stops_in(position[i, 0], position[i, 1], radius[i], goals, g):
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
    return dx, dy, dz


@parallel_kernel
def _write_directions(position, radius, goal, point, members, goals, out):
    for k in numba.prange(members.size):
        i = members[k]
        dx, dy, dz = _to_goal(i, position, radius, goal, point, goals)
        length = math.sqrt(dx * dx + dy * dy + dz * dz)
        scale = 1.0 / length if length > 0.0 else 0.0
        out[i, 0] = dx * scale
        out[i, 1] = dy * scale
        if position.shape[1] == 3:
            out[i, 2] = dz * scale


def towards_goal(state: AgentState, members: NDArray[np.int64], goals: GoalArrays, out: NDArray[np.float64]) -> None:
    """Write a unit vector straight to the goal, or zero, into the rows of `members`."""
    _write_directions(state.position, state.radius, state.goal, state.goal_point, members, goals, out)


@kernel
def _write_offsets(position, radius, goal, point, goals, out):
    for i in range(position.shape[0]):
        dx, dy, dz = _to_goal(i, position, radius, goal, point, goals)
        out[i, 0], out[i, 1] = dx, dy
        if position.shape[1] == 3:
            out[i, 2] = dz


def offset_to_goal(
    position: NDArray[np.float64],
    goal: NDArray[np.int32],
    goals: GoalArrays,
    *,
    radius: NDArray[np.float64] | None = None,
    point: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Offsets [m] from places to a point just inside the goal of each; zero for agents that arrived.

    `radius` are those of the bodies (0 if left out), and `point` the agents' points, for goals that are points.
    """
    out = np.empty(position.shape)
    bodies = np.zeros(len(position)) if radius is None else radius
    _write_offsets(position, bodies, goal, np.zeros_like(position) if point is None else point, goals, out)
    return out
