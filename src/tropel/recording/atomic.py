"""Files that appear whole or not at all."""

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
    """A name nobody else uses in the directory of `path`; the leading dot hides it from Parquet readers."""
    if not path.name:
        raise ParameterError(f"'{path}' names no file; give the path of one that is to be written")
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_number)}.tmp")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that takes the place of `path` at the end, whole and on the disk.

    After an error, or a kill at any moment, `path` is what it was before; after an error nothing else is left either.
    """
    temporary = temporary_name(path)
    # Not tempfile.mkstemp: its files are closed to everybody else, whatever the user's umask says.
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
    """Make the renames in a directory last through a loss of power (there is no such call on Windows)."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        # Some network and FUSE file systems refuse to sync a directory; the rename has happened all the same.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


# One writer at a time in a Parquet directory. The lock ends with the process that holds it, however it ends.

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows, where a directory with open files cannot be replaced anyway
    fcntl = None


class DirectoryLock:
    """Held from construction to `release`. It is on the scene file, which every trajectory has, and leaves no trace."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory / SCENE, os.O_RDWR)
        if fcntl is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise RecordingError(
                f"{directory} is being written by another program: wait for it, or record to another name"
            ) from error
        except OSError:
            # A file system without locks; there the user has to take care.
            return

    def release(self) -> None:
        os.close(self._descriptor)
