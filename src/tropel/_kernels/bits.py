"""Counting and finding the set bits of a 64-bit word, each one machine instruction."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def count_ones(typing_context: Any, word: Any) -> Any:
    """How many bits of a uint64 are set, as uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """The number of the lowest set bit of a uint64, as uint64; 64 when none is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.uint64(types.uint64), generate
