"""How far browsers are behind: each is asked for a sign of life after a frame and gets the next when it has answered.

Without that, a page that draws slowly (software rendering, 20 thousand agents) would collect frames without end and
fall ever further behind. The question is a read of the page's own storage, which it answers in the order of arrival,
after it has drawn what came before.
"""

from __future__ import annotations

import contextlib
import threading
from time import perf_counter
from typing import Any

#: Who has not answered for so long gets frames all the same, but only this often [s]: a page in the background.
_PATIENCE = 1.0


class Pulse:
    """Signs of life of all open pages."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._asked: dict[int, float] = {}
        self._lock = threading.Lock()
        self.round_trip = 0.0  #: of the slowest page, as last seen [s]

    @property
    def pages(self) -> int:
        return len(self._server.get_clients())

    def ready(self) -> bool:
        """Whether every open page has drawn the last frame, or is not expected to."""
        now = perf_counter()
        with self._lock:
            open_pages = self._server.get_clients()
            self._asked = {number: since for number, since in self._asked.items() if number in open_pages}
            return all(now - since > _PATIENCE for since in self._asked.values())

    def frame_sent(self) -> None:
        """Ask every page that owes no answer."""
        self._server.flush()
        for number, client in self._server.get_clients().items():
            with self._lock:
                if number in self._asked:
                    continue
                self._asked[number] = perf_counter()
            threading.Thread(target=self._wait_for, args=(number, client), daemon=True).start()

    def _wait_for(self, number: int, client: Any) -> None:
        # A page that is closed or has no storage cannot be asked; viser's own queue has to do then.
        with contextlib.suppress(RuntimeError, TimeoutError, AssertionError):
            client.local_storage.get_item("tropel", timeout=60.0)
        with self._lock:
            since = self._asked.pop(number, None)
        if since is not None:
            self.round_trip = perf_counter() - since
