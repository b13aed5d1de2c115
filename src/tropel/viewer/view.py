"""`sim.view()`: a page in the browser for a simulation that runs at the same time."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tropel.errors import ViewError
from tropel.viewer.live import Files, LiveRun
from tropel.viewer.page import Page
from tropel.viewer.server import HOST, PORT

if TYPE_CHECKING:
    from tropel.running import Summary
    from tropel.simulation import Simulation


class View:
    """A live run and its page. Use it as a context manager, or call `close`."""

    def __init__(self, live: LiveRun, page: Page) -> None:
        self.live = live
        self.page = page

    @property
    def address(self) -> str:
        """Where the page is."""
        return self.page.address

    def start(self) -> None:
        self.live.start()
        self.page.open()

    def wait(self) -> None:
        """Until Ctrl-C, or until the run has been stopped; then close."""
        try:
            while self.live.alive:
                self.live.join(0.2)
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """End the run after its step, close its files and the page."""
        self.live.stop()
        self.live.join()
        self.page.close()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_view(
    sim: Simulation,
    *,
    until: Any = None,
    limit: float | None = None,
    files: Files | None = None,
    build: Callable[[int], Simulation] | None = None,
    host: str = HOST,
    port: int = PORT,
    speed: float = 1.0,
    playing: bool = True,
) -> View:
    """Start the run and its page; both go on until the view is closed."""
    live = LiveRun(sim, until=until, limit=limit, files=files, build=build, speed=speed, playing=playing)
    view = View(live, Page(live, host=host, port=port))
    view.start()
    return view


def view_simulation(
    sim: Simulation,
    *,
    record: str | os.PathLike[str] | None,
    fps: float,
    build: Callable[[int], Simulation] | None,
    host: str,
    port: int,
    speed: float,
    paused: bool,
    browser: bool,
) -> Summary:
    """What `Simulation.view` does: show, say where, wait for Ctrl-C."""
    files = Files(trajectory=None if record is None else Path(record), fps=fps)
    view = open_view(sim, files=files, build=build, host=host, port=port, speed=speed, playing=not paused)
    announce(view, wanted=port, browser=browser)
    view.wait()
    return finished(view)


def announce(view: View, *, wanted: int, browser: bool) -> None:
    """Say where the page is, and open it if a browser can be had."""
    from rich.console import Console

    console = Console(stderr=True)
    if wanted not in (0, view.page.port):
        console.print(f"Port {wanted} is in use; the page has the next free one.")
    console.print(f"The page is at {view.address}; Ctrl-C ends the run.", highlight=False)
    if browser:
        webbrowser.open(view.address)


def finished(view: View) -> Summary:
    """The summary of a view that has been closed; raises what broke its run."""
    if view.live.error:
        raise ViewError(f"the run ended with an error: {view.live.error}")
    assert view.live.summary is not None
    return view.live.summary
