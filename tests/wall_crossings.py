"""Which moves cross a wall, with shapely alone: what tests compare the engine's promise with."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def closed_lines(world: Any) -> shapely.MultiLineString:
    """Everything that nobody may cross now, from the shapes and not from the engine's arrays."""
    lines = [] if world.walkable is None else [world.walkable.boundary]
    lines += [*world.walls, *(door.line for door in world.doors.values() if not door.open)]
    return shapely.MultiLineString([part for line in lines for part in shapely.get_parts(line)])


def pieces(lines: shapely.MultiLineString) -> NDArray[np.object_]:
    """Single segments, each of which shapely compares with a chord by itself."""
    found = []
    for line in shapely.get_parts(lines):
        xy = shapely.get_coordinates(line)
        found += [shapely.LineString([a, b]) for a, b in itertools.pairwise(xy) if (a != b).any()]
    return np.array(found, dtype=object)


def crossing_rows(before: Floats, after: Floats, lines: shapely.MultiLineString) -> NDArray[np.int64]:
    """The rows whose chord shares a point with any of the lines."""
    if not len(before):
        return np.empty(0, dtype=np.int64)
    chords = shapely.linestrings(np.stack([before, after], axis=1))
    still = (before == after).all(axis=1)
    chords[still] = shapely.points(before[still])
    return np.unique(shapely.STRtree(pieces(lines)).query(chords, predicate="intersects")[0])


def crossings(before: Floats, after: Floats, lines: shapely.MultiLineString) -> int:
    """How many chords share a point with any of the lines."""
    return len(crossing_rows(before, after, lines))
