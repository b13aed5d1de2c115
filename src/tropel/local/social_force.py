"""The social force model: agents accelerate towards their goal, and away from others and borders.

Helbing & Molnár, "Social force model for pedestrian dynamics", Physical Review E 51, 4282 (1995). Numbered here:

    F_α   = F0 + sum_β w(e_α, -f_αβ) f_αβ + sum_B F_αB                                                            (1)
    F0    = (v0 e_α - v_α) / τ                                                                                    (2)
    f_αβ  = -∇ V(b),   V(b) = V0 exp(-b / σ)                                                                      (3)
    2 b   = sqrt((|r| + |r - v_β Δt e_β|)² - (v_β Δt)²),   r = r_α - r_β                                          (4)
    F_αB  = -∇ U(|r_αB|),   U(d) = U0 exp(-d / R)                                                                 (5)
    w(e, f) = 1 where e · f ≥ |f| cos φ, else c                                                                   (6)
    dw_α/dt = F_α,   v_α = w_α, shortened to v_max where it is longer                                             (7)

The defaults are those of the paper: τ = 0.5 s, V0 = 2.1 m²/s², σ = 0.3 m, U0 = 10 m²/s², R = 0.2 m, Δt = 2 s, a field
of view of 2 φ = 200°, c = 0.5 and v_max = 1.3 v0. Attractions and fluctuations are left out. Bodies are points
in these equations: radii do not matter, and bodies may overlap unless `solid_bodies` is on.

Our reading, where the paper leaves a choice:

* v_β e_β, the step of the other that makes V an ellipse, is its velocity; e_α is the planned direction, and where there
  is none, the direction that the body faces.
* r_αB leads from each point of the walls that is nearer than the points around it, and from the nearest point of round
  obstacles. So both sides of a corridor push, but a corner pushes once and not for each of the walls that meet there,
  and a curve that is drawn as many short walls pushes like one. The field of view does not apply to borders.
* Only others and borders within the sense radius count. Others that a wall hides count too: the sums of the paper run
  over everybody.
* On the line of another's next steps V has a ridge (b = 0) without a gradient: agents exactly on it are not pushed.
* Each step starts from the velocity that the agent really has, so w is the new velocity before it is shortened.

The equations are solved by explicit Euler steps. Near a border they are stiff, so a time step that is longer than
min(τ / 5, σ / sqrt(V0), R / sqrt(U0)), 0.063 s with the defaults, is divided into equal parts. Others keep their
velocity meanwhile. The velocity at the end is the one that the agent has for the whole time step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

from tropel._kernels.compile import allocating_kernel, inlined_kernel, kernel, parallel_kernel
from tropel._kernels.discs import disc_cell
from tropel._kernels.fast_math import fast_exp
from tropel._kernels.neighbours import count_runs, run_of, view_of
from tropel._kernels.walls import cell_at, nearest_on_wall
from tropel.agents.state import Steered
from tropel.contracts import Model, ModelDeclaration, Moment
from tropel.errors import ParameterError, named_parameters
from tropel.foundation.quantities import number
from tropel.local.dimensions import refuse_3d
from tropel.local.members import started

#: Agents per unit of parallel work; each unit has its own list of neighbours.
_CHUNK = 64
#: Agents slower than this share of their largest speed keep the direction that they face.
_STANDING = 1e-6
#: A time step is divided into at most so many parts: more would only be reached by parameters far from any crowd.
_MOST_PARTS = 1000


@named_parameters
@dataclass(frozen=True, kw_only=True)
class SocialForceParameters:
    """Parameters of `SocialForce`; the defaults are those of the paper."""

    relaxation_time: float = number(0.5, above=0.0, unit="s", about="τ, time in which agents reach the wanted velocity")
    neighbour_strength: float = number(2.1, low=0.0, unit="m²/s²", about="V0, repulsive potential of another agent")
    neighbour_range: float = number(0.3, above=0.0, unit="m", about="σ, distance over which it falls by e")
    wall_strength: float = number(10.0, low=0.0, unit="m²/s²", about="U0, repulsive potential of a wall or an obstacle")
    wall_range: float = number(0.2, above=0.0, unit="m", about="R, distance over which it falls by e")
    step_ahead: float = number(2.0, low=0.0, unit="s", about="Δt, others claim the space of their steps for this time")
    field_of_view: float = number(200.0, low=0.0, high=360.0, unit="°", about="2 φ, angle in which others fully count")
    weight_behind: float = number(0.5, low=0.0, high=1.0, about="c, weight of others outside of the field of view")
    speed_limit: float = number(1.3, above=0.0, high=100.0, about="largest speed, over the desired speed")
    solid_bodies: bool = False  #: whether bodies are kept from overlapping, which the published model is not


class _Rules(NamedTuple):
    """Parameters as kernels read them."""

    relaxation_time: float
    neighbour_strength: float
    neighbour_range: float
    wall_strength: float
    wall_range: float
    step_ahead: float
    cos_view: float
    weight_behind: float
    speed_limit: float
    parts: int  #: of a time step
    part: float  #: duration of each [s]


@kernel
def _look_around(x, y, own, sense, near, seen):
    """List the neighbours: offset and velocity. Returns the length of the list, and the room it needs if too short."""
    limit = sense * sense
    count = np.uint64(0)
    position, velocity = near.met_position, near.met_velocity
    view = view_of(near, own, x, y, 0.0, sense)
    for run in range(count_runs(near, view)):
        first, last, shift_x, shift_y, _ = run_of(near, view, run)
        own_x, own_y = x + shift_x, y + shift_y
        if count + (last - first) > seen.shape[0]:
            return count, count + (last - first)
        for k in range(first, last):
            # All are written, and the next one overwrites those that are too far: no branch to mispredict.
            dx, dy = position[0, k] - own_x, position[1, k] - own_y
            seen[count, 0], seen[count, 1] = dx, dy
            seen[count, 2], seen[count, 3] = velocity[0, k], velocity[1, k]
            count += np.uint64((dx * dx + dy * dy <= limit) & (near.met[k] != own))
    return count, np.uint64(0)


@inlined_kernel
def _slope(distance, strength, fall):
    """How steeply the potential strength · exp(-distance / fall) falls."""
    return strength / fall * fast_exp(-distance / fall)


@inlined_kernel
def _from_others(moved_x, moved_y, time, ex, ey, seen, count, rules):
    """Sum over others in (1), for an agent that has moved since it looked around, `time` ago."""
    fx = fy = 0.0
    for k in range(np.uint64(0), count):
        vx, vy = seen[k, 2], seen[k, 3]
        rx, ry = moved_x - seen[k, 0] - time * vx, moved_y - seen[k, 1] - time * vy
        step_x, step_y = rules.step_ahead * vx, rules.step_ahead * vy
        qx, qy = rx - step_x, ry - step_y
        to_foot, to_next = math.sqrt(rx * rx + ry * ry), math.sqrt(qx * qx + qy * qy)
        both = to_foot + to_next
        square = both * both - (step_x * step_x + step_y * step_y)
        if square <= 0.0 or to_foot == 0.0 or to_next == 0.0:
            continue
        b = 0.5 * math.sqrt(square)
        # -V'(b) times the gradient of b, which is (both / 4 b) (r / |r| + q / |q|).
        push = _slope(b, rules.neighbour_strength, rules.neighbour_range) * both / (4.0 * b)
        px, py = push * (rx / to_foot + qx / to_next), push * (ry / to_foot + qy / to_next)
        ahead = -(ex * px + ey * py) >= rules.cos_view * math.sqrt(px * px + py * py)
        weight = 1.0 if ahead else rules.weight_behind
        fx, fy = fx + weight * px, fy + weight * py
    return fx, fy


@inlined_kernel
def _from_border(dx, dy, away, gap, rules):
    """Equation (5) for a border at the distance `gap` in the direction d / away; in an obstacle as on its surface."""
    push = _slope(max(gap, 0.0), rules.wall_strength, rules.wall_range) / away
    return push * dx, push * dy


@inlined_kernel
def _ends_at(qx, qy, walls, s):
    """Whether q is an end of wall s."""
    segments = walls.segments
    return (segments[s, 0] == qx and segments[s, 1] == qy) or (segments[s, 2] == qx and segments[s, 3] == qy)


@kernel
def _is_nearest_around(x, y, away, qx, qy, cell, s, walls):
    """Whether no wall that is joined to wall s at its nearest point q comes nearer, or is the one that counts there."""
    if not _ends_at(qx, qy, walls, s):
        return True
    for item in range(walls.start[cell], walls.start[cell + 1]):
        other = walls.items[item]
        if other == s or not walls.blocking[other] or not _ends_at(qx, qy, walls, other):
            continue
        px, py = nearest_on_wall(x, y, walls, other)
        if px == qx and py == qy:
            if other < s:
                return False
        elif math.sqrt((x - px) ** 2 + (y - py) ** 2) <= away * (1.0 + 1e-12):
            return False
    return True


@kernel
def _from_walls(x, y, sense, walls, rules):
    fx = fy = 0.0
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for item in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[item]
        if not walls.blocking[s]:
            continue
        qx, qy = nearest_on_wall(x, y, walls, s)
        dx, dy = x - qx, y - qy
        away = math.sqrt(dx * dx + dy * dy)
        if 0.0 < away <= sense and _is_nearest_around(x, y, away, qx, qy, cell, s, walls):
            px, py = _from_border(dx, dy, away, away, rules)
            fx, fy = fx + px, fy + py
    return fx, fy


@kernel
def _from_obstacles(x, y, time, cell, sense, discs, rules):
    fx = fy = 0.0
    for item in range(discs.start[cell], discs.start[cell + 1]):
        m = discs.items[item]
        dx = x - discs.position[m, 0] - time * discs.velocity[m, 0]
        dy = y - discs.position[m, 1] - time * discs.velocity[m, 1]
        away = math.sqrt(dx * dx + dy * dy)
        if 0.0 < away <= sense + discs.radius[m]:
            px, py = _from_border(dx, dy, away, away - discs.radius[m], rules)
            fx, fy = fx + px, fy + py
    return fx, fy


@allocating_kernel
def _steer_some(rows, first, last, position, velocity, heading, directions, desired_speed, sense_radius, near, walls,
                discs, rules, out_velocity, out_heading):  # fmt: skip
    # A separate function, because Numba moves allocations out of parallel loops, and this list may grow.
    seen = np.empty((64, 4))
    any_walls, any_discs = walls.segments.shape[0] > 0, discs.radius.shape[0] > 0
    for m in range(first, last):
        i = rows[m]
        fastest = rules.speed_limit * desired_speed[i]
        if fastest == 0.0:
            continue
        x, y, sense = position[i, 0], position[i, 1], sense_radius[i]
        ex, ey = directions[i, 0], directions[i, 1]
        length = math.sqrt(ex * ex + ey * ey)
        wanted = desired_speed[i] * min(length, 1.0)
        ex, ey = (ex / length, ey / length) if length > 0.0 else (heading[i, 0], heading[i, 1])
        count, room = _look_around(x, y, i, sense, near, seen)
        while room > 0:
            seen = np.empty((2 * room, 4))
            count, room = _look_around(x, y, i, sense, near, seen)
        cell = disc_cell(position, i, discs) if any_discs else np.int64(0)
        vx, vy = velocity[i, 0], velocity[i, 1]
        moved_x = moved_y = speed = 0.0
        for part in range(rules.parts):
            time = part * rules.part
            fx, fy = _from_others(moved_x, moved_y, time, ex, ey, seen, count, rules)
            fx += (wanted * ex - vx) / rules.relaxation_time
            fy += (wanted * ey - vy) / rules.relaxation_time
            if any_walls:
                px, py = _from_walls(x + moved_x, y + moved_y, sense, walls, rules)
                fx, fy = fx + px, fy + py
            if any_discs:
                px, py = _from_obstacles(x + moved_x, y + moved_y, time, cell, sense, discs, rules)
                fx, fy = fx + px, fy + py
            vx, vy = vx + rules.part * fx, vy + rules.part * fy
            speed = math.sqrt(vx * vx + vy * vy)
            if speed > fastest:
                vx, vy, speed = vx * (fastest / speed), vy * (fastest / speed), fastest
            moved_x, moved_y = moved_x + rules.part * vx, moved_y + rules.part * vy
        out_velocity[i, 0], out_velocity[i, 1] = vx, vy
        if speed > _STANDING * fastest:
            out_heading[i, 0], out_heading[i, 1] = vx / speed, vy / speed


@parallel_kernel
def _social_force(rows, position, velocity, heading, directions, desired_speed, sense_radius, near, walls, discs, rules,
                  out_velocity, out_heading):  # fmt: skip
    chunks = (rows.size + _CHUNK - 1) // _CHUNK
    for chunk in numba.prange(chunks):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, rows.size)
        _steer_some(rows, first, last, position, velocity, heading, directions, desired_speed, sense_radius, near,
                    walls, discs, rules, out_velocity, out_heading)  # fmt: skip


class SocialForce(Model):
    """Accelerate towards the goal and away from others, walls and obstacles. In 2D only."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters = SocialForceParameters(**parameters)
        self.declares = ModelDeclaration(periodic_space=True, solid_bodies=self.parameters.solid_bodies)

    @property
    def longest_part(self) -> float:
        """Longer time steps are divided [s]."""
        given = self.parameters
        limits = [given.relaxation_time / 5.0]
        if given.neighbour_strength > 0.0:
            limits.append(given.neighbour_range / math.sqrt(given.neighbour_strength))
        if given.wall_strength > 0.0:
            limits.append(given.wall_range / math.sqrt(given.wall_strength))
        return min(limits)

    def prepare(self, moment: Moment) -> None:
        """Check dimensions and time step, once before the first step."""
        refuse_3d(self, moment)
        if moment.dt > _MOST_PARTS * self.longest_part:
            raise ParameterError(
                f"SocialForce needs steps of {self.longest_part:.3g} s for these forces, and dt is {moment.dt:g} s; "
                "lower neighbour_strength or wall_strength, or raise neighbour_range, wall_range or relaxation_time"
            )

    def steer(self, moment: Moment, out: Steered) -> None:
        """Write velocity and heading of the members into `out`."""
        given, state, near = self.parameters, moment.state, moment.near
        parts = math.ceil(moment.dt / self.longest_part * (1.0 - 1e-12))
        rules = _Rules(
            relaxation_time=float(given.relaxation_time),
            neighbour_strength=float(given.neighbour_strength),
            neighbour_range=float(given.neighbour_range),
            wall_strength=float(given.wall_strength),
            wall_range=float(given.wall_range),
            step_ahead=float(given.step_ahead),
            cos_view=math.cos(math.radians(0.5 * given.field_of_view)),
            weight_behind=float(given.weight_behind),
            speed_limit=float(given.speed_limit),
            parts=parts,
            part=moment.dt / parts,
        )
        _social_force(near.rows_by_cell(started(moment)), state.position, state.velocity, state.heading,
                      moment.directions, state.desired_speed, state.sense_radius, near.neighbours(), near.walls,
                      near.obstacles, rules, out.velocity, out.heading)  # fmt: skip
