"""`sim.view()`: a page in the browser for a simulation that runs at the same time."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

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


def open_view(sim: Simulation, *, host: str = HOST, port: int = PORT, **options: Any) -> View:
    """Start a run, with the options of `LiveRun`, and its page; both go on until the view is closed."""
    live = LiveRun(sim, **options)
    view = View(live, Page(live, host=host, port=port))
    view.start()
    return view


def view_simulation(
    sim: Simulation,
    *,
    until: Any = None,
    limit: float | None = None,
    record: str | os.PathLike[str] | None = None,
    fps: float = 10.0,
    build: Callable[[int], Simulation] | None = None,
    speed: float = 1.0,
    paused: bool = False,
    host: str = HOST,
    port: int = PORT,
    browser: bool = True,
) -> Summary:
    """What `Simulation.view` does: run with a page in the browser, until Ctrl-C.

    `until` and `limit` say when it pauses, `record` and `fps` are as for `run`. `build` makes the simulation of a seed
    anew, for restarts. `speed` is how many simulated seconds pass in a second, at most. The page is on this machine
    only, unless another `host` is given, and on the first free port from `port` on.
    """
    files = Files(trajectory=None if record is None else Path(record), fps=fps)
    options = {"until": until, "limit": limit, "files": files, "build": build, "speed": speed, "playing": not paused}
    return watch(sim, host=host, port=port, browser=browser, **options)


def watch(sim: Simulation, *, host: str = HOST, port: int = PORT, browser: bool = True, **options: Any) -> Summary:
    """Show a run, say where, and wait for Ctrl-C; returns the summary, or raises what broke the run."""
    view = open_view(sim, host=host, port=port, **options)
    try:
        _announce(view, wanted=port, browser=browser)
    finally:
        view.wait()
    if view.live.error:
        raise ViewError(f"the run ended with an error: {view.live.error}")
    assert view.live.summary is not None
    return view.live.summary


def watch_files(
    sim: Simulation,
    *,
    record: Path,
    fps: float,
    checkpoint: Path,
    checkpoint_every: float,
    **options: Any,
) -> Summary:
    """`watch`, with the files that a scenario's run writes."""
    files = Files(trajectory=record, fps=fps, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
    return watch(sim, files=files, **options)


def _announce(view: View, *, wanted: int, browser: bool) -> None:
    """Say where the page is, and open it where there is a browser to open."""
    console = Console(stderr=True)
    if wanted not in (0, view.page.port):
        console.print(f"Port {wanted} is in use, so the page has port {view.page.port}.", highlight=False)
    console.print(f"The page is at {view.address}  (Ctrl-C ends the run)", highlight=False)
    if browser:
        webbrowser.open(view.address)
