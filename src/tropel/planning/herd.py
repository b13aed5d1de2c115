"""Ride as a herd: travel in one direction, near the middle of the group and not too near each other.

As in the second experiment of Brogan & Hodgins (AAMAS 2002), each agent has a wanted place next to its companions:
drawn to the middle of the group from farther away than `radius`, and away from companions closer than `spacing`, half
of the way for each of a pair. The place moves on in the direction of travel, so nobody turns back to get there:
models that look ahead read it as a course (`contracts/courses.py`), and for others the planned direction leads to the
place as it will be `look_ahead` seconds later. Agents ahead of their place are told to go slower, down to `slowest`.

The middle is that of the members of a planner. It is found from whole micrometres, so their order does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import parallel_kernel
from tropel._kernels.neighbours import count_runs, run_of, view_of
from tropel.contracts import Declaration, Guidance, Moment, Planner
from tropel.contracts.courses import Course
from tropel.contracts.near import runs_of_cells
from tropel.errors import ParameterError, is_finite
from tropel.foundation.arguments import Length, checked_arguments

#: Positions are added up in this unit [m].
_UNIT = 1e-6
#: An agent this far ahead of its place goes as slowly as it may [m].
_AHEAD = 4.0


@parallel_kernel
def _shift_places(rows, mine, position, near, middle, radius, spacing, out):
    """Write how far each agent's wanted place is from where it is."""
    for m in numba.prange(rows.size):
        i = rows[m]
        x, y = position[i, 0], position[i, 1]
        to_x, to_y = middle[0] - x, middle[1] - y
        away = math.sqrt(to_x * to_x + to_y * to_y)
        pull = max(away - radius, 0.0) / away if away > 0.0 else 0.0
        shift_x, shift_y = pull * to_x, pull * to_y
        view = view_of(near, i, x, y, 0.0, spacing)
        for number in range(count_runs(near, view)):
            first, last, _, _, _ = run_of(near, view, number)
            for k in range(first, last):
                j = near.met[k]
                if j == i or not mine[j]:
                    continue
                dx, dy = x - position[j, 0], y - position[j, 1]
                gap = math.sqrt(dx * dx + dy * dy)
                if 0.0 < gap < spacing:
                    push = 0.5 * (spacing - gap) / gap
                    shift_x += push * dx
                    shift_y += push * dy
        out[m, 0], out[m, 1] = shift_x, shift_y


class Herd(Planner):
    """Travel along `direction` in a herd within `radius` of its middle, `spacing` apart [m]."""

    @checked_arguments
    def __init__(
        self,
        *,
        direction: Sequence[float] = (1.0, 0.0),
        radius: Length = 5.0,
        spacing: Length = 4.0,
        look_ahead: float = 2.0,
        slowest: float = 0.95,
    ) -> None:
        given = np.array([float(c) if is_finite(c) else math.nan for c in direction])
        if given.shape != (2,) or not np.isfinite(given).all() or not given.any():
            raise ParameterError(f"Herd: direction must be two numbers that are not both zero, not {direction!r:.60}")
        if spacing <= 0.0 or radius <= 0.0:
            raise ParameterError(f"Herd: radius and spacing must be positive, not {radius!r} and {spacing!r}")
        if not (is_finite(look_ahead) and 0.0 < look_ahead <= 60.0):
            raise ParameterError(f"Herd: look_ahead must be between 0 and 60 s, not {look_ahead!r}")
        if not (is_finite(slowest) and 0.0 < slowest <= 1.0):
            raise ParameterError(f"Herd: slowest is a share of the speed between 0 and 1, not {slowest!r}")
        self.along = given / math.hypot(*given)
        self.radius, self.spacing = float(radius), float(spacing)
        self.look_ahead, self.slowest = float(look_ahead), float(slowest)
        self.parameters = f"{self.along.tolist()}, {radius!r}, {spacing!r}, {look_ahead!r}, {slowest!r}"
        self.declares = Declaration()

    def prepare(self, moment: Moment) -> None:
        """Check the dimensions, once before the first step."""
        if moment.state.dim != 2:
            raise ParameterError("Herd leads through a plane, and this world has 3 dimensions; use a 2D world")

    def middle(self, moment: Moment) -> NDArray[np.float64] | None:
        """The mean position of the members on all processes; None if there are none."""
        position = moment.state.position[moment.members]
        count = moment.reduce.count(len(position))
        if count == 0:
            return None
        total = moment.reduce.counts(np.rint(position / _UNIT).astype(np.int64).sum(axis=0))
        return np.asarray(total * _UNIT / count)

    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write directions, and the course that models may follow instead."""
        state, rows = moment.state, moment.members
        middle = self.middle(moment)
        if middle is None or not len(rows):
            return
        mine = np.isin(state.group, moment.groups) & (state.dead == 0)
        shift = np.empty((len(rows), 2))
        _shift_places(rows, mine, state.position, runs_of_cells(moment.cells.cell_list), middle, self.radius,
                      self.spacing, shift)  # fmt: skip
        gain = shift @ self.along
        # What is to be gained along the direction of travel is a matter of pace.
        aside = shift - gain[:, None] * self.along
        along = np.broadcast_to(self.along, shift.shape)
        out.courses.append(Course(rows=rows, place=state.position[rows] + aside, along=along))
        pace = np.clip(1.0 + gain / _AHEAD * (1.0 - self.slowest), self.slowest, 1.0)
        wanted = aside + self.look_ahead * state.desired_speed[rows, None] * self.along
        size = np.linalg.norm(wanted, axis=1)
        out.directions[rows] = np.where(size > 0.0, pace / np.maximum(size, 1e-12), 0.0)[:, None] * wanted
