"""The panel next to the world: the time, and tabs to run, show and disturb the simulation.

The tabs "Run" (play, pause, single step, speed, restart, record) and "Show" (camera, colours, overlays) are here.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tropel.errors import TropelError
from tropel.viewer import camera, colours
from tropel.viewer.colours import Scale, colour_bar, group_legend, plain
from tropel.viewer.frame import Frame
from tropel.viewer.live.agent_tab import Selection
from tropel.viewer.live.disturb_tab import Tools
from tropel.viewer.live.plots_tab import Plots
from tropel.viewer.live.run import FASTEST
from tropel.viewer.overlays.overlay import Overlay, overlays

if TYPE_CHECKING:
    from tropel.viewer.live.page import Page


#: Simulated seconds per second.
SPEEDS = {"¼×": 0.25, "½×": 0.5, "1×": 1.0, "2×": 2.0, "5×": 5.0, "20×": 20.0, "as fast as possible": FASTEST}
#: Steps longer than this are mentioned [s].
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
                gui.add_markdown(plain(f"This run cannot be restarted: {live.cannot_restart}"))
        with gui.add_folder("Record"):
            self._record = gui.add_button("Record")
            self._recording = gui.add_markdown("")
        self._play.on_click(self._safely(self._play_or_pause))
        self._step.on_click(self._safely(lambda: live.single_step()))
        self._speed.on_update(self._safely(self._set_speed))
        self._restart.on_click(self._safely(lambda: live.restart(int(self._seed.value))))
        self._record.on_click(self._safely(self._record_or_stop))

    def _safely(self, action: Callable[[], None]) -> Callable[[Any], None]:
        """Turn errors into a note on the page of the user who clicked."""

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
        """Show whether the run plays, and why not."""
        live = self._page.live
        _set(self._play, "label", "Pause" if live.playing else "Play")
        text = ""
        if live.error:
            text = f"**The run ended with an error.** {plain(live.error)}"
        elif live.ended:
            text = f"The run has ended: {plain(live.ended)}." + (" It continues beyond that." if live.playing else "")
        elif live.step_takes > _LONG_STEP:
            text = f"This step has taken {live.step_takes:.0f} s so far; the first one compiles the kernels."
        elif live.playing:
            real = live.steps_per_second * live.sim.dt
            text = f"{live.steps_per_second:.0f} steps per second, {real:.3g} × real time"
        else:
            many = f"{live.waiting} changes take effect" if live.waiting > 1 else "One change takes effect"
            text = f"Paused. {many} with the next step." if live.waiting else "Paused."
        text = "\n\n".join([text, *(f"**Warning:** {plain(warning)}" for warning in live.warnings)])
        _set(self._state, "content", text)
        tape = live.tape
        _set(self._record, "label", "Stop recording" if tape.recording else "Record")
        file = f"{'Recording to' if tape.recording else 'Recorded in'} `{tape.path}`" if tape.path is not None else ""
        _set(self._recording, "content", file)


def _set(handle: Any, name: str, value: Any) -> None:
    """Set an attribute only if it has changed, so that nothing else is sent."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)


#: The choice that paints nothing on the ground.
_NOTHING = "nothing"


class ShowTab:
    """The tab "Show": camera, colours, overlays."""

    def __init__(self, page: Page) -> None:
        self._page = page
        gui, sim = page.server.gui, page.live.sim
        plan = gui.add_button("Plan view")
        free = gui.add_button("View in space")
        plan.on_click(lambda event: camera.take(event.client, self._plan(event.client)))
        free.on_click(lambda event: camera.take(event.client, self._free(event.client)))
        self._colour = gui.add_dropdown("Colour by", colours.choices(sim), initial_value=page.colour)
        self._scale = gui.add_markdown("")
        self._colour.on_update(self._set_colour)
        self.show_scale(None)
        self._switches: dict[str, Any] = {}
        self._texts: dict[str, Any] = {}
        with gui.add_folder("Overlays"):
            offered = [overlay for overlay in overlays() if overlay.fits(sim)]
            self._add_ground([overlay for overlay in offered if overlay.covers_ground])
            for overlay in offered:
                if not overlay.covers_ground:
                    self._add_switch(overlay)

    def _plan(self, client: Any) -> camera.Pose:
        return camera.plan_pose(self._page.scene, aspect=float(client.camera.aspect))

    def _free(self, client: Any) -> camera.Pose:
        return camera.free_pose(self._page.scene, aspect=float(client.camera.aspect))

    def _add_ground(self, offered: list[Overlay]) -> None:
        """One list for overlays that paint the ground: only one of them can be seen at a time."""
        if not offered:
            return
        gui = self._page.server.gui
        by_title = {overlay.title: overlay for overlay in offered}
        ground = gui.add_dropdown("Ground", [_NOTHING, *by_title], initial_value=_NOTHING)
        text = gui.add_markdown("", visible=False)
        self._switches |= {overlay.name: ground for overlay in offered}
        self._texts |= {overlay.name: text for overlay in offered}
        shown = _NOTHING

        @ground.on_update
        def paint(event: Any) -> None:
            nonlocal shown
            before, shown = shown, ground.value
            if before != shown and before in by_title:
                self._page.switch(by_title[before], False)
            if shown in by_title:
                self._page.switch(by_title[shown], True)

    def _add_switch(self, overlay: Overlay) -> None:
        gui = self._page.server.gui
        box = self._switches[overlay.name] = gui.add_checkbox(overlay.title, False)
        self._texts[overlay.name] = gui.add_markdown("", visible=False)

        @box.on_update
        def switch(event: Any) -> None:
            self._page.switch(overlay, bool(box.value))

    def say_of(self, overlay: Overlay, text: str) -> None:
        """Write below the switch of an overlay."""
        place = self._texts.get(overlay.name)
        if place is not None and place.content != text:
            place.content = text
            place.visible = bool(text)

    def turn_off(self, overlay: Overlay) -> None:
        """Show that an overlay is off."""
        switch = self._switches.get(overlay.name)
        if switch is not None and switch.value in (True, overlay.title):
            switch.value = _NOTHING if overlay.covers_ground else False

    def _set_colour(self, event: Any) -> None:
        self._page.colour = self._colour.value
        self._page.redraw()

    def show_scale(self, scale: colours.Scale | None) -> None:
        text = group_legend(self._page.scene.groups) if scale is None else colour_bar(scale)
        if self._scale.content != text:
            self._scale.content = text


#: The text at the top is updated this often [s].
_TEXT_EVERY = 0.25


class Panel:
    """All controls of a page. Further tabs can be added to `tabs`."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._state_at = self._text_at = 0.0
        gui = page.server.gui
        self._text = gui.add_markdown("…")
        self.tabs = gui.add_tab_group()
        with self.tabs.add_tab("Run"):
            self.run = RunControls(page)
        with self.tabs.add_tab("Show"):
            self.show = ShowTab(page)
        with self.tabs.add_tab("Disturb"):
            self.tools = Tools(page)
        with self.tabs.add_tab("Agent"):
            self.selection = Selection(page)
        with self.tabs.add_tab("Plots"):
            self.plots = Plots(page)

    def show_state(self) -> None:
        """Show what may change without a frame: whether the run plays, has ended or has failed."""
        if perf_counter() - self._state_at > _TEXT_EVERY:
            self._state_at = perf_counter()
            self.run.show_state()

    def new_run(self) -> None:
        """After a restart, set the sliders to the agents' initial values."""
        self.tools.sliders.show_values()

    def show_frame(self, frame: Frame, scale: Scale | None) -> None:
        if perf_counter() - self._text_at < _TEXT_EVERY and self._page.live.playing:
            return
        self._text_at = perf_counter()
        parts = [f"**{frame.time:.1f} s**", f"{frame.living:,} there"]
        parts += [f"{frame.left:,} left"] if frame.left or frame.exits else []
        parts += [f"{frame.died:,} died"] if frame.died else []
        self._text.content = " · ".join(parts)
        self.show.show_scale(scale)
        self.tools.show_things(frame)
