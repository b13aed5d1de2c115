"""The sums of a flock over runs of neighbours, eight neighbours at a time, in vector instructions.

Sums of rounded numbers depend on their order, so the compiler may not vectorise a loop that adds up. Here each of eight
lanes sums every eighth agent of a run, in the order of the run, and the lanes are added together at the end. Agents
that do not count are masked: a plain loop with a branch for every candidate, of which a third count, takes over half as
long again.

All runs of neighbours of a boid are summed in one call, in registers. The result is a row of FOUND numbers. Vectors
take three of them; in 2D the last one is not used:

| columns | over | sum of |
|---|---|---|
| MATES | flock mates | 1, including the boid itself |
| MIDDLE | flock mates | x_j - x_i |
| HEADED | flock mates | v_j - v_i |
| CROWDED | flock mates nearer than s | (x_j - x_i) (1 / r² - 1 / s²) |
| SHUNNED | avoided agents | (x_j - x_i) (1 / r² - 1 / R²), R the sense radius |
| FLED, PREY | | filled in by `local/flocking/sums.py` |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types

from tropel._kernels.simd import everywhere, intrinsic, vector_at

#: Numbers in a vector; whole vectors are read, even past the end of a run.
LANES = 8
#: Columns of the sums of a boid.
MATES, MIDDLE, HEADED, CROWDED, SHUNNED, FLED, PREY, FOUND = 0, 1, 4, 7, 10, 13, 16, 19

_NUMBER, _WORD = ir.DoubleType(), ir.IntType(64)
_VECTOR, _WORDS, _HALVES = (ir.VectorType(kind, LANES) for kind in (_NUMBER, _WORD, ir.IntType(32)))
#: Smaller squared distances are raised to this: an agent in exactly the same place pushes in no direction.
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
    """Generate code that sums over runs; terms that are not requested are left out of it."""
    columns = [MATES, *(begin + axis for begin in (MIDDLE, HEADED, CROWDED) for axis in range(dim))]
    if groups:
        columns += [SHUNNED + axis for axis in range(dim)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        position, velocity, group, runs, shifts, found = arguments[:6]
        stride, count, row, joined, avoided = arguments[6:11]
        point = arguments[11 : 11 + dim]
        numbers = [everywhere(builder, value, _VECTOR) for value in arguments[11 + dim :]]
        own, (limit, close2, cone) = numbers[:dim], numbers[dim:]
        one, tiny = _constant(1.0), _constant(_TINY)
        # A boid that sees nothing at all avoids no one: infinity times an offset of zero would be nan.
        seen2 = builder.select(builder.fcmp_ordered(">", limit, tiny), limit, tiny)
        per_close2, per_limit = builder.fdiv(one, close2), builder.fdiv(one, seen2)

        def vector(kind: int, array: Any, index: Any, shape: Any, align: int) -> Any:
            return builder.load(vector_at(context, builder, kinds[kind], array, index, shape), align=align)

        def number(kind: int, array: Any, index: Any) -> Any:
            data = context.make_array(kinds[kind])(context, builder, array).data
            return builder.load(builder.gep(data, [index]))

        def added(mask: Any, total: Any, value: Any) -> Any:
            return builder.select(mask, builder.fadd(total, value), total)

        def terms(at: Any, last: Any, centre: list[Any]) -> list[tuple[Any, Any]]:
            """What the agents from `at` on add to the sums, and which of them count."""
            lanes = ir.Constant(_WORDS, list(range(LANES)))
            seen = builder.icmp_unsigned("<", lanes, everywhere(builder, builder.sub(last, at), _WORDS))
            offset, drift = [], []
            index = at
            for axis in range(dim):
                offset.append(builder.fsub(vector(0, position, index, _VECTOR, 8), centre[axis]))
                drift.append(builder.fsub(vector(1, velocity, index, _VECTOR, 8), own[axis]))
                index = builder.add(index, stride)
            away2 = _dot(builder, offset, offset)
            seen = builder.and_(seen, builder.fcmp_ordered("<=", away2, limit))
            if view:
                seen = builder.and_(seen, _in_view(builder, _dot(builder, offset, own), away2, cone))
            mates = seen
            if groups:
                numbers = builder.zext(vector(2, group, at, _HALVES, 4), _WORDS)
                mates = builder.and_(seen, _among(builder, joined, numbers))
            close = builder.and_(mates, builder.fcmp_ordered("<", away2, close2))
            per_away2 = builder.fdiv(one, builder.select(builder.fcmp_ordered(">", away2, tiny), away2, tiny))
            push = builder.fsub(per_away2, per_close2)
            found = [(mates, one), *((mates, value) for value in (*offset, *drift))]
            found += [(close, builder.fmul(value, push)) for value in offset]
            if groups:
                shunned = builder.and_(seen, _among(builder, avoided, numbers))
                push = builder.fsub(per_away2, per_limit)
                found += [(shunned, builder.fmul(value, push)) for value in offset]
            return found

        def totals() -> list[Any]:
            return [builder.phi(_VECTOR) for _ in columns]

        before = builder.block
        header, begin, body, next_run, done = (
            builder.append_basic_block(f"flock.{name}") for name in ("header", "begin", "body", "next", "done")
        )
        builder.branch(header)

        builder.position_at_end(header)
        run, so_far = builder.phi(_WORD), totals()
        builder.cbranch(builder.icmp_unsigned("<", run, count), begin, done)

        builder.position_at_end(begin)
        twice = builder.mul(run, ir.Constant(_WORD, 2))
        thrice = builder.add(twice, run)
        first = number(3, runs, twice)
        last = number(3, runs, builder.add(twice, ir.Constant(_WORD, 1)))
        centre = []
        for axis in range(dim):
            shift = number(4, shifts, builder.add(thrice, ir.Constant(_WORD, axis)))
            centre.append(everywhere(builder, builder.fadd(point[axis], shift), _VECTOR))
        builder.cbranch(builder.icmp_unsigned("<", first, last), body, next_run)

        builder.position_at_end(body)
        at, inner = builder.phi(_WORD), totals()
        fresh = [added(mask, t, value) for t, (mask, value) in zip(inner, terms(at, last, centre), strict=True)]
        following = builder.add(at, ir.Constant(_WORD, LANES))
        builder.cbranch(builder.icmp_unsigned("<", following, last), body, next_run)

        builder.position_at_end(next_run)
        after = totals()
        following_run = builder.add(run, ir.Constant(_WORD, 1))
        builder.branch(header)

        at.add_incoming(first, begin)
        at.add_incoming(following, body)
        run.add_incoming(ir.Constant(_WORD, 0), before)
        run.add_incoming(following_run, next_run)
        for outer, loop, end, new in zip(so_far, inner, after, fresh, strict=True):
            outer.add_incoming(_constant(0.0), before)
            outer.add_incoming(end, next_run)
            loop.add_incoming(outer, begin)
            loop.add_incoming(new, body)
            end.add_incoming(outer, begin)
            end.add_incoming(new, body)

        builder.position_at_end(done)
        start = builder.mul(row, ir.Constant(_WORD, FOUND))
        data = context.make_array(kinds[5])(context, builder, found).data
        for column, total in zip(columns, so_far, strict=True):
            builder.store(
                _lane_sum(builder, total), builder.gep(data, [builder.add(start, ir.Constant(_WORD, column))])
            )
        return context.get_dummy_value()

    return generate


def _lane_sum(builder: Any, vector: Any) -> Any:
    """The numbers of a vector, added together in pairs."""
    width = LANES
    while width > 1:
        width //= 2
        halves = (
            builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), width), list(part)))
            for part in (range(width), range(width, 2 * width))
        )
        vector = builder.fadd(*halves)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


def _signature(dim: int, *arrays: Any) -> Any:
    word, number = types.uint64, types.float64
    return types.void(*arrays, *[word] * 5, *[number] * (2 * dim + 3))


@intrinsic
def sum_runs_2d(
    typing_context: Any, position: Any, velocity: Any, group: Any, runs: Any, shifts: Any, found: Any, stride: Any,
    count: Any, row: Any, joined: Any, avoided: Any, x: Any, y: Any, vx: Any, vy: Any, limit: Any, close2: Any,
    cone: Any,
) -> Any:  # fmt: skip
    """Sum over runs of sorted agents for a boid at (x, y) with velocity v, into a row of `found`.

    There are `count` runs. `runs` has the number of their first agent and of one past their last, and `shifts` three
    numbers by which to shift the boid's own point. Agents at a squared distance of at most `limit` are in sight, and
    all of them are mates. `close2` is s². Coordinates of the next axis lie `stride` later. `group`, `joined`, `avoided`
    and `cone` are for the two variants below.
    """
    return _signature(2, position, velocity, group, runs, shifts, found), _adder(2, view=False, groups=False)


@intrinsic
def sum_runs_in_view_2d(
    typing_context: Any, position: Any, velocity: Any, group: Any, runs: Any, shifts: Any, found: Any, stride: Any,
    count: Any, row: Any, joined: Any, avoided: Any, x: Any, y: Any, vx: Any, vy: Any, limit: Any, close2: Any,
    cone: Any,
) -> Any:  # fmt: skip
    """The same for agents within an angle to the boid's velocity, with cosine c; `cone` is c · |c| · v²."""
    return _signature(2, position, velocity, group, runs, shifts, found), _adder(2, view=True, groups=False)


@intrinsic
def sum_runs_of_groups_2d(
    typing_context: Any, position: Any, velocity: Any, group: Any, runs: Any, shifts: Any, found: Any, stride: Any,
    count: Any, row: Any, joined: Any, avoided: Any, x: Any, y: Any, vx: Any, vy: Any, limit: Any, close2: Any,
    cone: Any,
) -> Any:  # fmt: skip
    """The same by groups: those with their bit set in `joined` are mates, those with it in `avoided` are avoided."""
    return _signature(2, position, velocity, group, runs, shifts, found), _adder(2, view=True, groups=True)


@intrinsic
def sum_runs_3d(
    typing_context: Any, position: Any, velocity: Any, group: Any, runs: Any, shifts: Any, found: Any, stride: Any,
    count: Any, row: Any, joined: Any, avoided: Any, x: Any, y: Any, z: Any, vx: Any, vy: Any, vz: Any, limit: Any,
    close2: Any, cone: Any,
) -> Any:  # fmt: skip
    """`sum_runs_2d` in three dimensions."""
    return _signature(3, position, velocity, group, runs, shifts, found), _adder(3, view=False, groups=False)


@intrinsic
def sum_runs_in_view_3d(
    typing_context: Any, position: Any, velocity: Any, group: Any, runs: Any, shifts: Any, found: Any, stride: Any,
    count: Any, row: Any, joined: Any, avoided: Any, x: Any, y: Any, z: Any, vx: Any, vy: Any, vz: Any, limit: Any,
    close2: Any, cone: Any,
) -> Any:  # fmt: skip
    """`sum_runs_in_view_2d` in three dimensions."""
    return _signature(3, position, velocity, group, runs, shifts, found), _adder(3, view=True, groups=False)


@intrinsic
def sum_runs_of_groups_3d(
    typing_context: Any, position: Any, velocity: Any, group: Any, runs: Any, shifts: Any, found: Any, stride: Any,
    count: Any, row: Any, joined: Any, avoided: Any, x: Any, y: Any, z: Any, vx: Any, vy: Any, vz: Any, limit: Any,
    close2: Any, cone: Any,
) -> Any:  # fmt: skip
    """`sum_runs_of_groups_2d` in three dimensions."""
    return _signature(3, position, velocity, group, runs, shifts, found), _adder(3, view=True, groups=True)
