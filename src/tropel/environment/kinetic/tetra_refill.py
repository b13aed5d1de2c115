"""Filling a hole in the structure with the Delaunay tetrahedra of the vertices in it.

Deleting a vertex leaves the hole of the tetrahedra around it. Where faces are stuck, a hole is made on purpose. A hole
is filled from its faces inwards ("gift wrapping"): behind an open face goes the vertex on its inner side whose sphere
holds no other. New faces either close open ones or become open. When none is left, the tetrahedra fill the hole exactly
once: all are positively oriented and their outer faces are those of the hole. If the hole's faces are not Delaunay, or
points are cospherical, choices may contradict each other, and the filling does not close. Nothing has been changed by
then.

Rows of `open_face`: four vertices of which one place is empty (a vertex there on the inner side makes a positively
oriented tetrahedron); that place; the three vertices of the face, ascending; the face's other side. Rows of `fan`: the
vertices of a new tetrahedron, its neighbours, and its number in the end. Other sides are codes of faces, or -2 - code
for faces of `fan`.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.predicates_3d import in_sphere, orientation_3d
from tropel.environment.kinetic.tetra_arrays import (
    DONE,
    FREE,
    GAVE_UP,
    NO_ROOM,
    NOTHING,
    STAMP,
    STUCK,
    enqueue,
    gather_star,
    glue,
    release_tet,
    take_tet,
)
from tropel.environment.kinetic.tetra_certificates import cross, dot

#: Relative differences below this are left to exact predicates.
_DOUBT = 1e-7
#: Layers of tetrahedra around a stuck face to build anew; more than a few have never been needed.
_MOST_LAYERS = 9


@inlined_kernel
def _filled(m, face, v):
    """The vertices of an open face with v in the empty place."""
    place = face[4]
    return (
        v if place == 0 else face[0],
        v if place == 1 else face[1],
        v if place == 2 else face[2],
        v if place == 3 else face[3],
    )


@inlined_kernel
def _oriented(m, a, b, c, d):
    p = m.position
    return orientation_3d(
        *(p[a, 0], p[a, 1], p[a, 2], p[b, 0], p[b, 1], p[b, 2]),
        *(p[c, 0], p[c, 1], p[c, 2], p[d, 0], p[d, 1], p[d, 2]),
    )


@inlined_kernel
def _inside(m, a, b, c, d, e):
    p = m.position
    return in_sphere(
        *(p[a, 0], p[a, 1], p[a, 2], p[b, 0], p[b, 1], p[b, 2], p[c, 0], p[c, 1], p[c, 2]),
        *(p[d, 0], p[d, 1], p[d, 2], p[e, 0], p[e, 1], p[e, 2]),
    )


@inlined_kernel
def _write_open(m, row, a, b, c, d, place, other_side):
    face = m.open_face[row]
    face[0], face[1], face[2], face[3], face[4], face[8] = a, b, c, d, place, other_side
    x, y, z = (b, c, d) if place == 0 else (a, c, d) if place == 1 else (a, b, d) if place == 2 else (a, b, c)
    face[5], face[7] = min(x, y, z), max(x, y, z)
    face[6] = x + y + z - face[5] - face[7]


@kernel
def _open_hole(m, size, left_out):
    """Write the faces around the tetrahedra in `cavity`, which have the last stamp, and their vertices without one.

    Returns how many faces and vertices, or (0, 0) if there is no room.
    """
    stamp = m.counts[STAMP]
    faces, links = 0, 0
    for i in range(size):
        t = m.cavity[i]
        tet = m.tet_vertex[t]
        for k in range(4):
            twin = m.tet_neighbour[t, k]
            if twin == NOTHING or m.tet_stamp[twin >> 2] != stamp:
                if faces == m.open_face.shape[0]:
                    return 0, 0
                _write_open(m, faces, tet[0], tet[1], tet[2], tet[3], k, twin)
                faces += 1
            if tet[k] == left_out:
                continue
            known = False
            for q in range(links):
                if m.link[q] == tet[k]:
                    known = True
                    break
            if not known:
                if links == m.link.shape[0]:
                    return 0, 0
                m.link[links] = tet[k]
                links += 1
    return faces, links


@kernel
def _best_behind(m, face, links):
    """The vertex to put behind an open face; NOTHING if none is on its inner side.

    Spheres through the face have their centres on a line; the vertex whose sphere has the lowest centre, counted
    inwards, has an empty one. Rounded numbers choose, exact predicates decide what is in doubt.
    """
    p = m.position
    # The three vertices in the order in which their normal points inwards.
    if face[4] == 0:
        first, second, third = face[1], face[2], face[3]
    elif face[4] == 1:
        first, second, third = face[0], face[3], face[2]
    elif face[4] == 2:
        first, second, third = face[0], face[1], face[3]
    else:
        first, second, third = face[0], face[2], face[1]
    ox, oy, oz = p[first, 0], p[first, 1], p[first, 2]
    u = (p[second, 0] - ox, p[second, 1] - oy, p[second, 2] - oz)
    v = (p[third, 0] - ox, p[third, 1] - oy, p[third, 2] - oz)
    n = cross(u, v)
    nn, uu, vv = dot(n, n), dot(u, u), dot(v, v)
    vn, nu = cross(v, n), cross(n, u)
    # Twice the centre of the circle through the face.
    cx = (uu * vn[0] + vv * nu[0]) / nn
    cy = (uu * vn[1] + vv * nu[1]) / nn
    cz = (uu * vn[2] + vv * nu[2]) / nn
    best, lowest = NOTHING, math.inf
    for k in range(links):
        w = m.link[k]
        if w in (first, second, third):
            continue
        away = (p[w, 0] - ox, p[w, 1] - oy, p[w, 2] - oz)
        height, square = dot(away, n), dot(away, away)
        in_doubt = height * height <= _DOUBT * _DOUBT * nn * square
        if in_doubt:
            a, b, c, d = _filled(m, face, w)
            if _oriented(m, a, b, c, d) <= 0:
                continue
        elif height < 0.0:
            continue
        centre = (square - away[0] * cx - away[1] * cy - away[2] * cz) / height
        if best != NOTHING:
            if in_doubt or not abs(centre - lowest) > _DOUBT * (abs(centre) + abs(lowest)):
                a, b, c, d = _filled(m, face, best)
                if _inside(m, a, b, c, d, w) <= 0:
                    continue
            elif centre > lowest:
                continue
        best, lowest = w, centre
    return best


@kernel
def _fill_hole(m, faces, links):
    """Fill `fan` with the tetrahedra of the hole; returns how many, or 0 if the filling does not close."""
    opened, made = faces, 0
    bound = min(4 * (faces + links) + 64, m.fan.shape[0])
    while opened > 0:
        if made == bound:
            return 0
        opened -= 1
        face = m.open_face[opened]
        best = _best_behind(m, face, links)
        if best == NOTHING:
            return 0
        tet = m.fan[made]
        tet[0], tet[1], tet[2], tet[3] = _filled(m, face, best)
        place, other_side = face[4], face[8]
        for k in range(4):
            tet[4 + k] = NOTHING
        tet[4 + place] = other_side
        if other_side < NOTHING:
            code = -2 - other_side
            m.fan[code >> 2, 4 + (code & 3)] = -2 - (4 * made + place)
        for k in range(4):
            if k == place:
                continue
            # The face opposite vertex k, seen from its other side: two vertices change places.
            x, y = (k + 1) & 3, (k + 2) & 3
            tet[x], tet[y] = tet[y], tet[x]
            if opened == m.open_face.shape[0]:
                return 0
            _write_open(m, opened, tet[0], tet[1], tet[2], tet[3], k, -2 - (4 * made + k))
            tet[x], tet[y] = tet[y], tet[x]
            new = m.open_face[opened]
            match = NOTHING
            for row in range(opened):
                old = m.open_face[row]
                if old[5] == new[5] and old[6] == new[6] and old[7] == new[7]:
                    match = row
                    break
            if match == NOTHING:
                opened += 1
                continue
            old = m.open_face[match]
            a, b, c, d = _filled(m, old, tet[k])
            if _oriented(m, a, b, c, d) <= 0:
                return 0
            tet[4 + k] = old[8]
            if old[8] < NOTHING:
                code = -2 - old[8]
                m.fan[code >> 2, 4 + (code & 3)] = -2 - (4 * made + k)
            opened -= 1
            for column in range(9):
                m.open_face[match, column] = m.open_face[opened, column]
        made += 1
    return made


@kernel
def _uses_all(m, made, links):
    """Whether every vertex of the hole is in a new tetrahedron."""
    for q in range(links):
        m.vertex_tet[m.link[q]] = NOTHING
    for i in range(made):
        for k in range(4):
            m.vertex_tet[m.fan[i, k]] = 0
    missing = 0
    for q in range(links):
        missing += m.vertex_tet[m.link[q]] == NOTHING
    return missing == 0


@kernel
def _refill(m, size, left_out):
    """Replace the tetrahedra in `cavity`, which have the last stamp, by those of their vertices without one.

    The new faces join the queue.
    """
    faces, links = _open_hole(m, size, left_out)
    made = _fill_hole(m, faces, links)
    if faces == 0 or made == 0:
        return GAVE_UP
    if m.counts[FREE] + size < made:
        return NO_ROOM
    if not _uses_all(m, made, links):
        for i in range(size):
            for k in range(4):
                m.vertex_tet[m.tet_vertex[m.cavity[i], k]] = m.cavity[i]
        return GAVE_UP
    for i in range(size):
        release_tet(m, m.cavity[i])
    for i in range(made):
        m.fan[i, 8] = take_tet(m)
    for i in range(made):
        t = m.fan[i, 8]
        for k in range(4):
            m.tet_vertex[t, k] = m.fan[i, k]
            m.vertex_tet[m.fan[i, k]] = t
    for i in range(made):
        t = m.fan[i, 8]
        for k in range(4):
            other_side = m.fan[i, 4 + k]
            if other_side < NOTHING:
                code = -2 - other_side
                glue(m, 4 * t + k, 4 * m.fan[code >> 2, 8] + (code & 3))
            else:
                glue(m, 4 * t + k, other_side)
            enqueue(m, 4 * t + k)
    return DONE


@kernel
def delete_vertex(m, v):
    """Take a vertex out; the faces of the filled hole join the queue."""
    ended = _refill(m, gather_star(m, v), v)
    if ended == DONE:
        m.vertex_tet[v] = NOTHING
    return ended


@kernel
def _gather_around(m, t, layers):
    """Write a tetrahedron and those up to some layers around it to `cavity`, with a fresh stamp; returns how many."""
    m.counts[STAMP] += 1
    stamp = m.counts[STAMP]
    m.cavity[0] = t
    m.tet_stamp[t] = stamp
    size, done = 1, 0
    for _ in range(layers):
        end = size
        while done < end:
            for k in range(4):
                twin = m.tet_neighbour[m.cavity[done], k]
                if twin != NOTHING and m.tet_stamp[twin >> 2] != stamp:
                    m.tet_stamp[twin >> 2] = stamp
                    m.cavity[size] = twin >> 2
                    size += 1
            done += 1
    return size


@kernel
def refill_stuck(m):
    """Build the surroundings of the last stuck face anew, as far as it takes; then all stuck faces are tested again."""
    t = m.stuck[m.counts[STUCK] - 1] >> 2
    for layers in range(1, _MOST_LAYERS):
        ended = _refill(m, _gather_around(m, t, layers), NOTHING)
        if ended == NO_ROOM:
            return ended
        if ended == DONE:
            while m.counts[STUCK] > 0:
                m.counts[STUCK] -= 1
                enqueue(m, m.stuck[m.counts[STUCK]])
            return DONE
    return GAVE_UP
