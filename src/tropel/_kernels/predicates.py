"""Exact geometric predicates: a floating-point filter, then expansion arithmetic when the sign is in doubt.

After Shewchuk, "Adaptive precision floating-point arithmetic and fast robust geometric predicates", 1997. A wall is
impassable only if the sign of every orientation is correct, even for agents that graze a corner. The last predicate is
for points and polygons given as boundary segments (any number of rings, holes included).
"""

from __future__ import annotations

import numpy as np

from tropel._kernels.compile import allocating_kernel, kernel
from tropel._kernels.expansions import add_number, add_product, difference, sign_of, two_product

_ORIENT_BOUND = 3.3306690738754716e-16  # (3 + 16 eps) eps, eps = 2 ** -53


@allocating_kernel
def _orientation_exact(ax, ay, bx, by, cx, cy):
    # The expanded determinant has six products; their twelve parts are summed without error.
    parts = np.empty(12)
    parts[0], parts[1] = two_product(ax, by)
    parts[2], parts[3] = two_product(-ax, cy)
    parts[4], parts[5] = two_product(-cx, by)
    parts[6], parts[7] = two_product(-ay, bx)
    parts[8], parts[9] = two_product(ay, cx)
    parts[10], parts[11] = two_product(cy, bx)
    total = np.empty(12)
    size = 0
    for part in parts:
        size = add_number(total, size, part)
    return sign_of(total, size)


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


#: (10 + 96 eps) eps
_CIRCLE_BOUND = 1.1102230246251577e-15


@allocating_kernel
def _circle_exact(ax, ay, bx, by, cx, cy, dx, dy):
    offsets, sizes = np.empty((6, 2)), np.empty(6, dtype=np.int64)
    corners = (ax, ay, bx, by, cx, cy)
    for k in range(6):
        sizes[k] = difference(corners[k], dx if k % 2 == 0 else dy, offsets[k])
    total, lift, area = np.empty(1536), np.empty(16), np.empty(16)
    size = 0
    for k in range(3):
        # |corner|² times the area that the other two span.
        x, y = 2 * k, 2 * k + 1
        x1, y1 = (2 * k + 2) % 6, (2 * k + 3) % 6
        x2, y2 = (2 * k + 4) % 6, (2 * k + 5) % 6
        n = add_product(lift, 0, offsets[x], sizes[x], offsets[x], sizes[x], 1.0)
        n = add_product(lift, n, offsets[y], sizes[y], offsets[y], sizes[y], 1.0)
        m = add_product(area, 0, offsets[x1], sizes[x1], offsets[y2], sizes[y2], 1.0)
        m = add_product(area, m, offsets[x2], sizes[x2], offsets[y1], sizes[y1], -1.0)
        size = add_product(total, size, lift, n, area, m, 1.0)
    return sign_of(total, size)


@kernel
def in_circle(ax, ay, bx, by, cx, cy, dx, dy):
    """+1 if d lies inside the circle through a, b and c, which are counter-clockwise, -1 if outside, 0 if on it."""
    ax_d, ay_d, bx_d, by_d, cx_d, cy_d = ax - dx, ay - dy, bx - dx, by - dy, cx - dx, cy - dy
    bc, cb = bx_d * cy_d, cx_d * by_d
    ca, ac = cx_d * ay_d, ax_d * cy_d
    ab, ba = ax_d * by_d, bx_d * ay_d
    lift_a, lift_b, lift_c = ax_d * ax_d + ay_d * ay_d, bx_d * bx_d + by_d * by_d, cx_d * cx_d + cy_d * cy_d
    det = lift_a * (bc - cb) + lift_b * (ca - ac) + lift_c * (ab - ba)
    bound = _CIRCLE_BOUND * ((abs(bc) + abs(cb)) * lift_a + (abs(ca) + abs(ac)) * lift_b + (abs(ab) + abs(ba)) * lift_c)
    if det > bound:
        return 1
    if det < -bound:
        return -1
    return _circle_exact(ax, ay, bx, by, cx, cy, dx, dy)


@kernel
def segments_touch(ax, ay, bx, by, cx, cy, dx, dy):
    """Whether the closed segments a–b and c–d share a point; exact, even if they are degenerate or collinear."""
    if max(ax, bx) < min(cx, dx) or max(cx, dx) < min(ax, bx) or max(ay, by) < min(cy, dy) or max(cy, dy) < min(ay, by):
        return False
    # If the boxes overlap, no pair of ends may lie strictly on one side of the other's line.
    side_a = orientation(cx, cy, dx, dy, ax, ay)
    side_b = orientation(cx, cy, dx, dy, bx, by)
    if side_a * side_b > 0:
        return False
    side_c = orientation(ax, ay, bx, by, cx, cy)
    side_d = orientation(ax, ay, bx, by, dx, dy)
    return side_c * side_d <= 0


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
            # An edge counts if it crosses the ray to the right; its upper end is left out so that none counts twice.
            if (y0 <= y < y1 and side > 0) or (y1 <= y < y0 and side < 0):
                inside = not inside
    return inside
