"""One step of a flock: the rules of every boid combined, and its new velocity.

Boids are visited in the order of their cells, in chunks small enough that their results stay in the nearest cache:
first the range and cone of sight of each, then one loop per kind of rule, then the new velocities. One loop over boids
with all rules in it was several times slower. A boid writes only its own row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel, inlined_kernel, kernel, parallel_kernel
from tropel._kernels.philox import normal_pair
from tropel.local.flocking.lanes import CROWDED, FLED, FOUND, HEADED, MATES, MIDDLE, PREY, SHUNNED
from tropel.local.flocking.obstacles import ObstaclesAround, anything_near, repulsion, steering
from tropel.local.flocking.sums import ALL_ROUND, meet, place_at, sum_up_all, sum_up_nearest

#: Boids for which one rule after another is evaluated, and boids per unit of parallel work, which allocates once.
_CHUNK = 128
_BLOCK = 2048
#: A flock is divided into at least this many units, or threads would wait for the last one.
_UNITS = 16
#: Speeds below this have no direction [m/s].
_STILL = 1e-100

_ONE = np.uint64(1)


class Flight(NamedTuple):
    """Values of the step and the model that are the same for all boids."""

    dt: float
    step: int
    key: np.uint64
    told_apart: int
    nearest: int  #: 0 for all mates
    priorities: bool
    look_ahead: float
    obstacles: bool  #: whether anything is in the way
    goals: bool  #: whether any boid has a planned direction
    leaders: bool  #: whether any boid has a leader
    hunts: bool  #: whether any boid chases or flees
    waits: bool  #: whether any boid has not started yet
    room: int  #: largest number of runs of cells for a boid


class Boids(NamedTuple):
    """Columns of all agents, by row."""

    id: NDArray[np.int64]
    position: NDArray[np.float64]
    radius: NDArray[np.float64]
    waiting: NDArray[np.bool_]  #: whether an agent has not started yet; empty if none waits
    leader: NDArray[np.int64]  #: rows of the leaders, -1 for none; empty if no agent has one
    pursued: NDArray[np.float64]  #: where to go instead of the leader's place; empty if all see their leaders
    on_trail: NDArray[np.bool_]  #: whether that is a point of the leader's trail
    directions: NDArray[np.float64]


@inlined_kernel
def _of(trait, i):
    """Agent i's value of a trait."""
    return trait[min(i, np.uint64(trait.size) - _ONE)]


@inlined_kernel
def _with_rule(force, used, weight, rule, most, priorities):
    """The force with one more rule, and how much of the cap is used if earlier rules take what they need."""
    fx, fy, fz = force
    rx, ry, rz = weight * rule[0], weight * rule[1], weight * rule[2]
    if priorities:
        length = math.sqrt(rx * rx + ry * ry + rz * rz)
        left = most - used
        if length > left:
            scale = left / length
            rx, ry, rz, length = scale * rx, scale * ry, scale * rz, left
        used += length
    return (fx + rx, fy + ry, fz + rz), used


@inlined_kernel
def _scaled(scale, vector):
    return scale * vector[0], scale * vector[1], scale * vector[2]


@inlined_kernel
def _length(vector):
    return math.sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2])


@inlined_kernel
def _follows_trail(i, boids):
    """Whether a wall hides the leader of agent i, which goes from point to point of the leader's trail."""
    return boids.on_trail.size > 0 and boids.on_trail[i] and boids.leader[i] >= 0


@inlined_kernel
def _to_leader(i, boids, period, reach):
    """The offset to the leader by the shortest path, in units of `reach`, with a length of at most 1."""
    j = boids.leader[i]
    if j < 0:
        return 0.0, 0.0, 0.0
    dim = boids.position.shape[1]
    places = boids.position
    if boids.pursued.shape[0] > 0:
        j, places = np.int64(i), boids.pursued
    dx, dy, dz = places[j, 0] - boids.position[i, 0], places[j, 1] - boids.position[i, 1], 0.0
    if dim == 3:
        dz = places[j, 2] - boids.position[i, 2]
    if period[0] > 0.0:
        dx -= period[0] * math.floor(dx / period[0] + 0.5)
    if period[1] > 0.0:
        dy -= period[1] * math.floor(dy / period[1] + 0.5)
    if period[2] > 0.0:
        dz -= period[2] * math.floor(dz / period[2] + 0.5)
    away = max(math.sqrt(dx * dx + dy * dy + dz * dz), reach)
    return _scaled(1.0 / away if away > 0.0 else 0.0, (dx, dy, dz))


@inlined_kernel
def _any_direction(boids, i, flight, spatial):
    """A random unit vector, for a boid without any direction."""
    a, b = normal_pair(flight.key, boids.id[i], flight.step, 0)
    c = normal_pair(flight.key, boids.id[i], flight.step, 1)[0] if spatial else 0.0
    length = math.sqrt(a * a + b * b + c * c)
    if length < 1e-9:
        return 1.0, 0.0, 0.0
    return a / length, b / length, c / length


class Desk(NamedTuple):
    """Scratch memory for the boids of a chunk."""

    close: NDArray[np.float64]  #: separation distance of each
    cone: NDArray[np.float64]  #: its cone of view, in the form that `local/flocking/lanes.py` takes
    alarm: NDArray[np.float64]  #: its flee radius
    reach: NDArray[np.float64]  #: its sense radius
    found: NDArray[np.float64]  #: (boids, FOUND)
    barred: NDArray[np.float64]  #: (boids, 6): repulsion and steering from obstacles
    runs: NDArray[np.uint64]  #: runs of neighbours of one boid: first and last of each
    shifts: NDArray[np.float64]  #: shift of the boid's point for each run
    table: NDArray[np.float64]  #: the nearest mates
    chosen: NDArray[np.uint64]


@kernel
def _look(places, first, last, near, traits, flight, desk):
    """Range and cone of sight of each boid of a chunk."""
    spatial = near.position.shape[0] == 3
    for n in range(np.uint64(last - first)):
        k = place_at(places, first, n)
        i = np.uint64(near.order[k])
        reach = near.sense_radius[k]
        close = _of(traits.separation_distance, i)
        desk.close[n] = 0.5 * reach if math.isnan(close) else min(close, reach)
        if flight.told_apart != ALL_ROUND:
            vx, vy = near.velocity[0, k], near.velocity[1, k]
            vz = near.velocity[2, k] if spatial else 0.0
            blind = _of(traits.blind_angle, i)
            cosine = -math.cos(0.5 * blind)
            # Nothing may be outside of a full view, whatever the rounding.
            desk.cone[n] = (cosine * abs(cosine) if blind > 0.0 else -2.0) * (vx * vx + vy * vy + vz * vz)
        if flight.hunts:
            alarm = _of(traits.flee_radius, i)
            desk.reach[n], desk.alarm[n] = reach, reach if math.isnan(alarm) else alarm


@kernel
def _sense_obstacles(places, first, last, boids, near, around, flight, barred):
    spatial = near.position.shape[0] == 3
    for n in range(np.uint64(last - first)):
        k = place_at(places, first, n)
        i = np.uint64(near.order[k])
        reach = near.sense_radius[k]
        if not anything_near(boids.position, i, boids.radius[i], reach, around):
            barred[n, :] = 0.0
            continue
        vx, vy = near.velocity[0, k], near.velocity[1, k]
        vz = near.velocity[2, k] if spatial else 0.0
        sight = min(reach, flight.look_ahead * math.sqrt(vx * vx + vy * vy + vz * vz))
        barred[n, 0], barred[n, 1], barred[n, 2] = repulsion(boids.position, i, boids.radius[i], reach, around)
        wish = 0.0, 0.0, 0.0
        if flight.goals:
            wish = boids.directions[i, 0], boids.directions[i, 1], boids.directions[i, 2] if spatial else 0.0
        if flight.leaders and _follows_trail(i, boids):
            wish = _to_leader(i, boids, near.period, 0.0)
        barred[n, 3], barred[n, 4], barred[n, 5] = steering(boids.position, i, boids.radius[i], vx, vy, vz, sight,
                                                            wish, around)  # fmt: skip


@inlined_kernel
def _vector(table, n, column, spatial):
    return table[n, column], table[n, column + 1], table[n, column + 2] if spatial else 0.0


@inlined_kernel
def _force(i, n, velocity, reach, top, most, boids, period, traits, flight, avoids, desk):
    """All rules of agent i, the n-th of its chunk, urgent ones first."""
    in_turn, found, spatial = flight.priorities, desk.found, boids.position.shape[1] == 3
    force, used = (0.0, 0.0, 0.0), 0.0
    if flight.obstacles:
        rule, weight = _vector(desk.barred, n, 0, spatial), _of(traits.obstacle_repulsion, i)
        force, used = _with_rule(force, used, weight, rule, most, in_turn)
        rule, weight = _vector(desk.barred, n, 3, spatial), _of(traits.obstacle_steering, i)
        force, used = _with_rule(force, used, weight, rule, most, in_turn)
    if flight.hunts:
        weight = -desk.alarm[n] * _of(traits.flight, i)
        force, used = _with_rule(force, used, weight, _vector(found, n, FLED, spatial), most, in_turn)
    weight = -desk.close[n] * _of(traits.separation, i)
    force, used = _with_rule(force, used, weight, _vector(found, n, CROWDED, spatial), most, in_turn)
    if avoids:
        weight = -reach * _of(traits.avoidance, i)
        force, used = _with_rule(force, used, weight, _vector(found, n, SHUNNED, spatial), most, in_turn)
    per_mate = 1.0 / max(found[n, MATES], 1.0)
    weight = _of(traits.alignment, i) * per_mate / top if top > 0.0 else 0.0
    force, used = _with_rule(force, used, weight, _vector(found, n, HEADED, spatial), most, in_turn)
    weight = _of(traits.cohesion, i) * per_mate / reach if reach > 0.0 else 0.0
    force, used = _with_rule(force, used, weight, _vector(found, n, MIDDLE, spatial), most, in_turn)
    if flight.hunts:
        prey = _vector(found, n, PREY, spatial)
        away = _length(prey)
        weight = _of(traits.pursuit, i) / away if away > 0.0 else 0.0
        force, used = _with_rule(force, used, weight, prey, most, in_turn)
    if flight.leaders:
        if _follows_trail(i, boids):
            # Steering against the present velocity, or it would circle around the point for ever.
            to, slow = _to_leader(i, boids, period, 0.0), 1.0 / top if top > 0.0 else 0.0
            pull = to[0] - slow * velocity[0], to[1] - slow * velocity[1], to[2] - slow * velocity[2]
        else:
            pull = _to_leader(i, boids, period, reach)
        force, used = _with_rule(force, used, _of(traits.leader_pull, i), pull, most, in_turn)
    if flight.goals:
        goal = boids.directions[i, 0], boids.directions[i, 1], boids.directions[i, 2] if spatial else 0.0
        force, used = _with_rule(force, used, _of(traits.goal_pull, i), goal, most, in_turn)
    return force


@kernel
def _fly(places, first, last, boids, near, traits, flight, avoids, desk, out_velocity, out_heading):
    """The new velocity of each boid of a chunk."""
    spatial = near.position.shape[0] == 3
    for n in range(np.uint64(last - first)):
        k = place_at(places, first, n)
        i = np.uint64(near.order[k])
        if flight.waits and boids.waiting[i]:
            continue
        top, most = _of(traits.desired_speed, i), _of(traits.max_force, i)
        velocity = near.velocity[0, k], near.velocity[1, k], near.velocity[2, k] if spatial else 0.0
        force = _force(i, n, velocity, near.sense_radius[k], top, most, boids, near.period, traits, flight, avoids,
                       desk)  # fmt: skip
        strength = _length(force)
        scale = flight.dt * (most / strength if strength > most else 1.0)
        vx, vy = velocity[0] + scale * force[0], velocity[1] + scale * force[1]
        vz = velocity[2] + scale * force[2] if spatial else 0.0
        speed = math.sqrt(vx * vx + vy * vy + vz * vz)
        wanted = min(max(speed, top * _of(traits.least_speed, i)), top)
        if speed > _STILL:
            per_speed = 1.0 / speed
            ex, ey, ez = vx * per_speed, vy * per_speed, vz * per_speed
        elif wanted > 0.0:
            ex, ey, ez = _any_direction(boids, i, flight, spatial)
        else:
            continue
        out_velocity[i, 0], out_velocity[i, 1] = wanted * ex, wanted * ey
        out_heading[i, 0], out_heading[i, 1] = ex, ey
        if spatial:
            out_velocity[i, 2] = wanted * ez
            out_heading[i, 2] = ez


@kernel
def _steer_chunk(places, first, last, boids, near, hunted, around, traits, relations, flight, avoids, desk,
                 out_velocity, out_heading):  # fmt: skip
    _look(places, first, last, near, traits, flight, desk)
    if flight.obstacles:
        _sense_obstacles(places, first, last, boids, near, around, flight, desk.barred)
    if flight.hunts:
        meet(places, first, last, hunted, boids.id, desk.alarm, desk.cone, relations.fled, True, desk.found)
        meet(places, first, last, hunted, boids.id, desk.reach, desk.cone, relations.chased, False, desk.found)
    if flight.nearest == 0 or avoids:
        sum_up_all(places, first, last, near, desk.close, desk.cone, relations, flight.told_apart, desk.runs,
                   desk.shifts, desk.found, out_velocity, out_heading)  # fmt: skip
    if flight.nearest > 0:
        sum_up_nearest(places, first, last, near, boids.id, desk.close, desk.cone, relations, flight.told_apart,
                       desk.table, desk.chosen, desk.found)  # fmt: skip
    _fly(places, first, last, boids, near, traits, flight, avoids, desk, out_velocity, out_heading)


@allocating_kernel
def _steer_some(places, first, last, boids, near, hunted, discs, walls, faces, traits, relations, flight,
                out_velocity, out_heading):  # fmt: skip
    # A separate function: arrays allocated in the body of a parallel loop would be shared by its iterations.
    numbers = np.empty((4, _CHUNK))
    runs, shifts = np.empty(2 * flight.room, dtype=np.uint64), np.empty(3 * flight.room)
    table, chosen = np.empty((flight.nearest, 4)), np.empty(flight.nearest, dtype=np.uint64)
    found, barred = np.empty((_CHUNK, FOUND)), np.empty((_CHUNK, 6))
    desk = Desk(numbers[0], numbers[1], numbers[2], numbers[3], found, barred, runs, shifts, table, chosen)
    around = ObstaclesAround(discs, walls, faces)
    avoids = relations.avoided.any()
    for begin in range(first, last, _CHUNK):
        _steer_chunk(places, begin, min(begin + _CHUNK, last), boids, near, hunted, around, traits, relations, flight,
                     avoids, desk, out_velocity, out_heading)  # fmt: skip


@parallel_kernel
def steer_flock(places, count, boids, near, hunted, discs, walls, faces, traits, relations, flight, out_velocity,
                out_heading):  # fmt: skip
    """Write velocity and heading of the boids at the given places among the sorted agents, or of all if none are given.

    `hunted` are the neighbours within the largest distance at which boids flee or chase.
    """
    size = min(_BLOCK, max(_CHUNK, count // _UNITS))
    for block in numba.prange((count + size - 1) // size):
        first = block * size
        last = min(first + size, count)
        _steer_some(places, first, last, boids, near, hunted, discs, walls, faces, traits, relations, flight,
                    out_velocity, out_heading)  # fmt: skip
