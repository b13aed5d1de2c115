"""Round obstacles at random places: the clutter of a scene, said in one line of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel._kernels.philox import random_key, uniforms
from tropel.agents.distributions import draw
from tropel.errors import GeometryError
from tropel.world import Obstacle, World
from tropel.world.periodic import nearest_images

_DARTS_PER_OBSTACLE = 200


def scatter(
    world: World, name: str, *, count: int, radius: Any, region: Any, gap: float, seed: int, type: str = "obstacle"
) -> None:
    """Add obstacles `name_1`, `name_2`, … to a world, with their centres in a region.

    They keep `gap` [m] free from each other and from the walls, doors, exits, targets and obstacles already there.
    Places and radii depend on `seed` and `name` only, so that a scene stays the same when the people in it do not.
    """
    radii = draw(radius, seed=seed, purpose=f"{name}/radius", ids=np.arange(count))
    if (radii <= 0.0).any():
        raise GeometryError(f"radius must be positive, but {radii.min():g} was drawn; give the distribution a 'low'")
    low, high, area = _where(world, region)
    taken, taken_radius = _targets(world)
    taken = np.vstack([taken, world.obstacles.position])
    taken_radius = np.append(taken_radius, world.obstacles.radius)
    solid = _solid(world)
    key = random_key(seed, f"{name}/places")
    placed = 0
    for dart in _darts(key, low, high, _DARTS_PER_OBSTACLE * count):
        free = radii[placed] + gap
        if area is not None and not shapely.contains_xy(area, *dart):
            continue
        if (np.linalg.norm(nearest_images(taken - dart, world.period), axis=1) < taken_radius + free).any():
            continue
        if solid is not None and shapely.dwithin(solid, shapely.Point(dart), free):
            continue
        obstacle = Obstacle(radius=float(radii[placed]), position=tuple(dart.tolist()), type=type)
        world.obstacles.add(f"{name}_{placed + 1}", obstacle)
        taken, taken_radius = np.vstack([taken, dart]), np.append(taken_radius, radii[placed])
        placed += 1
        if placed == count:
            return
    raise GeometryError(
        f"only {placed} of {count} obstacles of {radii.min():.2f} to {radii.max():.2f} m radius found room "
        f"{gap:g} m apart; use fewer or smaller ones, a smaller gap or a larger region"
    )


def _darts(key: np.uint64, low: NDArray[np.float64], high: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Points spread evenly over a box."""
    numbers = np.arange(count)
    unit = np.hstack([uniforms(key, numbers), uniforms(key, numbers, draw=1)])
    return low + unit[:, : len(low)] * (high - low)


def _where(world: World, region: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], Any]:
    """The box around a region and, in 2D, the part of it that is walkable."""
    if isinstance(region, str):
        region = world.region(region)
    if world.dim == 3:
        low, high = world.bounds if region is None else region
        return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64), None
    area = shapely.box(*world.bounds[0], *world.bounds[1]) if region is None else region
    if world.walkable is not None:
        area = area.intersection(world.walkable)
    if area.area <= 0.0:
        raise GeometryError("its region lies outside the walkable area; it must overlap it")
    shapely.prepare(area)
    x0, y0, x1, y1 = area.bounds
    return np.array([x0, y0]), np.array([x1, y1]), area


def _targets(world: World) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    goals = world.goals()
    rows = [number for name, number in world.goal_numbers.items() if name in world.targets]
    return goals.position[rows], goals.radius[rows]


def _solid(world: World) -> Any:
    """Walls, doors and exits as one geometry, or None."""
    if world.dim == 3 or not (len(world.segments) or world.exits):
        return None
    lines = shapely.linestrings(world.segments.reshape(-1, 2, 2))
    joined = shapely.GeometryCollection([*lines, *(way_out.polygon for way_out in world.exits.values())])
    shapely.prepare(joined)
    return joined
