"""A triangulation of points that move, come and go among walls: the arrays of `mesh.py` with names for its vertices."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import are_equal
from tropel.agents.state import Floats
from tropel.environment.kinetic.certificates import PACES, issue_touched
from tropel.environment.kinetic.desk import LOOKED_AT, REPORTED, new_desk
from tropel.environment.kinetic.mesh import FLIPS, GHOSTS, STUCK, Mesh, flip_until_delaunay, new_mesh
from tropel.environment.kinetic.numbering import along_a_curve, number_triangles
from tropel.environment.kinetic.repair import ALL, BY_CERTIFICATES, FEW, advance, farthest, list_few, mean_move
from tropel.environment.kinetic.report import MeshReport
from tropel.environment.kinetic.vertices import insert, insert_all, most_aside, remove
from tropel.environment.kinetic.walls import CROSSES, MEETS, force_edge, release_edge
from tropel.errors import GeometryError, ModelError

Ids = NDArray[np.int64]

#: Entries of what a step took, after those of its report (`desk.py`).
_FLIPS, _REBUILDS, _TOLD = REPORTED, REPORTED + 1, REPORTED + 2

#: Ghosts are this many times as far from the middle as the farthest point; points may go half as far.
_GHOSTS_AWAY = 16.0
#: Room for more points than there are, as a share of them and at least.
_MORE, _LEAST_MORE = 0.25, 64
#: The longest moves of the speed classes, in units of the mean move of those who move, and how often that is measured.
_SLOW, _FAST = 2.0, 8.0
_MEASURED_EVERY = 32
#: If a smaller share of the points moves, only these are looked at.
_FEW = 1 / 8
#: Certificates pay if less than this share of them is due in a step. Once the shares above that add up to the second
#: number, so many steps do without certificates, and twice as many each further time, up to the last number.
_WORTHWHILE, _LOSS, _UNCERTIFIED_STEPS, _MOST_UNCERTIFIED = 0.1, 1.0, 24, 384
#: They are tried again at once if points move less than this share of how far they moved when certificates did not pay.
_SLOWER = 0.5


class MovingMesh:
    """Keeps a (constrained) Delaunay triangulation of points with ids, in a plane, up to date.

    `walls` (W, 4) are segments that are edges of the triangulation while they are closed. They may share end points,
    but not cross. Points that coincide with another one or lie on a wall are up to a few 1e-8 m aside in the mesh.
    """

    def __init__(self, walls: Floats | None = None) -> None:
        segments = np.empty((0, 4)) if walls is None else np.ascontiguousarray(walls, dtype=np.float64)
        ends, pairs = np.unique(segments.reshape(-1, 2), axis=0, return_inverse=True)
        self.wall_ends: Floats = ends
        #: (W, 2): the vertices of each wall
        self.wall_vertices: NDArray[np.int32] = (pairs.reshape(-1, 2) + GHOSTS).astype(np.int32)
        self.closed: NDArray[np.bool_] = np.ones(len(segments), dtype=np.bool_)
        self._last, self._total = (np.zeros(_TOLD, dtype=np.int64) for _ in range(2))
        self._ids: Ids = np.empty(0, dtype=np.int64)  #: in the order in which they were given
        self._slots: NDArray[np.int32] = np.empty(0, dtype=np.int32)  #: the vertices of these ids
        self._steps = 0
        self._points: Floats  #: where the points were in the last step, in the order of their ids
        self._limits: Floats  #: longest moves of the speed classes
        self._move = 0.0  #: how far points move in a step, on average of those that do [m]
        self._walls_away: float  #: how far the farthest end of a wall is from the middle, along an axis [m]
        self._is_settled: bool  #: whether nothing but the last step has moved vertices
        self._is_certified: bool  #: whether all certificates are up to date
        self._uncertified: int  #: steps to go without certificates
        self._losses: int  #: how often in a row certificates did not pay
        self._loss: float  #: what certificates have cost more than they gained of late
        self._lost_at: float  #: how far points moved when certificates did not pay [m]
        self._allocate(0, np.zeros((0, 2)))

    # Queries ----------------------------------------------------------------------------------------------------

    @property
    def mesh(self) -> Mesh:
        return self._mesh

    @property
    def ids(self) -> Ids:
        """The points; another array whenever some have come or gone."""
        return self._ids

    @property
    def last(self) -> MeshReport:
        """What the last step took."""
        return self._told(self._last)

    @property
    def total(self) -> MeshReport:
        """What all steps took so far."""
        return self._told(self._total)

    def _told(self, counts: NDArray[np.int64]) -> MeshReport:
        looked_at, failed, reinserted, flips, rebuilds = counts.tolist()
        return MeshReport(
            certificates=self._certificates() if self._total[_REBUILDS] else 0,
            looked_at=looked_at,
            failed=failed,
            flips=flips,
            reinserted=reinserted,
            rebuilds=rebuilds,
        )

    @property
    def true_positions(self) -> tuple[Floats, Floats]:
        """Where the points really are, by vertex [m]; nan for vertices that are not in use."""
        return self._desk.true_x, self._desk.true_y

    @property
    def travel(self) -> Floats:
        """How far the vertices of each class of speed, and of lower ones, have gone at most so far [m]."""
        return self._travel

    @property
    def slack(self) -> float:
        """How far apart two points may be in the mesh from what they really are [m], at most."""
        return 4.0 * most_aside(float(np.abs(self._middle).max()) + self._away)

    @property
    def breadth(self) -> float:
        """No two points are farther apart than this [m]."""
        return 2.0 * self._away

    @property
    def first_point(self) -> int:
        """Vertices below this one are ghosts and ends of walls."""
        return GHOSTS + len(self.wall_ends)

    def vertices_of(self, ids: Ids) -> NDArray[np.int32]:
        """The vertices of these points, which must be part of the mesh."""
        if are_equal(ids, self._ids[: len(ids)]):
            return self._slots[: len(ids)]
        order = np.argsort(self._ids)
        place = np.minimum(np.searchsorted(self._ids, ids, sorter=order), max(len(order) - 1, 0))
        if not len(order) or not np.array_equal(self._ids[order[place]], ids):
            raise ModelError("some of these points are not part of the mesh")
        return self._slots[order[place]]

    def triangles(self) -> NDArray[np.int32]:
        """(T, 3): the vertices of all triangles, without those that have a ghost as a corner."""
        corners = self._mesh.corner.reshape(-1, 3)
        return corners[(corners >= GHOSTS).all(axis=1)]

    # Changes ----------------------------------------------------------------------------------------------------

    def update(self, ids: Ids, points: Floats) -> None:
        """The points are these now: some have moved, some are new, and some are gone."""
        is_same = are_equal(ids, self._ids)
        few = self._few_of(points) if is_same and self._is_settled else None
        if few is None and (len(ids) > self._room or max(self._check(points), self._walls_away) > 0.5 * self._away):
            self._build(ids, points)
            return
        self._last[:] = 0
        flips = int(self._mesh.counts[FLIPS])
        if not (is_same or self._come_and_go(ids, points)) or not self._advance(points, few):
            self._build(ids, points)
            return
        self._last[_FLIPS] = int(self._mesh.counts[FLIPS]) - flips
        self._total += self._last

    def set_walls(self, closed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Open and close walls, such as doors, without building anything anew. Returns those that have changed."""
        changed = np.flatnonzero(closed != self.closed)
        for wall in changed.tolist():
            self.closed[wall] = closed[wall]
            self._set_wall(wall)
        if len(changed):
            self._is_settled = False
            issue_touched(self._mesh, self._travel)
        return changed

    def move_walls(self, segments: Floats) -> None:
        """Walls are here now, with the same ends in common as before; `update` moves them, together with the points."""
        ends = self.wall_ends.copy()
        ends[self.wall_vertices - GHOSTS] = np.asarray(segments, dtype=np.float64).reshape(-1, 2, 2)
        away = self._check(ends)
        if not np.array_equal(ends[self.wall_vertices - GHOSTS].reshape(-1, 4), segments):
            raise GeometryError("walls that share an end must share it after they have moved")
        self.wall_ends = ends
        self._is_settled, self._walls_away = False, away

    def _set_wall(self, wall: int) -> None:
        a, b = self.wall_vertices[wall]
        if not self.closed[wall]:
            # Another wall may run along the same edge.
            same = np.sort(self.wall_vertices, axis=1) == sorted((a, b))
            if not self.closed[same.all(axis=1)].any() and release_edge(self._mesh, a, b) == STUCK:
                raise ModelError(f"wall {wall} is not in the mesh")
            return
        while (outcome := force_edge(self._mesh, a, b, self._desk.crossing)) == MEETS:
            self._step_aside(a, b, wall)
        if outcome != 0:
            what = "crosses another wall" if outcome == CROSSES else "cannot be put into the mesh"
            (x0, y0), (x1, y1) = self.wall_ends[[a - GHOSTS, b - GHOSTS]].tolist()
            raise GeometryError(
                f"the wall from ({x0:g}, {y0:g}) to ({x1:g}, {y1:g}) {what}; split walls where they meet"
            )

    def _step_aside(self, a: int, b: int, wall: int) -> None:
        """Move the points exactly on a wall off it, by very little."""
        mesh = self._mesh
        ax, ay, bx, by = mesh.x[a], mesh.y[a], mesh.x[b], mesh.y[b]
        length = math.hypot(bx - ax, by - ay)
        away = np.abs((bx - ax) * (mesh.y - ay) - (by - ay) * (mesh.x - ax)) / length
        along = ((bx - ax) * (mesh.x - ax) + (by - ay) * (mesh.y - ay)) / length
        tiny = 1e-9 * max(1.0, 1e-3 * float(np.abs(self.wall_ends).max()))
        on = np.flatnonzero((away < tiny) & (along > 0.0) & (along < length) & (mesh.star >= 0))
        on = on[on >= self.first_point]
        if not len(on):
            raise GeometryError(f"wall {wall} runs through the end of another wall; split walls where they meet")
        for v in on.tolist():
            x, y = mesh.x[v], mesh.y[v]
            if remove(mesh, v, self._desk.border, self._desk.outside, self._desk.walls) == STUCK:
                raise ModelError(f"the point at ({x:g}, {y:g}) cannot leave the mesh")
            flip_until_delaunay(mesh)
            aside = 10.0 * tiny
            insert(mesh, v, x - aside * (by - ay) / length, y + aside * (bx - ax) / length, mesh.star[a])
            flip_until_delaunay(mesh)

    def _come_and_go(self, ids: Ids, points: Floats) -> bool:
        """Remove points that are gone and insert new ones; false if there is no room for them."""
        mesh, desk = self._mesh, self._desk
        gone = ~np.isin(self._ids, ids, assume_unique=True)
        stays = np.isin(ids, self._ids, assume_unique=True)
        fresh = np.flatnonzero(~stays)
        if len(fresh) > len(self._free) + np.count_nonzero(gone):
            return False
        slots = np.empty(len(ids), dtype=np.int32)
        slots[stays] = self.vertices_of(ids[stays]) if stays.any() else 0
        for v in self._slots[gone].tolist():
            if remove(mesh, v, desk.border, desk.outside, desk.walls) == STUCK or flip_until_delaunay(mesh) == STUCK:
                return False
            self._free.append(v)
            desk.true_x[v] = desk.true_y[v] = np.nan
        for k in fresh.tolist():
            v = slots[k] = self._free.pop()
            x, y = points[k]
            mesh.pace[v] = 0
            if insert(mesh, v, x, y, mesh.star[0]) == STUCK or flip_until_delaunay(mesh) == STUCK:
                return False
            desk.true_x[v], desk.true_y[v], desk.calm[v] = x, y, 0
        self._is_settled = False
        issue_touched(mesh, self._travel)
        self._name(ids, slots)
        return True

    def _few_of(self, points: Floats) -> NDArray[np.int64] | None:
        """The points that have moved since the last step; None if they are many, or far away."""
        moved = self._moved[: int(_FEW * len(points))]
        count, away = list_few(self._points, points, self._middle[0], self._middle[1], moved)
        return None if count < 0 or not away <= 0.5 * self._away else moved[:count]

    def _advance(self, points: Floats, few: NDArray[np.int64] | None) -> bool:
        """Points are here now; if only a few have moved, `few` has them. False if everything must be built anew."""
        if few is not None and not len(few):
            return True
        if few is None and self._steps % _MEASURED_EVERY == 0:
            self._measure(points)
        kind = FEW if few is not None else (ALL if self._uncertified else BY_CERTIFICATES)
        report = self._last[:REPORTED]
        moved = self._moved if few is None else few
        done = advance(kind, *self._arrays, points, self._points, moved, self._slots, self._point_of,
                       self.wall_ends, self._travel, self._limits, self._is_certified, report)  # fmt: skip
        if few is not None:
            return bool(done != STUCK)
        if kind == ALL:
            self._uncertified -= 1
        elif self._is_certified:
            self._weigh(report[LOOKED_AT] / self._certificates())
        self._is_certified = kind == BY_CERTIFICATES
        self._points[:] = points
        self._steps += 1
        self._is_settled = True
        return bool(done != STUCK)

    def _weigh(self, share: float) -> None:
        """Whether certificates have paid of late, now that this share of them was due in a step."""
        if share < _WORTHWHILE:
            self._losses = 0
        self._loss = max(0.0, self._loss + share - _WORTHWHILE)
        if self._loss > _LOSS:
            self._uncertified = min(_UNCERTIFIED_STEPS << self._losses, _MOST_UNCERTIFIED)
            self._losses, self._loss, self._lost_at = self._losses + 1, 0.0, self._move

    def _measure(self, points: Floats) -> None:
        """How far points move now, which tells the classes of speed, and whether certificates may pay again."""
        move = float(mean_move(self._points, points))
        if move > 0.0:
            self._move = move
            self._limits[1:3] = _SLOW * move, _FAST * move
            if self._uncertified and move < _SLOWER * self._lost_at:
                self._uncertified, self._losses = 0, 0

    def _check(self, points: Floats) -> float:
        """How far the farthest point is from the middle along an axis [m]; raises unless all are somewhere."""
        away = farthest(points, self._middle[0], self._middle[1])
        if not away < math.inf:
            row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
            raise ModelError(f"point {row} is at {points[row].tolist()}; a mesh needs finite positions")
        return float(away)

    # Building ---------------------------------------------------------------------------------------------------

    def _allocate(self, count: int, points: Floats) -> None:
        everything = np.concatenate([self.wall_ends, points])
        low, high = (everything.min(axis=0), everything.max(axis=0)) if len(everything) else (np.zeros(2), np.ones(2))
        self._middle: Floats = 0.5 * (low + high)
        self._away = _GHOSTS_AWAY * max(float(np.abs(high - self._middle).max()), 1.0)
        self._room = count + max(int(_MORE * count), _LEAST_MORE)
        self._walls_away = self._check(self.wall_ends)
        vertices = len(self.wall_ends) + self._room
        self._mesh = new_mesh(vertices, (float(self._middle[0]), float(self._middle[1])), self._away)
        self._desk = new_desk(self._mesh)
        self._arrays = tuple(self._mesh), tuple(self._desk)
        self._travel = np.zeros(PACES)
        self._is_certified, self._uncertified, self._losses, self._loss, self._lost_at = True, 0, 0, 0.0, 0.0
        self._is_settled = False
        self._limits = np.array([0.0, 0.0, 0.0, np.inf])
        walls = np.arange(GHOSTS, self.first_point, dtype=np.int32)
        self._place(walls, self.wall_ends)
        self._free = list(range(self.first_point, self.first_point + self._room))[::-1]
        self._name(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32))
        for wall in np.flatnonzero(self.closed).tolist():
            self._set_wall(wall)

    def _place(self, vertices: NDArray[np.int32], points: Floats) -> None:
        true_x, true_y = self.true_positions
        true_x[vertices], true_y[vertices] = points[:, 0], points[:, 1]
        if insert_all(self._mesh, vertices, true_x, true_y) == STUCK:
            raise ModelError("the points cannot be triangulated")

    def _build(self, ids: Ids, points: Floats) -> None:
        """Triangulate everything anew."""
        self._allocate(len(points), points)
        by_place = along_a_curve(points)
        vertices = np.arange(self.first_point, self.first_point + len(points), dtype=np.int32)
        slots = np.empty(len(points), dtype=np.int32)
        slots[by_place] = vertices
        self._place(vertices, points[by_place])
        del self._free[self._room - len(points) :]
        self._name(ids, slots)
        issue_touched(self._mesh, self._travel)
        number_triangles(self._mesh)
        self._last[:] = 0
        self._last[LOOKED_AT], self._last[_REBUILDS] = self._certificates(), 1
        self._total += self._last

    def _name(self, ids: Ids, slots: NDArray[np.int32]) -> None:
        """The points have these ids, in this order, and these vertices."""
        self._ids, self._slots = ids.copy(), slots
        self._point_of = np.full(len(self._mesh.x), -1, dtype=np.int32)
        self._point_of[slots] = np.arange(len(slots), dtype=np.int32)
        self._points = np.column_stack([true[slots] for true in self.true_positions])
        self._moved = np.empty(len(ids), dtype=np.int64)

    def _certificates(self) -> int:
        return 3 * (len(self._ids) + len(self.wall_ends)) + 1
