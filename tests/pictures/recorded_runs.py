"""Small trajectories for the tests of pictures: held in memory, or written to a file and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.recording import FrameData, People, RecordedEvent, Scene, Trajectory

ROOM = shapely.box(0.0, 0.0, 10.0, 6.0)
EAST = shapely.box(9.5, 2.0, 10.0, 4.0)

#: Two rooms, joined by a door at x = 5 between y = 2 and y = 4.
TWO_ROOMS = ROOM - shapely.box(4.9, 0.0, 5.1, 2.0) - shapely.box(4.9, 4.0, 5.1, 6.0)
DOOR = shapely.LineString([(5.0, 2.0), (5.0, 4.0)])
SHUT = TWO_ROOMS - DOOR.buffer(5e-4, cap_style="flat")


def scene(shape: Any = ROOM, **more: Any) -> Scene:
    """A 2D scene of a walkable shape."""
    left, bottom, right, top = shape.bounds
    known: dict[str, Any] = {
        "dim": 2,
        "bounds": [[left, bottom], [right, top]],
        "walkable_wkt": shape.wkt,
        "dt": 0.05,
        "seed": 7,
        "title": "a room",
    }
    return Scene(**{**known, **more})


def at(
    positions: Sequence[Sequence[float]],
    *,
    ids: Sequence[int] | None = None,
    group: Sequence[int] | None = None,
    radius: float = 0.3,
    speed: Sequence[float] | None = None,
    dim: int = 2,
) -> FrameData:
    """A frame with agents at positions, all heading along x."""
    place = np.asarray(positions, dtype=np.float64).reshape(-1, dim)
    count = len(place)
    heading = np.zeros((count, dim))
    heading[:, :1] = 1.0
    return FrameData(
        id=np.arange(count) if ids is None else np.asarray(ids, dtype=np.int64),
        position=place,
        heading=heading,
        group=np.zeros(count, dtype=np.int32) if group is None else np.asarray(group, dtype=np.int32),
        radius=np.full(count, radius),
        speed=None if speed is None else np.asarray(speed, dtype=np.float64),
    )


class MemoryTrajectory(Trajectory):
    """A trajectory made of the frames it is given, numbered from 0."""

    def __init__(
        self,
        scene: Scene,
        frames: Sequence[FrameData],
        *,
        fps: float = 10.0,
        events: Sequence[RecordedEvent] = (),
        summary: dict[str, Any] | None = None,
        geometry: Callable[[int], str] | None = None,
        obstacles: Callable[[int], dict[str, dict[str, Any]]] | None = None,
        fails_after: int | None = None,
        people: People | None = None,
    ) -> None:
        self.path = Path("a_run.sqlite")
        self.scene = scene
        self.fps = fps
        self.frames = np.arange(len(frames), dtype=np.int64)
        self._frames = list(frames)
        self._events = list(events)
        self._summary = summary
        self._geometry = geometry
        self._obstacles = obstacles
        self._reads_left = fails_after
        self._people = people

    def ids(self) -> NDArray[np.int64]:
        return np.unique(np.concatenate([frame.id for frame in self._frames]))

    def frame(self, k: int) -> FrameData:
        if self._reads_left is not None:
            if self._reads_left == 0:
                raise ValueError("cannot read on")
            self._reads_left -= 1
        return self._frames[self._index_of(k)]

    def table(self) -> dict[str, NDArray[Any]]:
        raise NotImplementedError("pictures read frame by frame")

    def entries(self) -> list[RecordedEvent]:
        return self._events

    def people(self) -> People | None:
        return self._people

    @property
    def summary(self) -> dict[str, Any] | None:
        return self._summary

    def obstacles(self, k: int) -> dict[str, dict[str, Any]]:
        return {} if self._obstacles is None else self._obstacles(k)

    def geometry(self, k: int) -> str:
        return self.scene.area_wkt() if self._geometry is None else self._geometry(k)

    def geometries(self) -> list[str]:
        return list(dict.fromkeys(self.geometry(int(k)) for k in self.frames))

    def close(self) -> None:
        pass


def walk(count: int = 5, frames: int = 40, *, dim: int = 2, speed: float = 1.3) -> list[FrameData]:
    """Agents one above the other that walk along x; each leaves after a while of its own."""
    seen = []
    for k in range(frames):
        still = [i for i in range(count) if k <= frames - 1 - 3 * (count - 1 - i)]
        place = np.full((len(still), dim), 1.0)
        place[:, 0] = 1.0 + speed * 0.1 * k
        place[:, 1] = [1.0 + 0.8 * i for i in still]
        seen.append(at(place.tolist(), ids=still, dim=dim))
    return seen


def pixel(figure: Any, axes: Any, x: float, y: float) -> NDArray[np.int64]:
    """The colour (0 to 255) of a figure where axes show the point (x, y)."""
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba())
    across, up = axes.transData.transform((x, y))
    return image[image.shape[0] - 1 - int(np.floor(up)), int(np.floor(across)), :3].astype(np.int64)


def rgb(colour: Any) -> NDArray[np.int64]:
    from matplotlib.colors import to_rgb

    return np.round(255 * np.array(to_rgb(colour))).astype(np.int64)


def distance(one: Any, other: Any) -> float:
    """How different two colours are: the largest difference of a part."""
    return float(np.abs(np.asarray(one, dtype=int)[:3] - np.asarray(other, dtype=int)[:3]).max())
