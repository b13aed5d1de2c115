"""Exact predicates in space against rational arithmetic, where floating point alone goes wrong."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel._kernels.predicates_3d import in_sphere, orientation_3d

Point = tuple[float, float, float]

rooms = st.floats(-100.0, 100.0).map(lambda v: v if abs(v) > 1e-40 else 0.0)
wide = st.one_of(st.just(0.0), st.floats(1e-30, 1e30), st.floats(-1e30, -1e-30))
lattice = st.integers(-3, 3).map(float)
offsets = st.sampled_from([0.0, 0.0, 12.5, 1e3, 5e6])
ulps = st.integers(-3, 3)


def nudge(value: float, steps: int) -> float:
    for _ in range(abs(steps)):
        value = math.nextafter(value, math.inf if steps > 0 else -math.inf)
    return value if abs(value) > 1e-40 else 0.0


def points_of(coordinate: st.SearchStrategy[float], count: int) -> st.SearchStrategy[tuple[Point, ...]]:
    return st.tuples(*[st.tuples(coordinate, coordinate, coordinate)] * count)


@st.composite
def nearly_coplanar(draw: st.DrawFn) -> tuple[Point, ...]:
    """Three points and a fourth in their plane as well as rounding allows, a few units in the last place off."""
    offset = draw(offsets)
    a, b, c = (np.array(draw(st.tuples(rooms, rooms, rooms))) + offset for _ in range(3))
    share, other = draw(st.floats(-2.0, 2.0)), draw(st.sampled_from([0.0, 0.5, 1.0, -1.0, 0.3]))
    d = a + share * (b - a) + other * (c - a)
    d = np.array([nudge(value, draw(ulps)) for value in d])
    return tuple((float(p[0]), float(p[1]), float(p[2])) for p in (a, b, c, d))


@st.composite
def nearly_cospherical(draw: st.DrawFn) -> tuple[Point, ...]:
    """Five points of a sphere as well as rounding allows, a few units in the last place off."""
    middle, radius = np.array(draw(st.tuples(rooms, rooms, rooms))) + draw(offsets), draw(st.floats(0.01, 1e4))
    found = []
    for _ in range(5):
        turn, height = draw(st.floats(0.0, 6.3)), draw(st.floats(-1.0, 1.0))
        flat = math.sqrt(1.0 - height * height)
        p = middle + radius * np.array([flat * math.cos(turn), flat * math.sin(turn), height])
        found.append((nudge(p[0], draw(ulps)), nudge(p[1], draw(ulps)), nudge(p[2], draw(ulps))))
    return tuple(found)


def determinant(rows: list[list[Fraction]]) -> Fraction:
    if len(rows) == 1:
        return rows[0][0]
    total = Fraction(0)
    for k, value in enumerate(rows[0]):
        rest = [row[:k] + row[k + 1 :] for row in rows[1:]]
        total += (-1) ** k * value * determinant(rest)
    return total


def sign_by_fractions(points: tuple[Point, ...]) -> int:
    last = [Fraction(value) for value in points[-1]]
    rows = [[Fraction(value) - low for value, low in zip(p, last, strict=True)] for p in points[:-1]]
    if len(points) == 5:
        rows = [[*row, sum((value * value for value in row), Fraction(0))] for row in rows]
    found = determinant(rows)
    return (found > 0) - (found < 0)


def flat(points: tuple[Point, ...]) -> list[float]:
    return [value for point in points for value in point]


@given(st.one_of(nearly_coplanar(), points_of(lattice, 4), points_of(rooms, 4), points_of(wide, 4)))
@settings(max_examples=500, deadline=None)
def test_the_side_of_a_plane_is_exact(four: tuple[Point, ...]) -> None:
    expected = sign_by_fractions(four)
    a, b, c, d = four
    assert orientation_3d(*flat(four)) == expected
    assert orientation_3d(*flat((b, a, c, d))) == -expected
    assert orientation_3d(*flat((b, c, d, a))) == -expected


@given(st.one_of(nearly_cospherical(), points_of(lattice, 5), points_of(rooms, 5), points_of(wide, 5)))
@settings(max_examples=400, deadline=None)
def test_the_side_of_a_sphere_is_exact(five: tuple[Point, ...]) -> None:
    a, b, c, d, e = five
    # The sign is that of the determinant, whatever the orientation of the first four.
    expected = sign_by_fractions(five)
    assert in_sphere(*flat(five)) == expected
    assert in_sphere(*flat((b, a, c, d, e))) == -expected
    assert in_sphere(*flat((b, c, d, e, a))) == expected


def test_a_point_a_last_digit_inside_a_sphere_is_inside() -> None:
    four = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (-1.0, 0.0, 0.0))
    if sign_by_fractions(four) < 0:
        four = (four[1], four[0], four[2], four[3])
    assert orientation_3d(*flat(four)) == 1
    assert in_sphere(*flat((*four, (0.0, 0.0, -1.0)))) == 0
    assert in_sphere(*flat((*four, (0.0, 0.0, math.nextafter(-1.0, 0.0))))) == 1
    assert in_sphere(*flat((*four, (0.0, 0.0, math.nextafter(-1.0, -2.0))))) == -1
