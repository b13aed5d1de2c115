"""Exact predicates against rational arithmetic, where floating point alone goes wrong."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tropel._kernels.expansions import two_product, two_sum
from tropel._kernels.predicates import in_circle, orientation, segments_touch

Point = tuple[float, float]

#: Coordinates between the size of an atom and the distance to a star, on both sides of zero.
wide = st.one_of(
    st.just(0.0),
    st.floats(1e-60, 1e60, allow_nan=False),
    st.floats(-1e60, -1e-60, allow_nan=False),
    st.sampled_from([1e-60, 1e60, 1.0, -1.0, 0.1, 1e16, 1e16 + 2, 5e6 + 0.1, 2.0**52 + 1]),
)
rooms = st.floats(-100.0, 100.0).map(lambda v: v if abs(v) > 1e-60 else 0.0)
points = st.one_of(st.tuples(wide, wide), st.tuples(rooms, rooms))


def nudge(value: float, ulps: int) -> float:
    for _ in range(abs(ulps)):
        value = math.nextafter(value, math.inf if ulps > 0 else -math.inf)
    return value if abs(value) > 1e-60 else 0.0


@st.composite
def nearly_collinear(draw: st.DrawFn) -> tuple[Point, Point, Point]:
    """Two points and a third on their line as well as rounding allows, a few units in the last place off."""
    a, b = draw(st.tuples(rooms, rooms)), draw(st.tuples(rooms, rooms))
    share = draw(st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, -1.0]), st.floats(-3.0, 3.0)))
    offset = draw(st.sampled_from([0.0, 0.0, 12.5, 1e3, 5e6]))
    a, b = (a[0] + offset, a[1] + offset), (b[0] + offset, b[1] + offset)
    ulps = st.integers(-3, 3)
    c = (
        nudge(a[0] + share * (b[0] - a[0]), draw(ulps)),
        nudge(a[1] + share * (b[1] - a[1]), draw(ulps)),
    )
    return a, b, c


def sign_by_fractions(a: Point, b: Point, c: Point) -> int:
    ax, ay, bx, by, cx, cy = (Fraction(v) for v in (*a, *b, *c))
    determinant = (ax - cx) * (by - cy) - (ay - cy) * (bx - cx)
    return (determinant > 0) - (determinant < 0)


def touch_by_fractions(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Closed segments, by solving for the intersection instead of testing sides."""
    ax, ay, bx, by, cx, cy, dx, dy = (Fraction(v) for v in (*a, *b, *c, *d))
    ux, uy, vx, vy = bx - ax, by - ay, dx - cx, dy - cy
    wx, wy = cx - ax, cy - ay
    cross = ux * vy - uy * vx
    if cross != 0:
        s, t = (wx * vy - wy * vx) / cross, (wx * uy - wy * ux) / cross
        return 0 <= s <= 1 and 0 <= t <= 1
    if wx * uy - wy * ux != 0 or wx * vy - wy * vx != 0:
        return False
    if ux == uy == vx == vy == 0:
        return wx == wy == 0
    # Collinear: compare along the longer of the two directions.
    ex, ey = (ux, uy) if (ux, uy) != (0, 0) else (vx, vy)
    along = [ex * (x - ax) + ey * (y - ay) for x, y in ((ax, ay), (bx, by), (cx, cy), (dx, dy))]
    return max(min(along[:2]), min(along[2:])) <= min(max(along[:2]), max(along[2:]))


@given(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100))
@settings(max_examples=200, deadline=None)
def test_sums_and_products_split_into_parts_without_error(a: float, b: float) -> None:
    assume(a == 0.0 or abs(a) > 1e-100)
    assume(b == 0.0 or abs(b) > 1e-100)
    assert sum(map(Fraction, two_sum(a, b))) == Fraction(a) + Fraction(b)
    assert sum(map(Fraction, two_product(a, b))) == Fraction(a) * Fraction(b)


@given(points, points, points)
@settings(max_examples=400, deadline=None)
def test_orientation_has_the_sign_of_the_exact_determinant(a: Point, b: Point, c: Point) -> None:
    assert orientation(*a, *b, *c) == sign_by_fractions(a, b, c)


@given(nearly_collinear())
@settings(max_examples=800, deadline=None)
@example(((0.5, 0.5), (12.0, 12.0), (24.0, 24.0)))
@example(((12.0, 12.0), (24.0, 24.0), (0.50000000000001, 0.50000000000001)))
def test_orientation_is_right_for_nearly_collinear_points(triple: tuple[Point, Point, Point]) -> None:
    a, b, c = triple
    expected = sign_by_fractions(a, b, c)
    assert orientation(*a, *b, *c) == expected
    assert orientation(*b, *c, *a) == expected
    assert orientation(*b, *a, *c) == -expected


def test_orientation_is_right_where_the_rounded_determinant_is_not() -> None:
    # The picture of Kettner et al., "Classroom examples of robustness problems" (2008): a tiny square of points seen
    # from a line; the naive determinant gets many of their signs wrong, so the exact branch has work to do here.
    b, c = (12.0, 12.0), (24.0, 24.0)
    step = 2.0**-53
    naive_errors = 0
    for i in range(64):
        for j in range(64):
            a = (0.5 + i * step, 0.5 + j * step)
            expected = sign_by_fractions(a, b, c)
            assert orientation(*a, *b, *c) == expected
            naive = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
            naive_errors += np.sign(naive) != expected
    assert naive_errors > 100


@given(points, points, points, points)
@settings(max_examples=400, deadline=None)
def test_segments_touch_like_rational_segments(a: Point, b: Point, c: Point, d: Point) -> None:
    assert bool(segments_touch(*a, *b, *c, *d)) == touch_by_fractions(a, b, c, d)


@given(nearly_collinear(), nearly_collinear(), st.sampled_from(["shared end", "end on line", "collinear", "point"]))
@settings(max_examples=800, deadline=None)
def test_degenerate_segments_touch_like_rational_segments(
    first: tuple[Point, Point, Point], second: tuple[Point, Point, Point], kind: str
) -> None:
    a, b, c = first
    d = second[0]
    if kind == "shared end":
        c = b
    elif kind == "collinear":
        d = (c[0] + (b[0] - a[0]), c[1] + (b[1] - a[1]))
    elif kind == "point":
        d = c
    assert bool(segments_touch(*a, *b, *c, *d)) == touch_by_fractions(a, b, c, d)
    assert bool(segments_touch(*d, *c, *b, *a)) == touch_by_fractions(a, b, c, d)


def test_touching_at_one_point_counts_and_missing_by_one_ulp_does_not() -> None:
    assert segments_touch(0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0, 0.0)
    assert segments_touch(0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 1.0, 5.0)
    assert not segments_touch(0.0, 0.0, 2.0, 0.0, 1.0, math.nextafter(0.0, 1.0) + 1e-300, 1.0, 5.0)
    assert segments_touch(0.3, 0.3, 0.3, 0.3, 0.1, 0.1, 0.7, 0.7)
    assert not segments_touch(0.3, math.nextafter(0.3, 1.0), 0.3, math.nextafter(0.3, 1.0), 0.1, 0.1, 0.7, 0.7)


@given(points, points, points, points)
@settings(max_examples=200, deadline=None)
def test_beyond_all_lengths_a_doubtful_pair_counts_as_touching(a: Point, b: Point, c: Point, d: Point) -> None:
    # Products of such coordinates overflow. The answer may then be too careful, but never lets anybody through.
    big = [(x * 1e240, y * 1e240) for x, y in (a, b, c, d)]
    assume(all(math.isfinite(v) for p in big for v in p))
    if touch_by_fractions(*big):
        assert segments_touch(*big[0], *big[1], *big[2], *big[3])


def circle_sign_by_fractions(a: Point, b: Point, c: Point, d: Point) -> int:
    rows = [[Fraction(p[0]) - Fraction(d[0]), Fraction(p[1]) - Fraction(d[1])] for p in (a, b, c)]
    (ax, ay), (bx, by), (cx, cy) = rows
    lifts = [x * x + y * y for x, y in rows]
    determinant = lifts[0] * (bx * cy - cx * by) + lifts[1] * (cx * ay - ax * cy) + lifts[2] * (ax * by - bx * ay)
    return (determinant > 0) - (determinant < 0)


@st.composite
def nearly_cocircular(draw: st.DrawFn) -> tuple[Point, Point, Point, Point]:
    """Four points of a circle as well as rounding allows, a few units in the last place off."""
    middle, radius = draw(st.tuples(rooms, rooms)), draw(st.floats(0.01, 1e4))
    offset = draw(st.sampled_from([0.0, 0.0, 12.5, 1e3, 5e6]))
    ulps = st.integers(-3, 3)
    found = []
    for angle in draw(st.lists(st.floats(0.0, 6.3), min_size=4, max_size=4)):
        x, y = middle[0] + offset + radius * math.cos(angle), middle[1] + offset + radius * math.sin(angle)
        found.append((nudge(x, draw(ulps)), nudge(y, draw(ulps))))
    return found[0], found[1], found[2], found[3]


lattice = st.tuples(st.integers(-3, 3).map(float), st.integers(-3, 3).map(float))


@given(
    st.one_of(
        nearly_cocircular(), st.tuples(lattice, lattice, lattice, lattice), st.tuples(*[st.tuples(rooms, rooms)] * 4)
    )
)
@settings(max_examples=500, deadline=None)
def test_the_side_of_a_circle_is_exact(four: tuple[Point, Point, Point, Point]) -> None:
    flat = [value for point in four for value in point]
    assert in_circle(*flat) == circle_sign_by_fractions(*four)


def test_a_point_a_last_digit_inside_a_circle_is_inside() -> None:
    assert in_circle(1.0, 0.0, 0.0, 1.0, -1.0, 0.0, 0.0, -1.0) == 0
    assert in_circle(1.0, 0.0, 0.0, 1.0, -1.0, 0.0, 0.0, math.nextafter(-1.0, 0.0)) == 1
    assert in_circle(1.0, 0.0, 0.0, 1.0, -1.0, 0.0, 0.0, math.nextafter(-1.0, -2.0)) == -1
