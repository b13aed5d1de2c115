"""Sixteen agents at a time: who is near, and whom one may meet, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel._kernels.cells import BLOCK, CellList, near_bits
from tropel._kernels.compile import kernel
from tropel._kernels.neighbours import Neighbours, meeting_bits

Floats = NDArray[np.float64]


@kernel
def collect(cells, neighbours, first, last, x, v, share, body, limit, horizon, near, out_near, out_meeting):
    z, vz = (x[2], v[2]) if x.size == 3 else (0.0, 0.0)
    for at in range(first, last, BLOCK):
        bits = near_bits(cells, at, last, x[0], x[1], z, limit)
        meets = meeting_bits(neighbours, at, last, x[0], x[1], z, v[0], v[1], vz, share, body, limit, horizon, near)
        for k in range(np.uint64(16)):
            if (bits >> k) & np.uint64(1):
                out_near[at + k] = True
            if (meets >> k) & np.uint64(1):
                out_meeting[at + k] = True


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize(
    ("count", "first", "last"), [(100, 0, 100), (100, 13, 77), (7, 0, 7), (40, 30, 40), (16, 0, 16)]
)
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_bits_are_those_of_plain_numpy(dim: int, count: int, first: int, last: int, share: float) -> None:
    random = np.random.default_rng(count + first)
    position, velocity = random.uniform(0, 4, (dim, count)), random.normal(0, 1, (dim, count))
    radius = random.uniform(0.1, 0.4, count)
    nothing = np.empty(0, dtype=np.int64)
    cells = CellList(
        origin=np.zeros(3),
        inverse_cell=1.0,
        shape=np.ones(3, dtype=np.int64),
        cell_start=nothing.astype(np.uint32),
        order=np.arange(count, dtype=np.uint32),
        position=position,
        sense_radius=np.ones(count),
        velocity=velocity,
        radius=radius,
        group=np.zeros(count, dtype=np.int32),
        period=np.zeros(3),
        level=np.zeros(count, dtype=np.int16),
    )
    neighbours = Neighbours(*cells, nothing, cells.order, position, velocity, radius, cells.group)
    x, v = np.full(dim, 2.0), np.full(dim, 0.5)
    limit, horizon, near, body = 2.5, 0.4, 0.1, 0.2
    ours_near, ours_meeting = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    run = np.uint64(first), np.uint64(last)
    collect(cells, neighbours, *run, x, v, share, body, limit, horizon, near, ours_near, ours_meeting)
    away = np.linalg.norm(position.T - x, axis=1)
    relative = np.linalg.norm(v - share * velocity.T, axis=1)
    listed = (np.arange(count) >= first) & (np.arange(count) < last)
    is_near = listed & (away**2 <= limit)
    free = away - radius - body
    np.testing.assert_array_equal(ours_near, is_near)
    np.testing.assert_array_equal(ours_meeting, is_near & ((np.abs(free) <= horizon * relative) | (free <= near)))
    if count == 100 and first == 0:
        assert 0 < ours_meeting.sum() < ours_near.sum() < count
