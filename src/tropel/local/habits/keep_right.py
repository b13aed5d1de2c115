"""Keep right: turn towards the right before people that come the other way.

The planned direction e of a person is turned to the right by an angle that grows with the oncoming people in sight:

    angle = keep_right · tanh(sum over j ahead of max(0, 2 c_j - 1) exp(-d_j / range - (a_j / width)²))

c_j is -h_j · e, where h_j is the heading of person j, which stands for where it wants to go. d_j is its distance, and
a_j how far it is aside of the line along e. Only people that have another goal and walk against e by more than 120°
count: people that come to a door from both sides are no counterflow. People that pass at a distance hardly count, or
everybody in a wide corridor would walk along the wall. Two streams in a corridor then separate into lanes. Without the
turn, 100 people against 100 in a corridor of 2 m block each other for good in every continuous model.
"""

from __future__ import annotations

import math
from typing import Annotated

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.neighbours import count_runs, run_of, view_of
from tropel._kernels.walls import chord_blocked
from tropel.agents.state import CHOSEN_EXIT, NEAREST_EXIT, NEAREST_TARGET, NO_GOAL, POINT, AgentState, Floats
from tropel.contracts import Habit, Moment
from tropel.errors import ParameterError
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity
from tropel.foundation.reductions import Reductions
from tropel.world import World

#: Distance over which an oncoming person counts less by e [m].
RANGE = 4.0
#: Distance from the line along e at which an oncoming person counts less by e [m].
WIDTH = 1.5
#: The largest turn.
ANGLE = Quantity(
    name="angle", low=-1.5, high=1.5, unit="rad", about="turn to the right before oncoming people; negative keeps left"
)


@inlined_kernel
def oncoming(dx, dy, hx, hy, ex, ey):
    """How much a person at the offset d with the heading h comes towards a person that walks along e, from 0 to 1."""
    against = -2.0 * (hx * ex + hy * ey) - 1.0
    if against <= 0.0 or dx * ex + dy * ey <= 0.0:
        return 0.0
    aside = (dx * ey - dy * ex) / WIDTH
    return against * math.exp(-math.sqrt(dx * dx + dy * dy) / RANGE - aside * aside)


@inlined_kernel
def turned_right(ex, ey, keep_right, total):
    """The unit vector e turned to the right for this sum over the oncoming people."""
    angle = keep_right * math.tanh(total)
    c, s = math.cos(angle), math.sin(angle)
    return c * ex + s * ey, c * ey - s * ex


@inlined_kernel
def goes_elsewhere(own, other):
    """Whether a person with the other goal may be oncoming to one with the own goal."""
    return own != other or own == NO_GOAL


def headed_for(state: AgentState, world: World) -> NDArray[np.int32]:
    """The goals of all agents, or the exits that they have chosen; a goal that the world does not have is none.

    Points count as none: whose point is where cannot be told from their numbers.
    """
    goal = state.goal
    if POINT in goal:
        goal = np.where(goal == POINT, np.int32(NO_GOAL), goal)
    chosen = state.columns.get(CHOSEN_EXIT.name)
    if chosen is not None:
        goal = np.where((goal == NEAREST_EXIT) & (chosen >= 0), chosen, goal)
    for anything, there in ((NEAREST_EXIT, len(world.exits)), (NEAREST_TARGET, len(world.targets))):
        if not there:
            goal = np.where(goal == anything, np.int32(NO_GOAL), goal)
    return goal


def goals_differ(goal: NDArray[np.int32], reduce: Reductions) -> bool:
    """Whether anybody in the whole crowd may be oncoming to anybody."""
    highest = reduce.largest(goal, initial=NO_GOAL)
    return highest == NO_GOAL or reduce.any(np.count_nonzero(goal != highest) > 0)


@kernel
def _oncoming_people(i, ex, ey, position, heading, goal, sense_radius, near, walls, tests_sight):
    """The sum over all oncoming people within the sense radius that no wall hides."""
    x, y, sense = position[i, 0], position[i, 1], sense_radius[i]
    total = 0.0
    view = view_of(near, i, x, y, 0.0, sense)
    for number in range(count_runs(near, view)):
        first, last, shift_x, shift_y, _ = run_of(near, view, number)
        own_x, own_y = x + shift_x, y + shift_y
        for k in range(first, last):
            px, py = near.met_position[0, k], near.met_position[1, k]
            dx, dy = px - own_x, py - own_y
            j = near.met[k]
            if dx * dx + dy * dy > sense * sense or j == i or not goes_elsewhere(goal[i], goal[j]):
                continue
            amount = oncoming(dx, dy, heading[j, 0], heading[j, 1], ex, ey)
            if amount > 0.0 and not (tests_sight and chord_blocked(own_x, own_y, px, py, walls)):
                total += amount
    return total


@parallel_kernel
def _turn_all(rows, position, heading, goal, sense_radius, near, walls, tests_sight, angle, directions):
    for n in numba.prange(rows.size):
        i = np.uint64(rows[n])
        ex, ey = directions[i, 0], directions[i, 1]
        length = math.sqrt(ex * ex + ey * ey)
        if length > 0.0:
            ex, ey = ex / length, ey / length
            total = _oncoming_people(i, ex, ey, position, heading, goal, sense_radius, near, walls, tests_sight)
            if total > 0.0:
                ex, ey = turned_right(ex, ey, angle, total)
                directions[i, 0], directions[i, 1] = length * ex, length * ey


class KeepRight(Habit):
    """Turn to the right before oncoming people, or to the left with a negative angle. In 2D; `Walk` has it built in."""

    @checked_arguments
    def __init__(self, *, angle: Annotated[float, ANGLE] = 1.0) -> None:
        self.parameters = f"angle={angle!r}"
        self._angle = float(angle)

    def prepare(self, moment: Moment) -> None:
        if moment.state.dim != 2:
            raise ParameterError("KeepRight is for 2D worlds: in 3D people can pass on any side; leave it out")

    def is_idle(self, moment: Moment) -> bool:
        return not goals_differ(headed_for(moment.state, moment.world), moment.reduce)

    def adjust(self, moment: Moment, directions: Floats) -> None:
        """Turn the directions of the members."""
        state, near = moment.state, moment.near
        # Others are read from headings, not from directions, so rows can be changed in place.
        _turn_all(moment.members, state.position, state.heading, headed_for(state, moment.world), state.sense_radius,
                  near.neighbours(), near.walls, not near.hidden_left_out, self._angle, directions)  # fmt: skip
