"""Follow the leader: agents that have one walk to it, with any model that follows directions.

The leader is the agent in the column `leader`. A follower adds a pull to its planned direction, which is zero for
followers without a goal of their own:

    e' = e + pull · min(max(g - gap, 0) / reach, 1) · d / |d|,    no longer than 1

with d the offset to the place that it pursues (the leader, or the newest point of the leader's trail that it sees if a
wall hides the leader, `agents/trails.py`) and g the free distance between bodies that are so far apart. So followers
close up, keep pace and stand at the distance `gap`.

Nobody should stand in the leader's way for good: followers nearer than `gap` go where the leader wants to go, the more
the nearer they are and the more they are ahead of it:

    e'' = e' + min((gap - g) / gap, 1) · max(cos(angle between E and -d), 0) · E,    no longer than 1

with E the planned direction of the leader. Without that, a successor in the midst of its group was hemmed in by
followers that stood and waited for it. A flock has a rule of its own for leaders and needs no habit.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from tropel._kernels.cells import nearest_image
from tropel._kernels.compile import kernel
from tropel.agents.leaders import LEADER, NOBODY
from tropel.agents.state import Floats
from tropel.agents.trails import pursued_places
from tropel.contracts import Declaration, Habit, Moment
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity

PULL = Quantity(name="pull", low=0.0, high=10.0, about="weight of the direction to the leader beside the planned one")
GAP = Quantity(name="gap", low=0.0, high=1e6, unit="m", about="free distance to the leader at which followers stand")
REACH = Quantity(
    name="reach", above=0.0, high=1e6, unit="m", about="how far beyond the gap followers walk at their full speed"
)


@kernel
def _adjust(rows, leader, on_trail, position, pursued, radius, period, pull, gap, reach, leads, directions):
    dim = position.shape[1]
    for n in range(rows.size):
        i = rows[n]
        j = leader[i]
        away2 = 0.0
        for axis in range(dim):
            away2 += nearest_image(pursued[i, axis] - position[i, axis], period[axis]) ** 2
        away = math.sqrt(away2)
        if away == 0.0:
            continue
        # On the way to a point of the trail nobody is in the way. The distance is that to the place pursued and not to
        # the leader: that of a successor is another one at once, and whoever is beside it would stop dead.
        free = math.inf if on_trail[i] else away - radius[i] - radius[j]
        share = pull * min(max(free - gap, 0.0) / reach, 1.0)
        near = min((gap - free) / gap, 1.0) if free < gap else 0.0
        ahead = 0.0
        if near > 0.0:
            wish2 = 0.0
            for axis in range(dim):
                ahead -= leads[n, axis] * nearest_image(pursued[i, axis] - position[i, axis], period[axis])
                wish2 += leads[n, axis] ** 2
            ahead = max(ahead, 0.0) / (away * math.sqrt(wish2)) if wish2 > 0.0 else 0.0
        length2 = 0.0
        for axis in range(dim):
            directions[i, axis] += share * nearest_image(pursued[i, axis] - position[i, axis], period[axis]) / away
            directions[i, axis] += near * ahead * leads[n, axis]
            length2 += directions[i, axis] ** 2
        if length2 > 1.0:
            for axis in range(dim):
                directions[i, axis] /= math.sqrt(length2)


class FollowLeader(Habit):
    """Agents with a leader walk to it and stay close. `pull` is its weight, `gap` and `reach` are distances [m]."""

    declares = Declaration(columns=(LEADER,), periodic_space=True)
    binds = ("leader",)

    @checked_arguments
    def __init__(
        self, *, pull: Annotated[float, PULL] = 1.0, gap: Annotated[float, GAP] = 0.3,
        reach: Annotated[float, REACH] = 1.0,
    ) -> None:  # fmt: skip
        self.parameters = f"pull={pull!r}, gap={gap!r}, reach={reach!r}"
        self._pull, self._gap, self._reach = float(pull), float(gap), float(reach)

    def is_idle(self, moment: Moment) -> bool:
        return moment.reduce.largest(moment.state.columns[LEADER.name], initial=NOBODY) == NOBODY

    def adjust(self, moment: Moment, directions: Floats) -> None:
        """Turn the followers among the members to their leaders."""
        state, world = moment.state, moment.world
        leader = state.columns[LEADER.name]
        led_by = np.where((leader >= 0) & (leader != state.id), state.row_of(leader), NOBODY)
        led_by[(led_by >= 0) & (state.dead[led_by] != 0)] = NOBODY
        rows = moment.members[led_by[moment.members] >= 0]
        if len(moment.waiting):
            rows = rows[~moment.waiting[rows]]
        if not len(rows):
            return
        pursued = pursued_places(state, world, led_by, moment.trails)
        place, on_trail = pursued
        if not len(place):
            place, on_trail = np.zeros_like(state.position), np.zeros(len(state), dtype=np.bool_)
            place[rows] = state.position[led_by[rows]]
        # Of before anybody is turned: a leader may follow another one.
        leads = directions[led_by[rows]]
        _adjust(rows, led_by, on_trail, state.position, place, state.radius, world.period, self._pull, self._gap,
                self._reach, leads, directions)  # fmt: skip
