"""Whom walls hide: the near sets without those that an agent cannot approach, or cannot see.

Somebody is approachable (LAYERS §5.1) unless a wall with both ends outside of the agent's disk is in between. Edges of
the triangulation do not cross walls, so a walk from vertex to vertex inside of the disk gets to the other side of a
wall only around an end of it that is inside. Somebody is visible if no wall is in between; walls are tested one by one.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.arrays import Ragged
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.walls import WallGrid, cell_at, chord_blocked
from tropel.agents.state import Floats
from tropel.environment.kinetic.mesh import after, first_around, next_around
from tropel.environment.kinetic.moving_mesh import MovingMesh

_PER_CHUNK = 128


@inlined_kernel
def _has_walls(x, y, walls):
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    return walls.start[cell] < walls.start[cell + 1]


@kernel
def _see_some(first, last, position, walls, near, out, length):
    for i in range(first, last):
        x, y = position[i, 0], position[i, 1]
        beside_walls = _has_walls(x, y, walls)
        found = near.start[i]
        for k in range(near.start[i], near.start[i] + near.length[i]):
            j = near.items[k]
            out[found] = j
            found += not (beside_walls and chord_blocked(x, y, position[j, 0], position[j, 1], walls))
        length[i] = found - near.start[i]


@parallel_kernel
def _see(position, walls, near, out, length):
    count = length.size
    for chunk in prange((count + _PER_CHUNK - 1) // _PER_CHUNK):
        place = np.int64(np.uint64(chunk))
        _see_some(place * _PER_CHUNK, min(count, (place + 1) * _PER_CHUNK), position, walls, near, out, length)


@kernel
def _walk(mesh, v, x, y, reach, row_of, stamp, now, stack, out, start):
    """List the rows within reach of v, without its own, that a walk inside of the disk meets; returns how many.

    `x` and `y` are the true positions of all vertices.
    """
    limit = reach * reach
    stack[0] = v
    stamp[v] = now
    waiting, count = 1, 0
    while waiting > 0:
        waiting -= 1
        # Only very large disks have ghosts inside.
        first = first_around(mesh, stack[waiting])
        h = first
        while True:
            u = mesh.corner[after(h)]
            if stamp[u] != now:
                stamp[u] = now
                dx, dy = x[v] - x[u], y[v] - y[u]
                if dx * dx + dy * dy <= limit:
                    stack[waiting] = u
                    waiting += 1
                    if row_of[u] >= 0:
                        out[start + count] = row_of[u]
                        count += 1
            h = next_around(mesh, h)
            if h == first or h < 0:
                break
    return count


@kernel
def _approach_some(number, lanes, mesh, x, y, vertices, row_of, radius, walls, stamp, stack, near, out, length):
    now = np.uint32(0)
    count = length.size
    for chunk in range(number, (count + _PER_CHUNK - 1) // _PER_CHUNK, lanes):
        for i in range(chunk * _PER_CHUNK, min(count, (chunk + 1) * _PER_CHUNK)):
            v, start = vertices[i], near.start[i]
            if _has_walls(x[v], y[v], walls):
                now += np.uint32(1)
                length[i] = _walk(mesh, v, x, y, radius[i], row_of, stamp, now, stack, out, start)
            else:
                length[i] = near.length[i]
                for k in range(start, start + near.length[i]):
                    out[k] = near.items[k]


@parallel_kernel
def _approach(mesh, x, y, vertices, row_of, radius, walls, stamp, stack, near, out, length):
    lanes = stamp.shape[0]
    for number in prange(lanes):
        lane = np.int64(np.uint64(number))
        _approach_some(lane, lanes, mesh, x, y, vertices, row_of, radius, walls, stamp[lane], stack[lane], near, out,
                       length)  # fmt: skip


def without_hidden(near: Ragged, position: Floats, walls: WallGrid) -> Ragged:
    """The near sets without those that a wall hides."""
    out, length = np.empty_like(near.items), np.empty(len(position), dtype=np.int64)
    _see(position, walls, near, out, length)
    return Ragged(near.start, length, out)


def without_unapproachable(
    near: Ragged,
    moving: MovingMesh,
    vertices: NDArray[np.int32],
    row_of: NDArray[np.int32],
    radius: Floats,
    walls: WallGrid,
) -> Ragged:
    """The near sets without those that cannot be approached; `walls` must be complete up to the largest radius."""
    out, length = np.empty_like(near.items), np.empty(len(vertices), dtype=np.int64)
    lanes, size = numba.get_num_threads(), len(moving.mesh.x)
    stamp, stack = np.zeros((lanes, size), dtype=np.uint32), np.empty((lanes, size), dtype=np.int32)
    _approach(moving.mesh, *moving.true_positions, vertices, row_of, radius, walls, stamp, stack, near, out, length)
    return Ragged(near.start, length, out)
