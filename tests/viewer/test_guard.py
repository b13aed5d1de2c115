"""Garbage and strangers at the page's server: one line in the log for each kind, and pages go on working."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, sleep
from typing import Any

import pytest
from raw_clients import CAMERA, answered, packed, page_of, request
from websockets.exceptions import ConnectionClosed

from tropel.viewer import guard
from tropel.viewer.guard import LARGEST_MESSAGE
from tropel.viewer.server import page_address, start_server, stop_server


@pytest.fixture
def server() -> Iterator[Any]:
    started = start_server(port=0, title="guarded")
    yield started
    stop_server(started)


def wait_until(true: Callable[[], Any], *, seconds: float = 60.0) -> None:
    deadline = perf_counter() + seconds
    while not true():
        assert perf_counter() < deadline, f"this was not so within {seconds} s"
        sleep(0.01)


def still_works(server: Any, page: Any) -> None:
    """A page is sent what the server draws, and what it says is heard."""
    clicks: list[bool] = []
    button = server.gui.add_button("still there")
    button.on_click(lambda _: clicks.append(True))
    page.send(packed(type="GuiUpdateMessage", uuid=button._impl.uuid, updates={"value": True}))
    wait_until(lambda: clicks)
    assert page.recv(timeout=30.0)


# The token ----------------------------------------------------------------------------------------------------------


def test_the_address_of_a_page_holds_a_token_of_its_own(server: Any) -> None:
    other = start_server(port=0)
    try:
        tokens = {page_address(each, "127.0.0.1").rpartition("/")[2] for each in (server, other)}
    finally:
        stop_server(other)
    assert len(tokens) == 2
    assert all(len(token) >= 32 for token in tokens)


@pytest.mark.parametrize("upgrade", [False, True], ids=["page", "socket"])
def test_with_the_token_one_may_enter(server: Any, upgrade: bool) -> None:
    wanted = "HTTP/1.1 101" if upgrade else "HTTP/1.1 200"
    for path in (f"/{server.tropel_token}", f"/{server.tropel_token}/", f"/{server.tropel_token}/?fixedDpr=1"):
        assert request(server, path, upgrade=upgrade).startswith(wanted)


@pytest.mark.parametrize("upgrade", [False, True], ids=["page", "socket"])
def test_without_it_one_is_told_to_use_the_address_that_was_printed(server: Any, upgrade: bool) -> None:
    token = server.tropel_token
    guesses = ["/", "/index.html", f"/{token[:-1]}", f"/{token}x", f"/{token.swapcase()}", f"/?token={token}", "//"]
    for path in [*guesses, f"//{token}", f"/x/{token}", "/%00", "/\xe9", "/" + "x" * 4000]:
        answer = request(server, path, upgrade=upgrade)
        assert answer.startswith("HTTP/1.1 403"), path
        assert "the address that was printed" in answer
        assert token not in answer


def test_what_belongs_to_the_page_is_below_the_token_only(server: Any) -> None:
    assert request(server, f"/{server.tropel_token}/index.html").startswith("HTTP/1.1 200")
    assert request(server, f"/{server.tropel_token}/nothing.js").startswith("HTTP/1.1 404")
    assert request(server, f"/{server.tropel_token}/../../etc/passwd").startswith("HTTP/1.1 404")


def test_the_address_is_told_to_nobody_else(server: Any) -> None:
    answer = request(server, f"/{server.tropel_token}")
    assert "Referrer-Policy: no-referrer" in answer
    assert "Cache-Control: no-store" in answer


def test_other_pages_may_not_enter_even_with_the_token(server: Any) -> None:
    path = f"/{server.tropel_token}"
    assert "403" in request(server, path, upgrade=True, Origin="http://evil.example")
    assert "403" in request(server, path, upgrade=True, Host="evil.example", Origin="http://evil.example")


# Garbage ------------------------------------------------------------------------------------------------------------


def bytes_of_no_request(server: Any) -> list[bytes]:
    token = server.tropel_token.encode()
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    asks = b"GET /" + token + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    return [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 50,
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon here\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: [::bad\r\n\r\n",
        asks + b"\r\n",
        asks + b"Connection: Upgrade\r\nSec-WebSocket-Protocol: viser-v[bold]0\r\n" + key + b"\r\n\r\n",
        asks + b"Connection: Upgrade\r\nSec-WebSocket-Version: 99\r\n" + key + b"\r\n\r\n",
        bytes(range(256)) * 20,
    ]


def messages_that_are_none(server: Any) -> list[bytes | str]:
    slider = server.gui.add_slider("radius", min=0.0, max=5.0, step=0.1, initial_value=1.0)
    text = server.gui.add_text("name", initial_value="x")
    update = {"type": "GuiUpdateMessage", "uuid": slider._impl.uuid}
    deep: Any = 1.0
    for _ in range(60):
        deep = [deep]
    return [
        "text",
        b"",
        b"\xc1",
        b"\xff" * 100,
        b"\xdf\xff\xff\xff\xff",
        b"\x91" * 100_000,
        packed(),
        packed(type=None),
        packed(type=["GuiUpdateMessage"]),
        packed(type="Message"),
        packed(type="NoSuchMessage"),
        packed(**{**CAMERA, "position": [0.0, float("nan"), 0.0]}),
        packed(**{**CAMERA, "position": [0.0, 0.0]}),
        packed(**{**CAMERA, "fov": "wide"}),
        packed(**{**CAMERA, "wxyz": {"w": 1}}),
        packed(**{**CAMERA, "surprise": 1}),
        packed(type="ViewerCameraMessage"),
        packed(**update, updates={"value": float("nan")}),
        packed(**update, updates={"value": float("inf")}),
        packed(**update, updates={"value": "nan"}),
        packed(**update, updates={"value": 1e9}),
        packed(**update, updates={"value": {"a": 1}}),
        packed(**update, updates={"value": None}),
        packed(**update, updates={"value": True}),
        packed(**update, updates={"update_cb": 5}),
        packed(**update, updates={"value": deep}),
        packed(**update, updates=5),
        packed(type="GuiUpdateMessage", uuid=["x"], updates={"value": 1}),
        packed(type="GuiUpdateMessage", uuid=text._impl.uuid, updates={"value": 5}),
        packed(type="ScenePointerMessage", event_type="explode", ray_origin=None, ray_direction=None, screen_pos=[]),
        packed(type="FileTransferPart", source_component_uuid=None, transfer_uuid=5, part_index="x", content=b""),
    ]


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not any(record.exc_info for record in said), "with a traceback"
    return [record.getMessage() for record in said]


def test_what_is_no_request_is_a_line_for_each_kind(
    server: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with page_of(server) as page:
        wait_until(lambda: len(server.get_clients()) == 1)
        for _ in range(3):
            for sent in bytes_of_no_request(server):
                answered(server, sent)
        half_open = [socket.create_connection(("127.0.0.1", server.get_port())) for _ in range(20)]
        for number, plug in enumerate(half_open):
            plug.sendall(b"GET / HT" if number % 2 else b"")
        for plug in half_open:
            plug.close()
        still_works(server, page)
    said = complaints(caplog)
    assert any("handshake failed" in line for line in said)
    assert len(said) == len(set(said)) <= len(bytes_of_no_request(server))
    assert all("\n" not in line for line in said)
    printed = "".join(capfd.readouterr())
    assert "Traceback" not in printed
    assert "bold" not in printed, "what strangers send is not repeated"


def test_who_hangs_up_is_no_news(server: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Browsers open connections ahead and may not need them."""
    with page_of(server) as page:
        for begun in (b"", b"GET /", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n") * 3:
            with socket.create_connection(("127.0.0.1", server.get_port())) as plug:
                plug.sendall(begun)
        still_works(server, page)
    assert complaints(caplog) == []


def test_messages_that_are_none_are_dropped_and_a_line_for_each_kind(
    server: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    garbage = messages_that_are_none(server)
    values = {handle.label: handle.value for handle in server.gui._gui_input_handle_from_uuid.values()}
    with page_of(server) as page, page_of(server) as other:
        wait_until(lambda: len(server.get_clients()) == 2)
        for each in [*garbage, *garbage]:
            page.send(each)
        still_works(server, page)
        still_works(server, other)
        after = {handle.label: handle.value for handle in server.gui._gui_input_handle_from_uuid.values()}
        assert {label: after[label] for label in values} == values, "garbage has changed something"
    said = complaints(caplog)
    assert len(said) == len(set(said)) <= 8
    assert "Traceback" not in "".join(capfd.readouterr())


def test_every_message_that_is_none_is_found(server: Any) -> None:
    from functools import partial

    import viser._messages

    from tropel.viewer.guard import trouble_with

    kinds = {kind.__name__: kind for kind in viser._messages.Message.get_subclasses()}
    look = partial(trouble_with, kinds=kinds, element=server.gui._gui_input_handle_from_uuid.get)
    for each in messages_that_are_none(server):
        assert look(each), each
    for fine in (
        packed(**CAMERA),
        packed(type="LocalStorageGetItemResponseMessage", value=None, error=None, request_uuid="x"),
        packed(type="GuiUpdateMessage", uuid="one that is gone", updates={"value": 3}),
    ):
        assert look(fine) == ""


def test_who_sends_nothing_else_is_shown_the_door_and_others_stay(server: Any) -> None:
    with page_of(server) as page, page_of(server) as stranger:
        wait_until(lambda: len(server.get_clients()) == 2)
        for _ in range(200):
            with contextlib.suppress(ConnectionClosed):
                stranger.send(b"\xc1")
        wait_until(lambda: len(server.get_clients()) == 1)
        still_works(server, page)


def test_frames_that_break_the_protocol_or_are_huge_close_that_connection_only(
    server: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with page_of(server) as page:
        wait_until(lambda: len(server.get_clients()) == 1)
        for frame in (
            b"\xff\xff" + b"\x00" * 30,
            b"\x82\x05hello",
            b"\x82\xff" + (1 << 40).to_bytes(8, "big") + b"abcd",
            b"\x83\x80abcd",
            b"\x88\x81abcd\x00",
        ):
            with page_of(server) as stranger:
                wait_until(lambda: len(server.get_clients()) == 2)
                stranger.socket.sendall(frame)
                wait_until(lambda: len(server.get_clients()) == 1)
        with page_of(server) as stranger:
            wait_until(lambda: len(server.get_clients()) == 2)
            stranger.send(b"\x00" * (LARGEST_MESSAGE + 1))
            wait_until(lambda: len(server.get_clients()) == 1)
        still_works(server, page)
    assert len(said := complaints(caplog)) == len(set(said))
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_fault_of_the_page_itself_is_a_line_and_its_traceback_is_for_those_who_ask(
    server: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, logger="tropel.viewer")
    button = server.gui.add_button("breaks")

    @button.on_click
    async def _(event: Any) -> None:
        raise ZeroDivisionError

    with page_of(server) as page:
        wait_until(lambda: len(server.get_clients()) == 1)
        for _ in range(3):
            page.send(packed(type="GuiUpdateMessage", uuid=button._impl.uuid, updates={"value": True}))
        wait_until(lambda: complaints(caplog))
        still_works(server, page)
    assert [line for line in complaints(caplog) if "ZeroDivisionError" in line] == complaints(caplog)
    assert any(record.exc_info for record in caplog.records if record.levelno == logging.DEBUG)
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_page_that_floods_the_server_is_read_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    async def sleep_for(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(guard, "monotonic", lambda: now[0])
    monkeypatch.setattr(asyncio, "sleep", sleep_for)

    async def flood() -> None:
        pace = guard._Pace(100.0)
        for _ in range(1000):
            await pace.keep()

    # In a thread of its own: Playwright, if it has been used before, keeps a loop running in this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, flood()).result()
    assert now[0] == pytest.approx(9.0), "the first hundred at once, then a hundred in a second"
