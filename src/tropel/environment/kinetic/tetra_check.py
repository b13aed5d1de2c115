"""Whether a tetrahedralisation is what it claims to be. Slow and exact; for tests and for hunting bugs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel.environment.kinetic.tetra_arrays import (
    GHOSTS,
    NOTHING,
    TetraArrays,
    in_sphere_of,
    orientation_with,
    place_in,
)
from tropel.errors import ModelError

_FAULTS = (
    "",
    "tetrahedron {} is not positively oriented",
    "a face of tetrahedron {} and its twin do not name each other",
    "a face of tetrahedron {} and its twin have different vertices",
    "a face of tetrahedron {} fails the in-sphere test",
    "vertex_tet of vertex {} names a tetrahedron without it",
    "a face of tetrahedron {} is not watched from exactly one side",
)


@kernel
def _find_fault(m):
    """(0, 0), or the number of a fault and where it is."""
    for t in range(m.tet_vertex.shape[0]):
        if m.tet_vertex[t, 0] == NOTHING:
            continue
        if orientation_with(m, t, 4, 0.0, 0.0, 0.0) <= 0:
            return 1, t
        for k in range(4):
            twin = m.tet_neighbour[t, k]
            if twin == NOTHING:
                continue
            n, n_k = twin >> 2, twin & 3
            if m.tet_vertex[n, 0] == NOTHING or m.tet_neighbour[n, n_k] != 4 * t + k:
                return 2, t
            for j in range(4):
                if j != k and place_in(m, n, m.tet_vertex[t, j]) in (4, n_k):
                    return 3, t
            e = m.tet_vertex[n, n_k]
            if in_sphere_of(m, t, m.position[e, 0], m.position[e, 1], m.position[e, 2]) > 0:
                return 4, t
            if m.tet_opposite[t, k] != e:
                return 2, t
            if (m.watches[t] >> k & 1) + (m.watches[n] >> n_k & 1) != 1:
                return 6, t
    for v in range(m.vertex_tet.shape[0]):
        if m.vertex_tet[v] != NOTHING and place_in(m, m.vertex_tet[v], v) == 4:
            return 5, v
    return 0, 0


def check_invariants(arrays: TetraArrays, present: NDArray[np.bool_]) -> None:
    """Raise unless every tetrahedron is oriented, every face Delaunay and everybody present (a flag per agent) inside.

    The test of faces is local, which is enough: a structure without inverted tetrahedra in which every face passes is
    Delaunay as a whole. That the tetrahedra fill the room between the ghosts exactly once follows from Euler's count,
    V - E + F - T = 1, and from the sum of their volumes.
    """
    fault, where = _find_fault(arrays)
    if fault:
        raise ModelError(f"the tetrahedralisation is broken: {_FAULTS[fault].format(where)}")
    if not np.array_equal(arrays.vertex_tet[GHOSTS:][: len(present)] != NOTHING, present):
        raise ModelError("the tetrahedralisation is broken: its vertices are not the agents that are present")
    tets = arrays.tet_vertex[arrays.tet_vertex[:, 0] != NOTHING].astype(np.int64)
    vertices = GHOSTS + int(present.sum())
    used = np.unique(tets)
    pairs = np.concatenate([np.sort(tets[:, [i, j]], axis=1) for i in range(4) for j in range(i)])
    edges = len(np.unique(pairs[:, 0] * (1 << 32) + pairs[:, 1]))
    faces = (4 * len(tets) + 4) // 2
    if len(used) != vertices or vertices - edges + faces - len(tets) != 1:
        raise ModelError(
            f"the tetrahedralisation is broken: {len(used)} of {vertices} vertices, {edges} edges, {faces} faces and "
            f"{len(tets)} tetrahedra do not fill a ball"
        )
    corners = arrays.position[tets, :3]
    volume = np.abs(np.linalg.det(corners[:, :3] - corners[:, 3:])).sum()
    ghosts = arrays.position[:GHOSTS, :3]
    whole = abs(np.linalg.det(ghosts[:3] - ghosts[3]))
    if abs(volume - whole) > 1e-9 * whole:
        raise ModelError(f"the tetrahedralisation is broken: its parts have {volume / whole} of the volume")
