"""Agents that leave, at an open exit or an absorbing target, and agents that die, in a deadly hazard.

Some models let agents walk on for a moment in an exit before they are gone (`ModelDeclaration.walk_on`), so that those
behind them still find them in the way. Such agents have the columns of `LEAVING`.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import nearest_image
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.predicates import inside_edges
from tropel.agents.leaders import LEADER
from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, NO_GOAL, AgentState, Column, Floats
from tropel.world import World

STAYS = -1

LEAVING = (
    Column(
        name="leaves_by",
        dtype="int32",
        default=STAYS,
        low=STAYS,
        kept=True,
        about="number of the exit that it has reached and walks out by; -1 for none",
    ),
    Column(name="left_at", low=0.0, kept=True, unit="s", about="when it reached that exit"),
)

#: Agents per unit of parallel work.
_CHUNK = 512


@kernel
def _write_boxes(goals, box):
    """Write the bounding box of every exit: x_min, y_min, x_max, y_max."""
    for g in range(goals.is_exit.size):
        if not goals.is_exit[g]:
            continue
        box[g, 0] = box[g, 1] = math.inf
        box[g, 2] = box[g, 3] = -math.inf
        for e in range(goals.edge_start[g], goals.edge_start[g + 1]):
            box[g, 0] = min(box[g, 0], goals.edges[e, 0])
            box[g, 1] = min(box[g, 1], goals.edges[e, 1])
            box[g, 2] = max(box[g, 2], goals.edges[e, 0])
            box[g, 3] = max(box[g, 3], goals.edges[e, 1])


@inlined_kernel
def _is_at(g, i, position, goals, box):
    """Whether an agent is at a goal."""
    if goals.is_exit[g]:
        # For fifty thousand people, exact tests of all edges of sixteen gates cost more than walking does.
        x, y = position[i, 0], position[i, 1]
        if x < box[g, 0] or y < box[g, 1] or x > box[g, 2] or y > box[g, 3]:
            return False
        return inside_edges(x, y, goals.edges, goals.edge_start[g], goals.edge_start[g + 1])
    away2 = 0.0
    for axis in range(position.shape[1]):
        along = nearest_image(position[i, axis] - goals.position[g, axis], goals.period[axis])
        if abs(along) > goals.radius[g]:
            return False
        away2 += along**2
    return math.sqrt(away2) <= goals.radius[g]


@kernel
def _arrived_some(first, last, position, goal, dead, goals, takes_out, box, out):
    leaving = 0
    for i in range(np.uint64(first), np.uint64(last)):
        out[i] = STAYS
        wanted = np.int64(goal[i])
        if dead[i] or wanted <= NO_GOAL:
            continue
        for g in range(max(wanted, 0), min(wanted + 1, takes_out.size) if wanted >= 0 else takes_out.size):
            means = wanted >= 0 or wanted == (NEAREST_EXIT if goals.is_exit[g] else NEAREST_TARGET)
            if takes_out[g] and means and _is_at(g, i, position, goals, box):
                out[i] = g
                leaving += 1
                break
    return leaving


@parallel_kernel
def _arrived(position, goal, dead, goals, takes_out, box, out):
    """Write through which goal each agent leaves; returns how many leave."""
    leaving = 0
    count = position.shape[0]
    _write_boxes(goals, box)
    for chunk in numba.prange((count + _CHUNK - 1) // _CHUNK):
        leaving += _arrived_some(chunk * _CHUNK, min((chunk + 1) * _CHUNK, count), position, goal, dead, goals,
                                 takes_out, box, out)  # fmt: skip
    return leaving


def arrived(state: AgentState, world: World) -> NDArray[np.int32] | None:
    """For each agent the number of the goal through which it leaves now, or STAYS; None if no agent leaves.

    The dead never leave.
    """
    goals = world.goals()
    takes_out = goals.absorbs & goals.usable
    if not np.count_nonzero(takes_out):
        return None
    out = np.empty(len(state), dtype=np.int32)
    box = np.empty((goals.is_exit.size, 4))
    wanted = with_goals_of_leaders(state)
    return out if _arrived(state.position, wanted, state.dead, goals, takes_out, box, out) else None


def with_goals_of_leaders(state: AgentState) -> NDArray[np.int32]:
    """The goals of all agents; followers that have none share their leader's, and leave where it leaves."""
    leader = state.columns.get(LEADER.name)
    if leader is None or not len(leader):
        return state.goal
    rows = np.flatnonzero((leader >= 0) & (state.goal == NO_GOAL))
    if not len(rows):
        return state.goal
    led_by = state.row_of(leader[rows])
    goal = state.goal.copy()
    goal[rows[led_by >= 0]] = state.goal[led_by[led_by >= 0]]
    return goal


def walked_out(
    state: AgentState, world: World, goals: NDArray[np.int32] | None, walk_on: Floats, time: float
) -> tuple[NDArray[np.int32] | None, Floats | float]:
    """What `arrived` found, with those that have walked on for long enough instead of those that reach an exit now.

    `walk_on` is for how long each agent does that [s]. The second value is when agents have reached what they leave by.
    """
    if goals is None:
        goals = np.full(len(state), STAYS, dtype=np.int32)
    reached = np.flatnonzero((goals != STAYS) & (walk_on > 0.0))
    reached = reached[world.goals().is_exit[goals[reached]] > 0]
    fresh = reached[state.leaves_by[reached] == STAYS]
    state.leaves_by[fresh] = goals[fresh]
    state.left_at[fresh] = time
    goals[reached] = STAYS
    leaving = np.flatnonzero((state.leaves_by != STAYS) & (state.dead == 0))
    gone = leaving[state.left_at[leaving] + walk_on[leaving] <= time * (1.0 + 1e-12)]
    goals[gone] = state.leaves_by[gone]
    if not np.count_nonzero(goals != STAYS):
        return None, time
    return goals, np.where(state.leaves_by != STAYS, state.left_at, time)


@kernel
def _note_killed(position, dead, centre, reach, period, out):
    """Write which agents hazards kill now; returns how many they are."""
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
    """Rows of the living agents within the inner radius of a deadly hazard; None if there are none."""
    rows = world.hazards.rows_where("deadly") if len(world.hazards) else ()
    if not len(rows):
        return None
    out = np.empty(len(state), dtype=np.bool_)
    hazards = world.hazards
    found = _note_killed(state.position, state.dead, hazards.position[rows], hazards.inner[rows], world.period, out)
    return np.flatnonzero(out) if found else None
