"""Everybody around some agents, from the engine's cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel._kernels.cells import CellList, cell_run, cell_window
from tropel._kernels.compile import kernel
from tropel.agents.state import Floats


@kernel
def _find_around(cells, rows, place, level, reach, indptr, out):
    """Write the rows within reach of each of some rows, without itself; goes on counting when there is no more room."""
    spatial = cells.position.shape[0] == 3
    end = 0
    for n in range(rows.size):
        row, own = rows[n], place[n]
        x, y, z = cells.position[0, own], cells.position[1, own], cells.position[2, own] if spatial else 0.0
        x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, z if spatial else np.float64(level[row]), reach[n])
        for cz in range(z0, z1 + 1):
            for cy in range(y0, y1 + 1):
                first, last = cell_run(cells, x0, x1, cy, cz)
                for k in range(first, last):
                    dx, dy = cells.position[0, k] - x, cells.position[1, k] - y
                    dz = cells.position[2, k] - z if spatial else 0.0
                    if dx * dx + dy * dy + dz * dz <= reach[n] * reach[n] and cells.order[k] != row:
                        if end < out.size:
                            out[end] = cells.order[k]
                        end += 1
        indptr[n + 1] = end
    return end


def rows_around(cells: CellList, rows: NDArray[np.int32], level: NDArray[np.int16], reach: Floats) -> Csr:
    """Rows within reach of each of some rows, without itself."""
    place = np.empty(len(cells.order), dtype=np.int64)
    place[cells.order] = np.arange(len(place))
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    out = np.empty(128 * len(rows), dtype=np.int32)
    size = _find_around(cells, rows, place[rows], level, reach, indptr, out)
    if size > len(out):
        out = np.empty(size, dtype=np.int32)
        _find_around(cells, rows, place[rows], level, reach, indptr, out)
    return Csr(indptr, out[:size])
