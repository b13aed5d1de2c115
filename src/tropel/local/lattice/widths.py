"""True widths of narrow passages, which whole cells measure too narrow.

A wall that cuts through a cell blocks all of it: a door of 1.0 m may be one or two cells of 0.4 m wide. So each free
cell has a share, the true width of the passage it lies in divided by the width of the passage's free cells. The lattice
crowd waits less where the share is larger, so that flow grows with the width drawn, not with whole cells.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.walls import WallGrid, cell_at, clip_to_box
from tropel.world import World
from tropel.world.raster import Raster, static_obstacles
from tropel.world.shapes import segments_of

#: Passages of more cells than this count as they are: what walls cut off is less than a tenth of them.
_WIDEST = 20


@kernel
def free_parts(cells, side, axis, raster_x, raster_y, cell, walls, edges, position, radius, parts):
    """Write which part of blocked cells (row, column) is free, seen from a neighbour along an axis: 0 to 1.

    `axis` is 0 for x and 1 for y. `side` is -1 if the cell lies before the free neighbour, 1 if it lies behind it. The
    part that counts reaches from the neighbour to whatever is solid in the cell. A cell with nothing solid in it lies
    outside the walkable area: nothing of it is free. Of walls along the border of a cell those count that block it
    (`world/raster.py`): thin ones on its low sides. The first `edges` segments are the edge of the walkable area.
    """
    slack = 1e-6 * cell
    for k in range(cells.shape[0]):
        low_x, low_y = raster_x + cells[k, 1] * cell, raster_y + cells[k, 0] * cell
        high_x, high_y = low_x + cell, low_y + cell
        edge = (low_x if axis == 0 else low_y) + (cell if side[k] < 0 else 0.0)
        nearest = math.inf
        grid_cell = cell_at(low_x + 0.5 * cell, low_y + 0.5 * cell, walls.origin, walls.inverse_cell, walls.shape)
        for item in range(walls.start[grid_cell], walls.start[grid_cell + 1]):
            s = np.int64(walls.items[item])
            if not walls.blocking[s]:
                continue
            ax, ay, bx, by = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
            inset = slack if s < edges else -slack
            t0, t1 = clip_to_box(ax, ay, bx, by, low_x + inset, low_y + inset, high_x - slack, high_y - slack)
            if t0 <= t1:
                begin, along = (ax, bx - ax) if axis == 0 else (ay, by - ay)
                nearest = min(nearest, abs(begin + t0 * along - edge), abs(begin + t1 * along - edge))
        for d in range(radius.size):
            across = min(max(position[d, 1 - axis], low_y if axis == 0 else low_x), high_y if axis == 0 else high_x)
            chord2 = radius[d] ** 2 - (across - position[d, 1 - axis]) ** 2
            if chord2 > 0.0:
                away = (position[d, axis] - edge) * side[k] - math.sqrt(chord2)
                if away < cell and away + 2.0 * math.sqrt(chord2) > 0.0:
                    nearest = min(nearest, max(away, 0.0))
        parts[k] = min(nearest / cell, 1.0) if nearest < math.inf else 0.0


def width_shares(raster: Raster, world: World) -> NDArray[np.float64]:
    """The share (cells,) of every cell, at least 1; 1 where nothing is cut off or the passage is wide."""
    walls = world.wall_grid(max(1.0, raster.cell))
    edges = 0 if world.walkable is None else len(segments_of(world.walkable))
    (cells_x, share_x), (cells_y, share_y) = (
        _of_runs(raster, axis, walls, edges, *static_obstacles(world)) for axis in (0, 1)
    )
    # The narrower way across counts: in a door, from post to post.
    share = np.where(cells_x < cells_y, share_x, np.where(cells_y < cells_x, share_y, np.minimum(share_x, share_y)))
    share = _with_approaches(share, np.minimum(cells_x, cells_y), cells_x < cells_y)
    return np.asarray(np.where(raster.free, share, 1.0).reshape(-1))


def _of_runs(
    raster: Raster,
    axis: int,
    walls: WallGrid,
    edges: int,
    position: NDArray[np.float64],
    radius: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For every cell (ny, nx), the number of free cells in a row along an axis (0 for x), and the share of that row."""
    free = raster.free if axis == 0 else raster.free.T
    inside = np.pad(free, ((0, 0), (1, 1)))
    begins, ends = free & ~inside[:, :-2], free & ~inside[:, 2:]
    first, last = np.argwhere(begins), np.argwhere(ends)
    length = last[:, 1] - first[:, 1] + 1
    narrow = np.flatnonzero(length <= _WIDEST)
    cells = np.concatenate([first[narrow] - (0, 1), last[narrow] + (0, 1)])
    side = np.repeat([-1, 1], narrow.size)
    parts = np.empty(len(cells))
    free_parts(
        np.ascontiguousarray(cells if axis == 0 else cells[:, ::-1]), side, axis, float(raster.origin[0]),
        float(raster.origin[1]), raster.cell, walls, edges, position, radius, parts,
    )  # fmt: skip
    share = np.ones(length.size + 1)
    share[narrow] += parts.reshape(2, -1).sum(axis=0) / length[narrow]
    run = np.where(free, np.cumsum(begins).reshape(free.shape) - 1, length.size)
    cells_across = np.append(length, 0)[run]
    return (cells_across, share[run]) if axis == 0 else (cells_across.T, share[run].T)


def _with_approaches(
    share: NDArray[np.float64], cells_across: NDArray[np.int64], flows_along_y: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Wider ground before and behind a passage has its share too: otherwise it would hold up the flow instead of it."""
    wider = share.copy()
    first, last = np.s_[:-1], np.s_[1:]
    for to, of, along_y in (
        (np.s_[last, :], np.s_[first, :], True),
        (np.s_[first, :], np.s_[last, :], True),
        (np.s_[:, last], np.s_[:, first], False),
        (np.s_[:, first], np.s_[:, last], False),
    ):
        leads_there = (flows_along_y[of] == along_y) & (cells_across[to] > cells_across[of])
        wider[to] = np.where(leads_there, np.maximum(wider[to], share[of]), wider[to])
    return wider
