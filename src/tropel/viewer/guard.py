"""Which clients may talk to the page's server, and which of their messages it accepts.

Every address of a page contains a token that cannot be guessed. viser's page opens its WebSocket below its own
address, so the token comes with it, also inside a notebook, where frames get no cookies. Anyone who has the token may
watch and steer; other programs and users of the machine do not have it. The requested host name must be one of this
machine, otherwise a foreign page could point its own name at this server. A WebSocket must come from a page that this
very server has sent.

Anything that is not a page's message is dropped before viser sees it. Each kind of problem gives one line in the log.

viser accepts messages as they are: a wrong type raises an exception somewhere in its handlers, NaN may become a radius,
and a property name sets any attribute. So messages are first compared with the declarations in viser's own message
classes (`trouble_with`).
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

#: Deeper than anything a page sends.
_DEEPEST = 12


def trouble_with(received: Any, *, kinds: Mapping[str, type], element: Callable[[str], Any]) -> str:
    """What is wrong with something a page has sent; empty if it is a valid message.

    `kinds` are the message classes by name; `element` finds an element of the panel by its identity.
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
        return "with a missing part"
    if name == "GuiUpdateMessage" and not _is_value_of(element(told["uuid"]), told["updates"]):
        return "with a wrong value"
    return ""


@functools.cache
def _declared(kind: type) -> dict[str, Any]:
    """Types of the fields of a message class."""
    fields: Mapping[str, Any] = getattr(kind, "__dataclass_fields__", {})
    return {name: hint for name, hint in typing.get_type_hints(kind).items() if name in fields}


@functools.cache
def _required(kind: type) -> list[str]:
    import dataclasses

    missing = dataclasses.MISSING
    fields: Any = dataclasses.fields(kind)
    return [f.name for f in fields if f.init and f.default is missing and f.default_factory is missing]


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has a declared type, as viser reads it: JavaScript has only one number type."""
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
    """Whether all numbers in a value are finite, and its nesting is not too deep."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return all(_is_plain(each, depth + 1) for each in inner)
    return True


def _is_value_of(element: Any, updates: dict[str, Any]) -> bool:
    """Whether an update sets only the value of an element, to one of its type and within its limits."""
    if set(updates) != {"value"}:
        return False
    if element is None:
        return True  # an element that is gone: viser handles that
    value, now = updates["value"], element.value
    if isinstance(now, bool) or isinstance(value, bool):
        return isinstance(now, bool) == isinstance(value, bool)
    if isinstance(now, int | float):
        least, most = getattr(element, "min", None), getattr(element, "max", None)
        is_number = isinstance(value, int | float)
        return is_number and (least is None or value >= least) and (most is None or value <= most)
    return isinstance(value, list if isinstance(now, tuple) else type(now))


#: Longest message of a page [bytes].
LARGEST_MESSAGE = 1 << 20
#: Messages read per second and page; a page that moves its camera sends about fifty.
_MESSAGES_PER_SECOND = 500.0
#: A connection is closed after this many invalid messages.
_PATIENCE = 100

log = logging.getLogger("tropel.viewer")

_CLOSED = "This page needs the address that was printed when it was opened, with everything after the port.\n"


class Guard:
    """Checks everything that comes in before viser sees it."""

    def __init__(self, host: str, *, protocol: str, trouble_with: Callable[[Any], str]) -> None:
        self.token = secrets.token_urlsafe(24)
        self._host = host
        self._protocol = protocol  #: spoken by pages of this version of viser
        self._trouble_with = trouble_with
        self._said: set[str] = set()
        self.logger = _OneLineEach(self.complain)

    def complain(self, what: str, error: BaseException | None = None) -> None:
        """Log each kind of problem once; nothing that came from outside is repeated."""
        said = what if error is None else f"{what} ({type(error).__name__})"
        log.debug(said, exc_info=error)
        if said not in self._said:
            self._said.add(said)
            log.warning("the page's server: %s; further cases of this kind are not reported", said)

    # Requests ---------------------------------------------------------------------------------------------------

    def look_first(self, request_of_viser: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """A request handler that passes on to viser only what it may see."""

        def answer(connection: Any, request: Any) -> Any:
            if not may_talk(request.headers, self._host):
                self.complain("refused a request from another page, or for another host name")
                return connection.respond(403, "This page is only for the machine it runs on.\n")
            path = self._below_token(request.path)
            if path is None:
                self.complain("refused a request without the token of the page's address")
                return connection.respond(403, _CLOSED)
            is_socket = request.headers.get("Upgrade", "").lower() == "websocket"
            if is_socket and request.headers.get("Sec-WebSocket-Protocol") != self._protocol:
                self.complain("refused a WebSocket that does not belong to a page of this version")
                return connection.respond(400, _CLOSED)
            request.path = path
            response = request_of_viser(connection, request)
            if response is not None:
                # The address is a secret, and the page is useless to a later server on the same port.
                response.headers["Referrer-Policy"] = "no-referrer"
                response.headers["Cache-Control"] = "no-store"
            return response

        return answer

    def _below_token(self, path: str) -> str | None:
        """The part of a path after the token; None without the token."""
        _, _, rest = path.partition("?")[0].partition("/")
        first, _, below = rest.partition("/")
        given = first.encode(errors="surrogateescape")
        # Takes the same time whatever is wrong with it.
        return f"/{below}" if hmac.compare_digest(given, self.token.encode()) else None

    # Messages ---------------------------------------------------------------------------------------------------

    def listen_first(self, handler: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
        """A connection handler that passes only valid messages on to viser."""

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
                        await connection.close(1008, "invalid messages")

            connection.recv = receive_messages
            await handler(connection)

        return handle

    def unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle exceptions that nothing in the server's event loop has caught."""
        error = context.get("exception")
        if error is None:
            log.debug("%s", context.get("message"))
        else:
            self.complain("a message of a page could not be handled", error)


class _Pace:
    """Lets a number of messages per second pass, and makes the others wait."""

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
    """Turns what websockets logs into complaints: its tracebacks are about what clients have sent."""

    def __init__(self, complain: Callable[[str, BaseException | None], None]) -> None:
        super().__init__("tropel.viewer.connections", logging.WARNING)
        self._complain = complain

    def handle(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        # Browsers open connections ahead of time and close those they do not need.
        if not isinstance(getattr(error, "__cause__", None), EOFError):
            self._complain(record.getMessage(), error)


# Host names -----------------------------------------------------------------------------------------------------


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def may_talk(headers: Mapping[str, str], host: str) -> bool:
    """Whether a request names this machine as its host, and comes from its own page if a page sent it."""
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
    # The user serves other machines: they use an address or the name of this machine, nothing else.
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return name in (socket.gethostname().lower(), socket.getfqdn().lower())
