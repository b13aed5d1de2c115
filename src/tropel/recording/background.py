"""The writing thread, and the bounded queue in front of it.

The queue blocks when it is full and never drops anything: a slow disk slows the simulation down but loses no frames.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Protocol

from tropel.recording.frames import RecordedEvent, RecordedFrame
from tropel.recording.people import People

#: Seconds of wall time between commits: about what a killed process loses.
COMMIT_INTERVAL = 1.0
#: The queue holds at most this many entries and this many bytes (or one frame, if that alone is larger).
QUEUE_ENTRIES = 256
QUEUE_BYTES = 64 * 2**20


class Sink(Protocol):
    """A file format, as the writing thread calls it. A commit makes frames readable, complete and in order."""

    @property
    def full(self) -> bool:
        """Whether enough is waiting for the next commit that it should happen now."""

    def write(self, frame: RecordedFrame) -> None: ...

    def event(self, event: RecordedEvent) -> None: ...

    def commit(self) -> bool:
        """Make everything so far readable; False if a reader blocks the commit and it should be tried again later."""

    def finish(self, summary: str | None, people: People | None) -> None:
        """Commit, store the summary (JSON) and the table of people if there are any, close."""

    def abandon(self) -> None:
        """Close after an error; what was committed stays readable, the rest is lost."""


class Background:
    """Hands frames and events to a sink on a thread of its own. Used by one other thread at a time."""

    def __init__(
        self,
        sink: Sink,
        *,
        interval: float = COMMIT_INTERVAL,
        entries: int = QUEUE_ENTRIES,
        size: int = QUEUE_BYTES,
    ) -> None:
        self._sink = sink
        self._interval = interval
        self._entries_limit = entries
        self._size_limit = size
        self._changed = threading.Condition()
        self._waiting: deque[tuple[RecordedFrame | RecordedEvent, int]] = deque()
        self._size = 0
        self._accepted = 0
        self._committed = 0
        self._flush_wanted = False
        self._stopping = False
        self._summary: str | None = None
        self._people: People | None = None
        self._failure: BaseException | None = None
        self.last_committed_frame: int | None = None
        # A daemon, so that a program that ends without closing does not hang; `TrajectoryWriter` closes it at exit.
        self._thread = threading.Thread(target=self._run, name="tropel-recording", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the thread, if one did."""
        return self._failure

    def put(self, entry: RecordedFrame | RecordedEvent, size: int) -> bool:
        """Hand over an entry, waiting for room. False if writing has failed: see `failure`."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or self._has_room(size))
            if self._failure is not None:
                return False
            self._waiting.append((entry, size))
            self._size += size
            self._accepted += 1
            self._changed.notify_all()
        return True

    def flush(self) -> bool:
        """Wait until everything handed over is committed. False if writing has failed."""
        with self._changed:
            self._flush_wanted = self._committed < self._accepted
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._failure is not None or self._committed == self._accepted)
            return self._failure is None

    def close(self, summary: str | None = None, people: People | None = None) -> bool:
        """Write what is waiting, finish the file and end the thread. False if writing has failed."""
        with self._changed:
            if not self._stopping:
                self._stopping = True
                self._summary = summary
                self._people = people
            self._changed.notify_all()
        self._thread.join()
        return self._failure is None

    def _has_room(self, size: int) -> bool:
        if not self._waiting:
            return True
        return len(self._waiting) < self._entries_limit and self._size + size <= self._size_limit

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as failure:
            try:
                self._sink.abandon()
            except BaseException as another:
                failure.add_note(f"closing the file failed too: {another}")
            with self._changed:
                self._failure = failure
                self._waiting.clear()
                self._changed.notify_all()

    def _work(self) -> None:
        due: float | None = None
        written = 0
        last_frame: int | None = None
        while True:
            with self._changed:
                timeout = None if due is None else max(0.0, due - time.monotonic())
                self._changed.wait_for(self._has_work, timeout)
                entry = None
                if self._waiting:
                    entry, size = self._waiting.popleft()
                    self._size -= size
                    self._changed.notify_all()
                flush = entry is None and self._flush_wanted
                stop = entry is None and self._stopping
            if entry is not None:
                if isinstance(entry, RecordedFrame):
                    self._sink.write(entry)
                    last_frame = entry.number
                else:
                    self._sink.event(entry)
                written += 1
                if due is None:
                    due = time.monotonic() + self._interval
            if stop:
                self._sink.finish(self._summary, self._people)
                self._note_commit(written, last_frame)
                return
            if flush or self._sink.full or (due is not None and time.monotonic() >= due):
                if self._sink.commit():
                    due = None
                    self._note_commit(written, last_frame)
                else:
                    due = time.monotonic() + self._interval

    def _has_work(self) -> bool:
        return bool(self._waiting) or self._stopping or (self._flush_wanted and self._committed < self._accepted)

    def _note_commit(self, written: int, last_frame: int | None) -> None:
        with self._changed:
            self._committed = written
            if last_frame is not None:
                self.last_committed_frame = last_frame
            if self._committed == self._accepted:
                self._flush_wanted = False
            self._changed.notify_all()
