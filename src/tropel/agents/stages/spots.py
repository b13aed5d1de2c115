"""Spots for people who wait in a region or room: each gets one of its own, where it is in nobody's way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.philox import random_key, uniform_pair
from tropel._kernels.predicates import inside_edges
from tropel._kernels.walls import cell_at, chord_blocked, nearest_on_segment
from tropel.agents.stages.stage import Now

#: So many spots are tried; whoever finds none stays where it is.
_TRIES = 24
#: A spot is this far from walls, besides the body [m].
_FROM_WALLS = 0.1


@kernel
def _is_clear(x, y, radius, walls):
    """Whether a body at a point touches no wall; complete up to the walls' reach."""
    if walls.segments.shape[0] == 0:
        return True
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if walls.blocking[s]:
            qx, qy = nearest_on_segment(
                x, y, walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
            )
            if (qx - x) ** 2 + (qy - y) ** 2 < radius * radius:
                return False
    return True


@kernel
def _find_spots(rows, ids, position, radius, goal, goals, walls, key, step, tries, margin, out):
    """A random place in the area that each agent is in, which it sees and where it touches no wall."""
    for n in range(rows.size):
        i = rows[n]
        g = goal[i]
        x, y = position[i, 0], position[i, 1]
        out[n, 0], out[n, 1] = x, y
        first, last = goals.edge_start[g], goals.edge_start[g + 1]
        low_x = high_x = x
        low_y = high_y = y
        for e in range(first, last):
            low_x, high_x = min(low_x, goals.edges[e, 0]), max(high_x, goals.edges[e, 0])
            low_y, high_y = min(low_y, goals.edges[e, 1]), max(high_y, goals.edges[e, 1])
        for attempt in range(tries):
            u, v = uniform_pair(key, ids[i], step, attempt)
            px, py = low_x + u * (high_x - low_x), low_y + v * (high_y - low_y)
            if (
                inside_edges(px, py, goals.edges, first, last)
                and _is_clear(px, py, radius[i] + margin, walls)
                and not chord_blocked(x, y, px, py, walls)
            ):
                out[n, 0], out[n, 1] = px, py
                break


@kernel
def _find_spots_in_space(rows, ids, goal, goals, key, step, out):
    for n in range(rows.size):
        i, g = rows[n], goal[rows[n]]
        u, v = uniform_pair(key, ids[i], step, 0)
        w, _ = uniform_pair(key, ids[i], step, 1)
        out[n, 0] = goals.low[g, 0] + u * (goals.high[g, 0] - goals.low[g, 0])
        out[n, 1] = goals.low[g, 1] + v * (goals.high[g, 1] - goals.low[g, 1])
        out[n, 2] = goals.low[g, 2] + w * (goals.high[g, 2] - goals.low[g, 2])


def waiting_spots(now: Now) -> NDArray[np.float64]:
    """A spot for each of the members, all of which are inside the area that is their goal [m]."""
    state, rows = now.state, now.members
    out = np.empty((len(rows), state.dim))
    key = random_key(now.seed, "spots to wait at")
    if state.dim == 3:
        _find_spots_in_space(rows, state.id, state.goal, now.world.goals(), key, now.step, out)
        return out
    walls = now.world.wall_grid(2.0)
    _find_spots(
        rows, state.id, state.position, state.radius, state.goal, now.world.goals(), walls, key, now.step, _TRIES,
        _FROM_WALLS, out,
    )  # fmt: skip
    return out
