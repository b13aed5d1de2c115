"""Steering by nonlinear dynamical systems with competing attractors and repellers.

Goldenstein, Large & Metaxas, "Dynamic autonomous agents: game applications" (GAME, 1998), and Goldenstein et al.,
"Scalable nonlinear dynamical systems for agent steering and crowd simulation" (LAYERS, 2001):

    phi'  = |w_tar| f_tar + sum over classes c of |w_c| f_c + noise                      (GAME eq. 9)
    f_tar = -a sin(phi - psi)                                                            (GAME eq. 2)
    f_c   = sum over its objects of R W D                                                (GAME eq. 3-8, `repellers.py`)
    w     = stable fixed point of the competition                                        (GAME eq. 10, `competition.py`)
    a_c   = tanh(sum of D),  a_tar = 0.4 (1 - tanh(sum of all D))                        (GAME eq. 12)
    g_c,tar = exp(-c2 (P_tar P_c + 1))                                                   (GAME eq. 11)
    P_tar = sgn(f_tar') exp(c1 |f_tar|),  P_c = (sum of W) sgn(f_c') exp(c1 |f_c|)       (GAME eq. 13, 14)

In 3D (LAYERS §4.3) each contribution is an angular velocity along the normal of the plane of heading and object, and
these vectors add up. Slopes are found by turning the heading about the normal of the target's plane. The same code runs
in 2D, where all normals are the z axis.

The forward speed follows one of the papers' three laws (GAME §2.2, LAYERS eq. 6), one that also stops heavy and bold
agents in time, or keeps a time gap (`speed_laws.py`).

Personality (LAYERS §4.4, `agents/personality.py`): agility and mass filter turn rate and forward speed, and courage
sets d0 and d1, or the time gap.

Added to the papers' model, each with a switch in `DynamicalParameters` (in brackets the papers' value):

* `crowding="ahead"` ("all"): D is summed with the weight W, so that only what is ahead competes with the target. With
  the sum as printed, a_tar falls to 1e-7 in a crowd of one person per square metre, and the target is lost for good.
* `anticipation` (0): the angle x is taken between the object and the motion relative to it, v0 h - anticipation · v_j.
  The distance is the one that the agent covers at its own speed before they meet, r v0 / |v0 h - anticipation · v_j|.
  For standing objects both equal the papers' values. So agents turn away from those they would meet, not from those
  that walk along with them.
* `weight_memory` (0): weights follow the fixed point with a time constant, not at once. If the target lies at a right
  angle behind a neighbour, the sign of f_tar' flips with every step. Without the time constant, the target would then
  be switched on and off so fast that the heading never changes.
* `cut` (700, where D is the smallest number that kernels compute): objects farther away than six d0 have no effect.
  There D < 2.5e-3, and a crowd has many of them.
* `solid_bodies` (off): moves that would end inside another body are shortened (`contact/bodies.py`).
* `speed_law="time_to_rest"` ("time_to_contact"): heavy agents brake early enough, and bold ones stop at last.
* `speed_law="time_gap"`, `keep_right` (0) and `walk_on` (0), as in `Walk`. In 2D.

The defaults are made for crowds that never touch: they keep 1 m/s at three people per square metre, where people walk
at a third of that, and a wall repels so strongly that a person alone may miss an open door. `preset="pedestrian"` has
other values, calibrated with experiments: speed over density after Weidmann (1993) and flow through doors after
Seyfried et al. (2009). docs/verification.md has the figures.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel, inlined_kernel, kernel, parallel_kernel
from tropel._kernels.fast_math import fast_exp
from tropel._kernels.philox import bell, normal_pair, random_key
from tropel.agents.personality import (
    PERSONALITY,
    SLOWEST_SPEED,
    SLOWEST_TURN,
    filter_gain,
    perceived_distance,
)
from tropel.agents.seeing import VIEW_ANGLE
from tropel.agents.state import Column, Steered
from tropel.contracts import Model, ModelDeclaration, Moment
from tropel.errors import ModelError
from tropel.local.dimensions import refuse_3d
from tropel.local.dynamical.competition import fixed_point, fixed_point_of_one
from tropel.local.dynamical.parameters import TIME_GAP, TIME_TO_REST, DynamicalParameters, parameters_of, rules_of
from tropel.local.dynamical.speed_laws import speed_behind_others, wanted_speed
from tropel.local.dynamical.sums import (
    NEARNESS,
    SLOPE,
    SUMS,
    TABLE,
    WINDOW,
    sum_over_agents,
    sum_over_obstacles,
    sum_over_walls,
)
from tropel.local.habits.keep_right import KeepRight, headed_for

#: Agents per unit of parallel work; each unit has its own scratch memory.
_CHUNK = 256


class AgentColumns(NamedTuple):
    """Columns as kernels read them."""

    id: NDArray[np.int64]
    position: NDArray[np.float64]
    heading: NDArray[np.float64]
    radius: NDArray[np.float64]
    desired_speed: NDArray[np.float64]
    sense_radius: NDArray[np.float64]
    agility: NDArray[np.float64]
    mass: NDArray[np.float64]
    courage: NDArray[np.float64]
    view_angle: NDArray[np.float64]
    forward_speed: NDArray[np.float64]
    turn_rate: NDArray[np.float64]
    weight_target: NDArray[np.float64]
    weights: NDArray[np.float64]
    goal: NDArray[np.int32]


class Fresh(NamedTuple):
    """The arrays that kernels write."""

    velocity: NDArray[np.float64]
    heading: NDArray[np.float64]
    forward_speed: NDArray[np.float64]
    turn_rate: NDArray[np.float64]
    weight_target: NDArray[np.float64]
    weights: NDArray[np.float64]


class Pace(NamedTuple):
    """Values that depend on the time step alone."""

    dt: float
    noise: float  #: standard deviation of the noise of the turn rate in one step [rad/s]
    weight_gain: float  #: share of the distance to the fixed point that weights cover in one step


class _Desk(NamedTuple):
    """Working memory of a thread."""

    table: NDArray[np.float64]  #: the bodies near an agent (`local/dynamical/sums.py`)
    scratch: NDArray[np.float64]  #: the sums of every class
    weights: NDArray[np.float64]
    a_class: NDArray[np.float64]
    g_class: NDArray[np.float64]


@inlined_kernel
def _compete(scratch, weights, was_target, f_target, slope_target, m, rules, a_class, g_class):
    """Weights of the target (returned) and of the classes (written to `weights`, which holds the last ones)."""
    if not rules.competition:
        for c in range(rules.classes):
            weights[c] = 1.0
        return 1.0
    total = felt = 0.0
    for c in range(rules.classes):
        felt += scratch[c, NEARNESS]
    if felt == 0.0:
        # Nothing competes.
        for c in range(rules.classes):
            weights[c] = 0.0
        return 1.0
    p_target = (1.0 if slope_target > 0.0 else -1.0) * fast_exp(rules.c1 * abs(f_target))
    for c in range(rules.classes):
        sums = scratch[c]
        total += sums[NEARNESS]
        a_class[c] = _tanh(sums[NEARNESS])
        f = sums[0] * m[0] + sums[1] * m[1] + sums[2] * m[2]
        p = sums[WINDOW] * (1.0 if sums[SLOPE] > 0.0 else -1.0) * fast_exp(min(rules.c1 * abs(f), 40.0))
        g_class[c] = fast_exp(min(max(-rules.c2 * (p_target * p + 1.0), -60.0), 60.0))
    if rules.classes == 1:
        return fixed_point_of_one(0.4 * (1.0 - a_class[0]), a_class, g_class, was_target, weights)
    a_all = _tanh(total)
    return fixed_point(0.4 * (1.0 - a_all), a_class, g_class, rules.classes, was_target, weights)


@inlined_kernel
def _tanh(x):
    """tanh(x) for x ≥ 0."""
    shrunk = fast_exp(-2.0 * x)
    return (1.0 - shrunk) / (1.0 + shrunk)


@inlined_kernel
def _axis_of_slopes(h, e, tx, ty, tz, length, dim, key, agent, step):
    """Unit normal of the plane of heading and target; any perpendicular vector if they are parallel."""
    if dim == 2:
        return 0.0, 0.0, 1.0
    if length > 1e-9:
        return tx / length, ty / length, tz / length
    a, b = normal_pair(key, agent, step, 1)
    c, _ = normal_pair(key, agent, step, 2)
    nx, ny, nz = h[1] * c - h[2] * b, h[2] * a - h[0] * c, h[0] * b - h[1] * a
    size = math.sqrt(nx * nx + ny * ny + nz * nz)
    if size < 1e-12:
        return (0.0, h[2], -h[1]) if abs(h[0]) > 0.9 else (1.0, 0.0, 0.0)
    return nx / size, ny / size, nz / size


@inlined_kernel
def _cos_sin(angle):
    """Cosine and sine. Most turns in a step are small; for those a few terms of the series are exact."""
    if abs(angle) > 0.25:
        return math.cos(angle), math.sin(angle)
    q = angle * angle
    cosine = 1.0 - q * (1 / 2 - q * (1 / 24 - q * (1 / 720 - q * (1 / 40320 - q * (1 / 3628800 - q / 479001600)))))
    sine = angle * (1.0 - q * (1 / 6 - q * (1 / 120 - q * (1 / 5040 - q * (1 / 362880 - q / 39916800)))))
    return cosine, sine


@inlined_kernel
def _turned(h, wx, wy, wz, dt, dim):
    """The heading turned by the angular velocity w for a time dt (Rodrigues)."""
    if dim == 2:
        c, s = _cos_sin(wz * dt)
        hx, hy, hz = h[0] * c - h[1] * s, h[0] * s + h[1] * c, 0.0
    else:
        rate = math.sqrt(wx * wx + wy * wy + wz * wz)
        if rate == 0.0:
            return h
        kx, ky, kz = wx / rate, wy / rate, wz / rate
        c, s = _cos_sin(rate * dt)
        along = (kx * h[0] + ky * h[1] + kz * h[2]) * (1.0 - c)
        hx = h[0] * c + (ky * h[2] - kz * h[1]) * s + kx * along
        hy = h[1] * c + (kz * h[0] - kx * h[2]) * s + ky * along
        hz = h[2] * c + (kx * h[1] - ky * h[0]) * s + kz * along
    size = math.sqrt(hx * hx + hy * hy + hz * hz)
    return hx / size, hy / size, hz / size


@inlined_kernel
def _steer_one(i, crowd, directions, near, discs, walls, rules, pace, step, desk, fresh):
    dim = crowd.position.shape[1]
    ex, ey = directions[i, 0], directions[i, 1]
    ez = directions[i, 2] if dim == 3 else 0.0
    length = math.sqrt(ex * ex + ey * ey + ez * ez)
    v0 = crowd.desired_speed[i] * min(length, 1.0)
    if v0 == 0.0:
        fresh.forward_speed[i] = 0.0
        for axis in range(dim):
            fresh.turn_rate[i, axis] = 0.0
        return
    e = (ex / length, ey / length, ez / length)
    h = (crowd.heading[i, 0], crowd.heading[i, 1], crowd.heading[i, 2] if dim == 3 else 0.0)
    x, y = crowd.position[i, 0], crowd.position[i, 1]
    z = crowd.position[i, 2] if dim == 3 else 0.0
    # The turn towards the target: -a sin(phi - psi) about the normal of target and heading, that is a (h x e).
    cos_t = h[0] * e[0] + h[1] * e[1] + h[2] * e[2]
    tx, ty, tz = h[1] * e[2] - h[2] * e[1], h[2] * e[0] - h[0] * e[2], h[0] * e[1] - h[1] * e[0]
    sin_t = math.sqrt(tx * tx + ty * ty + tz * tz)
    m = _axis_of_slopes(h, e, tx, ty, tz, sin_t, dim, rules.key, crowd.id[i], step)
    scratch, weights = desk.scratch, desk.weights
    for c in range(rules.classes):
        for column in range(SUMS):
            scratch[c, column] = 0.0
    d0 = perceived_distance(rules.d0_base, crowd.courage[i])
    view = crowd.view_angle[i]
    cos_view = math.cos(0.5 * view) if view < 2.0 * math.pi else -2.0
    brakes, coasting = rules.brakes, 0.0
    if rules.law == TIME_TO_REST:
        coasting = crowd.mass[i] * SLOWEST_SPEED * max(crowd.forward_speed[i], 0.0)
        brakes = max(brakes, rules.closest + v0 * rules.time_to_contact) + coasting
    gap = sum_over_agents(i, x, y, z, h, m, v0, d0, cos_view, brakes, crowd, near, rules, desk.table, scratch, math.inf)
    if discs.radius.size > 0:
        gap = sum_over_obstacles(i, x, y, z, h, m, v0, d0, cos_view, crowd, discs, rules, desk.table, scratch, gap)
    if dim == 2 and walls.segments.shape[0] > 0:
        gap = sum_over_walls(i, x, y, h[0], h[1], d0, cos_view, brakes, crowd, walls, rules, scratch, gap)
    for c in range(rules.classes):
        weights[c] = crowd.weights[i, c]
    a = rules.attraction
    w_target = _compete(
        scratch, weights, crowd.weight_target[i], a * sin_t, -a * cos_t, m, rules, desk.a_class, desk.g_class
    )
    w_target = crowd.weight_target[i] + pace.weight_gain * (w_target - crowd.weight_target[i])
    wx, wy, wz = w_target * a * tx, w_target * a * ty, w_target * a * tz
    slope = -w_target * a * cos_t
    for c in range(rules.classes):
        w = crowd.weights[i, c] + pace.weight_gain * (weights[c] - crowd.weights[i, c])
        wx += w * scratch[c, 0]
        wy += w * scratch[c, 1]
        wz += w * scratch[c, 2]
        slope += w * scratch[c, SLOPE]
        fresh.weights[i, c] = w
    if pace.noise > 0.0:
        wz += pace.noise * bell(rules.key, crowd.id[i], step, 0)
        if dim == 3:
            wx += pace.noise * bell(rules.key, crowd.id[i], step, 3)
            wy += pace.noise * bell(rules.key, crowd.id[i], step, 4)
    k = filter_gain(1.0 - crowd.agility[i], SLOWEST_TURN, pace.dt)
    if dim == 2:
        wx = wy = 0.0
        wz = (1.0 - k) * crowd.turn_rate[i, 0] + k * wz
        fresh.turn_rate[i, 0] = wz
    else:
        wx = (1.0 - k) * crowd.turn_rate[i, 0] + k * wx
        wy = (1.0 - k) * crowd.turn_rate[i, 1] + k * wy
        wz = (1.0 - k) * crowd.turn_rate[i, 2] + k * wz
        fresh.turn_rate[i, 0], fresh.turn_rate[i, 1], fresh.turn_rate[i, 2] = wx, wy, wz
    h = _turned(h, wx, wy, wz, pace.dt, dim)
    if rules.law == TIME_GAP:
        v = speed_behind_others(i, h[0], h[1], v0, crowd, near, walls, rules, pace.dt)
    else:
        v = wanted_speed(v0, gap, crowd.courage[i], slope, math.sqrt(wx * wx + wy * wy + wz * wz), coasting, rules)
    k = filter_gain(crowd.mass[i], SLOWEST_SPEED, pace.dt)
    v = (1.0 - k) * crowd.forward_speed[i] + k * v
    for axis in range(dim):
        fresh.velocity[i, axis] = v * h[axis]
        fresh.heading[i, axis] = h[axis]
    fresh.forward_speed[i] = v
    fresh.weight_target[i] = w_target


@allocating_kernel
def _steer_some(rows, first, last, crowd, directions, near, discs, walls, rules, pace, step, fresh):
    # A separate function: arrays allocated in the body of a parallel loop would be shared by its iterations.
    classes = rules.classes
    desk = _Desk(np.empty(TABLE), np.zeros((classes, SUMS)), np.zeros(classes), np.zeros(classes), np.zeros(classes))
    _steer_each(rows, first, last, crowd, directions, near, discs, walls, rules, pace, step, desk, fresh)


@kernel
def _steer_each(rows, first, last, crowd, directions, near, discs, walls, rules, pace, step, desk, fresh):
    for n in range(first, last):
        _steer_one(rows[n], crowd, directions, near, discs, walls, rules, pace, step, desk, fresh)


@parallel_kernel
def _steer_all(rows, crowd, directions, near, discs, walls, rules, pace, step, fresh):
    chunks = (rows.size + _CHUNK - 1) // _CHUNK
    for chunk in numba.prange(chunks):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, rows.size)
        _steer_some(rows, first, last, crowd, directions, near, discs, walls, rules, pace, step, fresh)


class Dynamical(Model):
    """Agents steered by competing attractors and repellers, with personality. Parameters: `DynamicalParameters`.

    `preset="pedestrian"` walks as people do in experiments; parameters that are given as well override it.
    """

    def __init__(self, **parameters: Any) -> None:
        self.parameters: DynamicalParameters = parameters_of(parameters)
        self._keep_right = KeepRight(angle=self.parameters.keep_right)
        self._key = random_key(0, "dynamical")
        self._types: list[str] = []
        self._rules = rules_of(self.parameters, self._key)
        self.declares = ModelDeclaration(
            columns=(*PERSONALITY, VIEW_ANGLE),
            memory=(
                Column(name="forward_speed", unit="m/s", about="speed along the heading; negative when backing up"),
                Column(name="turn_rate", vector=True, unit="rad/s", about="filtered; in 2D the first number only"),
                Column(name="weight_target", default=1.0, about="how far the target is switched on"),
                Column(name="weights", width=self._rules.classes, about="how far each obstacle class is switched on"),
            ),
            solid_bodies=self.parameters.solid_bodies,
            walk_on=self.parameters.walk_on,
        )

    def prepare(self, moment: Moment) -> None:
        """Check the dimensions, read the seed and the obstacle types, once before the first step."""
        if self.parameters.speed_law == "time_gap" or self.parameters.keep_right:
            refuse_3d(self, moment)
        self._key = random_key(moment.seed, "dynamical")
        self._types = moment.world.obstacles.types
        self._rules = rules_of(self.parameters, self._key, self._types)

    def steer(self, moment: Moment, out: Steered) -> None:
        """Write velocity, heading and memory of the members into `out`."""
        state, near, dt = moment.state, moment.near, moment.dt
        if self._rules.row_of_type.size < len(self._types):
            # An event has added an obstacle type that was not there before.
            self._rules = rules_of(self.parameters, self._key, self._types)
        if state.weights.shape[1] < self._rules.classes:
            raise ModelError(
                f"the agents store weights for {state.weights.shape[1]} classes of obstacles, but this model has "
                f"{self._rules.classes}; build the simulation with this model, so that it can declare its memory"
            )
        memory, noise = self.parameters.weight_memory, self.parameters.noise
        pace = Pace(float(dt), float(noise) / math.sqrt(dt), 1.0 - math.exp(-dt / memory) if memory > 0.0 else 1.0)
        columns = state.columns
        if self._rules.law == TIME_GAP:
            columns = columns | {"goal": headed_for(state, moment.world)}
        crowd = AgentColumns(*(columns[name] for name in AgentColumns._fields))
        fresh = Fresh(out.velocity, out.heading, *(out.memory[name] for name in Fresh._fields[2:]))
        _steer_all(
            near.rows_by_cell(moment.members),
            crowd,
            self._directions(moment),
            near.neighbours(),
            near.obstacles,
            near.walls,
            self._rules,
            pace,
            moment.step,
            fresh,
        )

    def _directions(self, moment: Moment) -> NDArray[np.float64]:
        """The planned directions, turned to the right before oncoming people."""
        if not self.parameters.keep_right or self._keep_right.is_idle(moment):
            return moment.directions
        directions = moment.directions.copy()
        self._keep_right.adjust(moment, directions)
        return directions
