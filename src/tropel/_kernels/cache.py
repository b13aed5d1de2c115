"""Compiled kernels on disk, one file for each kernel and types of arguments.

Numba's own cache unpickles whatever it finds, and a damaged file ends in an error or a crash. Here a file begins with a
checksum of all that follows, which is compared before anything is unpickled: damaged files are thrown away and their
kernels compiled again. What cannot be kept is compiled in memory. Either is a warning, never an error. Files are
written aside and renamed, so that processes that write at once, or are killed, leave nothing half-written.

A checksum is not a signature, and unpickling runs code: the directory must be closed to other users.

A kernel is used again while the sources that went into it are the same (`sources.py`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import pickle
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from tropel._kernels.claims import claimed
from tropel._kernels.sources import source_digest
from tropel.foundation.files import belongs_to_the_trusted, make_private, others_can_write, replacing, user_cache

VARIABLE = "NUMBA_CACHE_DIR"

_MARK = b"tropel-kernel blake2b="
_CHECKSUM_LENGTH = 32
_HEADER = len(_MARK) + _CHECKSUM_LENGTH
_SUFFIX = ".kernel"
#: A file that a process began to write so long ago [s] will not be finished.
_ABANDONED = 3600.0

#: What has been said in this process: one line tells of all files that share a fault.
_told: set[str] = set()


@functools.cache
def kernel_digest() -> str:
    """Digest of all source files that define or feed kernels: those in `_kernels` and those that mention it."""
    package = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(package.rglob("*.py")):
        text = source.read_bytes()
        if b"_kernels" in text or source.parent.name == "_kernels":
            digest.update(source.relative_to(package).as_posix().encode())
            digest.update(text)
    return digest.hexdigest()[:16]


@functools.cache
def cache_directory() -> Path | None:
    """Where compiled kernels are kept: in NUMBA_CACHE_DIR if set, else in the user's cache directory, else nowhere."""
    told = os.environ.get(VARIABLE)
    refused: list[str] = []
    for base in (Path(told).absolute() if told else None, user_cache()):
        if base is None:
            continue
        directory = base / f"kernels-numba-{numba.__version__}"
        fault = make_private(base) or make_private(directory)
        if not fault:
            if refused:
                _tell_once("refused", f"compiled kernels are not kept {refused[0]}; they are kept in {base} instead")
            return directory
        refused.append(f"in {base} ({fault})")
    why = " nor ".join(refused) or "(there is no home directory)"
    _tell_once(
        "refused",
        f"compiled kernels are not kept {why}; they are compiled at every start until {VARIABLE} is a directory of "
        "your own that only you can write to",
    )
    return None


def kernels_are_kept() -> bool:
    """Whether what this process compiles is there for the next one, as far as has been seen."""
    return cache_directory() is not None and "unwritable" not in _told


class KernelCache(_Cache):
    """What a dispatcher of Numba asks for compiled code, and gives it to."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        # Code typed into an interpreter has no file by which an edit of it would be noticed.
        self._enabled = os.path.isfile(inspect.getfile(function))

    @property
    def cache_path(self) -> str | None:
        return None if (directory := cache_directory()) is None else str(directory)

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Forget this kernel, whatever the types of its arguments."""
        directory = cache_directory()
        if directory is not None:
            for path in directory.glob(f"{self._stem()}-*{_SUFFIX}"):
                path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def claim(self, sig: Any, target_context: Any) -> Iterator[None]:
        """While other processes need not compile this kernel: it will be there when they get the claim."""
        target_context.refresh()
        directory = cache_directory()
        if directory is None or not self._enabled or not kernels_are_kept():
            yield
            return
        with claimed(directory / self._name(self._key(sig, target_context.codegen()))):
            yield

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        directory = cache_directory()
        if directory is None or not self._enabled:
            return None
        key = self._key(sig, target_context.codegen())
        path = directory / self._name(key)
        content = _read(path)
        if content is None:
            return None
        fault = _damage(content, path.name)
        if not fault:
            try:
                stored, reduced = pickle.loads(memoryview(content)[_HEADER:])
                return CompileResult._rebuild(target_context, *reduced) if stored == key else None
            except Exception as error:  # whole, but of no use: the packages that wrote it have changed
                fault = f"{type(error).__name__}: {error}"
        _throw_away(path, fault)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        directory = cache_directory()
        if directory is None or not self._enabled or not kernels_are_kept():
            return
        if data.lifted or data.library.has_dynamic_globals:  # would be wrong in another process
            return
        key = self._key(sig, data.codegen)
        path = directory / self._name(key)
        content = dumps((key, data._reduce()))
        try:
            _write(path, _MARK + _checksum(content, path.name) + content)
        except OSError as error:
            _tell_once(
                "unwritable",
                f"compiled kernels cannot be kept in {directory}: {error.strerror or error}; they are compiled "
                f"at every start until there is room or {VARIABLE} is another directory of your own",
            )

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """What compiled code depends on besides the version of Numba."""
        function = self._function
        closure = tuple(cell.cell_contents for cell in function.__closure__ or ())
        source = source_digest(inspect.getfile(function))
        inside = hashlib.sha256(function.__code__.co_code + (dumps(closure) if closure else b"")).hexdigest()
        return (sig, codegen.magic_tuple(), sys.implementation.cache_tag, source, self._stem(), inside)

    def _stem(self) -> str:
        name = f"{self._function.__module__}.{self._function.__qualname__}"
        return re.sub(r"[^\w.]", "", name)[-120:]

    def _name(self, key: tuple[Any, ...]) -> str:
        return f"{self._stem()}-{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}{_SUFFIX}"


def _read(path: Path) -> bytes | None:
    """All bytes of a file, or None when there is none that can be used."""
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            # The directory may have been open to others before it was closed to them.
            if os.name == "nt" or (belongs_to_the_trusted(about) and not others_can_write(about)):
                return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        _tell_once("unreadable", f"the compiled kernel {path} cannot be read ({error.strerror}); it is compiled again")
        return None
    _throw_away(path, "other users could write to it")
    return None


def _damage(content: bytes, name: str) -> str:
    """What is wrong with a file; nothing when it is as it was written, under this name."""
    if len(content) < _HEADER:
        return "it is too short"
    if not content.startswith(_MARK):
        return "its beginning is not that of a kernel"
    if content[len(_MARK) : _HEADER] != _checksum(memoryview(content)[_HEADER:], name):
        return "its checksum does not match"
    return ""


def _checksum(content: bytes | memoryview, name: str) -> bytes:
    """Of the bytes and the name they are stored under, so that a renamed file is found out too."""
    total = hashlib.blake2b(name.encode(), digest_size=_CHECKSUM_LENGTH)
    total.update(content)
    return total.digest()


def _throw_away(path: Path, fault: str) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
    _tell_once(
        "damaged",
        f"the compiled kernel {path} is of no use ({fault}); it is compiled again, as is all that is damaged there",
    )


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_abandoned(path.parent)
    # Closed to others: what they could have written to is not unpickled.
    with replacing(path, lasting=False, mode=0o600) as file:
        file.write(content)


@functools.cache
def _remove_abandoned(directory: Path) -> None:
    """Delete what processes that were killed left half-written."""
    with contextlib.suppress(OSError):  # others may delete at the same time
        for path in directory.glob(f".*{_SUFFIX}.*.tmp"):
            if path.stat().st_mtime < time.time() - _ABANDONED:
                path.unlink()


def _tell_once(kind: str, text: str) -> None:
    if kind not in _told:
        _told.add(kind)
        warnings.warn(text, stacklevel=3)
