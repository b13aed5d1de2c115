"""Columns in 3D, from the floor to the ceiling: as stacks of balls, which is what obstacles in space are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tropel.errors import GeometryError
from tropel.world import Obstacle, World

#: In the columns of one name.
MOST_BALLS = 10_000
#: Middles of the balls of a column are at most so many radii apart: it is nowhere thinner than 97 % of its width.
_APART = 0.5


def add_columns(world: World, name: str, *, radius: float, places: Sequence[tuple[float, float]]) -> None:
    """Add columns `name_1`, `name_2`, … to a box, at places (x, y); their balls are `name_1_1`, `name_1_2`, …"""
    low, high = world.bounds[:, 2]
    balls = max(2.0, 1.0 + np.ceil((high - low) / (_APART * radius)))
    if not balls * len(places) <= MOST_BALLS:
        raise GeometryError(
            f"columns of {radius:g} m radius from {low:g} to {high:g} m are stacks of {balls:.3g} balls; all together "
            f"may have {MOST_BALLS:,}: give them a larger radius"
        )
    heights = np.linspace(low, high, int(balls))
    for column, (x, y) in enumerate(places, start=1):
        for number, z in enumerate(heights.tolist(), start=1):
            ball = Obstacle(radius=radius, position=(float(x), float(y), z))
            world.obstacles.add(f"{name}_{column}_{number}", ball)
