"""Who sees what: the only place where squads ask for a line of sight.

A point is seen from another if it is within reach and no wall or closed door is in between. People look all around, and
bodies hide nobody. A model of perception takes the place of these functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.walls import chord_blocked
from tropel.world import World

Floats = NDArray[np.float64]


@inlined_kernel
def is_seen(ax, ay, bx, by, reach, walls):
    """Whether b is seen from a, up to a distance."""
    return (bx - ax) ** 2 + (by - ay) ** 2 <= reach * reach and not chord_blocked(ax, ay, bx, by, walls)


@kernel
def _note_seen(eyes, points, reach, walls, seen):
    for k in range(points.shape[0]):
        if seen[k]:
            continue
        for e in range(eyes.shape[0]):
            if is_seen(eyes[e, 0], eyes[e, 1], points[k, 0], points[k, 1], reach, walls):
                seen[k] = True
                break


def note_seen(world: World, eyes: Floats, points: Floats, reach: float, seen: NDArray[np.bool_]) -> None:
    """Mark the points (K, 2) that are seen from at least one of the eyes (E, 2); those marked already stay marked."""
    if len(eyes) and len(points):
        _note_seen(eyes, points, reach, world.wall_grid(2.0), seen)


def seen_from(world: World, eyes: Floats, points: Floats, reach: float) -> NDArray[np.bool_]:
    """Which points (K, 2) are seen from at least one of the eyes (E, 2)."""
    seen = np.zeros(len(points), dtype=np.bool_)
    note_seen(world, eyes, points, reach, seen)
    return seen
