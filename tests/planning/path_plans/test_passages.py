"""The narrowest passage is the one that trying all lines finds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel._kernels.grid_moves import all_moves
from tropel.planning.flow.path_plan import PathPlan
from tropel.planning.path_plans.bottlenecks import bottleneck_cells, onward_cells
from tropel.planning.path_plans.passages import Passage, Walls, narrowest_passage

NEAR, WIDEST = 3.0, 12.0


def rooms(seed: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Random walls with random doors, and pillars."""
    generator = np.random.default_rng(seed)
    free = generator.random((45, 50)) > 0.03
    for column in (12, 30):
        free[:, column] = False
        first = int(generator.integers(2, 35))
        free[first : first + int(generator.integers(1, 9)), column] = True
    goal = np.zeros_like(free)
    goal[generator.integers(45), 48] = True
    return free | goal, goal


def way_by_plain_steps(place: tuple[int, int], onward: dict, units: NDArray[np.int64], reach: int) -> list:
    """The longest tributary within a square, then on to the goal and one step beyond."""
    start = place
    for row in range(max(place[0] - reach, 0), min(place[0] + reach + 1, units.shape[0])):
        for column in range(max(place[1] - reach, 0), min(place[1] + reach + 1, units.shape[1])):
            now = (row, column)
            for _ in range(2 * reach):
                now = onward[now]
                if now == place and units[row, column] > units[start]:
                    start = (row, column)
    way = [start]
    while way[-1] != place:
        way.append(onward[way[-1]])
    for _ in range(2 * reach):
        if onward[way[-1]] != way[-1]:
            way.append(onward[way[-1]])
    return [*way, (2 * way[-1][0] - way[-2][0], 2 * way[-1][1] - way[-2][1])]


def turn(a: tuple, b: tuple, c: tuple) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def crossings(a: tuple, b: tuple, way: list) -> list[tuple[float, float]]:
    """Where a line crosses a way; a corner of the way on the line counts once."""
    points = []
    for p, q in itertools.pairwise(way):
        before, after = turn(a, b, p), turn(a, b, q)
        if (before >= 0) != (after >= 0) and (turn(p, q, a) >= 0) != (turn(p, q, b) >= 0):
            share = before / (before - after)
            points.append((p[0] + share * (q[0] - p[0]), p[1] + share * (q[1] - p[1])))
    return points


def tried_one_by_one(
    place: tuple[int, int], free: NDArray[np.bool_], goal: NDArray[np.bool_], way: list, widest: float
) -> float:
    """Width of the narrowest passage by all pairs of walls, inf if there is none."""

    def is_free(row: float, column: float) -> bool:
        return 0 <= row < free.shape[0] and 0 <= column < free.shape[1] and bool(free[int(row), int(column)])

    def is_face(row: int, column: int) -> bool:
        beside = [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]
        return not is_free(row, column) and any(is_free(*n) and not goal[n] for n in beside)

    reach = math.ceil(NEAR + widest) + 1
    around = [(place[0] + dy, place[1] + dx) for dy in range(-reach, reach + 1) for dx in range(-reach, reach + 1)]
    faces = [cell for cell in around if is_face(*cell)]
    best = math.inf
    for k, a in enumerate(faces):
        for b in faces[k + 1 :]:
            width = math.hypot(max(abs(a[0] - b[0]) - 1, 0), max(abs(a[1] - b[1]) - 1, 0))
            if width >= best or width > widest:
                continue
            points = crossings(a, b, way)
            if len(points) % 2 == 0 or min(math.dist(p, place) for p in points) > NEAR:
                continue
            steps = 4 * max(abs(b[0] - a[0]), abs(b[1] - a[1]))
            between = {
                (round(a[0] + t / steps * (b[0] - a[0])), round(a[1] + t / steps * (b[1] - a[1])))
                for t in range(1, steps)
            }
            if all(is_free(*cell) for cell in between - {a, b}):
                best = width
    return best


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_shortest_of_all_lines_across_the_way(seed: int) -> None:
    free, goal = rooms(seed)
    units = PathPlan(free, goal).units
    flat = np.empty(free.size, dtype=np.uint8)
    all_moves(free, False, flat)
    moves = flat.reshape(free.shape)
    onward = onward_cells(units, moves)
    nx = free.shape[1]
    steps = {divmod(c, nx): divmod(int(to), nx) for c, to in enumerate(onward)}
    walls = Walls(free, goal)
    widths = []
    for place in np.flatnonzero(bottleneck_cells(units, moves)).tolist()[::6]:
        cell = divmod(place, nx)
        found = narrowest_passage(place, onward, units, walls, near=NEAR, widest=WIDEST)
        expected = math.inf
        # The way is longer where walls are looked for farther away.
        for look in (8.0, WIDEST):
            way = way_by_plain_steps(cell, steps, units, math.ceil(NEAR + look) + 1)
            expected = tried_one_by_one(cell, free, goal, way, look)
            if expected < math.inf:
                break
        assert (math.inf if found is None else found.width) == pytest.approx(expected)
        widths.append(expected)
    assert len(set(widths)) > 2


def test_the_ends_of_a_passage_are_as_far_apart_as_it_is_wide() -> None:
    passage = Passage(width=4.0, ends=((1.5, 3.0), (5.5, 3.0)))
    assert math.dist(*passage.ends) == passage.width
    assert passage.middle == (3.5, 3.0)
