"""What an agent of the dynamical model feels of others, obstacles and walls: the sums of GAME eq. 8, 12 and 14.

Per class of obstacles six numbers are summed up: the angular velocity (three numbers, in 2D only the last), its slope,
the nearness D and the window W.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import cell_run, cell_window
from tropel._kernels.compile import kernel
from tropel._kernels.discs import disc_cell
from tropel._kernels.walls import cell_at
from tropel.local.dynamical_parameters import AGENTS, OBSTACLES, WALLS
from tropel.local.repellers import REACH_IN_D0, half_angle, repeller, wall_interval

SLOPE, NEARNESS, WINDOW, SUMS = 3, 4, 5, 6


class Crowd(NamedTuple):
    """Columns as kernels see them."""

    id: NDArray[np.int64]
    position: NDArray[np.float64]
    heading: NDArray[np.float64]
    radius: NDArray[np.float64]
    desired_speed: NDArray[np.float64]
    sense_radius: NDArray[np.float64]
    agility: NDArray[np.float64]
    mass: NDArray[np.float64]
    courage: NDArray[np.float64]
    forward_speed: NDArray[np.float64]
    turn_rate: NDArray[np.float64]
    weight_target: NDArray[np.float64]
    weight_0: NDArray[np.float64]
    weight_1: NDArray[np.float64]
    weight_2: NDArray[np.float64]


class Fresh(NamedTuple):
    """Where kernels write."""

    velocity: NDArray[np.float64]
    heading: NDArray[np.float64]
    forward_speed: NDArray[np.float64]
    turn_rate: NDArray[np.float64]
    weight_target: NDArray[np.float64]
    weight_0: NDArray[np.float64]
    weight_1: NDArray[np.float64]
    weight_2: NDArray[np.float64]


@kernel
def _feel(sums, h, u, m, cos_x, dpsi, margin, near, strength, ahead_only):
    """Add an object in the unit direction u to the sums of its class; h is the heading, m the axis of slopes."""
    nx, ny, nz = u[1] * h[2] - u[2] * h[1], u[2] * h[0] - u[0] * h[2], u[0] * h[1] - u[1] * h[0]
    sin_x = math.sqrt(nx * nx + ny * ny + nz * nz)
    turn, slope, w = repeller(math.atan2(sin_x, cos_x), cos_x, sin_x, dpsi, margin)
    sums[NEARNESS] += near * w if ahead_only else near
    if w == 0.0:
        return
    turn *= strength * near
    slope *= strength * near
    sums[WINDOW] += w
    if sin_x > 1e-12:
        nx, ny, nz = nx / sin_x, ny / sin_x, nz / sin_x
        # Turning about m changes x only by the part of m along n; the rest turns the plane of heading and object.
        aligned = (nx * m[0] + ny * m[1] + nz * m[2]) ** 2
        sums[0] += turn * nx
        sums[1] += turn * ny
        sums[2] += turn * nz
        sums[SLOPE] += slope * aligned + turn * cos_x / sin_x * (1.0 - aligned)
    else:
        sums[SLOPE] += slope


@kernel
def _feel_body(sums, h, m, dx, dy, dz, vx, vy, vz, contact, own_speed, d0, row, rules, gap):
    """Add a round object at the offset d with the velocity v. Returns the least free distance in front so far."""
    away = math.sqrt(dx * dx + dy * dy + dz * dz)
    if away == 0.0:
        return gap
    u = (dx / away, dy / away, dz / away)
    free = max(away - contact, 0.0)
    ahead = h[0] * u[0] + h[1] * u[1] + h[2] * u[2]
    # In front is what the body would run into if it went straight on.
    if ahead > 0.0 and away * away * (1.0 - ahead * ahead) < (rules.front * contact) ** 2:
        gap = min(gap, away - contact)
    share = rules.anticipation
    if share > 0.0:
        rx, ry, rz = own_speed * h[0] - share * vx, own_speed * h[1] - share * vy, own_speed * h[2] - share * vz
        relative = math.sqrt(rx * rx + ry * ry + rz * rz)
        # Who moves along with us comes no nearer.
        if relative < 1e-3 * own_speed:
            return gap
        h = (rx / relative, ry / relative, rz / relative)
        free *= own_speed / relative
    if free > REACH_IN_D0 * d0:
        return gap
    cos_x = min(max(h[0] * u[0] + h[1] * u[1] + h[2] * u[2], -1.0), 1.0)
    _feel(sums, h, u, m, cos_x, half_angle(contact, away), row[2], math.exp(-free / d0), row[0], rules.ahead_only)
    return gap


@kernel
def feel_agents(i, x, y, z, h, m, own_speed, d0, crowd, cells, rules, scratch, gap):
    dim = crowd.position.shape[1]
    sums, row = scratch[rules.class_of[AGENTS]], rules.repulsion[AGENTS]
    reach = crowd.sense_radius[i]
    x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, z, reach)
    for cz in range(z0, z1 + 1):
        for cy in range(y0, y1 + 1):
            first, last = cell_run(cells, x0, x1, cy, cz)
            for k in range(first, last):
                dx, dy = cells.position[0, k] - x, cells.position[1, k] - y
                dz = cells.position[2, k] - z if dim == 3 else 0.0
                if dx * dx + dy * dy + dz * dz > reach * reach or cells.order[k] == i:
                    continue
                vz = cells.velocity[2, k] if dim == 3 else 0.0
                contact = crowd.radius[i] + cells.radius[k]
                gap = _feel_body(sums, h, m, dx, dy, dz, cells.velocity[0, k], cells.velocity[1, k], vz, contact,
                                 own_speed, d0 * row[1], row, rules, gap)  # fmt: skip
    return gap


@kernel
def feel_obstacles(i, x, y, z, h, m, own_speed, d0, crowd, discs, rules, scratch, gap):
    if discs.radius.size == 0:
        return gap
    dim = crowd.position.shape[1]
    sums, row = scratch[rules.class_of[OBSTACLES]], rules.repulsion[OBSTACLES]
    cell = disc_cell(crowd.position, i, discs)
    for k in range(discs.start[cell], discs.start[cell + 1]):
        o = discs.items[k]
        dx, dy = discs.position[o, 0] - x, discs.position[o, 1] - y
        dz = discs.position[o, 2] - z if dim == 3 else 0.0
        limit = crowd.sense_radius[i] + discs.radius[o]
        if dx * dx + dy * dy + dz * dz > limit * limit:
            continue
        vz = discs.velocity[o, 2] if dim == 3 else 0.0
        gap = _feel_body(sums, h, m, dx, dy, dz, discs.velocity[o, 0], discs.velocity[o, 1], vz,
                         crowd.radius[i] + discs.radius[o], own_speed, d0 * row[1], row, rules, gap)  # fmt: skip
    return gap


@kernel
def feel_walls(i, x, y, h, m, d0, crowd, walls, rules, scratch, gap):
    if walls.segments.shape[0] == 0:
        return gap
    sums, row = scratch[rules.class_of[WALLS]], rules.repulsion[WALLS]
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if not walls.blocking[s]:
            continue
        x0, y0, x1, y1 = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
        ux, uy, dpsi, free = wall_interval(x, y, x0, y0, x1, y1, crowd.radius[i], crowd.sense_radius[i])
        if free > REACH_IN_D0 * d0 * row[1]:
            continue
        cos_x = min(max(h[0] * ux + h[1] * uy, -1.0), 1.0)
        near = math.exp(-free / (d0 * row[1]))
        _feel(sums, h, (ux, uy, 0.0), m, cos_x, dpsi, row[2], near, row[0], rules.ahead_only)
        # What slows down is the wall straight ahead, not the one walked along.
        ahead = _ray_hits(x, y, h[0], h[1], x0, y0, x1, y1)
        gap = min(gap, ahead - crowd.radius[i])
    return gap


@kernel
def _ray_hits(x, y, ex, ey, x0, y0, x1, y1):
    """How far along the unit vector e a wall is met; infinite when it is not."""
    dx, dy = x1 - x0, y1 - y0
    det = ex * dy - ey * dx
    if det == 0.0:
        return math.inf
    t = ((x0 - x) * dy - (y0 - y) * dx) / det
    u = ((x0 - x) * ey - (y0 - y) * ex) / det
    return t if t >= 0.0 and 0.0 <= u <= 1.0 else math.inf
