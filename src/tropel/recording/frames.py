"""What is written and read per frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False, kw_only=True)
class FrameData:
    """The agents of one frame, in the order of their ids. Metres, metres per second, unit headings."""

    id: Ints
    position: Floats
    heading: Floats
    #: Number of the group; its name is `scene.groups[number]`.
    group: NDArray[np.int32]
    radius: Floats
    #: None where the file does not hold it (SQLite).
    speed: Floats | None


@dataclass(frozen=True, kw_only=True)
class RecordedEvent:
    """Something that happened during the run, at the beginning of `step`."""

    frame: int
    step: int
    event: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedObstacles:
    """Where the moving obstacles were in one frame."""

    names: tuple[str, ...]
    position: Floats
    radius: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedFrame:
    """One frame on its way to the file; owns its arrays, rows in the order of the ids."""

    number: int
    id: Ints
    position: Floats
    heading: Floats
    group: NDArray[np.int32]
    radius: Floats
    speed: Floats
    geometry_wkt: str | None
    obstacles: RecordedObstacles | None

    @property
    def size(self) -> int:
        """Bytes held while the frame waits to be written."""
        arrays = (self.id, self.position, self.heading, self.group, self.radius, self.speed)
        return sum(array.nbytes for array in arrays)
