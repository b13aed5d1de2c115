"""Voronoi densities: the density of a person is one over the area that is nearer to them than to anyone else.

A person's Voronoi cell is clipped to the walkable area and, if a cut-off is given, to a circle around them. Of what is
then in several pieces, the piece that the person is in counts. The density of an area M is the mean over its points:

    ρ(M) = Σ area(V_i ∩ M) / area(V_i) / area(M)

These are the definitions of Steffen & Seyfried, "Methods for measuring pedestrian density, flow, speed and direction
with minimal scatter" (2010), as PedPy computes them (`compute_individual_voronoi_polygons`, `compute_voronoi_density`),
and the numbers are equal to PedPy's. Beyond those, people at exactly the same place share their cell, so the density of
two is twice that of one; and people outside the walkable area have no cell and take no room from others.

Maps hold the mean over frames. A frame takes some milliseconds per hundred people, so long runs are sampled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.recording import Scene

Floats = NDArray[np.float64]

#: A circle is a polygon with this many corners per quarter, as in PedPy.
QUARTER_CORNERS = 3
#: At most so many frames are used, and so few that no more than so many pieces are measured: about ten seconds.
MOST_FRAMES = 300
_MOST_PIECES = 1_500_000
_LEAST_FRAMES = 10
#: A person's cell meets about so many cells of a map.
_PIECES_PER_PERSON = 5
#: Finer maps than this take too long; several cells are then one.
_MOST_CELLS = 40_000


@dataclass(frozen=True, eq=False, kw_only=True)
class VoronoiCells:
    """The Voronoi cells of the people in one frame, a row for each of them."""

    polygon: NDArray[np.object_]  #: None for people outside the walkable area
    density: Floats  #: [1/m²]; nan for people outside

    def density_in(self, area: shapely.Geometry) -> float:
        """The mean density of an area [1/m²]."""
        inside = self.polygon[~np.isnan(self.density)]
        common = shapely.area(shapely.intersection(inside, area))
        return float((common / shapely.area(inside)).sum() / area.area)


def voronoi_cells(positions: Floats, area: shapely.Geometry, *, cut_off: float | None = None) -> VoronoiCells:
    """Voronoi cells of people at positions (N, 2) in a walkable area; `cut_off` is the radius of the circle [m]."""
    if cut_off is not None and not (math.isfinite(cut_off) and cut_off > 0.0):
        raise ParameterError(f"cut_off must be a positive number of metres, not {cut_off!r}")
    polygon = np.full(len(positions), None, dtype=object)
    density = np.full(len(positions), np.nan)
    shapely.prepare(area)
    inside = np.flatnonzero(shapely.intersects_xy(area, positions[:, 0], positions[:, 1]))
    if len(inside) == 0:
        return VoronoiCells(polygon=polygon, density=density)
    places, which, sharing = np.unique(positions[inside], axis=0, return_inverse=True, return_counts=True)
    points = shapely.points(places)
    cells = _cut(_tessellate(places, area), points, area, cut_off)
    size = shapely.area(cells)
    polygon[inside] = cells[which.reshape(-1)]
    with np.errstate(divide="ignore"):
        density[inside] = np.where(size > 0.0, sharing / size, np.nan)[which.reshape(-1)]
    return VoronoiCells(polygon=polygon, density=density)


def _tessellate(places: Floats, area: shapely.Geometry) -> NDArray[np.object_]:
    """The cells of different places, in their order, reaching beyond the area."""
    if len(places) == 1:  # everything is nearest to the only one; some versions of GEOS return nothing
        return np.array([shapely.box(*area.bounds)], dtype=object)
    cells = shapely.voronoi_polygons(shapely.multipoints(places), extend_to=area, ordered=True)
    return np.asarray(shapely.get_parts(cells), dtype=object)


def _cut(
    cells: NDArray[np.object_], points: NDArray[np.object_], area: shapely.Geometry, cut_off: float | None
) -> NDArray[np.object_]:
    """Cells within the area and the cut-off, each as the one polygon that its person is in."""
    reach_out = ~shapely.contains(area, cells)  # most cells of a crowd are inside, and intersections are slow
    cells = cells.copy()
    cells[reach_out] = shapely.intersection(cells[reach_out], area)
    if cut_off is not None:
        cells = shapely.intersection(cells, shapely.buffer(points, cut_off, quad_segs=QUARTER_CORNERS))
    for k in np.flatnonzero(shapely.get_type_id(cells) != shapely.GeometryType.POLYGON):
        pieces = shapely.get_parts(cells[k])
        pieces = pieces[shapely.get_type_id(pieces) == shapely.GeometryType.POLYGON]
        # Rounding may leave somebody on the border of a piece just outside of it.
        cells[k] = pieces[np.argmin(shapely.distance(pieces, points[k]))] if len(pieces) else shapely.Polygon()
    return cells


def areas_in_squares(polygons: NDArray[np.object_], which: NDArray[np.int64], corners: Floats, side: float) -> Floats:
    """How much of polygon `which[k]` lies in the square with the lower left corner `corners[k]` [m²].

    This is ∫ (min(max(y, bottom), top) - bottom) dx along the outline, between the sides of the square: on a vertical
    line, the heights at which the outline enters and leaves add up to the length inside. Shapely's `intersection` took
    eight times as long for a crowd of 2,000, because it works out the shape too.
    """
    rings, owner = shapely.get_rings(polygons, return_index=True)
    points, ring = shapely.get_coordinates(rings, return_index=True)
    edge = np.flatnonzero(ring[1:] == ring[:-1])
    begin, end = points[edge], points[edge + 1]
    # The outline counts and holes are subtracted, whichever way round they are drawn.
    turned = np.bincount(ring[edge], (end[:, 0] - begin[:, 0]) * (end[:, 1] + begin[:, 1]), minlength=len(rings))
    is_hole = np.concatenate([[False], owner[1:] == owner[:-1]])
    sign = (np.where(is_hole, -1.0, 1.0) * np.sign(turned))[ring[edge]]

    edges = np.bincount(owner[ring[edge]], minlength=len(polygons))
    first = np.cumsum(edges) - edges
    count = edges[which]
    pair = np.repeat(np.arange(len(which)), count)
    at = np.repeat(first[which] - np.cumsum(count) + count, count) + np.arange(len(pair))
    (ax, ay), (bx, by) = begin[at].T, end[at].T
    left, bottom = corners[pair].T
    right, top = left + side, bottom + side
    low, high = np.clip(ax, left, right), np.clip(bx, left, right)
    crossing = np.flatnonzero(low != high)
    pair, at, low, high = pair[crossing], at[crossing], low[crossing], high[crossing]
    ax, ay, bx, by, bottom, top = (values[crossing] for values in (ax, ay, bx, by, bottom, top))
    slope = (by - ay) / (bx - ax)
    one, other = ay + (low - ax) * slope, ay + (high - ax) * slope
    rise = other - one
    with np.errstate(divide="ignore", invalid="ignore"):
        # Shares of the edge at which it passes the bottom and the top of the square.
        at_bottom, at_top = (np.clip((level - one) / rise, 0.0, 1.0) for level in (bottom, top))
    within, above = np.abs(at_top - at_bottom), np.where(rise > 0.0, 1.0 - at_top, at_top)
    middle = 0.5 * (np.clip(one, bottom, top) + np.clip(other, bottom, top)) - bottom
    mean_height = np.where(rise == 0.0, middle, within * middle + above * side)
    return np.bincount(pair, sign[at] * (high - low) * mean_height, minlength=len(which)).astype(np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class VoronoiMaps:
    """Voronoi densities of a run: maps, and numbers per frame that was used. Grids as in `CrowdMaps`."""

    cell: float  #: side of a cell of the map [m]
    corner: tuple[float, float]
    mean_density: Floats  #: (rows, columns) [1/m²], over the frames with people
    peak_density: Floats  #: (rows, columns) [1/m²]
    times: Floats  #: of the frames that were used [s]
    people: NDArray[np.int64]  #: in the walkable area
    mean_of_people: Floats  #: mean of the densities of people, per frame [1/m²]; nan if there are none
    highest_of_people: Floats  #: [1/m²]
    frames: int  #: of the run; fewer may have been used
    cut_off: float | None  #: [m]

    @property
    def x(self) -> Floats:
        """Centres of the columns [m]."""
        return _centres(self.corner[0], self.cell, self.mean_density.shape[1])

    @property
    def y(self) -> Floats:
        """Centres of the rows [m]."""
        return _centres(self.corner[1], self.cell, self.mean_density.shape[0])

    @property
    def mean(self) -> float:
        """Mean density that people had around them, over people and frames [1/m²]; nan if nobody was there."""
        people = self.people > 0
        return float(np.average(self.mean_of_people[people], weights=self.people[people])) if people.any() else math.nan

    @property
    def highest(self) -> float:
        """The highest density that a person had around them [1/m²]."""
        return float(np.nanmax(self.highest_of_people)) if (self.people > 0).any() else math.nan

    @property
    def frames_in_words(self) -> str:
        used = len(self.times)
        return f"all {used:,} frames" if used == self.frames else f"{used:,} of {self.frames:,} frames"


def _centres(low: float, cell: float, count: int) -> Floats:
    return np.asarray(low + cell * (np.arange(count) + 0.5), dtype=np.float64)


class VoronoiMapsBuilder:
    """Takes one frame after another and keeps only grids."""

    def __init__(self, scene: Scene, *, cell: float, cut_off: float | None) -> None:
        low, high = (np.array(corner[:2]) for corner in scene.bounds)
        self._area = shapely.from_wkt(scene.walkable_wkt) if scene.walkable_wkt else shapely.box(*low, *high)
        shape = np.maximum(np.ceil((high - low) / cell - 1e-9), 1.0)
        cell *= math.ceil(math.sqrt(max(float(shape.prod()) / _MOST_CELLS, 1.0)))
        columns, rows = (int(n) for n in np.maximum(np.ceil((high - low) / cell - 1e-9), 1.0))
        self._cell, self._low, self._shape, self._cut_off = cell, low, (rows, columns), cut_off
        row, column = np.divmod(np.arange(rows * columns), columns)
        x, y = low[0] + cell * column, low[1] + cell * row
        shapely.prepare(self._area)
        parts = shapely.intersection(shapely.box(x, y, x + cell, y + cell), self._area)
        size = shapely.area(parts)
        self._walkable = np.flatnonzero(size > 1e-9 * cell * cell)
        self._parts, self._size = parts[self._walkable], size[self._walkable]
        self._corners = np.column_stack([x, y])[self._walkable]
        self._tree = shapely.STRtree(self._parts)
        self._sum, self._peak = np.zeros(len(self._parts)), np.zeros(len(self._parts))
        self._occupied = 0
        self._frames: list[tuple[float, int, float, float]] = []

    def frames_to_use(self, frames: int, people: int) -> NDArray[np.int64]:
        """Which of so many frames, with so many people in each, to use: all, or some at equal intervals."""
        pieces = len(self._parts) + _PIECES_PER_PERSON * people
        most = min(max(_MOST_PIECES // max(pieces, 1), _LEAST_FRAMES), MOST_FRAMES, frames)
        return np.unique(np.linspace(0, frames - 1, most).round().astype(np.int64))

    def add(self, time: float, positions: Floats) -> None:
        cells = voronoi_cells(positions[:, :2], self._area, cut_off=self._cut_off)
        known = ~np.isnan(cells.density)
        density = cells.density[known]
        nobody = (math.nan, math.nan)
        mean, highest = (float(density.mean()), float(density.max())) if len(density) else nobody
        self._frames.append((time, len(density), mean, highest))
        if not len(density):
            return
        polygons = cells.polygon[known]
        person, part = self._tree.query(polygons)
        common = areas_in_squares(polygons, person, self._corners[part], self._cell)
        share = common / shapely.area(polygons)[person]
        found = np.bincount(part, weights=share, minlength=len(self._parts)) / self._size
        self._sum += found
        np.maximum(self._peak, found, out=self._peak)
        self._occupied += 1

    def result(self, *, frames: int) -> VoronoiMaps:
        time, people, mean, highest = (np.array(column) for column in zip(*self._frames, strict=True))
        return VoronoiMaps(
            cell=self._cell,
            corner=(float(self._low[0]), float(self._low[1])),
            mean_density=self._on_grid(self._sum / max(self._occupied, 1)),
            peak_density=self._on_grid(self._peak),
            times=time,
            people=people.astype(np.int64),
            mean_of_people=mean,
            highest_of_people=highest,
            frames=frames,
            cut_off=self._cut_off,
        )

    def _on_grid(self, values: Floats) -> Floats:
        grid = np.zeros(self._shape[0] * self._shape[1])
        grid[self._walkable] = values
        return grid.reshape(self._shape)
