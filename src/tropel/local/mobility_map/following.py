"""Between decisions characters follow trajectories of the map, at their pace."""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel, inlined_kernel, kernel, parallel_kernel
from tropel.local.mobility_map.fan import HEADING, LEAN, STEER, X, Y, value_and_slope
from tropel.local.mobility_map.library import (
    FEATURES,
    LEAN_NOW,
    LEAN_RATE,
    LEFT,
    STEER_NOW,
    STEER_RATE,
    TURN_RATE,
    nearest_pair,
)

Floats = NDArray[np.float64]

#: Characters per unit of parallel work.
_CHUNK = 64


class Ride(NamedTuple):
    """Where characters are on their trajectories, by row; copies of the memory, which are written."""

    state: NDArray[np.int32]
    action: NDArray[np.int32]
    other: NDArray[np.int32]
    share: Floats
    turn: Floats  #: what it wants to turn, at the last decision [rad]
    braking: Floats  #: how hard, from 0 to 1
    fallen: NDArray[np.uint8]
    line: NDArray[np.int32]  #: number of the trajectory that is followed
    time: Floats  #: how far along it, at the pace of the map [s]
    begun: Floats  #: where on it the character joined it [s]
    base: Floats  #: heading of the character that this trajectory began with [rad]
    pose: Floats  #: (N, 5): rate of turn, lean, steer and the rates of both, as at the nominal speed
    offset: Floats  #: (N, 3): rate of turn, lean and steer at the decision, minus those of the trajectory
    reduced: Floats  #: (N, K): the state that the map knows
    pace: Floats  #: share of the nominal speed
    lean: Floats  #: [rad]
    steer: Floats  #: [rad]
    turn_rate: Floats  #: [rad/s]
    crank: Floats  #: [rad]


class Manner(NamedTuple):
    """Parameters as kernels read them."""

    brake: float  #: [m/s²]
    speed_up: float  #: [m/s²]
    slide: float  #: [m/s²]
    settling: float  #: [s]
    cranks_per_metre: float  #: [rad/m]


@inlined_kernel
def _line_of(ride, i, fan):
    """State and action of the trajectory that is followed; what a file claims must not lead out of the map."""
    actions = fan.knots.shape[1]
    number = min(max(np.int64(ride.line[i]), 0), fan.knots.shape[0] * actions - 1)
    return number // actions, number % actions


@allocating_kernel
def _begin_some(rows, first, last, fan, library, heading, ride):
    wanted = np.empty(FEATURES)
    times = fan.knots.shape[2]
    for m in range(first, last):
        i = rows[m]
        turn = ride.share[i] * fan.actions[ride.action[i]] + (1.0 - ride.share[i]) * fan.actions[ride.other[i]]
        ride.turn[i] = turn
        for f in range(5):
            wanted[f] = ride.pose[i, f] * library.scale[f]
        wanted[LEFT] = turn * library.scale[LEFT]
        knot = nearest_pair(library, wanted)
        line, k = knot // times, knot % times
        s, a = line // fan.knots.shape[1], line % fan.knots.shape[1]
        ride.line[i], ride.time[i], ride.begun[i] = line, k * fan.interval, k * fan.interval
        ride.offset[i, 0] = ride.pose[i, TURN_RATE] - fan.slopes[s, a, k, HEADING]
        ride.offset[i, 1] = ride.pose[i, LEAN_NOW] - fan.knots[s, a, k, LEAN]
        ride.offset[i, 2] = ride.pose[i, STEER_NOW] - fan.knots[s, a, k, STEER]
        ride.base[i] = math.atan2(heading[i, 1], heading[i, 0]) - fan.knots[s, a, k, HEADING]


@parallel_kernel
def begin(rows, fan, library, heading, ride):
    """Find the trajectories that these rows go on along, and place them at the characters."""
    chunks = (rows.size + _CHUNK - 1) // _CHUNK
    for chunk in numba.prange(chunks):
        first = chunk * _CHUNK
        _begin_some(rows, first, min(first + _CHUNK, rows.size), fan, library, heading, ride)


@kernel
def _new_pace(ride, i, wanted, manner, speed, dt):
    """A rider that found no free future brakes; others approach the pace that they want."""
    pace = ride.pace[i]
    if ride.braking[i] > 0.0:
        return max(pace - ride.braking[i] * manner.brake * dt / speed, 0.0)
    if pace > wanted:
        return max(pace - manner.speed_up * dt / speed, wanted)
    return min(pace + manner.speed_up * dt / speed, wanted)


@kernel
def _slide(i, manner, dt, velocity, ride, out_velocity):
    """One that has fallen slides to a halt."""
    vx, vy = velocity[i, 0], velocity[i, 1]
    speed = math.sqrt(vx * vx + vy * vy)
    left = max(speed - manner.slide * dt, 0.0) / speed if speed > 0.0 else 0.0
    out_velocity[i, 0], out_velocity[i, 1] = left * vx, left * vy
    ride.pace[i], ride.turn_rate[i] = 0.0, 0.0


@kernel
def _follow_one(i, fan, manner, wanted_pace, dt, velocity, ride, out_velocity, out_heading):
    if ride.fallen[i]:
        _slide(i, manner, dt, velocity, ride, out_velocity)
        return
    pace = _new_pace(ride, i, wanted_pace[i], manner, fan.speed, dt)
    s, a = _line_of(ride, i, fan)
    before = ride.time[i]
    now = before + pace * dt
    x0, _ = value_and_slope(fan, s, a, X, before)
    y0, _ = value_and_slope(fan, s, a, Y, before)
    x1, _ = value_and_slope(fan, s, a, X, now)
    y1, _ = value_and_slope(fan, s, a, Y, now)
    turned, rate = value_and_slope(fan, s, a, HEADING, now)
    lean, lean_rate = value_and_slope(fan, s, a, LEAN, now)
    steer, steer_rate = value_and_slope(fan, s, a, STEER, now)
    # What the state differed by from that of the trajectory fades away.
    fades = math.exp(-(now - ride.begun[i]) / manner.settling)
    halfway = math.exp(-(0.5 * (before + now) - ride.begun[i]) / manner.settling)
    facing = ride.base[i] + turned + ride.offset[i, 0] * manner.settling * (1.0 - fades)
    rate += fades * ride.offset[i, 0]
    lean += fades * ride.offset[i, 1]
    lean_rate -= fades * ride.offset[i, 1] / manner.settling
    steer += fades * ride.offset[i, 2]
    steer_rate -= fades * ride.offset[i, 2] / manner.settling
    angle = ride.base[i] + ride.offset[i, 0] * manner.settling * (1.0 - halfway)
    c, sn = math.cos(angle), math.sin(angle)
    out_velocity[i, 0] = (c * (x1 - x0) - sn * (y1 - y0)) / dt
    out_velocity[i, 1] = (sn * (x1 - x0) + c * (y1 - y0)) / dt
    out_heading[i, 0], out_heading[i, 1] = math.cos(facing), math.sin(facing)
    ride.pace[i], ride.time[i] = pace, now
    ride.pose[i, TURN_RATE], ride.pose[i, LEAN_NOW], ride.pose[i, STEER_NOW] = rate, lean, steer
    ride.pose[i, LEAN_RATE], ride.pose[i, STEER_RATE] = lean_rate, steer_rate
    _reduce(fan, ride, i)
    # A slower rider leans less; one that stands is upright.
    ride.lean[i], ride.steer[i] = lean * pace * pace, steer
    ride.turn_rate[i] = rate * pace
    ride.crank[i] = (ride.crank[i] + pace * fan.speed * dt * manner.cranks_per_metre) % (2.0 * math.pi)
    ends = fan.lasts[s, a]
    if now > ends and ends < (fan.knots.shape[2] - 1) * fan.interval - 1e-9:
        ride.fallen[i] = 1


@kernel
def _reduce(fan, ride, i):
    """The state that the map knows, of all that is known."""
    for k in range(fan.variables.shape[0]):
        column, slope = fan.variables[k, 0], fan.variables[k, 1]
        if column == HEADING:
            ride.reduced[i, k] = ride.pose[i, TURN_RATE]
        elif column == LEAN:
            ride.reduced[i, k] = ride.pose[i, LEAN_RATE] if slope else ride.pose[i, LEAN_NOW]
        else:
            ride.reduced[i, k] = ride.pose[i, STEER_RATE] if slope else ride.pose[i, STEER_NOW]


@parallel_kernel
def follow(rows, fan, manner, wanted_pace, dt, velocity, ride, out_velocity, out_heading):
    """Go on along the trajectories for a step; those that have fallen slide to a halt."""
    # Writes into a tuple of arrays get lost inside of a parallel loop itself, so a kernel makes them.
    for m in numba.prange(rows.size):
        _follow_one(rows[m], fan, manner, wanted_pace, dt, velocity, ride, out_velocity, out_heading)


@parallel_kernel
def reduce_all(rows, fan, ride):
    """Write the state that the map knows of these rows."""
    for m in numba.prange(rows.size):
        _reduce(fan, ride, rows[m])
