"""Stay together: the members of a family wait for each other and do not part at a fork.

Families are numbers in the column `family`, as for crowds on cells (`local/lattice/bonds.py`). Let c be the centroid of
a family of n, d the distance of a member from it, and u the direction to it. The planned direction e of the member
becomes

    (1 - s) e + s u,    s = min(max((d - room) / reach, 0), 1),    room = 0.5 sqrt(n) m

which is shorter than 1 for members that are ahead: they go slower, stand, and in the end turn back. Members that are
behind keep their pace. The member with the lowest id leads. It never stands still for the others, or two that wait for
each other would wait for ever: it slows down to 0.3 e. Members whose planned direction points against that of the
leader walk towards the leader: a family whose members are nearer to different exits takes the leader's. Nobody is drawn
through a wall: members that do not see the centroid follow their plan.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.walls import chord_blocked
from tropel.agents.state import Column, Floats
from tropel.contracts import Declaration, Habit, Moment
from tropel.errors import ParameterError
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity

#: The speed below which a leader does not slow down, as a share of the planned one.
_LEADER_SLOWEST = 0.3
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
def _adjust(rows, family, position, centre, count, leader, walls, reach, directions, out):
    """Write the directions of the rows into `out`; `family` has the number of each row's family from 0."""
    for n in range(rows.size):
        i, f = rows[n], family[n]
        ex, ey = directions[i, 0], directions[i, 1]
        if count[f] < 2 or (ex == 0.0 and ey == 0.0):
            continue
        first = leader[f]
        tx, ty = centre[f, 0], centre[f, 1]
        opposed = i != first and directions[first, 0] * ex + directions[first, 1] * ey < 0.0
        if opposed:
            tx, ty = position[first, 0], position[first, 1]
        dx, dy = tx - position[i, 0], ty - position[i, 1]
        away = math.sqrt(dx * dx + dy * dy)
        if away == 0.0 or chord_blocked(position[i, 0], position[i, 1], tx, ty, walls):
            continue
        pull = min(max((away - _ROOM * math.sqrt(count[f])) / reach, 0.0), 1.0)
        if i == first:
            slower = max(1.0 - pull, _LEADER_SLOWEST) if dx * ex + dy * ey < 0.0 else 1.0
            out[i, 0], out[i, 1] = slower * ex, slower * ey
            continue
        if opposed:
            pull = 1.0
        speed = math.sqrt(ex * ex + ey * ey)
        out[i, 0] = (1.0 - pull) * ex + pull * speed * dx / away
        out[i, 1] = (1.0 - pull) * ey + pull * speed * dy / away


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
        leader = _lowest_ids(state.id[alive], of_alive, len(numbers))
        _adjust(rows, np.searchsorted(numbers, state.family[rows]), state.position,
                total / (count * _STEPS_PER_METRE)[:, None], count, alive[leader], moment.near.walls, self._reach,
                moment.guidance.directions.copy(), directions)  # fmt: skip


def _lowest_ids(ids: NDArray[np.int64], family: NDArray[np.int64], families: int) -> NDArray[np.int64]:
    """For each family the index of its member with the lowest id."""
    order = np.lexsort((ids, family))
    first = np.searchsorted(family[order], np.arange(families))
    return np.asarray(order[first])
