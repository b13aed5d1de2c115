"""Stay together: the members of a family wait for each other and do not part at a fork.

Families are numbers in the column `family`, as for crowds on cells (`local/lattice/bonds.py`). Of the members of a
family of n that a member has behind it and sees, let one be the farthest, d its distance, and u the direction to it.
The planned direction e of the member becomes

    (1 - s) e + s u,    s = min(max((d - room) / reach, 0), 1),    room = 0.5 sqrt(n) m

which is shorter than 1: members that are ahead go slower and come together. They never stand still, or a family would
block a door in which others have come between its members: forwards they keep at least half of the speed that the one
behind would like to walk at. Members with nobody behind are drawn to the centroid of the family in the same way.

Members whose planned direction points against that of the leader, who is the member with the lowest id, walk towards
the leader: a family whose members are nearer to different exits takes the leader's. Nobody is drawn through a wall, and
nobody waits for those that it does not see.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from tropel._kernels.compile import kernel
from tropel._kernels.walls import chord_blocked
from tropel.agents.state import Column, Floats
from tropel.contracts import Declaration, Habit, Moment
from tropel.errors import ParameterError
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity

#: Nobody waits at less than this share of the desired speed of the member that it waits for.
_WAITING = 0.5
#: Room of a family of one [m]; it grows with the square root of the number of members.
_ROOM = 0.5
#: Steps per metre in which positions are summed: sums of integers are the same in any order.
_STEPS_PER_METRE = 2.0**20
#: No family.
_NONE = -1

REACH = Quantity(
    name="reach", above=0.0, high=1e6, unit="m", about="distance beyond the family's room at which members turn back"
)

FAMILY = Column(
    name="family",
    dtype="int32",
    default=_NONE,
    low=_NONE,
    about="agents with the same number stay together; -1 for none",
)


@kernel
def _farthest_behind(i, ex, ey, position, family, walls):
    """The farthest of the family's rows that is behind and in sight; -1 if there is none."""
    x, y = position[i, 0], position[i, 1]
    found, farthest2 = -1, 0.0
    for j in family:
        dx, dy = position[j, 0] - x, position[j, 1] - y
        away2 = dx * dx + dy * dy
        behind = dx * ex + dy * ey < 0.0
        if behind and away2 > farthest2 and not chord_blocked(x, y, position[j, 0], position[j, 1], walls):
            found, farthest2 = j, away2
    return found


@kernel
def _adjust(rows, number, position, desired_speed, centre, members, start, walls, reach, directions, out):
    """Write the directions of the rows into `out`.

    `number` is the family of each row from 0. `members` lists the rows of each family by id, from `start` on.
    """
    for n in range(rows.size):
        i, f = rows[n], number[n]
        family = members[start[f] : start[f + 1]]
        ex, ey = directions[i, 0], directions[i, 1]
        if family.size < 2 or (ex == 0.0 and ey == 0.0):
            continue
        first = family[0]
        opposed = i != first and directions[first, 0] * ex + directions[first, 1] * ey < 0.0
        last = first if opposed else _farthest_behind(i, ex, ey, position, family, walls)
        tx, ty = (position[last, 0], position[last, 1]) if last >= 0 else (centre[f, 0], centre[f, 1])
        dx, dy = tx - position[i, 0], ty - position[i, 1]
        away = math.sqrt(dx * dx + dy * dy)
        if away == 0.0 or chord_blocked(position[i, 0], position[i, 1], tx, ty, walls):
            continue
        pull = 1.0 if opposed else min(max((away - _ROOM * math.sqrt(family.size)) / reach, 0.0), 1.0)
        length = math.sqrt(ex * ex + ey * ey)
        ex, ey = ex / length, ey / length
        vx, vy = (1.0 - pull) * ex + pull * dx / away, (1.0 - pull) * ey + pull * dy / away
        if last >= 0 and not opposed:
            slowest = min(_WAITING * desired_speed[last] / max(desired_speed[i], 1e-9), 1.0)
            missing = max(slowest - (vx * ex + vy * ey), 0.0)
            vx, vy = vx + missing * ex, vy + missing * ey
        scale = length / max(math.sqrt(vx * vx + vy * vy), 1.0)
        out[i, 0], out[i, 1] = scale * vx, scale * vy


class StayTogether(Habit):
    """Families walk together, with any model that follows directions. In 2D."""

    declares = Declaration(columns=(FAMILY,))

    @checked_arguments
    def __init__(self, *, reach: Annotated[float, REACH] = 1.0) -> None:
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
        count = np.bincount(of_alive, minlength=len(numbers))
        steps = np.floor(state.position[alive] * _STEPS_PER_METRE + 0.5).astype(np.int64)
        total = np.zeros((len(numbers), 2), dtype=np.int64)
        np.add.at(total, of_alive, steps)
        members = alive[np.lexsort((state.id[alive], of_alive))]
        _adjust(rows, np.searchsorted(numbers, state.family[rows]), state.position, state.desired_speed,
                total / (count * _STEPS_PER_METRE)[:, None], members, np.append(0, np.cumsum(count)),
                moment.near.walls, self._reach, moment.guidance.directions.copy(), directions)  # fmt: skip
