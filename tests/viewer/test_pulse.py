"""Frames follow the browsers: none is sent to a page that has not drawn the last one."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest

from tropel.viewer import pulse as module
from tropel.viewer.pulse import Pulse


class Storage:
    """A page's storage that answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.answer = Event(), Event()

    def get_item(self, key: str, timeout: float) -> None:
        self.asked.set()
        assert self.answer.wait(timeout)


class OpenPage:
    def __init__(self) -> None:
        self.local_storage = Storage()


class Pages:
    """A server with open pages."""

    def __init__(self, count: int) -> None:
        self.open = {number: OpenPage() for number in range(count)}

    def get_clients(self) -> dict[int, OpenPage]:
        return dict(self.open)

    def flush(self) -> None:
        """Everything has gone out."""

    def answer(self, number: int) -> None:
        storage = self.open[number].local_storage
        assert storage.asked.wait(10.0)
        storage.answer.set()


def soon(holds: Callable[[], bool]) -> bool:
    return any(holds() or Event().wait(0.01) for _ in range(1000))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    return now


def test_a_page_alone_is_waited_for(clock: list[float]) -> None:
    pages = Pages(1)
    pulse = Pulse(pages)
    assert pulse.ready()
    pulse.frame_sent()
    for clock[0] in (100.1, 101.0, 1000.0):
        assert not pulse.ready()
    pages.answer(0)
    assert soon(lambda: pulse.round_trip == 900.0)
    clock[0] += 1.0
    assert pulse.ready()


@pytest.mark.parametrize(("took", "rests"), [(0.1, 0.0), (0.6, 0.3), (8.0, 1.0)])
def test_a_slow_page_has_time_for_its_user_between_frames(took: float, rests: float, clock: list[float]) -> None:
    pages = Pages(1)
    pulse = Pulse(pages)
    pulse.frame_sent()
    clock[0] += took
    pages.answer(0)
    assert soon(lambda: pulse.round_trip == pytest.approx(took))
    assert soon(pulse.ready) if not rests else not pulse.ready()
    clock[0] += rests + 1e-6
    assert pulse.ready()


def test_a_page_that_sleeps_does_not_hold_up_the_others(clock: list[float]) -> None:
    pages = Pages(2)
    pulse = Pulse(pages)
    pulse.frame_sent()
    pages.answer(0)
    assert not pulse.ready()
    clock[0] += 6.0
    assert soon(pulse.ready)


def test_a_page_that_is_closed_owes_nothing(clock: list[float]) -> None:
    pages = Pages(1)
    pulse = Pulse(pages)
    pulse.frame_sent()
    assert not pulse.ready()
    waiting = pages.open.pop(0)
    assert pulse.ready()
    waiting.local_storage.answer.set()
