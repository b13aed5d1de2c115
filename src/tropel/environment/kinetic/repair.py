"""One step of the mesh: all vertices move to where they are now, and what that has broken is mended.

1. All vertices move.
2. Vertices of triangles that have turned over go back, until the mesh is a triangulation again.
3. They move again, one by one, after edges that they would cross have been flipped.
4. Edges that fail the in-circle test are flipped, and so are those around them.
5. Vertices that could not move try once more. Those that are still in the way of each other are taken out, all of them,
   and inserted where they belong.

Which triangles and edges steps 2 and 4 look at is what the three kinds of step differ in:

BY_CERTIFICATES   edges whose certificates are due; the others cannot have changed
ALL               all of them, without certificates: faster if many are due in every step
FEW               those around the vertices that have moved, if these are few; one moves after the other, so that there
                  is nothing to put back

Every loop is bounded; a mesh that cannot be mended is STUCK and has to be built anew.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel
from tropel.environment.kinetic.certificates import (
    PACES,
    expire_all,
    expire_touched,
    forget_touched,
    issue_touched,
    list_due,
)
from tropel.environment.kinetic.desk import REINSERTED, Desk
from tropel.environment.kinetic.in_the_way import FETCHED, fetch_around, make_way, move_waiting, reinsert, unfold
from tropel.environment.kinetic.looking import list_turned, look_around, look_at_all, look_at_due
from tropel.environment.kinetic.mesh import (
    DONE,
    GHOSTS,
    STUCK,
    Mesh,
    flip_until_delaunay,
    next_around,
)

#: Kinds of step.
BY_CERTIFICATES, ALL, FEW = 0, 1, 2

#: Vertices that have been slower than their class for this many steps get a lower one.
_CALM_STEPS = 20


@inlined_kernel
def _away(points, k, x, y):
    """How far a point is from (x, y) along an axis; infinite if it is nowhere."""
    dx, dy = abs(points[k, 0] - x), abs(points[k, 1] - y)
    # Not so for nan.
    return max(dx, dy) if dx + dy < np.inf else np.inf


@kernel
def farthest(points, x, y):
    """How far the farthest point is from (x, y) along an axis; infinite if one is nowhere."""
    away = 0.0
    for k in range(points.shape[0]):
        away = max(away, _away(points, k, x, y))
    return away


@kernel
def list_few(last, points, x, y, moved):
    """List the points that are elsewhere now; returns how many, -1 if there is no room, and how far from (x, y)."""
    count, away = 0, 0.0
    for k in range(points.shape[0]):
        if points[k, 0] != last[k, 0] or points[k, 1] != last[k, 1]:
            if count == moved.size:
                return -1, 0.0
            away = max(away, _away(points, k, x, y))
            moved[count] = k
            count += 1
    return count, away


@kernel
def mean_move(last, points):
    """How far those points that have moved went, on average [m]; 0 if none has."""
    movers, total = 0, 0.0
    for k in range(points.shape[0]):
        way2 = (points[k, 0] - last[k, 0]) ** 2 + (points[k, 1] - last[k, 1]) ** 2
        movers += way2 > 0.0
        total += math.sqrt(way2)
    return total / max(movers, 1)


@inlined_kernel
def _point_at(v, points, point_of, wall_ends):
    """Where a vertex is now: a point, or the end of a wall."""
    if point_of[v] >= 0:
        k = np.uint64(point_of[v])
        return points[k, 0], points[k, 1]
    end = np.uint64(v - np.uint64(GHOSTS))
    return wall_ends[end, 0], wall_ends[end, 1]


@kernel
def _move_by_class(mesh, desk, points, point_of, wall_ends, limits):
    """Move all vertices and measure how far, by class; the edges around vertices that change class become due."""
    for pace in range(PACES):
        desk.most[pace] = 0.0
    for k in range(GHOSTS, mesh.x.size):
        v = np.uint64(k)
        if mesh.star[v] < 0:
            continue
        x, y = mesh.x[v], mesh.y[v]
        desk.old_x[v], desk.old_y[v] = x, y
        pace = mesh.pace[v]
        move = 0.0
        now_x, now_y = _point_at(v, points, point_of, wall_ends)
        if now_x != desk.true_x[v] or now_y != desk.true_y[v]:
            desk.true_x[v], desk.true_y[v] = mesh.x[v], mesh.y[v] = now_x, now_y
            move = math.sqrt((now_x - x) ** 2 + (now_y - y) ** 2)
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
def _move_all(mesh, desk, points, point_of, wall_ends):
    for k in range(GHOSTS, mesh.x.size):
        v = np.uint64(k)
        if mesh.star[v] >= 0:
            desk.old_x[v], desk.old_y[v] = mesh.x[v], mesh.y[v]
            now_x, now_y = _point_at(v, points, point_of, wall_ends)
            # Those that stay may be slightly aside in the mesh.
            if now_x != desk.true_x[v] or now_y != desk.true_y[v]:
                desk.true_x[v], desk.true_y[v] = mesh.x[v], mesh.y[v] = now_x, now_y


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
def _settle_waiting(mesh, desk, waiting, report):
    """The last two attempts of vertices that could not move: once more, then anew."""
    if waiting > 0:
        waiting = move_waiting(mesh, desk, waiting)
    if waiting < 0:
        return STUCK
    report[REINSERTED] = waiting
    return reinsert(mesh, desk, waiting) if waiting > 0 else DONE


@kernel
def _declare_stirred_due(mesh, desk):
    """The edges around vertices that have moved since certificates were last looked at are due."""
    for v in range(GHOSTS, mesh.x.size):
        if desk.stirred[v]:
            desk.stirred[v] = 0
            if mesh.star[v] >= 0:
                _declare_due(mesh, v)


@kernel
def _advance_by_certificates(mesh, desk, points, point_of, wall_ends, travel, limits, is_certified, report):
    """Move all vertices to where they are now, and look at what is due; returns DONE or STUCK."""
    _declare_stirred_due(mesh, desk)
    _move_by_class(mesh, desk, points, point_of, wall_ends, limits)
    most = 0.0
    for pace in range(PACES):
        most = max(most, desk.most[pace])
        travel[pace] += most * (1.0 + 1e-9)
    if not is_certified:
        expire_all(mesh)
    due = list_due(mesh, travel, desk.due)
    waiting = unfold(mesh, desk, list_turned(mesh, desk, due))
    if waiting > 0:
        waiting = move_waiting(mesh, desk, waiting)
    if waiting < 0 or look_at_due(mesh, desk, due, travel, report) == STUCK:
        return STUCK
    if _settle_waiting(mesh, desk, waiting, report) == STUCK:
        return STUCK
    issue_touched(mesh, travel)
    return DONE


@kernel
def _advance_all(mesh, desk, points, point_of, wall_ends, report):
    """Move all vertices to where they are now, and look at everything; returns DONE or STUCK."""
    _move_all(mesh, desk, points, point_of, wall_ends)
    turned = look_at_all(mesh, desk, report)
    waiting = unfold(mesh, desk, turned) if turned >= 0 else -1
    if waiting < 0:
        return STUCK
    # Edges around vertices that went back have not been tested where these are now; `move_waiting` does, in any case.
    if waiting > 0:
        waiting = move_waiting(mesh, desk, waiting)
    if waiting < 0 or flip_until_delaunay(mesh) == STUCK:
        return STUCK
    if _settle_waiting(mesh, desk, waiting, report) == STUCK:
        return STUCK
    forget_touched(mesh)
    return DONE


@kernel
def _advance_few(mesh, desk, points, last, moved, vertices, is_certified, report):
    """Move the few points that have moved, one after the other; returns DONE or STUCK."""
    waiting = 0
    for n in range(moved.size):
        if n % FETCHED == 0:
            next_few = min(FETCHED, moved.size - n)
            for k in range(next_few):
                desk.turned[k] = vertices[moved[n + k]]
            fetch_around(mesh, desk, next_few)
        k = moved[n]
        v = vertices[k]
        last[k, 0], last[k, 1] = desk.true_x[v], desk.true_y[v] = points[k, 0], points[k, 1]
        desk.stirred[v] = 1
        if not make_way(mesh, desk, v):
            desk.waiting[waiting] = v
            waiting += 1
        if look_around(mesh, v, report) == STUCK:
            return STUCK
    if _settle_waiting(mesh, desk, waiting, report) == STUCK:
        return STUCK
    if is_certified:
        expire_touched(mesh)
    else:
        forget_touched(mesh)
    return DONE


@kernel
def advance(
    kind,
    mesh_arrays,
    desk_arrays,
    points,
    last,
    moved,
    vertices,
    point_of,
    wall_ends,
    travel,
    limits,
    is_certified,
    report,
):
    """Move vertices to where they are now, in a step of this kind; returns DONE or STUCK.

    `vertices` has the vertex of each point, and `point_of` the point of each vertex, -1 if it is none. If few points
    have moved, `moved` are these, and `last`, where points were before, is updated. `limits` [m] are the longest moves
    of the classes, the last infinite; `travel` and `report` are updated. `is_certified` tells whether all certificates
    are up to date.

    One kernel for all kinds, so that it is loaded before the first step of another kind. Mesh and desk come as plain
    tuples, which Numba takes over several times as fast as tuples with names.
    """
    mesh, desk = Mesh(*mesh_arrays), Desk(*desk_arrays)
    if kind == FEW:
        return _advance_few(mesh, desk, points, last, moved, vertices, is_certified, report)
    if kind == ALL:
        return _advance_all(mesh, desk, points, point_of, wall_ends, report)
    return _advance_by_certificates(mesh, desk, points, point_of, wall_ends, travel, limits, is_certified, report)
