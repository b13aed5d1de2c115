"""Arrays in .npz files (checkpoints, plans): written with a checksum, read without trusting the file's own headers.

A file is a NumPy .npz without pickle. Its archive comment, at the very end of the file, is a mark of its kind and the
SHA-256 of all bytes before it, so no flipped bit and no missing end goes unnoticed.

A checksum shows that a file is as it was written, not that tropel wrote it. So no memory is allocated for data that the
file does not contain, and no array is used before its type, shape and values are checked: kernels check no indices.
"""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tropel.errors import CheckpointError

#: What can be wrong with an archive as a whole.
TOO_SHORT, NO_END, CHANGED = "it is too short", "its end is missing", "its checksum does not match"

_SUFFIX = ".npy"
_CHECKSUM_LENGTH = 64
_BLOCK = 1 << 20


def unstorable(name: str, array: NDArray[Any]) -> str:
    """Why an array cannot be stored under a name; nothing when it can."""
    # A zip archive cuts names at a zero byte and rewrites the separators of other systems.
    if not isinstance(name, str) or not name or zipfile.ZipInfo(name).filename != name:
        return f"the array name {name!r} cannot be stored: use letters, digits, '_', '.' and '/'"
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"the array name {name!r} cannot be stored: it is not valid Unicode"
    if np.asanyarray(array).dtype.hasobject:
        return f"the array '{name}' holds Python objects, which are not stored: use a number or text dtype"
    return ""


def write_archive(
    file: IO[bytes],
    arrays: Mapping[str, NDArray[Any]],
    *,
    mark: bytes,
    key: str = "",
    folder: str = "",
    texts: Mapping[str, bytes] | None = None,
) -> None:
    """Write arrays into a folder of an archive, and texts beside it.

    `key` is what the archive is stored under, if it must not be found under another one: it is part of the checksum.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, text in (texts or {}).items():
            archive.writestr(name, text)
        for name, array in arrays.items():
            with archive.open(f"{folder}{name}{_SUFFIX}", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        archive.comment = mark + b"0" * _CHECKSUM_LENGTH
    end = file.seek(0, os.SEEK_END) - _CHECKSUM_LENGTH
    checksum = _checksum(file, end, key)
    file.seek(end)
    file.write(checksum)


def archive_fault(file: IO[bytes], *, mark: bytes, key: str = "") -> str:
    """What is wrong with a file as a whole; nothing when it is as it was written, of this kind and under this key."""
    end = file.seek(0, os.SEEK_END) - _CHECKSUM_LENGTH
    if end < len(mark):
        return TOO_SHORT
    file.seek(end - len(mark))
    if file.read(len(mark)) != mark:
        return NO_END
    stored = file.read(_CHECKSUM_LENGTH)
    return "" if stored == _checksum(file, end, key) else CHANGED


def _checksum(file: IO[bytes], end: int, key: str) -> bytes:
    """SHA-256 of the key and of the first `end` bytes, in hexadecimal."""
    total = hashlib.sha256(key.encode())
    file.seek(0)
    left = end
    while left > 0 and (block := file.read(min(left, _BLOCK))):
        total.update(block)
        left -= len(block)
    return total.hexdigest().encode()


def read_arrays(archive: zipfile.ZipFile, *, size: int, folder: str = "") -> dict[str, NDArray[Any]]:
    """The arrays in a folder of an archive of `size` bytes; a ValueError if it promises more than it holds."""
    check_members(archive, size=size)
    found = {}
    for member in archive.infolist():
        if member.filename.startswith(folder) and member.filename.endswith(_SUFFIX):
            _check_header(archive, member)
            with archive.open(member) as data:
                name = member.filename.removeprefix(folder).removesuffix(_SUFFIX)
                found[name] = np.lib.format.read_array(data, allow_pickle=False)
    return found


def check_members(archive: zipfile.ZipFile, *, size: int) -> None:
    """Raise a ValueError for members that are compressed, or together larger than the archive of `size` bytes."""
    for member in archive.infolist():
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"'{member.filename}' is compressed, but tropel writes no compressed parts")
    if sum(member.file_size for member in archive.infolist()) > size:
        raise ValueError("its parts are larger than the whole file")


def _check_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Compare the shape in an array's header with the bytes present, before NumPy allocates memory for it."""
    with archive.open(member) as data:
        version = np.lib.format.read_magic(data)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(data)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(data)
        else:
            raise ValueError(f"'{member.filename}' is an array of the unknown version {version}")
        there = member.file_size - data.tell()
    # A dimension may be large if another is zero, and items may have no size: loops over them would not end.
    if math.prod(shape) * dtype.itemsize != there or any(not 0 <= length <= member.file_size for length in shape):
        raise ValueError(f"'{member.filename}' claims the shape {shape}, but holds {there} bytes")


def taken(
    stored: Mapping[str, NDArray[Any]],
    name: str,
    *,
    dtype: DTypeLike,
    shape: tuple[int | None, ...],
    low: float | None = None,
    high: float | None = None,
    finite: bool = True,
) -> NDArray[Any]:
    """A copy of a stored array; a CheckpointError if its type, shape or values are not as required.

    None in `shape` means any length; `low` and `high` are the smallest and the largest allowed value.
    """
    if name not in stored:
        raise CheckpointError(f"'{name}' is missing")
    array = stored[name]
    if array.dtype != np.dtype(dtype):
        raise CheckpointError(f"'{name}' has the type {array.dtype}, not {np.dtype(dtype)}")
    fits = array.ndim == len(shape) and all(k in (None, n) for k, n in zip(shape, array.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise CheckpointError(f"'{name}' has the shape {array.shape}, not ({wanted})")
    bad = np.zeros(array.shape, dtype=bool)
    if finite and array.dtype.kind == "f":
        bad |= ~np.isfinite(array)
    # Comparisons with nan are false, which is right if nan is allowed.
    with np.errstate(invalid="ignore"):
        if low is not None:
            bad |= array < low
        if high is not None:
            bad |= array > high
    if bad.any():
        value = array[bad].reshape(-1)[0].item()
        ends = (("at least", low), ("at most", high))
        limits = [f"{which} {end:g}" for which, end in ends if end is not None]
        raise CheckpointError(f"'{name}' holds {value!r}; it must be {' and '.join(limits) or 'finite numbers'}")
    return np.array(array, order="C")
