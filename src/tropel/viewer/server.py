"""The web server of the page: on this machine only, and only for users who have the page's address.

By default viser listens on every address, offers a public tunnel, and accepts any WebSocket, so that any page open in
the same browser and any program on the machine could steer the run. Here it listens on 127.0.0.1 unless another host is
given, the tunnel is off, and requests and messages are checked before viser sees them (`guard.py`).
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


def import_viser() -> Any:
    """The viser module, or an error that names the extra to install. viser comes with the extra `view`."""
    try:
        return importlib.import_module("viser")
    except ImportError as error:
        raise MissingExtraError("the browser viewer", "view") from error


# In a notebook, the output of the cell is a frame that shows the page, served by the kernel.

#: Height of that frame [pixels].
_HEIGHT = 560


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook (not a terminal, and not IPython in one)."""
    # Code that runs in a kernel has IPython imported already.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def frame_html(address: str, *, closed: bool = False, height: int = _HEIGHT) -> str:
    """What a notebook shows for a page: the page itself, or a note that it is closed."""
    if closed:
        return "<p>This page has been closed; view the simulation again to open a new one.</p>"
    place = html.escape(address, quote=True)
    return (
        f'<iframe src="{place}" title="tropel" width="100%" height="{height}" '
        f'style="border:1px solid #ccc"></iframe>'
        f'<p style="font-size:smaller">Also at <a href="{place}" target="_blank">{place}</a>, '
        f"on the machine where the kernel runs.</p>"
    )


HOST = "127.0.0.1"
PORT = 8080
#: How many ports are tried, starting with the wanted one.
_PORTS_TRIED = 100
_EVERYWHERE = ("0.0.0.0", "::", "")

_starting = threading.Lock()


def start_server(*, host: str = HOST, port: int = PORT, title: str = "tropel") -> Any:
    """A viser server on the first free port from `port` on; `get_port()` returns it."""
    viser = import_viser()
    if not 0 <= port <= 65535:
        raise ParameterError(f"a port is a number from 0 (any free port) to 65535, not {port}")
    if not is_loopback(host):
        warnings.warn(
            f"the page is served on {host or 'every address'}: anyone who can reach this machine and learns the "
            f"page's address, which is sent unencrypted, can see and steer the run; leave the host out to "
            f"serve it on this machine only",
            stacklevel=3,
        )

    class Server(viser.ViserServer):  # type: ignore[name-defined]
        """viser's server without the tunnel that would put the page on the internet, even if a browser requests it."""

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
    # A page may close at any moment; losing the last message to it is not worth a warning.
    warnings.filterwarnings("ignore", message="Queued a .* on a closed connection", category=UserWarning)
    free = free_port(host, port)
    with _quiet(), _guarded(guard) as engaged:
        server = Server(host=host, port=free, label=title, verbose=False)
    if not engaged:
        stop_server(server)
        raise ViewError("this version of viser starts its server in a way that tropel cannot guard; use viser 1.1")
    server.tropel_token = guard.token
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    _light(server.scene)
    # Next to the world, not on top of it.
    server.gui.main_panel.dock_right()
    return server


def _light(scene: Any) -> None:
    """Even light, under which colours look as they should.

    viser's default, with shadows and an environment map, makes colours paler, and without a graphics card it costs more
    than everything else that is drawn.
    """
    scene.configure_default_lights(enabled=False, cast_shadow=False)
    scene.configure_environment_map(None)
    scene.add_light_ambient("/lights/everywhere", intensity=2.6)
    scene.add_light_directional("/lights/sun", intensity=1.6, position=(-0.4, -0.7, 1.0), cast_shadow=False)


def page_address(server: Any, host: str) -> str:
    """The address of a server's page, with the token it requires."""
    shown = HOST if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{server.get_port()}/{server.tropel_token}"


def stop_server(server: Any) -> None:
    with _quiet():
        server.stop()


def free_port(host: str, port: int) -> int:
    """The first port from the wanted one on that no other program uses."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = port if port == 0 else min(port + _PORTS_TRIED, 65536) - 1
    for candidate in range(port, last + 1):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except socket.gaierror as error:
                raise ViewError(
                    f"unknown host '{host}': the page cannot be served there; leave it out for {HOST}"
                ) from error
            except OSError as error:
                if not _is_taken(host, family):
                    raise ViewError(f"cannot serve the page on {host}: {error.strerror}; leave the host out") from error
                continue
            return int(probe.getsockname()[1])
    raise ViewError(f"no port from {port} to {last} is free on {host}; choose another one with --port")


def _is_taken(host: str, family: socket.AddressFamily) -> bool:
    """Whether the host belongs to this machine, so that the problem must be the port."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _guarded(guard: Guard) -> Iterator[list[bool]]:
    """Put the guard in front of a server while it starts. viser has no option for that, but websockets has."""
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
    """Suppress viser's own messages on the terminal."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
