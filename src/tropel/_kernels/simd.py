"""Vector instructions for the innermost loops, as building blocks that kernels call like functions.

Numba leaves it to the compiler whether a loop becomes vector instructions. For short runs of agents it mostly does not,
or it spends more on the remainders than it gains. Here the vectors are explicit: they are LLVM vectors, which the
compiler maps to the width of each processor. Nothing is checked: arrays are treated as flat memory, and the caller must
make sure that everything read or written is inside them. Files in `tropel._kernels` that name this folder are part of
the digest that keeps compiled code fresh.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending
from numba.core import types

#: How many elements `copy_block` copies.
COPY_WIDTH = 8
#: How many points `bits_within_2d`, `bits_meeting_2d` and similar functions test.
TEST_WIDTH = 16
#: Numbers in a vector of the longer calculations, which four registers of any current processor hold.
LANES = 4

_INDEX = ir.IntType(32)

#: Callers omit the first parameter, which type checkers cannot know.
intrinsic: Any = extending.intrinsic


def vector_at(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector: Any) -> Any:
    """The address of a vector that begins at an element of an array."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def everywhere(builder: Any, value: Any, vector: Any) -> Any:
    """The same number in all lanes of a vector of this type."""
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INDEX, vector.count), [0] * vector.count))


@intrinsic
def copy_block(typing_context: Any, target: Any, target_index: Any, source: Any, source_index: Any) -> Any:
    """Copy COPY_WIDTH elements from one place to another; both arrays have the same type of elements."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target_type, _, source_type, _ = signature.args
        into, to_index, out_of, from_index = arguments
        vector = ir.VectorType(context.get_data_type(source_type.dtype), COPY_WIDTH)
        size = source_type.dtype.bitwidth // 8
        block = builder.load(vector_at(context, builder, source_type, out_of, from_index, vector), align=size)
        builder.store(block, vector_at(context, builder, target_type, into, to_index, vector), align=size)
        return context.get_dummy_value()

    return types.void(target, types.uint64, source, types.uint64), generate


def _bits_within(context: Any, builder: Any, array_type: Any, array: Any, axes: Any, limit: Any) -> Any:
    vector = ir.VectorType(ir.DoubleType(), TEST_WIDTH)
    away2 = None
    for index, centre in axes:
        points = builder.load(vector_at(context, builder, array_type, array, index, vector), align=8)
        gap = builder.fsub(points, everywhere(builder, centre, vector))
        square = builder.fmul(gap, gap)
        away2 = square if away2 is None else builder.fadd(away2, square)
    inside = builder.fcmp_ordered("<=", away2, everywhere(builder, limit, vector))
    return builder.zext(builder.bitcast(inside, ir.IntType(TEST_WIDTH)), ir.IntType(64))


@intrinsic
def bits_within_2d(typing_context: Any, points: Any, at_x: Any, at_y: Any, x: Any, y: Any, limit: Any) -> Any:
    """A bit for each of TEST_WIDTH points: set if the squared distance to (x, y) is at most `limit`.

    The coordinates of the points begin at `at_x` and `at_y` of one array. Returns uint64.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, ix, iy, cx, cy, most = arguments
        return _bits_within(context, builder, signature.args[0], array, ((ix, cx), (iy, cy)), most)

    index, number = types.uint64, types.float64
    return types.uint64(points, index, index, number, number, number), generate


@intrinsic
def bits_within_3d(
    typing_context: Any, points: Any, at_x: Any, at_y: Any, at_z: Any, x: Any, y: Any, z: Any, limit: Any
) -> Any:
    """The same in three dimensions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, ix, iy, iz, cx, cy, cz, most = arguments
        return _bits_within(context, builder, signature.args[0], array, ((ix, cx), (iy, cy), (iz, cz)), most)

    index, number = types.uint64, types.float64
    return types.uint64(points, index, index, index, number, number, number, number), generate


def _sum_of_squares(builder: Any, vectors: list[Any]) -> Any:
    total = None
    for vector in vectors:
        square = builder.fmul(vector, vector)
        total = square if total is None else builder.fadd(total, square)
    return total


def _root(builder: Any, vector: Any) -> Any:
    name = f"llvm.sqrt.v{vector.type.count}f64"
    known = builder.module.globals.get(name)
    if known is None:
        known = ir.Function(builder.module, ir.FunctionType(vector.type, [vector.type]), name)
    return builder.call(known, [vector])


def _bits_meeting(context: Any, builder: Any, signature: Any, arguments: Any, dim: int) -> Any:
    position, velocity, radius, at, stride = arguments[:5]
    centre, own = arguments[5 : 5 + dim], arguments[5 + dim : 5 + 2 * dim]
    vector = ir.VectorType(ir.DoubleType(), LANES)
    word = ir.IntType(64)
    share, body, limit, horizon, near = (everywhere(builder, value, vector) for value in arguments[5 + 2 * dim :])
    centre = [everywhere(builder, value, vector) for value in centre]
    own = [everywhere(builder, value, vector) for value in own]
    horizon2 = builder.fmul(horizon, horizon)
    bits = ir.Constant(word, 0)
    for part in range(0, TEST_WIDTH, LANES):
        start = builder.add(at, ir.Constant(word, part))
        offsets, relative = [], []
        index = start
        for axis in range(dim):
            place = builder.load(vector_at(context, builder, signature.args[0], position, index, vector), align=8)
            speed = builder.load(vector_at(context, builder, signature.args[1], velocity, index, vector), align=8)
            offsets.append(builder.fsub(place, centre[axis]))
            relative.append(builder.fsub(own[axis], builder.fmul(share, speed)))
            index = builder.add(index, stride)
        away2, relative2 = _sum_of_squares(builder, offsets), _sum_of_squares(builder, relative)
        bodies = builder.load(vector_at(context, builder, signature.args[2], radius, start, vector), align=8)
        free = builder.fsub(_root(builder, away2), builder.fadd(bodies, body))
        meets = builder.fcmp_ordered("<=", builder.fmul(free, free), builder.fmul(horizon2, relative2))
        meets = builder.or_(meets, builder.fcmp_ordered("<=", free, near))
        meets = builder.and_(meets, builder.fcmp_ordered("<=", away2, limit))
        some = builder.zext(builder.bitcast(meets, ir.IntType(LANES)), word)
        bits = builder.or_(bits, builder.shl(some, ir.Constant(word, part)))
    return bits


@intrinsic
def bits_meeting_2d(
    typing_context: Any, position: Any, velocity: Any, radius: Any, at: Any, stride: Any,
    x: Any, y: Any, vx: Any, vy: Any, share: Any, body: Any, limit: Any, horizon: Any, near: Any,
) -> Any:  # fmt: skip
    """A bit for each of TEST_WIDTH bodies: set if its squared distance to (x, y) is at most `limit` and, by distance
    and speed alone, the agent could touch it within the time `horizon`, or is within `near` of touching it.

    The agent at (x, y) has the radius `body` and the velocity v, and takes `share` of the others' velocities into
    account. Coordinates begin at `at` and, for the next axis, `stride` later. Returns uint64.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _bits_meeting(context, builder, signature, arguments, 2)

    numbers = (types.float64,) * 9
    return types.uint64(position, velocity, radius, types.uint64, types.uint64, *numbers), generate


@intrinsic
def bits_meeting_3d(
    typing_context: Any, position: Any, velocity: Any, radius: Any, at: Any, stride: Any,
    x: Any, y: Any, z: Any, vx: Any, vy: Any, vz: Any, share: Any, body: Any, limit: Any, horizon: Any, near: Any,
) -> Any:  # fmt: skip
    """The same in three dimensions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _bits_meeting(context, builder, signature, arguments, 3)

    numbers = (types.float64,) * 11
    return types.uint64(position, velocity, radius, types.uint64, types.uint64, *numbers), generate


@intrinsic
def eight_bytes(typing_context: Any, array: Any, index: Any) -> Any:
    """Eight bytes of a byte array as one 64-bit word, the first byte lowest; any alignment is allowed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.bitcast(builder.gep(data, [arguments[1]]), word.as_pointer()), align=1)

    return types.uint64(array, types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch an element of an array that is needed soon; any index is safe, and nothing waits for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # For reading, to be kept in all cache levels, in the data cache.
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def count_ones(typing_context: Any, word: Any) -> Any:
    """How many bits of a uint64 are set, as uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """The index of the lowest set bit of a uint64, as uint64; 64 if none is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    number = types.float64
    return number(number, number, number), generate


@intrinsic
def bits_of(typing_context: Any, number: Any) -> Any:
    """The 64 bits of a float64, as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def number_of(typing_context: Any, bits: Any) -> Any:
    """The float64 that has the bits of an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate
