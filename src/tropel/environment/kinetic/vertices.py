"""Vertices come and go: find the triangle around a place, insert a vertex, remove one."""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.predicates import orientation
from tropel.environment.kinetic.mesh import (
    DONE,
    STUCK,
    after,
    before,
    drop_triangle,
    flip_until_delaunay,
    link,
    new_triangle,
    next_around,
    push,
    turn,
)

#: Where a place lies in the triangle that was found for it.
INSIDE, ON_EDGE, ON_VERTEX, NOWHERE = 0, 1, 2, 3
#: Vertices that coincide with another one, or with a wall, are moved aside by this much [m], by more in worlds where
#: that would be lost to rounding, and by more with every attempt.
_ASIDE, _WIDE = 1e-8, 1e5
_ATTEMPTS = 40
#: Rooms for the border of the hole that a removed vertex leaves.
MOST_AROUND = 4096


@inlined_kernel
def _step_over(number):
    """The next number of a simple random sequence, which only has to keep walks from running in circles."""
    return (number * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)) & np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def locate(mesh, x, y, start):
    """A half-edge and where the place lies: INSIDE its triangle, ON_EDGE of the half-edge, or ON_VERTEX, its corner.

    Walks from the triangle of the half-edge `start`, each time across an edge that has the place on its other side.
    """
    h = 3 * (start // 3)
    number = np.uint64(start + 1)
    for _ in range(mesh.corner.size + 8):
        number = _step_over(number)
        first = np.int64((number >> np.uint64(33)) % np.uint64(3))
        zeros = 0
        on = h
        crossed = False
        for step in range(3):
            k = h + (first + step) % 3
            a, b = mesh.corner[after(k)], mesh.corner[before(k)]
            side = orientation(mesh.x[a], mesh.y[a], mesh.x[b], mesh.y[b], x, y)
            if side < 0:
                if mesh.twin[k] < 0:
                    return np.int32(h), NOWHERE
                h = 3 * (mesh.twin[k] // 3)
                crossed = True
                break
            if side == 0:
                # On two edges at once: on the corner that both have, opposite to neither.
                on = k if zeros == 0 else h + (3 - (on - h) - (k - h))
                zeros += 1
        if not crossed:
            return np.int32(on), zeros
    return np.int32(h), NOWHERE


@kernel
def _split_triangle(mesh, h, v):
    """Put a vertex inside a triangle and its three edges on the stack."""
    h_after, h_before = after(h), before(h)
    a, b, c = mesh.corner[h], mesh.corner[h_after], mesh.corner[h_before]
    beyond = mesh.twin[h], mesh.twin[h_after], mesh.twin[h_before]
    walls = mesh.constrained[h], mesh.constrained[h_after], mesh.constrained[h_before]
    drop_triangle(mesh, h // 3)
    over_a = new_triangle(mesh, v, b, c)
    over_b = new_triangle(mesh, v, c, a)
    over_c = new_triangle(mesh, v, a, b)
    link(mesh, over_a, beyond[0])
    link(mesh, over_b, beyond[1])
    link(mesh, over_c, beyond[2])
    mesh.constrained[over_a], mesh.constrained[over_b], mesh.constrained[over_c] = walls
    # In a triangle v, p, q the edge v-q is opposite to p.
    link(mesh, over_a + 1, over_b + 2)
    link(mesh, over_b + 1, over_c + 2)
    link(mesh, over_c + 1, over_a + 2)
    return push(mesh, over_a) and push(mesh, over_b) and push(mesh, over_c)


@kernel
def _split_edge(mesh, h, v):
    """Put a vertex on an edge that is not constrained, and the four edges around it on the stack."""
    g = mesh.twin[h]
    h_after, h_before, g_after, g_before = after(h), before(h), after(g), before(g)
    c, a, b, d = mesh.corner[h], mesh.corner[h_after], mesh.corner[h_before], mesh.corner[g]
    beyond = mesh.twin[h_after], mesh.twin[h_before], mesh.twin[g_after], mesh.twin[g_before]
    walls = (
        mesh.constrained[h_after],
        mesh.constrained[h_before],
        mesh.constrained[g_after],
        mesh.constrained[g_before],
    )
    drop_triangle(mesh, h // 3)
    drop_triangle(mesh, g // 3)
    over_bc = new_triangle(mesh, v, b, c)
    over_ca = new_triangle(mesh, v, c, a)
    over_ad = new_triangle(mesh, v, a, d)
    over_db = new_triangle(mesh, v, d, b)
    link(mesh, over_bc, beyond[0])
    link(mesh, over_ca, beyond[1])
    link(mesh, over_ad, beyond[2])
    link(mesh, over_db, beyond[3])
    mesh.constrained[over_bc], mesh.constrained[over_ca], mesh.constrained[over_ad], mesh.constrained[over_db] = walls
    link(mesh, over_bc + 1, over_ca + 2)
    link(mesh, over_ca + 1, over_ad + 2)
    link(mesh, over_ad + 1, over_db + 2)
    link(mesh, over_db + 1, over_bc + 2)
    return push(mesh, over_bc) and push(mesh, over_ca) and push(mesh, over_ad) and push(mesh, over_db)


@inlined_kernel
def _aside(v, attempt, x, y):
    """A place close by, in a direction of the vertex's own."""
    angle = 2.399963229728653 * (v + 7 * attempt)
    away = _ASIDE * (attempt + 1) * max(1.0, max(abs(x), abs(y)) / _WIDE)
    return x + away * math.cos(angle), y + away * math.sin(angle)


def most_aside(farthest: float) -> float:
    """How far a vertex may be from its place at most [m], in a world with coordinates up to `farthest`."""
    return _ASIDE * _ATTEMPTS * max(1.0, farthest / _WIDE)


@kernel
def insert(mesh, v, x, y, start):
    """Insert a vertex at a place, or very close to it if it would be on another vertex or on a constrained edge.

    The edges around it are put on the stack. Returns STUCK if the place is outside of the mesh.
    """
    px, py = x, y
    for attempt in range(_ATTEMPTS):
        h, where = locate(mesh, px, py, start)
        if where == NOWHERE:
            return STUCK
        if where == INSIDE or (where == ON_EDGE and not mesh.constrained[h] and mesh.twin[h] >= 0):
            mesh.x[v], mesh.y[v] = px, py
            room = _split_triangle(mesh, h, v) if where == INSIDE else _split_edge(mesh, h, v)
            return DONE if room else STUCK
        start = h
        px, py = _aside(v, attempt, x, y)
    return STUCK


@inlined_kernel
def _is_ear(mesh, border, size, k):
    """Whether the corner k of a polygon of vertices can be cut off: convex, and no other corner in the way."""
    p, q, r = border[(k + size - 1) % size], border[k], border[(k + 1) % size]
    if turn(mesh, p, q, r) <= 0:
        return False
    for m in range(size):
        v = border[m]
        if (
            v != p
            and v != q
            and v != r
            and turn(mesh, p, q, v) >= 0
            and turn(mesh, q, r, v) >= 0
            and turn(mesh, r, p, v) >= 0
        ):
            return False
    return True


@kernel
def remove(mesh, v, border, outside, walls):
    """Take a vertex without constrained edges out of the mesh, and fill the hole.

    `border`, `outside` and `walls` are scratch memory for the vertices around it, the half-edges beyond the hole and
    whether its edges are constrained. All edges of the hole are put on the stack.
    """
    size = 0
    first = mesh.star[v]
    h = first
    while True:
        if size == border.size:
            return STUCK
        border[size], outside[size], walls[size] = mesh.corner[after(h)], mesh.twin[h], mesh.constrained[h]
        size += 1
        h = next_around(mesh, h)
        if h == first:
            break
        if h < 0:
            return STUCK
    for _ in range(size):
        following = next_around(mesh, h)
        drop_triangle(mesh, h // 3)
        h = following
    mesh.star[v] = -1
    # Edge k runs from border[k] to border[k + 1]. Cut off ears until a triangle is left.
    room = True
    while size > 3:
        ear = -1
        for k in range(size):
            if _is_ear(mesh, border, size, k):
                ear = k
                break
        if ear < 0:
            return STUCK
        last = (ear + size - 1) % size
        t = new_triangle(mesh, border[last], border[ear], border[(ear + 1) % size])
        _close(mesh, t + 2, outside[last], walls[last])
        _close(mesh, t, outside[ear], walls[ear])
        room = room and push(mesh, t) and push(mesh, t + 1) and push(mesh, t + 2)
        # The new edge replaces both.
        outside[last], walls[last] = t + 1, 0
        for k in range(ear, size - 1):
            border[k], outside[k], walls[k] = border[k + 1], outside[k + 1], walls[k + 1]
        size -= 1
    if turn(mesh, border[0], border[1], border[2]) <= 0:
        return STUCK
    t = new_triangle(mesh, border[0], border[1], border[2])
    _close(mesh, t + 2, outside[0], walls[0])
    _close(mesh, t, outside[1], walls[1])
    _close(mesh, t + 1, outside[2], walls[2])
    room = room and push(mesh, t) and push(mesh, t + 1) and push(mesh, t + 2)
    return DONE if room else STUCK


@inlined_kernel
def _close(mesh, h, beyond, wall):
    link(mesh, h, beyond)
    mesh.constrained[h] = wall


@kernel
def insert_all(mesh, vertices, x, y):
    """Insert vertices one after the other, each near the one before; makes a Delaunay triangulation."""
    start = mesh.star[0]
    for k in range(vertices.size):
        v = vertices[k]
        if insert(mesh, v, x[v], y[v], start) == STUCK or flip_until_delaunay(mesh) == STUCK:
            return STUCK
        start = mesh.star[v]
    return DONE
