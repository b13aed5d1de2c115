"""Worlds with things in the way, for tests of roadmaps: made from a seed, so that many can be tried."""

from __future__ import annotations

import numpy as np
import shapely

from tropel.world import Door, Obstacle, World

SIZE = (12.0, 8.0)


def cluttered_room(seed: int, *, stones: int = 12, walls: int = 6, doors: int = 2) -> World:
    """A room with a hole, walls, open doors and stones at random places."""
    rng = np.random.default_rng(seed)
    area = shapely.box(0.0, 0.0, *SIZE) - shapely.box(5.0, 3.0, 6.5, 4.5)
    lines = [_line(rng, 2.5) for _ in range(walls)]
    shut = {f"door {k}": Door(_line(rng, 1.5), open=True) for k in range(doors)}
    obstacles = {
        f"stone {k}": Obstacle(radius=float(rng.uniform(0.1, 0.5)), position=tuple(rng.uniform((0.0, 0.0), SIZE)))
        for k in range(stones)
    }
    return World(area, walls=lines, doors=shut, obstacles=obstacles)


def _line(rng: np.random.Generator, longest: float) -> list[tuple[float, float]]:
    begin = rng.uniform((1.0, 1.0), (SIZE[0] - 1.0, SIZE[1] - 1.0))
    angle, length = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(0.3, longest)
    end = np.clip(begin + length * np.array([np.cos(angle), np.sin(angle)]), 0.2, np.array(SIZE) - 0.2)
    return [tuple(begin), tuple(end)]


def ball_box(seed: int, *, balls: int = 30) -> World:
    """A 3D box with balls at random places."""
    rng = np.random.default_rng(seed)
    obstacles = {
        f"ball {k}": Obstacle(radius=float(rng.uniform(0.2, 0.9)), position=tuple(rng.uniform(0.0, (8.0, 6.0, 4.0))))
        for k in range(balls)
    }
    return World.box((0.0, 0.0, 0.0), (8.0, 6.0, 4.0), obstacles=obstacles)


def exact_gap(world: World, begin: np.ndarray, end: np.ndarray, *, doors: bool) -> np.ndarray:
    """How far each segment stays from walls and obstacles, according to shapely; negative beyond the walkable area."""
    lines = shapely.linestrings(np.stack([begin, end], axis=1))
    solid = [world.walkable.boundary, *world.walls]
    solid += [door.line for door in world.doors.values() if doors and not door.open]
    gap = shapely.distance(lines, shapely.union_all(solid))
    for position, radius in zip(world.obstacles.position, world.obstacles.radius, strict=True):
        gap = np.minimum(gap, shapely.distance(lines, shapely.Point(position)) - radius)
    return np.where(shapely.covers(world.walkable, lines), gap, -1.0)
