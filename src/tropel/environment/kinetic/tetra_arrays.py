"""The arrays of a Delaunay tetrahedralisation, and the smallest operations on them.

A tetrahedron t has four vertices, positively oriented. Its face k lies opposite its vertex k and has the code 4 t + k;
`tet_neighbour[t, k]` is the code of the same face seen from the other side. Vertices 0 to 3 are ghosts, the corners of
a tetrahedron far around the crowd: every agent is inside, and there is no hull to care about. Agent i is vertex i + 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.predicates_3d import in_sphere, orientation_3d

GHOSTS = 4
NOTHING = -1
CLASSES = 4

# Places in `TetraArrays.counts`.
FREE = 0  #: entries of `free_tets`
QUEUED = 1  #: entries of `queue`
STAMP = 2  #: the last stamp given to tetrahedra
LOOKED = 3  #: certificates looked at
FAILED = 4  #: of those, the ones that had failed
FLIPS = 5
REINSERTIONS = 6
STUCK = 7  #: entries of `stuck`
PENDING = 8  #: entries of `pending`

# What kernels report that may have to stop halfway.
DONE = 0
NO_ROOM = 1  #: nothing is broken: enlarge the arrays and call again
GAVE_UP = 2  #: rebuild

#: Vertices with more tetrahedra around them are not deleted but left out of a rebuild; 27 is usual.
_LARGEST_STAR = 2048
_REGULAR = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]]) / np.sqrt(3.0)


class TetraArrays(NamedTuple):
    """All that kernels share. T is the room for tetrahedra, V the number of vertices with the ghosts."""

    position: NDArray[np.float64]  #: [V, 4] x, y, z and how far the vertex still has to go in this step
    base: NDArray[np.float64]  #: [V, 3] where the vertex was at the beginning of the round
    target: NDArray[np.float64]  #: [V, 3] where it has to go
    recent: NDArray[np.float64]  #: [V] its largest displacement since speed classes were given
    vertex_tet: NDArray[np.int32]  #: [V] one of its tetrahedra; NOTHING if the vertex is not in the structure
    vertex_class: NDArray[np.uint8]  #: [V] speed class
    jumps: NDArray[np.bool_]  #: [V] whether it goes so far in this step that it is reinserted
    pending: NDArray[np.int32]  #: [V] the vertices that have not arrived, in no order
    tet_vertex: NDArray[np.int32]  #: [T, 4]; NOTHING in the first place if the tetrahedron is free
    tet_neighbour: NDArray[np.int32]  #: [T, 4] codes of the twin faces
    tet_opposite: NDArray[np.int32]  #: [T, 4] the vertices behind the faces, which certificates need
    tet_due: NDArray[np.float64]  #: [T] the travel of its class up to which it and the faces it watches cannot fail
    tet_class: NDArray[np.uint8]  #: [T] the highest class of its vertices and of those behind the faces it watches
    watches: NDArray[np.uint8]  #: [T] a bit for each face; each face is watched from one of its sides
    tet_stamp: NDArray[np.int64]  #: [T] scratch: which tetrahedra the present search has met
    face_mark: NDArray[np.int32]  #: [T, 4] scratch: the new tetrahedron behind a face of a cavity
    free_tets: NDArray[np.int32]  #: [T] a stack
    queue: NDArray[np.int32]  #: [4 T] a stack of faces to be tested
    in_queue: NDArray[np.uint8]  #: [T, 4]
    stuck: NDArray[np.int32]  #: [4 T] faces that failed and could not be flipped
    cavity: NDArray[np.int32]  #: [T] scratch: tetrahedra
    border: NDArray[np.int32]  #: [4 T] scratch: faces
    open_face: NDArray[np.int32]  #: [·, 9] scratch of deletion: see there
    fan: NDArray[np.int32]  #: [·, 9] scratch of deletion: see there
    link: NDArray[np.int32]  #: [·] scratch of deletion: the vertices around the deleted one
    travel: NDArray[np.float64]  #: [CLASSES] D: running sum of the largest displacement in a class and below
    counts: NDArray[np.int64]  #: [9] see the places above


def make_arrays(vertices: int, tets: int) -> TetraArrays:
    """Arrays of a structure without any vertex or tetrahedron."""
    arrays = TetraArrays(
        position=np.zeros((vertices, 4)),
        base=np.zeros((vertices, 3)),
        target=np.zeros((vertices, 3)),
        recent=np.zeros(vertices),
        vertex_tet=np.full(vertices, NOTHING, dtype=np.int32),
        vertex_class=np.zeros(vertices, dtype=np.uint8),
        jumps=np.zeros(vertices, dtype=np.bool_),
        pending=np.zeros(vertices, dtype=np.int32),
        tet_vertex=np.full((tets, 4), NOTHING, dtype=np.int32),
        tet_neighbour=np.full((tets, 4), NOTHING, dtype=np.int32),
        tet_opposite=np.full((tets, 4), NOTHING, dtype=np.int32),
        tet_due=np.full(tets, np.inf),
        tet_class=np.zeros(tets, dtype=np.uint8),
        watches=np.zeros(tets, dtype=np.uint8),
        tet_stamp=np.zeros(tets, dtype=np.int64),
        face_mark=np.zeros((tets, 4), dtype=np.int32),
        free_tets=np.arange(tets - 1, -1, -1, dtype=np.int32),
        queue=np.empty(4 * tets, dtype=np.int32),
        in_queue=np.zeros((tets, 4), dtype=np.uint8),
        stuck=np.empty(4 * tets, dtype=np.int32),
        cavity=np.empty(tets, dtype=np.int32),
        border=np.empty(4 * tets, dtype=np.int32),
        open_face=np.empty((_LARGEST_STAR, 9), dtype=np.int32),
        fan=np.empty((_LARGEST_STAR, 9), dtype=np.int32),
        link=np.empty(_LARGEST_STAR, dtype=np.int32),
        travel=np.zeros(CLASSES),
        counts=np.zeros(9, dtype=np.int64),
    )
    arrays.counts[FREE] = tets
    return arrays


def with_more_room(old: TetraArrays, vertices: int, tets: int) -> TetraArrays:
    """A copy with room for more vertices or tetrahedra."""
    new = make_arrays(vertices, tets)
    for name in old._fields:
        if name != "free_tets":
            source, copy = getattr(old, name), getattr(new, name)
            copy[: len(source)] = source
    held, more = int(old.counts[FREE]), tets - len(old.tet_vertex)
    new.free_tets[:more] = np.arange(tets - 1, len(old.tet_vertex) - 1, -1)
    new.free_tets[more : more + held] = old.free_tets[:held]
    new.counts[FREE] = more + held
    return new


def place_ghosts(arrays: TetraArrays, middle: NDArray[np.float64], distance: float) -> None:
    """Make the first tetrahedron, whose faces are at least `distance` away from the middle.

    It is turned out of the axes: a crowd on a lattice should see its corners in no special direction.
    """
    turn, _ = np.linalg.qr(np.array([[0.83, -0.31, 0.47], [0.29, 0.94, 0.11], [-0.53, 0.07, 0.85]]))
    corners = _REGULAR @ turn.T * (3.0 * distance) + middle
    if orientation_3d(*corners.ravel()) < 0:
        corners = corners[[1, 0, 2, 3]]
    arrays.position[:GHOSTS, :3] = corners
    arrays.position[:GHOSTS, 3] = 0.0
    arrays.base[:GHOSTS] = arrays.target[:GHOSTS] = corners
    first = take_tet(arrays)
    arrays.tet_vertex[first] = range(GHOSTS)
    arrays.tet_neighbour[first] = NOTHING
    arrays.vertex_tet[:GHOSTS] = first


def sort_tets(arrays: TetraArrays, key: NDArray[np.uint64]) -> None:
    """Number the tetrahedra by a key of their vertices, the free ones last; no face may be waiting for a test.

    Building leaves near tetrahedra far apart in memory, which made everything after it half as fast.
    """
    used = np.flatnonzero(arrays.tet_vertex[:, 0] != NOTHING)
    order = used[np.argsort(key[arrays.tet_vertex[used].max(axis=1)], kind="stable")]
    count, room = len(order), len(arrays.tet_vertex)
    number = np.empty(room, dtype=np.int32)
    number[order] = np.arange(count)
    twins = arrays.tet_neighbour[order]
    arrays.tet_neighbour[:count] = np.where(twins == NOTHING, NOTHING, 4 * number[twins >> 2] + (twins & 3))
    for column in (arrays.tet_vertex, arrays.tet_opposite, arrays.tet_due, arrays.tet_class, arrays.watches):
        column[:count] = column[order]
    arrays.tet_vertex[count:], arrays.tet_neighbour[count:], arrays.tet_due[count:] = NOTHING, NOTHING, np.inf
    inside = arrays.vertex_tet != NOTHING
    arrays.vertex_tet[inside] = number[arrays.vertex_tet[inside]]
    arrays.free_tets[: room - count] = np.arange(room - 1, count - 1, -1)
    arrays.in_queue[:] = 0
    arrays.counts[[QUEUED, STUCK]] = 0


@inlined_kernel
def take_tet(m):
    """A free tetrahedron, with certificates that the caller must renew."""
    m.counts[FREE] -= 1
    t = m.free_tets[m.counts[FREE]]
    m.tet_due[t] = -np.inf
    m.tet_class[t] = 0
    m.watches[t] = 0
    return t


@inlined_kernel
def release_tet(m, t):
    """Give a tetrahedron back. The queue may still hold its faces, and skips them unless the number is in use again."""
    m.tet_vertex[t, 0] = NOTHING
    m.tet_due[t] = np.inf
    m.free_tets[m.counts[FREE]] = t
    m.counts[FREE] += 1


@inlined_kernel
def glue(m, code, twin):
    """Make two faces twins, watched from the first; the twin may be NOTHING, behind the ghosts.

    Both tetrahedra must have their vertices. The first one's certificate expires.
    """
    t, k = code >> 2, code & 3
    m.tet_neighbour[t, k] = twin
    m.tet_due[t] = -np.inf
    if twin != NOTHING:
        n, n_k = twin >> 2, twin & 3
        m.tet_neighbour[n, n_k] = code
        m.tet_opposite[t, k] = m.tet_vertex[n, n_k]
        m.tet_opposite[n, n_k] = m.tet_vertex[t, k]
        m.watches[t] |= np.uint8(1 << k)
        m.watches[n] &= np.uint8(255 - (1 << n_k))
    else:
        m.watches[t] &= np.uint8(255 - (1 << k))


@inlined_kernel
def enqueue(m, code):
    """Have a face tested; nothing happens if it is in the queue already, so the queue cannot overflow."""
    t, k = code >> 2, code & 3
    if m.in_queue[t, k] == 0:
        m.in_queue[t, k] = 1
        m.queue[m.counts[QUEUED]] = code
        m.counts[QUEUED] += 1


@inlined_kernel
def enqueue_face(m, code):
    """Have a face tested, once if it is named from both sides; nothing happens behind the ghosts."""
    twin = m.tet_neighbour[code >> 2, code & 3]
    if twin != NOTHING:
        enqueue(m, min(code, twin))


@inlined_kernel
def place_in(m, t, v):
    """Which of its four vertices v is; 4 if none."""
    for k in range(4):
        if m.tet_vertex[t, k] == v:
            return k
    return 4


@inlined_kernel
def orientation_with(m, t, k, x, y, z):
    """The orientation of a tetrahedron whose vertex k is moved to a point: positive if both are on one side of face k.

    A k of 4 moves none.
    """
    p, v = m.position, m.tet_vertex
    a, b, c, d = v[t, 0], v[t, 1], v[t, 2], v[t, 3]
    ax, ay, az = p[a, 0], p[a, 1], p[a, 2]
    bx, by, bz = p[b, 0], p[b, 1], p[b, 2]
    cx, cy, cz = p[c, 0], p[c, 1], p[c, 2]
    dx, dy, dz = p[d, 0], p[d, 1], p[d, 2]
    if k == 0:
        ax, ay, az = x, y, z
    elif k == 1:
        bx, by, bz = x, y, z
    elif k == 2:
        cx, cy, cz = x, y, z
    elif k == 3:
        dx, dy, dz = x, y, z
    return orientation_3d(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz)


@inlined_kernel
def is_upright(m, t):
    """Whether a tetrahedron is positively oriented."""
    return orientation_with(m, t, 4, 0.0, 0.0, 0.0) > 0


@inlined_kernel
def in_sphere_of(m, t, x, y, z):
    """The side of a point and the sphere through a tetrahedron's vertices: +1 inside."""
    p, v = m.position, m.tet_vertex
    a, b, c, d = v[t, 0], v[t, 1], v[t, 2], v[t, 3]
    return in_sphere(
        *(p[a, 0], p[a, 1], p[a, 2], p[b, 0], p[b, 1], p[b, 2]),
        *(p[c, 0], p[c, 1], p[c, 2], p[d, 0], p[d, 1], p[d, 2]),
        *(x, y, z),
    )


@kernel
def gather_star(m, v):
    """Write the tetrahedra around a vertex to `cavity`, with a fresh stamp; returns how many."""
    m.counts[STAMP] += 1
    stamp = m.counts[STAMP]
    m.cavity[0] = m.vertex_tet[v]
    m.tet_stamp[m.cavity[0]] = stamp
    size, done = 1, 0
    while done < size:
        t = m.cavity[done]
        done += 1
        for k in range(4):
            if m.tet_vertex[t, k] != v and m.tet_neighbour[t, k] != NOTHING:
                other = m.tet_neighbour[t, k] >> 2
                if m.tet_stamp[other] != stamp:
                    m.tet_stamp[other] = stamp
                    m.cavity[size] = other
                    size += 1
    return size
