"""What an agent of the dynamical model feels of walls and closed doors, in 2D."""

from __future__ import annotations

import math

from tropel._kernels.compile import kernel
from tropel._kernels.fast_math import fast_exp
from tropel._kernels.walls import cell_at
from tropel.local.dynamical_parameters import WALLS
from tropel.local.felt_bodies import NEARNESS, SLOPE, WINDOW
from tropel.local.repellers import REACH_IN_D0, in_view, repeller, wall_interval


@kernel
def feel_walls(i, x, y, hx, hy, d0, cos_view, crowd, walls, rules, scratch, gap):
    """Add the walls within the sense radius to the sums; returns the least free distance in front."""
    sums = scratch[rules.class_of[WALLS]]
    d0 = d0 * rules.reach[WALLS]
    radius, sense_radius = crowd.radius[i], crowd.sense_radius[i]
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if not walls.blocking[s]:
            continue
        x0, y0, x1, y1 = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
        ux, uy, dpsi, free, cos_2dpsi, sin_2dpsi = wall_interval(x, y, x0, y0, x1, y1, radius, sense_radius)
        if free > REACH_IN_D0 * d0:
            continue
        cos_x = min(max(hx * ux + hy * uy, -1.0), 1.0)
        # Seen as soon as any part of it is.
        if cos_view > -1.0 and not in_view(
            cos_x, math.sin(dpsi), math.cos(dpsi), cos_view, math.sqrt(1.0 - cos_view * cos_view)
        ):
            continue
        n = ux * hy - uy * hx
        turn, slope, w = repeller(
            cos_x, abs(n), dpsi, cos_2dpsi, sin_2dpsi, rules.cos_margin[WALLS], rules.sin_margin[WALLS]
        )
        near = fast_exp(-free / d0)
        sums[2] += math.copysign(turn * near * rules.strength[WALLS], n)
        sums[SLOPE] += slope * near * rules.strength[WALLS]
        sums[NEARNESS] += near * max(w, rules.all_round)
        sums[WINDOW] += w
        # What slows down is the wall straight ahead, not the one walked along.
        gap = min(gap, _ray_hits(x, y, hx, hy, x0, y0, x1, y1) - radius)
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
