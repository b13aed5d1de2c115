"""Streams: people in a crowd walk around corners side by side, and do not all aim at the corner.

The shortest paths around a corner all touch it, so everybody in a wide corridor aims at one point. Someone alone should
do that. In a crowd that would be a bottleneck as wide as one person. So people that others slow down follow a stream
that fills the width of the corridor and closes in on doors, like the flow of a fluid:

    v = ∇u,    ∇²u = u / l²,    u = 1 at the goal, no flow through walls

It is solved in two steps. First, cells that are joined within a block of 4 x 4 cells get one value, exact for flows
between blocks; walls never leak, however thin. Then a fixed number of sweeps over single cells evens out the steps
between blocks.

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

from tropel._kernels.compile import allocating_kernel, inlined_kernel, kernel, parallel_kernel
from tropel.planning.fields.following import GOAL, REACHABLE, own_cell

#: l: streams are those of people that come from about as far away [m].
RANGE = 20.0
#: Edge of a block in cells, sweeps over single cells, and their over-relaxation.
_BLOCK, _SWEEPS, _OVER = 4, 24, 1.5
#: Above this share of the desired speed people take the shortest path, and this much below it they follow the stream.
_FREE, _SLOWER = 0.999, 0.1
#: People that others hold for longer than this take the shortest path too [s].
_PATIENCE = 0.2
_FORWARD = math.cos(math.radians(80.0))
_CHUNK = 256
#: Streams are stored as one of so many angles, in one byte: more would only cost time, for memory to be read.
_ANGLES = 255
_UNIT = np.array([(0.0, 0.0)] + [(math.cos(a), math.sin(a)) for a in 2.0 * math.pi / _ANGLES * np.arange(_ANGLES)])
#: Labels of cells that are goals, and of those that are neither goals nor reachable.
_AT_GOAL, _CLOSED = -1, -2


class Slowed(NamedTuple):
    """Columns of the agents, by the names of the state."""

    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    desired_speed: NDArray[np.float64]
    held: NDArray[np.float64]


@allocating_kernel
def _label_parts(kind, labels):
    """Number the parts of blocks whose cells are joined. Returns how many there are."""
    ny, nx = kind.shape
    for y in range(ny):
        for x in range(nx):
            is_goal = kind[y, x] == GOAL
            labels[y, x] = _AT_GOAL if is_goal else _CLOSED
    count = 0
    waiting = np.empty((_BLOCK * _BLOCK, 2), dtype=np.int64)
    for y in range(ny):
        for x in range(nx):
            if kind[y, x] != REACHABLE or labels[y, x] >= 0:
                continue
            labels[y, x] = count
            waiting[0, 0], waiting[0, 1] = y, x
            found = 1
            while found > 0:
                found -= 1
                j, i = waiting[found, 0], waiting[found, 1]
                for m in range(4):
                    b, a = j + (m == 0) - (m == 1), i + (m == 2) - (m == 3)
                    if a < 0 or b < 0 or a >= nx or b >= ny or a // _BLOCK != x // _BLOCK or b // _BLOCK != y // _BLOCK:
                        continue
                    if kind[b, a] == REACHABLE and labels[b, a] < 0:
                        labels[b, a] = count
                        waiting[found, 0], waiting[found, 1] = b, a
                        found += 1
            count += 1
    return count


def _of_parts(labels: NDArray[np.int64], count: int, loss: float) -> NDArray[np.float64]:
    """u of each part."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    beside = np.concatenate(
        [
            np.stack([labels[:, :-1].ravel(), labels[:, 1:].ravel()]),
            np.stack([labels[:-1].ravel(), labels[1:].ravel()]),
        ],
        axis=1,
    )
    beside = np.concatenate([beside, beside[::-1]], axis=1)
    own, other = beside[:, (beside[0] >= 0) & (beside[1] != _CLOSED) & (beside[0] != beside[1])]
    into_goal = other == _AT_GOAL
    # Flow per cell of width: the middles of blocks are 4 cells apart, goals begin about 2 cells from them.
    between, to_goal = 1.0 / _BLOCK, 2.0 / _BLOCK
    joined = coo_array((np.full(int((~into_goal).sum()), -between), (own[~into_goal], other[~into_goal])),
                       shape=(count, count))  # fmt: skip
    sources = to_goal * np.bincount(own[into_goal], minlength=count)
    cells = np.bincount(labels[labels >= 0], minlength=count)
    diagonal = between * np.bincount(own[~into_goal], minlength=count) + sources + loss * cells
    here = np.arange(count)
    matrix = joined.tocsc() + coo_array((diagonal, (here, here)), shape=(count, count)).tocsc()
    factors = splu(
        matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True, "Equil": False}
    )
    return np.asarray(factors.solve(sources))


@inlined_kernel
def _beside(kind, u, y, x, own):
    """u of the cell (y, x) beside one with u = own, and whether anything flows between them."""
    ny, nx = kind.shape
    if x < 0 or y < 0 or x >= nx or y >= ny or kind[y, x] < REACHABLE:
        return own, 0
    return u[y, x], 1


@kernel
def relax(kind, loss, sweeps, u):
    """Bring u (ny, nx), which is 1 in goals, nearer to the solution."""
    ny, nx = kind.shape
    for sweep in range(sweeps):
        for m in range(ny):
            y = m if sweep % 2 == 0 else ny - 1 - m
            for n in range(nx):
                x = n if sweep % 2 == 0 else nx - 1 - n
                if kind[y, x] != REACHABLE:
                    continue
                own = u[y, x]
                total, count = 0.0, 0
                for step in range(4):
                    other, there = _beside(kind, u, y + (step == 0) - (step == 1), x + (step == 2) - (step == 3), own)
                    total += other * there
                    count += there
                u[y, x] = own + _OVER * (total / (count + loss) - own)


@kernel
def _uphill(kind, u, out):
    """Write the numbers of the angles of ∇u (ny, nx), from 1; 0 in goals and where there is no path."""
    for y in range(kind.shape[0]):
        for x in range(kind.shape[1]):
            if kind[y, x] != REACHABLE:
                continue
            own = u[y, x]
            gx = _beside(kind, u, y, x + 1, own)[0] - _beside(kind, u, y, x - 1, own)[0]
            gy = _beside(kind, u, y + 1, x, own)[0] - _beside(kind, u, y - 1, x, own)[0]
            if gx != 0.0 or gy != 0.0:
                turns = math.atan2(gy, gx) / (2.0 * math.pi)
                out[y, x] = 1 + np.int64((turns + 1.0) * _ANGLES + 0.5) % _ANGLES


def streams_of(kind: NDArray[np.uint8], reach: float) -> NDArray[np.uint8]:
    """Streams on cells of these kinds (ny, nx), as numbers of angles (see `unit_vectors`); `reach` is l in cells."""
    out = np.zeros(kind.shape, dtype=np.uint8)
    labels = np.empty(kind.shape, dtype=np.int64)
    count = _label_parts(kind, labels)
    if not count:
        return out
    loss = 1.0 / reach**2
    values = np.append(_of_parts(labels, count, loss), [0.0, 1.0])  # the last ones are those of the labels -2 and -1
    u = values[labels]
    relax(kind, loss, _SWEEPS, u)
    _uphill(kind, u, out)
    return out


def unit_vectors(streams: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Streams as vectors (ny, nx, 2), zero where there are none."""
    return np.asarray(_UNIT[streams])


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
        _, iy, ix = own_cell(crowd.position[i, 0], crowd.position[i, 1], 0.0, field)
        angle = streams[iy, ix]
        sx, sy = _UNIT[angle, 0], _UNIT[angle, 1]
        if sx * out[i, 0] + sy * out[i, 1] < _FORWARD:
            continue
        vx, vy = (1.0 - share) * out[i, 0] + share * sx, (1.0 - share) * out[i, 1] + share * sy
        length = math.sqrt(vx * vx + vy * vy)
        out[i, 0], out[i, 1] = vx / length, vy / length


@parallel_kernel
def follow_streams(rows, crowd, field, streams, out):
    """Turn the directions of agents that are slowed down towards the streams (ny, nx)."""
    for chunk in numba.prange((rows.size + _CHUNK - 1) // _CHUNK):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, rows.size)
        _keep_some(rows, first, last, crowd, field, streams, out)
