"""Columns in 3D, from the floor to the ceiling: as stacks of balls, which is what obstacles in space are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tropel.errors import GeometryError
from tropel.memory import require_memory
from tropel.world import Obstacle, World

#: Middles of the balls of a column are at most so many radii apart: it is nowhere thinner than 97 % of its width.
_APART = 0.5
#: What a ball takes, with its name and place [bytes].
_BYTES_PER_BALL = 1000.0


def add_columns(world: World, name: str, *, radius: float, places: Sequence[tuple[float, float]]) -> None:
    """Add columns `name_1`, `name_2`, … to a box, at places (x, y); their balls are `name_1_1`, `name_1_2`, …"""
    low, high = world.bounds[:, 2]
    balls = float(max(2.0, 1.0 + np.ceil((high - low) / (_APART * radius))))
    require_memory(
        _BYTES_PER_BALL * balls * len(places),
        f"{len(places)} columns of {balls:.3g} balls each",
        "make columns wider, or use fewer of them",
        error=GeometryError,
    )
    heights = np.linspace(low, high, int(balls)).tolist()
    world.obstacles.add_all(
        {
            f"{name}_{column}_{number}": Obstacle(radius=radius, position=(float(x), float(y), z))
            for column, (x, y) in enumerate(places, start=1)
            for number, z in enumerate(heights, start=1)
        }
    )
