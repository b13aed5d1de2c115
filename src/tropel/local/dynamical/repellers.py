"""Repellers of the heading (GAME §2.1, LAYERS A.1.1), as functions of the angle x between heading and object.

    R = (x / dpsi) exp(1 - |x / dpsi|)                              the generic repeller
    W = ½ [tanh(h1 (cos x - cos B)) + 1]                            its window
        A = min(2 dpsi, pi - delta), B = A + delta, h1 = 4 / (cos A - cos B)
    D = exp(-r / d0)                                                how near it is

`dpsi` is the half-angle that the object subtends once grown by the agent's own radius. `r` is the free distance between
the surfaces. The formulas as printed lack the absolute value in R, without which the repeller explodes on one side, and
their h1 divides by zero at contact, which A prevents.

All functions take x ≥ 0. Their result means: turn away from the object, about the normal of the plane of object and
heading. So the same code serves 2D and 3D. They have no branches, so that loops over objects become vector
instructions.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.fast_math import fast_atan, fast_exp

#: Smallest half-angle (its sine); an object without size still repels.
LEAST_ANGLE = 1e-3
#: Below this argument the window is closed: ½ (tanh(-7) + 1) = 8e-7.
_WINDOW_END = -7.0


@inlined_kernel
def repeller(cos_x, sin_x, dpsi, cos_2dpsi, sin_2dpsi, cos_delta, sin_delta):
    """R W, its derivative with respect to x, and W, for an object at the angle x in [0, pi] from the heading."""
    cos_a = max(cos_2dpsi, -cos_delta)
    sin_a = sin_2dpsi if cos_2dpsi > -cos_delta else sin_delta
    cos_b = cos_a * cos_delta - sin_a * sin_delta
    h1 = 4.0 / (cos_a - cos_b)
    inside = h1 * (cos_x - cos_b)
    w = 1.0 / (1.0 + fast_exp(-2.0 * inside))
    w = w if inside > _WINDOW_END else 0.0
    # x from its half-angle: never divides by zero, and exact for small x.
    acute = 2.0 * fast_atan(sin_x / (1.0 + abs(cos_x)))
    x = acute if cos_x >= 0.0 else math.pi - acute
    per_dpsi = 1.0 / dpsi
    s = x * per_dpsi
    e = fast_exp(1.0 - s) * w
    # The window's own slope: ½ (1 - tanh²) = 2 w (1 - w).
    return s * e, (1.0 - s) * e * per_dpsi - 2.0 * s * e * (1.0 - w) * h1 * sin_x, w


@inlined_kernel
def _sine(contact, per_distance):
    """Sine of half the angle that a disk of radius `contact` subtends."""
    return min(max(contact * per_distance, LEAST_ANGLE), 1.0)


@inlined_kernel
def subtended(contact, per_distance):
    """How a disk of radius `contact` appears at a distance, given as its inverse: the half-angle, cosine and sine of
    the full angle, and of the half. Inside the disk the half-angle is a right angle."""
    sine = _sine(contact, per_distance)
    cosine = math.sqrt(1.0 - sine * sine)
    return 2.0 * fast_atan(sine / (1.0 + cosine)), 1.0 - 2.0 * sine * sine, 2.0 * sine * cosine, cosine, sine


@inlined_kernel
def in_view(ahead, sine, cosine, cos_view, sin_view):
    """Whether any part of an object with that half-angle is in the cone of view; `ahead` is the cosine of its angle."""
    return (ahead >= cos_view * cosine - sin_view * sine) | (cos_view <= -cosine)


@kernel
def wall_interval(x, y, x0, y0, x1, y1, radius, reach):
    """The part of a wall within reach as a body at (x, y) sees it, grown by its radius: middle direction (two numbers),
    half-angle, free distance, and cosine and sine of twice the half-angle, which is capped at half a turn. The free
    distance is infinite if no part of the wall is within reach.

    Angles are added as rotations of unit vectors; only the half-angle itself needs an arctangent.
    """
    dx, dy = x1 - x0, y1 - y0
    length2 = dx * dx + dy * dy
    foot = ((x - x0) * dx + (y - y0) * dy) / length2 if length2 > 0.0 else 0.0
    nearest = min(max(foot, 0.0), 1.0)
    away = math.sqrt((x0 + nearest * dx - x) ** 2 + (y0 + nearest * dy - y) ** 2)
    if away >= reach or away == 0.0:
        return 1.0, 0.0, 0.5 * math.pi, (math.inf if away > 0.0 else 0.0), -1.0, 0.0
    height2 = (x0 + foot * dx - x) ** 2 + (y0 + foot * dy - y) ** 2
    half = math.sqrt(max(reach * reach - height2, 0.0) / length2) if length2 > 0.0 else 0.0
    first, last = max(foot - half, 0.0), min(foot + half, 1.0)
    ax, ay = x0 + first * dx - x, y0 + first * dy - y
    bx, by = x0 + last * dx - x, y0 + last * dy - y
    per_a, per_b = 1.0 / math.sqrt(ax * ax + ay * ay), 1.0 / math.sqrt(bx * bx + by * by)
    ax, ay, bx, by = ax * per_a, ay * per_a, bx * per_b, by * per_b
    # The wall turns from a to b, to the left or to the right; both ends are disks.
    left = math.copysign(1.0, ax * by - ay * bx)
    sin_turn, cos_turn = abs(ax * by - ay * bx), ax * bx + ay * by
    sin_a, sin_b = _sine(radius, per_a), _sine(radius, per_b)
    cos_a, cos_b = math.sqrt(1.0 - sin_a * sin_a), math.sqrt(1.0 - sin_b * sin_b)
    free = max(away - radius, 0.0)
    # Seen end-on, the disk at the nearer end hides the one at the farther end.
    more_sin, more_cos = sin_a * cos_b - cos_a * sin_b, cos_a * cos_b + sin_a * sin_b
    over_sin, over_cos = more_sin * cos_turn, more_cos * sin_turn
    if over_sin > over_cos and more_cos * cos_turn + more_sin * sin_turn > 0.0:
        return ax, ay, 2.0 * fast_atan(sin_a / (1.0 + cos_a)), free, 1.0 - 2.0 * sin_a * sin_a, 2.0 * sin_a * cos_a
    if -over_sin > over_cos and more_cos * cos_turn - more_sin * sin_turn > 0.0:
        return bx, by, 2.0 * fast_atan(sin_b / (1.0 + cos_b)), free, 1.0 - 2.0 * sin_b * sin_b, 2.0 * sin_b * cos_b
    # From the outer edge of the disk at a to that of the disk at b.
    ax, ay = ax * cos_a + left * ay * sin_a, ay * cos_a - left * ax * sin_a
    bx, by = bx * cos_b - left * by * sin_b, by * cos_b + left * bx * sin_b
    sin_all, cos_all = left * (ax * by - ay * bx), ax * bx + ay * by
    if cos_all > 0.0:
        c = math.copysign(math.sqrt(0.5 * (1.0 + cos_all)), sin_all)
        s = 0.5 * sin_all / c
    else:
        s = math.sqrt(0.5 * (1.0 - cos_all))
        c = 0.5 * sin_all / s
    acute = 2.0 * fast_atan(s / (1.0 + abs(c)))
    dpsi = acute if c >= 0.0 else math.pi - acute
    if c < 0.0:
        sin_all, cos_all = 0.0, -1.0
    return ax * c - left * ay * s, ay * c + left * ax * s, dpsi, free, cos_all, sin_all
