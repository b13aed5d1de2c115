"""The collision-free speed model: neighbours and walls bend the direction, the agent ahead sets the speed.

Tordeux, Chraibi & Seyfried, "Collision-free speed model for pedestrian dynamics", Traffic and Granular Flow '15 (2016),
arXiv:1512.05597, with walls and default parameters as in JuPedSim. Numbered here:

    dx_i/dt = V(s_i) e_i                                                                                          (1)
    e_i     = (e0 + sum_j R_n(s_ij - l_ij) e_ji + sum_w R_g(s_iw - r_i) e_wi) / N,   so that |e_i| = 1            (2)
    R_n(g)  = a_n exp(-g / D_n),   R_g(g) = a_g exp(-g / D_g)                                                     (3)
    s_i     = min of s_ij over all j ahead (e_i · e_ij ≥ 0) in the corridor (s_ij |e_i × e_ij| ≤ l_ij)            (4)
    V(s)    = min(v0, max(0, (s - l) / T))                                                                        (5)

s_ij is the distance between two centres, e_ij the unit vector from i to j, l_ij = r_i + r_j, e0 the planned direction,
v0 the desired speed and T the time gap, which can differ between agents. w runs over the nearest points of the walls.
Where radii differ, the smallest s_ij - l_ij of (4) counts.

Where the paper is silent, this follows JuPedSim: walls bend the path but do not slow agents down, and neighbours that
are hidden by a wall do not count. Round obstacles are geometry: they repel like a wall at the nearest point of their
surface, moving or not, and do not slow agents down. If they counted in (4) like a standing agent, they would stop for
good every agent that has to get past them.

Repulsions below `_NEGLIGIBLE` (the planned direction has weight 1) are skipped, and so is everything beyond the sense
radius.

The paper's crowd is free of collisions for dt ≤ min(T / 2, 0.29 l / v0), about 0.08 s for people. Bodies may overlap
next to walls, which turn moves, and where agents start on top of each other; `solid_bodies` prevents that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

from tropel._kernels.compile import allocating_kernel, kernel, parallel_kernel
from tropel._kernels.discs import disc_cell
from tropel._kernels.neighbours import count_runs, run_of, view_of
from tropel._kernels.walls import cell_at, chord_blocked, nearest_on_wall
from tropel.agents.state import Column, Steered
from tropel.contracts import Model, ModelDeclaration, Moment
from tropel.errors import ParameterError, named_parameters
from tropel.foundation import quantities
from tropel.local.dimensions import refuse_3d

#: Agents per unit of parallel work; each unit has its own list of neighbours in sight.
_CHUNK = 64

#: Repulsions weaker than this do not turn an agent by a visible angle.
_NEGLIGIBLE = 1e-6

#: A body deep inside a wall is pushed by at most exp of this: enough for any direction, and still finite.
_STEEPEST = 100.0


@named_parameters
@dataclass(frozen=True, kw_only=True)
class CollisionFreeSpeedParameters:
    """Parameters of `CollisionFreeSpeed`; the defaults are those of JuPedSim."""

    neighbour_strength: float = quantities.number(
        8.0, low=0.0, about="a_n, repulsion of a neighbour in contact; the planned direction has weight 1"
    )
    neighbour_range: float = quantities.number(0.1, above=0.0, unit="m", about="D_n, distance over which it falls by e")
    wall_strength: float = quantities.number(5.0, low=0.0, about="a_g, repulsion of a wall or an obstacle in contact")
    wall_range: float = quantities.number(0.02, above=0.0, unit="m", about="D_g, distance over which it falls by e")
    time_gap: float = quantities.number(
        1.0, above=0.0, unit="s", about="T, time kept to the agent ahead, for agents that have no other `time_gap`"
    )
    solid_bodies: bool = False  #: whether bodies are kept from overlapping, which the published model leaves open


class _Rules(NamedTuple):
    """Parameters as kernels read them."""

    neighbour_strength: float
    neighbour_range: float
    neighbour_reach: float  #: free distance beyond which neighbours do not turn an agent [m]
    wall_strength: float
    wall_range: float
    wall_reach: float  #: the same for walls and obstacles [m]
    widest: float  #: largest radius of all agents [m]
    shortest_gap: float  #: smallest time gap that makes sense with the time step [s]
    tests_sight: bool  #: whether neighbours may be hidden by walls


def _reach(strength: float, fall: float) -> float:
    return fall * math.log(strength / _NEGLIGIBLE) if strength > _NEGLIGIBLE else 0.0


@kernel
def _repulsion(strength, fall, gap):
    """Equation (3)."""
    return strength * math.exp(min(-gap / fall, _STEEPEST))


@kernel
def _walls(x, y, radius, sense, walls, rules):
    """Sum over walls in (2), and the distance to the nearest wall (infinite if none is listed here)."""
    ex = ey = 0.0
    nearest2 = math.inf
    limit = min(radius + rules.wall_reach, sense)
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if not walls.blocking[s]:
            continue
        qx, qy = nearest_on_wall(x, y, walls, s)
        dx, dy = x - qx, y - qy
        away2 = dx * dx + dy * dy
        nearest2 = min(nearest2, away2)
        if 0.0 < away2 <= limit * limit:
            away = math.sqrt(away2)
            push = _repulsion(rules.wall_strength, rules.wall_range, away - radius) / away
            ex += push * dx
            ey += push * dy
    return ex, ey, math.sqrt(nearest2)


@kernel
def _obstacles(position, i, radius, sense, discs, rules):
    """Sum over round obstacles in (2)."""
    ex = ey = 0.0
    limit = min(radius + rules.wall_reach, sense)
    cell = disc_cell(position, i, discs)
    for k in range(discs.start[cell], discs.start[cell + 1]):
        m = discs.items[k]
        dx, dy = position[i, 0] - discs.position[m, 0], position[i, 1] - discs.position[m, 1]
        centre2 = dx * dx + dy * dy
        reach = limit + discs.radius[m]
        if 0.0 < centre2 <= reach * reach:
            centre = math.sqrt(centre2)
            push = _repulsion(rules.wall_strength, rules.wall_range, centre - discs.radius[m] - radius) / centre
            ex += push * dx
            ey += push * dy
    return ex, ey


@kernel
def _look_around(x, y, own, radius, window, near, seen):
    """List the neighbours within the window: offset, distance and contact distance. Returns the length of the list,
    and the room it needs if there is too little."""
    limit = window * window
    count = np.uint64(0)
    position, body = near.met_position, near.met_radius
    view = view_of(near, own, x, y, 0.0, window)
    for number in range(count_runs(near, view)):
        first, last, shift_x, shift_y, _ = run_of(near, view, number)
        own_x, own_y = x + shift_x, y + shift_y
        if count + (last - first) > seen.shape[0]:
            return count, count + (last - first)
        for k in range(first, last):
            # Write every candidate and advance the count only for those near: a branch would mispredict half the time.
            dx = position[0, k] - own_x
            dy = position[1, k] - own_y
            away2 = dx * dx + dy * dy
            seen[count, 0], seen[count, 1], seen[count, 2] = dx, dy, math.sqrt(away2)
            seen[count, 3] = radius + body[k]
            count += np.uint64((away2 <= limit) & (near.met[k] != own))
    return count, np.uint64(0)


@kernel
def _without_hidden(x, y, nearest, walls, seen, count):
    """Remove from the list the neighbours that a wall hides; returns its new length."""
    kept = np.uint64(0)
    for k in range(np.uint64(0), count):
        if seen[k, 2] > nearest and chord_blocked(x, y, x + seen[k, 0], y + seen[k, 1], walls):
            continue
        for column in range(4):
            seen[kept, column] = seen[k, column]
        kept += np.uint64(1)
    return kept


@kernel
def _others(seen, count, rules):
    """Sum over others in (2)."""
    ex = ey = 0.0
    for k in range(np.uint64(0), count):
        away = seen[k, 2]
        gap = away - seen[k, 3]
        # An agent in exactly the same place does not push: no direction leads away from it.
        if away > 0.0 and gap <= rules.neighbour_reach:
            push = _repulsion(rules.neighbour_strength, rules.neighbour_range, gap) / away
            ex -= push * seen[k, 0]
            ey -= push * seen[k, 1]
    return ex, ey


@kernel
def _spacing(ex, ey, most, seen, count):
    """Equation (4), as free distance; at most `most`."""
    spacing = most
    for k in range(np.uint64(0), count):
        dx, dy, contact = seen[k, 0], seen[k, 1], seen[k, 3]
        if dx * ex + dy * ey >= 0.0 and abs(ex * dy - ey * dx) <= contact:
            spacing = min(spacing, seen[k, 2] - contact)
    return spacing


@allocating_kernel
def _steer_some(rows, first, last, position, heading, directions, desired_speed, sense_radius, body_radius, time_gap,
                near, walls, discs, rules, out_velocity, out_heading):  # fmt: skip
    # A separate function, because Numba moves allocations out of parallel loops, and this list may grow. One function
    # handles all agents of a chunk, because passing tuples of arrays to a function costs more than a neighbour does.
    seen = np.empty((64, 4))
    any_walls, any_discs = walls.segments.shape[0] > 0, discs.radius.shape[0] > 0
    for m in range(first, last):
        i = rows[m]
        ex, ey = directions[i, 0], directions[i, 1]
        length = math.sqrt(ex * ex + ey * ey)
        wanted = desired_speed[i] * min(length, 1.0)
        if wanted == 0.0:
            continue
        ex, ey = ex / length, ey / length
        x, y, radius, sense = position[i, 0], position[i, 1], body_radius[i], sense_radius[i]
        gap = max(time_gap[i], rules.shortest_gap)
        window = min(radius + rules.widest + max(rules.neighbour_reach, wanted * gap), sense)
        count, room = _look_around(x, y, i, radius, window, near, seen)
        while room > 0:
            # It grows here, because a function that allocates counts references to all its arrays, for each agent.
            seen = np.empty((2 * room, 4))
            count, room = _look_around(x, y, i, radius, window, near, seen)
        if any_walls:
            wall_x, wall_y, nearest = _walls(x, y, radius, sense, walls, rules)
            ex, ey = ex + wall_x, ey + wall_y
            if rules.tests_sight and nearest < window:
                count = _without_hidden(x, y, nearest, walls, seen, count)
        if any_discs:
            disc_x, disc_y = _obstacles(position, i, radius, sense, discs, rules)
            ex, ey = ex + disc_x, ey + disc_y
        other_x, other_y = _others(seen, count, rules)
        ex, ey = ex + other_x, ey + other_y
        length = math.sqrt(ex * ex + ey * ey)
        if length > 0.0:
            ex, ey = ex / length, ey / length
        else:
            # Everything cancels; the body continues in the direction it faces.
            ex, ey = heading[i, 0], heading[i, 1]
        speed = max(_spacing(ex, ey, wanted * gap, seen, count), 0.0) / gap
        out_velocity[i, 0], out_velocity[i, 1] = speed * ex, speed * ey
        out_heading[i, 0], out_heading[i, 1] = ex, ey


@parallel_kernel
def _collision_free_speed(rows, position, heading, directions, desired_speed, sense_radius, body_radius, time_gap,
                          near, walls, discs, rules, out_velocity, out_heading):  # fmt: skip
    chunks = (rows.size + _CHUNK - 1) // _CHUNK
    for chunk in numba.prange(chunks):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, rows.size)
        _steer_some(rows, first, last, position, heading, directions, desired_speed, sense_radius, body_radius,
                    time_gap, near, walls, discs, rules, out_velocity, out_heading)  # fmt: skip


class CollisionFreeSpeed(Model):
    """Turn away from neighbours and walls, and keep a time gap to the agent ahead. In 2D only.

    Agents have a column `time_gap` [s]. It can be set per group and during a run.
    """

    def __init__(self, **parameters: Any) -> None:
        self.parameters = CollisionFreeSpeedParameters(**parameters)
        time_gap = Column(
            name="time_gap",
            default=self.parameters.time_gap,
            above=0.0,
            unit="s",
            about="time kept to the agent ahead",
        )
        self.declares = ModelDeclaration(
            columns=(time_gap,), periodic_space=True, solid_bodies=self.parameters.solid_bodies
        )

    def prepare(self, moment: Moment) -> None:
        """Check dimensions and time gaps, once before the first step."""
        refuse_3d(self, moment)
        state = moment.state
        default = state.declared["time_gap"].default
        if default != self.parameters.time_gap:
            raise ParameterError(
                f"two steering models set the time_gap of agents, to {default:g} s and {self.parameters.time_gap:g} s; "
                'set it per group instead, as  parameters = {"time_gap": …}'
            )
        if len(state) and not (state.time_gap > 0.0).all():
            row = int(np.flatnonzero(~(state.time_gap > 0.0))[0])
            raise ParameterError(
                f"agent {int(state.id[row])} has a time_gap of {state.time_gap[row]:g} s; it must be positive"
            )

    def steer(self, moment: Moment, out: Steered) -> None:
        """Write velocity and heading of the members into `out`."""
        given, state, near = self.parameters, moment.state, moment.near
        rules = _Rules(
            neighbour_strength=given.neighbour_strength,
            neighbour_range=given.neighbour_range,
            neighbour_reach=_reach(given.neighbour_strength, given.neighbour_range),
            wall_strength=given.wall_strength,
            wall_range=given.wall_range,
            wall_reach=_reach(given.wall_strength, given.wall_range),
            widest=moment.reduce.largest(state.radius),
            # With a gap below one step, an agent could end the step where its neighbour stands.
            shortest_gap=moment.dt,
            tests_sight=not near.hidden_left_out,
        )
        _collision_free_speed(near.rows_by_cell(moment.members), state.position, state.heading, moment.directions,
                              state.desired_speed, state.sense_radius, state.radius, state.time_gap,
                              near.neighbours(), near.walls, near.obstacles, rules, out.velocity,
                              out.heading)  # fmt: skip
