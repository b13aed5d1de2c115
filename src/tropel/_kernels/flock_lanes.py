"""What a flock sums up over a run of neighbours, eight of them at a time in vectors.

Sums of rounded numbers depend on their order, so the compiler may not turn a loop that adds up into vector
instructions. Here each of eight lanes adds up every eighth of a run, in the order of the run, and the lanes are added
together at the end. Who does not count is masked: a branch for every candidate, of whom a third count, took three times
as long.

The sums of an agent lie in a small array, LANES numbers each:

| sum | over | of |
|---|---|---|
| COUNT | flock mates | 1, oneself too |
| OFFSET | flock mates | x_j - x_i (three sums, in 2D two) |
| DRIFT | flock mates | v_j - v_i |
| CROWDING | flock mates nearer than s | (x_j - x_i) (1 / r² - 1 / s²) |
| OTHERS | those avoided | (x_j - x_i) (1 / r² - 1 / R²), R the sense radius |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types

from tropel._kernels.simd import everywhere, intrinsic, vector_at

#: Numbers in a vector; whole vectors are read, also past the end of a run.
LANES = 8
#: Where the sums begin, and how many numbers they are.
COUNT, OFFSET, DRIFT, CROWDING, OTHERS = (np.uint64(LANES * place) for place in (0, 1, 4, 7, 10))
SUMS = 13 * LANES

_NUMBER, _WORD = ir.DoubleType(), ir.IntType(64)
_VECTOR, _WORDS, _HALVES = (ir.VectorType(kind, LANES) for kind in (_NUMBER, _WORD, ir.IntType(32)))
#: Squared distances below this count as this: who is at the very same place is pushed nowhere.
_TINY = 1e-290


def _constant(value: float) -> Any:
    return ir.Constant(_VECTOR, [value] * LANES)


def _dot(builder: Any, left: list[Any], right: list[Any]) -> Any:
    total = None
    for a, b in zip(left, right, strict=True):
        product = builder.fmul(a, b)
        total = product if total is None else builder.fadd(total, product)
    return total


def _in_view(builder: Any, ahead: Any, away2: Any, cone: Any) -> Any:
    """ahead ≥ c · |v| · away with both sides squared, signs kept; `cone` is c · |c| · v²."""
    square = builder.fmul(ahead, ahead)
    behind = builder.fcmp_ordered("<", ahead, _constant(0.0))
    signed = builder.select(behind, builder.fneg(square), square)
    return builder.fcmp_ordered(">=", signed, builder.fmul(cone, away2))


def _among(builder: Any, groups: Any, numbers: Any) -> Any:
    """Whether the bit of a group's number is set in a word."""
    bit = builder.and_(builder.lshr(everywhere(builder, groups, _WORDS), numbers), ir.Constant(_WORDS, [1] * LANES))
    return builder.icmp_unsigned("!=", bit, ir.Constant(_WORDS, [0] * LANES))


def _adder(dim: int, *, view: bool, groups: bool) -> Callable[..., Any]:
    """Code that adds a run to the sums; what is not asked for is not there."""
    places = [int(COUNT), *(int(begin) + axis * LANES for begin in (OFFSET, DRIFT, CROWDING) for axis in range(dim))]
    if groups:
        places += [int(OTHERS) + axis * LANES for axis in range(dim)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        sums, position, velocity, group, stride, first, last, joined, avoided = arguments[:9]
        numbers = [everywhere(builder, value, _VECTOR) for value in arguments[9:]]
        centre, own = numbers[:dim], numbers[dim : 2 * dim]
        limit, close2, cone = numbers[2 * dim :]
        one = _constant(1.0)
        per_close2, per_limit = builder.fdiv(one, close2), builder.fdiv(one, limit)

        def sum_at(place: int) -> Any:
            return vector_at(context, builder, kinds[0], sums, ir.Constant(_WORD, place), _VECTOR)

        def added(mask: Any, total: Any, value: Any) -> Any:
            return builder.select(mask, builder.fadd(total, value), total)

        given = [builder.load(sum_at(place), align=8) for place in places]
        before = builder.block
        body, after = builder.append_basic_block("flock.run"), builder.append_basic_block("flock.done")
        builder.cbranch(builder.icmp_unsigned("<", first, last), body, after)

        builder.position_at_end(body)
        at = builder.phi(_WORD)
        totals = [builder.phi(_VECTOR) for _ in places]
        lanes = ir.Constant(_WORDS, list(range(LANES)))
        seen = builder.icmp_unsigned("<", lanes, everywhere(builder, builder.sub(last, at), _WORDS))
        offset, drift = [], []
        index = at
        for axis in range(dim):
            place = builder.load(vector_at(context, builder, kinds[1], position, index, _VECTOR), align=8)
            speed = builder.load(vector_at(context, builder, kinds[2], velocity, index, _VECTOR), align=8)
            offset.append(builder.fsub(place, centre[axis]))
            drift.append(builder.fsub(speed, own[axis]))
            index = builder.add(index, stride)
        away2 = _dot(builder, offset, offset)
        seen = builder.and_(seen, builder.fcmp_ordered("<=", away2, limit))
        if view:
            seen = builder.and_(seen, _in_view(builder, _dot(builder, offset, own), away2, cone))
        tiny = _constant(_TINY)
        per_away2 = builder.fdiv(one, builder.select(builder.fcmp_ordered(">", away2, tiny), away2, tiny))
        mates = seen
        if groups:
            number = builder.load(vector_at(context, builder, kinds[3], group, at, _HALVES), align=4)
            number = builder.zext(number, _WORDS)
            mates = builder.and_(seen, _among(builder, joined, number))
        close = builder.and_(mates, builder.fcmp_ordered("<", away2, close2))
        push = builder.fsub(per_away2, per_close2)
        terms = [(mates, one), *((mates, value) for value in (*offset, *drift))]
        terms += [(close, builder.fmul(value, push)) for value in offset]
        if groups:
            shunned = builder.and_(seen, _among(builder, avoided, number))
            push = builder.fsub(per_away2, per_limit)
            terms += [(shunned, builder.fmul(value, push)) for value in offset]
        fresh = [added(mask, total, value) for total, (mask, value) in zip(totals, terms, strict=True)]
        following = builder.add(at, ir.Constant(_WORD, LANES))
        at.add_incoming(first, before)
        at.add_incoming(following, body)
        for total, value, new in zip(totals, given, fresh, strict=True):
            total.add_incoming(value, before)
            total.add_incoming(new, body)
        builder.cbranch(builder.icmp_unsigned("<", following, last), body, after)

        builder.position_at_end(after)
        results = []
        for value, new in zip(given, fresh, strict=True):
            result = builder.phi(_VECTOR)
            result.add_incoming(value, before)
            result.add_incoming(new, body)
            results.append(result)
        for place, result in zip(places, results, strict=True):
            builder.store(result, sum_at(place), align=8)
        return context.get_dummy_value()

    return generate


def _signature(dim: int, *arrays: Any) -> Any:
    word, number = types.uint64, types.float64
    return types.void(*arrays, *[word] * 5, *[number] * (2 * dim + 3))


@intrinsic
def add_run_2d(
    typing_context: Any, sums: Any, position: Any, velocity: Any, group: Any, stride: Any, first: Any, last: Any,
    joined: Any, avoided: Any, x: Any, y: Any, vx: Any, vy: Any, limit: Any, close2: Any, cone: Any,
) -> Any:  # fmt: skip
    """Add the sorted agents from `first` to before `last` to the sums of who is at (x, y) with velocity v.

    Seen are those whose squared distance is at most `limit`; all of them are mates. `close2` is s². Coordinates of the
    next axis lie `stride` later. `group`, `joined`, `avoided` and `cone` are for the two variants below.
    """
    return _signature(2, sums, position, velocity, group), _adder(2, view=False, groups=False)


@intrinsic
def add_run_in_view_2d(
    typing_context: Any, sums: Any, position: Any, velocity: Any, group: Any, stride: Any, first: Any, last: Any,
    joined: Any, avoided: Any, x: Any, y: Any, vx: Any, vy: Any, limit: Any, close2: Any, cone: Any,
) -> Any:  # fmt: skip
    """The same for those within an angle of one's velocity whose cosine is c; `cone` is c · |c| · v²."""
    return _signature(2, sums, position, velocity, group), _adder(2, view=True, groups=False)


@intrinsic
def add_run_of_groups_2d(
    typing_context: Any, sums: Any, position: Any, velocity: Any, group: Any, stride: Any, first: Any, last: Any,
    joined: Any, avoided: Any, x: Any, y: Any, vx: Any, vy: Any, limit: Any, close2: Any, cone: Any,
) -> Any:  # fmt: skip
    """The same; mates are those whose group's bit is set in `joined`, and those with one in `avoided` are avoided."""
    return _signature(2, sums, position, velocity, group), _adder(2, view=True, groups=True)


@intrinsic
def add_run_3d(
    typing_context: Any, sums: Any, position: Any, velocity: Any, group: Any, stride: Any, first: Any, last: Any,
    joined: Any, avoided: Any, x: Any, y: Any, z: Any, vx: Any, vy: Any, vz: Any, limit: Any, close2: Any, cone: Any,
) -> Any:  # fmt: skip
    """`add_run_2d` in three dimensions."""
    return _signature(3, sums, position, velocity, group), _adder(3, view=False, groups=False)


@intrinsic
def add_run_in_view_3d(
    typing_context: Any, sums: Any, position: Any, velocity: Any, group: Any, stride: Any, first: Any, last: Any,
    joined: Any, avoided: Any, x: Any, y: Any, z: Any, vx: Any, vy: Any, vz: Any, limit: Any, close2: Any, cone: Any,
) -> Any:  # fmt: skip
    """`add_run_in_view_2d` in three dimensions."""
    return _signature(3, sums, position, velocity, group), _adder(3, view=True, groups=False)


@intrinsic
def add_run_of_groups_3d(
    typing_context: Any, sums: Any, position: Any, velocity: Any, group: Any, stride: Any, first: Any, last: Any,
    joined: Any, avoided: Any, x: Any, y: Any, z: Any, vx: Any, vy: Any, vz: Any, limit: Any, close2: Any, cone: Any,
) -> Any:  # fmt: skip
    """`add_run_of_groups_2d` in three dimensions."""
    return _signature(3, sums, position, velocity, group), _adder(3, view=True, groups=True)


@intrinsic
def lane_sum(typing_context: Any, sums: Any, place: Any) -> Any:
    """The LANES numbers from a place on, added together in pairs."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = builder.load(vector_at(context, builder, signature.args[0], *arguments, _VECTOR), align=8)
        width = LANES
        while width > 1:
            width //= 2
            halves = (
                builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), width), list(part)))
                for part in (range(width), range(width, 2 * width))
            )
            vector = builder.fadd(*halves)
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return types.float64(sums, types.uint64), generate
