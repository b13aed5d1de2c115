"""Claims on kernels, so that processes that start together do not all compile the same ones.

A claim is a lock on one byte of a file in the cache. The operating system releases it when the process ends, for
whatever reason. Claims only save time: if one cannot be had, or is held for too long (say by a process that was
suspended), the kernel is compiled here too, and the last process to finish replaces the file of the other.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # there are no such locks on Windows
    fcntl = None  # type: ignore[assignment]

#: No kernel takes this long [s] to compile, even on a busy machine.
_PATIENCE = 60.0
_BETWEEN_LOOKS = 0.02

_FILE = "claims"


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Hold the claim on the file of a kernel. Waits while another process holds it and the file does not exist."""
    if fcntl is None or path.exists():
        yield
        return
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            descriptor = os.open(path.parent / _FILE, os.O_RDWR | os.O_CREAT, 0o600)
            held.callback(os.close, descriptor)
            _wait_for(descriptor, path)
        yield


def _wait_for(descriptor: int, path: Path) -> None:
    place = int.from_bytes(hashlib.blake2b(path.name.encode(), digest_size=4).digest(), "little")
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and not path.exists():
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            return
        except BlockingIOError:
            time.sleep(_BETWEEN_LOOKS)
