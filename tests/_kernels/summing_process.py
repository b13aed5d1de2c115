"""Calls one small kernel in a process of its own and prints the sum, whether it was compiled, and what was warned of.

An argument `full` makes the disk full, `read-only` the file system read-only, for whatever is written below the cache.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import warnings

import numpy as np

from tropel._kernels.cache import kernels_are_kept
from tropel._kernels.compile import compiled_kernels, kernel


@kernel
def total(values):  # type: ignore[no-untyped-def]
    found = 0.0
    for value in values:
        found += value
    return found


@kernel
def doubled(values):  # type: ignore[no-untyped-def]
    return 2.0 * total(values)


def _refuse(number: int) -> None:
    really = os.open

    def refused(path: str, flags: int, *more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(number, os.strerror(number))
        return really(path, flags, *more)

    os.open = refused  # type: ignore[assignment]


if __name__ == "__main__":
    for word, number in (("full", errno.ENOSPC), ("read-only", errno.EROFS), ("forbidden", errno.EACCES)):
        if word in sys.argv:
            _refuse(number)
    with warnings.catch_warnings(record=True) as warned:
        found = doubled(np.arange(5.0))
    ours = [one for kernel in compiled_kernels() for one in (kernel, kernel.inner)]
    ours = [one for one in ours if one.py_func.__module__ == "__main__"]
    print(
        json.dumps(
            {
                "found": found,
                "compiled": sum(sum(one.stats.cache_misses.values()) for one in ours),
                "kept": kernels_are_kept(),
                "warned": [str(one.message) for one in warned],
            }
        )
    )
