"""Seek: walk at the desired speed in the planned direction, slow down behind others, sidestep where that helps.

The simplest realistic model, and the template for your own. It follows the two rules of Moussaïd, Helbing & Theraulaz,
"How simple rules determine pedestrian behavior and crowd disasters", PNAS 2011:

1. Check a fan of directions, straight ahead and to the sides. Along the direction at angle a to the planned one,
   f(a) is the distance that an agent can walk at its desired speed v0 before it touches a wall or another agent, if
   all others keep their velocity. It is at most the horizon H = sense radius. Take the direction that ends nearest to
   the point that an unobstructed walk straight ahead would reach:

       minimise   H² + f(a)² - 2 H f(a) cos a                                               (their eq. 1)

2. Keep a time T (`time_gap`) to the agent ahead, computed from where it stands now:

       v = min(v0, gap / T)                                                                 (their eq. 2)

Walls do not slow agents down: `integrate` lets bodies slide along them, even if a planner that ignores walls leads into
one. Added to the paper: an agent that has no room at all still pushes forward a little. Bodies are solid here and move
the bodies that they push (`contact/solver.py`). Without this push, three of them can block each other in a door for
ever.

Bodies are disks in 2D and balls in 3D, where the fan opens to four sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel, kernel, parallel_kernel
from tropel._kernels.neighbours import count_runs, run_of, view_of
from tropel._kernels.walls import free_of_walls
from tropel.agents.state import Steered
from tropel.contracts import Model, ModelDeclaration, Moment
from tropel.errors import ParameterError, named_parameters
from tropel.foundation.quantities import number

#: Agents per unit of parallel work; each unit has its own list of neighbours in sight.
_CHUNK = 64


@named_parameters
@dataclass(frozen=True, kw_only=True)
class SeekParameters:
    """Parameters of `Seek`."""

    time_gap: float = number(0.5, above=0.0, unit="s", about="time kept to the agent ahead")
    side_angles: tuple[float, ...] = (0.3, 0.6, 0.9, 1.2, 1.5)  #: angles to the planned direction that are tried [rad]
    margin: float = number(0.02, low=0.0, unit="m", about="room kept between bodies")
    press: float = number(
        0.3, low=0.0, high=1.0, about="how hard agents without room push forward, as a share of the desired speed"
    )

    def __post_init__(self) -> None:
        if not all(0.0 < angle < math.pi / 2 for angle in self.side_angles):
            raise ParameterError(f"Seek: side_angles must lie between 0 and pi/2, not {self.side_angles!r}")


@kernel
def _look_around(x, y, z, own, radius, horizon, near, seen):
    """List the neighbours within the horizon: offset, velocity and contact distance. Returns their number.

    If the list has no room for all of them, it holds only the first ones.
    """
    dim = near.position.shape[0]
    position, velocity = near.met_position, near.met_velocity
    count = 0
    view = view_of(near, own, x, y, z, horizon)
    for run in range(count_runs(near, view)):
        first, last, _, _, _ = run_of(near, view, run)
        for k in range(first, last):
            dx = position[0, k] - x
            dy = position[1, k] - y
            dz = position[2, k] - z if dim == 3 else 0.0
            if dx * dx + dy * dy + dz * dz > horizon * horizon or near.met[k] == own:
                continue
            if count >= seen.shape[0]:
                count += 1
                continue
            seen[count, 0], seen[count, 1], seen[count, 2] = dx, dy, dz
            seen[count, 3], seen[count, 4] = velocity[0, k], velocity[1, k]
            seen[count, 5] = velocity[2, k] if dim == 3 else 0.0
            seen[count, 6] = radius + near.met_radius[k]
            count += 1
    return count


@kernel
def _free_distance(ex, ey, ez, speed, most, seen, count):
    """Distance along the unit vector e to the first contact at this speed, if all others keep their velocity."""
    time = most / speed
    for k in range(count):
        dx, dy, dz = seen[k, 0], seen[k, 1], seen[k, 2]
        vx, vy, vz = seen[k, 3] - speed * ex, seen[k, 4] - speed * ey, seen[k, 5] - speed * ez
        closing = -(dx * vx + dy * vy + dz * vz)
        if closing <= 0.0:
            continue
        beyond = dx * dx + dy * dy + dz * dz - seen[k, 6] * seen[k, 6]
        if beyond <= 0.0:
            return 0.0
        fast2 = vx * vx + vy * vy + vz * vz
        inside = closing * closing - fast2 * beyond
        # The root gives the first contact. The comparison skips it if it cannot come before the best so far.
        if inside > 0.0 and closing - fast2 * time < math.sqrt(inside):
            time = min(time, (closing - math.sqrt(inside)) / fast2)
    return time * speed


@kernel
def _gap(ex, ey, ez, most, seen, count):
    """How far a body can move along the unit vector e before it touches another one, as they stand now."""
    gap = most
    for k in range(count):
        dx, dy, dz, contact = seen[k, 0], seen[k, 1], seen[k, 2], seen[k, 6]
        ahead = dx * ex + dy * ey + dz * ez
        if ahead <= 0.0 or ahead - contact >= gap:
            continue
        aside2 = dx * dx + dy * dy + dz * dz - ahead * ahead
        if aside2 < contact * contact:
            gap = min(gap, max(ahead - math.sqrt(contact * contact - aside2), 0.0))
    return gap


@kernel
def _across(ex, ey, ez, dim):
    """Two unit vectors that open the fan sideways: the right-hand side of e, and (in 3D) a third one across both."""
    flat = math.sqrt(ex * ex + ey * ey)
    if dim == 2 or flat > 1e-9:
        ux, uy = ey / flat, -ex / flat
    else:
        ux, uy = 1.0, 0.0
    return ux, uy, 0.0, uy * ez, -ux * ez, ux * ey - uy * ex


class _Rules(NamedTuple):
    """Parameters as kernels read them."""

    time_gap: float
    margin: float
    press: float
    turns: NDArray[np.float64]  #: (n, 2): cosine and sine of the side angles, ascending


@kernel
def _best_direction(x, y, z, ex, ey, ez, dim, wanted, horizon, radius, seen, count, walls, turns):
    """Rule 1: the direction of the fan that ends nearest to where walking straight ahead would lead."""
    bx, by, bz = ex, ey, ez
    free = free_of_walls(x, y, ex, ey, radius, _free_distance(ex, ey, ez, wanted, horizon, seen, count), walls)
    if free >= horizon:
        return bx, by, bz
    least = (horizon - free) ** 2
    ux, uy, uz, wx, wy, wz = _across(ex, ey, ez, dim)
    for turn in range(turns.shape[0]):
        cosine, sine = turns[turn, 0], turns[turn, 1]
        # Even if this angle and all wider ones were free, they would not end nearer than the best so far.
        if horizon * horizon * (1.0 - cosine * cosine) >= least:
            break
        for side in range(2 if dim == 2 else 4):
            # Right before left: where both are equally good, people pass on the right.
            sign = sine if side % 2 == 0 else -sine
            sx, sy, sz = (ux, uy, uz) if side < 2 else (wx, wy, wz)
            cx, cy, cz = cosine * ex + sign * sx, cosine * ey + sign * sy, cosine * ez + sign * sz
            free = free_of_walls(x, y, cx, cy, radius, _free_distance(cx, cy, cz, wanted, horizon, seen, count), walls)
            missed = horizon * horizon + free * free - 2.0 * horizon * free * cosine
            if missed < least - 1e-12:
                least, bx, by, bz = missed, cx, cy, cz
    return bx, by, bz


@kernel
def _steer_one(i, position, directions, desired_speed, sense_radius, body_radius, near, walls, rules, seen,
               out_velocity, out_heading):  # fmt: skip
    """Steer one agent. If `seen` has no room for its neighbours, returns their number and writes nothing."""
    dim = position.shape[1]
    ex, ey = directions[i, 0], directions[i, 1]
    ez = directions[i, 2] if dim == 3 else 0.0
    length = math.sqrt(ex * ex + ey * ey + ez * ez)
    wanted = desired_speed[i] * min(length, 1.0)
    if wanted == 0.0:
        return 0
    ex, ey, ez = ex / length, ey / length, ez / length
    x, y = position[i, 0], position[i, 1]
    z = position[i, 2] if dim == 3 else 0.0
    horizon = sense_radius[i]
    count = _look_around(x, y, z, i, body_radius[i] + rules.margin, horizon, near, seen)
    if count > seen.shape[0]:
        return count
    ex, ey, ez = _best_direction(
        x, y, z, ex, ey, ez, dim, wanted, horizon, body_radius[i], seen, count, walls, rules.turns
    )
    speed = _gap(ex, ey, ez, wanted * rules.time_gap, seen, count) / rules.time_gap
    if speed < 1e-3 * wanted:
        speed = rules.press * wanted
    out_velocity[i, 0], out_velocity[i, 1] = speed * ex, speed * ey
    out_heading[i, 0], out_heading[i, 1] = ex, ey
    if dim == 3:
        out_velocity[i, 2] = speed * ez
        out_heading[i, 2] = ez
    return 0


@allocating_kernel
def _steer_some(rows, first, last, position, directions, desired_speed, sense_radius, body_radius, near, walls, rules,
                out_velocity, out_heading):  # fmt: skip
    # A separate function, because Numba moves allocations out of parallel loops, and this list may grow. It grows
    # here, because a function that allocates counts references to all arrays that it gets, for each agent.
    seen = np.empty((64, 7))
    for m in range(first, last):
        many = _steer_one(rows[m], position, directions, desired_speed, sense_radius, body_radius, near, walls, rules,
                          seen, out_velocity, out_heading)  # fmt: skip
        if many > 0:
            seen = np.empty((2 * many, 7))
            _steer_one(rows[m], position, directions, desired_speed, sense_radius, body_radius, near, walls, rules,
                       seen, out_velocity, out_heading)  # fmt: skip


@parallel_kernel
def _seek(rows, position, directions, desired_speed, sense_radius, body_radius, near, walls, rules, out_velocity,
          out_heading):  # fmt: skip
    chunks = (rows.size + _CHUNK - 1) // _CHUNK
    for chunk in numba.prange(chunks):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, rows.size)
        _steer_some(rows, first, last, position, directions, desired_speed, sense_radius, body_radius, near, walls,
                    rules, out_velocity, out_heading)  # fmt: skip


class Seek(Model):
    """Walk in the planned direction; slow down behind others, or step around them."""

    declares = ModelDeclaration(solid_bodies=True)

    def __init__(self, **parameters: Any) -> None:
        self.parameters = SeekParameters(**parameters)
        angles = np.sort(np.array(self.parameters.side_angles, dtype=np.float64))
        self._turns = np.column_stack([np.cos(angles), np.sin(angles)])

    def steer(self, moment: Moment, out: Steered) -> None:
        """Write velocity and heading of the members into `out`."""
        # With less than two steps to spare, two agents that walk towards each other would meet within one step.
        time_gap = max(self.parameters.time_gap, 2.0 * moment.dt)
        rules = _Rules(time_gap, self.parameters.margin, self.parameters.press, self._turns)
        state, near = moment.state, moment.near
        _seek(near.rows_by_cell(moment.members), state.position, moment.directions, state.desired_speed,
              state.sense_radius, state.radius, near.neighbours(), near.walls, rules, out.velocity,
              out.heading)  # fmt: skip
