"""Near sets that hold for many steps: who is within the sense radius of whom.

Every point p keeps a list of all points within its radius and a margin w. The list is found by walking the mesh from p
to vertices next to each other, all of them inside the disk: in a Delaunay triangulation this finds everybody in it. The
list is complete until p and somebody outside of it together have moved by w. Until then each step only tests distances
of those on the list, with the points' true positions and exactly as a grid does, so the near sets are the same.

With walls the walk finds those who are approachable (LAYERS §5.1): edges do not cross walls, so it gets to the other
side of a wall only around an end of it that is inside the disk. Where a list has such ends on it, the walk is repeated
in every step, now with the radius alone. Whoever is visible is on the list too; walls are tested one by one then.

A wide margin makes lists long, a narrow one makes them expire often. With a cost of A per entry for filling a list
whose margin is used up by the move of a step, and B for testing it, the sum (r + w)² (A / w + B) is least at the w
below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr, sort_by_place, sum_up
from tropel._kernels.compile import kernel, parallel_kernel
from tropel._kernels.walls import WallGrid, chord_blocked
from tropel.agents.state import Floats
from tropel.environment.kinetic.mesh import Mesh, after, first_around, next_around
from tropel.environment.kinetic.moving_mesh import MovingMesh

#: What an agent knows of those in its disk.
NEAR, APPROACHABLE, VISIBLE = 0, 1, 2

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
def _walk(mesh, v, x, y, reach, first_point, stamp, now, stack, found, start, room):
    """List the points within reach of v, not v itself, that a walk inside of the disk meets.

    `x` and `y` are the positions of all vertices. Returns how many, and whether the end of a wall was among them.
    """
    limit = reach * reach
    stack[0] = v
    stamp[v] = now
    waiting, count = 1, 0
    at_wall = False
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
                    if u >= first_point:
                        if count < room:
                            found[start + count] = u
                        count += 1
                    else:
                        at_wall = True
            h = next_around(mesh, h)
            if h == first or h < 0:
                break
    return count, at_wall


@kernel
def _fill_some(number, lanes, mesh, who, reach, first_point, place, lists, lane, at_wall):
    stamp, stack = lane.stamp[number], lane.stack[number]
    now = np.uint32(0)
    for k in range(number, who.size, lanes):
        v = who[k]
        now += np.uint32(1)
        start, room = lists.start[v], lists.room[v]
        found, walled = _walk(
            mesh, v, mesh.x, mesh.y, reach[v], first_point, stamp, now, stack, lists.pool, start, room
        )
        lists.length[v] = found
        at_wall[v] = walled
        if found <= room:
            sort_by_place(lists.pool, start, start + found, place)


@parallel_kernel
def _fill_lists(mesh, who, reach, first_point, place, lists, lane, at_wall):
    lanes = lane.stamp.shape[0]
    for number in prange(lanes):
        _fill_some(number, lanes, mesh, who, reach, first_point, place, lists, lane, at_wall)


@kernel
def _lay_out(who, lists, margin):
    """Give these vertices, and no other, rooms a little larger than their lists; returns how large the pool must be."""
    total = 0
    lists.room[:] = 0
    for k in range(who.size):
        v = who[k]
        lists.start[v] = total
        lists.room[v] = lists.length[v] + lists.length[v] // margin + 8
        total += lists.room[v]
    return total


@kernel
def _test_some(number, lanes, mesh, vertices, x, y, radius, row_of, place, first_point, knows, at_wall, walls, lists,
               lane, hits, length):  # fmt: skip
    stamp, stack = lane.stamp[number], lane.stack[number]
    now = np.uint32(0)
    for chunk in range(number, (vertices.size + _PER_CHUNK - 1) // _PER_CHUNK, lanes):
        for i in range(chunk * _PER_CHUNK, min((chunk + 1) * _PER_CHUNK, vertices.size)):
            v = vertices[i]
            start = lists.start[v]
            if knows == APPROACHABLE and at_wall[v]:
                now += np.uint32(1)
                count, _ = _walk(mesh, v, x, y, radius[i], first_point, stamp, now, stack, hits, start, lists.room[v])
                sort_by_place(hits, start, start + count, place)
                found = start
                for k in range(start, start + count):
                    row = row_of[hits[k]]
                    hits[found] = row
                    found += row >= 0
                length[i] = found - start
                continue
            px, py = x[v], y[v]
            limit = radius[i] * radius[i]
            found = start
            for k in range(start, start + lists.length[v]):
                u = lists.pool[k]
                dx, dy = px - x[u], py - y[u]
                hits[found] = row_of[u]
                # Points that are no agents have no row, those that are gone no position.
                inside = (dx * dx + dy * dy <= limit) & (row_of[u] >= 0)
                if inside and knows == VISIBLE and at_wall[v]:
                    inside = not chord_blocked(px, py, x[u], y[u], walls)
                found += inside
            length[i] = found - start


@parallel_kernel
def _test_lists(mesh, vertices, x, y, radius, row_of, place, first_point, knows, at_wall, walls, lists, lane, hits,
                length):  # fmt: skip
    """Write the rows of those that each row knows of into its room."""
    lanes = lane.stamp.shape[0]
    for number in prange(lanes):
        _test_some(number, lanes, mesh, vertices, x, y, radius, row_of, place, first_point, knows, at_wall, walls,
                   lists, lane, hits, length)  # fmt: skip


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
        start, room, length = (np.zeros(vertices, dtype=np.int64) for _ in range(3))
        self._lists = Lists(start, room, length, np.zeros(0, dtype=np.int32))
        self._filled = Filled(np.zeros(vertices), np.zeros(vertices), np.zeros(vertices, dtype=np.uint8))
        self._radius, self._reach = np.full(vertices, np.nan), np.zeros(vertices)
        self._margin = np.full(vertices, -math.inf)
        self._at_wall = np.zeros(vertices, dtype=np.bool_)
        self._row_of = np.full(vertices, -1, dtype=np.int32)

    @property
    def vertices(self) -> int:
        """How many vertices the mesh of these lists has."""
        return len(self._margin)

    def expire(self, vertices: NDArray[np.int32]) -> None:
        """These lists must be filled again."""
        self._margin[vertices] = -math.inf

    def expire_all(self) -> None:
        """All lists must be filled again."""
        self._margin.fill(-math.inf)

    def announce(self, mesh: Mesh, newcomers: NDArray[np.int32]) -> None:
        """Expire all lists that newcomers may belong to, and their own."""
        for v in newcomers.tolist():
            around = np.hypot(mesh.x - mesh.x[v], mesh.y - mesh.y[v]) <= self._reach + _LEAST_MARGIN
            self.expire(np.flatnonzero(around).astype(np.int32))
        self.expire(newcomers)

    def update(self, moving: MovingMesh, vertices: NDArray[np.int32], place: NDArray[np.int64], radius: Floats) -> None:
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
        lane = self._lane(len(mesh.x))
        _fill_lists(mesh, who, self._reach, moving.first_point, place, self._lists, lane, self._at_wall)

    def on_list(self, vertex: int) -> NDArray[np.int32]:
        """The vertices on the list of a vertex."""
        start = self._lists.start[vertex]
        return self._lists.pool[start : start + self._lists.length[vertex]]

    def complete_to(self, moving: MovingMesh, vertices: NDArray[np.int32]) -> Floats:
        """How far the lists of these vertices are complete now [m]; not less than the radius after `update`."""
        travel, filled = moving.travel, self._filled
        used = travel[-1] - filled.everybody[vertices] + travel[moving.mesh.pace[vertices]] - filled.own[vertices]
        return np.asarray(self._reach[vertices] - moving.slack - used)

    def _lane(self, vertices: int) -> Lane:
        """Working memory for each thread, with all stamps at zero."""
        lanes = numba.get_num_threads()
        return Lane(np.zeros((lanes, vertices), dtype=np.uint32), np.empty((lanes, vertices), dtype=np.int32))

    def near(
        self,
        moving: MovingMesh,
        vertices: NDArray[np.int32],
        place: NDArray[np.int64],
        radius: Floats,
        knows: int,
        walls: WallGrid,
        everybody: NDArray[np.int32],
    ) -> Csr:
        """Rows of those within the radius that each of the vertices knows of, nearly in order of place.

        Distances are those of true positions. `everybody` has the vertex of each row.
        """
        count = len(vertices)
        self._row_of.fill(-1)
        self._row_of[everybody] = np.arange(len(everybody), dtype=np.int32)
        hits = np.empty(len(self._lists.pool) + 1, dtype=np.int32)
        length, indptr = np.empty(count, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
        lane = self._lane(len(moving.mesh.x) if knows == APPROACHABLE else 0)
        _test_lists(moving.mesh, vertices, *moving.true_positions, radius, self._row_of, place, moving.first_point,
                    knows, self._at_wall, walls, self._lists, lane, hits, length)  # fmt: skip
        indices = np.empty(sum_up(length, indptr), dtype=np.int32)
        _copy_hits(vertices, self._lists, hits, indptr, indices)
        return Csr(indptr, indices)
