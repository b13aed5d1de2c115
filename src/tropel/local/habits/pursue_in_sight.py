"""Pursue targets as far as it is known where they are: in sight, or where they were seen last.

Agents with a limited view (`view_angle`), and agents with limited knowledge, do not know where a target is by magic:

* a target in sight (in the cone of view, not behind a wall) is pursued;
* one that is out of sight is looked for where it was last seen, or where friends have seen it;
* agents that never saw it, or that do not find it there, go straight on along their heading.

Exits, regions, rooms, doors and points are places that everybody knows. Agents that see all around and know everything
are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import nearest_image
from tropel._kernels.compile import parallel_kernel
from tropel._kernels.walls import chord_blocked
from tropel.agents.seeing import ALL_ROUND, is_in_cone, somebody_is_limited, view_angles
from tropel.agents.state import NEAREST_TARGET, AgentState, Floats
from tropel.contracts import Declaration, Habit, Moment, Rows
from tropel.foundation.stored_arrays import taken
from tropel.world.periodic import nearest_images

#: Lines of sight are followed through lists of walls of this reach [m].
_WALLS = 4.0
#: An agent has come to where it saw a target last within its own radius of it, or this much if that is smaller [m].
_AT_LEAST = 0.1


@parallel_kernel
def _find_targets(rows, position, heading, view_angle, goal, goals, walls, found):
    """Write the number of the target that each of the rows pursues and sees, the nearest of several; -1 for none."""
    spatial = position.shape[1] == 3
    for n in numba.prange(rows.size):
        i = rows[n]
        found[n] = -1
        best = math.inf
        hz = heading[i, 2] if spatial else 0.0
        first, last = (goal[i], goal[i] + 1) if goal[i] >= 0 else (0, goals.is_target.size)
        for g in range(first, last):
            if not goals.is_target[g] or not goals.usable[g]:
                continue
            dx = nearest_image(goals.position[g, 0] - position[i, 0], goals.period[0])
            dy = nearest_image(goals.position[g, 1] - position[i, 1], goals.period[1])
            dz = nearest_image(goals.position[g, 2] - position[i, 2], goals.period[2]) if spatial else 0.0
            away = math.sqrt(dx * dx + dy * dy + dz * dz)
            if away >= best or not is_in_cone(
                dx, dy, dz, goals.radius[g], heading[i, 0], heading[i, 1], hz, view_angle[i]
            ):
                continue
            if not spatial and away > goals.radius[g]:
                share = (away - goals.radius[g]) / away
                x, y = position[i, 0], position[i, 1]
                if chord_blocked(x, y, x + share * dx, y + share * dy, walls):
                    continue
            best = away
            found[n] = g


class PursueInSight(Habit):
    """Go for a target that is in sight, or to where it was last known to be. Agents that go straight have it."""

    declares = Declaration(periodic_space=True)

    def __init__(self) -> None:
        self.parameters = ""
        self._forget()

    def _forget(self, dim: int = 2) -> None:
        self._ids: NDArray[np.int64] = np.empty(0, dtype=np.int64)  #: ascending
        self._goal: NDArray[np.int32] = np.empty(0, dtype=np.int32)  #: what they were after when they saw it
        self._place: Floats = np.empty((0, dim))  #: where it was

    def prepare(self, moment: Moment) -> None:
        self._forget(moment.state.dim)

    def is_idle(self, moment: Moment) -> bool:
        limited = moment.beliefs is not None or somebody_is_limited(moment.state)
        return not limited or not len(moment.world.targets)

    def adjust(self, moment: Moment, directions: Floats) -> None:
        """Turn the members that do not see their target to where they know it to be, or straight ahead."""
        state, members = moment.state, moment.members
        goals, goal = moment.world.goals(), state.goal[moment.members]
        assigned = (goal >= 0) & (goal < len(goals.is_target))
        pursues = goal == NEAREST_TARGET
        pursues[assigned] |= goals.is_target[goal[assigned]] == 1
        if len(moment.waiting):
            pursues &= ~moment.waiting[members]
        rows = members[pursues]
        told = np.zeros(len(rows), dtype=np.bool_) if moment.beliefs is None else moment.beliefs.is_limited(rows)
        if told.any() and moment.beliefs is not None:
            _go_to(state, rows[told], moment.beliefs.target_places(rows[told]), moment, directions)
        self._by_sight(moment, rows[~told & (view_angles(state)[rows] < ALL_ROUND)], directions)

    def _by_sight(self, moment: Moment, rows: Rows, directions: Floats) -> None:
        """Those that know only what they see themselves; those that see their target go where their planner says."""
        state, goals = moment.state, moment.world.goals()
        rows = rows[np.argsort(state.id[rows])]
        found = np.empty(len(rows), dtype=np.int64)
        _find_targets(rows, state.position, state.heading, view_angles(state), state.goal, goals,
                      moment.world.wall_grid(_WALLS), found)  # fmt: skip
        place = self._remembered(state, rows)
        place[found >= 0] = goals.position[found[found >= 0]]
        unseen = found < 0
        _go_to(state, rows[unseen], place[unseen], moment, directions)
        # Somebody after the nearest target may see one that is not the nearest.
        nearest = (state.goal[rows] == NEAREST_TARGET) & ~unseen
        if nearest.any():
            _go_to(state, rows[nearest], place[nearest], moment, directions, stop=goals.radius[found[nearest]])
        known = ~np.isnan(place).any(axis=1)
        self._ids, self._goal, self._place = state.id[rows[known]], state.goal[rows[known]], place[known]

    def _remembered(self, state: AgentState, rows: Rows) -> Floats:
        """Where each of the rows saw its target last; nan if it did not, or has come to that place since."""
        place = np.full((len(rows), state.dim), np.nan)
        if len(self._ids):
            at = np.minimum(np.searchsorted(self._ids, state.id[rows]), len(self._ids) - 1)
            same = (self._ids[at] == state.id[rows]) & (self._goal[at] == state.goal[rows])
            place[same] = self._place[at[same]]
        return place

    def state(self) -> dict[str, NDArray[Any]]:
        return {"ids": self._ids, "goal": self._goal, "place": self._place} if len(self._ids) else {}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        if not stored:
            self._forget(self._place.shape[1])
            return
        ids = taken(stored, "ids", dtype="int64", shape=(None,), low=0, high=2**62)
        goal = taken(stored, "goal", dtype="int32", shape=(len(ids),))
        place = taken(stored, "place", dtype="float64", shape=(len(ids), self._place.shape[1]))
        order = np.argsort(ids, kind="stable")
        self._ids, self._goal, self._place = ids[order], goal[order], place[order]


def _go_to(
    state: AgentState, rows: Rows, place: Floats, moment: Moment, directions: Floats, stop: Floats | None = None
) -> None:
    """Direct rows to places, and straight on where nothing is known or they are there; with `stop` they stay there."""
    offset = nearest_images(place - state.position[rows], moment.world.period)
    away = np.linalg.norm(offset, axis=1)
    near = np.maximum(state.radius[rows], _AT_LEAST) if stop is None else stop
    with np.errstate(invalid="ignore", divide="ignore"):
        towards = offset / away[:, None]
    there = away <= near
    lost = np.isnan(away) | (there if stop is None else np.zeros(len(rows), dtype=np.bool_))
    towards[lost] = state.heading[rows[lost]]
    towards[there & ~lost] = 0.0
    directions[rows] = towards
