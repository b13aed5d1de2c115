"""Arrays in .npz files (checkpoints, plans): read without trusting the file's own headers, and checked by name.

A checksum shows that a file is as it was written, not that tropel wrote it. So no memory is allocated for data that the
file does not contain, and no array is used before its type, shape and values are checked: kernels check no indices.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tropel.errors import CheckpointError

_SUFFIX = ".npy"


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
        limits = [f"at least {low:g}"] * (low is not None) + [f"at most {high:g}"] * (high is not None)
        raise CheckpointError(f"'{name}' holds {value!r}; it must be {' and '.join(limits) or 'finite numbers'}")
    return np.array(array, order="C")
