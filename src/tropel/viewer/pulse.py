"""How far browsers lag behind: each must confirm a frame before it gets the next.

Otherwise a page that draws slowly (software rendering, 20 thousand agents) would queue frames without end and fall
ever further behind. The confirmation is a read of the page's own storage. A page answers in order of arrival, so it
answers after drawing everything that came before.
"""

from __future__ import annotations

import contextlib
import threading
from time import perf_counter
from typing import Any

#: A page that has not answered for this long is asleep in the background: others then get frames without it [s].
_ASLEEP = 5.0
#: Interval between frames while one of several pages is asleep, since it queues them until it wakes up [s].
_WHILE_ONE_SLEEPS = 0.5
#: A page that takes longer than this for a frame is slow. Before the next one it gets half of that time, at most a
#: second, to handle its user's clicks [s].
_SLOW, _LONGEST_REST = 0.25, 1.0


class Pulse:
    """Confirmations of all open pages."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._asked: dict[int, float] = {}
        self._lock = threading.Lock()
        self._sent_at = self._rests_until = 0.0
        self.round_trip = 0.0  #: of the last page that answered [s]

    @property
    def pages(self) -> int:
        return len(self._server.get_clients())

    def ready(self) -> bool:
        """Whether the pages have drawn the last frame. A single page is waited for, however long it takes."""
        now = perf_counter()
        with self._lock:
            pages = self._server.get_clients()
            self._asked = {number: since for number, since in self._asked.items() if number in pages}
            waits = [now - since for since in self._asked.values()]
            if not waits:
                return now >= self._rests_until
            if len(waits) == len(pages) or min(waits) < _ASLEEP:
                return False
            return now - self._sent_at >= _WHILE_ONE_SLEEPS

    def frame_sent(self) -> None:
        """Ask every page that has no answer pending."""
        self._server.flush()
        self._sent_at = perf_counter()
        for number, client in self._server.get_clients().items():
            with self._lock:
                if number in self._asked:
                    continue
                self._asked[number] = perf_counter()
            threading.Thread(target=self._wait_for, args=(number, client), daemon=True).start()

    def _wait_for(self, number: int, client: Any) -> None:
        # A page that is closed or has no storage cannot be asked; then viser's own queue has to do.
        with contextlib.suppress(RuntimeError, TimeoutError, AssertionError):
            client.local_storage.get_item("tropel", timeout=60.0)
        with self._lock:
            since = self._asked.pop(number, None)
        if since is not None:
            now = perf_counter()
            self.round_trip = now - since
            if self.round_trip > _SLOW:
                self._rests_until = now + min(0.5 * self.round_trip, _LONGEST_REST)
