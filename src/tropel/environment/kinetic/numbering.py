"""Numbers of vertices and triangles: those next to each other in the plane are so in memory, too.

A step goes through a large crowd several times. It waits for memory wherever a triangle, the ones beside it and its
vertices are in different places.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import Floats
from tropel.environment.kinetic.mesh import FREE, GHOSTS, Mesh

#: Cells along a side of the curve along which vertices are numbered.
_SIDE = 1 << 12


def along_a_curve(points: Floats) -> NDArray[np.int64]:
    """An order in which consecutive points are close together, and close points mostly not far apart (Hilbert)."""
    if not len(points):
        return np.empty(0, dtype=np.int64)
    low = points.min(axis=0)
    size = max(float((points.max(axis=0) - low).max()), 1e-300)
    x, y = np.minimum((points - low) / size * _SIDE, _SIDE - 1).astype(np.int64).T
    along = np.zeros(len(points), dtype=np.int64)
    half = _SIDE // 2
    while half:
        right, upper = (x & half) > 0, (y & half) > 0
        along += half * half * ((3 * right) ^ upper)
        # Turn the quarter so that the curve runs through it from corner to corner.
        mirrored = right & ~upper
        x, y = np.where(mirrored, _SIDE - 1 - x, x), np.where(mirrored, _SIDE - 1 - y, y)
        x, y = np.where(upper, x, y), np.where(upper, y, x)
        half //= 2
    return np.lexsort((points[:, 0], points[:, 1], along))


def number_triangles(mesh: Mesh) -> None:
    """Number all triangles anew, in the order of their vertices. None may be touched, and no edge on the stack."""
    corners = mesh.corner.reshape(-1, 3)
    last = np.iinfo(np.int32).max
    lowest = np.where(corners < GHOSTS, last - 1, corners).min(axis=1)
    # Triangles that are not in use come last.
    lowest[corners[:, 0] < 0] = last
    old = np.argsort(lowest, kind="stable").astype(np.int32)
    new = np.empty_like(old)
    new[old] = np.arange(len(old), dtype=np.int32)
    for column in (mesh.corner, mesh.twin, mesh.constrained, mesh.due, mesh.due_pace):
        column[:] = column.reshape(-1, 3)[old].reshape(-1)
    for half_edges in (mesh.twin, mesh.star):
        triangle, side = np.divmod(half_edges, 3)
        half_edges[:] = np.where(half_edges < 0, -1, 3 * new[triangle] + side)
    free = int(mesh.counts[FREE])
    mesh.free[:free] = np.arange(len(old), dtype=np.int32)[len(old) - free :][::-1]
