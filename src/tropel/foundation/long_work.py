"""Work that may take minutes says how far it has come; whoever waits for it may listen (`progress.planning`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Called with what is being done, how much of it is done, and how much there is.
Listener = Callable[[str, float, float], None]

_listeners: list[Listener] = []


def report(what: str, done: float, total: float) -> None:
    """Say how far something has come; costs nothing while nobody listens."""
    for listener in _listeners:
        listener(what, done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have a function told of all long work meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
