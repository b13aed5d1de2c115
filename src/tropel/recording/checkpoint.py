"""Checkpoints: everything a run needs to go on, in one file that is whole or not there.

The file is a NumPy .npz (a zip archive of arrays, no pickle) with `meta.json` inside. The archive's comment, which is
the very end of the file, is the SHA-256 of all bytes before it, so that no flipped bit and no missing end goes unseen.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tropel import __version__
from tropel.errors import CheckpointError
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.files import LARGEST_CHECKPOINT, open_input
from tropel.foundation.stored_arrays import check_members, read_arrays
from tropel.recording.atomic import replacing
from tropel.recording.plain import plain_data

VERSION = 1
#: Where a loaded meta says what the checkpoint was written with.
RECORDED_WITH = "recorded_with"

_MARK = b"tropel-checkpoint sha256="
_DIGEST_LENGTH = 64
_META = "meta.json"
_ARRAYS = "arrays/"
_PACKAGES = ("numpy", "numba")


@checked_arguments
def save_checkpoint(
    path: str | os.PathLike[str], *, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]
) -> None:
    """Write a checkpoint, replacing the one at `path` only when the new one is complete and on the disk.

    `meta` is plain data (JSON). Versions and CPU of this machine are added to it as `recorded_with`.
    """
    path = Path(path)
    content = plain_data(dict(meta), where="meta", error=CheckpointError, keep_non_finite=True)
    content[RECORDED_WITH] = this_environment()
    envelope = json.dumps({"version": VERSION, "meta": content}, ensure_ascii=False).encode()
    for name, array in arrays.items():
        _check_array(name, array)
    try:
        with replacing(path) as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(_META, envelope)
                for name, array in arrays.items():
                    with archive.open(f"{_ARRAYS}{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
                archive.comment = _MARK + b"0" * _DIGEST_LENGTH
            end = file.seek(0, os.SEEK_END) - _DIGEST_LENGTH
            digest = _digest(file, end)
            file.seek(end)
            file.write(digest)
    except OSError as error:
        raise CheckpointError(
            f"cannot save the checkpoint {path} ({error.strerror or error}): an earlier one there is unchanged; "
            "check that the directory exists, is writable and has room"
        ) from error


@checked_arguments
def load_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read a checkpoint: (arrays, meta). A file that is not exactly as it was saved is refused."""
    path = Path(path)
    try:
        with open_input(path, largest=LARGEST_CHECKPOINT) as file:
            size = _check_digest(file, path)
            return _read_archive(file, size, path)
    except OSError as error:
        raise CheckpointError(
            f"cannot read the checkpoint {path} ({error.strerror or error}): give the path of a saved checkpoint"
        ) from error


def environment_differences(meta: Mapping[str, Any]) -> list[str]:
    """What is different here from where a checkpoint was saved. A resumed run is bitwise the same if nothing is."""
    saved = meta.get(RECORDED_WITH)
    if not isinstance(saved, Mapping):
        return ["the checkpoint does not say what it was saved with"]
    here = this_environment()
    return [
        f"{name}: {saved.get(name, 'not recorded')} when it was saved, {here[name]} here"
        for name in here
        if saved.get(name) != here[name]
    ]


def this_environment() -> dict[str, str]:
    """Versions and CPU model on which bitwise reproduction depends."""
    return dict(_environment())


@functools.cache
def _environment() -> dict[str, str]:
    versions = {name: _package_version(name) for name in _PACKAGES}
    return {"python": platform.python_version(), **versions, "tropel": __version__, "cpu": _cpu_model()}


def _package_version(name: str) -> str:
    # Slow to import, and needed only when something is saved or compared.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine() or "unknown"


def _check_array(name: str, array: NDArray[Any]) -> None:
    # A zip archive cuts names at a zero byte and rewrites the separators of other systems.
    if not isinstance(name, str) or not name or zipfile.ZipInfo(name).filename != name:
        raise CheckpointError(f"the array name {name!r} cannot be stored: use letters, digits, '_', '.' and '/'")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise CheckpointError(f"the array name {name!r} cannot be stored: it is not valid Unicode") from error
    if np.asanyarray(array).dtype.hasobject:
        raise CheckpointError(
            f"the array '{name}' holds Python objects, which are not stored: use a number or text dtype"
        )


def _digest(file: IO[bytes], end: int) -> bytes:
    """SHA-256 of the first `end` bytes, in hexadecimal."""
    digest = hashlib.sha256()
    file.seek(0)
    left = end
    while left > 0:
        block = file.read(min(left, 2**20))
        if not block:
            break
        digest.update(block)
        left -= len(block)
    return digest.hexdigest().encode()


def _check_digest(file: IO[bytes], path: Path) -> int:
    """The size of a file that is as it was saved."""
    size = file.seek(0, os.SEEK_END)
    start = size - len(_MARK) - _DIGEST_LENGTH
    if start < 0:
        raise CheckpointError(f"{path} is too short to be a checkpoint: it is truncated or another kind of file")
    file.seek(start)
    if file.read(len(_MARK)) != _MARK:
        raise CheckpointError(
            f"{path} does not end like a checkpoint: it is truncated, damaged or another kind of file"
        )
    stored = file.read(_DIGEST_LENGTH)
    if _digest(file, size - _DIGEST_LENGTH) != stored:
        raise CheckpointError(f"{path} is damaged (its contents do not match its digest): use an earlier checkpoint")
    return size


def _read_archive(file: IO[bytes], size: int, path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    try:
        with zipfile.ZipFile(file) as archive:
            check_members(archive, size=size)
            envelope = json.loads(archive.read(_META))
            version, meta = envelope.get("version"), envelope.get("meta")
            if version != VERSION:
                raise CheckpointError(
                    f"{path} is a checkpoint of version {version!r:.20}, this tropel reads {VERSION}: "
                    "resume with the tropel that saved it"
                )
            if not isinstance(meta, dict):
                raise ValueError(f"its {_META} has no table 'meta'")
            return read_arrays(archive, size=size, folder=_ARRAYS), meta
    except CheckpointError:
        raise
    except Exception as error:
        # Archives, arrays and JSON that are made to break their readers break them in many ways.
        raise CheckpointError(f"{path} is not a readable checkpoint ({error}): use an earlier one") from error
