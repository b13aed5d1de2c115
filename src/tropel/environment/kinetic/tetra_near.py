"""Who is within a radius of each agent in space, from lists that stay valid while little moves.

Agent p has the list of all agents that were within `listed[p]`, its radius and a margin, when the list was filled.
Nobody else can be within r of p before p and the others together have moved by listed[p] - r; until then only the
distances to the listed ones are measured. Newcomers and the few fastest agents are not counted among "the others": they
would spoil all lists. Instead, the lists of those they come near to are filled again.

Filling a list floods tetrahedra from p, across faces with a vertex within the distance. In a Delaunay structure, the
vertices in a ball are connected with its centre by edges between such vertices, so the flood finds all.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr, sum_up
from tropel._kernels.compile import kernel, parallel_kernel
from tropel.environment.kinetic.tetra import Floats, Tetrahedralisation
from tropel.environment.kinetic.tetra_arrays import GHOSTS, NOTHING

_EXPIRED = -1.0
#: What the structure's positions may be off, in nudges: √3 at each end, and rounding.
_SLACK = 8.0
#: With a larger share of fast agents than this, looking around each of them is slower than filling all lists.
_MANY_FAST = 0.1
_FIRST_ROOM = 64


@kernel
def _flood(position, tet_vertex, tet_neighbour, start, v, reach, tet_stamp, vertex_stamp, stamp, stack, found):
    """Write the vertices within `reach` of v to `found`, as many as fit, without v and ghosts; returns how many."""
    x, y, z = position[v, 0], position[v, 1], position[v, 2]
    reach2 = reach * reach
    vertex_stamp[v] = stamp
    tet_stamp[start] = stamp
    stack[0] = start
    size, count = 1, 0
    while size > 0:
        size -= 1
        t = stack[size]
        inside = 0
        for k in range(4):
            w = tet_vertex[t, k]
            # Even stamps: met and outside; odd ones: inside.
            if vertex_stamp[w] != stamp and vertex_stamp[w] != stamp + 1:
                dx, dy, dz = position[w, 0] - x, position[w, 1] - y, position[w, 2] - z
                if w >= GHOSTS and dx * dx + dy * dy + dz * dz <= reach2:
                    vertex_stamp[w] = stamp
                    if count < found.shape[0]:
                        found[count] = w - GHOSTS
                    count += 1
                else:
                    vertex_stamp[w] = stamp + 1
            if vertex_stamp[w] == stamp:
                inside += 1 << k
        for k in range(4):
            # Face k has the vertices other than k.
            if inside & ~(1 << k) & 15 and tet_neighbour[t, k] != NOTHING:
                other = tet_neighbour[t, k] >> 2
                if tet_stamp[other] != stamp:
                    tet_stamp[other] = stamp
                    stack[size] = other
                    size += 1
    return count


@parallel_kernel
def fill_lists(structure, agents, rows, listed, slack, lists, scratch, first_stamp):
    """List everybody within `listed` of the given rows, by the agents' true positions.

    Lengths may exceed the room in `members`; such lists are cut off and must be filled again with more room.
    """
    position, tet_vertex, tet_neighbour, vertex_tet = structure
    members, length = lists
    tet_stamp, vertex_stamp, stack = scratch
    parts = tet_stamp.shape[0]
    for part in prange(parts):
        for place in range(part * rows.shape[0] // parts, (part + 1) * rows.shape[0] // parts):
            i = rows[place]
            found = _flood(
                *(position, tet_vertex, tet_neighbour, vertex_tet[i + GHOSTS], i + GHOSTS, listed[i] + slack),
                *(tet_stamp[part], vertex_stamp[part], first_stamp + 2 * place, stack[part], members[i]),
            )
            if found <= members.shape[1]:
                found = _keep_near(agents, members[i], found, i, listed[i])
            length[i] = found


@kernel
def _keep_near(agents, numbers, count, i, reach):
    """Drop whom the slack let in; returns how many remain."""
    kept = 0
    for k in range(count):
        j = numbers[k]
        dx, dy, dz = agents[j, 0] - agents[i, 0], agents[j, 1] - agents[i, 1], agents[j, 2] - agents[i, 2]
        if dx * dx + dy * dy + dz * dz <= reach * reach:
            numbers[kept] = j
            kept += 1
    return kept


@kernel
def expire_around(structure, agents, rows, listed, reach, slack, found, scratch, first_stamp):
    """Mark the lists that somebody in `rows`, who has come from anywhere, may belong to; `found` is scratch."""
    position, tet_vertex, tet_neighbour, vertex_tet = structure
    tet_stamp, vertex_stamp, stack = scratch
    for place in range(rows.shape[0]):
        j = rows[place]
        count = _flood(
            *(position, tet_vertex, tet_neighbour, vertex_tet[j + GHOSTS], j + GHOSTS, reach + slack),
            *(tet_stamp[0], vertex_stamp[0], first_stamp + 2 * place, stack[0], found),
        )
        for k in range(count):
            i = found[k]
            dx, dy, dz = agents[j, 0] - agents[i, 0], agents[j, 1] - agents[i, 1], agents[j, 2] - agents[i, 2]
            if dx * dx + dy * dy + dz * dz <= (listed[i] + slack) * (listed[i] + slack):
                listed[i] = _EXPIRED


@parallel_kernel
def pick_near(agents, radius, present, members, length, near, count):
    """Write the listed agents within the radius of each row to `near`, and how many they are to `count`."""
    for i in prange(agents.shape[0]):
        found = 0
        if present[i]:
            x, y, z, limit = agents[i, 0], agents[i, 1], agents[i, 2], radius[i] * radius[i]
            for k in range(length[i]):
                j = members[i, k]
                dx, dy, dz = agents[j, 0] - x, agents[j, 1] - y, agents[j, 2] - z
                if dx * dx + dy * dy + dz * dz <= limit and present[j]:
                    near[i, found] = j
                    found += 1
        count[i] = found


@parallel_kernel
def _close_ranks(near, indptr, indices):
    for i in prange(near.shape[0]):
        for k in range(indptr[i + 1] - indptr[i]):
            indices[indptr[i] + k] = near[i, k]


class NearLists:
    """The lists of all agents of a structure. A larger margin [m] means longer lists that are filled less often."""

    def __init__(self, structure: Tetrahedralisation, margin: float) -> None:
        self.structure = structure
        self.margin = margin
        self.filled = 0  #: lists filled so far
        self._seen = structure.version
        self._listed = np.empty(0)  #: [N] the distance up to which a list was complete when it was filled
        self._make_rows(0, _FIRST_ROOM)
        self._make_scratch()

    def update(self, position: Floats, radius: Floats) -> Csr:
        """Rows of the agents within `radius` of each agent, after the structure has been brought to `position`.

        Agents at exactly the radius count:
        dx*dx + dy*dy + dz*dz <= r*r. Absent rows have empty lists.
        """
        structure = self.structure
        present = structure.present
        position, radius = position[: len(present)], radius[: len(present)]
        if len(self._listed) != len(present):
            self._make_rows(len(present), self._members.shape[1])
        slack = _SLACK * structure.nudge
        travel = structure.travelled
        self._look_around_uncounted(position, present, slack)
        moved = np.sqrt(((position - self._reference) ** 2).sum(axis=1))
        expired = present & ~(radius + moved + (travel - self._travel) + slack <= self._listed)
        self._fill(position, radius, np.flatnonzero(expired), slack)
        self._listed[~present] = _EXPIRED
        pick_near(position, radius, present, self._members, self._length, self._near, self._count)
        indptr = np.zeros(len(present) + 1, dtype=np.int64)
        indices = np.empty(sum_up(self._count, indptr), dtype=np.int32)
        _close_ranks(self._near, indptr, indices)
        return Csr(indptr, indices)

    def on_list(self, row: int) -> NDArray[np.int32]:
        """The agents on the list of an agent."""
        return self._members[row, : self._length[row]]

    def complete_to(self, position: Floats) -> Floats:
        """How far the lists are complete now [m]; not less than the radius after `update`."""
        moved = np.sqrt(((position[: len(self._listed)] - self._reference) ** 2).sum(axis=1))
        slack = _SLACK * self.structure.nudge
        return np.asarray(self._listed - moved - (self.structure.travelled - self._travel) - slack)

    def _look_around_uncounted(self, position: Floats, present: NDArray[np.bool_], slack: float) -> None:
        """Agents that are new or that jumped may have come into any list."""
        fast = np.flatnonzero(present & (self.structure.uncounted > self._seen))
        self._seen = self.structure.version
        if len(fast) > _MANY_FAST * len(present):
            self._listed[:] = _EXPIRED
        elif len(fast):
            self._listed[fast] = _EXPIRED
            reach = float(self._listed.max())
            if reach > 0.0:
                stamp = self._stamps(len(fast))
                found = np.empty(len(present), dtype=np.int32)
                expire_around(self._mesh(), position, fast, self._listed, reach, slack, found, self._scratch, stamp)

    def _fill(self, position: Floats, radius: Floats, rows: NDArray[np.int64], slack: float) -> None:
        if len(rows) == 0:
            return
        self.filled += len(rows)
        self._listed[rows] = radius[rows] + self.margin
        self._reference[rows] = position[rows]
        self._travel[rows] = self.structure.travelled
        # Tetrahedra are numbered by place, more or less: consecutive floods then meet the same ones.
        cut = rows[np.argsort(self.structure.arrays.vertex_tet[rows + GHOSTS])]
        while len(cut):
            stamp = self._stamps(len(cut))
            lists = (self._members, self._length)
            fill_lists(self._mesh(), position, cut, self._listed, slack, lists, self._scratch, stamp)
            cut = cut[self._length[cut] > self._members.shape[1]]
            if len(cut):
                self._make_wider(int(self._length[cut].max() * 1.25))

    def _mesh(self) -> tuple[Floats, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        m = self.structure.arrays
        return m.position, m.tet_vertex, m.tet_neighbour, m.vertex_tet

    def _stamps(self, count: int) -> int:
        """The first of as many pairs of stamps as are needed; makes scratch of the right size."""
        m, (tets, vertices, _) = self.structure.arrays, self._scratch
        threads = numba.get_num_threads()
        fits = tets.shape == (threads, len(m.tet_vertex)) and vertices.shape == (threads, len(m.position))
        if not fits or self._stamp + 2 * count > np.iinfo(np.int32).max - 2:
            self._make_scratch()
        first = self._stamp
        self._stamp += 2 * count
        return first

    def _make_scratch(self) -> None:
        m, threads = self.structure.arrays, numba.get_num_threads()
        self._scratch = (
            np.zeros((threads, len(m.tet_vertex)), dtype=np.int32),
            np.zeros((threads, len(m.position)), dtype=np.int32),
            np.empty((threads, len(m.tet_vertex)), dtype=np.int32),
        )
        self._stamp = 1

    def _make_rows(self, count: int, room: int) -> None:
        """All lists anew, expired."""
        self._listed = np.full(count, _EXPIRED)
        self._reference, self._travel = np.zeros((count, 3)), np.zeros(count)
        self._length, self._count = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self._members = np.empty((count, room), dtype=np.int32)
        self._near = np.empty((count, room), dtype=np.int32)

    def _make_wider(self, room: int) -> None:
        members = np.empty((len(self._members), room), dtype=np.int32)
        members[:, : self._members.shape[1]] = self._members
        self._members, self._near = members, np.empty_like(members)
