"""ORCA: the velocity nearest to the wanted one that avoids collisions for a while, if all others do their share.

Van den Berg, Guy, Lin & Manocha, "Reciprocal n-body collision avoidance", Robotics Research (ISRR 2009), 2011. In each
step an agent A with the preferred velocity v_pref (the planned direction times the desired speed) takes

    v_new = the v nearest to v_pref with |v| ≤ v_max in all half-planes ORCA(A|B)
    ORCA(A|B) = {v : (v - (v_A + u / 2)) · n ≥ 0}

u is the shortest way from the relative velocity v_A - v_B to the border of the velocity obstacle, the relative
velocities that lead to contact within the `time_horizon`; n points out of it there. Both agents of a pair take half of
u. For bodies that overlap, those velocities count that still overlap after one time step. If no velocity is in all
half-planes, the one is taken that breaks the worst broken one least. `half_planes.py` lists the half-planes, and
`programmes.py` finds the velocity.

Only the `max_neighbours` nearest neighbours within the sense radius count, as in the authors' library RVO2; ties go to
the lower id. Neighbours behind a wall count, as there. v_max is `speed_limit` times the desired speed. Agents that the
planner lets stand have v_pref = 0 and still give way to others.

Walls are half-planes that are never broken. As in the paper, u is found from v = 0 and agents take all of it: they
approach the nearest point of a wall so slowly that they do not touch it within `time_horizon_obstacles`. So there is
always a velocity that all walls allow. RVO2 starts from the current velocity instead, which lets agents pass the end of
a wall faster, but it has to know which walls are joined; here each segment is on its own.

Round obstacles do not give way: agents take all of u, with the velocity of the obstacle and `time_horizon_obstacles`.
Their half-planes may be broken like those of agents.

Where two bodies are in one place with one velocity, no direction leads apart, and they do not count for each other.
RVO2 divides by zero there. The published agents are no solid bodies: they may overlap where no velocity avoids it.
`solid_bodies` prevents that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

from tropel._kernels.compile import allocating_kernel, parallel_kernel
from tropel._kernels.discs import disc_cell
from tropel._kernels.walls import cell_at
from tropel.agents.state import Steered
from tropel.contracts import Model, ModelDeclaration, Moment
from tropel.errors import named_parameters
from tropel.foundation.quantities import number
from tropel.local.dimensions import refuse_3d
from tropel.local.members import started
from tropel.local.orca.half_planes import avoid_neighbours, avoid_obstacles, avoid_walls
from tropel.local.orca.nearest import NearestTable, find_nearest
from tropel.local.orca.programmes import best_within, least_broken

#: Agents per unit of parallel work; each unit has its own tables.
_CHUNK = 64
#: Agents slower than this share of their largest speed keep the direction that they face.
_STANDING = 1e-6


@named_parameters
@dataclass(frozen=True, kw_only=True)
class ORCAParameters:
    """Parameters of `ORCA`; the paper leaves the values open, and the defaults are for people."""

    time_horizon: float = number(2.0, above=0.0, unit="s", about="how long velocities must avoid other agents")
    time_horizon_obstacles: float = number(
        0.5, above=0.0, unit="s", about="how long velocities must avoid walls and obstacles"
    )
    max_neighbours: int = number(10, whole=True, low=0, high=1000, about="how many others count, the nearest ones")
    speed_limit: float = number(1.5, above=0.0, high=100.0, about="largest speed, over the desired speed")
    solid_bodies: bool = False  #: whether bodies are kept from overlapping, which the published model is not


class _Rules(NamedTuple):
    """Parameters as kernels read them."""

    horizon: float
    wall_horizon: float
    max_neighbours: int
    speed_limit: float
    dt: float


@allocating_kernel
def _steer_some(rows, first, last, position, velocity, directions, desired_speed, sense_radius, body_radius, ids, near,
                walls, discs, rules, out_velocity, out_heading):  # fmt: skip
    # A separate function, because Numba moves allocations out of parallel loops, and these tables may grow.
    many = rules.max_neighbours
    table = NearestTable(np.empty(many), np.empty(many), np.empty(many), np.empty(many, dtype=np.uint64))
    lines, scratch = np.empty((many + 32, 3)), np.empty((many + 32, 3))
    any_walls, any_discs = walls.segments.shape[0] > 0, discs.radius.shape[0] > 0
    for m in range(first, last):
        i = rows[m]
        speed = rules.speed_limit * desired_speed[i]
        if speed == 0.0:
            continue
        x, y, vx, vy = position[i, 0], position[i, 1], velocity[i, 0], velocity[i, 1]
        radius, sense = body_radius[i], sense_radius[i]
        ox, oy = directions[i, 0], directions[i, 1]
        wanted = desired_speed[i] / max(math.sqrt(ox * ox + oy * oy), 1.0)
        ox, oy = wanted * ox, wanted * oy
        room, wall_cell, cell = many, np.int64(0), np.int64(0)
        if any_walls:
            wall_cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
            room += walls.start[wall_cell + 1] - walls.start[wall_cell]
        if any_discs:
            cell = disc_cell(position, i, discs)
            room += discs.start[cell + 1] - discs.start[cell]
        if room > lines.shape[0]:
            lines, scratch = np.empty((2 * room, 3)), np.empty((2 * room, 3))
        count = np.uint64(0)
        if any_walls:
            reach = min(radius + speed * rules.wall_horizon, sense)
            count = avoid_walls(lines, count, x, y, wall_cell, reach, radius, walls, rules.wall_horizon)
        hard = count
        if any_discs:
            count = avoid_obstacles(lines, count, x, y, cell, sense, vx, vy, radius, discs, rules.wall_horizon,
                                    rules.dt)  # fmt: skip
        if many > 0:
            found = find_nearest(x, y, i, sense, near, ids, table)
            count = avoid_neighbours(lines, count, table, found, vx, vy, radius, near, rules.horizon, rules.dt)
        possible, vx, vy = best_within(lines, count, speed, ox, oy, False)
        if possible < count:
            vx, vy = least_broken(lines, count, hard, possible, speed, vx, vy, scratch)
        out_velocity[i, 0], out_velocity[i, 1] = vx, vy
        moving = math.sqrt(vx * vx + vy * vy)
        if moving > _STANDING * speed:
            out_heading[i, 0], out_heading[i, 1] = vx / moving, vy / moving


@parallel_kernel
def _orca(rows, position, velocity, directions, desired_speed, sense_radius, body_radius, ids, near, walls, discs,
          rules, out_velocity, out_heading):  # fmt: skip
    chunks = (rows.size + _CHUNK - 1) // _CHUNK
    for chunk in numba.prange(chunks):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, rows.size)
        _steer_some(rows, first, last, position, velocity, directions, desired_speed, sense_radius, body_radius, ids,
                    near, walls, discs, rules, out_velocity, out_heading)  # fmt: skip


class ORCA(Model):
    """Optimal reciprocal collision avoidance: walk as planned, with the least change that avoids collisions.

    In 2D only.
    """

    def __init__(self, **parameters: Any) -> None:
        self.parameters = ORCAParameters(**parameters)
        self.declares = ModelDeclaration(periodic_space=True, solid_bodies=self.parameters.solid_bodies)

    def prepare(self, moment: Moment) -> None:
        """Check the dimensions, once before the first step."""
        refuse_3d(self, moment)

    def steer(self, moment: Moment, out: Steered) -> None:
        """Write velocity and heading of the members into `out`."""
        given, state, near = self.parameters, moment.state, moment.near
        # With a horizon below one step, bodies could meet within the step.
        rules = _Rules(
            horizon=max(float(given.time_horizon), moment.dt),
            wall_horizon=max(float(given.time_horizon_obstacles), moment.dt),
            max_neighbours=int(given.max_neighbours),
            speed_limit=float(given.speed_limit),
            dt=float(moment.dt),
        )
        _orca(near.rows_by_cell(started(moment)), state.position, state.velocity, moment.directions,
              state.desired_speed, state.sense_radius, state.radius, state.id, near.neighbours(), near.walls,
              near.obstacles, rules, out.velocity, out.heading)  # fmt: skip
