"""Where agents may begin: a region, the free part of it, and how many agents can be in it at all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.errors import ParameterError, SpawnError
from tropel.world import World, shapes
from tropel.world.obstacles import inside_discs

#: Straight pieces that approximate a quarter of a circle.
_SEGMENTS = 16


class Region:
    """The part of the world inside a region, before anything in it is taken into account."""

    def __init__(self, world: World, region: Any, who: str) -> None:
        self.world = world
        self.dim = world.dim
        self.name = f"region {region!r}" if isinstance(region, str) else "its region"
        if region is None:
            self.name = "the walkable area"
        if world.dim == 3:
            self.box = world.bounds if region is None else _box(world, region, who)
            low, high = self.inner_box(0.0)
            self.size = float(np.prod(np.maximum(high - low, 0.0)))
            return
        area = region_area(world, region, who)
        if world.walkable is not None:
            area = area.intersection(world.walkable)
        if world.is_periodic:
            area = area.intersection(_period_area(world))
        self.area = area
        self.size = float(area.area)

    def inner_box(self, radius: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """In 3D, the box for body centres: off walls, possibly on a seam, and unlimited along unbounded axes."""
        world = self.world
        margin = np.where(world.walled, radius, np.where(world.unbounded, -math.inf, 0.0))
        return (
            np.maximum(self.box[0], world.bounds[0] + margin),
            np.minimum(self.box[1], world.bounds[1] - margin),
        )

    def most(self, radius: float) -> float:
        """An upper bound for how many bodies of a radius above 0 [m] can be in it without overlap.

        Their centres are in the region, so each body lies entirely within the region grown by one radius.
        """
        if self.dim == 3:
            low, high = self.inner_box(radius)
            across = [float(length) / radius + 2.0 for length in np.maximum(high - low, 0.0)]
            return math.prod(across) / (4.0 / 3.0 * math.pi)
        border = float(self.area.length) / (math.pi * radius)
        return self.size / math.pi / radius / radius + border + float(shapely.get_num_geometries(self.area))

    def count_for(self, density: float) -> int:
        """How many agents a density [1/m², in 3D 1/m³] means in this region."""
        return round(min(density * self.size, 1e300))

    def check_count(self, count: int, radius: float, who: str, *, fit: int | None = None) -> None:
        """Raise if this many bodies of a radius [m] cannot be in it; `fit` tells how many can, if that is known."""
        most = self.most(radius) if fit is None else fit
        if count > most:
            size = f"{self.size:.1f} m{'²' if self.dim == 2 else '³'}"
            raise SpawnError(
                f"group '{who}': {_said(count)} agents of {radius:.2g} m radius do not fit into {self.name} ({size}); "
                f"{'at most' if fit is None else 'about'} {math.floor(most)} do: use fewer agents, a smaller radius "
                f"or a larger region"
            )


class Room(Region):
    """A region and the part of it that is free for bodies of up to a given radius."""

    def __init__(self, world: World, region: Any, who: str, radius: float) -> None:
        super().__init__(world, region, who)
        self.radius = radius
        self.period = world.period
        self.obstacle_position = np.vstack([world.obstacles.position, world.hazards.position])
        self.obstacle_radius = np.append(world.obstacles.radius, world.hazards.inner)
        if world.dim == 3:
            self.low, self.high = self.inner_box(radius)
            return
        area = self.area
        barriers = world.segments[world.blocking > 0]
        if len(barriers):
            lines = shapely.linestrings(barriers.reshape(-1, 2, 2))
            near = lines[shapely.dwithin(lines, area, radius)]
            if len(near):
                # The polygon that approximates a circle must enclose it: if inscribed, it would let bodies into
                # corners. A radius far beyond the world covers all of it, and larger numbers would overflow.
                far = 8.0 * float(np.abs(np.subtract(*world.bounds)).max() + np.ptp(barriers))
                enclosing = min(radius, far) / math.cos(math.pi / (4 * _SEGMENTS))
                area = area.difference(shapely.union_all(shapely.buffer(near, enclosing, quad_segs=_SEGMENTS)))
        shapely.prepare(area)
        self.free_area = area
        x0, y0, x1, y1 = area.bounds if not area.is_empty else (0.0, 0.0, 0.0, 0.0)
        self.low, self.high = np.array([x0, y0]), np.array([x1, y1])

    @property
    def empty(self) -> bool:
        return bool((self.high <= self.low).any())

    def keep(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The points where a body may stand."""
        if self.dim == 2:
            points = points[shapely.intersects_xy(self.free_area, points[:, 0], points[:, 1])]
        return points[~inside_discs(points, self.obstacle_position, self.obstacle_radius + self.radius, self.world)]


def _said(count: int) -> str:
    """A number of agents; absurd numbers are not written with all digits."""
    return str(count) if count < 10**18 else f"{count:.3g}"


def _period_area(world: World) -> Any:
    """The bounds of a periodic 2D world; unlimited along an axis that is not periodic."""
    low, high = world.bounds
    far = 1e3 * float((high - low).max())
    joined = world.period > 0.0
    return shapely.box(*np.where(joined, low, low - far), *np.where(joined, high, high + far))


def region_area(world: World, region: Any, who: str) -> Any:
    """The polygon of a region given by name or shape; the whole world if it is None."""
    if region is None:
        if world.walkable is None:
            return shapely.box(*world.bounds[0], *world.bounds[1])
        return world.walkable
    if isinstance(region, str) and not region.lstrip().upper().startswith(("POLYGON", "MULTIPOLYGON")):
        return world.region(region)
    return shapes.polygon(region, f"region of '{who}'")


def _box(world: World, region: Any, who: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(region, str):
        low, high = world.region(region)
        return low, high
    try:
        low, high = region
    except (TypeError, ValueError) as error:
        raise ParameterError(f"region of '{who}': in 3D a region is a pair of corners, not {region!r}") from error
    return shapes.point(low, f"region of '{who}'", dim=3), shapes.point(high, f"region of '{who}'", dim=3)


def check_region(world: World, region: Any, who: str) -> None:
    """Raise if a region is unknown, is not a shape, or has no part inside the world."""
    if Region(world, region, who).size <= 0.0:
        raise SpawnError(f"{who}: its region lies outside the walkable area; it must overlap it")


def inside_region(world: World, region: Any, position: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which places are inside a region given by name or shape, whatever stands in it."""
    check_region(world, region, "the region")
    place = world.region(region) if isinstance(region, str) else region
    if world.dim == 3:
        low, high = place
        return np.asarray(((position >= np.asarray(low)) & (position <= np.asarray(high))).all(axis=1), dtype=bool)
    area = shapes.polygon(place, "region")
    return np.asarray(shapely.contains_xy(area, position[:, 0], position[:, 1]), dtype=bool)
