"""Checkpoints: everything a run needs to go on, in one file that is whole or not there.

The file is an archive of arrays with a checksum (`foundation/stored_arrays.py`) with `meta.json` inside.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from tropel import __version__
from tropel.errors import CheckpointError
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.files import LARGEST_CHECKPOINT, open_input, replacing
from tropel.foundation.stored_arrays import (
    CHANGED,
    NO_END,
    TOO_SHORT,
    archive_fault,
    check_members,
    read_arrays,
    unstorable,
    write_archive,
)
from tropel.recording.plain import plain_data

VERSION = 1
#: Where a loaded meta says what the checkpoint was written with.
RECORDED_WITH = "recorded_with"

_MARK = b"tropel-checkpoint sha256="
_FAULTS = {
    TOO_SHORT: "is too short to be a checkpoint: it is truncated or another kind of file",
    NO_END: "does not end like a checkpoint: it is truncated, damaged or another kind of file",
    CHANGED: "is damaged (its contents do not match its digest): use an earlier checkpoint",
}
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
        if fault := unstorable(name, array):
            raise CheckpointError(fault)
    try:
        with replacing(path) as file:
            write_archive(file, arrays, mark=_MARK, folder=_ARRAYS, texts={_META: envelope})
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
            if fault := archive_fault(file, mark=_MARK):
                raise CheckpointError(f"{path} {_FAULTS[fault]}")
            return _read_archive(file, path)
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


def _read_archive(file: IO[bytes], path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    size = file.seek(0, os.SEEK_END)
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
