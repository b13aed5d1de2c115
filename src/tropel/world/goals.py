"""Where agents may want to go: exits (polygons that take people out) and targets (points, static or moving)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.errors import GeometryError
from tropel.world.motion import MotionLike


@dataclass(frozen=True, kw_only=True)
class Target:
    """A place to go to. Who comes within `radius` [m] has arrived: it stops there, or leaves if the target absorbs."""

    position: Sequence[float] | None = None
    motion: MotionLike | None = None
    radius: float = 0.5
    absorbs: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.radius) and self.radius >= 0.0):
            raise GeometryError(f"a target's radius must not be negative, got {self.radius!r}")
        if (self.position is None) == (self.motion is None):
            raise GeometryError("a target needs either a position or a motion")


@dataclass
class Exit:
    """A polygon that takes out whoever steps into it while it is open."""

    polygon: shapely.Polygon | shapely.MultiPolygon
    open: bool = True


class GoalArrays(NamedTuple):
    """All goals of the world by number, as kernels see them."""

    is_exit: NDArray[np.uint8]  #: (G,) 1 for exits, 0 for targets
    usable: NDArray[np.uint8]  #: (G,) 0 for closed exits
    absorbs: NDArray[np.uint8]  #: (G,) whether those who arrive are taken out
    position: NDArray[np.float64]  #: (G, dim) of targets
    radius: NDArray[np.float64]  #: (G,) of targets
    edge_start: NDArray[np.int64]  #: (G + 1,) into edges
    edges: NDArray[np.float64]  #: (E, 4) boundary segments of exits
    approach_start: NDArray[np.int64]  #: (G + 1,) into approach
    approach: NDArray[np.float64]  #: (A, 4) boundary segments of the inner part of exits, which people aim at
    period: NDArray[np.float64]  #: (dim,) after which length space repeats [m]; 0 where it does not
