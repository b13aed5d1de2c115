"""Certificates: how far the vertices around an edge may move before the edge must be looked at again.

An edge a-b between the triangles a, b, c and b, a, d stays as it is while some circle has a and b inside and c and d
outside. The widest annulus with a and b on its inner circle and c and d on its outer one tells how far all four may
move: half of its width. As long as the certificates of all edges hold, no triangle can turn over either: a corner that
reaches the opposite edge would be inside the circle of that edge. A constrained edge is not tested against circles; its
certificate is half of the distance to the opposite corners.

Nobody keeps a clock for each edge. `travel[k]` is the sum over all steps of the longest move among the vertices of the
speed classes up to k, and an edge is due when the travel of its class, the highest of its four vertices, exceeds what
it was at the time of issue plus the tolerance. So resting vertices do not pay for moving ones, nor walkers for runners.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.walls import nearest_on_segment
from tropel.environment.kinetic.mesh import TOUCHED, after, before

#: Classes of speed: at rest, slow, fast, and anything above.
PACES = 4
#: The middle of an annulus is at most this many half lengths of the edge away from it; beyond, rounding takes over.
_FARTHEST = 1e3
#: What rounding may take off a tolerance: a share of it, and a share of the numbers it is computed from.
_SHARE, _ROUNDING = 1.0 - 1e-9, 1e-14


@inlined_kernel
def half_annulus(cx, cy, ax, ay, bx, by, dx, dy):
    """Half the width of the annulus with a and b on the inner circle and c and d outside."""
    ux, uy = 0.5 * (bx - ax), 0.5 * (by - ay)
    mx, my = ax + ux, ay + uy
    half2 = ux * ux + uy * uy
    cx, cy, dx, dy = cx - mx, cy - my, dx - mx, dy - my
    c2, d2 = cx * cx + cy * cy, dx * dx + dy * dy
    # Centres are on the bisector of a and b, at m + s (-uy, ux), on the side of c if s > 0.
    c_high, d_high = cy * ux - cx * uy, dy * ux - dx * uy
    apart = c_high - d_high
    if apart <= 0.0:
        return 0.0
    s = min(max((c2 - d2) / (2.0 * apart), -_FARTHEST), _FARTHEST)
    # |c - centre|² - |a - centre|², without the squares that cancel, and the same for d; equal unless s was limited.
    c_slope, d_slope = 2.0 * s * c_high, 2.0 * s * d_high
    c_more = c2 - half2 - c_slope - _ROUNDING * (c2 + half2 + abs(c_slope))
    d_more = d2 - half2 - d_slope - _ROUNDING * (d2 + half2 + abs(d_slope))
    more = min(c_more, d_more)
    inner2 = half2 + s * s * half2
    return 0.5 * more / (math.sqrt(max(inner2 + more, 0.0)) + math.sqrt(inner2))


@inlined_kernel
def _half_distance(mesh, q, a, b):
    qx, qy = mesh.x[q], mesh.y[q]
    px, py = nearest_on_segment(qx, qy, mesh.x[a], mesh.y[a], mesh.x[b], mesh.y[b])
    return 0.5 * math.sqrt((qx - px) ** 2 + (qy - py) ** 2)


@inlined_kernel
def issue_for(mesh, h, g, tolerance, travel):
    """Issue the certificate of an edge with the half-edges h and g: its vertices may move this far [m]."""
    pace = max(
        max(mesh.pace[mesh.corner[h]], mesh.pace[mesh.corner[g]]),
        max(mesh.pace[mesh.corner[after(h)]], mesh.pace[mesh.corner[before(h)]]),
    )
    travelled = travel[pace]
    low = min(h, g)
    mesh.due[max(h, g)] = np.inf
    # Vertices at rest that begin to move get another class, and make their edges due.
    mesh.due[low] = travelled + max(_SHARE * tolerance - 4e-16 * travelled, 0.0) if pace > 0 else np.inf
    mesh.due_pace[low] = pace


@inlined_kernel
def issue(mesh, h, travel):
    """Issue the certificate of an edge."""
    g = mesh.twin[h]
    if g < 0:
        mesh.due[h] = np.inf
        return
    c, a, b, d = mesh.corner[h], mesh.corner[after(h)], mesh.corner[before(h)], mesh.corner[g]
    if mesh.constrained[h]:
        tolerance = min(_half_distance(mesh, c, a, b), _half_distance(mesh, d, a, b))
    else:
        x, y = mesh.x, mesh.y
        tolerance = half_annulus(x[c], y[c], x[a], y[a], x[b], y[b], x[d], y[d])
    issue_for(mesh, h, g, tolerance, travel)


@kernel
def issue_touched(mesh, travel):
    """Issue the certificates of all edges of triangles that have changed."""
    for k in range(mesh.counts[TOUCHED]):
        t = mesh.touched[k]
        mesh.is_touched[t] = 0
        if mesh.corner[3 * t] >= 0:
            for h in range(3 * t, 3 * t + 3):
                g = mesh.twin[h]
                # An edge between two triangles that have changed is issued with the second.
                if g < 0 or not mesh.is_touched[g // 3]:
                    issue(mesh, np.int32(h), travel)
    mesh.counts[TOUCHED] = 0


@kernel
def expire_touched(mesh):
    """The certificates of all edges of triangles that have changed are due."""
    for k in range(mesh.counts[TOUCHED]):
        t = mesh.touched[k]
        mesh.is_touched[t] = 0
        if mesh.corner[3 * t] >= 0:
            for h in range(3 * t, 3 * t + 3):
                g = mesh.twin[h]
                mesh.due[max(h, g)] = np.inf
                if g >= 0:
                    mesh.due[min(h, g)] = -1.0
    mesh.counts[TOUCHED] = 0


@kernel
def forget_touched(mesh):
    """No triangle counts as changed any more."""
    for k in range(mesh.counts[TOUCHED]):
        mesh.is_touched[mesh.touched[k]] = 0
    mesh.counts[TOUCHED] = 0


@kernel
def expire_all(mesh):
    """All certificates are due."""
    for h in range(mesh.due.size):
        mesh.due[h] = -1.0 if mesh.corner[h] >= 0 and h < mesh.twin[h] else np.inf


@kernel
def list_due(mesh, travel, found):
    """List the edges that are due, one half-edge each; returns how many."""
    count = 0
    farthest = travel[travel.size - 1]
    for h in range(mesh.due.size):
        if mesh.due[h] < farthest:
            found[count] = h
            count += mesh.due[h] < travel[mesh.due_pace[h]]
    return count
