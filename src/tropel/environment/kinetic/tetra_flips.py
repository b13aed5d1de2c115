"""Flips, and Lawson's loop that flips until every face passes the in-sphere test.

Let d and e be the vertices on the two sides of a face that fails. If their connection passes through the face, two
tetrahedra become three around it. If it passes outside one edge, and only three tetrahedra share that edge, these
become two. Otherwise the face is stuck until something near it has been flipped. Each flip lowers the surface over the
points lifted to a paraboloid, so the loop ends; lattices do too because a point on the sphere is not inside.
"""

from __future__ import annotations

from tropel._kernels.compile import kernel
from tropel.environment.kinetic.tetra_arrays import (
    DONE,
    FAILED,
    FLIPS,
    FREE,
    GAVE_UP,
    NO_ROOM,
    NOTHING,
    QUEUED,
    STUCK,
    enqueue,
    enqueue_face,
    glue,
    in_sphere_of,
    orientation_with,
    place_in,
    release_tet,
    take_tet,
)

_FLIPPED = 1
_UNFLIPPABLE = 0


@kernel
def _settle(m, t):
    """After a flip: the vertices know the new tetrahedron, and its faces wait for their tests.

    It is oriented, or the flip would not have been made; the next scan gives it a certificate if it still exists.
    """
    for k in range(4):
        m.vertex_tet[m.tet_vertex[t, k]] = t
        enqueue_face(m, 4 * t + k)


@kernel
def _two_to_three(m, t, k, n, n_k):
    """Replace both sides of a face by three tetrahedra around d–e, each t with a vertex of the face replaced by e."""
    e = m.tet_vertex[n, n_k]
    i, j, h = (k + 1) & 3, (k + 2) & 3, (k + 3) & 3
    vi, vj, vh = m.tet_vertex[t, i], m.tet_vertex[t, j], m.tet_vertex[t, h]
    outer_i, outer_j, outer_h = m.tet_neighbour[t, i], m.tet_neighbour[t, j], m.tet_neighbour[t, h]
    far_i = m.tet_neighbour[n, place_in(m, n, vi)]
    far_j = m.tet_neighbour[n, place_in(m, n, vj)]
    far_h = m.tet_neighbour[n, place_in(m, n, vh)]
    # What is near stays near in memory: both numbers are used again.
    second, third = n, take_tet(m)
    for q in range(4):
        m.tet_vertex[second, q] = m.tet_vertex[t, q]
        m.tet_vertex[third, q] = m.tet_vertex[t, q]
    m.tet_vertex[t, i] = e
    m.tet_vertex[second, j] = e
    m.tet_vertex[third, h] = e
    glue(m, 4 * t + i, outer_i)
    glue(m, 4 * t + k, far_i)
    glue(m, 4 * second + j, outer_j)
    glue(m, 4 * second + k, far_j)
    glue(m, 4 * third + h, outer_h)
    glue(m, 4 * third + k, far_h)
    glue(m, 4 * t + j, 4 * second + i)
    glue(m, 4 * t + h, 4 * third + i)
    glue(m, 4 * second + h, 4 * third + j)
    _settle(m, t)
    _settle(m, second)
    _settle(m, third)


@kernel
def _three_to_two(m, t, k, n, n_k, j):
    """Replace the three tetrahedra around an edge by two; j is the place of the face's vertex off that edge."""
    e = m.tet_vertex[n, n_k]
    x, y = (0, 0)
    for q in range(4):
        if q not in (k, j):
            x, y = y, q
    vx, vy = m.tet_vertex[t, x], m.tet_vertex[t, y]
    third = m.tet_neighbour[t, j] >> 2
    near_x, near_y = m.tet_neighbour[t, x], m.tet_neighbour[t, y]
    far_x, far_y = m.tet_neighbour[n, place_in(m, n, vx)], m.tet_neighbour[n, place_in(m, n, vy)]
    side_x, side_y = m.tet_neighbour[third, place_in(m, third, vx)], m.tet_neighbour[third, place_in(m, third, vy)]
    release_tet(m, third)
    for q in range(4):
        m.tet_vertex[n, q] = m.tet_vertex[t, q]
    m.tet_vertex[t, x] = e
    m.tet_vertex[n, y] = e
    glue(m, 4 * t + x, near_x)
    glue(m, 4 * t + k, far_x)
    glue(m, 4 * t + j, side_x)
    glue(m, 4 * n + y, near_y)
    glue(m, 4 * n + k, far_y)
    glue(m, 4 * n + j, side_y)
    glue(m, 4 * t + y, 4 * n + x)
    _settle(m, t)
    _settle(m, n)


@kernel
def _try_flip(m, t, k):
    twin = m.tet_neighbour[t, k]
    n, n_k = twin >> 2, twin & 3
    e = m.tet_vertex[n, n_k]
    x, y, z = m.position[e, 0], m.position[e, 1], m.position[e, 2]
    outside, reflex = 0, NOTHING
    for step in range(1, 4):
        j = (k + step) & 3
        side = orientation_with(m, t, j, x, y, z)
        if side == 0:
            return _UNFLIPPABLE  # the flip would make a flat tetrahedron
        if side < 0:
            outside += 1
            reflex = j
    if outside == 0:
        _two_to_three(m, t, k, n, n_k)
        return _FLIPPED
    if outside == 1 and m.tet_neighbour[t, reflex] != NOTHING:
        behind = m.tet_neighbour[n, place_in(m, n, m.tet_vertex[t, reflex])]
        if behind != NOTHING and m.tet_neighbour[t, reflex] >> 2 == behind >> 2:
            _three_to_two(m, t, k, n, n_k, reflex)
            return _FLIPPED
    return _UNFLIPPABLE


@kernel
def restore_delaunay(m, limit):
    """Test the faces in the queue and flip until all pass. Faces that fail and cannot be flipped are left in `stuck`.

    After NO_ROOM the queue holds what is left to do. More than `limit` flips are too many.
    """
    flips, flips_before = 0, -1
    while True:
        while m.counts[QUEUED] > 0:
            if m.counts[FREE] < 1:
                return NO_ROOM
            m.counts[QUEUED] -= 1
            code = m.queue[m.counts[QUEUED]]
            t, k = code >> 2, code & 3
            m.in_queue[t, k] = 0
            if m.tet_vertex[t, 0] == NOTHING or m.tet_neighbour[t, k] == NOTHING:
                continue
            e = m.tet_opposite[t, k]
            if in_sphere_of(m, t, m.position[e, 0], m.position[e, 1], m.position[e, 2]) <= 0:
                continue
            m.counts[FAILED] += 1
            if _try_flip(m, t, k) == _FLIPPED:
                m.counts[FLIPS] += 1
                flips += 1
                if flips > limit:
                    return GAVE_UP
            elif m.counts[STUCK] < m.stuck.shape[0]:
                m.stuck[m.counts[STUCK]] = code
                m.counts[STUCK] += 1
            else:
                return GAVE_UP
        if m.counts[STUCK] == 0 or flips == flips_before:
            return DONE
        # A flip may have freed them: an edge may have lost a tetrahedron that is on neither side of the face.
        flips_before = flips
        while m.counts[STUCK] > 0:
            m.counts[STUCK] -= 1
            enqueue(m, m.stuck[m.counts[STUCK]])
