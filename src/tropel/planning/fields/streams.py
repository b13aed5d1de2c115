"""Streams: people in a crowd walk around corners side by side, and do not all aim at the corner.

The shortest paths around a corner all touch it, so everybody in a wide corridor aims at one point. Someone alone should
do that. In a crowd that would be a bottleneck as wide as one person. So people that others slow down follow a stream
that fills the width of the corridor. It is the field's vectors e, made smooth like the flow of a fluid that slides
along walls:

    v = e + l² ∇²v,    no flow through walls, no friction along them

solved on the raster by over-relaxation, which starts from the solution on a coarser one. The number of sweeps is fixed,
so the solution is not exact: people do not walk exactly along streams either.

An agent with the velocity w follows

    (1 - c) d + c v / |v|,    c = min(max((0.999 - |w| / v0) / 0.1, 0), 1)

where d is the shortest path. So people that walk as fast as they like take that. So do those that are held for a fifth
of a second: in front of a door, where they have to come together, not all can keep their lane. Streams that lead away
from the goal, by more than 80° from d, are not followed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel.planning.fields.following import BLOCKED, GOAL, REACHABLE, own_cell

#: l: how far streams are smoothed [m].
SMOOTHING = 20.0
#: Sweeps on each raster, over-relaxation, and the smoothing in cells below which there is no coarser raster.
_SWEEPS, _OVER, _SHORT = 24, 1.5, 3.0
#: Above this share of the desired speed people take the shortest path, and this much below it they follow the stream.
_FREE, _SLOWER = 0.999, 0.1
#: People that others hold for longer than this take the shortest path too [s].
_PATIENCE = 0.2
_FORWARD = math.cos(math.radians(80.0))
_CHUNK = 256


class Slowed(NamedTuple):
    """Columns of the agents, by the names of the state."""

    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    desired_speed: NDArray[np.float64]
    held: NDArray[np.float64]


@inlined_kernel
def _beside(kind, out, y, x, px, py, through_x, through_y):
    """The vector of the cell (y, x) beside one with the vector p; it is on its left or right if `through_x` is 0."""
    ny, nx = kind.shape
    if x < 0 or y < 0 or x >= nx or y >= ny or kind[y, x] < REACHABLE:
        # A wall: nothing flows through it, and what flows along it is not slowed down.
        return through_x * px, through_y * py
    if kind[y, x] == REACHABLE:
        return np.float64(out[y, x, 0]), np.float64(out[y, x, 1])
    # The goal takes in whatever comes.
    return px, py


@kernel
def relax(kind, vectors, smoothing, sweeps, out):
    """Bring `out` (ny, nx, 2) nearer to the solution for the vectors of a field, with its kinds of cells (ny, nx)."""
    ny, nx = kind.shape
    tie = 1.0 / (smoothing * smoothing)
    for sweep in range(sweeps):
        for m in range(ny):
            y = m if sweep % 2 == 0 else ny - 1 - m
            for n in range(nx):
                x = n if sweep % 2 == 0 else nx - 1 - n
                if kind[y, x] != REACHABLE:
                    continue
                px, py = np.float64(out[y, x, 0]), np.float64(out[y, x, 1])
                ax, ay = _beside(kind, out, y, x - 1, px, py, 0.0, 1.0)
                bx, by = _beside(kind, out, y, x + 1, px, py, 0.0, 1.0)
                cx, cy = _beside(kind, out, y - 1, x, px, py, 1.0, 0.0)
                dx, dy = _beside(kind, out, y + 1, x, px, py, 1.0, 0.0)
                wx = (ax + bx + cx + dx + tie * vectors[y, x, 0]) / (4.0 + tie)
                wy = (ay + by + cy + dy + tie * vectors[y, x, 1]) / (4.0 + tie)
                out[y, x, 0], out[y, x, 1] = px + _OVER * (wx - px), py + _OVER * (wy - py)


@kernel
def _coarsen(kind, vectors, coarse_kind, coarse_vectors):
    """Blocks of 2 x 2 cells: what most of their cells are, and the mean of their vectors."""
    ny, nx = kind.shape
    for y in range(coarse_kind.shape[0]):
        for x in range(coarse_kind.shape[1]):
            reachable = goal = 0
            sx = sy = 0.0
            for m in range(4):
                j, i = 2 * y + m // 2, 2 * x + m % 2
                if j < ny and i < nx:
                    goal += kind[j, i] == GOAL
                    if kind[j, i] == REACHABLE:
                        reachable += 1
                        sx += vectors[j, i, 0]
                        sy += vectors[j, i, 1]
            coarse_kind[y, x] = GOAL if goal > 1 else REACHABLE if reachable > 1 else BLOCKED
            share = 1.0 / max(reachable, 1)
            coarse_vectors[y, x, 0], coarse_vectors[y, x, 1] = share * sx, share * sy


def smoothed(kind: NDArray[np.uint8], vectors: NDArray[np.float32], smoothing: float) -> NDArray[np.float32]:
    """The streams of a field: kind (ny, nx), vectors (ny, nx, 2); `smoothing` in cells.

    Starts from the streams of a raster with cells twice as wide, so that few sweeps are enough.
    """
    out = vectors.copy()
    if smoothing > _SHORT and min(kind.shape) > 2:
        half = (kind.shape[0] + 1) // 2, (kind.shape[1] + 1) // 2
        coarse_kind, coarse_vectors = np.empty(half, dtype=np.uint8), np.empty((*half, 2), dtype=np.float32)
        _coarsen(kind, vectors, coarse_kind, coarse_vectors)
        wide = smoothed(coarse_kind, coarse_vectors, 0.5 * smoothing)
        wide = wide.repeat(2, axis=0).repeat(2, axis=1)[: kind.shape[0], : kind.shape[1]]
        start = (kind == REACHABLE) & (np.abs(wide).sum(axis=2) > 0.0)
        out[start] = wide[start]
    relax(kind, vectors, smoothing, _SWEEPS, out)
    return out


@inlined_kernel
def _slowed(i, crowd):
    """How much others slow an agent down, from 0 to 1; 0 for those that are held, or have not moved yet."""
    speed = math.sqrt(crowd.velocity[i, 0] ** 2 + crowd.velocity[i, 1] ** 2)
    if speed == 0.0 or crowd.desired_speed[i] == 0.0 or crowd.held[i] > _PATIENCE:
        return 0.0
    return min(max((_FREE - speed / crowd.desired_speed[i]) / _SLOWER, 0.0), 1.0)


@kernel
def _keep_some(rows, first, last, crowd, field, streams, out):
    for k in range(first, last):
        i = rows[k]
        share = _slowed(i, crowd)
        if share == 0.0:
            continue
        iz, iy, ix = own_cell(crowd.position[i, 0], crowd.position[i, 1], 0.0, field)
        sx, sy = np.float64(streams[iy, ix, 0]), np.float64(streams[iy, ix, 1])
        strength = math.sqrt(sx * sx + sy * sy)
        if strength < 1e-6:
            continue
        sx, sy = sx / strength, sy / strength
        if field.kind[iz, iy, ix] != REACHABLE or sx * out[i, 0] + sy * out[i, 1] < _FORWARD:
            continue
        vx, vy = (1.0 - share) * out[i, 0] + share * sx, (1.0 - share) * out[i, 1] + share * sy
        length = math.sqrt(vx * vx + vy * vy)
        out[i, 0], out[i, 1] = vx / length, vy / length


@parallel_kernel
def follow_streams(rows, crowd, field, streams, out):
    """Turn the directions of agents that are slowed down towards the streams (ny, nx, 2)."""
    for chunk in numba.prange((rows.size + _CHUNK - 1) // _CHUNK):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, rows.size)
        _keep_some(rows, first, last, crowd, field, streams, out)
