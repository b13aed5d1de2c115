"""Lengths of ways in 32 bits, and the choice among eight cells that reads them, against plain Python."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from tropel._kernels.grid_moves import bits_to_drop, shorten_lengths
from tropel.local.lattice.choice import best_of_eight

FAR = 1 << 62
NO_WAY = 0xFFFFFFFF
MOVES = [(1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]


def shortened(units: np.ndarray, drop: int = 0) -> np.ndarray:
    out = np.empty(units.size, dtype=np.uint32)
    shorten_lengths(units.reshape(-1), drop, out)
    return out.reshape(units.shape)


@pytest.mark.parametrize("longest", [3880899, 3880899 * 1000])
def test_differences_of_neighbours_survive_wherever_the_lengths_are(longest: int) -> None:
    generator = np.random.default_rng(1)
    way = generator.integers(1, 1 << 50, 2000)
    way[::2] = (way[::2] >> 32 << 32) + generator.integers(-5, 5, way[::2].size)  # where 32 bits begin anew
    beside = np.maximum(way + generator.integers(-longest, longest, way.size), 1)
    drop = bits_to_drop(longest)
    difference = (shortened(beside, drop) - shortened(way, drop)).view(np.int32).astype(np.int64)
    assert np.abs((difference << drop) - (beside - way)).max() <= 2 << drop


def test_nothing_but_the_goal_is_taken_for_it_and_no_way_for_a_missing_one() -> None:
    units = np.array([0, 1 << 32, 5 << 32, (1 << 32) - 1, (7 << 32) - 1, FAR, 3])
    np.testing.assert_array_equal(shortened(units), [0, 1, 1, NO_WAY - 1, NO_WAY - 1, NO_WAY, 3])
    np.testing.assert_array_equal(shortened(units, 2)[[0, 5]], [0, NO_WAY])
    assert shortened(units, 2)[6] == 1


@numba.njit
def _best(ways, middle, columns, below, beside, above, moves, here, path_weight, crowd_weight):
    at = np.uint64(middle - 1)
    across = np.uint64(columns)
    return best_of_eight(ways, at - across, at, at + across, below, beside, above, moves, here, path_weight,
                         crowd_weight, ())  # fmt: skip


@numba.njit
def _best_with_extra(ways, middle, columns, below, beside, above, moves, here, path_weight, crowd_weight, extra):
    at = np.uint64(middle - 1)
    across = np.uint64(columns)
    return best_of_eight(ways, at - across, at, at + across, below, beside, above, moves, here, path_weight,
                         crowd_weight, extra)  # fmt: skip


def plain_best(ways, around, moves, here, path_weight, crowd_weight, extra):
    worth = []
    for m, (dx, dy) in enumerate(MOVES):
        way, near = int(ways[1 + dy, 1 + dx]), int(around[1 + dy, 1 + dx])
        vetoed = not moves >> m & 1 or near >= 128 or way == NO_WAY
        difference = (way - here + (1 << 31)) % (1 << 32) - (1 << 31)
        worth.append(-math.inf if vetoed else path_weight * difference + crowd_weight * near + extra[m])
    best = max(worth)
    return 0 if best == -math.inf else sum(1 << m for m in range(8) if worth[m] == best)


def test_the_best_of_eight_cells_are_those_of_a_plain_loop() -> None:
    generator = np.random.default_rng(2)
    ties = nothing = 0
    for _ in range(3000):
        base = int(generator.choice([0, 50, NO_WAY - 60, int(generator.integers(1 << 32))]))
        ways = ((base + generator.integers(-1, 2, (3, 5))) % (1 << 32)).astype(np.uint32)
        ways[generator.random((3, 5)) < 0.1] = NO_WAY
        around = generator.integers(0, 4, (3, 8)).astype(np.uint8)
        around[generator.random((3, 8)) < 0.4] |= 128
        moves = int(generator.integers(256))
        here = int(base % (1 << 32))
        extra = tuple(generator.choice([0.0, -1.5, -math.inf], 8))
        words = [np.uint64(row.view(np.uint64)[0]) for row in around]
        given = (ways.reshape(-1), 6, 5, *words, np.uint64(moves), np.uint32(here), -0.5, -0.7)
        expected = plain_best(ways[:, :3], around, moves, here, -0.5, -0.7, (0.0,) * 8)
        assert _best(*given) == expected
        assert _best_with_extra(*given, extra) == plain_best(ways[:, :3], around, moves, here, -0.5, -0.7, extra)
        ties += expected & (expected - 1) != 0
        nothing += expected == 0
    assert ties > 100
    assert nothing > 20
