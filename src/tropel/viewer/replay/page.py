"""`tropel view RUN`: a recorded run in the browser, with a time slider.

A thread reads the frame that is due, draws it and waits; frames that are no longer due are never read. Time stands
still while no page is open, so that the first page to open shows the beginning. `Player` is the clock: the current
time of the recording, whether it plays, and how fast.
"""

from __future__ import annotations

import os
import threading
import traceback
from time import perf_counter
from typing import Any

from tropel.errors import ParameterError, TropelError
from tropel.foundation.arguments import checked_arguments
from tropel.recording import Trajectory, read_trajectory
from tropel.viewer.camera import frame_pages
from tropel.viewer.colours import GROUP
from tropel.viewer.frame import Frame
from tropel.viewer.pulse import Pulse
from tropel.viewer.replay.frames import RecordedFrames, RunDrawing
from tropel.viewer.replay.panel import RecordedOverlays, ReplayPanel
from tropel.viewer.server import HOST, PORT, frame_html, import_viser, page_address, start_server, stop_server


class Player:
    """Moves from `start` to `end` [s] as real time passes; stops at the end."""

    def __init__(self, start: float, end: float, *, speed: float = 1.0, playing: bool = True) -> None:
        self.start, self.end = start, end
        self.time = start
        self.playing = playing and end > start
        self.set_speed(speed)

    @property
    def at_end(self) -> bool:
        return self.time >= self.end

    def set_speed(self, speed: float) -> None:
        """Set the number of recorded seconds per second."""
        if not 0.0 < speed < float("inf"):
            raise ParameterError(f"speed is the number of recorded seconds per second, above zero, not {speed!r}")
        self.speed = float(speed)

    def play(self) -> None:
        """Continue; at the end, start again."""
        if self.at_end:
            self.time = self.start
        self.playing = self.end > self.start

    def pause(self) -> None:
        self.playing = False

    def seek(self, time: float) -> None:
        """Go to a time, clipped to the run."""
        self.time = min(max(float(time), self.start), self.end)

    def advance(self, seconds: float) -> None:
        """Let real time pass."""
        if not self.playing:
            return
        self.seek(self.time + seconds * self.speed)
        if self.at_end:
            self.playing = False


_FRAMES_PER_SECOND = 25.0
#: Interval of the thread while nothing moves or no page is open [s].
_IDLE = 0.05


class ReplayPage:
    """A recorded run and its page. Use it as a context manager, or call `close`; notebooks show it inline."""

    def __init__(
        self,
        trajectory: Trajectory,
        *,
        host: str = HOST,
        port: int = PORT,
        speed: float = 1.0,
        playing: bool = True,
        colour: str = GROUP,
    ) -> None:
        self.frames = RecordedFrames(trajectory)
        self.colour = self.frames.check_choice(colour)
        self.player = Player(float(self.frames.times[0]), float(self.frames.times[-1]), speed=speed, playing=playing)
        self.title = trajectory.scene.title or trajectory.path.stem
        self.server = start_server(host=host, port=port, title=self.title)
        self.host, self.port = host, int(self.server.get_port())
        self.frame: Frame | None = None  #: the newest one drawn
        self.index = -1  #: its index
        self.closed = False
        self._dirty = False
        self._closing = threading.Event()
        try:
            self.stage = RunDrawing(self.server, self.frames)
            self.overlays = RecordedOverlays(self.server, self.frames)
            self.pulse = Pulse(self.server)
            self.panel = ReplayPanel(self)
            self._draw(0)
            frame_pages(self.server, self.stage.scene)
        except BaseException:
            stop_server(self.server)
            raise
        self._thread = threading.Thread(target=self._play, name="tropel replay", daemon=True)

    @property
    def address(self) -> str:
        """The address of the page."""
        return page_address(self.server, self.host)

    def start(self) -> None:
        self._thread.start()

    def seek(self, time: float) -> None:
        """Go to a time of the run [s]."""
        self.player.seek(time)
        self.redraw()

    def step(self, frames: int) -> None:
        """Pause, and move by a number of frames, forwards or back."""
        self.player.pause()
        index = min(max(self.frames.index_at(self.player.time) + frames, 0), len(self.frames) - 1)
        self.seek(float(self.frames.times[index]))

    def redraw(self) -> None:
        self._dirty = True

    def wait(self) -> None:
        """Wait until Ctrl-C; then close."""
        try:
            while not self._closing.wait(0.2):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Close the page and the file."""
        if self.closed:
            return
        self.closed = True
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(10.0)
        stop_server(self.server)
        self.frames.close()

    def __enter__(self) -> ReplayPage:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return frame_html(self.address, closed=self.closed)

    # The thread -------------------------------------------------------------------------------------------------

    def _play(self) -> None:
        before = perf_counter()
        while not self._closing.is_set():
            now = perf_counter()
            if self.pulse.pages:
                self.player.advance(now - before)
            before = now
            self.panel.show_state()
            index = self.frames.index_at(self.player.time)
            if self.pulse.pages and (index != self.index or self._dirty) and self.pulse.ready():
                self._dirty = False
                self._draw_safely(index)
                self._closing.wait(max(0.0, 1.0 / _FRAMES_PER_SECOND - (perf_counter() - now)))
            else:
                self._closing.wait(_IDLE if not self.player.playing else 0.01)

    def _draw_safely(self, index: int) -> None:
        try:
            self._draw(index)
            self.panel.show_trouble("")
        except TropelError as error:
            # A file that is damaged somewhere: the rest of it can still be shown.
            self.index = index
            self.player.pause()
            self.panel.show_trouble(str(error))
        except Exception:
            if not self._closing.is_set():
                traceback.print_exc()
                self._closing.wait(1.0)

    def _draw(self, index: int) -> None:
        frame = self.frames.frame(index, colour=self.colour)
        with self.server.atomic():
            scale = self.stage.draw(index, frame, colour=self.colour)
            self.panel.show_frame(frame, scale)
            self.panel.show_overlays(self.overlays.draw(index, frame))
        self.pulse.frame_sent()
        self.index, self.frame = index, frame


@checked_arguments
def open_replay(
    run: str | os.PathLike[str] | Trajectory,
    *,
    host: str = HOST,
    port: int = PORT,
    speed: float = 1.0,
    playing: bool = True,
    colour: str = GROUP,
) -> ReplayPage:
    """Show a recorded run (a trajectory file) on a page, until the replay is closed.

    Agents are coloured by "group", "speed", "density" or, if the run recorded who left when, "time to exit".
    """
    import_viser()
    options: dict[str, Any] = {"host": host, "port": port, "speed": speed, "playing": playing, "colour": colour}
    if isinstance(run, Trajectory):
        replay = ReplayPage(run, **options)
    else:
        trajectory = read_trajectory(run)
        try:
            replay = ReplayPage(trajectory, **options)
        except BaseException:
            trajectory.close()
            raise
    replay.start()
    return replay
