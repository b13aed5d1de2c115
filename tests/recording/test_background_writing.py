"""The queue between the simulation and the writing thread, with a file format whose speed the test decides."""

import threading

import numpy as np
import pytest

from tropel.recording.background import Background
from tropel.recording.frames import RecordedEvent, RecordedFrame
from tropel.recording.people import People


def frame(number: int, agents: int = 1) -> RecordedFrame:
    ids = np.arange(agents)
    vectors, scalars = np.zeros((agents, 2)), np.zeros(agents)
    return RecordedFrame(
        number=number,
        id=ids,
        position=vectors,
        heading=vectors,
        group=ids.astype(np.int32),
        radius=scalars,
        speed=scalars,
        geometry_wkt=None,
        obstacles=None,
    )


class GatedList:
    """A sink in memory that writes a frame only when the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.written: list[int] = []
        self.committed: list[int] = []
        self.ended = ""
        self.fail_at: int | None = None
        self.committed_one = threading.Event()

    @property
    def full(self) -> bool:
        return False

    def write(self, entry: RecordedFrame) -> None:
        self.gate.wait()
        if entry.number == self.fail_at:
            raise OSError("no space left on device")
        self.written.append(entry.number)

    def event(self, event: RecordedEvent) -> None:
        self.written.append(-event.step)

    def commit(self) -> bool:
        self.committed = list(self.written)
        self.committed_one.set()
        return True

    def finish(self, summary: str | None, people: People | None) -> None:
        self.commit()
        self.ended = f"finished with {summary}"

    def abandon(self) -> None:
        self.ended = "abandoned"


def put_all(background: Background, numbers: range, agents: int = 1) -> tuple[threading.Thread, list[bool]]:
    answers: list[bool] = []

    def work() -> None:
        for number in numbers:
            entry = frame(number, agents)
            answers.append(background.put(entry, entry.size))

    thread = threading.Thread(target=work)
    thread.start()
    return thread, answers


def test_a_full_queue_blocks_and_drops_nothing() -> None:
    sink = GatedList()
    background = Background(sink, entries=4)
    thread, answers = put_all(background, range(50))
    thread.join(0.3)
    assert thread.is_alive()
    # One frame is with the sink, four wait.
    assert len(answers) == 5
    sink.gate.set()
    thread.join(30)
    assert background.close("the end")
    assert answers == [True] * 50
    assert sink.committed == list(range(50))
    assert sink.ended == "finished with the end"


def test_large_frames_are_limited_by_their_bytes() -> None:
    sink = GatedList()
    size = frame(0, agents=1000).size
    background = Background(sink, entries=1000, size=3 * size)
    thread, answers = put_all(background, range(20), agents=1000)
    thread.join(0.3)
    assert len(answers) == 4
    sink.gate.set()
    thread.join(30)
    assert background.close()
    assert sink.committed == list(range(20))


def test_a_frame_larger_than_the_queue_goes_through_alone() -> None:
    sink = GatedList()
    sink.gate.set()
    background = Background(sink, size=10)
    thread, answers = put_all(background, range(5), agents=1000)
    thread.join(30)
    assert background.close()
    assert (answers, sink.committed) == ([True] * 5, list(range(5)))


def test_a_failure_wakes_those_who_wait_and_is_kept() -> None:
    sink = GatedList()
    sink.fail_at = 2
    background = Background(sink, entries=4)
    thread, answers = put_all(background, range(50))
    thread.join(0.1)
    sink.gate.set()
    thread.join(30)
    assert not thread.is_alive()
    assert answers[-1] is False
    assert not background.flush()
    assert not background.close()
    assert str(background.failure) == "no space left on device"
    assert sink.ended == "abandoned"


def test_frames_are_committed_in_time_even_when_no_more_come() -> None:
    sink = GatedList()
    sink.gate.set()
    background = Background(sink, interval=0.05)
    background.put(frame(0), 1)
    assert sink.committed_one.wait(30)
    assert sink.committed == [0]
    assert background.close()


@pytest.mark.parametrize("count", [0, 1, 7])
def test_flush_waits_for_everything_before_it(count: int) -> None:
    sink = GatedList()
    background = Background(sink, interval=1000.0)
    for number in range(count):
        background.put(frame(number), 1)
    threading.Timer(0.05, sink.gate.set).start()
    assert background.flush()
    assert sink.committed == list(range(count))
    background.put(RecordedEvent(frame=9, step=9, event={}), 1)
    assert background.flush()
    assert sink.committed == [*range(count), -9]
    assert background.close()
    assert background.close()
