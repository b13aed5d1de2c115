"""Hand-made recordings whose answers are known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from tropel.recording import People, Scene, open_trajectory

FPS = 10.0
ROOM = shapely.box(0.0, 0.0, 20.0, 10.0)
EAST = shapely.box(19.0, 4.0, 20.0, 6.0)
NORTH = shapely.box(4.0, 9.0, 8.0, 10.0)


def scene(shape: Any = ROOM, **more: Any) -> Scene:
    left, bottom, right, top = shape.bounds
    known: dict[str, Any] = {
        "dim": 2,
        "bounds": [[left, bottom], [right, top]],
        "walkable_wkt": shape.wkt,
        "exits": {"east": EAST.wkt, "north": NORTH.wkt},
        "groups": ["visitors", "staff"],
        "title": "a made-up run",
        "dt": 0.05,
        "seed": 1,
    }
    return Scene(**{**known, **more})


def record(
    path: Path,
    where: Callable[[float], tuple[Any, Any]],
    *,
    frames: int,
    world: Scene | None = None,
    people: People | None = None,
    summary: dict[str, Any] | None = None,
    radius: float = 0.2,
) -> Path:
    """Record a run in which `where(time)` says who (ids) is where (positions)."""
    world = scene() if world is None else world
    with open_trajectory(path, scene=world, fps=FPS) as writer:
        for frame in range(frames):
            ids, places = where(frame / FPS)
            ids = np.asarray(ids, dtype=np.int64)
            heading = np.zeros((len(ids), world.dim))
            heading[:, 0] = 1.0
            writer.write(
                frame,
                id=ids,
                position=np.asarray(places, dtype=np.float64).reshape(len(ids), world.dim),
                heading=heading,
                group=ids % 2,
                radius=np.full(len(ids), radius),
                speed=np.zeros(len(ids)),
            )
        writer.close(summary, people=people)
    return path


def in_line(time: float) -> tuple[Any, Any]:
    """Ten people, 2.6 m apart, walk east at 1.3 m/s along y = 5; each is gone at x = 19.

    The first starts at x = 12.5, so person i is gone at (6.5 + 2.6 i) / 1.3 = 5 + 2 i seconds.
    """
    x = 12.5 - 2.6 * np.arange(10) + 1.3 * time
    there = x < 19.0 - 1e-9
    return np.flatnonzero(there), np.stack([x[there], np.full(there.sum(), 5.0)], axis=1)


#: Starts at x = -10.9 lie west of the room.
LONG_ROOM = shapely.box(-12.0, 0.0, 20.0, 10.0)
