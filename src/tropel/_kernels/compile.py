"""How tropel compiles: `@kernel` and its three siblings, kept on disk by `cache.py`, never compiled at import."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from tropel._kernels.inner import Kernel

#: Below this many agents a step is shorter than what waking the other threads costs.
SMALL_RUN = 2_000

_registry: list[Any] = []


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    if numba.config.DISABLE_JIT:  # for debuggers
        return function
    # Numba would hand `forceinline` down to all that an inlined kernel calls: a move past walls became thirty megabytes
    # of code.
    options = {"nopython": True, "nogil": True, "error_model": "numpy", "forceinline": False, **options}
    compiled = Kernel(function, targetoptions=options)
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
