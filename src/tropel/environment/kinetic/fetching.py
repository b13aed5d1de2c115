"""Telling the processor beforehand what will be read.

A crowd of which few move is spread over megabytes of memory, so whoever looks at the surroundings of one agent after
the other waits for memory most of the time. Fetching changes no result. Any place may be fetched: nothing is checked.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending
from numba.core import cgutils, types

#: For reading, to be kept in all caches, data.
_READ, _KEEP, _DATA = 0, 3, 1

#: Callers omit the first parameter, which type checkers cannot know.
_intrinsic: Any = extending.intrinsic


@_intrinsic
def fetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Begin to fetch an element of an array, or the first one of a row."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type, index_type = signature.args
        value = context.make_array(array_type)(context, builder, arguments[0])
        at = context.cast(builder, arguments[1], index_type, types.intp)
        zero = context.get_constant(types.intp, 0)
        address = cgutils.get_item_pointer(context, builder, array_type, value, [at] + [zero] * (array_type.ndim - 1))
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        how = [ir.Constant(number, value) for value in (_READ, _KEEP, _DATA)]
        builder.call(function, [builder.bitcast(address, byte), *how])
        return context.get_dummy_value()

    return types.void(array, index), generate
