"""Maps of crowd density and flow, gathered frame by frame.

The density of a cell is the number of people in it over its area [1/m²]. Its mean is taken over the frames in which
anyone is in the world, its peak over all frames. A person on the border between cells counts in each of them, by the
share of the square around the body that lies there. If only centres counted, people on a lattice of 0.4 m would produce
chequered maps: a cell of 1 m holds four, six or nine of their centres, never the true 6.25. Of a cell that a wall cuts,
only the walkable part counts, but at least half of the cell: one person in a sliver does not make a crowd. In cells
smaller than a metre a single person already is a high density, so peaks mean little there. The flow is density times
velocity [1/(m s)]:

    J = sum of all displacements in the cell / (area of the cell · time)

A displacement between two frames counts where the body is halfway. People who walk in opposite directions cancel each
other out. Dead agents, which stay where they died, count as people who stand. A 3D world is seen from above.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.recording import FrameData, Scene

Floats = NDArray[np.float64]

#: Above this density people feel crowded and no longer choose where they go [1/m²].
CROWDED = 4.0
#: A map with more cells than this would take gigabytes.
_MOST_CELLS = 2**25
#: Cells that a wall cuts are sampled with this many points per side.
_SAMPLES = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class CrowdMaps:
    """Grids have one row per step in y, one column per step in x; `corner` is the lower left corner of [0, 0] [m]."""

    cell: float  #: side of a cell [m]
    corner: tuple[float, float]
    mean_density: Floats  #: (rows, columns) [1/m²], over the frames with people
    peak_density: Floats  #: (rows, columns) [1/m²]
    flow: Floats  #: (rows, columns, 2): x and y [1/(m s)]
    times: Floats  #: of the frames [s]
    there: NDArray[np.int64]  #: people in each frame
    crowded_area: Floats  #: area of the cells with more than `CROWDED` people per square metre, per frame [m²]
    outside: int  #: positions outside the map, counted over all frames

    @property
    def x(self) -> Floats:
        """Centres of the columns [m]."""
        return _centres(self.corner[0], self.cell, self.mean_density.shape[1])

    @property
    def y(self) -> Floats:
        """Centres of the rows [m]."""
        return _centres(self.corner[1], self.cell, self.mean_density.shape[0])

    @property
    def flow_strength(self) -> Floats:
        """(rows, columns): magnitude of the flow [1/(m s)]."""
        return np.hypot(self.flow[:, :, 0], self.flow[:, :, 1])


class CrowdMapsBuilder:
    """Takes one frame after another and keeps only grids."""

    def __init__(self, scene: Scene, *, cell: float) -> None:
        if not (math.isfinite(cell) and cell > 0.0):
            raise ParameterError(f"cell must be a positive number of metres, not {cell!r}")
        self._low = np.array(scene.bounds[0][:2])
        extent = np.array(scene.bounds[1][:2]) - self._low
        shape = np.maximum(np.ceil(extent / cell - 1e-9), 1.0)
        if shape.prod() > _MOST_CELLS:
            least = math.sqrt(float(extent.prod()) / _MOST_CELLS)
            raise ParameterError(
                f"cells of {cell:g} m make a map of {shape[0]:.0f} × {shape[1]:.0f}: "
                f"use cells of at least {least:.2g} m"
            )
        self._cell = float(cell)
        self._period = np.array(scene.period[:2])
        self._columns, self._rows = int(shape[0]), int(shape[1])
        cells = self._columns * self._rows
        self._sum = np.zeros(cells)
        self._peak = np.zeros(cells)
        self._way = np.zeros((2, cells))
        self._area = self._walkable_areas(scene.walkable_wkt)
        self._occupied_frames = 0
        self._occupied_time = 0.0
        self._before: tuple[float, FrameData] | None = None
        self._times: list[float] = []
        self._there: list[int] = []
        self._crowded: list[float] = []
        self._outside = 0

    def add(self, time: float, frame: FrameData) -> None:
        inside = self._inside(frame.position)
        self._outside += int((~inside).sum())
        count = np.zeros(len(self._sum))
        for cell, share in self._shares(frame.position[inside], frame.radius[inside]):
            count += np.bincount(cell, weights=share, minlength=len(count))
        self._sum += count
        np.maximum(self._peak, count, out=self._peak)
        self._occupied_frames += bool(len(frame.id))
        self._times.append(time)
        self._there.append(len(frame.id))
        self._crowded.append(float(self._area[count > (CROWDED + 1e-9) * self._area].sum()))
        if self._before is not None and len(self._before[1].id):
            self._add_displacements(self._before[1], frame)
            self._occupied_time += time - self._before[0]
        self._before = (time, frame)

    def result(self) -> CrowdMaps:
        shape = (self._rows, self._columns)
        flow = self._way / (self._area * self._occupied_time) if self._occupied_time > 0.0 else self._way
        return CrowdMaps(
            cell=self._cell,
            corner=(float(self._low[0]), float(self._low[1])),
            mean_density=(self._sum / (self._area * max(self._occupied_frames, 1))).reshape(shape),
            peak_density=(self._peak / self._area).reshape(shape),
            flow=np.stack([part.reshape(shape) for part in flow], axis=2),
            times=np.array(self._times),
            there=np.array(self._there, dtype=np.int64),
            crowded_area=np.array(self._crowded),
            outside=self._outside,
        )

    def _walkable_areas(self, walkable_wkt: str) -> Floats:
        """The area of every cell that counts for its density [m²]."""
        area = np.full(self._columns * self._rows, self._cell**2)
        if not walkable_wkt:
            return area
        floor = shapely.from_wkt(walkable_wkt)
        shapely.prepare(floor)
        # Points close enough together along the walls: every cell that a wall cuts contains one of them.
        edges = shapely.segmentize(floor.boundary, self._cell / _SAMPLES)
        points = shapely.get_coordinates(edges)
        points = points[self._inside(points)]
        place = np.minimum(((points - self._low) / self._cell).astype(np.int64), [self._columns - 1, self._rows - 1])
        cut = np.unique(place[:, 1] * self._columns + place[:, 0])
        offset = self._cell * (np.arange(_SAMPLES) + 0.5) / _SAMPLES
        row, column = np.divmod(cut, self._columns)
        x = (self._low[0] + self._cell * column)[:, None, None] + offset[:, None]
        y = (self._low[1] + self._cell * row)[:, None, None] + offset
        share = shapely.contains_xy(floor, *np.broadcast_arrays(x, y)).mean(axis=(1, 2))
        area[cut] *= np.maximum(share, 0.5)
        return area

    def _add_displacements(self, before: FrameData, now: FrameData) -> None:
        if np.array_equal(before.id, now.id):
            old, new, radius = before.position[:, :2], now.position[:, :2], now.radius
        else:
            _, rows, places = np.intersect1d(before.id, now.id, assume_unique=True, return_indices=True)
            old, new, radius = before.position[rows, :2], now.position[places, :2], now.radius[places]
        step = new - old
        # In periodic space people take the short path, across the seam.
        step -= self._period * np.round(step / np.where(self._period > 0.0, self._period, 1.0))
        middle = old + 0.5 * step
        for side, turn in ((middle < self._low, 1.0), (middle >= self._low + self._period, -1.0)):
            middle += np.where(side, turn * self._period, 0.0)
        inside = self._inside(middle)
        step = step[inside]
        for cell, share in self._shares(middle[inside], radius[inside]):
            for axis in range(2):
                self._way[axis] += np.bincount(cell, weights=share * step[:, axis], minlength=len(self._sum))

    def _inside(self, position: Floats) -> NDArray[np.bool_]:
        """Which positions are on the map."""
        high = self._low + self._cell * np.array([self._columns, self._rows])
        return np.all((position[:, :2] >= self._low) & (position[:, :2] <= high), axis=1)

    def _shares(self, position: Floats, radius: Floats) -> Iterator[tuple[NDArray[np.int64], Floats]]:
        """For each body on the map, four cells that it may overlap, with the share of the body in each."""
        # No body spreads over more than the width of a cell, so two cells in each direction are enough.
        width = np.minimum(2.0 * radius / self._cell, 1.0)[:, None]
        begin = (position[:, :2] - self._low) / self._cell - 0.5 * width
        first = np.floor(begin).astype(np.int64)
        beyond = np.clip((begin + width - (first + 1)) / np.maximum(width, 1e-300), 0.0, 1.0)
        # A body that ends at a border must not leave a trace of rounding in the next cell.
        beyond = np.where(beyond < 1e-9, 0.0, beyond)
        for right in (0, 1):
            column = self._on_map(first[:, 0] + right, 0)
            for up in (0, 1):
                row = self._on_map(first[:, 1] + up, 1)
                shares = (beyond[:, 0] if right else 1.0 - beyond[:, 0]) * (beyond[:, 1] if up else 1.0 - beyond[:, 1])
                yield row * self._columns + column, shares

    def _on_map(self, number: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        """What reaches beyond the border of the world belongs to the last cell, or to the cell across the seam."""
        count = (self._columns, self._rows)[axis]
        return number % count if self._period[axis] > 0.0 else np.clip(number, 0, count - 1)


def _centres(low: float, cell: float, count: int) -> Floats:
    return np.asarray(low + cell * (np.arange(count) + 0.5), dtype=np.float64)
