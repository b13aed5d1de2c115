"""Constrained edges: force an edge into the mesh, and let it go again."""

from __future__ import annotations

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel
from tropel.environment.kinetic.mesh import (
    DONE,
    STUCK,
    TOUCHED,
    after,
    before,
    find_edge,
    flip,
    flip_until_delaunay,
    is_convex,
    next_around,
    push,
    touch,
    turn,
)

#: Besides DONE and STUCK: another constrained edge, or a vertex, is exactly in the way.
CROSSES, MEETS = 2, 3


@inlined_kernel
def set_constrained(mesh, h, value):
    mesh.constrained[h] = mesh.constrained[mesh.twin[h]] = value
    touch(mesh, h // 3)
    touch(mesh, mesh.twin[h] // 3)


@kernel
def _first_crossing(mesh, a, b):
    """The edge opposite to a that the way to b crosses, and the vertex exactly on that way, if any (else -1)."""
    first = mesh.star[a]
    h = first
    while True:
        p, q = mesh.corner[after(h)], mesh.corner[before(h)]
        right, left = turn(mesh, a, b, p), turn(mesh, a, b, q)
        if right == 0 and _is_ahead(mesh, a, b, p):
            return np.int32(-1), p
        if left == 0 and _is_ahead(mesh, a, b, q):
            return np.int32(-1), q
        if right < 0 and left > 0:
            return h, np.int32(-1)
        h = next_around(mesh, h)
        if h == first or h < 0:
            return np.int32(-1), np.int32(-1)


@inlined_kernel
def _is_ahead(mesh, a, b, p):
    """Whether p, on the line through a and b, is on the side of b."""
    x, y = mesh.x, mesh.y
    # Exact: the sign of a difference is.
    if x[a] != x[b]:
        return (x[p] > x[a]) == (x[b] > x[a]) and x[p] != x[a]
    return (y[p] > y[a]) == (y[b] > y[a]) and y[p] != y[a]


@kernel
def force_edge(mesh, a, b, crossing):
    """Make a-b a constrained edge; returns DONE, CROSSES, MEETS or STUCK.

    Flips the edges that cross it, those that can be first (Sloan 1993), and then makes the new ones Delaunay.
    """
    h = find_edge(mesh, a, b)
    if h >= 0:
        set_constrained(mesh, h, 1)
        return DONE
    h, met = _first_crossing(mesh, a, b)
    if met >= 0:
        return MEETS
    if h < 0:
        return STUCK
    # All edges on the way, each by its vertices, since flips move half-edges.
    count = 0
    while True:
        if mesh.constrained[h]:
            return CROSSES
        if 2 * count + 2 > crossing.size:
            return STUCK
        crossing[2 * count], crossing[2 * count + 1] = mesh.corner[after(h)], mesh.corner[before(h)]
        count += 1
        g = mesh.twin[h]
        tip = mesh.corner[g]
        if tip == b:
            break
        side = turn(mesh, a, b, tip)
        if side == 0:
            return MEETS
        # The triangle beyond has the corners tip, q, p; go on across the edge that has its ends on two sides.
        h = after(g) if side > 0 else before(g)
    return _flip_away(mesh, a, b, crossing, count)


@kernel
def _flip_away(mesh, a, b, crossing, count):
    first = 0
    size = crossing.size // 2
    bound = 64 + 8 * count * count
    for _ in range(bound):
        if count == 0:
            break
        p, q = crossing[2 * first], crossing[2 * first + 1]
        first = (first + 1) % size
        count -= 1
        h = find_edge(mesh, p, q)
        if h < 0:
            return STUCK
        again = not is_convex(mesh, h)
        if not again:
            c, d = mesh.corner[h], mesh.corner[mesh.twin[h]]
            flip(mesh, h)
            p, q = c, d
            again = c != a and c != b and d != a and d != b and turn(mesh, a, b, c) * turn(mesh, a, b, d) < 0
        if again:
            last = (first + count) % size
            crossing[2 * last], crossing[2 * last + 1] = p, q
            count += 1
    if count > 0:
        return STUCK
    h = find_edge(mesh, a, b)
    if h < 0:
        return STUCK
    set_constrained(mesh, h, 1)
    for k in range(mesh.counts[TOUCHED]):
        t = mesh.touched[k]
        if not (push(mesh, 3 * t) and push(mesh, 3 * t + 1) and push(mesh, 3 * t + 2)):
            return STUCK
    return flip_until_delaunay(mesh)


@kernel
def release_edge(mesh, a, b):
    """Make a constrained edge an ordinary one; returns DONE or STUCK."""
    h = find_edge(mesh, a, b)
    if h < 0 or not mesh.constrained[h]:
        return STUCK
    set_constrained(mesh, h, 0)
    return flip_until_delaunay(mesh) if push(mesh, h) else STUCK
