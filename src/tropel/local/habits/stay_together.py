"""Stay together: the members of a family wait for each other and do not part at a fork.

Families are numbers in the column `family`, as for crowds on cells (`local/lattice/bonds.py`). A member of a family of
n looks for the last one: the member farthest behind, at a distance g, that no wall hides. The room that the family
takes up is 0.5 sqrt(n) m. The planned direction of the member, and with it the speed, becomes shorter:

    g up to the room              1
    g = room + reach              the desired speed of the last one over that of the member, at most 1
    g = room + 2 reach, or more   0.02

and linear in between. So those ahead walk as fast as the last one, whom nobody slows down, and wait where that one is
held up. Who counts as behind must see the member ahead by its own plan too, or two that go around a pillar on both
sides would wait for each other; and since nobody stands still for good, no three do either.

Members whose planned direction points against that of the leader walk towards the leader: a family whose members are
nearer to different exits takes the leader's. The leader is the member that was designated, or else the one with the
lowest id (`agents/leaders.py`). Nobody is drawn through a wall: members that do not see the leader follow their plan.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.walls import chord_blocked
from tropel.agents.leaders import LEADER, first_of_each
from tropel.agents.state import Column, Floats
from tropel.contracts import Declaration, Habit, Moment
from tropel.errors import ParameterError
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity

#: Those who wait walk on at this share of the planned speed.
_SLOWEST = 0.02
#: Room of a family of one [m]; it grows with the square root of the number of members.
_ROOM = 0.5
#: No family.
_NONE = -1

REACH = Quantity(
    name="reach",
    above=0.0,
    high=1e6,
    unit="m",
    about="how far beyond the family's room members are as slow as the last one; at twice that they wait",
)

FAMILY = Column(
    name="family",
    dtype="int32",
    default=_NONE,
    low=_NONE,
    about="agents with the same number stay together; -1 for none",
)


@inlined_kernel
def _share_of_speed(behind, room, reach, pace):
    """How much of their speed members keep when the last one is so far behind, whose speed over theirs is `pace`."""
    far = (behind - room) / reach
    if far <= 1.0:
        return 1.0 - (1.0 - pace) * max(far, 0.0)
    return max(pace * (2.0 - far), _SLOWEST)


@kernel
def _last_one(i, others, position, directions, walls):
    """Row of the member farthest behind i that no wall hides, and its distance; i itself if there is none."""
    last, farthest = i, 0.0
    x, y = position[i, 0], position[i, 1]
    for m in range(others.size):
        j = others[m]
        dx, dy = position[j, 0] - x, position[j, 1] - y
        away = math.sqrt(dx * dx + dy * dy)
        behind = dx * directions[i, 0] + dy * directions[i, 1] < 0.0
        ahead = dx * directions[j, 0] + dy * directions[j, 1] <= 0.0
        if behind and ahead and away > farthest and not chord_blocked(x, y, position[j, 0], position[j, 1], walls):
            last, farthest = j, away
    return last, farthest


@kernel
def _adjust(rows, family, start, order, position, speed, leader, walls, reach, directions, out):
    """Write the directions of the rows into `out`. `family` has the number of each row's family from 0.

    The members of family f are the rows `order[start[f] : start[f + 1]]`.
    """
    for n in range(rows.size):
        i, f = rows[n], family[n]
        ex, ey = directions[i, 0], directions[i, 1]
        others = order[start[f] : start[f + 1]]
        if others.size < 2 or (ex == 0.0 and ey == 0.0) or speed[i] == 0.0:
            continue
        first = leader[f]
        if i != first and directions[first, 0] * ex + directions[first, 1] * ey < 0.0:
            dx, dy = position[first, 0] - position[i, 0], position[first, 1] - position[i, 1]
            away = math.sqrt(dx * dx + dy * dy)
            if away > 0.0 and not chord_blocked(
                position[i, 0], position[i, 1], position[first, 0], position[first, 1], walls
            ):
                length = math.sqrt(ex * ex + ey * ey)
                out[i, 0], out[i, 1] = length * dx / away, length * dy / away
            continue
        last, behind = _last_one(i, others, position, directions, walls)
        pace = min(speed[last] / speed[i], 1.0)
        share = _share_of_speed(behind, _ROOM * math.sqrt(others.size), reach, pace)
        out[i, 0], out[i, 1] = share * ex, share * ey


class StayTogether(Habit):
    """Families walk together, with any model that follows directions. In 2D."""

    declares = Declaration(columns=(FAMILY, LEADER))
    binds = ("family",)

    @checked_arguments
    def __init__(self, *, reach: Annotated[float, REACH] = 2.0) -> None:
        self.parameters = f"reach={reach!r}"
        self._reach = float(reach)

    def prepare(self, moment: Moment) -> None:
        if moment.state.dim != 2:
            raise ParameterError("StayTogether is for 2D worlds; in 3D let a flock stay together")

    def is_idle(self, moment: Moment) -> bool:
        return moment.reduce.largest(moment.state.family, initial=_NONE) == _NONE

    def adjust(self, moment: Moment, directions: Floats) -> None:
        """Change the directions of the members that have a family."""
        state = moment.state
        rows = moment.members[state.family[moment.members] > _NONE]
        alive = np.flatnonzero((state.family > _NONE) & (state.dead == 0))
        if not len(rows) or not len(alive):
            return
        numbers, of_alive = np.unique(state.family[alive], return_inverse=True)
        start, order, leads = first_of_each(of_alive, state.id[alive], state.columns[LEADER.name][alive])
        _adjust(rows, np.searchsorted(numbers, state.family[rows]), start, alive[order], state.position,
                state.desired_speed, alive[leads], moment.near.walls, self._reach,
                moment.guidance.directions.copy(), directions)  # fmt: skip
