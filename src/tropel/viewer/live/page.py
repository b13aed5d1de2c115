"""The page: one viser server, the drawings on it, the panel, and a thread that draws the newest frame.

The thread takes a frame when every open page has drawn the last one, at most `_FRAMES_PER_SECOND` times a second, and
none while nothing has changed or no page is open. Everything else that reads the simulation from time to time
(overlays, the state of the selected agent, plots) is a `Watch`.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tropel.errors import ViewError
from tropel.run.observers import Observer
from tropel.viewer import camera, colours
from tropel.viewer.agents_drawing import AgentsDrawing
from tropel.viewer.colours import plain
from tropel.viewer.frame import Frame, frame_of
from tropel.viewer.live.run import LiveRun
from tropel.viewer.overlays.overlay import Canvas, Overlay
from tropel.viewer.pulse import Pulse
from tropel.viewer.server import HOST, PORT, page_address, start_server, stop_server
from tropel.viewer.world_drawing import ThingsDrawing, draw_world, extent

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class OverlaySwitch(Observer):
    """Keeps one overlay on a page up to date while it is switched on, and switches it off if it fails.

    `selected` returns the id of the selected agent, `say` gets the text below the switch, `fail` gets the reason why
    the overlay cannot continue; it is called on the page's thread, once.
    """

    def __init__(
        self,
        overlay: Overlay,
        canvas: Canvas,
        *,
        selected: Callable[[], int | None],
        say: Callable[[str], None],
        fail: Callable[[str], None],
    ) -> None:
        self.overlay = overlay if overlay.anew is None else overlay.anew()
        self._canvas = canvas
        self._selected, self._say, self._fail = selected, say, fail
        self._error = ""

    # On the simulation's thread ---------------------------------------------------------------------------------

    def begin(self, sim: Simulation) -> None:
        self.step_done(sim)

    def step_done(self, sim: Simulation) -> None:
        # An overlay must never break a run.
        if self.overlay.after_step is not None and not self._error:
            try:
                self.overlay.after_step(sim, self._selected())
            except Exception as error:
                self._error = _described(error)

    def look(self, sim: Simulation) -> Any:
        if not self._error:
            try:
                return self.overlay.look(sim, self._selected())
            except Exception as error:
                self._error = _described(error)
        return None

    # On the page's thread ---------------------------------------------------------------------------------------

    def show(self, seen: Any) -> None:
        """Draw what `look` returned."""
        if not self._error:
            try:
                if seen is None:
                    self._canvas.clear()
                else:
                    self.overlay.draw(self._canvas, seen)
                self._say("" if self.overlay.legend is None else self.overlay.legend(seen))
            except Exception as error:
                self._error = _described(error)
        if self._error:
            self._fail(self._error)

    def clear(self) -> None:
        self._canvas.clear()
        self._say("")


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


_FRAMES_PER_SECOND = 25.0
#: Interval of the thread while nothing moves or no page is open [s].
_IDLE = 0.1


@dataclass(eq=False, kw_only=True)
class Watch:
    """Something that reads the simulation at an interval, and shows what it found."""

    look: Callable[[Simulation], Any]  #: on the simulation's thread, between two steps; returns copies
    show: Callable[[Any], None]  #: on the page's thread
    seconds: float = 0.5
    due: float = 0.0
    step: int = -1  #: last step it has seen


class Page:
    """A page that shows a live run."""

    def __init__(self, live: LiveRun, *, host: str = HOST, port: int = PORT) -> None:
        from tropel.viewer.live.panel import Panel

        self.live = live
        self.scene = live.sim.scene
        self.title = live.sim.title or "tropel"
        self.server = start_server(host=host, port=port, title=self.title)
        self.host, self.port = host, int(self.server.get_port())
        self.frame: Frame | None = None  #: the newest one drawn
        self.colour = colours.GROUP
        self.selected: int | None = None  #: id of the selected agent
        self.watches: list[Watch] = []
        self.pulse = Pulse(self.server)
        self.frames_drawn = 0
        self._switched_on: dict[str, tuple[OverlaySwitch, Watch]] = {}
        self._dirty = True
        self._closing = threading.Event()
        # One thread, so that clicks take effect in order.
        self._background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tropel clicks")
        self._drawing = threading.RLock()
        camera.set_first(self.server, camera.first_pose(self.scene))
        draw_world(self.server, self.scene)
        self.agents = AgentsDrawing(self.server, dim=self.scene.dim, extent=extent(self.scene))
        self.panel = Panel(self)
        self.things = ThingsDrawing(self.server, self.scene, draggable=self.panel.tools.let_drag)
        camera.frame_pages(self.server, self.scene)
        # Before the first step, which may take a minute if kernels have to be compiled.
        self._draw(frame_of(live.sim), {})
        self._thread = threading.Thread(target=self._draw_frames, name="tropel page", daemon=True)

    @property
    def address(self) -> str:
        return page_address(self.server, self.host)

    def open(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._background.shutdown(wait=False, cancel_futures=True)
        stop_server(self.server)

    def redraw(self) -> None:
        """Draw a frame soon, even while the run is paused, and refresh everything shown with it."""
        for watch in tuple(self.watches):
            # A watch that has just looked would have to wait, and nothing makes a paused run draw again.
            watch.due = 0.0
        self._dirty = True

    def watch(self, watch: Watch) -> None:
        self.watches.append(watch)
        self.redraw()

    def unwatch(self, watch: Watch) -> None:
        if watch in self.watches:
            self.watches.remove(watch)

    def in_background(self, action: Callable[[], None]) -> None:
        """Do something that may have to wait for the simulation, without blocking the page's server."""
        self._background.submit(self._tried, action)

    def _tried(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            traceback.print_exc()
            self.say(f"{type(error).__name__}: {error}", bad=True)

    def say(self, text: str, *, client: Any = None, bad: bool = False) -> None:
        """Show a notification in a corner of one page or of all pages."""
        for each in [client] if client is not None else list(self.server.get_clients().values()):
            each.add_notification(
                "Not possible" if bad else self.title, text, color="red" if bad else "blue", auto_close_seconds=8
            )

    # Overlays ---------------------------------------------------------------------------------------------------

    def switch(self, overlay: Overlay, on: bool) -> None:
        """Switch an overlay on or off."""
        with self._drawing:
            if (was_on := self._switched_on.pop(overlay.name, None)) is not None:
                switch, watch = was_on
                self.unwatch(watch)
                self.live.observers.remove(switch)
                switch.clear()
            if on:
                tab = self.panel.show
                switch = OverlaySwitch(
                    overlay,
                    Canvas(scene=self.server.scene, path=f"/overlays/{overlay.name}", world=self.scene),
                    selected=lambda: self.selected,
                    say=lambda text: tab.say_of(overlay, text),
                    fail=lambda why: self._give_up(overlay, why),
                )
                watch = Watch(look=switch.look, show=switch.show, seconds=overlay.seconds)
                self._switched_on[overlay.name] = (switch, watch)
                self.live.observers.append(switch)
                self.watch(watch)

    def _give_up(self, overlay: Overlay, why: str) -> None:
        self.switch(overlay, False)
        self.panel.show.turn_off(overlay)
        self.panel.show.say_of(overlay, f"Switched off: {plain(why)}")
        self.say(f"The overlay '{overlay.title}' has been switched off: {why}", bad=True)

    # The drawing thread -----------------------------------------------------------------------------------------

    def _draw_frames(self) -> None:
        last_step, last_sim = -1, self.live.sim
        while not self._closing.is_set():
            begin = perf_counter()
            live = self.live
            moved = live.sim.step_number != last_step or live.sim is not last_sim
            # Not all watches see every frame; those that missed the last one before a pause look when they are due.
            late = any(watch.step != last_step and begin >= watch.due for watch in tuple(self.watches))
            self.panel.show_state()
            if self.pulse.pages == 0 or not (moved or late or self._dirty) or not self.pulse.ready():
                self._closing.wait(_IDLE if not moved else 0.01)
                continue
            self._dirty = False
            if live.sim is not last_sim:
                self.panel.new_run()
            last_step, last_sim = live.sim.step_number, live.sim
            try:
                self.draw_now()
            except ViewError:
                # A long step: there is no frame yet.
                self._dirty = True
            except Exception:
                if self._closing.is_set():
                    return
                traceback.print_exc()
                self._closing.wait(1.0)
            self._closing.wait(max(0.0, 1.0 / _FRAMES_PER_SECOND - (perf_counter() - begin)))

    def draw_now(self) -> Frame:
        """Take a frame and draw it, with all watches that are due."""
        with self._drawing:
            now = perf_counter()
            due = [watch for watch in self.watches if now >= watch.due]
            for watch in due:
                watch.due = now + watch.seconds
            choice = self.colour

            def look(sim: Simulation) -> tuple[Frame, dict[str, Any], list[Any]]:
                frame = frame_of(sim, value=colours.values_of(choice, sim))
                meaning = {"unit": colours.unit_of(choice, sim), "names": colours.names_of(choice, sim)}
                return frame, meaning, [watch.look(sim) for watch in due]

            frame, meaning, seen = self.live.ask(look, seconds=2.0)
            for watch in due:
                watch.step = frame.step
            with self.server.atomic():
                self._draw(frame, meaning)
                for watch, what in zip(due, seen, strict=True):
                    watch.show(what)
            self.frames_drawn += 1
            self.pulse.frame_sent()
            return frame

    def _draw(self, frame: Frame, meaning: dict[str, Any]) -> None:
        coloured, scale = colours.colours_of(frame, groups=len(self.scene.groups), **meaning)
        with self.server.atomic():
            self.things.draw(frame)
            self.agents.draw(frame, coloured)
        self.frame = frame
        self.panel.show_frame(frame, scale)
