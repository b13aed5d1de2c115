"""What must be true of a mesh after every step; for tests, and for whoever suspects a mistake."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tropel._kernels.compile import kernel
from tropel.environment.kinetic.mesh import FREE, GHOSTS, STACKED, Mesh, after, before, fails, is_upright

_FINE, _UPSIDE_DOWN, _UNLINKED, _WALL_ON_ONE_SIDE, _NOT_DELAUNAY, _STAR, _PENDING = range(7)
_MESSAGES = {
    _UPSIDE_DOWN: "a triangle is not strictly counter-clockwise",
    _UNLINKED: "the two sides of an edge do not fit",
    _WALL_ON_ONE_SIDE: "an edge is constrained on one side only",
    _NOT_DELAUNAY: "an edge fails the in-circle test",
    _STAR: "a vertex does not know a triangle of its own",
    _PENDING: "edges are waiting to be looked at",
}


class Fault(NamedTuple):
    """What is wrong, and at which half-edge or vertex."""

    what: str
    where: int


@kernel
def _first_fault(mesh):
    if mesh.counts[STACKED] != 0:
        return _PENDING, 0
    for h in range(mesh.corner.size):
        if mesh.corner[h] < 0:
            continue
        if h % 3 == 0 and not is_upright(mesh, h):
            return _UPSIDE_DOWN, h
        g = mesh.twin[h]
        if g >= 0:
            if mesh.twin[g] != h or mesh.corner[after(h)] != mesh.corner[before(g)]:
                return _UNLINKED, h
            if mesh.corner[before(h)] != mesh.corner[after(g)]:
                return _UNLINKED, h
            if mesh.constrained[h] != mesh.constrained[g]:
                return _WALL_ON_ONE_SIDE, h
            if fails(mesh, h):
                return _NOT_DELAUNAY, h
    for v in range(mesh.star.size):
        h = mesh.star[v]
        if h >= 0 and mesh.corner[h] != v:
            return _STAR, v
    return _FINE, 0


def first_fault(mesh: Mesh) -> Fault | None:
    """The first thing that is wrong with a mesh, if anything is; all predicates are exact."""
    kind, where = _first_fault(mesh)
    if kind != _FINE:
        return Fault(_MESSAGES[kind], int(where))
    # Euler: everything inside the square of ghosts is covered by so many triangles.
    vertices = int(np.count_nonzero(mesh.star >= 0))
    triangles = len(mesh.free) - int(mesh.counts[FREE])
    if triangles != 2 * (vertices - GHOSTS) + 2:
        return Fault(f"{vertices} vertices have {triangles} triangles", 0)
    return None
