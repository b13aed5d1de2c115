"""Published relations that models are compared with, each with its source.

Speeds in m/s, densities in 1/m² (in single file 1/m), widths in m, flows in 1/s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

#: Free speed of Weidmann's curve [m/s].
WEIDMANN_FREE_SPEED = 1.34


def weidmann(density: ArrayLike) -> Any:
    """Mean speed at a density; zero from 5.4 on (Weidmann, Transporttechnik der Fussgänger, ETH Zürich 1993)."""
    speed = WEIDMANN_FREE_SPEED * (1.0 - np.exp(-1.913 * (1.0 / np.asarray(density) - 1.0 / 5.4)))
    return np.maximum(speed, 0.0)


def sfpe(density: ArrayLike) -> Any:
    """k (1 - 0.266 density) with k = 1.40, constant below 0.54 (Nelson & Mowrer, SFPE handbook, horizontal ways)."""
    return np.maximum(1.4 * (1.0 - 0.266 * np.maximum(np.asarray(density), 0.54)), 0.0)


def predtechenskii_milinskii(density: ArrayLike) -> Any:
    """Speed on the level under normal conditions (Predtechenskii & Milinskii 1978), a polynomial in the share of the
    floor that bodies cover, with 0.113 m² per adult in mid-season dress; valid up to a share of 0.92."""
    share = np.minimum(0.113 * np.asarray(density), 0.92)
    metres_per_minute = 112.0 * share**4 - 380.0 * share**3 + 434.0 * share**2 - 217.0 * share + 57.0
    return metres_per_minute / 60.0


#: Mean speed of people alone in the single-file experiments of Seyfried et al. 2005 [m/s].
SINGLE_FILE_FREE_SPEED = 1.24


def single_file_germany(distance: ArrayLike) -> Any:
    """Speed in single file at a distance to the next person [m], from d = 0.36 + 1.06 v (Seyfried, Steffen, Klingsch &
    Boltes, J. Stat. Mech. 2005, P10002), at most the free speed."""
    return np.clip((np.asarray(distance) - 0.36) / 1.06, 0.0, SINGLE_FILE_FREE_SPEED)


def single_file_india(distance: ArrayLike) -> Any:
    """The same in India, from d = 0.22 + 0.89 v (Chattaraj, Seyfried & Chakroborty, Adv. Complex Syst. 12, 2009)."""
    return np.clip((np.asarray(distance) - 0.22) / 0.89, 0.0, SINGLE_FILE_FREE_SPEED)


def door_flow(width: ArrayLike) -> Any:
    """Flow through an opening, 1.92 w - 0.07: a line through flows measured in experiments at bottlenecks, where the
    specific flow is about 1.9 per metre and second (Seyfried et al., Transportation Science 43, 2009)."""
    return 1.92 * np.asarray(width) - 0.07
