"""What people notice of each other's emotions, and of dangers, as kernels.

Both look at every agent in the order of cells and ids, so that sums do not depend on rows or threads. Nobody notices
anything through a wall.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import count_runs, nearest_image, wrapping_run, wrapping_window
from tropel._kernels.compile import inlined_kernel, parallel_kernel
from tropel._kernels.walls import chord_blocked

Floats = NDArray[np.float64]
#: This share of the line to a place must be clear: a fire may be on a wall, which the line then touches.
_ALMOST = 0.999


class Shown(NamedTuple):
    """What agents show of themselves, by row."""

    group: NDArray[np.int32]
    dead: NDArray[np.uint8]
    expressiveness: Floats
    fear: Floats
    alertness: Floats
    confidence: Floats


@inlined_kernel
def _hidden(flat, x, y, to_x, to_y, walls):
    return flat and chord_blocked(x, y, x + _ALMOST * (to_x - x), y + _ALMOST * (to_y - y), walls)


@parallel_kernel
def listen(rows, position, level, shown, cells, walls, earshot, strangers, out):
    """Write for each row the sum of weights of those around it, and their mean fear, alertness and confidence.

    The weight of somebody at a distance d is (1 - d / earshot) · expressiveness, less for strangers.
    """
    flat = position.shape[1] == 2
    for n in numba.prange(rows.size):
        i = rows[n]
        x, y = position[i, 0], position[i, 1]
        z = np.float64(level[i]) if flat else position[i, 2]
        total = fear = alertness = confidence = 0.0
        window = wrapping_window(cells, x, y, z, earshot)
        for number in range(count_runs(cells, window)):
            first, last, shift_x, shift_y, shift_z = wrapping_run(cells, window, number)
            for k in range(first, last):
                j = cells.order[k]
                if j == i or shown.dead[j]:
                    continue
                dx, dy = cells.position[0, k] - (x + shift_x), cells.position[1, k] - (y + shift_y)
                dz = 0.0 if flat else cells.position[2, k] - (z + shift_z)
                away = math.sqrt(dx * dx + dy * dy + dz * dz)
                if away >= earshot or _hidden(flat, x, y, x + dx, y + dy, walls):
                    continue
                weight = (1.0 - away / earshot) * shown.expressiveness[j]
                if shown.group[j] != shown.group[i]:
                    weight *= strangers
                total += weight
                fear += weight * shown.fear[j]
                alertness += weight * shown.alertness[j]
                confidence += weight * shown.confidence[j]
        out[n, 0] = total
        out[n, 1] = fear / total if total > 0.0 else 0.0
        out[n, 2] = alertness / total if total > 0.0 else 0.0
        out[n, 3] = confidence / total if total > 0.0 else 0.0


@parallel_kernel
def look_out(rows, position, places, rims, dread, period, walls, sight, out):
    """Write for each row how frightening the worst of some places is: `dread` at its rim, nothing `sight` away."""
    flat = position.shape[1] == 2
    for n in numba.prange(rows.size):
        i = rows[n]
        worst = 0.0
        for h in range(places.shape[0]):
            away2 = 0.0
            for axis in range(position.shape[1]):
                away2 += nearest_image(places[h, axis] - position[i, axis], period[axis]) ** 2
            level = dread[h] * min(1.0 - (math.sqrt(away2) - rims[h]) / sight, 1.0)
            if level > worst and not _hidden(flat, position[i, 0], position[i, 1], places[h, 0], places[h, 1], walls):
                worst = level
        out[n] = worst
