"""The web server of the page: on this machine only, and only for those who have the page's address.

viser listens on every address by default, offers a public tunnel, and accepts WebSockets of anybody, by which any page
open in the same browser and any program on the machine could steer the run. Here it listens on 127.0.0.1 unless asked
otherwise, the tunnel is off, and requests and messages are looked at before viser sees them (`guard.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import html
import importlib
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tropel.errors import MissingExtraError, ParameterError, ViewError
from tropel.viewer.guard import LARGEST_MESSAGE, Guard, is_loopback, trouble_with

# viser, which comes with the extra `view`.


def import_viser() -> Any:
    """The module viser, or an error that says which extra to install."""
    try:
        return importlib.import_module("viser")
    except ImportError as error:
        raise MissingExtraError("the browser viewer", "view") from error


# Pages inside notebooks: a frame in the cell's output that shows the page of a server of the kernel.

#: Of the frame in a notebook [pixels].
_HEIGHT = 560


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook (not a terminal, and not IPython in one)."""
    # Who runs in a kernel has imported IPython already.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def frame_html(address: str, *, closed: bool = False, height: int = _HEIGHT) -> str:
    """What a notebook shows for a page: the page itself, or that it is closed."""
    if closed:
        return "<p>This page has been closed; view it again to open a new one.</p>"
    place = html.escape(address, quote=True)
    return (
        f'<iframe src="{place}" title="tropel" width="100%" height="{height}" '
        f'style="border:1px solid #ccc"></iframe>'
        f'<p style="font-size:smaller">Also at <a href="{place}" target="_blank">{place}</a>, '
        f"on the machine that the kernel runs on.</p>"
    )


HOST = "127.0.0.1"
PORT = 8080
#: How many ports are tried from the wanted one on.
_PORTS_TRIED = 100
_EVERYWHERE = ("0.0.0.0", "::", "")

_starting = threading.Lock()


def start_server(*, host: str = HOST, port: int = PORT, title: str = "tropel") -> Any:
    """A viser server on the first free port from `port` on; `get_port()` says which it is."""
    viser = import_viser()
    if not 0 <= port <= 65535:
        raise ParameterError(f"a port is a number from 0 (any free one) to 65535, not {port}")
    if not is_loopback(host):
        warnings.warn(
            f"the page is served on {host or 'every address'}: everybody who reaches this machine and learns the "
            f"page's address, which is not encrypted on its way, can see and steer the run; leave the host out to "
            f"serve it on this machine only",
            stacklevel=3,
        )

    class Server(viser.ViserServer):  # type: ignore[name-defined]
        """Without the tunnel that would put the page on the internet, even if a browser asks for it."""

        def request_share_url(self, verbose: bool = True) -> str | None:
            return None

    def element(identity: str) -> Any:
        return server.gui._gui_input_handle_from_uuid.get(identity)

    kinds = {kind.__name__: kind for kind in viser._messages.Message.get_subclasses()}
    guard = Guard(
        host,
        protocol=f"viser-v{viser.__version__}",
        trouble_with=functools.partial(trouble_with, kinds=kinds, element=element),
    )
    # A page may be closed at any moment; that the last message for it is lost is no news.
    warnings.filterwarnings("ignore", message="Queued a .* on a closed connection", category=UserWarning)
    free = free_port(host, port)
    with _quiet(), _guarded(guard) as engaged:
        server = Server(host=host, port=free, label=title, verbose=False)
    if not engaged:
        stop_server(server)
        raise ViewError("this version of viser starts its server in another way, which tropel cannot guard; use 1.1")
    server.tropel_token = guard.token
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    _light(server.scene)
    # Beside the world, not above it.
    server.gui.main_panel.dock_right()
    return server


def _light(scene: Any) -> None:
    """Even light, under which colours look as they are meant.

    viser's own, with shadows and a picture of the surroundings, makes colours paler, and where there is no graphics
    card it costs more than everything that is drawn.
    """
    scene.configure_default_lights(enabled=False, cast_shadow=False)
    scene.configure_environment_map(None)
    scene.add_light_ambient("/lights/everywhere", intensity=2.6)
    scene.add_light_directional("/lights/sun", intensity=1.6, position=(-0.4, -0.7, 1.0), cast_shadow=False)


def page_address(server: Any, host: str) -> str:
    """Where the page of a server is, with the token that it asks for."""
    shown = HOST if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{server.get_port()}/{server.tropel_token}"


def stop_server(server: Any) -> None:
    with _quiet():
        server.stop()


def free_port(host: str, port: int) -> int:
    """The first port from the wanted one on that nobody listens on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = port if port == 0 else min(port + _PORTS_TRIED, 65536) - 1
    for candidate in range(port, last + 1):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except socket.gaierror as error:
                raise ViewError(f"there is no host '{host}' to serve the page on; leave it out for {HOST}") from error
            except OSError as error:
                if not _is_taken(host, family):
                    raise ViewError(f"cannot serve the page on {host}: {error.strerror}; leave the host out") from error
                continue
            return int(probe.getsockname()[1])
    raise ViewError(f"no port from {port} to {last} is free on {host}; choose another with --port")


def _is_taken(host: str, family: socket.AddressFamily) -> bool:
    """Whether the host is one of this machine, so that only the port can be what is wrong."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _guarded(guard: Guard) -> Iterator[list[bool]]:
    """While a server starts, put the guard before it. viser has no option for that, websockets has."""
    websockets: Any = importlib.import_module("websockets.asyncio.server")

    engaged: list[bool] = []
    with _starting:
        serve = websockets.serve

        @functools.wraps(serve)
        def guarded_serve(handler: Any, *arguments: Any, process_request: Callable[..., Any], **options: Any) -> Any:
            engaged.append(True)
            asyncio.get_running_loop().set_exception_handler(guard.unhandled)
            options |= {"max_size": LARGEST_MESSAGE, "logger": guard.logger}
            look = guard.look_first(process_request)
            return serve(guard.listen_first(handler), *arguments, process_request=look, **options)

        websockets.serve = guarded_serve
        try:
            yield engaged
        finally:
            websockets.serve = serve


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without viser's own messages on the terminal."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
