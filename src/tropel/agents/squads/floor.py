"""The floor as squads know it: cells to stand on, how far it is to each of them on foot, and the parts of rooms.

Cells are those of `world/raster.py`, so a step between neighbouring free cells crosses no wall. Walking distances are
those of moves to the eight neighbours. A room's parts are its free cells: the spots where somebody could stand.
"""

from __future__ import annotations

import math

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.walls import chord_blocked
from tropel.world import World
from tropel.world.places import Place
from tropel.world.raster import Raster, rasterise, what_is_drawn
from tropel.world.shapes import Polygonal

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Edge of the cells [m], and how many there are at most; larger worlds get larger cells.
_CELL, _MOST_CELLS = 0.25, 250_000
_CLEARANCE = 0.2
#: Whoever stands on no free cell steps onto one within this distance first [m].
_STEP_ONTO = 1.5
_DIAGONAL = math.sqrt(2.0)


@kernel
def _step_onto(x, y, reach, free, origin, cell, walls, away):
    """Write the distances of free cells within reach of a point that are straight ahead."""
    rows, columns = free.shape
    row, column, span = int((y - origin[1]) / cell), int((x - origin[0]) / cell), int(reach / cell) + 1
    for r in range(max(row - span, 0), min(row + span + 1, rows)):
        for c in range(max(column - span, 0), min(column + span + 1, columns)):
            px, py = origin[0] + (c + 0.5) * cell, origin[1] + (r + 0.5) * cell
            far = math.sqrt((px - x) ** 2 + (py - y) ** 2)
            if far <= reach and free[r, c] and not chord_blocked(x, y, px, py, walls):
                away[r, c] = far


@kernel
def _push(heap, keys, size, item, key):
    """Put an item into a binary heap; returns its new size."""
    k = size
    while k > 0 and keys[(k - 1) // 2] > key:
        heap[k], keys[k] = heap[(k - 1) // 2], keys[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k], keys[k] = item, key
    return size + 1


@kernel
def _drop_first(heap, keys, size):
    """Take the least item out of a binary heap; returns its new size."""
    size -= 1
    item, key = heap[size], keys[size]
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        heap[k], keys[k] = heap[child], keys[child]
        k = child
    heap[k], keys[k] = item, key
    return size


@kernel
def _walk_on(free, cell, away, heap, keys):
    """Dijkstra's algorithm over the eight neighbours of cells, from those whose distances are known."""
    rows, columns = free.shape
    size = 0
    for r in range(rows):
        for c in range(columns):
            if away[r, c] < math.inf:
                size = _push(heap, keys, size, r * columns + c, away[r, c])
    while size > 0:
        r, c, here = heap[0] // columns, heap[0] % columns, keys[0]
        size = _drop_first(heap, keys, size)
        if here > away[r, c]:
            continue
        for dr in range(-1, 2):
            for dc in range(-1, 2):
                nr, nc = r + dr, c + dc
                if nr < 0 or nc < 0 or nr >= rows or nc >= columns or not free[nr, nc]:
                    continue
                there = here + cell * (_DIAGONAL if dr != 0 and dc != 0 else 1.0)
                if there < away[nr, nc]:
                    away[nr, nc] = there
                    size = _push(heap, keys, size, nr * columns + nc, there)


@kernel
def _is_walkable(ax, ay, bx, by, half_width, walls):
    """Whether the middle and both flanks of a body can go straight from a to b."""
    length = math.sqrt((bx - ax) ** 2 + (by - ay) ** 2)
    if length == 0.0:
        return True
    nx, ny = half_width * (by - ay) / length, half_width * (ax - bx) / length
    return (
        not chord_blocked(ax, ay, bx, by, walls)
        and not chord_blocked(ax + nx, ay + ny, bx + nx, by + ny, walls)
        and not chord_blocked(ax - nx, ay - ny, bx - nx, by - ny, walls)
    )


@kernel
def _farthest_in_sight(x, y, r, c, half_width, away, origin, cell, walls):
    """The cell nearest to (r, c) on the shortest walk there from (x, y) that is straight ahead."""
    rows, columns = away.shape
    while True:
        px, py = origin[0] + (c + 0.5) * cell, origin[1] + (r + 0.5) * cell
        if _is_walkable(x, y, px, py, half_width, walls):
            return px, py
        best, br, bc = away[r, c], -1, -1
        for dr in range(-1, 2):
            for dc in range(-1, 2):
                nr, nc = r + dr, c + dc
                if 0 <= nr < rows and 0 <= nc < columns and away[nr, nc] < best:
                    best, br, bc = away[nr, nc], nr, nc
        if br < 0:
            return px, py
        r, c = br, bc


class Floor:
    """The cells of a world as it is now, and the areas of it that are searched or held."""

    def __init__(self, world: World) -> None:
        self.world = world
        size = world.bounds[1] - world.bounds[0]
        self.cell = max(_CELL, math.sqrt(float(np.prod(size)) / _MOST_CELLS))
        self._areas: dict[str, tuple[Polygonal, Ints]] = {}
        self._draw()

    def _draw(self) -> None:
        self._drawn = what_is_drawn(self.world, hazards=False)
        self.raster: Raster = rasterise(self.world, cell=self.cell, clearance=_CLEARANCE, hazards=False)
        self._parts: dict[str, Ints] = {}

    def keep_up(self) -> None:
        """Draw the cells anew if doors or obstacles have changed."""
        if what_is_drawn(self.world, hazards=False) != self._drawn:
            self._draw()

    def area(self, place: Place) -> tuple[Polygonal, Ints]:
        """The polygon of a room or region, and the numbers of all cells whose centres are in it, free or not."""
        if place.key not in self._areas:
            polygon = (self.world.rooms if place.kind == "room" else self.world.regions)[place.name]
            shape = self.raster.shape
            centres = self.centres(np.arange(shape[0] * shape[1], dtype=np.int64))
            inside = shapely.contains_xy(polygon, centres[:, 0], centres[:, 1])
            self._areas[place.key] = polygon, np.flatnonzero(inside).astype(np.int64)
        return self._areas[place.key]

    def parts(self, place: Place) -> Ints:
        """The numbers of the cells of a room or region on which somebody could stand."""
        if place.key not in self._parts:
            cells = self.area(place)[1]
            self._parts[place.key] = cells[self.raster.free.reshape(-1)[cells]]
        return self._parts[place.key]

    def is_inside(self, place: Place, points: Floats) -> NDArray[np.bool_]:
        """Which points (K, 2) are in a room or region."""
        return np.asarray(shapely.intersects_xy(self.area(place)[0], points[:, 0], points[:, 1]))

    def from_area(self, place: Place, points: Floats) -> Floats:
        """How far points (K, 2) are from a room or region; zero inside of it [m]."""
        return np.asarray(shapely.distance(self.area(place)[0], shapely.points(points)))

    def centres(self, cells: Ints) -> Floats:
        """Where cells are, by number (K, 2) [m]."""
        columns = self.raster.shape[1]
        return self.raster.centre(np.stack([cells // columns, cells % columns], axis=-1))

    def cells_at(self, points: Floats) -> Ints:
        """The numbers of the cells that hold points (K, 2)."""
        index = self.raster.index_of(points)
        return np.asarray(index[:, 0] * self.raster.shape[1] + index[:, 1])

    def walk(self, here: Floats) -> Floats:
        """How far it is on foot from a point to each free cell (ny, nx); infinite where no way leads [m]."""
        raster = self.raster
        away = np.full(raster.shape, np.inf)
        x, y = here.tolist()
        _step_onto(x, y, _STEP_ONTO, raster.free, raster.origin, raster.cell, self.world.wall_grid(2.0), away)
        # Every cell is put into the heap at most once by each neighbour.
        heap, keys = np.empty(9 * away.size, dtype=np.int64), np.empty(9 * away.size)
        _walk_on(raster.free, raster.cell, away, heap, keys)
        return away

    def ahead(self, here: Floats, cell: int, away: Floats, half_width: float) -> Floats:
        """The farthest point straight ahead on the shortest walk to a cell; `away` are the distances from here."""
        row, column = divmod(cell, self.raster.shape[1])
        return np.array(
            _farthest_in_sight(
                float(here[0]), float(here[1]), row, column, half_width, away, self.raster.origin, self.raster.cell,
                self.world.wall_grid(2.0),
            )
        )  # fmt: skip

    def nearest_cell(self, point: Floats, away: Floats) -> int | None:
        """The cell that is nearest to a point among those that can be walked to; None if there is none."""
        cells = np.flatnonzero(np.isfinite(away.reshape(-1)))
        if not len(cells):
            return None
        return int(cells[np.argmin(((self.centres(cells) - point) ** 2).sum(axis=1))])
