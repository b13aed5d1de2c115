"""One step of the mesh: all vertices move to where they are now, and what that has broken is mended.

1. All vertices move.
2. Vertices of triangles that have turned over go back, until the mesh is a triangulation again.
3. They move again, one by one, after edges that they would cross have been flipped.
4. Edges that fail the in-circle test are flipped, and so are those around them.
5. Vertices that could not move try once more. Those that are still in the way of each other are taken out, all of them,
   and inserted where they belong.

Steps 2 and 4 look at edges whose certificates are due; the others cannot have changed. If many are due in every step,
it is faster to look at all of them and to issue no certificates.

Moving in small parts instead would not end where paths cross. Every loop is bounded; a mesh that cannot be mended is
STUCK and has to be built anew.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel
from tropel.environment.kinetic.certificates import PACES, expire_all, forget_touched, issue, issue_touched, list_due
from tropel.environment.kinetic.mesh import (
    DONE,
    GHOSTS,
    STUCK,
    Mesh,
    after,
    before,
    fails,
    flip,
    flip_until_delaunay,
    is_convex,
    is_upright,
    next_around,
    push,
    touch,
)
from tropel.environment.kinetic.vertices import MOST_AROUND, insert, remove
from tropel.environment.kinetic.walls import force_edge

#: Entries of a step's report: certificates looked at, and failed; vertices that were reinserted.
LOOKED_AT, FAILED, REINSERTED, REPORTED = 0, 1, 2, 3

#: Vertices that have been slower than their class for this many steps get a lower one.
_CALM_STEPS = 20
#: How many edges may be flipped to make way for a vertex before it is reinserted.
_MOST_FLIPS = 8


class Desk(NamedTuple):
    """Working memory for repairs."""

    old_x: NDArray[np.float64]  #: (V,): before the step
    old_y: NDArray[np.float64]
    seen_x: NDArray[np.float64]  #: (V,): where the vertex was said to be; it may be slightly aside in the mesh
    seen_y: NDArray[np.float64]
    stirred: NDArray[np.uint8]  #: (V,): whether it is one of few that move
    calm: NDArray[np.uint8]  #: (V,): steps in which it was slower than its class
    waiting: NDArray[np.int32]  #: (V,): vertices that went back
    recheck: NDArray[np.int32]  #: (V,)
    due: NDArray[np.int32]  #: half-edges
    turned: NDArray[np.int32]  #: half-edges of triangles that have turned over
    border: NDArray[np.int32]
    outside: NDArray[np.int32]
    walls: NDArray[np.uint8]
    cut: NDArray[np.int32]  #: (K, 2): constrained edges of vertices that are reinserted
    crossing: NDArray[np.int32]
    most: NDArray[np.float64]  #: (PACES,)


def new_desk(mesh: Mesh) -> Desk:
    vertices, half_edges = len(mesh.x), len(mesh.corner)
    old_x, old_y, seen_x, seen_y = (column.copy() for column in (mesh.x, mesh.y) * 2)
    return Desk(
        old_x=old_x,
        old_y=old_y,
        seen_x=seen_x,
        seen_y=seen_y,
        stirred=np.zeros(vertices, dtype=np.uint8),
        calm=np.zeros(vertices, dtype=np.uint8),
        waiting=np.zeros(vertices, dtype=np.int32),
        recheck=np.zeros(vertices, dtype=np.int32),
        due=np.zeros(half_edges, dtype=np.int32),
        turned=np.zeros(2 * half_edges, dtype=np.int32),
        border=np.zeros(MOST_AROUND, dtype=np.int32),
        outside=np.zeros(MOST_AROUND, dtype=np.int32),
        walls=np.zeros(MOST_AROUND, dtype=np.uint8),
        cut=np.zeros((half_edges, 2), dtype=np.int32),
        crossing=np.zeros(half_edges, dtype=np.int32),
        most=np.zeros(PACES),
    )


@kernel
def farthest(points, x, y):
    """How far the farthest point is from (x, y) along an axis; infinite if one is nowhere."""
    away = 0.0
    for k in range(points.shape[0]):
        here = max(abs(points[k, 0] - x), abs(points[k, 1] - y))
        # Neither comparison holds for nan.
        away = away if here <= away else (here if here > away else np.inf)
    return away


@kernel
def take_over(points, point_of, x, y):
    """Copy each vertex's point. Scattered reads are faster than scattered writes, so this goes by vertex."""
    for v in range(point_of.size):
        if point_of[v] >= 0:
            x[v], y[v] = points[point_of[v], 0], points[point_of[v], 1]


@kernel
def list_few(last, points, most, moved):
    """List the points that are elsewhere now; returns how many, or -1 if they are more than `most`."""
    count = 0
    for k in range(points.shape[0]):
        if points[k, 0] != last[k, 0] or points[k, 1] != last[k, 1]:
            if count == most:
                return -1
            moved[count] = k
            count += 1
    return count


@kernel
def take_over_few(points, moved, vertices, last, x, y, stirred):
    """Copy the points that have moved, and mark their vertices."""
    for n in range(moved.size):
        k = moved[n]
        v = vertices[k]
        last[k, 0], last[k, 1] = x[v], y[v] = points[k, 0], points[k, 1]
        stirred[v] = 1


@kernel
def _move_all(mesh, desk, now_x, now_y, limits, few):
    """Move all vertices and measure how far, by class; the edges around vertices that change class become due.

    If only a few move, these are marked, and the others are where they were before.
    """
    for pace in range(PACES):
        desk.most[pace] = 0.0
    for k in range(GHOSTS, mesh.x.size):
        v = np.uint64(k)
        if few and mesh.pace[v] == 0 and not desk.stirred[v]:
            continue
        desk.stirred[v] = 0
        x, y = mesh.x[v], mesh.y[v]
        desk.old_x[v], desk.old_y[v] = x, y
        if mesh.star[v] < 0:
            continue
        pace = mesh.pace[v]
        move = 0.0
        if now_x[v] != desk.seen_x[v] or now_y[v] != desk.seen_y[v]:
            desk.seen_x[v], desk.seen_y[v] = now_x[v], now_y[v]
            move = math.sqrt((now_x[v] - x) ** 2 + (now_y[v] - y) ** 2)
            mesh.x[v], mesh.y[v] = now_x[v], now_y[v]
        fits = pace
        if move > limits[pace]:
            while move > limits[fits]:
                fits += 1
        elif pace > 0 and move <= limits[pace - 1]:
            desk.calm[v] += 1
            if desk.calm[v] >= _CALM_STEPS:
                fits = pace - 1
        else:
            desk.calm[v] = 0
        if fits != pace:
            desk.calm[v] = 0
            mesh.pace[v] = fits
            _declare_due(mesh, k)
        desk.most[mesh.pace[v]] = max(desk.most[mesh.pace[v]], move)


@kernel
def _declare_due(mesh, v):
    """All edges that a vertex has a part in must be looked at."""
    first = mesh.star[v]
    h = first
    while True:
        for k in range(3 * (h // 3), 3 * (h // 3) + 3):
            if mesh.twin[k] >= 0:
                mesh.due[min(k, mesh.twin[k])] = -1.0
        h = next_around(mesh, h)
        if h == first or h < 0:
            break


@kernel
def _list_turned(mesh, desk, due):
    """List triangles beside edges that are due, by one of their half-edges, if they have turned over."""
    turned = 0
    for k in range(due):
        h = desk.due[k]
        if not is_upright(mesh, h):
            desk.turned[turned] = h
            turned += 1
        if not is_upright(mesh, mesh.twin[h]):
            desk.turned[turned] = mesh.twin[h]
            turned += 1
    return turned


@kernel
def _list_all_turned(mesh, desk):
    turned = 0
    for t in range(mesh.free.size):
        if mesh.corner[3 * t] >= 0 and not is_upright(mesh, 3 * t):
            desk.turned[turned] = 3 * t
            turned += 1
    return turned


@inlined_kernel
def _area_with_back(mesh, desk, h, back):
    """Twice the area of a triangle with one corner back at where it was."""
    a, b, c = mesh.corner[back], mesh.corner[after(back)], mesh.corner[before(back)]
    ux, uy = mesh.x[b] - desk.old_x[a], mesh.y[b] - desk.old_y[a]
    return ux * (mesh.y[c] - desk.old_y[a]) - uy * (mesh.x[c] - desk.old_x[a])


@kernel
def _turn_back(mesh, desk, h, waiting, rechecks):
    """Put corners of a triangle back to where they were until it is upright, first the one that helps most."""
    while not is_upright(mesh, h):
        best, area = np.int32(-1), -math.inf
        for corner in range(3 * (h // 3), 3 * (h // 3) + 3):
            v = mesh.corner[corner]
            if mesh.x[v] != desk.old_x[v] or mesh.y[v] != desk.old_y[v]:
                with_back = _area_with_back(mesh, desk, h, corner)
                if with_back > area or best < 0:
                    best, area = v, with_back
        if best < 0:
            return -1, 0
        mesh.x[best], mesh.y[best] = desk.old_x[best], desk.old_y[best]
        desk.waiting[waiting] = desk.recheck[rechecks] = best
        waiting += 1
        rechecks += 1
    return waiting, rechecks


@kernel
def _unfold(mesh, desk, turned):
    """Put back vertices of triangles that have turned over until none is.

    Returns how many went back, or -1 if the mesh was no triangulation before.
    """
    waiting = rechecks = 0
    for k in range(turned):
        waiting, rechecks = _turn_back(mesh, desk, desk.turned[k], waiting, rechecks)
        while rechecks > 0:
            rechecks -= 1
            first = mesh.star[desk.recheck[rechecks]]
            h = first
            while True:
                waiting, rechecks = _turn_back(mesh, desk, h, waiting, rechecks)
                if waiting < 0:
                    return -1
                h = next_around(mesh, h)
                if h == first or h < 0:
                    break
    return waiting


@kernel
def _look(mesh, desk, due, travel, report):
    """Test the edges that are due: flip those that fail, and issue new certificates for the others."""
    report[LOOKED_AT] += due
    for k in range(due):
        h = desk.due[k]
        # By now it may be another edge; flips have looked at that one, and the one that was here, already.
        if fails(mesh, h):
            report[FAILED] += 1
            if not push(mesh, h) or flip_until_delaunay(mesh) == STUCK:
                return STUCK
        elif not mesh.is_touched[h // 3]:
            issue(mesh, h, travel)
    return DONE


@kernel
def _look_at_all(mesh, report):
    """Test all edges and flip those that fail."""
    for h in range(mesh.corner.size):
        if h < mesh.twin[h]:
            report[LOOKED_AT] += 1
            if fails(mesh, h):
                report[FAILED] += 1
                if not push(mesh, h) or flip_until_delaunay(mesh) == STUCK:
                    return STUCK
    return DONE


@inlined_kernel
def _turned_around(mesh, v):
    """The half-edge of a vertex in a triangle around it that is not upright, -1 if all are."""
    first = mesh.star[v]
    h = first
    while True:
        if not is_upright(mesh, h):
            return h
        h = next_around(mesh, h)
        if h == first or h < 0:
            return np.int32(-1)


@kernel
def _note_around(mesh, v):
    """Touch all triangles around a vertex and put their edges on the stack."""
    first = mesh.star[v]
    h = first
    room = True
    while True:
        touch(mesh, h // 3)
        # The edge opposite to the vertex, and one of the two that it has in this triangle.
        room = room and push(mesh, h) and push(mesh, after(h))
        h = next_around(mesh, h)
        if h == first or h < 0:
            return room


@kernel
def _make_way(mesh, desk, v, x, y):
    """Move a vertex, after flipping the edges that it would cross; returns whether it could move."""
    for _ in range(_MOST_FLIPS):
        mesh.x[v], mesh.y[v] = x, y
        h = _turned_around(mesh, v)
        if h < 0:
            return True
        mesh.x[v], mesh.y[v] = desk.old_x[v], desk.old_y[v]
        if mesh.twin[h] < 0 or mesh.constrained[h] or not is_convex(mesh, h):
            return False
        flip(mesh, h)
    return False


@kernel
def _move_waiting(mesh, desk, now_x, now_y, waiting, settle):
    """Move those that can; returns how many cannot, moved to the front, or -1 if the mesh is stuck.

    If `settle`, the edges around them are made Delaunay, which otherwise must be done later.
    """
    blocked = 0
    for k in range(waiting):
        v = desk.waiting[k]
        if not _make_way(mesh, desk, v, now_x[v], now_y[v]):
            desk.waiting[blocked] = v
            blocked += 1
        if settle and not (_note_around(mesh, v) and flip_until_delaunay(mesh) == DONE):
            return -1
    return blocked


@kernel
def cut_walls(mesh, desk, v, cuts):
    """Make the constrained edges of a vertex ordinary ones and list them; returns how many there are now, or -1."""
    first = mesh.star[v]
    h = first
    while True:
        k = after(h)  # the edge from v to the corner before h
        if mesh.constrained[k]:
            if cuts == desk.cut.shape[0]:
                return -1
            desk.cut[cuts, 0], desk.cut[cuts, 1] = v, mesh.corner[before(h)]
            cuts += 1
            mesh.constrained[k] = mesh.constrained[mesh.twin[k]] = 0
        h = next_around(mesh, h)
        if h == first or h < 0:
            return cuts


@kernel
def _reinsert(mesh, desk, now_x, now_y, waiting):
    """Take vertices out and insert them where they belong; all at once, since they may swap places."""
    cuts = 0
    for k in range(waiting):
        v = desk.waiting[k]
        cuts = cut_walls(mesh, desk, v, cuts)
        if cuts < 0 or remove(mesh, v, desk.border, desk.outside, desk.walls) == STUCK:
            return STUCK
        if flip_until_delaunay(mesh) == STUCK:
            return STUCK
        # A vertex next to it, from which to search for its new place.
        desk.recheck[k] = desk.border[0]
    for k in range(waiting):
        v, beside = desk.waiting[k], desk.recheck[k]
        start = mesh.star[beside] if mesh.star[beside] >= 0 else mesh.star[0]
        if insert(mesh, v, now_x[v], now_y[v], start) == STUCK or flip_until_delaunay(mesh) == STUCK:
            return STUCK
    for k in range(cuts):
        if force_edge(mesh, desk.cut[k, 0], desk.cut[k, 1], desk.crossing) != DONE:
            return STUCK
    return DONE


@kernel
def advance(mesh, desk, now_x, now_y, travel, limits, few, is_certified, certify, report):
    """Move all vertices to where they are now; returns DONE or STUCK.

    `limits` [m] are the longest moves of the classes, the last infinite; `travel` and `report` are updated. `few` tells
    that all vertices that move are marked in `desk.stirred` and that those at rest are where the last step left them.
    `is_certified` tells whether the last step issued certificates, and `certify` whether this one shall.
    """
    for k in range(REPORTED):
        report[k] = 0
    _move_all(mesh, desk, now_x, now_y, limits, few)
    most = 0.0
    for pace in range(PACES):
        most = max(most, desk.most[pace])
        travel[pace] += most * (1.0 + 1e-9)
    if not is_certified and certify:
        expire_all(mesh)
    due = list_due(mesh, travel, desk.due) if certify else 0
    waiting = _unfold(mesh, desk, _list_turned(mesh, desk, due) if certify else _list_all_turned(mesh, desk))
    if waiting > 0:
        waiting = _move_waiting(mesh, desk, now_x, now_y, waiting, certify)
    if waiting < 0:
        return STUCK
    if (_look(mesh, desk, due, travel, report) if certify else _look_at_all(mesh, report)) == STUCK:
        return STUCK
    if waiting > 0:
        waiting = _move_waiting(mesh, desk, now_x, now_y, waiting, True)
        if waiting < 0:
            return STUCK
        report[REINSERTED] = waiting
        if waiting > 0 and _reinsert(mesh, desk, now_x, now_y, waiting) == STUCK:
            return STUCK
    if certify:
        issue_touched(mesh, travel)
    else:
        forget_touched(mesh)
    return DONE
