"""The uniform grid: exact neighbours within per-agent radii, in 2D and 3D."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState, Floats
from tropel.environment.cell_sort import CellSort
from tropel.environment.near import Near, SensedWorld
from tropel.environment.neighbour_lists import NeighbourLists
from tropel.environment.surroundings import Surroundings
from tropel.errors import CheckpointError, ModelError, ParameterError

#: Going through an empty cell costs a fraction of a nanosecond, so many of them are better than a few crowded ones;
#: the first number is for worlds with few agents, the last bounds the memory (64 MiB).
_ALWAYS_CELLS = 1 << 16
_CELLS_PER_AGENT = 64
_MOST_CELLS = 1 << 24


class Grid:
    """Finds neighbours by sorting agents into equal cells over the bounds of the world.

    `cell` is the edge of a cell [m]. Left out, it becomes the median sense radius of the agents present when the grid
    is allocated: most agents then look into three cells along each axis, and a few far-sighted ones into more. It is
    made larger where the world would have too many cells. Once allocated, the grid stays the same, whoever comes or
    leaves; its cells decide the order in which neighbours are visited, so they are part of a checkpoint.
    """

    def __init__(self, *, cell: float | None = None) -> None:
        if cell is not None and not (math.isfinite(cell) and cell > 0.0):
            raise ParameterError(f"the cell of a grid must be a positive length in metres, not {cell!r}")
        self.cell = cell
        self.parameters = {"cell": cell}
        self._agents: CellSort | None = None
        self._bounds: Floats = np.empty((2, 0))
        self._period: Floats = np.empty(0)
        self._size = 0.0
        self._reach = 0.0
        self._settled = False
        self._neighbours = NeighbourLists()
        self._surroundings = Surroundings()

    def prepare(self, state: AgentState, world: SensedWorld, seed: int) -> None:
        """A new simulation chooses its own cells, whatever this object was used for before."""
        self.allocate(state, world)

    def allocate(self, state: AgentState, world: SensedWorld) -> None:
        """Choose the cells for this world and the agents in it, and forget what was chosen before."""
        bounds = np.array(world.bounds, dtype=np.float64)
        if state.dim != world.dim or bounds.shape != (2, world.dim):
            raise ModelError(
                f"agents of {state.dim} dimensions cannot be sensed in a world of {world.dim} "
                f"with bounds of shape {bounds.shape}; make both with the same dimension"
            )
        if not (np.isfinite(bounds).all() and (bounds[1] >= bounds[0]).all()):
            raise ModelError(f"a grid needs finite bounds with low ≤ high, and the world has {bounds.tolist()}")
        self._period = np.array(world.period, dtype=np.float64)
        radii = state.sense_radius
        radii = radii[np.isfinite(radii) & (radii > 0.0)]
        most = _MOST_CELLS if self.cell is not None else max(_ALWAYS_CELLS, _CELLS_PER_AGENT * len(state))
        # Without a radius to go by every cell size is right; the limit on the number of cells then chooses.
        wanted = self.cell or (float(np.median(radii)) if len(radii) else float((bounds[1] - bounds[0]).max()) / 256.0)
        self._settle(bounds, _fitting_cell(bounds, wanted or 1.0, min(most, _MOST_CELLS)))
        self._reach = 0.0
        # The first agents to arrive decide where there are none yet.
        self._settled = self.cell is not None or len(state) > 0

    def _settle(self, bounds: Floats, size: float) -> None:
        dim = bounds.shape[1]
        origin = np.zeros(3)
        origin[:dim] = bounds[0]
        shape = np.ones(3, dtype=np.int64)
        shape[:dim] = _cell_counts(bounds, size)
        self._bounds, self._size = bounds, size
        self._diagonal = float(np.linalg.norm(bounds[1] - bounds[0]))
        period = np.zeros(3)
        period[:dim] = self._period
        self._agents = CellSort(origin=origin, cell=size, shape=shape, period=period, dim=dim)

    def update(self, state: AgentState) -> None:
        """Sort the agents into the allocated cells."""
        if self._agents is None:
            raise ModelError("the grid has no cells yet; call allocate(state, world) before update(state)")
        fault = self._agents.sort(state)
        if fault is not None:
            raise ModelError(_unsortable(state, fault))
        # No distance between two points moved into the bounds exceeds the diagonal, and walls and obstacles are
        # looked up from there.
        self._reach = max(self._reach, min(self._agents.widest, self._diagonal))

    def sense(self, state: AgentState, world: SensedWorld) -> Near:
        """Who and what is near each agent now."""
        if not self._settled or not np.array_equal(self._bounds, world.bounds):
            self.allocate(state, world)
        self.update(state)
        assert self._agents is not None
        return Near(
            state=state,
            world=world,
            reach=self._reach,
            agents=self._agents,
            neighbours=self._neighbours,
            surroundings=self._surroundings,
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """The cells, which are chosen once: a resumed run needs the same."""
        if not self._settled:
            return {}
        return {"bounds": self._bounds.copy(), "cell": np.array(self._size), "reach": np.array(self._reach)}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        """Put back what `state` gave."""
        if not stored:
            self._agents, self._settled = None, False
            return
        if set(stored) != {"bounds", "cell", "reach"}:
            raise CheckpointError(
                f"a grid stores bounds, cell and reach, and the checkpoint has {', '.join(sorted(stored))}; "
                "resume with the environment that the checkpoint was written with"
            )
        self._settle(np.array(stored["bounds"], dtype=np.float64), float(stored["cell"]))
        self._reach = float(stored["reach"])
        self._settled = True


def _cell_counts(bounds: Floats, size: float) -> NDArray[np.float64]:
    return np.maximum(np.ceil((bounds[1] - bounds[0]) / size), 1.0)


def _fitting_cell(bounds: Floats, wanted: float, most: int) -> float:
    """The wanted cell, or a larger one if the bounds would have more than `most` of them."""
    # A hair larger than asked for: who senses exactly as far as a cell is wide then surely needs no more than the cells
    # next to its own. And never so small that its inverse is infinite.
    size = max(wanted * (1.0 + 2.0**-16), 1e-100)
    while (cells := float(np.prod(_cell_counts(bounds, size)))) > most:
        size *= max((cells / most) ** (1.0 / bounds.shape[1]), 1.001)
    return size


def _unsortable(state: AgentState, row: int) -> str:
    who = f"agent {int(state.id[row])}"
    position = state.position[row]
    if not np.isfinite(position).all():
        where = ", ".join(f"{c:g}" for c in position)
        return f"{who} is at ({where}); positions must be finite: look at what its steering model or an event wrote"
    return f"{who} has a sense radius of {state.sense_radius[row]:g} m; it must not be negative"
