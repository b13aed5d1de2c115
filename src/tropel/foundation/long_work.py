"""Work that may take minutes reports its progress; code that waits for it may listen (`run/progress.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Called with what is being done, how much of it is done, and how much there is in total.
Listener = Callable[[str, float, float], None]

_listeners: list[Listener] = []


def report(what: str, done: float, total: float) -> None:
    """Report the progress of something; costs nothing while there are no listeners."""
    for listener in _listeners:
        listener(what, done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call a function with all progress reports inside this context."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
