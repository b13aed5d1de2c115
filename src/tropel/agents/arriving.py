"""Agents that arrive at a goal without leaving there. What they do then is the next stage of their list.

An agent has arrived

    at a region or room          when its centre is inside (and at an exit, which lets it out if it is open)
    at a target                  when its body reaches the target's radius
    at a door or a point         when its body reaches it

Agents of flocks, whose bodies mean nothing and which never stand still, have arrived at a target, a door or a point as
soon as they see it: it is within the sense radius and no wall is in between (GROUPS §4.2). For a crowd on cells, seeing
it from one of the cells next to it is enough.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import nearest_image
from tropel._kernels.compile import inlined_kernel, parallel_kernel
from tropel._kernels.walls import chord_blocked, nearest_on_segment
from tropel.agents.goals import Aim
from tropel.agents.state import NEAREST_TARGET, POINT, AgentState
from tropel.agents.towards_goal import is_in_outline
from tropel.world import World


@inlined_kernel
def _sees(i, position, x, y, walls):
    return position.shape[1] == 3 or not chord_blocked(position[i, 0], position[i, 1], x, y, walls)


@inlined_kernel
def _is_near(i, position, to, g, within, sight, goals, walls):
    """Whether agent i is within a distance of the place to[g], or sees it within the distance `sight`."""
    away2 = 0.0
    for axis in range(position.shape[1]):
        away2 += nearest_image(to[g, axis] - position[i, axis], goals.period[axis]) ** 2
    away = math.sqrt(away2)
    return away <= within or (away <= sight and _sees(i, position, to[g, 0], to[g, 1], walls))


@inlined_kernel
def _is_at(i, g, position, radius, sight, goals, walls):
    """Whether agent i has arrived at goal g. `sight` is zero for agents that have to touch it."""
    if goals.is_target[g]:
        within = goals.radius[g] + radius
        return bool(goals.usable[g]) and _is_near(i, position, goals.position, g, within, sight, goals, walls)
    if position.shape[1] == 3:
        inside = True
        for axis in range(3):
            inside &= goals.low[g, axis] <= position[i, axis] <= goals.high[g, axis]
        return inside
    x, y = position[i, 0], position[i, 1]
    if is_in_outline(x, y, radius, goals, g):
        return True
    if not goals.is_line[g] or sight <= radius:
        return False
    for e in range(goals.approach_start[g], goals.approach_start[g + 1]):
        x0, y0, x1, y1 = goals.approach[e, 0], goals.approach[e, 1], goals.approach[e, 2], goals.approach[e, 3]
        qx, qy = nearest_on_segment(x, y, x0, y0, x1, y1)
        # A closed door hides itself: only the last bit of the line to it may touch it.
        if math.sqrt((qx - x) ** 2 + (qy - y) ** 2) <= sight and _sees(
            i, position, x + 0.999 * (qx - x), y + 0.999 * (qy - y), walls
        ):
            return True
    return False


@parallel_kernel
def _note_arrivals(rows, position, radius, sight, goal, point, goals, walls, out):
    for n in numba.prange(rows.size):
        i = rows[n]
        out[n] = False
        if goal[i] == POINT:
            out[n] = _is_near(i, position, point, i, radius[i], sight[n], goals, walls)
        elif goal[i] >= 0:
            out[n] = goal[i] < goals.is_exit.size and _is_at(i, goal[i], position, radius[i], sight[n], goals, walls)
        elif goal[i] == NEAREST_TARGET:
            for g in range(goals.is_target.size):
                if goals.is_target[g] and _is_at(i, np.int64(g), position, radius[i], sight[n], goals, walls):
                    out[n] = True
                    break


def at_goal(
    state: AgentState,
    world: World,
    rows: NDArray[np.int64],
    *,
    seen_within: NDArray[np.float64] | None = None,
    within: float = 0.0,
) -> NDArray[np.bool_]:
    """Which of the agents in these rows have arrived at their goal.

    `seen_within` is the distance from which it is enough to see a target, door or point, for each row [m]. Bodies that
    come `within` a distance of one have arrived, too [m].
    """
    return _arrived(state, world, rows, state.goal, state.goal_point, seen_within, within)


def at_aim(
    state: AgentState, world: World, rows: NDArray[np.int64], aim: Aim, *, seen_within: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which of the agents in these rows are at a place, whatever their own goal is."""
    goal = np.full(len(state), aim.number, dtype=np.int32)
    point = np.tile(np.array(aim.point), (len(state), 1))
    return _arrived(state, world, rows, goal, point, seen_within, 0.0)


def _arrived(
    state: AgentState,
    world: World,
    rows: NDArray[np.int64],
    goal: NDArray[np.int32],
    point: NDArray[np.float64],
    seen_within: NDArray[np.float64] | None,
    within: float,
) -> NDArray[np.bool_]:
    sight = np.zeros(len(rows)) if seen_within is None else np.minimum(seen_within, state.sense_radius[rows])
    radius = state.radius + within if within else state.radius
    # Exact for chords of any length; the reach decides only how fast it is.
    walls = world.wall_grid(2.0)
    out = np.empty(len(rows), dtype=np.bool_)
    _note_arrivals(rows, state.position, radius, sight, goal, point, world.goals(), walls, out)
    return out
