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
#: The middle of an annulus is at most this many lengths of the edge away from it; beyond, rounding takes over.
_FARTHEST = 1e3
#: What rounding may take off a tolerance: a share of it, and a share of the numbers it is computed from.
_SHARE, _ROUNDING = 1.0 - 1e-9, 1e-14


@inlined_kernel
def _half_annulus(mesh, c, a, b, d):
    """Half the width of the annulus with a and b on the inner circle and c and d outside."""
    x, y = mesh.x, mesh.y
    ux, uy = 0.5 * (x[b] - x[a]), 0.5 * (y[b] - y[a])
    mx, my = x[a] + ux, y[a] + uy
    half2 = ux * ux + uy * uy
    half = math.sqrt(half2)
    # Centres are on the bisector of a and b, at m + s n; n points to the side of c.
    nx, ny = -uy / half, ux / half
    cx, cy, dx, dy = x[c] - mx, y[c] - my, x[d] - mx, y[d] - my
    c2, d2 = cx * cx + cy * cy, dx * dx + dy * dy
    c_high, d_high = cx * nx + cy * ny, dx * nx + dy * ny
    apart = c_high - d_high
    if apart <= 0.0:
        return 0.0
    most = _FARTHEST * half
    s = min(max((c2 - d2) / (2.0 * apart), -most), most)
    inner = math.sqrt(half2 + s * s)
    width = math.inf
    for k in range(2):
        q2, high = (c2, c_high) if k == 0 else (d2, d_high)
        # |q - centre|² - |a - centre|², without the squares that cancel.
        more = q2 - half2 - 2.0 * s * high
        more -= _ROUNDING * (q2 + half2 + abs(2.0 * s * high))
        width = min(width, more / (math.sqrt(max(inner * inner + more, 0.0)) + inner))
    return 0.5 * width


@inlined_kernel
def _half_distance(mesh, q, a, b):
    qx, qy = mesh.x[q], mesh.y[q]
    px, py = nearest_on_segment(qx, qy, mesh.x[a], mesh.y[a], mesh.x[b], mesh.y[b])
    return 0.5 * math.sqrt((qx - px) ** 2 + (qy - py) ** 2)


@inlined_kernel
def issue(mesh, h, travel):
    """Issue the certificate of an edge, on both sides."""
    g = mesh.twin[h]
    if g < 0:
        mesh.due[h] = np.inf
        return
    c, a, b, d = mesh.corner[h], mesh.corner[after(h)], mesh.corner[before(h)], mesh.corner[g]
    if mesh.constrained[h]:
        tolerance = min(_half_distance(mesh, c, a, b), _half_distance(mesh, d, a, b))
    else:
        tolerance = _half_annulus(mesh, c, a, b, d)
    pace = max(max(mesh.pace[a], mesh.pace[b]), max(mesh.pace[c], mesh.pace[d]))
    travelled = travel[pace]
    due = travelled + max(_SHARE * tolerance - 4e-16 * travelled, 0.0)
    mesh.due[h] = mesh.due[g] = due
    mesh.due_pace[h] = mesh.due_pace[g] = pace


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
def list_due(mesh, travel, found):
    """List the edges that are due, one half-edge each; returns how many."""
    count = 0
    for h in range(mesh.due.size):
        if mesh.due[h] < travel[mesh.due_pace[h]] and h < mesh.twin[h]:
            found[count] = h
            count += 1
    return count
