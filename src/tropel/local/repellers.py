"""Repellers of the heading (GAME §2.1, LAYERS A.1.1), as functions of the angle x between heading and object.

    R = (x / dpsi) exp(1 - |x / dpsi|)                              the generic repeller
    W = ½ [tanh(h1 (cos x - cos B)) + 1]                            its window
        A = min(2 dpsi, pi - delta), B = A + delta, h1 = 4 / (cos A - cos B)
    D = exp(-r / d0)                                                how near it is

`dpsi` is the half-angle under which the object appears once grown by the agent's own radius, `r` the free distance
between the surfaces. The print lacks the absolute value in R, without which the repeller explodes on one side, and its
h1 divides by zero at contact, which A cures.

All functions take x ≥ 0 and mean: turn away from the object, about the normal of the plane of object and heading. So
one code serves 2D and 3D.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import kernel
from tropel._kernels.walls import nearest_on_segment

#: Smallest half-angle [rad]; an object of no size still repels.
LEAST_ANGLE = 1e-3
#: Below this argument the window is closed: ½ (tanh(-7) + 1) = 8e-7.
_WINDOW_END = -7.0
#: Objects further off than this many d0 count for nothing: exp(-12) = 6e-6.
REACH_IN_D0 = 12.0


@kernel
def half_angle(contact, distance):
    """Half of the angle under which a disk of radius `contact` appears at `distance`; a right angle when inside it."""
    if distance <= contact:
        return 0.5 * math.pi
    return max(math.asin(contact / distance), LEAST_ANGLE)


@kernel
def repeller(x, cos_x, sin_x, dpsi, delta):
    """R W, its derivative by x, and W, for an object at the angle x ≥ 0 from the heading."""
    a = min(2.0 * dpsi, math.pi - delta)
    cos_b = math.cos(a + delta)
    h1 = 4.0 / (math.cos(a) - cos_b)
    inside = h1 * (cos_x - cos_b)
    if inside < _WINDOW_END:
        return 0.0, 0.0, 0.0
    t = math.tanh(inside)
    w = 0.5 * (t + 1.0)
    s = x / dpsi
    e = math.exp(1.0 - s)
    return s * e * w, (1.0 - s) * e / dpsi * w - s * e * 0.5 * (1.0 - t * t) * h1 * sin_x, w


@kernel
def wall_interval(x, y, x0, y0, x1, y1, radius, reach):
    """The part of a wall within reach as a body at (x, y) sees it, grown by its radius: middle direction (two numbers),
    half-angle and free distance. The free distance is infinite when nothing of it is within reach."""
    qx, qy = nearest_on_segment(x, y, x0, y0, x1, y1)
    away = math.sqrt((qx - x) ** 2 + (qy - y) ** 2)
    if away >= reach or away == 0.0:
        return 1.0, 0.0, 0.5 * math.pi, (math.inf if away > 0.0 else 0.0)
    dx, dy = x1 - x0, y1 - y0
    length2 = dx * dx + dy * dy
    foot = ((x - x0) * dx + (y - y0) * dy) / length2
    height2 = (x0 + foot * dx - x) ** 2 + (y0 + foot * dy - y) ** 2
    half = math.sqrt(max(reach * reach - height2, 0.0) / length2)
    first, last = max(foot - half, 0.0), min(foot + half, 1.0)
    ax, ay = x0 + first * dx - x, y0 + first * dy - y
    bx, by = x0 + last * dx - x, y0 + last * dy - y
    turn = math.atan2(ax * by - ay * bx, ax * bx + ay * by)
    at_a, at_b = math.sqrt(ax * ax + ay * ay), math.sqrt(bx * bx + by * by)
    grown_a = half_angle(radius, at_a)
    grown_b = half_angle(radius, at_b)
    # Seen end-on, the disk of the nearer end hides that of the further one.
    low, high = min(-grown_a, abs(turn) - grown_b), max(grown_a, abs(turn) + grown_b)
    middle = 0.5 * (low + high) if turn >= 0.0 else -0.5 * (low + high)
    c, s = math.cos(middle), math.sin(middle)
    return (ax * c - ay * s) / at_a, (ax * s + ay * c) / at_a, 0.5 * (high - low), max(away - radius, 0.0)
