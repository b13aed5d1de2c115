"""Compile every kernel once, so that later runs start immediately.

Kernels are compiled when they are first called, and cached on disk. Small scenes call each of them with the types that
real runs use (`warmup_scenes.py`); processes share them among all cores.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tropel._kernels.cache import cache_directory, kernel_digest, kernels_are_kept
from tropel._kernels.compile import compiled_kernels, watch_compiling
from tropel._kernels.processes import CompilingProcess
from tropel.warmup_scenes import PARTS

#: What most scenes need; a first demo compiles nothing else. The two parts work towards each other: one starts with the
#: first stages of a step, the other with the last, and neither compiles what the other has claimed.
BASICS = ("a crowd in a room", "bodies in a room")


def _mark(directory: Path, what: str) -> Path:
    """The file that marks a part as compiled from exactly these sources: kernels of others may be there as well."""
    return directory / f"{what.replace(' ', '-')}-{kernel_digest()}"


def is_warm(parts: Sequence[str] = BASICS) -> bool:
    """Whether these parts have been compiled before."""
    directory = cache_directory()
    return directory is not None and all(_mark(directory, what).exists() for what in parts)


def warm_up(tell: Callable[[int, str], None] | None = None, parts: Sequence[str] | None = None) -> int:
    """Compile what is not compiled yet; returns the number of kernels. `tell(done, what)` is called with the progress.

    The compiler uses one core, so there is a process per core. Each takes the next part when it has finished one.
    """
    chosen = list(PARTS) if parts is None else list(parts)
    # Parts that are compiled already take less time to run here than a process takes to start.
    cold = [what for what in chosen if not is_warm([what])]
    first = [what for what in chosen if what in BASICS] or chosen[:1]
    work = _Work(sorted(chosen, key=lambda what: (what not in first, what not in cold)), tell)
    helpers = min(_cores(), len(cold)) - 1 if kernels_are_kept() else 0  # otherwise what they compile would be lost
    with watch_compiling(work.begun), contextlib.ExitStack() as at_work:
        for _ in range(helpers):
            at_work.enter_context(_helping(work))
        while (what := work.next()) is not None:
            if what not in first and not kernels_are_kept():
                work.give_up()
                return work.ended(f"{work.compiled} kernels compiled, none of them kept")
            _compile_part(what)
            work.finished(0, what)
    while (what := work.next()) is not None:  # left over from a process that was killed
        work.finished(_compile_part(what), what)
    return work.ended(f"{work.compiled} kernels compiled" if work.compiled else "everything was compiled already")


class _Work:
    """The parts that are left to compile, for the next free process, and the progress."""

    def __init__(self, parts: Sequence[str], tell: Callable[[int, str], None] | None) -> None:
        self._waiting = deque(parts)
        self._tell = tell or (lambda done, what: None)
        self._lock = threading.Lock()
        self._total = len(parts)
        self._done = 0
        self.compiled = 0

    def next(self) -> str | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def give_up(self) -> None:
        with self._lock:
            self._waiting.clear()

    def left_undone(self, what: str) -> None:
        with self._lock:
            self._waiting.append(what)

    def begun(self, name: str) -> None:
        """A kernel is being compiled in this process."""
        with self._lock:
            self.compiled += 1
            self._tell(self._done, f"compiling {name}")

    def finished(self, count: int, what: str) -> None:
        """A part is done; another process compiled `count` kernels for it."""
        with self._lock:
            self.compiled += count
            self._done += 1
            self._tell(self._done, what)

    def ended(self, how: str) -> int:
        self._tell(self._total, how)
        return self.compiled


@contextlib.contextmanager
def _helping(work: _Work) -> Iterator[None]:
    """Another process that compiles parts until none is left."""
    helper = CompilingProcess("tropel.warmup", "_compile_part")

    def help_out() -> None:
        while (what := work.next()) is not None:
            answer = helper.do(what)
            if answer is None:
                return work.left_undone(what)
            count, warned = answer
            for text in warned:
                warnings.warn(text, stacklevel=2)
            work.finished(count, what)
        return None

    thread = threading.Thread(target=help_out)
    thread.start()
    try:
        yield
        thread.join()
    finally:
        helper.stop()
        thread.join()


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _compile_part(what: str) -> int:
    """Run everything in a part once; returns how many kernels had to be compiled."""
    names: list[str] = []
    with watch_compiling(names.append):
        PARTS[what]()
    if kernels_are_kept() and (directory := cache_directory()) is not None:
        with contextlib.suppress(OSError):  # then the part is run again, and its kernels are found one by one
            _mark(directory, what).touch()
    return len(names)


def kernels() -> list[str]:
    """Names of all kernels that are compiled in this process."""
    return sorted(k.py_func.__module__ + "." + k.py_func.__name__ for k in compiled_kernels() if k.is_compiled)
