"""A triangulation of moving points: its arrays, and the operations that every change is made of.

A triangle t has the half-edges 3t, 3t + 1 and 3t + 2, counter-clockwise. A half-edge stands for a corner of its
triangle and for the edge opposite to that corner:

    corner[h]           the vertex; the edge runs from corner[after(h)] to corner[before(h)]
    twin[h]             the half-edge of the same edge in the next triangle; -1 at the outer border
    star[v]             some half-edge with the corner v; -1 for vertices that are not part of the mesh

The first four vertices are ghosts: the corners of a square far around everything else, so that there is no hull to take
care of. An edge may be constrained: it is part of a wall and stays.

Whoever changes triangles notes them as touched; their certificates are issued again at the end (`certificates.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.predicates import in_circle, orientation
from tropel.environment.kinetic.fetching import fetch

GHOSTS = 4

#: Entries of `Mesh.counts`.
FREE, TOUCHED, STACKED, FLIPS, COUNTS = 0, 1, 2, 3, 4
_ZERO, _TWO, _THREE = np.uint32(0), np.uint32(2), np.uint32(3)

#: What operations return when they cannot be done; the caller builds the mesh anew.
DONE, STUCK = 0, 1

#: How many edges ahead memory is fetched, in each of three stages.
_FETCHED = 4


class Mesh(NamedTuple):
    """The arrays, with room for more vertices and triangles; T triangles have 3 T half-edges."""

    x: NDArray[np.float64]  #: (V,): where the vertex is in the mesh [m]
    y: NDArray[np.float64]
    star: NDArray[np.int32]  #: (V,)
    pace: NDArray[np.uint8]  #: (V,): class of speed
    corner: NDArray[np.int32]  #: (3 T,); -1 in free triangles
    twin: NDArray[np.int32]  #: (3 T,)
    constrained: NDArray[np.uint8]  #: (3 T,)
    due: NDArray[np.float64]  #: (3 T,): the certificate holds until vertices of its class have travelled this far [m];
    #: only one half-edge of each edge has it, the other one infinity
    due_pace: NDArray[np.uint8]  #: (3 T,): the class
    free: NDArray[np.int32]  #: (T,): triangles that are not in use, `counts[FREE]` of them
    touched: NDArray[np.int32]  #: (T,): triangles whose certificates must be issued again
    is_touched: NDArray[np.uint8]  #: (T,)
    stack: NDArray[np.int32]  #: half-edges to look at
    counts: NDArray[np.int64]


def new_mesh(vertices: int, middle: tuple[float, float], away: float) -> Mesh:
    """A mesh with room for this many vertices, of which only the ghosts are there, `away` [m] from the middle."""
    triangles = 2 * vertices + 8
    mesh = Mesh(
        x=np.zeros(vertices + GHOSTS),
        y=np.zeros(vertices + GHOSTS),
        star=np.full(vertices + GHOSTS, -1, dtype=np.int32),
        pace=np.zeros(vertices + GHOSTS, dtype=np.uint8),
        corner=np.full(3 * triangles, -1, dtype=np.int32),
        twin=np.full(3 * triangles, -1, dtype=np.int32),
        constrained=np.zeros(3 * triangles, dtype=np.uint8),
        due=np.full(3 * triangles, np.inf),
        due_pace=np.zeros(3 * triangles, dtype=np.uint8),
        free=np.arange(triangles, dtype=np.int32)[::-1].copy(),
        touched=np.zeros(triangles, dtype=np.int32),
        is_touched=np.zeros(triangles, dtype=np.uint8),
        stack=np.zeros(16 * triangles + 1024, dtype=np.int32),
        counts=np.zeros(COUNTS, dtype=np.int64),
    )
    mesh.x[:GHOSTS] = middle[0] + away * np.array([-1.0, 1.0, 1.0, -1.0])
    mesh.y[:GHOSTS] = middle[1] + away * np.array([-1.0, -1.0, 1.0, 1.0])
    mesh.counts[FREE] = triangles - 2
    mesh.corner[:6] = 0, 1, 2, 2, 3, 0
    mesh.twin[:6] = -1, 4, -1, -1, 1, -1
    mesh.star[:GHOSTS] = 0, 1, 2, 4
    return mesh


@inlined_kernel
def after(h):
    """The next half-edge of the triangle, counter-clockwise."""
    # Remainders of numbers without a sign take fewer instructions.
    return h + 1 if np.uint32(h) % _THREE != _TWO else h - 2


@inlined_kernel
def before(h):
    return h - 1 if np.uint32(h) % _THREE != _ZERO else h + 2


@inlined_kernel
def turn(mesh, a, b, c):
    """The orientation of three vertices."""
    return orientation(mesh.x[a], mesh.y[a], mesh.x[b], mesh.y[b], mesh.x[c], mesh.y[c])


@inlined_kernel
def is_upright(mesh, h):
    """Whether a triangle is strictly counter-clockwise."""
    return turn(mesh, mesh.corner[h], mesh.corner[after(h)], mesh.corner[before(h)]) > 0


@inlined_kernel
def next_around(mesh, h):
    """The next half-edge with the same corner, counter-clockwise around it; -1 beyond the outer border."""
    across = mesh.twin[after(h)]
    return after(across) if across >= 0 else np.int32(-1)


@kernel
def first_around(mesh, v):
    """A half-edge with the corner v, from which `next_around` gets to all others, also at the outer border."""
    h = mesh.star[v]
    if v < GHOSTS:
        across = mesh.twin[before(h)]
        while across >= 0:
            h = before(across)
            across = mesh.twin[before(h)]
    return h


@inlined_kernel
def push(mesh, h):
    """Remember a half-edge to look at; returns false if there is no room."""
    size = mesh.counts[STACKED]
    if size == mesh.stack.size:
        return False
    mesh.stack[size] = h
    mesh.counts[STACKED] = size + 1
    return True


@inlined_kernel
def touch(mesh, t):
    """Note a triangle that has changed."""
    if not mesh.is_touched[t]:
        mesh.is_touched[t] = 1
        mesh.touched[mesh.counts[TOUCHED]] = t
        mesh.counts[TOUCHED] += 1


@inlined_kernel
def link(mesh, h, g):
    """Make two half-edges the two sides of an edge; g may be -1."""
    mesh.twin[h] = g
    if g >= 0:
        mesh.twin[g] = h


@inlined_kernel
def new_triangle(mesh, a, b, c):
    """Its first half-edge, with the corner a; edges are not linked yet. There is always room."""
    mesh.counts[FREE] -= 1
    t = mesh.free[mesh.counts[FREE]]
    h = 3 * t
    mesh.corner[h], mesh.corner[h + 1], mesh.corner[h + 2] = a, b, c
    mesh.star[a], mesh.star[b], mesh.star[c] = h, h + 1, h + 2
    for k in range(h, h + 3):
        mesh.constrained[k] = 0
        mesh.due[k] = np.inf
    touch(mesh, t)
    return h


@inlined_kernel
def drop_triangle(mesh, t):
    for k in range(3 * t, 3 * t + 3):
        mesh.corner[k] = -1
        mesh.due[k] = np.inf
    mesh.free[mesh.counts[FREE]] = t
    mesh.counts[FREE] += 1


@inlined_kernel
def is_convex(mesh, h):
    """Whether the two triangles at an edge form a strictly convex quadrilateral, so that the edge can be flipped."""
    g = mesh.twin[h]
    c, a, b, d = mesh.corner[h], mesh.corner[after(h)], mesh.corner[before(h)], mesh.corner[g]
    return turn(mesh, c, a, d) > 0 and turn(mesh, d, b, c) > 0


@inlined_kernel
def flip(mesh, h):
    """Replace the edge a-b by the one between the opposite corners c and d.

    Afterwards h has the edge a-d, twin[h] before has b-c, and the half-edge after h has the new edge.
    """
    corner, twin = mesh.corner, mesh.twin
    g = twin[h]
    h_after, h_before, g_after, g_before = after(h), before(h), after(g), before(g)
    c, a, b, d = corner[h], corner[h_after], corner[h_before], corner[g]
    beyond_ad, beyond_bc = twin[g_after], twin[h_after]
    wall_ad, wall_bc = mesh.constrained[g_after], mesh.constrained[h_after]
    corner[h_before], corner[g_before] = d, c
    link(mesh, h, beyond_ad)
    link(mesh, g, beyond_bc)
    link(mesh, h_after, g_after)
    mesh.constrained[h], mesh.constrained[g] = wall_ad, wall_bc
    mesh.constrained[h_after] = mesh.constrained[g_after] = 0
    mesh.star[a], mesh.star[b], mesh.star[c], mesh.star[d] = h_after, g_after, h, g
    touch(mesh, h // 3)
    touch(mesh, g // 3)
    mesh.counts[FLIPS] += 1


@inlined_kernel
def fails(mesh, h):
    """Whether an edge that may be flipped fails the in-circle test, exactly."""
    g = mesh.twin[h]
    if g < 0 or mesh.constrained[h]:
        return False
    x, y = mesh.x, mesh.y
    c, a, b, d = mesh.corner[h], mesh.corner[after(h)], mesh.corner[before(h)], mesh.corner[g]
    return in_circle(x[c], y[c], x[a], y[a], x[b], y[b], x[d], y[d]) > 0


@inlined_kernel
def _fetch_below(mesh, top):
    """Begin to fetch what the tests of edges farther down in the stack will read."""
    x, y, corner, twin, stack = mesh.x, mesh.y, mesh.corner, mesh.twin, mesh.stack
    if top >= 3 * _FETCHED:
        h = stack[top - 3 * _FETCHED]
        fetch(corner, h)
        fetch(twin, h)
        h = stack[top - 2 * _FETCHED]
        g = twin[h]
        fetch(corner, g)
        fetch(twin, g)
        for v in (corner[h], corner[after(h)], corner[before(h)]):
            fetch(x, v)
            fetch(y, v)
        v = corner[twin[stack[top - _FETCHED]]]
        fetch(x, v)
        fetch(y, v)


@kernel
def flip_until_delaunay(mesh):
    """Empty the stack: flip the edges on it that fail, and those around them; returns STUCK if that takes too long."""
    most = 64 * mesh.free.size + 1024
    lowest = mesh.counts[STACKED]
    while mesh.counts[STACKED] > 0:
        mesh.counts[STACKED] -= 1
        top = mesh.counts[STACKED]
        if top < lowest:
            lowest = top
            _fetch_below(mesh, top)
        h = mesh.stack[top]
        if mesh.corner[h] < 0 or not fails(mesh, h):
            continue
        g = mesh.twin[h]
        flip(mesh, h)
        most -= 1
        if most == 0:
            mesh.counts[STACKED] = 0
            return STUCK
        room = push(mesh, h) and push(mesh, before(h)) and push(mesh, g) and push(mesh, before(g))
        if not room:
            mesh.counts[STACKED] = 0
            return STUCK
    return DONE


@kernel
def find_edge(mesh, a, b):
    """The half-edge of the edge from a to b, seen from the triangle on its left; -1 if there is no such edge."""
    first = mesh.star[a]
    h = first
    # All corners a, counter-clockwise: no vertex of interest is on the outer border.
    for _ in range(mesh.corner.size):
        if mesh.corner[after(h)] == b:
            return before(h)
        h = next_around(mesh, h)
        if h == first or h < 0:
            break
    return np.int32(-1)
