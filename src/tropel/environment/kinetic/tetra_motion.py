"""The passes of a step: move, find what is due, put back what would invert tetrahedra, reinsert what cannot move.

`position[v, 3]` is how far a vertex still has to go; vertices with 0 there have arrived. Certificates are renewed in
one scan per step, after everybody has moved. Whatever a step changes after it is tested at once, and due in the next.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import kernel
from tropel.environment.kinetic.tetra_arrays import (
    CLASSES,
    DONE,
    FAILED,
    GAVE_UP,
    GHOSTS,
    LOOKED,
    NOTHING,
    PENDING,
    REINSERTIONS,
    enqueue_face,
    gather_star,
    is_upright,
    place_in,
)
from tropel.environment.kinetic.tetra_certificates import certify, cross, dot
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
    """Expire all certificates that depend on a vertex; returns how many tetrahedra around it are in `cavity`."""
    size = gather_star(m, v)
    for i in range(size):
        t = m.cavity[i]
        m.tet_due[t] = -math.inf
        twin = m.tet_neighbour[t, place_in(m, t, v)]
        if twin != NOTHING:
            m.tet_due[twin >> 2] = -math.inf
    return size


@kernel
def _test_star(m, v):
    """Expire all certificates that depend on a vertex and have all faces tested; returns how many are in `cavity`."""
    size = _expire_star(m, v)
    for i in range(size):
        for k in range(4):
            enqueue_face(m, 4 * m.cavity[i] + k)
    return size


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
def first_unplaceable(position, rows, farthest):
    """The first of the rows marked that is not at finite coordinates up to `farthest`, or NOTHING."""
    for row in range(rows.shape[0]):
        if rows[row]:
            for axis in range(3):
                if not abs(position[row, axis]) <= farthest:
                    return row
    return NOTHING


@kernel
def begin_step(m, position, nudge, nudges, middle, safe_radius, class_bound, fastest):
    """Aim everybody at their row of `position`, and let the travel of each speed class grow by the way to go.

    A vertex faster than its class allows is moved to a higher one first, and the certificates around it expire: they
    were counted in the travel of its old class. `fastest` becomes the largest displacement in each class and below.
    Vertices that jump out of their surroundings are marked; they do not try to move but are reinserted.
    Returns whether somebody has left the safe radius.
    """
    fastest[:] = 0.0
    pending = 0
    left = False
    classes_given = class_bound[CLASSES - 2] < math.inf
    for v in range(GHOSTS, m.position.shape[0]):
        if m.vertex_tet[v] == NOTHING:
            continue
        row = v - GHOSTS
        at_rest = True
        for axis in range(3):
            m.target[v, axis] = position[row, axis] + nudge * nudges[row, axis]
            at_rest &= m.target[v, axis] == m.position[v, axis]
        if at_rest:
            m.position[v, 3] = 0.0
            continue
        # Never zero: that would mean that it has arrived.
        way = max(_way_left(m, v), 1e-150)
        m.position[v, 3] = way
        m.pending[pending] = v
        pending += 1
        for axis in range(3):
            left |= abs(position[row, axis] - middle[axis]) > safe_radius
        m.recent[v] = max(m.recent[v], way)
        own = m.vertex_class[v]
        while way > class_bound[own]:
            own += 1
        if m.vertex_class[v] != own:
            m.vertex_class[v] = own
            _expire_star(m, v)
        fastest[own] = max(fastest[own], way)
        may_jump = way > class_bound[CLASSES - 2] or not classes_given
        m.jumps[v] = may_jump and _leaves_its_star(m, v, way)
    m.counts[PENDING] = pending
    for k in range(CLASSES):
        if k > 0:
            fastest[k] = max(fastest[k], fastest[k - 1])
        if fastest[k] > 0.0:
            # Rounded up: creeping must add up even after a long way.
            m.travel[k] = (m.travel[k] + fastest[k]) * (1.0 + 4e-16)
    return left


@kernel
def move_pending(m, share):
    """Begin a round: move everybody who has not arrived by a share of what is left of the way."""
    for i in range(m.counts[PENDING]):
        v = m.pending[i]
        for axis in range(3):
            m.base[v, axis] = m.position[v, axis]
        if not m.jumps[v]:
            for axis in range(3):
                step = share * (m.target[v, axis] - m.base[v, axis])
                m.position[v, axis] = m.target[v, axis] if share == 1.0 else m.base[v, axis] + step
            m.position[v, 3] = 0.0 if share == 1.0 else _way_left(m, v)


@kernel
def _put_back(m, v):
    for axis in range(3):
        m.position[v, axis] = m.base[v, axis]
    m.position[v, 3] = max(_way_left(m, v), 1e-150)


@kernel
def scan_due(m):
    """Look at the certificates that are due and write tetrahedra that are inverted to `border`; returns how many."""
    # First find them, in a loop that does nothing else: it goes through all.
    due = 0
    for t in range(np.uint64(m.tet_due.shape[0])):
        if m.tet_due[t] < m.travel[np.uint64(m.tet_class[t])]:
            m.cavity[due] = t
            due += 1
    inverted = 0
    for i in range(due):
        if not certify(m, m.cavity[i]):
            m.border[inverted] = m.cavity[i]
            inverted += 1
    m.counts[LOOKED] += due
    m.counts[FAILED] += inverted
    return inverted


@kernel
def scan_pending(m):
    """The same around those who have just been moved, and all faces there are tested. Their certificates expire."""
    inverted = 0
    for i in range(m.counts[PENDING]):
        v = m.pending[i]
        if not m.jumps[v]:
            for j in range(_test_star(m, v)):
                if not is_upright(m, m.cavity[j]) and inverted < m.border.shape[0]:
                    m.border[inverted] = m.cavity[j]
                    inverted += 1
    m.counts[FAILED] += inverted
    return inverted


@kernel
def move_and_scan(m, share, everywhere):
    """`move_pending`, then `scan_due`, or else `scan_pending`."""
    move_pending(m, share)
    return scan_due(m) if everywhere else scan_pending(m)


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
    """Put vertices back to where the round began until no tetrahedron is inverted; the faces around them are tested.

    Of a tetrahedron, the vertex that helps most goes back first. It ends: nobody goes back twice, and with all vertices
    back no tetrahedron was inverted.
    """
    while inverted > 0:
        inverted -= 1
        t = m.border[inverted]
        while not is_upright(m, t):
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
            for i in range(_test_star(m, best)):
                other = m.cavity[i]
                if other != t and not is_upright(m, other):
                    if inverted == m.border.shape[0]:
                        return GAVE_UP
                    m.border[inverted] = other
                    inverted += 1
    return DONE


@kernel
def drop_arrived(m):
    """End a round: those who have arrived are not pending any more; returns how many still are."""
    count = 0
    for i in range(m.counts[PENDING]):
        v = m.pending[i]
        if m.position[v, 3] > 0.0:
            m.pending[count] = v
            count += 1
        else:
            for axis in range(3):
                m.base[v, axis] = m.position[v, axis]
    m.counts[PENDING] = count
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
    while m.counts[PENDING] > 0:
        v = m.pending[m.counts[PENDING] - 1]
        if m.position[v, 3] > 0.0:
            ended = reinsert(m, v)
            if ended == DONE:
                ended = restore_delaunay(m, m.tet_vertex.shape[0])
            if ended != DONE:
                return ended
        m.counts[PENDING] -= 1
    return DONE
