"""Vertices in each other's way: those that would turn triangles over go back, and find another way to where they are.

A vertex that went back moves again after edges that it would cross have been flipped. Vertices that are still in the
way of each other are taken out, all of them, and inserted where they belong. Moving in small parts instead would not
end where paths cross.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel
from tropel.environment.kinetic.fetching import fetch
from tropel.environment.kinetic.mesh import (
    DONE,
    STUCK,
    after,
    before,
    flip,
    flip_until_delaunay,
    is_convex,
    is_upright,
    next_around,
    push,
    touch,
)
from tropel.environment.kinetic.vertices import insert, remove
from tropel.environment.kinetic.walls import force_edge

#: How many edges may be flipped to make way for a vertex before it is reinserted.
_MOST_FLIPS = 8
#: For how many vertices memory is fetched at a time.
FETCHED = 8


@kernel
def fetch_around(mesh, desk, count):
    """Have all in the caches that moving the next few vertices needs: all walks around them wait for memory together.

    The vertices are the first ones in `desk.turned`, which is overwritten.
    """
    x, y, corner, twin, around = mesh.x, mesh.y, mesh.corner, mesh.twin, desk.turned
    for k in range(count):
        v = around[k]
        fetch(desk.true_x, v)
        fetch(desk.true_y, v)
        fetch(x, v)
        fetch(y, v)
        around[k] = mesh.star[v]
    # Most vertices have six neighbours; more of them are fetched when they are needed.
    for _ in range(6):
        for k in range(count):
            h = around[k]
            beside = corner[before(h)]
            fetch(x, beside)
            fetch(y, beside)
            fetch(corner, twin[h])
            around[k] = next_around(mesh, h)
    for _ in range(6):
        for k in range(count):
            h = around[k]
            tip = corner[twin[h]]
            fetch(x, tip)
            fetch(y, tip)
            around[k] = next_around(mesh, h)


@inlined_kernel
def _area_with_back(mesh, desk, h, back):
    """Twice the area of a triangle with one corner back at where it was."""
    a, b, c = mesh.corner[back], mesh.corner[after(back)], mesh.corner[before(back)]
    ux, uy = mesh.x[b] - desk.old_x[a], mesh.y[b] - desk.old_y[a]
    return ux * (mesh.y[c] - desk.old_y[a]) - uy * (mesh.x[c] - desk.old_x[a])


@kernel
def _turn_back(mesh, desk, h, waiting, rechecks):
    """Put corners of a triangle back to where they were until it is upright, first the one that helps most."""
    while not is_upright(mesh, h):
        best, area = np.int32(-1), -math.inf
        for corner in range(3 * (h // 3), 3 * (h // 3) + 3):
            v = mesh.corner[corner]
            if mesh.x[v] != desk.old_x[v] or mesh.y[v] != desk.old_y[v]:
                with_back = _area_with_back(mesh, desk, h, corner)
                if with_back > area or best < 0:
                    best, area = v, with_back
        if best < 0:
            return -1, 0
        mesh.x[best], mesh.y[best] = desk.old_x[best], desk.old_y[best]
        desk.waiting[waiting] = desk.recheck[rechecks] = best
        waiting += 1
        rechecks += 1
    return waiting, rechecks


@inlined_kernel
def _fetch_turned(mesh, desk, k, turned):
    """Begin to fetch what triangles farther down in the list need."""
    if k + 2 * FETCHED < turned:
        fetch(mesh.corner, desk.turned[k + 2 * FETCHED])
        h = desk.turned[k + FETCHED]
        for v in (mesh.corner[h], mesh.corner[after(h)], mesh.corner[before(h)]):
            fetch(mesh.x, v)
            fetch(mesh.y, v)
            fetch(mesh.star, v)
            fetch(desk.old_x, v)
            fetch(desk.old_y, v)


@kernel
def unfold(mesh, desk, turned):
    """Put back vertices of triangles that have turned over until none is.

    Returns how many went back, or -1 if the mesh was no triangulation before.
    """
    waiting = rechecks = 0
    for k in range(turned):
        _fetch_turned(mesh, desk, k, turned)
        waiting, rechecks = _turn_back(mesh, desk, desk.turned[k], waiting, rechecks)
        if waiting < 0:
            return -1
        while rechecks > 0:
            rechecks -= 1
            first = mesh.star[desk.recheck[rechecks]]
            h = first
            while True:
                # A call takes as long as many of these tests: it passes on all arrays.
                if not is_upright(mesh, h):
                    waiting, rechecks = _turn_back(mesh, desk, h, waiting, rechecks)
                    if waiting < 0:
                        return -1
                h = next_around(mesh, h)
                if h == first or h < 0:
                    break
    return waiting


@inlined_kernel
def _turned_around(mesh, v):
    """The half-edge of a vertex in a triangle around it that is not upright, -1 if all are."""
    first = mesh.star[v]
    h = first
    while True:
        if not is_upright(mesh, h):
            return h
        h = next_around(mesh, h)
        if h == first or h < 0:
            return np.int32(-1)


@kernel
def note_around(mesh, v):
    """Touch all triangles around a vertex and put their edges on the stack."""
    first = mesh.star[v]
    h = first
    room = True
    while True:
        touch(mesh, h // 3)
        # The edge opposite to the vertex, and one of the two that it has in this triangle.
        room = room and push(mesh, h) and push(mesh, after(h))
        h = next_around(mesh, h)
        if h == first or h < 0:
            return room


@kernel
def make_way(mesh, desk, v):
    """Move a vertex to where it is now, after flipping the edges that it would cross; returns whether it could move."""
    old_x, old_y = mesh.x[v], mesh.y[v]
    for _ in range(_MOST_FLIPS):
        mesh.x[v], mesh.y[v] = desk.true_x[v], desk.true_y[v]
        h = _turned_around(mesh, v)
        if h < 0:
            return True
        mesh.x[v], mesh.y[v] = old_x, old_y
        if mesh.twin[h] < 0 or mesh.constrained[h] or not is_convex(mesh, h):
            return False
        flip(mesh, h)
    return False


@inlined_kernel
def _fetch_around_waiting(mesh, desk, first, end):
    for k in range(first, end):
        desk.turned[k - first] = desk.waiting[k]
    fetch_around(mesh, desk, end - first)


@kernel
def move_waiting(mesh, desk, waiting):
    """Move those that can, and make the edges around them Delaunay.

    Returns how many cannot move, which are at the front then, or -1 if the mesh is stuck.
    """
    blocked = 0
    for k in range(waiting):
        if k % FETCHED == 0:
            _fetch_around_waiting(mesh, desk, k, min(k + FETCHED, waiting))
        v = desk.waiting[k]
        if not make_way(mesh, desk, v):
            desk.waiting[blocked] = v
            blocked += 1
        if not (note_around(mesh, v) and flip_until_delaunay(mesh) == DONE):
            return -1
    return blocked


@kernel
def cut_walls(mesh, desk, v, cuts):
    """Make the constrained edges of a vertex ordinary ones and list them; returns how many there are now, or -1."""
    first = mesh.star[v]
    h = first
    while True:
        k = after(h)  # the edge from v to the corner before h
        if mesh.constrained[k]:
            if cuts == desk.cut.shape[0]:
                return -1
            desk.cut[cuts, 0], desk.cut[cuts, 1] = v, mesh.corner[before(h)]
            cuts += 1
            mesh.constrained[k] = mesh.constrained[mesh.twin[k]] = 0
        h = next_around(mesh, h)
        if h == first or h < 0:
            return cuts


@kernel
def reinsert(mesh, desk, waiting):
    """Take vertices out and insert them where they belong; all at once, since they may swap places."""
    cuts = 0
    for k in range(waiting):
        if k % FETCHED == 0:
            _fetch_around_waiting(mesh, desk, k, min(k + FETCHED, waiting))
        v = desk.waiting[k]
        cuts = cut_walls(mesh, desk, v, cuts)
        if cuts < 0 or remove(mesh, v, desk.border, desk.outside, desk.walls) == STUCK:
            return STUCK
        if flip_until_delaunay(mesh) == STUCK:
            return STUCK
        # A vertex next to it, from which to search for its new place.
        desk.recheck[k] = desk.border[0]
    # The last one first: it gets the triangles that it left itself, which are the last ones that became free. So those
    # next to each other stay so in memory, too.
    for k in range(waiting - 1, -1, -1):
        v, beside = desk.waiting[k], desk.recheck[k]
        start = mesh.star[beside] if mesh.star[beside] >= 0 else mesh.star[0]
        if insert(mesh, v, desk.true_x[v], desk.true_y[v], start) == STUCK or flip_until_delaunay(mesh) == STUCK:
            return STUCK
    for k in range(cuts):
        if force_edge(mesh, desk.cut[k, 0], desk.cut[k, 1], desk.crossing) != DONE:
            return STUCK
    return DONE
