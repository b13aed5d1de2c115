"""Plans cached on disk, so that a world is planned once: `load` and `store` by a digest of geometry and parameters.

A plan is an archive of arrays with a checksum (`foundation/stored_arrays.py`). A damaged file causes a warning and a
new plan, never an error: the cache may be deleted at any time. Plans made by other sources or packages are not found,
because a changed solver may give other values.

The environment variable TROPEL_PLAN_CACHE names a folder to use instead of the user's cache directory, or is "off".
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import time
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tropel import __version__
from tropel._kernels.cache import kernel_digest
from tropel.errors import ParameterError
from tropel.foundation.files import LARGEST_CHECKPOINT, make_private, open_input, replacing, user_cache
from tropel.foundation.stored_arrays import archive_fault, read_arrays, unstorable, write_archive

#: Value of the variable that switches the cache off.
OFF = "off"
VARIABLE = "TROPEL_PLAN_CACHE"
#: Limit for all plans together [bytes]; the least recently used are deleted first.
LARGEST_TOTAL = 1 << 30

_MARK = b"tropel-plan sha256="
_DIGEST = "[0-9a-f]{16,128}"
#: Only files with these names are ever deleted: the folder may contain other files too.
_PLAN = re.compile(rf"[0-9a-f]{{12}}-{_DIGEST}\.npz")
_UNFINISHED = re.compile(rf"\.{_PLAN.pattern}\.\d+-\d+\.tmp")
#: An unfinished file of this age [s] will not be finished.
_ABANDONED = 3600.0
_SOURCES = Path(__file__).parents[1]  #: of all kinds of fields


def folder() -> Path | None:
    """The folder of the cache; None if it is off."""
    told = os.environ.get(VARIABLE, "")
    if told.lower() == OFF:
        return None
    if told:
        return Path(told)
    base = user_cache()
    return None if base is None else base / "plans"


def load(digest: str) -> dict[str, NDArray[Any]] | None:
    """The arrays stored under a digest, or None if there are none or they cannot be used."""
    path = _path(digest)
    if path is None:
        return None
    try:
        with open_input(path, largest=LARGEST_CHECKPOINT) as file:
            damage = archive_fault(file, mark=_MARK, key=digest)
            arrays = {} if damage else _arrays(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # too many open files, no permission, …: the plan itself may be intact
        warnings.warn(
            f"the cached plan {path} cannot be read ({error.strerror or error}); it is made again", stacklevel=2
        )
        return None
    except Exception as error:  # archives and arrays crafted to break their readers break them in many ways
        damage = str(error) or type(error).__name__
    if damage:
        warnings.warn(f"the cached plan {path} is damaged ({damage}); it is made again", stacklevel=2)
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return arrays


def store(digest: str, arrays: Mapping[str, NDArray[Any]], *, largest_total: int = LARGEST_TOTAL) -> None:
    """Keep arrays under a digest. A write error is only a warning: a plan can always be made again."""
    path = _path(digest)
    if path is None or sum(array.nbytes for array in arrays.values()) > largest_total // 2:
        return
    for name, array in arrays.items():
        if fault := unstorable(name, array):
            raise ParameterError(f"a plan cannot be kept: {fault}")
    try:
        # Not lasting: what a loss of power damages is made again.
        with replacing(path, lasting=False, mode=0o600) as file:
            write_archive(file, arrays, mark=_MARK, key=digest)
    except OSError as error:
        warnings.warn(f"the plan cannot be cached in {path.parent}: {error.strerror or error}", stacklevel=2)
        return
    _make_room(path, largest_total)


def _path(digest: str) -> Path | None:
    if re.fullmatch(_DIGEST, digest) is None:
        raise ParameterError(f"a plan is stored under a digest of hexadecimal digits, not {digest!r}")
    where = folder()
    if where is None:
        return None
    if fault := make_private(where):
        warnings.warn(
            f"plans are not cached in {where} ({fault}); set {VARIABLE} to a folder of your own to keep them",
            stacklevel=1,  # one place for all plans, so that it is shown once
        )
        return None
    return where / f"{_made_with()}-{digest}.npz"


@functools.cache
def _made_with() -> str:
    """Digest of everything that a plan depends on besides its own digest."""
    from importlib.metadata import version

    # Numba's version is in the digest of the kernels. Some modules that solve fields do not mention kernels.
    parts = (__version__, kernel_digest(), np.__version__, version("scipy"))
    digest = hashlib.sha256("\n".join(parts).encode())
    for source in sorted(_SOURCES.rglob("*.py")):
        digest.update(source.relative_to(_SOURCES).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _arrays(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    with zipfile.ZipFile(file) as archive:
        return read_arrays(archive, size=file.seek(0, os.SEEK_END))


def _make_room(newest: Path, largest_total: int) -> None:
    """Delete the least recently used plans until the rest is small enough, and abandoned unfinished files."""
    plans = []
    # Other processes may delete files at the same time.
    with contextlib.suppress(OSError):
        for entry in newest.parent.iterdir():
            with contextlib.suppress(OSError):
                about = entry.stat()
                if _PLAN.fullmatch(entry.name):
                    plans.append((about.st_mtime_ns, about.st_size, entry))
                elif _UNFINISHED.fullmatch(entry.name) and about.st_mtime < time.time() - _ABANDONED:
                    entry.unlink()
    total = sum(size for _, size, _ in plans)
    for _, size, entry in sorted(plans):
        if total <= largest_total:
            return
        if entry != newest:
            with contextlib.suppress(OSError):
                entry.unlink()
                total -= size
