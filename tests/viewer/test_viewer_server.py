"""Who may talk to the page: this machine, through the page that it was sent."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from live_scenes import two_rooms
from raw_clients import request

from tropel.errors import MissingExtraError, ParameterError, ViewError
from tropel.viewer.guard import is_loopback, may_talk
from tropel.viewer.server import free_port, start_server, stop_server


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    started = start_server(port=0, title="guarded")
    yield started
    stop_server(started)


def shaken_hands(server: Any, **headers: str) -> str:
    """What the server answers to a WebSocket's first request: the first line."""
    return request(server, f"/{server.tropel_token}", upgrade=True, **headers).split("\r\n")[0]


def test_its_own_page_may_talk(server: Any) -> None:
    assert "101" in shaken_hands(server, Origin=f"http://127.0.0.1:{server.get_port()}")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://"])
def test_pages_of_other_origins_may_not(server: Any, origin: str) -> None:
    assert "403" in shaken_hands(server, Origin=origin)


def test_a_page_that_has_renamed_itself_to_this_machine_may_not(server: Any) -> None:
    port = server.get_port()
    assert "403" in shaken_hands(server, Host=f"evil.example:{port}", Origin=f"http://evil.example:{port}")


def test_it_listens_on_this_machine_only(server: Any) -> None:
    assert server.get_host() == "127.0.0.1"
    listening = server._websock_server._host
    assert is_loopback(listening)


def test_the_tunnel_cannot_be_asked_for(server: Any) -> None:
    assert server.request_share_url() is None


@pytest.mark.parametrize(
    ("host", "headers", "may"),
    [
        ("127.0.0.1", {"Host": "localhost:8080", "Origin": "http://localhost:8080"}, True),
        ("127.0.0.1", {"Host": "[::1]:8080", "Origin": "http://[::1]:8080"}, True),
        ("127.0.0.1", {"Host": "127.0.0.1:8080"}, True),
        ("127.0.0.1", {"Host": "192.168.0.7:8080", "Origin": "http://192.168.0.7:8080"}, False),
        ("127.0.0.1", {"Origin": "http://127.0.0.1:8080"}, False),
        ("127.0.0.1", {"Host": "[bad", "Origin": "http://[bad"}, False),
        ("0.0.0.0", {"Host": "192.168.0.7:8080", "Origin": "http://192.168.0.7:8080"}, True),
        ("0.0.0.0", {"Host": "192.168.0.7:8080", "Origin": "http://192.168.0.8:8080"}, False),
        ("0.0.0.0", {"Host": "evil.example:8080", "Origin": "http://evil.example:8080"}, False),
        ("0.0.0.0", {"Host": f"{socket.gethostname()}:80", "Origin": f"http://{socket.gethostname()}:80"}, True),
    ],
)
def test_who_may_talk(host: str, headers: dict[str, str], may: bool) -> None:
    assert may_talk(headers, host) is may


def test_a_port_in_use_means_the_next_free_one(server: Any) -> None:
    taken = server.get_port()
    other = start_server(port=taken)
    try:
        assert taken < other.get_port() <= taken + 100
    finally:
        stop_server(other)


def test_hosts_that_are_not_of_this_machine_are_refused() -> None:
    with pytest.raises(ViewError, match="203\\.0\\.113\\.1"):
        free_port("203.0.113.1", 8080)


def test_a_port_is_a_number_that_ports_can_have() -> None:
    with pytest.raises(ParameterError, match="70000"):
        start_server(port=70000)


def test_other_machines_are_let_in_only_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="anyone who can reach this machine"):
        stop_server(start_server(host="0.0.0.0", port=0))


def test_without_the_extra_it_is_said_which_one_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tropel\[view\]'"):
        two_rooms().view()
