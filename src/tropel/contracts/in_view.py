"""Neighbours in the cone of view: what an environment found, without those that an agent has its back to.

This is the one place where the column `view_angle` acts on neighbours. Every model that walks `near.neighbours()` or
reads `near.lists` then has a cone of view, whatever the environment. Walls and round obstacles stay as they are, and so
does contact: bodies that nobody sees are still solid.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr, as_ragged, sum_up
from tropel._kernels.cells import nearest_image
from tropel._kernels.compile import parallel_kernel
from tropel.agents.seeing import is_in_cone, view_angles
from tropel.agents.state import AgentState, Floats
from tropel.contracts.moment import Moment
from tropel.contracts.near import Near
from tropel.world import World
from tropel.world.periodic import nearest_images


@parallel_kernel
def _filter(lists, position, heading, radius, view_angle, period, length, indptr, indices, fill):
    """Count the neighbours of each row that are in its cone of view, or write them."""
    spatial = position.shape[1] == 3
    for i in prange(position.shape[0]):
        hz = heading[i, 2] if spatial else 0.0
        found = 0
        for k in range(lists.start[i], lists.start[i] + lists.length[i]):
            j = lists.items[k]
            dx = nearest_image(position[j, 0] - position[i, 0], period[0])
            dy = nearest_image(position[j, 1] - position[i, 1], period[1])
            dz = nearest_image(position[j, 2] - position[i, 2], period[2]) if spatial else 0.0
            if is_in_cone(dx, dy, dz, radius[j], heading[i, 0], heading[i, 1], hz, view_angle[i]):
                if fill:
                    indices[indptr[i] + found] = j
                found += 1
        length[i] = found


def rows_in_view(row: int, rows: NDArray[np.int64], state: AgentState, world: World) -> NDArray[np.int64]:
    """Those of some rows that the agent in a row has in its cone of view; for displays."""
    angle = float(view_angles(state)[row])
    offset = np.zeros((len(rows), 3))
    offset[:, : state.dim] = nearest_images(state.position[rows] - state.position[row], world.period)
    facing = (*state.heading[row].tolist(), 0.0)[:3]
    seen = [is_in_cone(*offset[k], state.radius[j], *facing, angle) for k, j in enumerate(rows.tolist())]
    return rows[np.array(seen, dtype=np.bool_)]


class NearInView(Near):
    """What another neighbourhood has, as far as it is in each agent's cone of view."""

    def __init__(self, near: Near, moment: Moment) -> None:
        super().__init__(moment)
        self._all = near
        self._angles = view_angles(moment.state)
        self.hidden_left_out = near.hidden_left_out

    def lists(self, radius: Floats) -> Csr:
        state, lists = self.state, as_ragged(self._all.lists(radius))
        count = len(state)
        length, indptr = np.empty(count, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
        given = (lists, state.position, state.heading, state.radius, self._angles, self.world.period)
        _filter(*given, length, indptr, np.empty(0, dtype=np.int32), False)
        indices = np.empty(sum_up(length, indptr), dtype=np.int32)
        _filter(*given, length, indptr, indices, True)
        return Csr(indptr, indices)
