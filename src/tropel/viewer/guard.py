"""Who may talk to the page's server, and what of that it listens to.

Every address of a page holds a token that nobody can guess. viser's page opens its WebSocket below its own address, so
the token comes along with it, also inside a notebook, whose frames get no cookies. Whoever has it may watch and steer;
other programs and users of the machine have not. The name that is asked for must be one of this machine, or a page
could rename itself to us, and a WebSocket must come from the page that this very server has sent.

What is no message of a page is dropped before viser sees it. Each kind of trouble is one line in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import ipaddress
import logging
import math
import secrets
import socket
import types
import typing
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

# Whether what a page sends is a message that viser knows, with values of the declared types.
#
# viser takes messages as they come: a wrong type is an exception somewhere in its handlers, nan a radius of nothing,
# and a name of a property sets any attribute. The declarations are those of viser's own message classes.


#: Deeper than anything that a page sends.
_DEEPEST = 12


def trouble_with(received: Any, *, kinds: Mapping[str, type], element: Callable[[str], Any]) -> str:
    """What is wrong with something that a page has sent, nothing if it is a message.

    `kinds` are the classes of messages by name, `element` finds an element of the panel by its identity.
    """
    import msgspec

    if not isinstance(received, bytes):
        return "that is text"
    try:
        told = msgspec.msgpack.decode(received)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return "that is not MessagePack"
    if not isinstance(told, dict) or not isinstance(name := told.pop("type", None), str):
        return "without a type"
    if name not in kinds:
        return "of an unknown type"
    declared = _declared(kinds[name])
    if not all(key in declared and _fits(value, declared[key]) and _is_plain(value) for key, value in told.items()):
        return "with a wrong value"
    if any(key not in told for key in _required(kinds[name])):
        return "of which a part is missing"
    if name == "GuiUpdateMessage" and not _is_value_of(element(told["uuid"]), told["updates"]):
        return "with a wrong value"
    return ""


@functools.cache
def _declared(kind: type) -> dict[str, Any]:
    """Types of the fields of a message."""
    fields: Mapping[str, Any] = getattr(kind, "__dataclass_fields__", {})
    return {name: hint for name, hint in typing.get_type_hints(kind).items() if name in fields}


@functools.cache
def _required(kind: type) -> list[str]:
    import dataclasses

    missing = dataclasses.MISSING
    fields: Any = dataclasses.fields(kind)
    return [f.name for f in fields if f.init and f.default is missing and f.default_factory is missing]


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type, as viser reads it: JavaScript has one kind of number."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is typing.Literal:
        return value in parts if isinstance(value, str | int | float | bool) else False
    if origin is tuple:
        if not isinstance(value, list):
            return False
        if len(parts) == 2 and parts[1] is Ellipsis:
            return all(_fits(each, parts[0]) for each in value)
        return len(value) == len(parts) and all(map(_fits, value, parts))
    if hint in (float, int):
        return isinstance(value, int | float) and not isinstance(value, bool)
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) else True


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether all numbers in a value are finite, and not too large for one."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return all(_is_plain(each, depth + 1) for each in inner)
    return True


def _is_value_of(element: Any, updates: dict[str, Any]) -> bool:
    """Whether an update sets nothing but the value of an element, to one of its kind and within its limits."""
    if set(updates) != {"value"}:
        return False
    if element is None:
        return True  # one that is gone: viser knows what to do
    value, now = updates["value"], element.value
    if isinstance(now, bool) or isinstance(value, bool):
        return isinstance(now, bool) == isinstance(value, bool)
    if isinstance(now, int | float):
        least, most = getattr(element, "min", None), getattr(element, "max", None)
        is_number = isinstance(value, int | float)
        return is_number and (least is None or value >= least) and (most is None or value <= most)
    return isinstance(value, list if isinstance(now, tuple) else type(now))


#: No message of a page is longer [bytes].
LARGEST_MESSAGE = 1 << 20
#: Messages per second that are read of one page; a page that moves its camera sends about fifty.
_MESSAGES_PER_SECOND = 500.0
#: After so many messages that are none a connection is closed.
_PATIENCE = 100

log = logging.getLogger("tropel.viewer")

_CLOSED = "This page needs the address that was printed when it was opened, with everything after the port.\n"


class Guard:
    """Looks at what comes in before viser does."""

    def __init__(self, host: str, *, protocol: str, trouble_with: Callable[[Any], str]) -> None:
        self.token = secrets.token_urlsafe(24)
        self._host = host
        self._protocol = protocol  #: that pages of this version of viser speak
        self._trouble_with = trouble_with
        self._said: set[str] = set()
        self.logger = _OneLineEach(self.complain)

    def complain(self, what: str, error: BaseException | None = None) -> None:
        """Say once for each kind of trouble that there was some; nothing that came from outside is repeated."""
        said = what if error is None else f"{what} ({type(error).__name__})"
        log.debug(said, exc_info=error)
        if said not in self._said:
            self._said.add(said)
            log.warning("the page's server: %s; more of the kind are not reported", said)

    # Requests ---------------------------------------------------------------------------------------------------

    def look_first(self, request_of_viser: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """What answers a request: viser, if it is one that it may see."""

        def answer(connection: Any, request: Any) -> Any:
            if not may_talk(request.headers, self._host):
                self.complain("refused a request of another page, or by another name")
                return connection.respond(403, "This page is for the machine it runs on.\n")
            path = self._below_token(request.path)
            if path is None:
                self.complain("refused a request without the token of the page's address")
                return connection.respond(403, _CLOSED)
            is_socket = request.headers.get("Upgrade", "").lower() == "websocket"
            if is_socket and request.headers.get("Sec-WebSocket-Protocol") != self._protocol:
                self.complain("refused a WebSocket that is not of this version's page")
                return connection.respond(400, _CLOSED)
            request.path = path
            response = request_of_viser(connection, request)
            if response is not None:
                # The address is a secret, and this page is of no use to a later server on the same port.
                response.headers["Referrer-Policy"] = "no-referrer"
                response.headers["Cache-Control"] = "no-store"
            return response

        return answer

    def _below_token(self, path: str) -> str | None:
        """The part of a path behind the token; None without it."""
        _, _, rest = path.partition("?")[0].partition("/")
        first, _, below = rest.partition("/")
        given = first.encode(errors="surrogateescape")
        # In the same time whatever is wrong with it.
        return f"/{below}" if hmac.compare_digest(given, self.token.encode()) else None

    # Messages ---------------------------------------------------------------------------------------------------

    def listen_first(self, handler: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
        """What handles a connection: viser, which receives only what is a message."""

        async def handle(connection: Any) -> None:
            receive, pace, dropped = connection.recv, _Pace(_MESSAGES_PER_SECOND), 0

            async def receive_messages() -> Any:
                nonlocal dropped
                while True:
                    received = await receive()
                    await pace.keep()
                    trouble = self._trouble_with(received)
                    if not trouble:
                        return received
                    self.complain(f"dropped a message {trouble}")
                    dropped += 1
                    if dropped == _PATIENCE:
                        await connection.close(1008, "these are no messages")

            connection.recv = receive_messages
            await handler(connection)

        return handle

    def unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What nobody in the server's event loop has caught."""
        error = context.get("exception")
        if error is None:
            log.debug("%s", context.get("message"))
        else:
            self.complain("something that a page sent could not be done", error)


class _Pace:
    """Lets so many pass in a second, and keeps others waiting."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._left, self._since = per_second, monotonic()

    async def keep(self) -> None:
        now = monotonic()
        self._left = min(self._left + (now - self._since) * self._per_second, self._per_second) - 1.0
        self._since = now
        if self._left < 0.0:
            await asyncio.sleep(-self._left / self._per_second)


class _OneLineEach(logging.Logger):
    """What websockets logs, as complaints: its tracebacks are about what clients have sent."""

    def __init__(self, complain: Callable[[str, BaseException | None], None]) -> None:
        super().__init__("tropel.viewer.connections", logging.WARNING)
        self._complain = complain

    def handle(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        # Browsers open connections ahead and hang up on those that they do not need.
        if not isinstance(getattr(error, "__cause__", None), EOFError):
            self._complain(record.getMessage(), error)


# By name --------------------------------------------------------------------------------------------------------


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
