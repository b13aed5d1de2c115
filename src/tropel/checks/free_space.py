"""Where bodies can be, and which places are connected for them.

For bodies that walk freely the space is exact: the walkable area less everything within one radius of a wall, a closed
door or a static obstacle. Two places are connected if they are in the same piece of it. For crowds on cells it is the
free cells, connected over their edges. Both depend on no planner. Moving obstacles and hazards are left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.world import World
from tropel.world.raster import lattice_cells

#: The radius of a body that gets through wherever anything does [m].
THIN = 1e-3
#: The part of a body's radius that must fit, so that a door exactly as wide as a body counts as wide enough.
_FITS = 0.999
#: Straight pieces that approximate a quarter of a circle.
_SEGMENTS = 8


class FreeSpace:
    """The space for bodies of one radius [m]; `opened` doors count as open, obstacles in `without` are left out."""

    def __init__(
        self,
        world: World,
        radius: float,
        *,
        opened: frozenset[str] = frozenset(),
        without: frozenset[str] = frozenset(),
        around: NDArray[np.float64] | None = None,
    ) -> None:
        self.radius = max(_FITS * radius, THIN)
        closed = [door.line for name, door in world.doors.items() if not (door.open or name in opened)]
        self.lines = np.array([*world.walls, *closed], dtype=object)
        self.inside = world.walkable
        fixed = [k for k, name in enumerate(world.obstacles.names) if name not in {*world.obstacles.moving, *without}]
        self.discs = shapely.buffer(
            shapely.points(world.obstacles.position[fixed]),
            world.obstacles.radius[fixed] + self.radius,
            quad_segs=_SEGMENTS,
        )
        area = (
            _everywhere(world, around) if self.inside is None else self.inside.buffer(-self.radius, quad_segs=_SEGMENTS)
        )
        blocked = [*shapely.buffer(self.lines, self.radius, quad_segs=_SEGMENTS), *self.discs]
        self.pieces = shapely.get_parts(area.difference(shapely.union_all(blocked)) if blocked else area)
        self.pieces = self.pieces[shapely.area(self.pieces) > 0.0]
        self._tree = shapely.STRtree(self.pieces)

    def piece_of(self, points: NDArray[np.float64]) -> NDArray[np.int64]:
        """The piece that each point belongs to; -1 for points from which none can be entered."""
        found = np.full(len(points), -1, dtype=np.int64)
        pieces, rows = shapely.STRtree(shapely.points(points)).query(self.pieces, predicate="intersects")
        found[rows] = pieces
        for row in np.flatnonzero(found < 0):
            found[row] = self._enter(points[row])
        return found

    def _enter(self, point: NDArray[np.float64]) -> int:
        """The nearest piece that a body too close to a wall gets into when it steps away from it, straight."""
        place = shapely.Point(point)
        near = self._tree.query(place, predicate="dwithin", distance=3.0 * self.radius)
        for piece in sorted(near.tolist(), key=lambda k: float(place.distance(self.pieces[k]))):
            step = shapely.shortest_line(place, self.pieces[piece])
            within = self.inside is None or bool(self.inside.covers(step))
            if within and not (len(self.lines) and shapely.intersects(self.lines, step).any()):
                return int(piece)
        return -1

    def pieces_at(self, place: Any) -> NDArray[np.int64]:
        """The pieces that a shape reaches into."""
        return np.asarray(self._tree.query(place, predicate="intersects"), dtype=np.int64)

    def share(self, region: Any, pieces: Iterable[int]) -> float:
        """The share of the free part of a region that lies in these pieces; nan if no part of it is free."""
        areas = shapely.area(shapely.intersection(self.pieces, region))
        return float(areas[list(pieces)].sum() / areas.sum()) if areas.sum() > 0.0 else float("nan")


class CellSpace:
    """The space for a crowd on cells, with the same questions."""

    def __init__(self, world: World, cell: float, *, opened: frozenset[str] = frozenset()) -> None:
        from scipy import ndimage

        if opened:
            world = copy.copy(world)
            world.blocking = world.blocking.copy()
            rows = {name: len(world.door_segments(name)) for name in world.doors}
            last = len(world.segments) - sum(rows.values())  # doors come last, in their order
            for name, count in rows.items():
                first, last = last, last + count
                if name in opened:
                    world.blocking[first:last] = 0
        self.raster = lattice_cells(world, cell, hazards=False)
        self.labels: NDArray[np.int32] = ndimage.label(self.raster.free)[0]

    def piece_of(self, points: NDArray[np.float64]) -> NDArray[np.int64]:
        y, x = self.raster.index_of(points).T
        return self.labels[y, x].astype(np.int64) - 1

    def pieces_at(self, place: Any) -> NDArray[np.int64]:
        x0, y0, x1, y1 = place.bounds
        half = 0.5 * self.raster.cell
        first, last = self.raster.index_of(np.array([[x0 - half, y0 - half], [x1 + half, y1 + half]]))
        y, x = np.mgrid[first[0] : last[0] + 1, first[1] : last[1] + 1].reshape(2, -1)
        shapely.prepare(place)
        reached = shapely.dwithin(shapely.points(self.raster.centre(np.column_stack([y, x]))), place, half)
        found = np.unique(self.labels[y, x][reached])
        return found[found > 0].astype(np.int64) - 1

    def share(self, region: Any, pieces: Iterable[int]) -> float:
        rows = np.argwhere(self.labels > 0)
        x, y = self.raster.centre(rows).T
        labels = self.labels[tuple(rows[shapely.contains_xy(region, x, y)].T)]
        return float(np.isin(labels - 1, list(pieces)).mean()) if len(labels) else float("nan")


def _everywhere(world: World, around: NDArray[np.float64] | None) -> Any:
    """A box around all that is in open space, with room to walk around it."""
    corners = [*world.bounds, *world.obstacles.position, *(around if around is not None else [])]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    margin = 10.0 + float((high - low).max()) + float(world.obstacles.radius.max(initial=0.0))
    return shapely.box(*(low - margin), *(high + margin))
