"""Opening the files that users name, writing files that appear complete or not at all, and private cache directories.

Every file that tropel reads by a given name is opened here: only regular files, up to a stated size. A name in a
scenario or on the command line may belong to a device that never ends, a FIFO without a writer, or a file larger than
the memory. All are refused before anything is read, with an OSError whose `strerror` gives the reason.

Only their owner can write to cache directories: compiled kernels are code, and plans decide results. A directory is
private if it belongs to the user or to root and nobody else can write to it, and if the same holds for every directory
and symbolic link on the path to it. Otherwise another user could put a different one in its place.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from tropel.errors import ParameterError

_MIB = 1 << 20
_GIB = 1 << 30

#: The largest files that are read [bytes]. The first few kinds are read as a whole.
LARGEST_SCENARIO = 64 * _MIB
LARGEST_GEOMETRY = 256 * _MIB  #: WKT, GeoJSON, maps of cells
LARGEST_PICTURE = 256 * _MIB
LARGEST_RECORD = 1 * _GIB  #: of events, and other text of a recorded run
LARGEST_CHECKPOINT = 16 * _GIB  #: also of cached plans
LARGEST_TRAJECTORY = 1024 * _GIB  #: read piece by piece

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
# Without O_NONBLOCK, opening a FIFO waits for a writer.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_BLOCK = 1 << 20
_number = itertools.count()


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
    """Raise what `open_input` would, for files that another library opens by name.

    The file is not opened: closing it again would release the locks that SQLite holds on it in this process.
    """
    _check(os.stat(path), path, largest)


def _check(about: os.stat_result, path: str | os.PathLike[str], largest: int) -> None:
    if not stat.S_ISREG(about.st_mode):
        kind = _KINDS.get(stat.S_IFMT(about.st_mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))
    if about.st_size > largest:
        raise _too_large(path, about.st_size, largest)


def read_bytes(path: str | os.PathLike[str], *, largest: int) -> bytes:
    """The whole content of a file, which may have grown since it was opened."""
    blocks, size = [], 0
    with open_input(path, largest=largest) as file:
        while block := file.read(_BLOCK):
            blocks.append(block)
            size += len(block)
            if size > largest:
                raise _too_large(path, size, largest)
    return b"".join(blocks)


def read_text(path: str | os.PathLike[str], *, largest: int, encoding: str = "utf-8") -> str:
    """The whole content of a text file, with \\n as line ends."""
    text = read_bytes(path, largest=largest).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _too_large(path: str | os.PathLike[str], size: int, largest: int) -> OSError:
    return OSError(errno.EFBIG, f"it has {_text(size)}, but at most {_text(largest)} can be read", str(path))


def _text(size: int) -> str:
    return f"{size / _GIB:.4g} GiB" if size >= _GIB else f"{size / _MIB:.4g} MiB"


def temporary_name(path: Path) -> Path:
    """A name that nothing else uses in the directory of `path`; the leading dot hides it from Parquet readers."""
    if not path.name:
        raise ParameterError(f"'{path}' is not the name of a file; give the path of the file to write")
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_number)}.tmp")


@contextlib.contextmanager
def replacing(path: Path, *, lasting: bool = True, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Write a file that replaces `path` at the end, complete and flushed to disk.

    After an error, or a kill at any moment, `path` is unchanged; after an error no temporary file is left either.
    With `lasting` false nothing is flushed: a power failure may damage the file, which caches notice.
    """
    temporary = temporary_name(path)
    # Not tempfile.mkstemp: its files are readable by their owner only, whatever the user's umask is.
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with open(descriptor, "w+b") as file:
            yield file
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if lasting:
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


def user_cache() -> Path | None:
    """The directory for all of the user's caches; None if there is no home directory."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification requires that relative paths are ignored.
    base = told if os.path.isabs(told) else os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "tropel") if os.path.isabs(base) else None


def make_private(path: Path) -> str:
    """Make a directory that only its owner can use, if it is missing; returns why it is not private, or ""."""
    path = path.absolute()
    try:
        missing = [place for place in (path, *path.parents) if not place.exists()]
        # Nothing is created in directories of other users.
        fault = _fault_above(path.parents[len(missing) - 1]) if missing else _fault(path)
        if fault or not missing:
            return fault
        for place in reversed(missing):
            place.mkdir(mode=0o700, exist_ok=True)
        return _fault(path)  # another process may have been faster
    except OSError as error:
        return error.strerror or str(error)


def _fault(path: Path) -> str:
    real = Path(os.path.realpath(path))
    if not real.is_dir():
        return "it is not a directory"
    if os.name != "nt" and others_can_write(real.stat()):
        return _open_to_others(real)
    return _fault_above(path)


def _fault_above(path: Path) -> str:
    """What lets others replace a directory below this one, which itself may be shared, as /tmp is."""
    if os.name == "nt":  # owner and mode bits mean nothing there
        return ""
    real = Path(os.path.realpath(path))
    for place in dict.fromkeys((real, *real.parents, path, *path.parents)):
        about = place.lstat()
        if not belongs_to_the_trusted(about):
            return f"{place} belongs to another user, number {about.st_uid}"
        # In a sticky directory users cannot rename or remove what belongs to others.
        if others_can_write(about) and not (about.st_mode & stat.S_ISVTX or _is_only_for_the_user_s_group(about)):
            return _open_to_others(place)
    return ""


def _open_to_others(place: Path) -> str:
    shared = place.stat().st_mode & stat.S_ISVTX  # intentionally, as /tmp is
    remedy = "choose a directory below it" if shared else f"run  chmod go-w '{place}'"
    return f"other users can write to {place}; {remedy}"


def belongs_to_the_trusted(about: os.stat_result) -> bool:
    """Whether a file belongs to the user or to root, who can do everything anyway."""
    # In a sandbox root may have another uid: that of the owner of "/".
    return about.st_uid in (0, os.geteuid(), os.stat("/").st_uid)


def others_can_write(about: os.stat_result) -> bool:
    # The mode bits of a symbolic link mean nothing.
    return not stat.S_ISLNK(about.st_mode) and bool(about.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _is_only_for_the_user_s_group(about: os.stat_result) -> bool:
    """Whether only a group without other members can write to it; many systems set up home directories like that."""
    return not about.st_mode & stat.S_IWOTH and about.st_gid in _groups_without_others(os.geteuid())


@functools.cache
def _groups_without_others(user: int) -> tuple[int, ...]:
    import grp
    import pwd

    try:
        account = pwd.getpwuid(user)
        group = grp.getgrgid(account.pw_gid)
    except KeyError:
        return (0,)
    alone = group.gr_name == account.pw_name and set(group.gr_mem) <= {account.pw_name}
    return (0, group.gr_gid) if alone else (0,)
