"""One step of the mesh: all vertices move to where they are now, and what that has broken is mended.

1. All vertices move. Edges whose certificates are due are looked at, the others cannot have changed.
2. The vertices of triangles that have turned over go back, until the mesh is a triangulation again.
3. Edges that fail the in-circle test are flipped.
4. Vertices that went back move now, if their triangles allow it. Those that are still in the way of each other are
   taken out, all of them, and inserted where they belong.

Moving in small parts instead would not end where paths cross. Every loop is bounded; a mesh that cannot be mended is
STUCK and has to be built anew.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel
from tropel.environment.kinetic.certificates import PACES, issue, issue_touched, list_due
from tropel.environment.kinetic.mesh import (
    DONE,
    GHOSTS,
    STUCK,
    Mesh,
    after,
    before,
    fails,
    flip_until_delaunay,
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
#: How often vertices that went back try to move before they are reinserted.
_TRIES = 3


class Desk(NamedTuple):
    """Working memory for repairs."""

    old_x: NDArray[np.float64]  #: (V,): before the step
    old_y: NDArray[np.float64]
    to_x: NDArray[np.float64]  #: (V,): after the step
    to_y: NDArray[np.float64]
    seen_x: NDArray[np.float64]  #: (V,): where the vertex was said to be; it may be slightly aside in the mesh
    seen_y: NDArray[np.float64]
    calm: NDArray[np.uint8]  #: (V,): steps in which it was slower than its class
    is_back: NDArray[np.uint8]  #: (V,)
    waiting: NDArray[np.int32]  #: (V,): vertices that went back
    recheck: NDArray[np.int32]  #: (V,)
    due: NDArray[np.int32]  #: half-edges
    border: NDArray[np.int32]
    outside: NDArray[np.int32]
    walls: NDArray[np.uint8]
    cut: NDArray[np.int32]  #: (K, 2): constrained edges of vertices that are reinserted
    crossing: NDArray[np.int32]
    most: NDArray[np.float64]  #: (PACES,)


def new_desk(mesh: Mesh) -> Desk:
    vertices, half_edges = len(mesh.x), len(mesh.corner)
    old_x, old_y, to_x, to_y, seen_x, seen_y = (column.copy() for column in (mesh.x, mesh.y) * 3)
    return Desk(
        old_x=old_x,
        old_y=old_y,
        to_x=to_x,
        to_y=to_y,
        seen_x=seen_x,
        seen_y=seen_y,
        calm=np.zeros(vertices, dtype=np.uint8),
        is_back=np.zeros(vertices, dtype=np.uint8),
        waiting=np.zeros(vertices, dtype=np.int32),
        recheck=np.zeros(vertices, dtype=np.int32),
        due=np.zeros(half_edges, dtype=np.int32),
        border=np.zeros(MOST_AROUND, dtype=np.int32),
        outside=np.zeros(MOST_AROUND, dtype=np.int32),
        walls=np.zeros(MOST_AROUND, dtype=np.uint8),
        cut=np.zeros((half_edges, 2), dtype=np.int32),
        crossing=np.zeros(half_edges, dtype=np.int32),
        most=np.zeros(PACES),
    )


@kernel
def _move_all(mesh, desk, now_x, now_y, limits):
    """Move all vertices and measure how far, by class; the edges around vertices that change class become due."""
    for pace in range(PACES):
        desk.most[pace] = 0.0
    for v in range(GHOSTS, mesh.x.size):
        x, y = mesh.x[v], mesh.y[v]
        desk.old_x[v], desk.old_y[v] = x, y
        desk.to_x[v], desk.to_y[v] = x, y
        if mesh.star[v] < 0:
            continue
        pace = mesh.pace[v]
        move = 0.0
        if now_x[v] != desk.seen_x[v] or now_y[v] != desk.seen_y[v]:
            desk.to_x[v], desk.to_y[v] = now_x[v], now_y[v]
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
            _declare_due(mesh, v)
        desk.most[mesh.pace[v]] = max(desk.most[mesh.pace[v]], move)


@kernel
def _declare_due(mesh, v):
    """All edges that a vertex has a part in must be looked at."""
    first = mesh.star[v]
    h = first
    while True:
        for k in range(3 * (h // 3), 3 * (h // 3) + 3):
            mesh.due[k] = -1.0
            if mesh.twin[k] >= 0:
                mesh.due[mesh.twin[k]] = -1.0
        h = next_around(mesh, h)
        if h == first or h < 0:
            break


@inlined_kernel
def _go_back(mesh, desk, v, waiting, rechecks):
    """Put a vertex back to where it was, once."""
    if not desk.is_back[v] and (desk.to_x[v] != desk.old_x[v] or desk.to_y[v] != desk.old_y[v]):
        mesh.x[v], mesh.y[v] = desk.old_x[v], desk.old_y[v]
        desk.is_back[v] = 1
        desk.waiting[waiting] = v
        desk.recheck[rechecks] = v
        return waiting + 1, rechecks + 1
    return waiting, rechecks


@kernel
def _unfold(mesh, desk, due):
    """Put back vertices of triangles that have turned over, until none is; returns how many."""
    waiting = rechecks = 0
    for k in range(due):
        for side in range(2):
            h = desk.due[k] if side == 0 else mesh.twin[desk.due[k]]
            if not is_upright(mesh, h):
                for corner in range(3 * (h // 3), 3 * (h // 3) + 3):
                    waiting, rechecks = _go_back(mesh, desk, mesh.corner[corner], waiting, rechecks)
        while rechecks > 0:
            rechecks -= 1
            first = mesh.star[desk.recheck[rechecks]]
            h = first
            while True:
                if not is_upright(mesh, h):
                    for corner in range(3 * (h // 3), 3 * (h // 3) + 3):
                        waiting, rechecks = _go_back(mesh, desk, mesh.corner[corner], waiting, rechecks)
                h = next_around(mesh, h)
                if h == first or h < 0:
                    break
    return waiting


@kernel
def _look(mesh, desk, due, travel, report):
    """Test the edges that are due. Returns STUCK if there is no room to note those that fail."""
    for k in range(due):
        h = desk.due[k]
        report[LOOKED_AT] += 1
        if fails(mesh, h):
            report[FAILED] += 1
            # It is issued again when the triangles are.
            mesh.due[h] = mesh.due[mesh.twin[h]] = np.inf
            if not push(mesh, h):
                return STUCK
            touch(mesh, h // 3)
        else:
            issue(mesh, h, travel)
    return flip_until_delaunay(mesh)


@kernel
def _fits(mesh, v):
    """Whether all triangles around a vertex are upright."""
    first = mesh.star[v]
    h = first
    while True:
        if not is_upright(mesh, h):
            return False
        h = next_around(mesh, h)
        if h == first:
            return True
        if h < 0:
            return True


@kernel
def _note_around(mesh, v):
    """Touch all triangles around a vertex and put their edges on the stack."""
    first = mesh.star[v]
    h = first
    room = True
    while True:
        touch(mesh, h // 3)
        room = room and push(mesh, h) and push(mesh, after(h)) and push(mesh, before(h))
        h = next_around(mesh, h)
        if h == first or h < 0:
            return room


@kernel
def _move_waiting(mesh, desk, waiting):
    """Move those that can; returns how many cannot, moved to the front, or -1 if the mesh is stuck."""
    for _ in range(_TRIES):
        blocked = 0
        for k in range(waiting):
            v = desk.waiting[k]
            mesh.x[v], mesh.y[v] = desk.to_x[v], desk.to_y[v]
            if _fits(mesh, v):
                if not _note_around(mesh, v) or flip_until_delaunay(mesh) == STUCK:
                    return -1
            else:
                mesh.x[v], mesh.y[v] = desk.old_x[v], desk.old_y[v]
                desk.waiting[blocked] = v
                blocked += 1
        if blocked == 0 or blocked == waiting:
            return blocked
        waiting = blocked
    return waiting


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
def _reinsert(mesh, desk, waiting):
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
        if insert(mesh, v, desk.to_x[v], desk.to_y[v], start) == STUCK or flip_until_delaunay(mesh) == STUCK:
            return STUCK
    for k in range(cuts):
        if force_edge(mesh, desk.cut[k, 0], desk.cut[k, 1], desk.crossing) != DONE:
            return STUCK
    return DONE


@kernel
def advance(mesh, desk, now_x, now_y, travel, limits, report):
    """Move all vertices to where they are now; returns DONE or STUCK.

    `limits` [m] are the longest moves of the classes, the last infinite; `travel` and `report` are updated.
    """
    for k in range(REPORTED):
        report[k] = 0
    _move_all(mesh, desk, now_x, now_y, limits)
    most = 0.0
    for pace in range(PACES):
        most = max(most, desk.most[pace])
        travel[pace] += most * (1.0 + 1e-9)
    due = list_due(mesh, travel, desk.due)
    waiting = _unfold(mesh, desk, due)
    if _look(mesh, desk, due, travel, report) == STUCK:
        return STUCK
    for k in range(waiting):
        desk.is_back[desk.waiting[k]] = 0
    if waiting > 0:
        waiting = _move_waiting(mesh, desk, waiting)
        if waiting < 0:
            return STUCK
        report[REINSERTED] = waiting
        if waiting > 0 and _reinsert(mesh, desk, waiting) == STUCK:
            return STUCK
    issue_touched(mesh, travel)
    return DONE
