"""Clients of the page's server without a browser: bytes over a socket, and a WebSocket that speaks viser's protocol."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import msgspec
import viser
from websockets.sync.client import ClientConnection, connect

PROTOCOL = f"viser-v{viser.__version__}"

CAMERA: dict[str, Any] = {
    "type": "ViewerCameraMessage",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [0.0, 0.0, 5.0],
    "fov": 1,
    "near": 0.1,
    "far": 100.0,
    "image_height": 400,
    "image_width": 600,
    "look_at": [0.0, 0.0, 0.0],
    "up_direction": [0.0, 1.0, 0.0],
}


def packed(**message: Any) -> bytes:
    return msgspec.msgpack.encode(message)


def answered(server: Any, sent: bytes) -> str:
    """What the server answers to bytes; nothing if it closes without a word."""
    with socket.create_connection(("127.0.0.1", server.get_port()), timeout=30.0) as plug:
        plug.sendall(sent)
        with contextlib.suppress(ConnectionResetError):
            return plug.recv(4000).decode(errors="replace")
    return ""


def request(server: Any, path: str, *, upgrade: bool = False, **headers: str) -> str:
    """What the server answers to a request, which is a WebSocket's first one with `upgrade`."""
    told = {"Host": f"127.0.0.1:{server.get_port()}"}
    if upgrade:
        told |= {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        told |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": PROTOCOL}
    told |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items())]
    return answered(server, ("\r\n".join(lines) + "\r\n\r\n").encode())


@contextlib.contextmanager
def page_of(server: Any) -> Iterator[ClientConnection]:
    """A page, as far as the server can tell."""
    address = f"ws://127.0.0.1:{server.get_port()}/{server.tropel_token}"
    with connect(address, subprotocols=[PROTOCOL], max_size=None) as page:  # type: ignore[list-item]
        page.send(packed(**CAMERA))
        yield page
