"""Columns in 3D, from the floor to the ceiling: as stacks of balls, which is what obstacles in space are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tropel.world import Obstacle, World

#: Middles of the balls of a column are at most so many radii apart: it is nowhere thinner than 97 % of its width.
_APART = 0.5


def add_columns(world: World, name: str, *, radius: float, places: Sequence[tuple[float, float]]) -> None:
    """Add columns `name_1`, `name_2`, … to a box, at places (x, y); their balls are `name_1_1`, `name_1_2`, …"""
    low, high = world.bounds[:, 2]
    heights = np.linspace(low, high, max(2, 1 + int(np.ceil((high - low) / (_APART * radius)))))
    for column, (x, y) in enumerate(places, start=1):
        for number, z in enumerate(heights.tolist(), start=1):
            ball = Obstacle(radius=radius, position=(float(x), float(y), z))
            world.obstacles.add(f"{name}_{column}_{number}", ball)
