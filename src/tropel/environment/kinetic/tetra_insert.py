"""Inserting a vertex: walk to its tetrahedron, then replace all whose sphere it is in (Bowyer and Watson).

With exact predicates and a structure that is Delaunay, every face of the cavity sees the new vertex strictly from
inside. While the structure is under repair that can fail; it is checked before anything is changed.
"""

from __future__ import annotations

from tropel._kernels.compile import inlined_kernel, kernel
from tropel.environment.kinetic.tetra_arrays import (
    DONE,
    FREE,
    GAVE_UP,
    NO_ROOM,
    NOTHING,
    STAMP,
    enqueue_face,
    glue,
    in_sphere_of,
    orientation_with,
    place_in,
    release_tet,
    take_tet,
)

_NOT_YET = NOTHING - 1


@kernel
def walk_to(m, start, x, y, z):
    """The tetrahedron that holds a point, found by walking from another; NOTHING if the walk does not end."""
    t, came_from = start, NOTHING
    for step in range(4 * m.tet_vertex.shape[0]):
        moved = False
        for turn in range(4):
            # Beginning with another face each time keeps the walk from circling where nothing is Delaunay yet.
            k = (turn + step) & 3
            twin = m.tet_neighbour[t, k]
            if (twin != NOTHING and twin >> 2 == came_from) or orientation_with(m, t, k, x, y, z) >= 0:
                continue
            if twin == NOTHING:
                return NOTHING  # outside the ghosts
            t, came_from = twin >> 2, t
            moved = True
            break
        if not moved:
            return t
    return NOTHING


@kernel
def _open_cavity(m, start, x, y, z):
    """Gather the tetrahedra whose sphere holds the point, and the faces around them; (0, 0) if it does not see them."""
    m.counts[STAMP] += 1
    stamp = m.counts[STAMP]
    m.cavity[0] = start
    m.tet_stamp[start] = stamp
    size, done, faces = 1, 0, 0
    while done < size:
        t = m.cavity[done]
        done += 1
        for k in range(4):
            twin = m.tet_neighbour[t, k]
            if twin != NOTHING:
                n = twin >> 2
                if m.tet_stamp[n] == stamp:
                    continue
                if m.tet_stamp[n] != -stamp:
                    if in_sphere_of(m, n, x, y, z) > 0:
                        m.tet_stamp[n] = stamp
                        m.cavity[size] = n
                        size += 1
                        continue
                    m.tet_stamp[n] = -stamp
            if orientation_with(m, t, k, x, y, z) <= 0:
                return 0, 0
            m.border[faces] = 4 * t + k
            faces += 1
    return size, faces


@inlined_kernel
def _behind_edge(m, t, k, j, stamp):
    """The cavity's face that meets its face (t, k) at the edge off the vertices k and j, found by turning around it."""
    first, second = NOTHING, NOTHING
    for q in range(4):
        if q not in (k, j):
            first, second = m.tet_vertex[t, q], first
    current, cross = t, j
    while True:
        twin = m.tet_neighbour[current, cross]
        a, b = place_in(m, current, first), place_in(m, current, second)
        if twin == NOTHING or m.tet_stamp[twin >> 2] != stamp:
            return 4 * current + cross, 6 - cross - a - b
        current = twin >> 2
        cross = 6 - (twin & 3) - place_in(m, current, first) - place_in(m, current, second)


@kernel
def insert_vertex(m, v, start):
    """Insert a vertex at its position, walking from tetrahedron `start`; its faces join the queue."""
    x, y, z = m.position[v, 0], m.position[v, 1], m.position[v, 2]
    found = walk_to(m, start, x, y, z)
    if found == NOTHING:
        return GAVE_UP
    for k in range(4):
        corner = m.tet_vertex[found, k]
        if m.position[corner, 0] == x and m.position[corner, 1] == y and m.position[corner, 2] == z:
            return GAVE_UP
    size, faces = _open_cavity(m, found, x, y, z)
    if size == 0:
        return GAVE_UP
    if m.counts[FREE] < faces:
        return NO_ROOM
    stamp = m.counts[STAMP]
    for f in range(faces):
        t, k = m.border[f] >> 2, m.border[f] & 3
        new = take_tet(m)
        for q in range(4):
            m.tet_vertex[new, q] = m.tet_vertex[t, q]
            m.tet_neighbour[new, q] = _NOT_YET
        m.tet_vertex[new, k] = v
        m.face_mark[t, k] = new
    for f in range(faces):
        t, k = m.border[f] >> 2, m.border[f] & 3
        new = m.face_mark[t, k]
        for j in range(4):
            if j != k and m.tet_neighbour[new, j] == _NOT_YET:
                face, place = _behind_edge(m, t, k, j, stamp)
                glue(m, 4 * new + j, 4 * m.face_mark[face >> 2, face & 3] + place)
    for f in range(faces):
        t, k = m.border[f] >> 2, m.border[f] & 3
        new = m.face_mark[t, k]
        glue(m, 4 * new + k, m.tet_neighbour[t, k])
        for q in range(4):
            m.vertex_tet[m.tet_vertex[new, q]] = new
            enqueue_face(m, 4 * new + q)
    for i in range(size):
        release_tet(m, m.cavity[i])
    return DONE


@kernel
def insert_many(m, order, begin):
    """Insert vertices at their targets, one after another; returns how many are in and how it ended."""
    hint = m.vertex_tet[0]
    for place in range(begin, order.shape[0]):
        v = order[place]
        for axis in range(3):
            m.position[v, axis] = m.base[v, axis] = m.target[v, axis]
        m.position[v, 3] = 0.0
        ended = insert_vertex(m, v, hint)
        if ended != DONE:
            return place, ended
        hint = m.vertex_tet[v]
    return order.shape[0], DONE
