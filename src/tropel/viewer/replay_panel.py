"""The panel of a replay: what time it is, a slider over the run, play and pause, speed, camera, colours."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.viewer import camera
from tropel.viewer.colours import GROUP, Scale
from tropel.viewer.frame import Frame
from tropel.viewer.legends import colour_bar, group_legend

if TYPE_CHECKING:
    from tropel.viewer.replay import Replay

#: Recorded seconds per second.
SPEEDS = {"¼×": 0.25, "½×": 0.5, "1×": 1.0, "2×": 2.0, "5×": 5.0, "10×": 10.0, "20×": 20.0, "50×": 50.0}
#: After somebody has moved the slider it is left alone for so long, so that it is not torn away from the hand [s].
_HANDS_OFF = 0.6


class ReplayPanel:
    """All controls of a replay."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._touched_at = float("-inf")
        gui, player, frames = replay.server.gui, replay.player, replay.frames
        self._text = gui.add_markdown("…")
        between = _least_gap(frames.times)
        self._slider = gui.add_slider(
            "Time [s]", min=player.start, max=player.end, step=between, initial_value=player.start
        )
        self._play = gui.add_button("Pause")
        steps = gui.add_button_group("Frame", ["◀ before", "next ▶"])
        self._speed = gui.add_dropdown("Speed", list(SPEEDS), initial_value=_nearest_speed(player.speed))
        self._trouble = gui.add_markdown("", visible=False)
        if not frames.has_end:
            gui.add_markdown(
                f"The file ends at {player.end:.4g} s without the run's end: it is still being written, was cut short, "
                "or is another program's. Open it again to see what has been added."
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
        """A switch, and the text below it that says what is seen."""
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
        # The replay moves the slider too; then there is no client.
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
        """Whether it plays, and where it is."""
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
        """What the overlays that are on show."""
        for name, text in said.items():
            _set(self._overlays[name], "content", text)
            _set(self._overlays[name], "visible", bool(text))

    def show_trouble(self, text: str) -> None:
        """What is wrong with the file, or nothing."""
        _set(self._trouble, "content", f"**This frame cannot be read.** {text}" if text else "")
        _set(self._trouble, "visible", bool(text))


def _least_gap(times: NDArray[np.float64]) -> float:
    return max(round(float(np.diff(times).min()), 6), 1e-3) if len(times) > 1 else 1.0


def _nearest_speed(speed: float) -> str:
    return min(SPEEDS, key=lambda name: abs(SPEEDS[name] - speed))


def _set(handle: Any, name: str, value: Any) -> None:
    """Only what has changed goes out."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)
