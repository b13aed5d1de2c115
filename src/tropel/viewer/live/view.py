"""`sim.view()`: a page in the browser for a simulation that runs while it is watched."""

from __future__ import annotations

import contextlib
import os
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console

from tropel.errors import ViewError
from tropel.foundation.arguments import CHECKED_ELSEWHERE, checked_arguments
from tropel.viewer.live.page import Page
from tropel.viewer.live.run import Files, LiveRun
from tropel.viewer.server import HOST, PORT, frame_html, in_notebook

if TYPE_CHECKING:
    from tropel.run.loop import Summary
    from tropel.simulation import Simulation


class View:
    """A live run and its page. Use it as a context manager, or call `close`; notebooks show it inline."""

    def __init__(self, live: LiveRun, page: Page) -> None:
        self.live = live
        self.page = page
        self.closed = False

    @property
    def address(self) -> str:
        """The address of the page."""
        return self.page.address

    def start(self) -> None:
        self.live.start()
        self.page.open()

    def wait(self) -> None:
        """Wait until Ctrl-C, or until the run has been stopped; then close."""
        try:
            while self.live.alive:
                self.live.join(0.2)
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """End the run after its current step, close its files and the page."""
        if not self.closed:
            self.closed = True
            self.live.stop()
            self.live.join()
            self.page.close()

    def _repr_html_(self) -> str:
        return frame_html(self.address, closed=self.closed)

    def __enter__(self) -> View:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_view(sim: Simulation, *, host: str = HOST, port: int = PORT, **options: Any) -> View:
    """Start a run, with the options of `LiveRun`, and its page; both continue until the view is closed."""
    live = LiveRun(sim, **options)
    view = View(live, Page(live, host=host, port=port))
    view.start()
    return view


@checked_arguments
def view_simulation(
    sim: Simulation,
    *,
    until: Any = None,
    limit: Annotated[float | None, CHECKED_ELSEWHERE] = None,
    record: str | os.PathLike[str] | None = None,
    fps: float = 10.0,
    build: Callable[[int], Simulation] | None = None,
    speed: Annotated[float, CHECKED_ELSEWHERE] = 1.0,
    paused: bool = False,
    host: str = HOST,
    port: int = PORT,
    browser: bool = True,
) -> Summary | View:
    """The implementation of `Simulation.view`: run with a page in the browser, until Ctrl-C.

    In a notebook it returns at once. The run continues behind the page, which the cell shows, until the view is closed
    or the simulation is viewed again.

    `until` and `limit` determine when it pauses; `record` and `fps` are as for `run`. `build` builds the simulation
    again for a seed, for restarts. By default the page restarts from a copy of the simulation as it is now, and with
    other seeds if nothing was changed after it was built. `speed` is the largest number of simulated seconds per
    second. The page is served on this machine only, unless another `host` is given, and on the first free port from
    `port` on.
    """
    files = Files(trajectory=None if record is None else Path(record), fps=fps)
    options = {"until": until, "limit": limit, "files": files, "build": build, "speed": speed, "playing": not paused}
    if in_notebook():
        return _view_inline(sim, host=host, port=port, **options)
    return watch(sim, host=host, port=port, browser=browser, **options)


_inline: list[View] = []


def _view_inline(sim: Simulation, **options: Any) -> View:
    """Open a view without blocking the notebook.

    A cell that is run again closes the view it opened before: two threads must not step the same simulation.
    """
    for view in [view for view in _inline if view.closed or view.live.sim is sim]:
        view.close()
        _inline.remove(view)
    _inline.append(open_view(sim, **options))
    return _inline[-1]


def watch(sim: Simulation, *, host: str = HOST, port: int = PORT, browser: bool = True, **options: Any) -> Summary:
    """Show a run, print its address, and wait for Ctrl-C; returns the summary, or raises what made the run fail."""
    # Ctrl-C may come at any moment, also while the address is being printed.
    with open_view(sim, host=host, port=port, **options) as view, contextlib.suppress(KeyboardInterrupt):
        _announce(view, wanted=port, browser=browser)
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
    """`watch`, with the files that the run of a scenario writes."""
    files = Files(trajectory=record, fps=fps, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
    return watch(sim, files=files, **options)


def _announce(view: View, *, wanted: int, browser: bool) -> None:
    """Print the address of the page, and open it if there is a browser."""
    console = Console(stderr=True)
    if wanted not in (0, view.page.port):
        console.print(f"Port {wanted} is in use, so the page uses port {view.page.port}.", highlight=False)
    console.print(f"The page is at {view.address}  (Ctrl-C ends the run)", highlight=False, soft_wrap=True)
    if browser:
        webbrowser.open(view.address)
