"""The web server of the page: on this machine only, and only its own page may talk to it.

viser listens on every address by default, offers a public tunnel, and accepts WebSockets of any origin, by which any
page open in the same browser could steer the run. Here it listens on 127.0.0.1 unless asked otherwise, the tunnel is
off, and requests are looked at before viser sees them: the name they ask for must be one of this machine (or a page
could rename itself to us), and a WebSocket must come from the page that this very server has sent.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import ipaddress
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from tropel.errors import ParameterError, ViewError
from tropel.viewer.extra import import_viser

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
            f"the page is served on {host or 'every address'}: everybody who reaches this machine can see and steer "
            f"the run; leave the host out to serve it on this machine only",
            stacklevel=3,
        )

    class Server(viser.ViserServer):  # type: ignore[name-defined]
        """Without the tunnel that would put the page on the internet, even if a browser asks for it."""

        def request_share_url(self, verbose: bool = True) -> str | None:
            return None

    free = free_port(host, port)
    with _quiet(), _guarded(host) as engaged:
        server = Server(host=host, port=free, label=title, verbose=False)
    if not engaged:
        stop_server(server)
        raise ViewError("this version of viser starts its server in another way, which tropel cannot guard; use 1.1")
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


def stop_server(server: Any) -> None:
    with _quiet():
        server.stop()


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


def may_talk(headers: Mapping[str, str], host: str) -> bool:
    """Whether a request is for this machine by a name of its own, and from its own page if a page sent it."""
    asked = headers.get("Host", "")
    try:
        name = urlsplit(f"//{asked}").hostname or ""
    except ValueError:
        return False
    if not _is_own_name(name, host):
        return False
    origin = headers.get("Origin")
    return origin is None or origin in (f"http://{asked}", f"https://{asked}")


def _is_own_name(name: str, host: str) -> bool:
    if name == "localhost" or name == host.lower() or is_loopback(name):
        return True
    if is_loopback(host):
        return False
    # Somebody asked for other machines: they come by an address or by this machine's name, not by any other.
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return name in (socket.gethostname().lower(), socket.getfqdn().lower())


@contextlib.contextmanager
def _guarded(host: str) -> Iterator[list[bool]]:
    """While a server starts, look at its requests before it does. viser has no option for that, websockets has."""
    websockets: Any = importlib.import_module("websockets.asyncio.server")

    engaged: list[bool] = []
    with _starting:
        serve = websockets.serve

        @functools.wraps(serve)
        def guarded_serve(*arguments: Any, process_request: Callable[..., Any], **options: Any) -> Any:
            engaged.append(True)

            def look_first(connection: Any, request: Any) -> Any:
                if not may_talk(request.headers, host):
                    return connection.respond(403, "This page is for the machine it runs on.\n")
                return process_request(connection, request)

            return serve(*arguments, process_request=look_first, **options)

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
