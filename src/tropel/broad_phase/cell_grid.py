"""The cells that agents are sorted into: where they lie, and when agents are sorted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import CellList
from tropel._kernels.compile import kernel
from tropel.agents.state import AgentState, Floats
from tropel.broad_phase.cell_sort import CellSort
from tropel.errors import CheckpointError, ModelError
from tropel.foundation.reductions import ONE_PROCESS, Reductions
from tropel.foundation.stored_arrays import taken
from tropel.world import World
from tropel.world.shapes import FARTHEST

#: Passing through an empty cell costs a fraction of a nanosecond, so many cells are better than a few crowded ones.
#: The first number is for worlds with few agents, the last bounds the memory (64 MiB).
_ALWAYS_CELLS = 1 << 16
_CELLS_PER_AGENT = 64
_MOST_CELLS = 1 << 24

#: In open space the cells follow the crowd when more than this share of a sample of this many agents is outside.
_STRAYED = 1.0 / 8.0
_SAMPLE = 4096
#: Fewer agents than this may all be in one cell before that costs any time.
_FEW = 512
#: The cells then cover the crowd without this share at either end of an axis, plus this share of that width beyond.
_FAR = 0.01
_MARGIN = 0.25
#: How far away [m] the cells may lie when the crowd has moved away.
_FARTHEST = 2.0 * FARTHEST


class CellGrid:
    """Sorts agents into equal cells over the bounds of the world, at most once per phase and only on request.

    `cell` is the edge of a cell [m]. The default is the median sense radius of the agents present when the grid is
    allocated: most agents then search three cells along each axis, and a few far-sighted ones search more. Cells are
    larger if the world would otherwise have too many of them. Once allocated, the grid stays the same as agents come
    and leave, except in open space: there it follows a crowd that moves away. A few agents far from all others belong
    to the border cells. Cells decide the order in which neighbours are visited, so they are part of a checkpoint.
    """

    def __init__(self, *, cell: float | None = None, reduce: Reductions = ONE_PROCESS) -> None:
        self.cell = None if cell is None else float(cell)
        self._reduce = reduce
        self._agents: CellSort | None = None
        self._bounds: Floats = np.empty((2, 0))
        self._box: Floats = np.empty((2, 0))  #: what the cells cover: the bounds, or where the crowd went
        self._period: Floats = np.empty(0)
        self._size = 0.0
        self._reach = 0.0
        self._settled = False
        self._sorted = False  #: whether agents are sorted by their current positions
        self._now: tuple[AgentState, World] | None = None

    @classmethod
    def of(cls, state: AgentState, world: World, *, cell: float | None = None) -> CellGrid:
        """Cells for agents outside of any simulation."""
        grid = cls(cell=cell)
        grid.allocate(state, world)
        grid.begin(state, world)
        return grid

    # Used in a step ---------------------------------------------------------------------------------------------

    def begin(self, state: AgentState, world: World) -> None:
        """Agents have moved; they are sorted again on the next request."""
        self._now = state, world
        self._sorted = False

    @property
    def sorting(self) -> CellSort:
        """All agents, sorted by where they were at the beginning of the phase."""
        self.sort_now()
        assert self._agents is not None
        return self._agents

    def sort_now(self) -> None:
        """Sort agents by where they are, unless that has been done already; afterwards they may move."""
        if not self._sorted:
            if self._now is None:
                raise ModelError("the grid has no agents to sort yet; call begin(state, world) first")
            self._sort(*self._now)

    @property
    def cell_list(self) -> CellList:
        """All agents by cell, with their hot columns; `tropel._kernels.cells` has the helpers to walk them."""
        sorting = self.sorting
        assert self._now is not None
        return sorting.with_bodies(self._now[0])

    @property
    def reach(self) -> float:
        """No relevant sense radius is larger than this [m]; it only grows."""
        return max(self._reach, min(self.sorting.widest, self._diagonal))

    def rows_by_cell(self, members: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The rows of a group in the order of their cells.

        A kernel that walks the cells for one row after the other is up to three times faster in this order, because
        consecutive agents then read the same memory.
        """
        return self.sorting.rows_by_cell(members)

    # Where the cells lie ----------------------------------------------------------------------------------------

    def allocate(self, state: AgentState, world: World) -> None:
        """Choose the cells for this world and its agents, and discard the previous choice."""
        bounds = np.array(world.bounds, dtype=np.float64)
        if state.dim != world.dim or bounds.shape != (2, world.dim):
            raise ModelError(
                f"agents of {state.dim} dimensions cannot be sensed in a world of {world.dim} "
                f"with bounds of shape {bounds.shape}; make both with the same dimension"
            )
        if not (np.isfinite(bounds).all() and (bounds[1] >= bounds[0]).all()):
            raise ModelError(f"a grid needs finite bounds with low ≤ high, but the world has {bounds.tolist()}")
        self._bounds, self._period = bounds, np.array(world.period, dtype=np.float64)
        self._settle(bounds, self._cell_for(state, bounds))
        self._reach = 0.0
        # If there are no agents yet, the first ones to arrive decide.
        self._settled = self.cell is not None or len(state) > 0

    def _cell_for(self, state: AgentState, box: Floats) -> float:
        radii = state.sense_radius
        radii = radii[np.isfinite(radii) & (radii > 0.0)]
        most = _MOST_CELLS if self.cell is not None else max(_ALWAYS_CELLS, _CELLS_PER_AGENT * len(state))
        # Without a radius any cell size is right; the limit on the number of cells then decides.
        wanted = self.cell or (self._reduce.median(radii) if len(radii) else float((box[1] - box[0]).max()) / 256.0)
        return _fitting_cell(box, wanted or 1.0, min(most, _MOST_CELLS))

    def _settle(self, box: Floats, size: float) -> None:
        dim = box.shape[1]
        origin = np.zeros(3)
        origin[:dim] = box[0]
        shape = np.ones(3, dtype=np.int64)
        shape[:dim] = _cell_counts(box, size)
        period = np.zeros(3)
        period[:dim] = self._period
        self._box, self._size = box, size
        self._diagonal = float(np.linalg.norm(self._bounds[1] - self._bounds[0]))
        self._agents = CellSort(origin=origin, cell=size, shape=shape, period=period, dim=dim)

    def _follow(self, state: AgentState, unbounded: NDArray[np.bool_]) -> None:
        """Move the cells to where the crowd is, if too many agents have left them."""
        every = max(len(state) // _SAMPLE, 1)
        sample = state.position[::every]
        strayed = self._reduce.count(_count_outside(state.position, every, self._box))
        if strayed <= _STRAYED * self._reduce.count(len(sample)) or not np.isfinite(sample).all():
            return
        low, high = self._reduce.quantiles(sample, [_FAR, 1.0 - _FAR])
        beyond = _MARGIN * (high - low) + self._size
        box = np.where(unbounded, [low - beyond, high + beyond], self._bounds)
        self._settle(box, self._cell_for(state, box))

    def update(self, state: AgentState) -> None:
        """Sort the agents into the allocated cells."""
        if self._agents is None:
            raise ModelError("the grid has no cells yet; call allocate(state, world) before update(state)")
        fault = self._agents.sort(state)
        if fault is not None:
            raise ModelError(_unsortable(state, fault))
        self._sorted = True
        # No distance between two points moved into the bounds exceeds the diagonal, and walls and obstacles are
        # looked up from such points.
        self._agents.widest = self._reduce.largest(np.array([self._agents.widest]))
        self._reach = max(self._reach, min(self._agents.widest, self._diagonal))
        if np.count_nonzero(self._period):
            self._check_periodic(state)

    def _check_periodic(self, state: AgentState) -> None:
        assert self._agents is not None
        shortest = float(self._period[self._period > 0.0].min())
        # At exactly half a period, rounding would decide on which side of an agent another one is, or on both.
        if not 2.0 * self._agents.widest * (1.0 + 1e-12) < shortest:
            row = int(np.argmax(state.sense_radius))
            raise ModelError(
                f"agent {int(state.id[row])} has a sense radius of {state.sense_radius[row]:g} m; where space repeats "
                f"every {shortest:g} m it must be less than half of that, or neighbours would be met twice: use a "
                f"smaller radius or a larger world"
            )
        row = _first_outside(state.position, self._bounds[0], self._bounds[1], self._period)
        if row >= 0:
            raise ModelError(
                f"agent {int(state.id[row])} is at {state.position[row].tolist()}, outside of the periodic world; "
                f"put agents inside its bounds (World.wrap does it)"
            )

    def _sort(self, state: AgentState, world: World) -> None:
        if not (self._settled and _same(self._bounds, world.bounds) and _same(self._period, world.period)):
            self.allocate(state, world)
        if len(state) > _FEW and np.count_nonzero(unbounded := world.unbounded):
            self._follow(state, unbounded)
        self.update(state)

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """The cells. They are chosen once, so a resumed run needs the same ones."""
        if not self._settled:
            return {}
        return {
            "bounds": self._bounds.copy(),
            "box": self._box.copy(),
            "period": self._period.copy(),
            "cell": np.array(self._size),
            "reach": np.array(self._reach),
        }

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        if not stored:
            self._agents, self._settled, self._sorted = None, False, False
            return
        if set(stored) != {"bounds", "box", "period", "cell", "reach"}:
            raise CheckpointError(
                f"a cell grid stores bounds, box, period, cell and reach, but the checkpoint has "
                f"{', '.join(sorted(stored))}; resume with the simulation that wrote the checkpoint"
            )
        dim = self._bounds.shape[1] or None
        bounds = taken(stored, "bounds", dtype="float64", shape=(2, dim))
        dim = bounds.shape[1]
        box = taken(stored, "box", dtype="float64", shape=(2, dim), low=-_FARTHEST, high=_FARTHEST)
        period = taken(stored, "period", dtype="float64", shape=(dim,), low=0.0)
        size = float(taken(stored, "cell", dtype="float64", shape=()))
        reach = float(taken(stored, "reach", dtype="float64", shape=(), low=0.0))
        known = self._bounds.shape[1] == dim
        if dim not in (2, 3) or (known and not (_same(bounds, self._bounds) and _same(period, self._period))):
            raise CheckpointError("its cell grid covers another world; resume with the scene that it was made with")
        if not (size > 0.0 and (box[1] >= box[0]).all() and _cell_counts(box, size).prod() <= 2 * _MOST_CELLS):
            raise CheckpointError(f"its cell grid has cells of {size:g} m, which are too small for its box")
        self._bounds, self._period = bounds, period
        self._settle(box, size)
        self._reach = reach
        self._settled, self._sorted = True, False


@kernel
def _count_outside(position, every, box):
    """How many positions, out of every `every`-th one, are outside of a box."""
    count = 0
    for i in range(0, position.shape[0], every):
        outside = False
        for axis in range(position.shape[1]):
            outside |= position[i, axis] < box[0, axis] or position[i, axis] > box[1, axis]
        count += outside
    return count


@kernel
def _first_outside(position, low, high, period):
    """The first row that is not in [low, high) along a periodic axis, or -1."""
    for i in range(position.shape[0]):
        for axis in range(position.shape[1]):
            if period[axis] > 0.0 and not (low[axis] <= position[i, axis] < high[axis]):
                return i
    return -1


def _same(ours: Floats, theirs: Floats) -> bool:
    """Whether two short arrays are equal; `np.array_equal` takes ten times as long, in each step."""
    return ours.tobytes() == theirs.tobytes()


def _cell_counts(bounds: Floats, size: float) -> NDArray[np.float64]:
    return np.maximum(np.ceil((bounds[1] - bounds[0]) / size), 1.0)


def _fitting_cell(bounds: Floats, wanted: float, most: int) -> float:
    """The wanted cell, or a larger one if the bounds would have more than `most` of them."""
    # A hair larger than requested: an agent that senses exactly as far as a cell is wide then never needs more than the
    # cells next to its own. And never so small that its inverse is infinite.
    size = max(wanted * (1.0 + 2.0**-16), 1e-100)
    while (cells := float(np.prod(_cell_counts(bounds, size)))) > most:
        size *= max((cells / most) ** (1.0 / bounds.shape[1]), 1.001)
    return size


def _unsortable(state: AgentState, row: int) -> str:
    who = f"agent {int(state.id[row])}"
    position = state.position[row]
    if not np.isfinite(position).all():
        where = ", ".join(f"{c:g}" for c in position)
        return f"{who} is at ({where}); positions must be finite: check what its steering model or an event wrote"
    return f"{who} has a sense radius of {state.sense_radius[row]:g} m; it must not be negative"
