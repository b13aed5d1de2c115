"""Keep formation, and carry out the orders of a commander: what members of a squad do with their planned directions.

A member that keeps formation goes for its slot, given in the frame of its commander's way (the direction of the last
metre that it has walked). With d the offset to the slot, v the velocity of the commander and v0 its own desired speed,

    e' = d / (reach) + v / v0,        no longer than 1

so that members keep pace in their slots and close up beside them. A slot counts if the whole body can go straight to it
both from the commander and from the member. Where it does not, in doorways and beside walls, members walk in file: each
goes for the point of the commander's trail that is as far back as its slot is away, or, if that is hidden as well, for
the newest point of the trail that it sees (`agents/trails.py`).

Members at a post go there, and those that attack go for the enemy, whatever was planned. While it leads, a commander
walks at the share `pace` of its planned speed, so that the others can keep up.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.walls import chord_blocked
from tropel.agents.leaders import LEADER, NOBODY
from tropel.agents.personality import PERSONALITY
from tropel.agents.squads.columns import ATTACK, COMMANDER, MEMBER, POST, SQUAD_COLUMNS
from tropel.agents.state import Floats
from tropel.agents.trails import pursued_places
from tropel.contracts import Declaration, Habit, Moment
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity

REACH = Quantity(
    name="reach", above=0.0, high=1e6, unit="m", about="how far from their places members walk at their full speed"
)
PACE = Quantity(name="pace", above=0.0, high=1.0, about="share of its speed at which a commander leads")
COURAGE = next(column for column in PERSONALITY if column.name == "courage")
#: The commander's way is the direction of the last bit that it has walked, so long [m].
_WAY = 1.0
#: Bodies keep this much of themselves clear of walls on their way to a slot.
_FLANK = 0.9
#: Whoever is this near to its post stands [m].
_AT_POST = 0.1


@inlined_kernel
def _is_free(ax, ay, bx, by, half_width, walls):
    """Whether a body can go straight from a to b, and stand there."""
    dx, dy = bx - ax, by - ay
    length = math.sqrt(dx * dx + dy * dy)
    if length == 0.0:
        return True
    nx, ny = half_width * dy / length, -half_width * dx / length
    # A little beyond b, where the front of the body is.
    cx, cy = bx + half_width * dx / length, by + half_width * dy / length
    return (
        not chord_blocked(ax, ay, cx, cy, walls)
        and not chord_blocked(ax + nx, ay + ny, bx + nx, by + ny, walls)
        and not chord_blocked(ax - nx, ay - ny, bx - nx, by - ny, walls)
    )


@kernel
def _write_way(j, trail, position, heading, points, filled):
    """The direction in which commander j has walked lately."""
    if trail >= 0:
        for k in range(filled[trail]):
            dx, dy = position[j, 0] - points[trail, k, 0], position[j, 1] - points[trail, k, 1]
            away = math.sqrt(dx * dx + dy * dy)
            if away >= _WAY:
                return dx / away, dy / away
    length = math.sqrt(heading[j, 0] ** 2 + heading[j, 1] ** 2)
    return (heading[j, 0] / length, heading[j, 1] / length) if length > 0.0 else (1.0, 0.0)


@kernel
def _back_on_trail(j, trail, back, position, points, filled):
    """The point of the trail of commander j that is so far back along it [m]; its oldest one if it is shorter."""
    x, y = position[j, 0], position[j, 1]
    left = back
    for k in range(filled[trail]):
        px, py = points[trail, k, 0], points[trail, k, 1]
        step = math.sqrt((px - x) ** 2 + (py - y) ** 2)
        if step >= left and step > 0.0:
            return x + left / step * (px - x), y + left / step * (py - y)
        left -= step
        x, y = px, py
    return x, y


@kernel
def _write_places(rows, leader, trail, slot, position, radius, heading, pursued, points, filled, walls, place):
    """Where each member of a formation goes."""
    for n in range(rows.size):
        i = rows[n]
        j = leader[i]
        half_width = _FLANK * radius[i]
        ex, ey = _write_way(j, trail[n], position, heading, points, filled)
        ahead, left = slot[i, 0], slot[i, 1]
        sx, sy = position[j, 0] + ahead * ex - left * ey, position[j, 1] + ahead * ey + left * ex
        x, y = position[i, 0], position[i, 1]
        if _is_free(position[j, 0], position[j, 1], sx, sy, half_width, walls) and _is_free(
            x, y, sx, sy, half_width, walls
        ):
            place[n, 0], place[n, 1] = sx, sy
            continue
        place[n, 0], place[n, 1] = pursued[i, 0], pursued[i, 1]
        if trail[n] >= 0:
            back = math.sqrt(ahead * ahead + left * left)
            bx, by = _back_on_trail(j, trail[n], back, position, points, filled)
            if _is_free(x, y, bx, by, half_width, walls):
                place[n, 0], place[n, 1] = bx, by


class KeepFormation(Habit):
    """Members of squads keep formation and carry out orders. `reach` is a distance [m], `pace` a share."""

    declares = Declaration(columns=(LEADER, COURAGE, *SQUAD_COLUMNS))
    binds = ("leader", "role")

    @checked_arguments
    def __init__(self, *, reach: Annotated[float, REACH] = 0.6, pace: Annotated[float, PACE] = 0.75) -> None:
        self.parameters = f"reach={reach!r}, pace={pace!r}"
        self._reach, self._pace = float(reach), float(pace)

    def adjust(self, moment: Moment, directions: Floats) -> None:
        """Turn the members of squads to their slots, posts and enemies."""
        state = moment.state
        rows = moment.members
        if len(moment.waiting):
            rows = rows[~moment.waiting[rows]]
        role, order = state.columns["role"][rows], state.columns["order"][rows]
        follows = (role == MEMBER) & (order != ATTACK) & (order != POST)
        leads = rows[(role == COMMANDER) & (order != ATTACK)]
        followed = np.isin(state.id[leads], state.columns[LEADER.name][rows[role == MEMBER]])
        directions[leads[followed]] *= self._pace
        self._in_formation(moment, rows[follows], directions)
        self._to_post(moment, rows[(role == MEMBER) & (order == POST)], directions)
        attackers = rows[order == ATTACK]
        there = state.columns["post"][attackers] - state.position[attackers]
        away = np.linalg.norm(there, axis=1)
        directions[attackers] = there / np.maximum(away, 1e-12)[:, None]

    def _led_by(self, moment: Moment) -> np.ndarray:
        state = moment.state
        leader = state.columns[LEADER.name]
        led_by = np.where((leader >= 0) & (leader != state.id), state.row_of(leader), NOBODY)
        led_by[(led_by >= 0) & (state.dead[led_by] != 0)] = NOBODY
        return np.asarray(led_by)

    def _in_formation(self, moment: Moment, rows: np.ndarray, directions: Floats) -> None:
        state, trails = moment.state, moment.trails
        led_by = self._led_by(moment)
        rows = rows[led_by[rows] >= 0]
        if not len(rows):
            return
        pursued = pursued_places(state, moment.world, led_by, trails).place
        if not len(pursued):
            pursued = state.position.copy()
            pursued[rows] = state.position[led_by[rows]]
        leader = state.columns[LEADER.name][rows]
        at = np.searchsorted(trails.ids, leader)
        trail = np.where(np.append(trails.ids, -2)[at] == leader, at, -1)
        trail[trails.points.shape[1] == 0] = -1
        place = np.empty((len(rows), 2))
        _write_places(rows, led_by, trail, state.columns["slot"], state.position, state.radius, state.heading, pursued,
                      trails.points, trails.filled, moment.world.wall_grid(2.0), place)  # fmt: skip
        wanted = (place - state.position[rows]) / self._reach
        along = state.velocity[led_by[rows]] / np.maximum(state.desired_speed[rows], 1e-6)[:, None]
        directions[rows] = _no_longer_than_one(wanted + along)

    def _to_post(self, moment: Moment, rows: np.ndarray, directions: Floats) -> None:
        state = moment.state
        there = state.columns["post"][rows] - state.position[rows]
        there[np.linalg.norm(there, axis=1) < _AT_POST] = 0.0
        directions[rows] = _no_longer_than_one(there / self._reach)


def _no_longer_than_one(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1), 1.0)[:, None])
