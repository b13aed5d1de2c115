"""Looking at the edges and triangles of a mesh after its vertices have moved: which have turned over, and which fail.

Three ways, one for each kind of step (`repair.py`).
"""

from __future__ import annotations

import numpy as np

from tropel._kernels.compile import kernel
from tropel._kernels.predicates import in_circle
from tropel.environment.kinetic.certificates import issue
from tropel.environment.kinetic.desk import FAILED, LOOKED_AT
from tropel.environment.kinetic.mesh import (
    DONE,
    STUCK,
    after,
    fails,
    flip_until_delaunay,
    is_upright,
    next_around,
    push,
)

#: Errors of an orientation and of the in-circle test below, as a share of the sum of the absolute values of all
#: products: (3 + 16 eps) eps, and more than what eleven roundings one after the other may add up to.
_TURN_BOUND, _CIRCLE_BOUND = 3.3306690738754716e-16, 2.0e-15


@kernel
def list_turned(mesh, desk, due):
    """List triangles beside edges that are due, by one of their half-edges, if they have turned over."""
    turned = 0
    for k in range(due):
        h = desk.due[k]
        if not is_upright(mesh, h):
            desk.turned[turned] = h
            turned += 1
        if not is_upright(mesh, mesh.twin[h]):
            desk.turned[turned] = mesh.twin[h]
            turned += 1
    return turned


@kernel
def look_at_due(mesh, desk, due, travel, report):
    """Test the edges that are due: flip those that fail, and issue new certificates for the others."""
    report[LOOKED_AT] += due
    for k in range(due):
        h = desk.due[k]
        # By now it may be another edge; flips have looked at that one, and the one that was here, already.
        if fails(mesh, h):
            report[FAILED] += 1
            if not push(mesh, h) or flip_until_delaunay(mesh) == STUCK:
                return STUCK
        elif not mesh.is_touched[h // 3]:
            issue(mesh, h, travel)
    return DONE


@kernel
def look_at_all(mesh, desk, report):
    """List the triangles that have turned over, and put the edges of the others that fail onto the stack.

    Returns how many have turned over, or -1 if there is no room. What a triangle needs for its own orientation and for
    the tests of its three edges is computed once; where rounding could matter, the exact predicates decide.
    """
    x, y, corner = mesh.x, mesh.y, mesh.corner
    turned = 0
    for t in range(mesh.free.size):
        first = np.uint64(3 * t)
        if corner[first] < 0:
            continue
        c, a, b = np.uint64(corner[first]), np.uint64(corner[first + 1]), np.uint64(corner[first + 2])
        cx, cy = x[c], y[c]
        ax, ay, bx, by = x[a] - cx, y[a] - cy, x[b] - cx, y[b] - cy
        left, right = ax * by, ay * bx
        area, areas = left - right, abs(left) + abs(right)
        if area <= _TURN_BOUND * areas and not is_upright(mesh, np.int32(3 * t)):
            desk.turned[turned] = 3 * t
            turned += 1
            continue
        a2, b2 = ax * ax + ay * ay, bx * bx + by * by
        along_x, along_y = a2 * by - b2 * ay, b2 * ax - a2 * bx
        most_x, most_y = a2 * abs(by) + b2 * abs(ay), b2 * abs(ax) + a2 * abs(bx)
        for side in range(3):
            h = first + np.uint64(side)
            g = mesh.twin[h]
            if np.int64(h) >= g:
                continue
            report[LOOKED_AT] += 1
            d = np.uint64(corner[np.uint64(g)])
            dx, dy = x[d] - cx, y[d] - cy
            d2 = dx * dx + dy * dy
            # The determinant of the in-circle test, seen from c; above zero if d is inside.
            inside = dx * along_x + dy * along_y - d2 * area
            bound = _CIRCLE_BOUND * (abs(dx) * most_x + abs(dy) * most_y + d2 * areas)
            if inside < -bound or mesh.constrained[h]:
                continue
            if inside > bound or in_circle(x[c], y[c], x[a], y[a], x[b], y[b], x[d], y[d]) > 0:
                report[FAILED] += 1
                if not push(mesh, np.int32(h)):
                    return -1
    return turned


@kernel
def look_around(mesh, v, report):
    """Test the edges of all triangles around a vertex and flip those that fail."""
    first = mesh.star[v]
    h = first
    failed = 0
    while True:
        # The edge opposite to the vertex, and one of the two that it has in this triangle.
        for edge in (h, after(h)):
            report[LOOKED_AT] += 1
            if fails(mesh, edge):
                failed += 1
                if not push(mesh, edge):
                    return STUCK
        h = next_around(mesh, h)
        if h == first or h < 0:
            break
    report[FAILED] += failed
    return flip_until_delaunay(mesh) if failed > 0 else DONE
