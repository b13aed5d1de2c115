"""Bonds between agents of a lattice crowd: families stay together, followers stay close to their leader's path.

A bond changes the value of cells for the agents it binds. The value is highest on a short line and falls with the
distance d from it:

    max(least, 1 - d / reach)^strength

For a family the line is a point, the centroid of its members. For followers it is an axis on the leader, along the
leader's heading; places of equal value lie around it like an ellipse. (Section 9 of the paper names both as future
work: "a sink of values sloping in toward the centroid", "an ellipsoid filter attached to the leader, and sloping
in toward the major axis".) `least` is positive, so that a bond never vetoes a cell.

A cell nearer to the family must have a higher value than one nearer to the goal: strength · cell > -log(gamma) · reach.
With weaker bonds, a family that is divided between two exits comes to rest where both pull equally, and never leaves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel.agents.leaders import LEADER
from tropel.agents.state import AgentState, Column
from tropel.agents.whole_crowd import STEPS_PER_METRE

#: The value of a place out of reach to the agents bound, at strength 1.
_LEAST = 0.05
#: No family, or no leader.
_NONE = -1

#: The columns with the bonds of agents.
BOND_COLUMNS = (
    Column(
        name="family",
        dtype="int32",
        default=_NONE,
        low=_NONE,
        about="agents with the same number stay together; -1 for none",
    ),
    LEADER,
)


class Bonds(NamedTuple):
    """Bonds, and which agents have them."""

    of: NDArray[np.int64]  #: (agents, 2): numbers of an agent's bonds, -1 for none; no rows if no agent is bound
    line: NDArray[np.float64]  #: (bonds, 4): x0, y0, x1, y1 [m]
    reach: NDArray[np.float64]  #: (bonds,) [m]
    strength: NDArray[np.float64]  #: (bonds,)


NO_BONDS = Bonds(np.empty((0, 2), dtype=np.int64), np.empty((0, 4)), np.empty(0), np.empty(0))


@inlined_kernel
def worth_of_bonds(i, x, y, bonds):
    """Logarithm of the value of the place (x, y) to agent i by its bonds."""
    worth = 0.0
    for k in range(2):
        b = bonds.of[i, k]
        if b < 0:
            continue
        x0, y0 = bonds.line[b, 0], bonds.line[b, 1]
        ux, uy = bonds.line[b, 2] - x0, bonds.line[b, 3] - y0
        length2 = ux * ux + uy * uy
        t = min(max(((x - x0) * ux + (y - y0) * uy) / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
        away = math.sqrt((x - x0 - t * ux) ** 2 + (y - y0 - t * uy) ** 2)
        worth += bonds.strength[b] * math.log(max(1.0 - away / bonds.reach[b], _LEAST))
    return worth


@kernel
def _add_up_families(rows, family, position, alive, count, total):
    for n in range(rows.size):
        i = rows[n]
        if alive[i]:
            f = family[n]
            count[f] += 1
            total[f, 0] += np.int64(math.floor(position[i, 0] * STEPS_PER_METRE + 0.5))
            total[f, 1] += np.int64(math.floor(position[i, 1] * STEPS_PER_METRE + 0.5))


@parallel_kernel
def _is_anybody_bound(family, leader):
    bound = 0
    for i in numba.prange(family.size):
        bound += np.int64(family[i] > _NONE) | np.int64(leader[i] > _NONE)
    return bound > 0


class BondFinder:
    """Finds the bonds of all agents in each step, among those that are alive and present.

    The bonds are looked up only after agents have come, left or been bound differently. A family of one and a leader
    that has died bind no agents: their strength is zero.
    """

    def __init__(
        self,
        *,
        family_reach: float,
        family_strength: float,
        leader_length: float,
        leader_width: float,
        leader_strength: float,
    ) -> None:
        self._family_reach, self._family_strength = family_reach, family_strength
        self._leader_length, self._leader_width = leader_length, leader_width
        self._leader_strength = leader_strength
        self._known: tuple[NDArray[np.int64], ...] = ()

    def bonds(self, state: AgentState) -> Bonds:
        """The bonds of all agents in the frozen state; `NO_BONDS` if no agent is bound."""
        if not _is_anybody_bound(state.family, state.leader):
            return NO_BONDS
        if not self._is_known(state):
            self._look_up(state)
        alive = state.dead == 0
        count = np.zeros(self._families, dtype=np.int64)
        total = np.zeros((self._families, 2), dtype=np.int64)
        _add_up_families(self._rows, self._family, state.position, alive, count, total)
        centroid = total / (np.maximum(count, 1) * STEPS_PER_METRE)[:, None]
        place = state.position[self._leaders]
        axis = self._leader_length * state.heading[self._leaders]
        return Bonds(
            of=self._of,
            line=np.vstack([np.hstack([centroid, centroid]), np.hstack([place - axis, place + axis])]),
            reach=np.repeat([self._family_reach, self._leader_width], [self._families, len(self._leaders)]),
            strength=np.concatenate(
                [
                    np.where(count > 1, self._family_strength, 0.0),
                    np.where(alive[self._leaders], self._leader_strength, 0.0),
                ]
            ),
        )

    def _is_known(self, state: AgentState) -> bool:
        if not self._known or self._known[0] is not state.id:
            return False
        return np.array_equal(self._known[1], state.family) and np.array_equal(self._known[2], state.leader)

    def _look_up(self, state: AgentState) -> None:
        self._known = state.id, state.family.copy(), state.leader.copy()
        self._rows = np.flatnonzero(state.family >= 0)
        numbers, self._family = np.unique(state.family[self._rows], return_inverse=True)
        self._families = len(numbers)
        # Agents do not follow themselves; leaders that have left are not found among the ids.
        followers = np.flatnonzero((state.leader >= 0) & (state.leader != state.id))
        place = state.row_of(state.leader[followers])
        there = place >= 0
        self._leaders, led_by = np.unique(place[there], return_inverse=True)
        self._of = np.full((len(state), 2), _NONE, dtype=np.int64)
        self._of[self._rows, 0] = self._family
        self._of[followers[there], 1] = self._families + led_by
