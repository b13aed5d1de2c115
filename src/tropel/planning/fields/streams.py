"""Streams: people in a crowd walk around corners side by side, and do not all aim at the corner.

The shortest paths around a corner all touch it, so everybody in a wide corridor aims at one point. Someone alone should
do that. In a crowd that would be a bottleneck as wide as one person. So people that others slow down follow a stream
that fills the width of the corridor. It is the field's vectors e, made smooth like the flow of a fluid that slides
along walls:

    v = e + l² ∇²v,    no flow through walls, no friction along them

solved on the raster by successive over-relaxation. The number of sweeps is fixed: where it is too small for the width
of a hall, the stream is between the field and its own limit.

An agent with the velocity w follows

    (1 - c) d + c v / |v|,    c = min(max((0.98 - |w| / v0) / 0.2, 0), 1)

where d is the shortest path. So people that walk as fast as they like take that. So do those that are held for half a
second: in front of a door, where they have to come together, not all can keep their lane. Streams that lead away from
the goal, by more than 80° from d, are not followed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel.planning.fields.following import REACHABLE, own_cell

#: l: how far streams are smoothed [m].
SMOOTHING = 10.0
_SWEEPS = 150
#: Over-relaxation: near the best value for corridors of some tens of cells.
_OVER = 1.9
#: Above this share of the desired speed people take the shortest path, and this much below it they follow the stream.
_FREE, _SLOWER = 0.98, 0.2
#: People that others hold for longer than this take the shortest path too [s].
_PATIENCE = 0.5
_FORWARD = math.cos(math.radians(80.0))
_CHUNK = 256


class Slowed(NamedTuple):
    """Columns of the agents, by the names of the state."""

    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    desired_speed: NDArray[np.float64]
    held: NDArray[np.float64]


@inlined_kernel
def _relax(kind, vectors, tie, y, x, out):
    ny, nx = kind.shape
    px, py = out[y, x, 0], out[y, x, 1]
    sx = sy = 0.0
    for side in range(4):
        sideways = side < 2
        step = 1 if side % 2 else -1
        j, i = (y, x + step) if sideways else (y + step, x)
        if i < 0 or j < 0 or i >= nx or j >= ny or kind[j, i] < REACHABLE:
            # A wall: nothing flows through it, and what flows along it is not slowed down.
            sx += 0.0 if sideways else px
            sy += py if sideways else 0.0
        elif kind[j, i] == REACHABLE:
            sx += out[j, i, 0]
            sy += out[j, i, 1]
        else:
            # The goal takes in whatever comes.
            sx += px
            sy += py
    out[y, x, 0] = px + _OVER * ((sx + tie * vectors[y, x, 0]) / (4.0 + tie) - px)
    out[y, x, 1] = py + _OVER * ((sy + tie * vectors[y, x, 1]) / (4.0 + tie) - py)


@kernel
def smooth_streams(kind, vectors, smoothing, out):
    """Write the streams of a field: kind (ny, nx), vectors and out (ny, nx, 2); `smoothing` in cells."""
    ny, nx = kind.shape
    tie = 1.0 / (smoothing * smoothing)
    for y in range(ny):
        for x in range(nx):
            out[y, x, 0], out[y, x, 1] = vectors[y, x, 0], vectors[y, x, 1]
    for sweep in range(_SWEEPS):
        for m in range(ny):
            for n in range(nx):
                y, x = (m, n) if sweep % 2 == 0 else (ny - 1 - m, nx - 1 - n)
                if kind[y, x] == REACHABLE:
                    _relax(kind, vectors, tie, y, x, out)
    for y in range(ny):
        for x in range(nx):
            length = math.sqrt(out[y, x, 0] ** 2 + out[y, x, 1] ** 2)
            if length > 1e-6:
                out[y, x, 0] /= length
                out[y, x, 1] /= length


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
