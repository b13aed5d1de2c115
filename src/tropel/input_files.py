"""Every file that tropel reads by a name somebody gave is opened here: regular files up to a stated size only.

A name in a scenario or on the command line may be that of a device that never ends, of a FIFO that nobody writes to, or
of a file larger than the memory. All are refused with an OSError whose `strerror` says why, before anything is read.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_MIB = 1 << 20
_GIB = 1 << 30

#: The largest files that are read [bytes]. Those of the first rows are read as a whole.
LARGEST_SCENARIO = 64 * _MIB
LARGEST_GEOMETRY = 256 * _MIB  #: WKT, GeoJSON, maps of cells
LARGEST_PICTURE = 256 * _MIB
LARGEST_RECORD = 1 * _GIB  #: of events, and other text of a recorded run
LARGEST_CHECKPOINT = 16 * _GIB  #: and plans that are kept
LARGEST_TRAJECTORY = 1024 * _GIB  #: read piece by piece

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
# Opening a FIFO waits for somebody who writes to it, unless told not to.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_BLOCK = 1 << 20


def open_input(path: str | os.PathLike[str], *, largest: int) -> BinaryIO:
    """A regular file of at most `largest` bytes, opened for reading."""
    descriptor = os.open(path, _FLAGS)
    try:
        _check(os.fstat(descriptor), path, largest)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def check_input(path: Path, *, largest: int) -> None:
    """Raise what `open_input` would, for files that another library opens by their name.

    The file is not opened: closing it again would end the locks that SQLite holds on it in this process.
    """
    _check(os.stat(path), path, largest)


def _check(about: os.stat_result, path: str | os.PathLike[str], largest: int) -> None:
    if not stat.S_ISREG(about.st_mode):
        kind = _KINDS.get(stat.S_IFMT(about.st_mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))
    if about.st_size > largest:
        raise _too_large(path, about.st_size, largest)


def read_bytes(path: str | os.PathLike[str], *, largest: int) -> bytes:
    """All of a file, which may have grown since it was opened."""
    blocks, size = [], 0
    with open_input(path, largest=largest) as file:
        while block := file.read(_BLOCK):
            blocks.append(block)
            size += len(block)
            if size > largest:
                raise _too_large(path, size, largest)
    return b"".join(blocks)


def read_text(path: str | os.PathLike[str], *, largest: int, encoding: str = "utf-8") -> str:
    """All of a text file, with the ends of its lines as \\n."""
    text = read_bytes(path, largest=largest).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _too_large(path: str | os.PathLike[str], size: int, largest: int) -> OSError:
    return OSError(errno.EFBIG, f"it has {_text(size)}, and at most {_text(largest)} are read", str(path))


def _text(size: int) -> str:
    return f"{size / _GIB:.4g} GiB" if size >= _GIB else f"{size / _MIB:.4g} MiB"
