"""Kernels inside other kernels: they are typed and lowered once, and get no machine code of their own.

Numba compiles every function that another one calls as if Python called it too: it optimises the function and generates
machine code. All of that is thrown away, because the caller links the function's intermediate code and optimises it
again. Each `prange` adds two more hidden callers. Together this was more than half of all compile time.

So a kernel has two dispatchers. Python calls the outer one. Other kernels see its `inner` one, whose code is only
collected: linked with what it calls, and left for the outermost kernel to optimise.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Iterator
from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

from tropel._kernels.cache import KernelCache


class _InnerLibrary(JITCodeLibrary):
    """Code that waits to be linked into another library."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # as for a wrapper that was not requested

    def serialize_using_object_code(self) -> Any:
        return self.serialize_using_bitcode()


class _InnerCodegen(JITCPUCodegen):
    """Numba's own code generator, except that its libraries wait."""

    _library_class = _InnerLibrary

    def __init__(self, codegen: JITCPUCodegen) -> None:
        vars(self).update(vars(codegen))

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: there is no machine code yet that could look up its constants."""


@functools.cache
def inner_context(context: Any) -> Any:
    """The context that kernels are compiled in: Numba's own, with libraries that wait."""
    context.refresh()
    return context.subtarget(_internal_codegen=_InnerCodegen(context.codegen()))


class _InnerCompiler(Compiler):
    def __init__(self, typingctx: Any, targetctx: Any, *others: Any) -> None:
        super().__init__(typingctx, inner_context(targetctx), *others)


class _OuterCompiler(_InnerCompiler):
    """Generates machine code for a kernel and everything linked into it."""

    def __init__(self, typingctx: Any, targetctx: Any, *others: Any) -> None:
        super().__init__(typingctx, targetctx, *others)
        self._codegen = targetctx.codegen()

    def define_pipelines(self) -> Any:
        self.state.library = self._codegen.create_library(self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()

    def compile_extra(self, func: Any) -> Any:
        result = super().compile_extra(func)
        # Set the constants of everything that was linked in, as Numba does when it loads a kernel from disk.
        for environment in result._find_referenced_environments():
            self._codegen.set_env(environment.env_name, environment)
        return result


class _InnerCache(KernelCache):
    """Intermediate code on disk, for other kernels that link it."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        result = super().load_overload(sig, inner_context(target_context))
        if result is not None:
            # Functions to call before kernels with `prange` are loaded. Numba passes them on only from code that it
            # has just compiled. Libraries of older versions do not have them at all.
            getattr(result.library, "_reload_init", set()).update(result.reload_init)
        return result

    def _stem(self) -> str:
        return f"{super()._stem()}.inner"


class InnerKernel(CPUDispatcher):
    """A kernel as the kernels that call it see it."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        options = {**(targetoptions or {}), "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(py_func, locals or {}, options, pipeline_class=_InnerCompiler)
        self._cache = _InnerCache(py_func)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile once for all numbers, not once for each literal in a call."""
        plain = [types.unliteral(one) for one in args]
        return super().get_call_template(plain, {name: types.unliteral(one) for name, one in kws.items()})


class Kernel(CPUDispatcher):
    """A kernel as Python sees it."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals or {}, targetoptions, pipeline_class=_OuterCompiler)
        self.inner = InnerKernel(py_func, locals, targetoptions)
        # What `cache=True` does, with a cache of our own.
        self._cache = KernelCache(py_func)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.inner)

    @property
    def is_compiled(self) -> bool:
        """Whether it has been compiled or loaded in this process."""
        return bool(self.signatures or self.inner.signatures)

    def compile(self, sig: Any) -> Any:
        with self._cache.claim(sig, self.targetctx), _no_garbage_collection():
            return super().compile(sig)


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """The compiler creates so many objects that garbage collection took a fifth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
