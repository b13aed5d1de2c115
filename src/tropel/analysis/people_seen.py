"""Who was there as far as frames tell, for runs that were killed before they could say, and for other programs' files.

Somebody came in the first frame that shows the person, and had left by the first frame that no longer does, through the
exit nearest to where the person was seen last. Who was taken out by an event counts as having left. Deaths are recorded
when they happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.recording import FrameData, People, Scene
from tropel.recording.people import DIED, LEFT, NOWHERE, THERE

Floats = NDArray[np.float64]


class PeopleSeen:
    """Takes one frame after the other and keeps a row per person."""

    def __init__(self, dim: int) -> None:
        self._id = np.zeros(0, dtype=np.int64)
        self._group = np.zeros(0, dtype=np.int32)
        self._came = np.zeros(0)
        #: NaN while the person is in the newest frame.
        self._gone = np.zeros(0)
        self._place = np.zeros((0, dim))

    def add(self, time: float, frame: FrameData) -> None:
        self._make_room(np.setdiff1d(frame.id, self._id, assume_unique=True), time)
        row = np.searchsorted(self._id, frame.id)
        missing = np.ones(len(self._id), dtype=bool)
        missing[row] = False
        self._gone[missing & np.isnan(self._gone)] = time
        self._gone[row] = np.nan
        self._group[row] = frame.group
        self._place[row] = frame.position

    def people(self, scene: Scene, deaths: Mapping[str, NDArray[Any]]) -> People:
        """The rows; `deaths` are those that the record tells of, with `id` and `time` [s]."""
        left = ~np.isnan(self._gone)
        places, distance = _distances(scene, self._place[left])
        through = np.full(len(self._id), NOWHERE, dtype=np.int32)
        if places:
            through[left] = np.argmin(distance, axis=0)
        fate = np.where(left, LEFT, THERE).astype(np.int8)
        known = np.isin(deaths["id"], self._id)
        rows = np.searchsorted(self._id, deaths["id"][known])
        fate[rows], through[rows], self._gone[rows] = DIED, NOWHERE, deaths["time"][known]
        return People(
            id=self._id,
            group=self._group,
            came=self._came,
            gone=self._gone,
            fate=fate,
            through=through,
            places=places,
        )

    def _make_room(self, newcomers: NDArray[np.int64], time: float) -> None:
        count = len(newcomers)
        if count == 0:
            return
        # Merged in the order of ids; nearly always they come after all others.
        ids = np.concatenate([self._id, newcomers])
        order = np.argsort(ids, kind="stable")
        self._id = ids[order]
        self._group = np.concatenate([self._group, np.zeros(count, dtype=np.int32)])[order]
        self._came = np.concatenate([self._came, np.full(count, time)])[order]
        self._gone = np.concatenate([self._gone, np.full(count, np.nan)])[order]
        self._place = np.concatenate([self._place, np.zeros((count, self._place.shape[1]))])[order]


def _distances(scene: Scene, place: Floats) -> tuple[tuple[str, ...], Floats]:
    """Names of the exits (of the targets where there are none) and their distances (names, N) from places [m]."""
    if scene.exits:
        points = shapely.points(place[:, :2])
        return tuple(scene.exits), np.array(
            [shapely.distance(shapely.from_wkt(e), points) for e in scene.exits.values()]
        )
    targets = {name: entry["position"] for name, entry in scene.targets.items() if "position" in entry}
    return tuple(targets), np.array([np.linalg.norm(place - np.array(p), axis=1) for p in targets.values()])
