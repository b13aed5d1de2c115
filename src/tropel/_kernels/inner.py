"""prototype"""

from __future__ import annotations

import functools
import gc
from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher


class _InnerLibrary(JITCodeLibrary):
    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> Any:
        return self.serialize_using_bitcode()


class _InnerCodegen(JITCPUCodegen):
    _library_class = _InnerLibrary

    def __init__(self, codegen: JITCPUCodegen) -> None:
        vars(self).update(vars(codegen))

    def set_env(self, env_name: str, env: Any) -> None:
        pass


@functools.cache
def inner_context(context: Any) -> Any:
    return context.subtarget(_internal_codegen=_InnerCodegen(context.codegen()))


class InnerCompiler(Compiler):
    def __init__(self, typingctx: Any, targetctx: Any, *others: Any) -> None:
        targetctx.refresh()
        super().__init__(typingctx, inner_context(targetctx), *others)


class ApartCompiler(InnerCompiler):
    def compile_extra(self, func: Any) -> Any:
        result = super().compile_extra(func)
        result.library.get_function(result.fndesc.llvm_func_name).add_function_attribute("noinline")
        return result


class OuterCompiler(InnerCompiler):
    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *others: Any) -> None:
        super().__init__(typingctx, targetctx, library, *others)
        self._real = targetctx.codegen()

    def define_pipelines(self) -> Any:
        if self.state.library is None:
            self.state.library = self._real.create_library(self.state.func_id.func_qualname)
            self.state.library.enable_object_caching()
        return super().define_pipelines()


class KernelDispatcher(CPUDispatcher):
    inner: Any

    def compile(self, sig: Any) -> Any:
        if not gc.isenabled():
            return super().compile(sig)
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            gc.enable()

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.inner)
