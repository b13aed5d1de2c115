"""How tropel compiles: `@kernel` and its three siblings, cached on disk, never at import.

Numba's own cache notices an edit of the file a kernel stands in, but not an edit of another module whose kernels were
compiled into it: a stale kernel then keeps running. So the cache directory carries a digest of every source file that
takes part in kernels, and any edit starts a fresh one. Numba's setting is process-wide, therefore it is changed only
while one of our kernels is being decorated; kernels of the user's own code keep their own cache.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import config, event

#: Below this many agents a step is shorter than what waking the other threads costs.
SMALL_RUN = 2_000

_registry: list[Any] = []


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
def cache_directory() -> Path:
    """Where compiled kernels are kept: NUMBA_CACHE_DIR if set, else the user's cache directory."""
    root = os.environ.get("NUMBA_CACHE_DIR")
    if root:
        base = Path(root)
    else:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        base = Path(home) / "tropel"
    return base / f"kernels-{kernel_digest()}"


@contextlib.contextmanager
def _own_cache() -> Iterator[None]:
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(cache_directory())
    try:
        yield
    finally:
        config.CACHE_DIR = previous


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    with _own_cache():
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    _registry.append(compiled)
    return compiled


def kernel(function: Callable[..., Any]) -> Any:
    """Compile lazily for one thread, without the interpreter lock, cached on disk. Arrays are only passed on.

    Without Numba's counting of references: in kernels that take tuples of arrays it cost half of the time. So a kernel
    cannot make arrays, nor return one.
    """
    return _compiled(function, _nrt=False)


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that becomes part of the loop that calls it: no arguments to pass (an array is seven), and loops that
    call it can become vector instructions."""
    return _compiled(function, _nrt=False, forceinline=True)


def allocating_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that makes arrays of its own."""
    return _compiled(function, _nrt=True)


def parallel_kernel(function: Callable[..., Any]) -> Any:
    """The same with `prange` on threads. Each iteration writes its own row, so the thread count never shows."""
    _find_tbb()
    return _compiled(function, _nrt=True, parallel=True)


@functools.cache
def _find_tbb() -> None:
    """Load the TBB library of the `tbb` wheel, which lies outside the loader's search path in a virtual environment."""
    names = ("libtbb.so.12",) if sys.platform.startswith("linux") else ()
    for name in names:
        path = Path(sys.prefix) / "lib" / name
        if path.exists():
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)


@contextlib.contextmanager
def watch_compiling(begun: Callable[[str], None]) -> Iterator[None]:
    """Call `begun` with the name of each kernel of ours whose compilation begins (not when it comes from the cache)."""

    class _Listener(event.Listener):
        def on_start(self, happening: Any) -> None:
            function = happening.data["dispatcher"].py_func
            if function.__module__.startswith("tropel."):
                begun(f"{function.__module__.removeprefix('tropel.')}.{function.__name__}".replace("_kernels.", ""))

        def on_end(self, happening: Any) -> None:
            pass

    with event.install_listener("numba:compile", _Listener()):
        yield


def compiled_kernels() -> list[Any]:
    """Every kernel decorated so far (Numba dispatchers)."""
    return list(_registry)


def use_threads(wanted: int, agents: int) -> None:
    """Set how many threads the next parallel kernels of this thread of execution use."""
    numba.set_num_threads(1 if agents < SMALL_RUN else max(1, min(wanted, numba.config.NUMBA_NUM_THREADS)))


@contextlib.contextmanager
def threads_restored(count: int | None = None) -> Iterator[None]:
    """Give this thread of execution its number of threads back afterwards; run on `count` of them meanwhile."""
    before = numba.get_num_threads()
    if count is not None:
        numba.set_num_threads(count)
    try:
        yield
    finally:
        numba.set_num_threads(before)
