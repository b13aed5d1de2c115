"""A field on a raster: the direction to the goal from every cell, and how near it is.

Agents follow all fields in the same manner, whatever solver made them: unit vectors are interpolated between free
cells, never across a wall. An agent close to a wall, where cells are not free, heads for the nearest free cell on its
side.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel.agents.state import AgentState
from tropel.errors import ParameterError
from tropel.planning.fields.following import (
    BLOCKED,
    GOAL,
    REACHABLE,
    UNKNOWN,
    UNREACHABLE,
    FieldArrays,
    follow_field,
)
from tropel.planning.fields.straight import follow_straightened, steps_uphill, straighten_all
from tropel.planning.fields.streams import RANGE, Slowed, follow_streams, streams_of
from tropel.world import GoalArrays, World
from tropel.world.goals import GoalShapes, goal_arrays
from tropel.world.raster import Raster


@dataclass(frozen=True, kw_only=True)
class Unreachable:
    """Free places from which no path leads to the goal."""

    cells: int
    area: float  #: [m²], or [m³] in 3D
    regions: list[tuple[float, ...]]  #: a point in each connected part, the largest part first
    sizes: list[int]  #: their numbers of cells

    def __str__(self) -> str:
        if not self.cells:
            return "every free cell leads to the goal"
        where = ", ".join("(" + ", ".join(f"{c:.4g}" for c in p) + f"): {n} cells" for p, n in self.pairs[:5])
        more = f" and {len(self.regions) - 5} more" if len(self.regions) > 5 else ""
        unit = "m²" if len(self.regions[0]) == 2 else "m³"
        return f"no path to the goal from {self.cells} cells ({self.area:.4g} {unit}), around {where}{more}"

    @property
    def pairs(self) -> list[tuple[tuple[float, ...], int]]:
        return list(zip(self.regions, self.sizes, strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class GridField:
    """A raster with a value and a unit vector per cell, for one goal (which may be a union of places)."""

    raster: Raster
    goal: NDArray[np.bool_]  #: cells of the goal
    value: NDArray[np.float64]  #: logarithm: larger is nearer to the goal, -inf where it cannot be reached
    vectors: NDArray[np.float64]  #: (*shape, dim): unit vectors (x first), zero on the goal and where there is no path
    metres_per_value: float = 0.0  #: times the value, the path length [m]; 0 if that is not known
    straighten: bool = False  #: whether agents aim ahead along the path instead of following it cell by cell; 2D
    solver: Any = None  #: kept by the solver for a repair

    def __post_init__(self) -> None:
        shape = self.raster.shape
        for name, array, wanted in (
            ("goal", self.goal, shape),
            ("value", self.value, shape),
            ("vectors", self.vectors, (*shape, self.raster.dim)),
        ):
            if array.shape != wanted:
                raise ParameterError(f"{name} of a field on a raster {shape} must be {wanted}, not {array.shape}")

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """Free cells from which a path leads to the goal, including the goal."""
        return self.raster.free & (self.goal | (self.value > -np.inf))

    @property
    def length(self) -> NDArray[np.float64] | None:
        """Length of the path to the goal [m], inf where there is none; None if values do not give it."""
        return self.value * self.metres_per_value if self.metres_per_value else None

    def length_from(self, positions: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Length of the path from each position (N, dim) [m], inf where there is none; None if values do not give it.

        Who stands close to a wall, where cells are not free, goes to one of the free cells around first.
        """
        length = self.length
        if length is None:
            return None
        length = np.where(self.reachable, length, np.inf)
        cell, shape = self.raster.index_of(positions), np.array(self.raster.shape)
        found = length[tuple(cell.T)]
        lost = np.flatnonzero(~np.isfinite(found))
        reach = math.ceil(search_reach(self.raster) / self.raster.cell) if len(lost) else 0
        for step in itertools.product(range(-reach, reach + 1), repeat=self.raster.dim) if reach else ():
            around = np.clip(cell[lost] + np.array(step), 0, shape - 1)
            away = np.linalg.norm(self.raster.centre(around) - positions[lost], axis=1)
            found[lost] = np.minimum(found[lost], length[tuple(around.T)] + away)
        return found

    @cached_property
    def arrays(self) -> FieldArrays:
        """The field as kernels read it, with three axes of cells."""
        shape = self.raster.shape if self.raster.dim == 3 else (1, *self.raster.shape)
        kind = np.where(self.raster.free, np.uint8(UNREACHABLE), np.uint8(BLOCKED))
        kind[self.reachable] = REACHABLE
        kind[self.raster.free & self.goal] = GOAL
        # Sampling takes any nonzero vector as that of a free cell with a path.
        vectors = np.where((kind == REACHABLE)[..., None], self.vectors, np.float32(0.0)).astype(np.float32)
        return FieldArrays(
            kind=kind.reshape(shape),
            room=room_around(self._plain.reshape(shape), self.goal.reshape(shape)),
            vectors=vectors.reshape(*shape, self.raster.dim),
            value=np.ascontiguousarray(self.value, dtype=np.float64).reshape(shape),
            metres_per_value=float(self.metres_per_value),
            origin=np.append(self.raster.origin, 0.0)[:3],
            cell=self.raster.cell,
            inverse_cell=1.0 / self.raster.cell,
            around=_steps_around(self.raster),
        )

    @property
    def _plain(self) -> NDArray[np.bool_]:
        """Free cells where paths cost nothing extra. Only there is a straight line the shortest path."""
        free, cost = self.raster.free, self.raster.cost
        return free if cost is None else free & (cost <= 1.0)

    @cached_property
    def _straight(self) -> NDArray[np.float32]:
        """Vectors to the farthest point of the path in sight; NaN in cells that no agent has visited yet."""
        kind = self.arrays.kind
        straight = np.zeros((*kind.shape, 2), dtype=np.float32)
        straight[kind == REACHABLE] = np.nan
        return straight

    @cached_property
    def _streams(self) -> NDArray[np.uint8]:
        """Streams that agents follow in a crowd."""
        return streams_of(self.arrays.kind[0], RANGE / self.raster.cell)

    @cached_property
    def _steps(self) -> NDArray[np.int32]:
        """From each cell to the next one of its path, as a difference of cell numbers."""
        steps = np.zeros(self.raster.free.size, dtype=np.int32)
        steps_uphill(self.arrays, steps)
        return steps

    def directions(self) -> NDArray[np.floating[Any]]:
        """The unit vectors that agents follow, in every cell: `vectors`, or their straightened version."""
        if not self.straighten:
            return self.vectors
        straighten_all(self.arrays, self._steps, self._straight)
        return self._straight[0]

    def sample(self, positions: NDArray[np.float64], world: World) -> NDArray[np.float64]:
        """Unit vectors at positions (N, dim), zero where there is no path; also zero on goal cells."""
        positions = np.ascontiguousarray(positions, dtype=np.float64)
        out = np.empty_like(positions)
        rows = np.arange(len(positions), dtype=np.int64)
        self.follow(positions, rows, world, _no_goals(self.raster.dim), np.empty(0, dtype=np.int64), None, out)
        return out

    def follow(
        self,
        positions: NDArray[np.float64],
        rows: NDArray[np.int64],
        world: World,
        goals: GoalArrays,
        numbers: NDArray[np.int64],
        sight: NDArray[np.int16] | None,
        out: NDArray[np.float64],
    ) -> None:
        """Write unit vectors into the given rows of `out`, zero where there is no path.

        On goal cells they point straight to the nearest of the goals `numbers`. With `sight` (from `new_sight`) they
        also do so wherever such a goal is in clear sight.
        """
        look = sight is not None
        remembered = np.empty((0, 0, 0), dtype=np.int16) if sight is None else sight
        walls = world.wall_grid(search_reach(self.raster))
        given = (walls, goals, numbers, remembered, look)
        if self.straighten:
            followed = self.arrays._replace(vectors=self._straight)
            follow_straightened(positions, rows, self.arrays, followed, *given, self._steps, self._straight, out)
        else:
            follow_field(positions, rows, self.arrays, *given, out)

    def follow_streams(self, state: AgentState, rows: NDArray[np.int64], out: NDArray[np.float64]) -> None:
        """Turn the directions of agents that others slow down, so that they do not all aim at the same corner."""
        crowd = Slowed(state.position, state.velocity, state.desired_speed, state.held)
        follow_streams(rows, crowd, self.arrays, self._streams, out)

    def new_sight(self) -> NDArray[np.int16]:
        """An empty cache of the goal seen from each cell."""
        return np.full(self.arrays.kind.shape, UNKNOWN, dtype=np.int16)

    def unreachable(self) -> Unreachable:
        """Free places from which agents could not reach the goal."""
        from scipy import ndimage

        lost = self.raster.free & ~self.reachable
        cells = int(lost.sum())
        if not cells:
            return Unreachable(cells=0, area=0.0, regions=[], sizes=[])
        labels, count = ndimage.label(lost, structure=np.ones((3,) * self.raster.dim))
        sizes = np.bincount(labels.ravel())[1:]
        firsts = np.unique(labels, return_index=True)[1][-count:]
        order = np.argsort(-sizes, kind="stable")
        places = self.raster.centre(np.stack(np.unravel_index(firsts[order], self.raster.shape), axis=-1))
        return Unreachable(
            cells=cells,
            area=cells * self.raster.cell**self.raster.dim,
            regions=[tuple(place) for place in places.tolist()],
            sizes=sizes[order].tolist(),
        )


def search_reach(raster: Raster) -> float:
    """How far an agent close to a wall searches for a free cell [m]."""
    return 1.5 * raster.reach + 2.0 * raster.cell


@kernel
def _count_rings(padded, back):
    """One pass of the distance transform, forwards or back: at most one more than the cells that were passed before.

    `padded` (nz, ny, nx) has 0 in blocked cells and around the border.
    """
    nz, ny, nx = padded.shape
    for n in range(1, nz - 1):
        z = nz - 1 - n if back else n
        before_z = z + 1 if back else z - 1
        for m in range(1, ny - 1):
            y = ny - 1 - m if back else m
            before_y = y + 1 if back else y - 1
            last = np.int64(padded[z, y, nx - 1 if back else 0])
            for k in range(1, nx - 1):
                x = nx - 1 - k if back else k
                least = min(np.int64(padded[z, y, x]), last + 1)
                for sx in range(-1, 2):
                    least = min(least, padded[z, before_y, x + sx] + 1)
                    for sy in range(-1, 2):
                        least = min(least, padded[before_z, y + sy, x + sx] + 1)
                padded[z, y, x] = last = least


def _rings(free: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """How many steps, also diagonal ones, the nearest cell is away that is not free or beyond the border; at most 255.

    Above and below a single slice all is free.
    """
    padded = np.pad(np.where(free, np.uint8(255), np.uint8(0)), 1)
    if len(free) == 1:
        padded[[0, -1]] = 255
    _count_rings(padded, False)
    _count_rings(padded, True)
    return padded[1:-1, 1:-1, 1:-1]


def room_around(free: NDArray[np.bool_], goal: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """How many cells one may go on from a cell (nz, ny, nx) and have only free cells around before that.

    0 for cells that have blocked cells around them; nothing beyond the border is free. Nobody goes past a goal.
    """
    room = np.maximum(_rings(free & ~goal), 2) - 1
    room[_rings(free) < 2] = 0
    return room


def _steps_around(raster: Raster) -> NDArray[np.int64]:
    """Steps (K, 3) along z, y and x to the cells within reach of the search, nearest first."""
    most = math.ceil(search_reach(raster) / raster.cell)
    axes = [np.arange(-most, most + 1)] * raster.dim
    steps = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, raster.dim)
    away = (steps**2).sum(axis=1)
    kept = away * raster.cell**2 <= search_reach(raster) ** 2
    order = np.argsort(away[kept], kind="stable")
    flat = np.zeros((int(kept.sum()), 3), dtype=np.int64)
    flat[:, 3 - raster.dim :] = steps[kept][order]
    return flat


def _no_goals(dim: int) -> GoalArrays:
    return goal_arrays({}, GoalShapes.none(dim))
