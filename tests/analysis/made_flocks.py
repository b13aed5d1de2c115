"""Hand-made recordings of flocks whose measures are known beforehand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from tropel.recording import Scene, open_trajectory
from tropel.recording.frames import deaths_note

FPS = 10.0
FRAMES = 41
MILLERS, FLYERS = 30, 24


def fly(time: float, dim: int) -> tuple[Any, Any, Any]:
    """A ring of 2 m radius that turns round (50, 50), and a grid of 4 × 6 that flies along x and tears apart at 2 s.

    The grid has steps of 0.5 m. Its upper half moves away along y by 1 m/s, but still faces along x.
    """
    angle = 2.0 * math.pi * np.arange(MILLERS) / MILLERS + 0.3 * time
    ring = np.stack([50.0 + 2.0 * np.cos(angle), 50.0 + 2.0 * np.sin(angle)], axis=1)
    along = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    rows, columns = np.divmod(np.arange(FLYERS), 6)
    grid = np.stack([10.0 + 0.5 * columns + time, 20.0 + 0.5 * rows], axis=1)
    grid[rows >= 2, 1] += max(time - 2.0, 0.0)
    position = np.zeros((MILLERS + FLYERS, dim))
    heading = np.zeros_like(position)
    position[:, :2] = np.concatenate([ring, grid])
    heading[:MILLERS, :2], heading[MILLERS:, 0] = along, 1.0
    return position, heading, np.repeat([0, 1], [MILLERS, FLYERS])


def record_flocks(path: Path, *, dim: int = 2, dies: int | None = None) -> Path:
    """Record the two flocks; who `dies` does so in the frame 20."""
    scene = Scene(
        dim=dim, bounds=[[0.0] * dim, [100.0] * dim], groups=["mill", "flyers"], title="two flocks", dt=0.05, seed=1
    )
    with open_trajectory(path, scene=scene, fps=FPS) as writer:
        for frame in range(FRAMES):
            position, heading, group = fly(frame / FPS, dim)
            count = len(position)
            if dies is not None and frame == 20:
                writer.event(frame, 40, deaths_note([dies]))
            writer.write(
                frame,
                id=np.arange(count),
                position=position,
                heading=heading,
                group=group,
                radius=np.full(count, 0.1),
                speed=np.ones(count),
            )
    return path
