"""Kernels that walk the cell list meet the same neighbours in the same order as the lists."""

from __future__ import annotations

import numpy as np
import pytest

from tropel._kernels.cells import CellList, cell_run, cell_window
from tropel._kernels.compile import kernel
from tropel.agents.state import AgentState
from tropel.contracts import Moment
from tropel.environment import Grid
from tropel.world import World


@kernel
def walk(cells: CellList, row: int, x: float, y: float, z: float, radius: float, out: np.ndarray) -> int:
    found = 0
    x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, z, radius)
    for cz in range(z0, z1 + 1):
        for cy in range(y0, y1 + 1):
            first, last = cell_run(cells, x0, x1, cy, cz)
            for k in range(first, last):
                if cells.order[k] == row:
                    continue
                away2 = (cells.position[0, k] - x) * (cells.position[0, k] - x)
                away2 += (cells.position[1, k] - y) * (cells.position[1, k] - y)
                if cells.position.shape[0] == 3:
                    away2 += (cells.position[2, k] - z) * (cells.position[2, k] - z)
                if away2 <= radius * radius:
                    out[found] = cells.order[k]
                    found += 1
    return found


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("cell", [None, 0.4, 7.0])
def test_walking_and_lists_agree(dim: int, cell: float | None) -> None:
    rng = np.random.default_rng(1)
    state = AgentState(dim)
    state.add(
        400,
        {
            "position": np.round(rng.uniform(-2.0, 12.0, (400, dim)), 1),
            "sense_radius": rng.choice([0.0, 0.5, 1.0, 3.0, np.inf], 400),
        },
    )
    world = World(bounds=(0, 0, 10, 10)) if dim == 2 else World.box((0, 0, 0), (10, 10, 10))
    near = Moment.of(state, world, environment=Grid(cell=cell)).near
    indptr, indices = near.csr()
    out = np.empty(400, dtype=np.int64)
    for row in range(400):
        x, y, z = (*state.position[row], 0.0)[:3]
        found = walk(near.cells.cell_list, row, x, y, z, state.sense_radius[row], out)
        assert out[:found].tolist() == indices[indptr[row] : indptr[row + 1]].tolist()
