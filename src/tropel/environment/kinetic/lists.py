"""Near sets that hold for many steps: who is within the sense radius of whom.

Every point p keeps a list of all points within its radius and a margin w. The list is found by walking the mesh from p
to vertices next to each other, all of them inside the disk: in a Delaunay triangulation this finds everybody in it. The
list is complete until p and somebody outside of it together have moved by w. Until then each step only tests distances
of those on the list, with the points' true positions and exactly as a grid does, so the near sets are the same.

A wide margin makes lists long, a narrow one makes them expire often. With a cost of A per entry for filling a list whose
margin is used up by the move of a step, and B for testing it, the sum (r + w)² (A / w + B) is least at the w below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr, sum_up
from tropel._kernels.compile import kernel, parallel_kernel
from tropel.agents.state import Floats
from tropel.environment.kinetic.mesh import Mesh, after, next_around
from tropel.environment.kinetic.moving_mesh import MovingMesh

#: What filling and testing cost per entry, in any unit.
_FILL, _TEST = 10.0, 1.2
#: Margins are at least this share of the radius, and this long [m], which covers points that are aside in the mesh.
_LEAST_SHARE, _LEAST_MARGIN = 1e-3, 1e-5
_PER_CHUNK = 128


class Lists(NamedTuple):
    """The lists of all vertices, each in a room of its own in one pool."""

    start: NDArray[np.int64]  #: (V,): where the room of a vertex begins in the pool
    room: NDArray[np.int64]  #: (V,)
    length: NDArray[np.int64]  #: (V,): of its list; more than the room if the list does not fit
    pool: NDArray[np.int32]


class Filled(NamedTuple):
    """When the list of each vertex was filled, in terms of travel [m]."""

    everybody: NDArray[np.float64]  #: (V,)
    own: NDArray[np.float64]  #: (V,): of its own class
    pace: NDArray[np.uint8]  #: (V,): the class


class Lane(NamedTuple):
    """Working memory of each thread."""

    stamp: NDArray[np.uint32]  #: (lanes, V): the last walk that has met a vertex
    stack: NDArray[np.int32]  #: (lanes, V)


@kernel
def _fill_list(mesh, v, reach, first_point, stamp, now, stack, pool, start, room):
    """List the points within reach of v, not v itself; returns how many, and whether the walk has met a wall."""
    x, y = mesh.x[v], mesh.y[v]
    limit = reach * reach
    stack[0] = v
    stamp[v] = now
    waiting, found = 1, 0
    met_wall = False
    while waiting > 0:
        waiting -= 1
        first = mesh.star[stack[waiting]]
        h = first
        while True:
            u = mesh.corner[after(h)]
            met_wall = met_wall or mesh.constrained[h] != 0
            if stamp[u] != now:
                stamp[u] = now
                dx, dy = mesh.x[u] - x, mesh.y[u] - y
                if dx * dx + dy * dy <= limit:
                    stack[waiting] = u
                    waiting += 1
                    if u >= first_point:
                        if found < room:
                            pool[start + found] = u
                        found += 1
            h = next_around(mesh, h)
            if h == first or h < 0:
                break
    return found, met_wall


@kernel
def _sort_by_place(pool, start, length, place):
    """Sort a list by the places of its vertices in the cells."""
    gap = 1
    while gap < length // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, length):
            u = pool[start + k]
            key = place[u]
            m = k
            while m >= gap and place[pool[start + m - gap]] > key:
                pool[start + m] = pool[start + m - gap]
                m -= gap
            pool[start + m] = u
        gap //= 3


@kernel
def _fill_some(number, lanes, mesh, who, reach, first_point, place, lists, lane, met_wall):
    stamp, stack = lane.stamp[number], lane.stack[number]
    now = np.uint32(0)
    for k in range(number, who.size, lanes):
        v = who[k]
        now += np.uint32(1)
        start, room = lists.start[v], lists.room[v]
        found, met = _fill_list(mesh, v, reach[v], first_point, stamp, now, stack, lists.pool, start, room)
        lists.length[v] = found
        met_wall[v] = met
        if found <= room:
            _sort_by_place(lists.pool, start, found, place)


@parallel_kernel
def _fill_lists(mesh, who, reach, first_point, place, lists, lane, met_wall):
    lanes = lane.stamp.shape[0]
    for number in prange(lanes):
        _fill_some(number, lanes, mesh, who, reach, first_point, place, lists, lane, met_wall)


@kernel
def _lay_out(who, lists, margin):
    """Give every vertex of `who` a room a little larger than its list; returns how large the pool must be."""
    total = 0
    for k in range(who.size):
        v = who[k]
        lists.start[v] = total
        lists.room[v] = lists.length[v] + lists.length[v] // margin + 8
        total += lists.room[v]
    return total


@kernel
def _test_some(first, last, vertices, x, y, radius, row_of, lists, hits, length):
    for i in range(first, last):
        v = vertices[i]
        start = lists.start[v]
        px, py = x[v], y[v]
        limit = radius[i] * radius[i]
        found = start
        for k in range(start, start + lists.length[v]):
            u = lists.pool[k]
            dx, dy = px - x[u], py - y[u]
            hits[found] = row_of[u]
            # Points that are no agents have no row, those that are gone no position.
            found += (dx * dx + dy * dy <= limit) & (row_of[u] >= 0)
        length[i] = found - start


@parallel_kernel
def _test_lists(vertices, x, y, radius, row_of, lists, hits, length):
    """Write the rows of those within the radius into the room of each row."""
    for chunk in prange((vertices.size + _PER_CHUNK - 1) // _PER_CHUNK):
        _test_some(chunk * _PER_CHUNK, min((chunk + 1) * _PER_CHUNK, vertices.size), vertices, x, y, radius, row_of,
                   lists, hits, length)  # fmt: skip


@parallel_kernel
def _copy_hits(vertices, lists, hits, indptr, indices):
    for chunk in prange((vertices.size + _PER_CHUNK - 1) // _PER_CHUNK):
        for i in range(chunk * _PER_CHUNK, min((chunk + 1) * _PER_CHUNK, vertices.size)):
            start, out = lists.start[vertices[i]], indptr[i]
            for k in range(indptr[i + 1] - out):
                indices[out + k] = hits[start + k]


@kernel
def _list_expired(vertices, travel, pace, filled, margin, slack, expired):
    """Vertices whose lists are used up, by what they and anybody else have travelled since; returns how many."""
    count = 0
    everybody = travel[travel.size - 1]
    for i in range(vertices.size):
        v = vertices[i]
        used = everybody - filled.everybody[v] + travel[pace[v]] - filled.own[v]
        if not used <= margin[v] - slack or pace[v] != filled.pace[v]:
            expired[count] = v
            count += 1
    return count


def margin_of(radius: Floats, move: float) -> Floats:
    """The margin with the least cost, for points that move this far in a step [m]."""
    fill = 2.0 * _FILL * move
    best = (np.sqrt(fill * fill + 8.0 * _TEST * radius * fill) - fill) / (4.0 * _TEST)
    return np.maximum(best, np.maximum(_LEAST_SHARE * radius, _LEAST_MARGIN))


class NearLists:
    """Keeps the lists of the vertices of a mesh; the same near sets as by brute force, in every step."""

    def __init__(self) -> None:
        self.filled = 0  #: lists that the last step has filled
        self.forget(0)

    def forget(self, vertices: int) -> None:
        """Begin anew, for a mesh with this many vertices."""
        self._lists = Lists(*(np.zeros(vertices, dtype=np.int64) for _ in range(3)), np.zeros(0, dtype=np.int32))
        self._filled = Filled(np.zeros(vertices), np.zeros(vertices), np.zeros(vertices, dtype=np.uint8))
        self._radius, self._reach = np.full(vertices, np.nan), np.zeros(vertices)
        self._margin = np.full(vertices, -math.inf)
        self._met_wall = np.zeros(vertices, dtype=np.bool_)
        self._row_of = np.full(vertices, -1, dtype=np.int32)

    def expire(self, vertices: NDArray[np.int32]) -> None:
        """These lists must be filled again."""
        self._margin[vertices] = -math.inf

    def announce(self, mesh: Mesh, newcomers: NDArray[np.int32], first_point: int) -> None:
        """Expire all lists that newcomers belong to."""
        reach = float(self._reach.max(initial=0.0))
        for v in newcomers.tolist():
            around = np.hypot(mesh.x - mesh.x[v], mesh.y - mesh.y[v]) <= np.maximum(self._reach, reach * 1e-9)
            self.expire(np.flatnonzero(around & (mesh.star >= 0)).astype(np.int32))
        self.expire(newcomers)

    def update(
        self, moving: MovingMesh, vertices: NDArray[np.int32], place: NDArray[np.int64], radius: Floats
    ) -> None:
        """Fill the lists that have expired. `vertices` and `radius` have an entry for each row, `place` each vertex."""
        mesh, travel = moving.mesh, moving.travel
        changed = vertices[self._radius[vertices] != radius]
        if len(changed):
            self.expire(changed)
            self._radius[vertices] = radius
        expired = np.empty(len(vertices), dtype=np.int32)
        count = _list_expired(vertices, travel, mesh.pace, self._filled, self._margin, moving.slack, expired)
        self.filled = int(count)
        if count:
            self._fill(moving, expired[:count], place)
            if (self._lists.length[vertices] > self._lists.room[vertices]).any():
                # Some do not fit: all get a room that fits, in a new pool.
                size = _lay_out(vertices, self._lists, 4)
                self._lists = self._lists._replace(pool=np.empty(size, dtype=np.int32))
                self._fill(moving, vertices, place)

    def _fill(self, moving: MovingMesh, who: NDArray[np.int32], place: NDArray[np.int64]) -> None:
        mesh, travel = moving.mesh, moving.travel
        self._margin[who] = margin_of(self._radius[who], moving.mean_move) + 2.0 * moving.slack
        self._reach[who] = self._radius[who] + self._margin[who]
        self._filled.everybody[who] = travel[-1]
        self._filled.pace[who] = mesh.pace[who]
        self._filled.own[who] = travel[mesh.pace[who]]
        lanes, vertices = numba.get_num_threads(), len(mesh.x)
        lane = Lane(
            np.zeros((lanes, vertices), dtype=np.uint32),
            np.empty((lanes, vertices), dtype=np.int32),
        )
        _fill_lists(mesh, who, self._reach, moving.first_point, place, self._lists, lane, self._met_wall)

    def near(self, vertices: NDArray[np.int32], x: Floats, y: Floats, radius: Floats) -> Csr:
        """Rows of the points within the radius of each row, at their true positions."""
        count = len(vertices)
        self._row_of.fill(-1)
        self._row_of[vertices] = np.arange(count, dtype=np.int32)
        hits = np.empty(len(self._lists.pool) + 1, dtype=np.int32)
        length, indptr = np.empty(count, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
        _test_lists(vertices, x, y, radius, self._row_of, self._lists, hits, length)
        indices = np.empty(sum_up(length, indptr), dtype=np.int32)
        _copy_hits(vertices, self._lists, hits, indptr, indices)
        return Csr(indptr, indices)
