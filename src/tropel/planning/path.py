"""Follow a road: a line through a few points, open or closed, with a lane for each agent.

The planned direction leads to a point of the road `look_ahead` metres further on, so any model can follow it. Models
that look further ahead read the road itself (`contracts/courses.py`).

An agent's lane is its distance to the left of the line. Agents that are given none (the parameter `lane`) keep the one
on which they joined, up to half the `width` of the road.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from tropel._kernels.compile import kernel, parallel_kernel
from tropel.agents.state import Column
from tropel.contracts import Declaration, Guidance, Moment, Planner
from tropel.contracts.courses import Course
from tropel.contracts.offers import OfferedRoad
from tropel.errors import ParameterError
from tropel.foundation.arguments import Length, checked_arguments
from tropel.planning.road import curvature_of, road_through

#: Agents that know where on the road they are look this far to either side [m].
_WINDOW = 15.0

_LANE = Column(
    name="lane",
    default=math.nan,
    low=-1e4,
    high=1e4,
    unit="m",
    about="distance to the left of the road that the agent keeps; by default the one on which it joined",
)
_MEMORY = (
    Column(name="road_at", default=-1.0, low=-1.0, kept=True, unit="m", about="how far along the road the agent is"),
    Column(name="road_side", low=-1e6, high=1e6, kept=True, unit="m", about="its distance to the left of the road"),
)


@kernel
def _nearest(points, closed, step, first, last, x, y):
    """Along the road and to the left of it, the nearest place between two points by number; of equals the first."""
    count = points.shape[0]
    least, best_at, best_side = math.inf, 0.0, 0.0
    for number in range(first, last):
        k = number % count
        after = (k + 1) % count
        x0, y0 = points[k, 0], points[k, 1]
        dx, dy = points[after, 0] - x0, points[after, 1] - y0
        length2 = dx * dx + dy * dy
        u = ((x - x0) * dx + (y - y0) * dy) / length2
        # Beyond the ends of an open road it goes on straight, so that its length is not the end of everything.
        low = -math.inf if not closed and k == 0 else 0.0
        high = math.inf if not closed and k == count - 2 else 1.0
        u = min(max(u, low), high)
        gap_x, gap_y = x - x0 - u * dx, y - y0 - u * dy
        away2 = gap_x * gap_x + gap_y * gap_y
        if away2 < least:
            least = away2
            best_at = (k + u) * step
            best_side = math.copysign(math.sqrt(away2), dx * gap_y - dy * gap_x)
    return best_at, best_side


@parallel_kernel
def _find_places(rows, position, points, closed, step, known, at, side):
    """Write where on the road each agent is: near where it was, or anywhere if it is new."""
    pieces = points.shape[0] if closed else points.shape[0] - 1
    for m in numba.prange(rows.size):
        i = rows[m]
        first, last = 0, pieces
        if known[i] >= 0.0:
            middle = np.int64(known[i] / step)
            reach = np.int64(_WINDOW / step) + 1
            if 2 * reach + 1 < pieces:
                first, last = middle - reach, middle + reach + 1
                if not closed:
                    first = min(max(first, 0), pieces - 1)
                    last = max(min(last, pieces), first + 1)
        at[m], side[m] = _nearest(points, closed, step, first, last, position[i, 0], position[i, 1])


class FollowPath(Planner):
    """Follow a road through `points`.

    `closed`: the last point leads back to the first. `smooth`: a spline through the points instead of straight pieces.
    `width`: of the road [m], for those that keep the lane on which they join it. `look_ahead`: where the planned
    direction leads to [m]. `stop`: whether agents stop at the end of an open road; otherwise they go straight on.
    """

    @checked_arguments
    def __init__(
        self,
        points: Sequence[Sequence[float]],
        *,
        closed: bool = False,
        smooth: bool = True,
        width: Length = 6.0,
        look_ahead: Length = 4.0,
        stop: bool = True,
    ) -> None:
        self.road = road_through(points, closed=closed, smooth=smooth)
        if look_ahead <= 0.0:
            raise ParameterError(f"FollowPath: look_ahead must be positive, not {look_ahead!r}")
        self.width, self.look_ahead, self.stop = float(width), float(look_ahead), stop
        self.parameters = f"{points!r}, {closed}, {smooth}, {width!r}, {look_ahead!r}, {stop}"
        self.declares = Declaration(columns=(_LANE,), memory=_MEMORY)
        self._curvature = curvature_of(self.road)
        self._offer = OfferedRoad(points=self.road.points, closed=closed, curvature=self._curvature)

    def offers(self) -> tuple[object, ...]:
        return (self._offer,)

    def prepare(self, moment: Moment) -> None:
        """Check the dimensions, once before the first step."""
        if moment.state.dim != 2:
            raise ParameterError("FollowPath leads through a plane, and this world has 3 dimensions; use a 2D world")

    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write directions, and the course that models may follow instead."""
        state, rows, road = moment.state, moment.members, self.road
        at, offset = np.empty(len(rows)), np.empty(len(rows))
        _find_places(rows, state.position, road.points, road.closed, road.step, state.road_at, at, offset)
        new = state.road_at[rows] < 0.0
        lane = state.lane[rows]
        half = 0.5 * self.width
        kept = np.where(new, np.clip(offset, -half, half), state.road_side[rows])
        side = np.where(np.isnan(lane), kept, lane)
        out.memory["road_at"][rows], out.memory["road_side"][rows] = np.maximum(at, 0.0), side
        out.courses.append(Course(rows=rows, road=road, stops=self.stop, at=at, side=side))
        out.directions[rows] = self._towards(state.position[rows], at, side)

    def _towards(self, position: Any, at: Any, side: Any) -> Any:
        """Unit vectors to the lane a little further on; zero at the end of an open road."""
        road, count = self.road, len(self.road.points)
        ahead = (at + self.look_ahead) / road.step
        if road.closed:
            whole = np.floor(ahead)
            k, beyond, share = whole.astype(np.int64) % count, np.zeros(len(at)), ahead - whole
            after = (k + 1) % count
        else:
            inside = np.clip(ahead, 0.0, count - 1.0)
            k = np.minimum(inside.astype(np.int64), count - 2)
            beyond, share, after = (ahead - inside) * road.step, inside - k, k + 1
        tangent = (1.0 - share)[:, None] * road.tangents[k] + share[:, None] * road.tangents[after]
        point = (1.0 - share)[:, None] * road.points[k] + share[:, None] * road.points[after]
        point = point + beyond[:, None] * tangent + side[:, None] * np.column_stack([-tangent[:, 1], tangent[:, 0]])
        wanted = point - position
        size = np.linalg.norm(wanted, axis=1)
        unit = np.where(size[:, None] > 0.0, wanted / np.maximum(size, 1e-12)[:, None], tangent)
        if self.stop and not road.closed:
            unit[at >= road.length] = 0.0
        return unit
