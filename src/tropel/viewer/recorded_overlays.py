"""Overlays of a replay: those that need no more than what is recorded, which is where people were.

Planning fields, layers and neighbourhoods belong to a simulation, so they are seen only where one runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tropel.recording import FrameData
from tropel.viewer.frame import Frame
from tropel.viewer.ground_picture import draw_picture, picture_legend
from tropel.viewer.overlays import Canvas
from tropel.viewer.overlays_density import density_of
from tropel.viewer.overlays_trails import (
    APART,
    MOST,
    SECONDS,
    Points,
    Seen,
    draw_trails,
    piece_between,
    seen_of,
    trails_legend,
)
from tropel.viewer.recorded_frames import RecordedFrames

DENSITY = "density"
TRAILS = "trails"
#: Frames whose points are kept, so that a trail that goes on reads one frame and not forty.
_KEPT = 128


class RecordedOverlays:
    """What is laid over the frames of a replay; `on` holds the names of what is wanted."""

    def __init__(self, server: Any, frames: RecordedFrames) -> None:
        self._frames = frames
        self._world = frames.trajectory.scene
        self._bounds = np.array(self._world.bounds, dtype=np.float64)
        self.offered = (DENSITY, TRAILS) if self._world.dim == 2 else (TRAILS,)
        self.on: set[str] = set()
        self._drawn: frozenset[str] = frozenset()
        self._canvas = {
            name: Canvas(scene=server.scene, path=f"/overlays/{name}", world=self._world) for name in self.offered
        }
        self._past = PastTrails(frames)

    def draw(self, index: int, frame: Frame) -> dict[str, str]:
        """Draw what is wanted over a frame; returns what to say of each."""
        said = dict.fromkeys(self.offered, "")
        if DENSITY in self.on:
            picture = density_of(frame.position[~frame.dead], self._bounds)
            self._lay(DENSITY, draw_picture, picture)
            said[DENSITY] = picture_legend(picture)
        if TRAILS in self.on:
            trails = self._past.trails(index)
            self._lay(TRAILS, draw_trails, trails)
            said[TRAILS] = trails_legend(trails)
        for name in self._drawn - self.on:
            self._clear(name)
        return said

    def _lay(self, name: str, draw: Callable[[Canvas, Any], None], seen: Any) -> None:
        if seen is None:
            self._clear(name)
        else:
            draw(self._canvas[name], seen)
            self._drawn = self._drawn | {name}

    def _clear(self, name: str) -> None:
        if name in self._drawn:
            self._canvas[name].clear()
            self._drawn = self._drawn - {name}


class PastTrails:
    """Trails that lead to a frame, read from the frames before it."""

    def __init__(self, frames: RecordedFrames) -> None:
        self._frames = frames
        self._every = 1  # ids that are a multiple of it have a trail
        self._points: dict[int, Points] = {}
        gap = float(np.diff(frames.times).min()) if len(frames) > 1 else APART
        # Always the same frames, wherever one looks from, or trails would flicker.
        self._stride = max(1, round(APART / gap))

    def trails(self, index: int) -> Seen | None:
        people = len((data := self._frames.bodies(index)).id)
        if (every := math.ceil(people / MOST)) > self._every:
            self._every = every
            self._points.clear()
        times = self._frames.times
        first = int(np.searchsorted(times, times[index] - SECONDS - 1e-6))
        first = -(-first // self._stride) * self._stride
        points = [self._points_at(k) for k in range(first, index, self._stride)] + [self._followed(data)]
        bounds = np.array(self._frames.trajectory.scene.bounds)
        pieces = [piece_between(a, b, bounds=bounds) for a, b in itertools.pairwise(points)]
        groups = max(1, len(self._frames.trajectory.scene.groups))
        return seen_of(pieces, groups=groups, followed=len(points[-1].id), people=people)

    def _points_at(self, index: int) -> Points:
        if index not in self._points:
            while len(self._points) >= _KEPT:
                del self._points[next(iter(self._points))]
            self._points[index] = self._followed(self._frames.bodies(index))
        return self._points[index]

    def _followed(self, data: FrameData) -> Points:
        rows = np.flatnonzero(data.id % self._every == 0)
        group = np.clip(data.group[rows], 0, max(len(self._frames.trajectory.scene.groups) - 1, 0))
        return Points(id=data.id[rows], position=data.position[rows], group=group.astype(np.int32))
