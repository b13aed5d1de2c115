"""The panel of a replay: time slider, play and pause, speed, camera, colours, overlays.

Its overlays need only recorded positions: density and trails. Planning fields, the ground and neighbours belong to a
simulation, so they are shown only while one runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.recording import FrameData
from tropel.viewer import camera
from tropel.viewer.colours import GROUP, Scale, colour_bar, group_legend
from tropel.viewer.frame import Frame
from tropel.viewer.overlays.agents import (
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
from tropel.viewer.overlays.cells import density_of, draw_picture, picture_legend
from tropel.viewer.overlays.overlay import Canvas
from tropel.viewer.replay.frames import RecordedFrames

if TYPE_CHECKING:
    from tropel.viewer.replay.page import ReplayPage


DENSITY = "density"
TRAILS = "trails"
#: Frames whose points are kept, so that extending a trail reads one frame instead of forty.
_KEPT = 128


class RecordedOverlays:
    """What is drawn on top of the frames of a replay; `on` holds the names of the active overlays."""

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
        """Draw the active overlays of a frame; returns the text for each."""
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
    """Trails that end at a frame, read from the frames before it."""

    def __init__(self, frames: RecordedFrames) -> None:
        self._frames = frames
        self._every = 1  # agents whose id is a multiple of this have a trail
        self._points: dict[int, Points] = {}
        gap = float(np.diff(frames.times).min()) if len(frames) > 1 else APART
        # Always the same frames, whatever the current one is, otherwise trails would flicker.
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


#: Recorded seconds per second.
SPEEDS = {"¼×": 0.25, "½×": 0.5, "1×": 1.0, "2×": 2.0, "5×": 5.0, "10×": 10.0, "20×": 20.0, "50×": 50.0}
#: After a user has moved the slider it is left alone for this long, so that it does not jump away [s].
_HANDS_OFF = 0.6


class ReplayPanel:
    """All controls of a replay."""

    def __init__(self, replay: ReplayPage) -> None:
        self._replay = replay
        self._touched_at = float("-inf")
        gui, player, frames = replay.server.gui, replay.player, replay.frames
        self._text = gui.add_markdown("…")
        between = _least_gap(frames.times)
        self._slider = gui.add_slider(
            "Time [s]", min=player.start, max=player.end, step=between, initial_value=player.start
        )
        self._play = gui.add_button("Pause")
        steps = gui.add_button_group("Frame", ["◀ previous", "next ▶"])
        self._speed = gui.add_dropdown("Speed", list(SPEEDS), initial_value=_nearest_speed(player.speed))
        self._trouble = gui.add_markdown("", visible=False)
        if not frames.has_end:
            gui.add_markdown(
                f"The file ends at {player.end:.4g} s, before the end of the run: it is still being written, was cut "
                "short, or comes from another program. Open it again to see what has been added."
            )
        plan = gui.add_button("Plan view")
        free = gui.add_button("View in space")
        self._colour = gui.add_dropdown("Colour by", frames.choices, initial_value=replay.colour)
        self._legend = gui.add_markdown("")
        with gui.add_folder("Overlays"):
            self._overlays = {name: self._add_overlay(name) for name in replay.overlays.offered}
        self._slider.on_update(self._seek)
        self._play.on_click(self._play_or_pause)
        steps.on_click(lambda event: replay.step(1 if event.target.value.startswith("next") else -1))
        self._speed.on_update(lambda event: player.set_speed(SPEEDS[self._speed.value]))
        plan.on_click(lambda event: camera.take(event.client, self._plan(event.client)))
        free.on_click(lambda event: camera.take(event.client, self._free(event.client)))
        self._colour.on_update(self._set_colour)

    def _add_overlay(self, name: str) -> Any:
        """A switch, and the text below it that explains what is shown."""
        gui, replay = self._replay.server.gui, self._replay
        box = gui.add_checkbox(name.capitalize(), False)

        @box.on_update
        def switch(event: Any) -> None:
            (replay.overlays.on.add if box.value else replay.overlays.on.discard)(name)
            replay.redraw()

        return gui.add_markdown("", visible=False)

    def _plan(self, client: Any) -> camera.Pose:
        return camera.plan_pose(self._replay.stage.scene, aspect=float(client.camera.aspect))

    def _free(self, client: Any) -> camera.Pose:
        return camera.free_pose(self._replay.stage.scene, aspect=float(client.camera.aspect))

    def _seek(self, event: Any) -> None:
        # The replay moves the slider too; then the event has no client.
        if event.client is not None:
            self._touched_at = perf_counter()
            self._replay.seek(float(self._slider.value))

    def _play_or_pause(self, event: Any) -> None:
        player = self._replay.player
        player.pause() if player.playing else player.play()
        self.show_state()

    def _set_colour(self, event: Any) -> None:
        self._replay.colour = self._colour.value
        self._replay.redraw()

    def show_state(self) -> None:
        """Show whether the run plays."""
        player = self._replay.player
        label = "Pause" if player.playing else "Play again" if player.at_end and player.end > player.start else "Play"
        _set(self._play, "label", label)

    def show_frame(self, frame: Frame, scale: Scale | None) -> None:
        parts = [f"**{frame.time:.2f} s**", *self._replay.frames.counts(frame)]
        _set(self._text, "content", " · ".join(parts))
        if perf_counter() - self._touched_at > _HANDS_OFF or not self._replay.player.playing:
            _set(self._slider, "value", frame.time)
        if self._replay.colour == GROUP or scale is None:
            _set(self._legend, "content", group_legend(self._replay.stage.scene.groups))
        else:
            _set(self._legend, "content", colour_bar(scale))

    def show_overlays(self, said: dict[str, str]) -> None:
        """Show the texts of the active overlays."""
        for name, text in said.items():
            _set(self._overlays[name], "content", text)
            _set(self._overlays[name], "visible", bool(text))

    def show_trouble(self, text: str) -> None:
        """Show what is wrong with the file, or nothing."""
        _set(self._trouble, "content", f"**This frame cannot be read.** {text}" if text else "")
        _set(self._trouble, "visible", bool(text))


def _least_gap(times: NDArray[np.float64]) -> float:
    return max(round(float(np.diff(times).min()), 6), 1e-3) if len(times) > 1 else 1.0


def _nearest_speed(speed: float) -> str:
    return min(SPEEDS, key=lambda name: abs(SPEEDS[name] - speed))


def _set(handle: Any, name: str, value: Any) -> None:
    """Set an attribute only if it has changed, so that nothing else is sent."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)
