"""Round obstacles, static or moving, and the arrays that kernels read; hazards are discs in these arrays too.

The file begins with a search for the points inside many discs, on which the placing of agents relies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.discs import DiscGrid, disc_grid
from tropel.errors import GeometryError, named_parameters
from tropel.foundation.arguments import LARGEST_LENGTH, checked_arguments
from tropel.world.declared import NamedSet
from tropel.world.hazards import HazardSet
from tropel.world.motion import MotionLike, Position, position_at, stored_motion
from tropel.world.periodic import images_of_discs, nearest_images, wrap_places
from tropel.world.shapes import check_level, is_length, point

if TYPE_CHECKING:
    from tropel.world.world import World


# The points that lie inside at least one disc, in time that grows with their numbers, not with the product.


Floats = NDArray[np.float64]

#: The search radius of discs is slightly enlarged, so that rounding in the search loses none.
_A_HAIR = 1.0 + 1e-9
#: This many pairs of a point and a disc are held in memory at a time, even if every point is in every disc.
_MOST_PAIRS = 1 << 22


def inside_discs(points: Floats, centres: Floats, radius: Floats, world: World) -> NDArray[np.bool_]:
    """Which points (N, dim) of the world are inside one of the discs, in 3D balls; the surface counts as outside.

    In periodic space the images of discs count too.
    """
    inside = np.zeros(len(points), dtype=np.bool_)
    if not len(points) or not len(centres):
        return inside
    number, places = images_of_discs(centres, radius, world.bounds[0], world.bounds[1], world.period)
    reach = radius[number]
    low, high = points.min(axis=0), points.max(axis=0)
    gap = np.maximum(np.maximum(low - places, places - high), 0.0)
    near = np.flatnonzero(np.linalg.norm(gap, axis=1) <= reach * _A_HAIR)
    # A search has one radius, so discs of similar size are searched together: a huge one must not widen it for all.
    size = np.frexp(reach[near])[1]
    searched = _Points(points)
    for each in np.unique(size)[::-1]:
        alike = near[size == each]
        together = max(_MOST_PAIRS // len(points), 1)
        for first in range(0, len(alike), together):
            some = alike[first : first + together]
            point, k = searched.within(float(reach[some].max()) * _A_HAIR, places[some])
            disc = number[some[k]]
            away = nearest_images(points[point] - centres[disc], world.period)
            inside[point[(away**2).sum(axis=1) < radius[disc] ** 2]] = True
            searched.forget(inside)
    return inside


class _Points:
    """A tree of points. Points known to be inside a disc are removed once they have become many."""

    def __init__(self, points: Floats) -> None:
        self.points = points
        self._plant(np.arange(len(points)))

    def _plant(self, rows: NDArray[np.int64]) -> None:
        from scipy.spatial import cKDTree

        self.rows = rows
        self.tree = cKDTree(self.points[rows])

    def within(self, reach: float, places: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of points and numbers of places that are no farther apart than `reach`."""
        from scipy.spatial import cKDTree

        pairs = self.tree.sparse_distance_matrix(cKDTree(places), reach, output_type="ndarray")
        return self.rows[pairs["i"]], pairs["j"].astype(np.int64)

    def forget(self, known: NDArray[np.bool_]) -> None:
        still = self.rows[~known[self.rows]]
        if 2 * len(still) < len(self.rows):
            self._plant(still)


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """A disk (2D) or ball (3D) that agents cannot walk into. Give a position, or a motion that moves it."""

    radius: float
    position: Position | None = None
    motion: MotionLike | None = None
    type: str = "obstacle"  #: what it is, such as "fire"; models may treat types differently

    def __post_init__(self) -> None:
        if not (is_length(self.radius) and self.radius > 0.0):
            raise GeometryError(
                f"an obstacle needs a positive radius of at most {LARGEST_LENGTH:g} m, not {self.radius!r}"
            )
        if (self.position is None) == (self.motion is None):
            raise GeometryError("an obstacle needs either a position or a motion")


class ObstacleSet(NamedSet[Obstacle]):
    """The obstacles of a world by name, and arrays of positions, velocities and radii in the order of adding."""

    what = "obstacle"

    def __init__(
        self,
        dim: int,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        *,
        hazards: HazardSet | None = None,
        period: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__()
        self.dim = dim
        self._low, self._high = low, high
        self._period = np.zeros(dim) if period is None else period
        self._half = 0.5 * float(self._period[self._period > 0.0].min(initial=math.inf))  #: half the shortest period
        self._hazards = HazardSet(dim, low, high) if hazards is None else hazards
        self._grids: dict[float, tuple[tuple[int, int], DiscGrid]] = {}
        self.version = 0  #: changes whenever a position or radius does
        self.arrangement = 0  #: changes whenever one comes, goes or is put elsewhere, not when it moves by itself
        self.position: NDArray[np.float64] = np.empty((0, dim))
        self.velocity: NDArray[np.float64] = np.empty((0, dim))
        self.radius: NDArray[np.float64] = np.empty(0)
        self.type: NDArray[np.int32] = np.empty(0, dtype=np.int32)  #: indices into `types`
        self.types: list[str] = self._hazards.types  #: every type ever added, and every kind of hazard
        self._moving: list[tuple[int, str]] = []

    @property
    def moving(self) -> list[str]:
        return [name for _, name in self._moving]

    @property
    def moving_rows(self) -> list[int]:
        return [row for row, _ in self._moving]

    @property
    def fastest(self) -> float:
        """Speed of the fastest obstacle [m/s]."""
        return float(np.linalg.norm(self.velocity, axis=1).max(initial=0.0)) if self._moving else 0.0

    def check(self, name: str, obstacle: Obstacle, *, time: float = 0.0) -> None:
        """Raise if an obstacle's size, or its place at `time` [s], is not valid in this world."""
        if obstacle.radius >= self._half:
            raise GeometryError(
                f"obstacle '{name}' has a radius of {obstacle.radius:g} m; where space repeats after "
                f"{2.0 * self._half:g} m it must be less than half of that; use a smaller radius or a larger world"
            )
        if obstacle.position is not None:
            point(obstacle.position, f"obstacle '{name}'", dim=self.dim)
        if obstacle.motion is not None:
            position_at(obstacle.motion, time, what=f"obstacle '{name}'", dim=self.dim)

    @checked_arguments
    def add(self, name: str, obstacle: Obstacle, *, time: float = 0.0, dt: float = 0.0) -> None:
        self.add_all({name: obstacle}, time=time, dt=dt)

    def add_all(self, obstacles: Mapping[str, Obstacle], *, time: float = 0.0, dt: float = 0.0) -> None:
        """Add several obstacles at once. Adding them one by one would rewrite the arrays for each."""
        if not obstacles:
            return
        for name, obstacle in obstacles.items():
            self.check_new(name)
            self.check(name, obstacle, time=time)
        self._append(obstacles, time, dt)

    @checked_arguments
    def remove(self, name: str) -> None:
        self.find(name)
        row = self.names.index(name)
        del self._items[name]
        self.position = np.delete(self.position, row, axis=0)
        self.velocity = np.delete(self.velocity, row, axis=0)
        self.radius = np.delete(self.radius, row)
        self.type = np.delete(self.type, row)
        self._changed()

    @checked_arguments
    def move(self, name: str, position: Position) -> None:
        """Move an obstacle to another place, where it stays."""
        old = self.find(name)
        where = point(position, f"obstacle '{name}'", dim=self.dim)
        self._items[name] = Obstacle(radius=old.radius, position=tuple(where.tolist()), type=old.type)
        row = self.names.index(name)
        self.position[row] = where
        self._wrap()
        self.velocity[row] = 0.0
        self._changed()

    def _append(self, obstacles: Mapping[str, Obstacle], time: float, dt: float) -> None:
        count = len(obstacles)
        places = [np.zeros(self.dim) if item.position is None else item.position for item in obstacles.values()]
        self.position = np.vstack([self.position, np.array(places, dtype=np.float64).reshape(count, self.dim)])
        self.velocity = np.vstack([self.velocity, np.zeros((count, self.dim))])
        self.radius = np.append(self.radius, [item.radius for item in obstacles.values()])
        numbers = self._hazards.numbers_of_types(item.type for item in obstacles.values())
        self.type = np.append(self.type, np.array(numbers, dtype=np.int32))
        coming = [(len(self) + k, name) for k, (name, item) in enumerate(obstacles.items()) if item.motion is not None]
        self._items.update(obstacles)
        self._moving += coming
        self._wrap()
        self._advance(coming, time, dt)
        self.version += 1
        self.arrangement += 1

    def _changed(self) -> None:
        self.version += 1
        self.arrangement += 1
        self._moving = [(row, name) for row, (name, item) in enumerate(self._items.items()) if item.motion is not None]

    def advance(self, time: float, dt: float) -> None:
        """Move the moving obstacles to where they are at `time`; their velocity is that of the coming step."""
        self._advance(self._moving, time, dt)

    def _advance(self, moving: list[tuple[int, str]], time: float, dt: float) -> None:
        for row, name in moving:
            motion = self._items[name].motion
            assert motion is not None
            what = f"obstacle '{name}'"
            self.position[row] = position_at(motion, time, what=what, dim=self.dim)
            if dt > 0.0:
                ahead = position_at(motion, time + dt, what=what, dim=self.dim)
                self.velocity[row] = (ahead - self.position[row]) / dt
        if moving:
            self.version += 1
            self._wrap()

    def _wrap(self) -> None:
        """Move obstacles that are beyond a seam back into the box."""
        if self._half < math.inf:
            wrap_places(self.position, self._low, self._high, self._period)

    def grid(self, reach: float, *, level: int = 0) -> DiscGrid:
        """Cells that list every obstacle of a level with its surface within `reach` of any point of the cell.

        The inner discs of hazards follow the obstacles; they do not push. In periodic space, the images of all of these
        beyond the seams come last.
        """
        check_level(level)
        hazards = self._hazards
        now = (self.version, hazards.version)
        version, grid = self._grids.get(reach, (None, None))
        if grid is None or version != now:
            position, velocity, radius, type = self.position, self.velocity, self.radius, self.type
            if len(hazards):
                position, velocity = np.vstack([position, hazards.position]), np.vstack([velocity, hazards.velocity])
                radius, type = np.append(radius, hazards.inner), np.append(type, hazards.type)
            pushes = (np.arange(len(radius)) < len(self)).astype(np.uint8)
            if self._half < math.inf:
                if len(hazards):
                    wrap_places(position, self._low, self._high, self._period)
                # Half a period is more than any agent moves in a step.
                seen = radius + max(reach, self._half)
                rows, position = images_of_discs(position, seen, self._low, self._high, self._period)
                velocity, radius, type, pushes = velocity[rows], radius[rows], type[rows], pushes[rows]
            grid = disc_grid(position, velocity, radius, type, pushes, self._low, self._high, reach)
            self._grids[reach] = (now, grid)
        return grid

    def state(self) -> dict[str, Any]:
        """What a checkpoint stores: names, radii, places and motions (a function is stored by its obstacle's name)."""
        stored: dict[str, Any] = {}
        for row, (name, item) in enumerate(self._items.items()):
            entry: dict[str, Any] = {"radius": item.radius, "type": item.type}
            if item.motion is None:
                entry["position"] = self.position[row].tolist()
            else:
                entry["motion"] = stored_motion(item.motion)
            stored[name] = entry
        return stored

    def put_back(self, obstacles: Mapping[str, Obstacle], *, time: float, dt: float) -> None:
        """Replace all obstacles by these, in this order."""
        self._items = {}
        self.position, self.velocity = np.empty((0, self.dim)), np.empty((0, self.dim))
        self.radius, self.type = np.empty(0), np.empty(0, dtype=np.int32)
        self._changed()
        self._append(obstacles, time, dt)
