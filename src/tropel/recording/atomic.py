"""Files that appear complete or not at all, and the lock on a Parquet directory."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import IO

from tropel.errors import ParameterError, RecordingError
from tropel.recording.parquet_format import SCENE

_number = itertools.count()


def temporary_name(path: Path) -> Path:
    """A name that nothing else uses in the directory of `path`; the leading dot hides it from Parquet readers."""
    if not path.name:
        raise ParameterError(f"'{path}' is not the name of a file; give the path of the file to write")
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_number)}.tmp")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that replaces `path` at the end, complete and flushed to disk.

    After an error, or a kill at any moment, `path` is unchanged; after an error no temporary file is left either.
    """
    temporary = temporary_name(path)
    # Not tempfile.mkstemp: its files are readable by their owner only, whatever the user's umask is.
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the renames in a directory survive a power failure (Windows has no such call)."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        # Some network and FUSE file systems refuse to sync a directory; the rename has happened anyway.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


# A Parquet directory has one writer at a time. The lock ends with the process that holds it, however that process ends.
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
