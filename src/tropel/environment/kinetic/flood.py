"""Everybody around a vertex, on both sides of walls: a flood through all triangles that touch a disk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel._kernels.compile import kernel
from tropel._kernels.walls import nearest_on_segment
from tropel.agents.state import Floats
from tropel.environment.kinetic.mesh import Mesh, after, before, first_around, next_around


class Marks(NamedTuple):
    """Which triangles and vertices the last flood has met."""

    triangle: NDArray[np.uint32]
    vertex: NDArray[np.uint32]
    stack: NDArray[np.int32]


@kernel
def _touches(mesh, h, x, y, limit):
    """Whether the edge of a half-edge comes within the square root of `limit` of a point."""
    a, b = mesh.corner[after(h)], mesh.corner[before(h)]
    ax, ay, bx, by = mesh.x[a] - x, mesh.y[a] - y, mesh.x[b] - x, mesh.y[b] - y
    # Mostly an end is inside, and nothing has to be divided.
    if min(ax * ax + ay * ay, bx * bx + by * by) <= limit:
        return True
    px, py = nearest_on_segment(x, y, mesh.x[a], mesh.y[a], mesh.x[b], mesh.y[b])
    return (x - px) * (x - px) + (y - py) * (y - py) <= limit


@kernel
def _flood(mesh, v, reach, row_of, marks, now, out, start):
    """Write the rows within reach of a vertex, without its own, to `out`; returns where they would end."""
    x, y, limit = mesh.x[v], mesh.y[v], reach * reach
    end = start
    waiting = 0
    marks.vertex[v] = now
    first = first_around(mesh, v)
    h = first
    while True:
        marks.triangle[h // 3] = now
        marks.stack[waiting] = h // 3
        waiting += 1
        h = next_around(mesh, h)
        if h == first or h < 0:
            break
    while waiting > 0:
        waiting -= 1
        t = marks.stack[waiting]
        for h in range(3 * t, 3 * t + 3):
            u = mesh.corner[h]
            if marks.vertex[u] != now:
                marks.vertex[u] = now
                dx, dy = mesh.x[u] - x, mesh.y[u] - y
                if row_of[u] >= 0 and dx * dx + dy * dy <= limit:
                    if end < out.size:
                        out[end] = row_of[u]
                    end += 1
            beyond = mesh.twin[h]
            if beyond >= 0 and marks.triangle[beyond // 3] != now and _touches(mesh, h, x, y, limit):
                marks.triangle[beyond // 3] = now
                marks.stack[waiting] = beyond // 3
                waiting += 1
    return end


@kernel
def _flood_all(mesh, vertices, reach, row_of, marks, now, indptr, out):
    for k in range(vertices.size):
        indptr[k + 1] = _flood(mesh, vertices[k], reach[k], row_of, marks, now + np.uint32(k), out, indptr[k])


class Flood:
    """Finds everybody around vertices, and keeps the memory it needs."""

    def __init__(self) -> None:
        self._marks = Marks(np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.int32))
        self._now = 1
        self._out = np.empty(1024, dtype=np.int32)

    def around(self, mesh: Mesh, vertices: NDArray[np.int32], reach: Floats, row_of: NDArray[np.int32]) -> Csr:
        """Rows within reach of each vertex, without its own; those that are no agents have no row."""
        triangles = len(mesh.free)
        if len(self._marks.triangle) != triangles or len(self._marks.vertex) != len(mesh.x) or self._now >> 31:
            stack = np.empty(triangles, dtype=np.int32)
            self._marks = Marks(np.zeros(triangles, np.uint32), np.zeros(len(mesh.x), np.uint32), stack)
            self._now = 1
        indptr = np.zeros(len(vertices) + 1, dtype=np.int64)
        while True:
            _flood_all(mesh, vertices, reach, row_of, self._marks, np.uint32(self._now), indptr, self._out)
            self._now += len(vertices)
            if indptr[-1] <= len(self._out):
                return Csr(indptr, self._out[: indptr[-1]].copy())
            self._out = np.empty(int(indptr[-1]) * 5 // 4, dtype=np.int32)
