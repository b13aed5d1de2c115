"""The passes of a step: move, put back what would invert tetrahedra, find what is due, reinsert what cannot move.

`position[v, 3]` is how far a vertex still has to go; vertices with 0 there have arrived.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import kernel
from tropel.environment.kinetic.tetra_arrays import (
    CLASSES,
    DONE,
    FAILED,
    GAVE_UP,
    GHOSTS,
    LOOKED,
    NOTHING,
    REINSERTIONS,
    enqueue,
    gather_star,
)
from tropel.environment.kinetic.tetra_certificates import certify_tet, cross, dot
from tropel.environment.kinetic.tetra_flips import restore_delaunay
from tropel.environment.kinetic.tetra_insert import insert_vertex
from tropel.environment.kinetic.tetra_refill import delete_vertex


@kernel
def _way_left(m, v):
    dx, dy, dz = m.target[v, 0] - m.position[v, 0], m.target[v, 1] - m.position[v, 1], m.target[v, 2] - m.position[v, 2]
    # Rounded up: certificates rely on it.
    return math.sqrt(dx * dx + dy * dy + dz * dz) * (1.0 + 1e-14)


@kernel
def _expire_star(m, v):
    for i in range(gather_star(m, v)):
        t = m.cavity[i]
        m.tet_due[t] = -math.inf
        for k in range(4):
            twin = m.tet_neighbour[t, k]
            if twin != NOTHING:
                low = min(4 * t + k, twin)
                m.face_due[low >> 2, low & 3] = -math.inf


@kernel
def _leaves_its_star(m, v, way):
    """Whether a vertex goes farther than to the nearest of those it shares edges with."""
    for i in range(gather_star(m, v)):
        for k in range(4):
            w = m.tet_vertex[m.cavity[i], k]
            dx, dy, dz = (
                m.position[w, 0] - m.position[v, 0],
                m.position[w, 1] - m.position[v, 1],
                m.position[w, 2] - m.position[v, 2],
            )
            if w != v and dx * dx + dy * dy + dz * dz < way * way:
                return True
    return False


@kernel
def begin_step(m, class_bound, fastest):
    """Measure how far everybody has to go, and let the travel of each speed class grow by it.

    A vertex faster than its class allows is moved to a higher one first, and the certificates around it expire: they
    were counted in the travel of its old class. `fastest` becomes the largest displacement in each class and below.
    Vertices that jump out of their surroundings are marked; they do not try to move but are reinserted.
    """
    fastest[:] = 0.0
    for v in range(GHOSTS, m.position.shape[0]):
        if m.vertex_tet[v] == NOTHING:
            continue
        way = _way_left(m, v)
        m.position[v, 3] = way
        m.recent[v] = max(m.recent[v], way)
        own = m.vertex_class[v]
        while way > class_bound[own]:
            own += 1
        if m.vertex_class[v] != own:
            m.vertex_class[v] = own
            _expire_star(m, v)
        fastest[own] = max(fastest[own], way)
        m.jumps[v] = own == CLASSES - 1 and _leaves_its_star(m, v, way)
    for k in range(CLASSES):
        if k > 0:
            fastest[k] = max(fastest[k], fastest[k - 1])
        if fastest[k] > 0.0:
            # Rounded up: creeping must add up even after a long way.
            m.travel[k] = (m.travel[k] + fastest[k]) * (1.0 + 4e-16)


@kernel
def move_pending(m, share):
    """Begin a round: move everybody who has not arrived by a share of what is left of the way."""
    for v in range(GHOSTS, m.position.shape[0]):
        for axis in range(3):
            m.base[v, axis] = m.position[v, axis]
        if m.position[v, 3] > 0.0 and not m.jumps[v]:
            for axis in range(3):
                step = share * (m.target[v, axis] - m.base[v, axis])
                m.position[v, axis] = m.target[v, axis] if share == 1.0 else m.base[v, axis] + step
            m.position[v, 3] = _way_left(m, v)


@kernel
def _put_back(m, v):
    for axis in range(3):
        m.position[v, axis] = m.base[v, axis]
    m.position[v, 3] = _way_left(m, v)


@kernel
def scan_tets(m):
    """Look at the tetrahedra that are due and write those that are inverted to `border`; returns how many."""
    inverted = 0
    for t in range(m.tet_vertex.shape[0]):
        if m.tet_due[t] < m.travel[m.tet_class[t]]:
            m.counts[LOOKED] += 1
            if not certify_tet(m, t):
                m.border[inverted] = t
                inverted += 1
    m.counts[FAILED] += inverted
    return inverted


@kernel
def scan_faces(m):
    """Put the faces that are due into the queue."""
    for t in range(m.tet_vertex.shape[0]):
        for k in range(4):
            if m.face_due[t, k] < m.travel[m.face_class[t, k]]:
                enqueue(m, 4 * t + k)


@kernel
def _corner(m, t, k, back):
    """Where vertex k of a tetrahedron is; `back` is the place of a vertex to be taken at its base."""
    v = m.tet_vertex[t, k]
    if k == back:
        return m.base[v, 0], m.base[v, 1], m.base[v, 2]
    return m.position[v, 0], m.position[v, 1], m.position[v, 2]


@kernel
def _volume_with_base(m, t, back):
    """Six times the volume of a tetrahedron with one vertex back at its base."""
    a, b, c, d = _corner(m, t, 0, back), _corner(m, t, 1, back), _corner(m, t, 2, back), _corner(m, t, 3, back)
    u = (a[0] - d[0], a[1] - d[1], a[2] - d[2])
    v = (b[0] - d[0], b[1] - d[1], b[2] - d[2])
    w = (c[0] - d[0], c[1] - d[1], c[2] - d[2])
    return dot(u, cross(v, w))


@kernel
def put_back_inverted(m, inverted):
    """Put vertices back to where the round began until no tetrahedron is inverted.

    Of a tetrahedron, the vertex that helps most goes back first. It ends: nobody goes back twice, and with all vertices
    back no tetrahedron was inverted.
    """
    while inverted > 0:
        inverted -= 1
        t = m.border[inverted]
        while not certify_tet(m, t):
            best, best_volume = NOTHING, -math.inf
            for k in range(4):
                v = m.tet_vertex[t, k]
                away = (
                    m.position[v, 0] != m.base[v, 0]
                    or m.position[v, 1] != m.base[v, 1]
                    or m.position[v, 2] != m.base[v, 2]
                )
                if away:
                    volume = _volume_with_base(m, t, k)
                    if volume > best_volume:
                        best, best_volume = v, volume
            if best == NOTHING:
                return GAVE_UP
            _put_back(m, best)
            for i in range(gather_star(m, best)):
                other = m.cavity[i]
                if other != t and not certify_tet(m, other):
                    if inverted == m.border.shape[0]:
                        return GAVE_UP
                    m.border[inverted] = other
                    inverted += 1
    return DONE


@kernel
def count_pending(m):
    """How many vertices have not arrived."""
    count = 0
    for v in range(GHOSTS, m.position.shape[0]):
        count += m.position[v, 3] > 0.0
    return count


@kernel
def reinsert(m, v):
    """Take a vertex out and insert it where it has to go. After NO_ROOM, call it again."""
    start = NOTHING
    if m.vertex_tet[v] != NOTHING:
        ended = delete_vertex(m, v)
        if ended != DONE:
            return ended
        start = m.vertex_tet[m.link[0]]
    for axis in range(3):
        m.position[v, axis] = m.base[v, axis] = m.target[v, axis]
    if start == NOTHING:
        start = m.vertex_tet[0]
    ended = insert_vertex(m, v, start)
    if ended == DONE:
        m.position[v, 3] = 0.0
        m.counts[REINSERTIONS] += 1
    return ended


@kernel
def reinsert_pending(m):
    """Reinsert everybody who has not arrived; each insertion needs a structure that is Delaunay."""
    for v in range(GHOSTS, m.position.shape[0]):
        if m.position[v, 3] > 0.0:
            ended = reinsert(m, v)
            if ended == DONE:
                ended = restore_delaunay(m, m.tet_vertex.shape[0])
            if ended != DONE:
                return ended
    return DONE
