"""The tab "Run": play, pause, single step, speed, restart, record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tropel.errors import TropelError
from tropel.viewer.legends import plain
from tropel.viewer.live import FASTEST

if TYPE_CHECKING:
    from tropel.viewer.page import Page

#: Simulated seconds per second.
SPEEDS = {"¼×": 0.25, "½×": 0.5, "1×": 1.0, "2×": 2.0, "5×": 5.0, "20×": 20.0, "as fast as it goes": FASTEST}
#: Longer steps are said to be [s].
_LONG_STEP = 2.0


class RunControls:
    """Buttons that steer the run."""

    def __init__(self, page: Page) -> None:
        self._page = page
        live, gui = page.live, page.server.gui
        self._play = gui.add_button("Pause")
        self._step = gui.add_button("Single step")
        near = min(SPEEDS, key=lambda name: abs(1.0 / SPEEDS[name] - 1.0 / live.speed))
        self._speed = gui.add_dropdown("Speed", list(SPEEDS), initial_value=near)
        self._state = gui.add_markdown("")
        with gui.add_folder("Restart"):
            self._seed = gui.add_number("Seed", live.sim.seed, min=0, step=1)
            self._restart = gui.add_button("Restart")
            if live.cannot_restart:
                self._restart.disabled = self._seed.disabled = True
                gui.add_markdown(plain(f"It cannot be restarted: {live.cannot_restart}"))
        with gui.add_folder("Record"):
            self._record = gui.add_button("Record")
            self._recording = gui.add_markdown("")
        self._play.on_click(self._safely(self._play_or_pause))
        self._step.on_click(self._safely(lambda: live.single_step()))
        self._speed.on_update(self._safely(self._set_speed))
        self._restart.on_click(self._safely(lambda: live.restart(int(self._seed.value))))
        self._record.on_click(self._safely(self._record_or_stop))

    def _safely(self, action: Callable[[], None]) -> Callable[[Any], None]:
        """Errors become a note on the page of who clicked."""

        def do(event: Any) -> None:
            try:
                action()
            except TropelError as error:
                self._page.say(str(error), client=event.client, bad=True)
            self.show_state()

        return do

    def _play_or_pause(self) -> None:
        live = self._page.live
        live.pause() if live.playing else live.play()

    def _set_speed(self) -> None:
        self._page.live.set_speed(SPEEDS[self._speed.value])

    def _record_or_stop(self) -> None:
        live = self._page.live
        live.stop_recording() if live.tape.recording else live.start_recording()

    def show_state(self) -> None:
        """Whether it plays, and why not."""
        live = self._page.live
        _set(self._play, "label", "Pause" if live.playing else "Play")
        text = ""
        if live.error:
            text = f"**The run has ended with an error.** {plain(live.error)}"
        elif live.ended:
            text = f"The run has ended: {plain(live.ended)}." + (" It goes on beyond that." if live.playing else "")
        elif live.step_takes > _LONG_STEP:
            text = f"A step has been under way for {live.step_takes:.0f} s; the first one compiles the kernels."
        elif live.playing:
            real = live.steps_per_second * live.sim.dt
            text = f"{live.steps_per_second:.0f} steps per second, {real:.3g} × real time"
        else:
            many = f"{live.waiting} changes happen" if live.waiting > 1 else "One change happens"
            text = f"Paused. {many} with the next step." if live.waiting else "Paused."
        _set(self._state, "content", text)
        tape = live.tape
        _set(self._record, "label", "Stop recording" if tape.recording else "Record")
        file = f"{'Recording to' if tape.recording else 'Recorded in'} `{tape.path}`" if tape.path is not None else ""
        _set(self._recording, "content", file)


def _set(handle: Any, name: str, value: Any) -> None:
    """Only what has changed goes out."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)
