"""The lock on a Parquet directory, which has one writer at a time.

The lock ends with the process that holds it, however that process ends.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

from tropel.errors import RecordingError
from tropel.recording.parquet_format import SCENE

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows, where a directory with open files cannot be replaced anyway
    fcntl = None


class DirectoryLock:
    """Held from construction to `release`. It locks the scene file, which every trajectory has, and leaves no trace."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory / SCENE, os.O_RDWR)
        if fcntl is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise RecordingError(
                f"{directory} is being written by another program: wait for it to finish, or record to another name"
            ) from error
        except OSError:
            # A file system without locks: there the user must make sure that only one program writes.
            return

    def release(self) -> None:
        os.close(self._descriptor)
