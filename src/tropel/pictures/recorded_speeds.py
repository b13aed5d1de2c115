"""How fast everybody is in a frame of a recorded run."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tropel.recording import FrameData, Trajectory


def readable_top(values: NDArray[np.float64]) -> float:
    """A round number that few of the values are above, for the end of a scale."""
    most = float(np.quantile(values, 0.98)) if len(values) else 0.0
    step = 10.0 ** np.floor(np.log10(max(most, 0.1))) / 5
    return round(float(np.ceil(most / step) or 1) * step, 6)


def speeds_in_frame(trajectory: Trajectory, k: int, data: FrameData) -> NDArray[np.float64]:
    """How fast everybody is in frame k [m/s]; where the file does not say it, from the way over the last second.

    From one frame to the next, people on cells stand or jump: that would be no speed of theirs.
    """
    if data.speed is not None:
        return data.speed
    speeds = np.zeros(len(data.id))
    index = int(np.searchsorted(trajectory.frames, k))
    a_second = max(1, math.ceil(trajectory.fps))
    # Who came since then is looked for in the frame before; of the first frame, those after it tell.
    for other in (index - a_second, index - 1) if index > 0 else (a_second, 1):
        other = int(trajectory.frames[min(max(other, 0), len(trajectory.frames) - 1)])
        before = trajectory.frame(other)
        row = np.searchsorted(before.id, data.id)
        known = np.flatnonzero(row < len(before.id))
        known = known[before.id[row[known]] == data.id[known]]
        known = known[speeds[known] == 0.0]
        apart = abs(trajectory.time(k) - trajectory.time(other))
        if apart > 0.0:
            speeds[known] = np.linalg.norm(data.position[known] - before.position[row[known]], axis=1) / apart
    return speeds
