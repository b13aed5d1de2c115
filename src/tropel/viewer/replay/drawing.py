"""A recorded run drawn on a viser server, for a page or for a file."""

from __future__ import annotations

import dataclasses
from typing import Any

from tropel.viewer import camera, colours
from tropel.viewer.agents_drawing import AgentsDrawing
from tropel.viewer.frame import Frame
from tropel.viewer.replay.frames import RecordedFrames
from tropel.viewer.world_drawing import ThingsDrawing, draw_world, extent


class RunDrawing:
    """Draws any frame of a recorded run."""

    def __init__(self, server: Any, frames: RecordedFrames, *, pose: camera.Pose | None = None) -> None:
        self._server = server
        self._frames = frames
        self.scene = frames.trajectory.scene
        self._area = self.scene.walkable_wkt
        camera.set_first(server, pose or camera.first_pose(self.scene))
        draw_world(server, self.scene)
        self._agents = AgentsDrawing(server, dim=self.scene.dim, extent=extent(self.scene))
        self._things = ThingsDrawing(server, self.scene)

    def draw(self, index: int, frame: Frame, *, colour: str) -> colours.Scale | None:
        """Draw a frame; returns what its colours stand for."""
        coloured, scale = colours.colours_of(
            frame, groups=max(1, len(self.scene.groups)), scale=self._frames.scale(colour)
        )
        area = self._frames.area_wkt(index)
        with self._server.atomic():
            if area != self._area:
                # In files of other programs walls may come and go.
                self._area = area
                draw_world(self._server, dataclasses.replace(self.scene, walkable_wkt=area))
            self._things.draw(frame)
            self._agents.draw(frame, coloured)
        return scale
