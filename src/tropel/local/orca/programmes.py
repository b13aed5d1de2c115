"""The best velocity within all half-planes and the disc of possible speeds.

Half-planes are rows (nx, ny, b) of a table: n · v ≥ b. They are added one after the other. Whenever the next one does
not allow the best velocity so far, the new best velocity lies on its border, and a programme in one dimension finds it
(de Berg et al., "Computational Geometry", chapter 4). If no velocity is allowed by all of them, the one is taken that
breaks the worst broken one least. Walls come first in the table and are never broken.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel

#: What rounding may do to velocities and to sines of angles between borders, as a share of the largest speed.
_ROUNDING = 1e-10

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@inlined_kernel
def _best_on_border(lines, i, speed, ox, oy, farthest):
    """On the border of half-plane i, within those before it: the velocity that is nearest to o, or `farthest` along o.

    Returns whether there is one, and the velocity.
    """
    nx, ny, b = lines[i, 0], lines[i, 1], lines[i, 2]
    inside = speed * speed - b * b
    if inside < 0.0:
        return False, 0.0, 0.0
    # Points of the border are b n + t d.
    dx, dy = ny, -nx
    high = math.sqrt(inside)
    low = -high
    slack = _ROUNDING * speed
    for j in range(_ZERO, i):
        along = lines[j, 0] * dx + lines[j, 1] * dy
        missing = lines[j, 2] - b * (lines[j, 0] * nx + lines[j, 1] * ny)
        if abs(along) <= _ROUNDING:
            if missing > slack:
                return False, 0.0, 0.0
        elif along > 0.0:
            low = max(low, missing / along)
        else:
            high = min(high, missing / along)
        if low > high + slack:
            return False, 0.0, 0.0
    t = ox * dx + oy * dy
    if farthest:
        t = high if t > 0.0 else low
    t = min(max(t, low), high)
    return True, b * nx + t * dx, b * ny + t * dy


@kernel
def best_within(lines, count, speed, ox, oy, farthest):
    """The velocity that is nearest to o, or `farthest` along the unit vector o, within half-planes and disc.

    Returns how many half-planes allow some velocity together, all `count` or the first ones, and the best velocity
    within them.
    """
    length = math.sqrt(ox * ox + oy * oy)
    scale = speed / length if farthest or length > speed else 1.0
    vx, vy = scale * ox, scale * oy
    for i in range(_ZERO, count):
        if lines[i, 2] - (lines[i, 0] * vx + lines[i, 1] * vy) > _ROUNDING * speed:
            possible, tx, ty = _best_on_border(lines, i, speed, ox, oy, farthest)
            if not possible:
                return i, vx, vy
            vx, vy = tx, ty
    return count, vx, vy


@kernel
def least_broken(lines, count, walls, begin, speed, vx, vy, scratch):
    """Break the worst broken half-plane as little as possible, and none of the first `walls`.

    v is the best velocity within the half-planes before `begin`, with which no velocity is allowed by all.
    """
    worst = 0.0
    for i in range(begin, count):
        nx, ny, b = lines[i, 0], lines[i, 1], lines[i, 2]
        if b - (nx * vx + ny * vy) <= worst + _ROUNDING * speed:
            continue
        # i is now the worst. The others may be broken as far as i is: b_j - n_j · v ≤ b_i - n_i · v is a half-plane.
        kept = _ZERO
        for j in range(_ZERO, i):
            if j < walls:
                mx, my, c, length = lines[j, 0], lines[j, 1], lines[j, 2], 1.0
            else:
                mx, my, c = lines[j, 0] - nx, lines[j, 1] - ny, lines[j, 2] - b
                length = math.sqrt(mx * mx + my * my)
            if length > _ROUNDING:
                scratch[kept, 0], scratch[kept, 1], scratch[kept, 2] = mx / length, my / length, c / length
                kept += _ONE
        possible, tx, ty = best_within(scratch, kept, speed, nx, ny, True)
        if possible == kept:
            # Otherwise only rounding is in the way: the velocity so far breaks no half-plane before i further.
            vx, vy = tx, ty
        worst = b - (nx * vx + ny * vy)
    return vx, vy
