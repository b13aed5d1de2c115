"""Exact geometric predicates: a floating-point filter, then expansion arithmetic when the sign is in doubt.

After Shewchuk, "Adaptive precision floating-point arithmetic and fast robust geometric predicates", 1997. A wall is
impassable only if the sign of an orientation is right in every case, also for agents that graze a corner.
"""

from __future__ import annotations

import numpy as np

from tropel._kernels.compile import allocating_kernel, kernel

_SPLIT = 134217729.0  # 2 ** 27 + 1
_ORIENT_BOUND = 3.3306690738754716e-16  # (3 + 16 eps) eps, eps = 2 ** -53


@kernel
def two_sum(a, b):
    """a + b as (rounded sum, exact error)."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


@kernel
def two_product(a, b):
    """a · b as (rounded product, exact error), by Dekker's splitting."""
    product = a * b
    c = _SPLIT * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLIT * b
    b_high = c - (c - b)
    b_low = b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@allocating_kernel
def _orientation_exact(ax, ay, bx, by, cx, cy):
    # The determinant written out has six products; their twelve parts are summed without error into an expansion,
    # whose largest component has the sign of the whole.
    parts = np.empty(12)
    parts[0], parts[1] = two_product(ax, by)
    parts[2], parts[3] = two_product(-ax, cy)
    parts[4], parts[5] = two_product(-cx, by)
    parts[6], parts[7] = two_product(-ay, bx)
    parts[8], parts[9] = two_product(ay, cx)
    parts[10], parts[11] = two_product(cy, bx)
    expansion = np.zeros(12)
    size = 0
    for part in parts:
        carry = part
        for k in range(size):
            carry, expansion[k] = two_sum(carry, expansion[k])
        expansion[size] = carry
        size += 1
    for k in range(size - 1, -1, -1):
        if expansion[k] > 0.0:
            return 1
        if expansion[k] < 0.0:
            return -1
    return 0


@kernel
def orientation(ax, ay, bx, by, cx, cy):
    """+1 if c lies left of the directed line a → b, -1 if right, 0 if exactly on it."""
    left = (ax - cx) * (by - cy)
    right = (ay - cy) * (bx - cx)
    det = left - right
    bound = _ORIENT_BOUND * (abs(left) + abs(right))
    if det > bound:
        return 1
    if det < -bound:
        return -1
    return _orientation_exact(ax, ay, bx, by, cx, cy)


@kernel
def segments_touch(ax, ay, bx, by, cx, cy, dx, dy):
    """Whether the closed segments a–b and c–d share a point; exact, also when they are degenerate or collinear."""
    if max(ax, bx) < min(cx, dx) or max(cx, dx) < min(ax, bx) or max(ay, by) < min(cy, dy) or max(cy, dy) < min(ay, by):
        return False
    # With overlapping boxes, each pair of ends must not lie strictly on one side of the other's line.
    side_a = orientation(cx, cy, dx, dy, ax, ay)
    side_b = orientation(cx, cy, dx, dy, bx, by)
    if side_a * side_b > 0:
        return False
    side_c = orientation(ax, ay, bx, by, cx, cy)
    side_d = orientation(ax, ay, bx, by, dx, dy)
    return side_c * side_d <= 0


# Points and polygons given as boundary segments (any number of rings, holes included).


@kernel
def inside_edges(x, y, edges, first, last):
    """Whether a point is inside (or on) the polygon whose boundary is edges[first:last], by the even-odd rule."""
    inside = False
    for e in range(first, last):
        x0, y0, x1, y1 = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
        if min(y0, y1) <= y <= max(y0, y1):
            side = orientation(x0, y0, x1, y1, x, y)
            if side == 0 and min(x0, x1) <= x <= max(x0, x1):
                return True
            # An edge counts when it crosses the ray to the right; its upper end is left out so that none counts twice.
            if (y0 <= y < y1 and side > 0) or (y1 <= y < y0 and side < 0):
                inside = not inside
    return inside
