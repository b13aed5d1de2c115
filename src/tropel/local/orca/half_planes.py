"""Which velocities are allowed: a half-plane for each wall, obstacle and neighbour.

A row (nx, ny, b) of a table allows the velocities v with n · v ≥ b, where n is a unit vector.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.walls import nearest_on_wall

_ONE = np.uint64(1)


@inlined_kernel
def _way_out(px, py, vx, vy, contact, horizon, dt):
    """The direction n of the shortest way out of the velocity obstacle, and its length (negative: v is outside).

    The other body is at p and v is the velocity relative to it. The velocities that lead to contact within the horizon
    are a cone whose tip is cut off by a disc of radius contact / horizon around p / horizon. n is 0 if all directions
    are equally good.
    """
    away2 = px * px + py * py
    contact2 = contact * contact
    apart = away2 > contact2
    # Bodies that overlap should come apart within one step.
    per_time = 1.0 / (horizon if apart else dt)
    wx, wy = vx - px * per_time, vy - py * per_time
    w2 = wx * wx + wy * wy
    along = wx * px + wy * py
    if not apart or (along < 0.0 and along * along > contact2 * w2):
        w = math.sqrt(w2)
        if w == 0.0:
            return 0.0, 0.0, 0.0
        return wx / w, wy / w, contact * per_time - w
    leg = math.sqrt(away2 - contact2)
    if px * wy - py * wx <= 0.0:
        leg = -leg
    nx, ny = (-px * contact - py * leg) / away2, (px * leg - py * contact) / away2
    return nx, ny, -(nx * vx + ny * vy)


@inlined_kernel
def avoid_neighbours(lines, count, table, found, vx, vy, radius, near, horizon, dt):
    """Add the half-planes of neighbours, which take half of the responsibility; returns how many there are."""
    velocity = near.met_velocity
    for m in range(found):
        k = table.entry[m]
        nx, ny, out = _way_out(
            table.dx[m], table.dy[m], vx - velocity[0, k], vy - velocity[1, k], radius + near.met_radius[k], horizon, dt
        )
        lines[count, 0], lines[count, 1], lines[count, 2] = nx, ny, nx * vx + ny * vy + 0.5 * out
        count += np.uint64((nx != 0.0) | (ny != 0.0))
    return count


@kernel
def avoid_obstacles(lines, count, x, y, cell, sense, vx, vy, radius, discs, horizon, dt):
    """Add the half-planes of round obstacles, which leave all of the responsibility to the agent."""
    for item in range(discs.start[cell], discs.start[cell + 1]):
        m = discs.items[item]
        px, py = discs.position[m, 0] - x, discs.position[m, 1] - y
        reach = sense + discs.radius[m]
        if px * px + py * py > reach * reach:
            continue
        nx, ny, out = _way_out(
            px, py, vx - discs.velocity[m, 0], vy - discs.velocity[m, 1], radius + discs.radius[m], horizon, dt
        )
        lines[count, 0], lines[count, 1], lines[count, 2] = nx, ny, nx * vx + ny * vy + out
        count += np.uint64((nx != 0.0) | (ny != 0.0))
    return count


@kernel
def avoid_walls(lines, count, x, y, cell, reach, radius, walls, horizon):
    """Add the half-planes of walls within reach: nobody approaches the nearest point faster than it can be reached
    within the horizon. A body in contact may only move along the wall or away from it."""
    for item in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[item]
        if not walls.blocking[s]:
            continue
        qx, qy = nearest_on_wall(x, y, walls, s)
        nx, ny = x - qx, y - qy
        away = math.sqrt(nx * nx + ny * ny)
        if 0.0 < away <= reach:
            lines[count, 0], lines[count, 1] = nx / away, ny / away
            lines[count, 2] = -max(away - radius, 0.0) / horizon
            count += _ONE
    return count
