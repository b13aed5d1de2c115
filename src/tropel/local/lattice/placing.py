"""Placing agents on the cells of a lattice, one each."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel._kernels.philox import random_key, uniforms
from tropel._kernels.walls import chord_blocked
from tropel.agents.placing import Floats, Placing
from tropel.agents.room import region_area
from tropel.agents.spawn import by_place
from tropel.errors import SpawnError
from tropel.world import World
from tropel.world.raster import Raster, cells_now, take_cells

#: An agent placed where there is no room searches for a cell up to this far away [cells].
_FARTHEST = 12


class OnCells(Placing):
    """Placing on the cells of a world, one agent each; its body is the cell."""

    def __init__(self, cell: float) -> None:
        self.cell = cell
        self.body = 0.5 * cell

    def settle(self, world: World, positions: Floats, *, who: str, taken: Floats, taken_radius: Floats) -> Floats:
        room = CellRoom(world, cell=self.cell, taken=taken, taken_radius=taken_radius)
        return room.settle(positions, who=who)

    def find(
        self,
        world: World,
        *,
        radius: Floats,
        region: Any,
        seed: int,
        who: str,
        taken: Floats,
        taken_radius: Floats,
        first_draw: int,
        partial: bool,
    ) -> Floats:
        room = CellRoom(world, cell=self.cell, taken=taken, taken_radius=taken_radius)
        return room.spawn(count=len(radius), region=region, seed=seed, who=who, first_draw=first_draw, partial=partial)


class CellRoom:
    """The cells of a world on which agents may be placed: free, and not overlapped by agents that are already there."""

    def __init__(
        self, world: World, *, cell: float, taken: NDArray[np.float64], taken_radius: NDArray[np.float64]
    ) -> None:
        self.world = world
        self.raster: Raster = cells_now(world, cell)
        self.vacant = self.raster.free.copy()
        self._take(world.obstacles.position, world.obstacles.radius)
        self._take(taken, taken_radius)

    def _take(self, position: NDArray[np.float64], radius: NDArray[np.float64]) -> None:
        """Cells where a body as wide as a cell would overlap these bodies are not vacant."""
        take_cells(position, radius, self.raster, self.vacant)

    def spawn(
        self, *, count: int, region: Any, seed: int, who: str, first_draw: int, partial: bool
    ) -> NDArray[np.float64]:
        """Centres of `count` vacant cells of a region, drawn at random; with `partial`, fewer if there are no more."""
        index = self._inside(region, who)
        if len(index) < count and not partial:
            cells = len(index)
            raise SpawnError(
                f"group '{who}': {count} agents do not fit on the {cells} vacant cells of {self.raster.cell:g} m in "
                f"{'the walkable area' if region is None else 'its region'}; use fewer agents, a larger region or "
                f"smaller cells"
            )
        numbers = index[:, 0] * self.raster.shape[1] + index[:, 1]
        lots = uniforms(random_key(seed, f"{who}/cells"), numbers, step=first_draw)[:, 0]
        chosen = np.argsort(lots, kind="stable")[:count]
        return by_place(self.raster.centre(index[chosen]))

    def _inside(self, region: Any, who: str) -> NDArray[np.int64]:
        """Vacant cells with their centre in a region."""
        area = region_area(self.world, region, who)
        low, high = np.asarray(area.bounds).reshape(2, 2)
        (y0, x0), (y1, x1) = self.raster.index_of(np.array([low, high])).tolist()
        index = np.argwhere(self.vacant[y0 : y1 + 1, x0 : x1 + 1]) + np.array([y0, x0])
        centres = self.raster.centre(index)
        shapely.prepare(area)
        return index[shapely.contains_xy(area, centres[:, 0], centres[:, 1])]

    def settle(self, positions: NDArray[np.float64], *, who: str) -> NDArray[np.float64]:
        """Put each agent on the vacant cell nearest to its position, on its side of all walls, in their order."""
        index = self.raster.index_of(positions)
        settled = np.empty_like(positions)
        for row, (iy, ix) in enumerate(index.tolist()):
            if not self.vacant[iy, ix]:
                iy, ix = self._nearest(positions[row], iy, ix, who)
            self.vacant[iy, ix] = False
            settled[row] = self.raster.centre([iy, ix])
        return settled

    def _nearest(self, place: NDArray[np.float64], iy: int, ix: int, who: str) -> tuple[int, int]:
        y0, x0 = max(iy - _FARTHEST, 0), max(ix - _FARTHEST, 0)
        index = np.argwhere(self.vacant[y0 : iy + _FARTHEST + 1, x0 : ix + _FARTHEST + 1]) + np.array([y0, x0])
        centres = self.raster.centre(index)
        walls = self.world.wall_grid(self.raster.cell)
        for k in np.argsort(((centres - place) ** 2).sum(axis=1), kind="stable").tolist():
            if not chord_blocked(place[0], place[1], centres[k, 0], centres[k, 1], walls):
                return int(index[k, 0]), int(index[k, 1])
        raise SpawnError(
            f"group '{who}': no vacant cell of {self.raster.cell:g} m near {place.tolist()}; "
            f"move the agent to a free place"
        )
