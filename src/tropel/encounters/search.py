"""Find the pairs of agents that may come within a distance of each other during a step.

`passing.py` decides about them. The extent of an agent is half of the distance plus the length of its step
(`broad_phase/pair_search.py`).
"""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import CellList
from tropel.agents.state import AgentState, Floats
from tropel.broad_phase import CellGrid
from tropel.broad_phase.pair_search import KnownPairs, Moves, PairSearch, measure_moves
from tropel.errors import ModelError
from tropel.world import World

#: More cells than this per agent, and in all, cost more to clear than they save.
_CELLS_PER_AGENT = 64
_ALWAYS_CELLS = 1 << 16
#: Relative and absolute margin against rounding: candidates may be too many, never too few.
_MARGIN = 1e-12
_SEAM_MARGIN = 1e-15


class CandidateSearch:
    """Finds candidates with cells of its own, unless an environment knows them."""

    def __init__(self, distance: float) -> None:
        self._distance = distance
        self._grid: CellGrid | None = None
        self._search = PairSearch(
            what=f"agents that may come within {distance:g} m of each other",
            remedy="watch encounters at a shorter distance",
        )

    def find(
        self, state: AgentState, before: Floats, world: World, known: KnownPairs | None = None
    ) -> NDArray[np.uint32]:
        """(P, 2): rows of all pairs that may have come within the distance since they were at `before`, each once.

        `known` may know them; it is for space that does not repeat.
        """
        if known is not None:
            rows = known(before, self._half(world) + np.linalg.norm(state.position - before, axis=1))
            if rows is not None:
                return rows
        cells = self._cells(state, before, world)
        moves = measure_moves(cells, state.position, np.full(len(state), self._half(world)))
        if world.is_periodic:
            self._check_reach(state, cells, moves, world)
        return cells.order[self._search.find(cells, moves)]

    def _half(self, world: World) -> float:
        period = float(np.max(world.period, initial=0.0))
        return 0.5 * self._distance * (1.0 + _MARGIN) + _SEAM_MARGIN * period

    def _cells(self, state: AgentState, before: Floats, world: World) -> CellList:
        """Agents sorted by where they were at the start of the step."""
        if self._grid is None:
            extent = np.maximum(np.subtract(*world.bounds[::-1]), self._distance)
            cells = max(_ALWAYS_CELLS, _CELLS_PER_AGENT * len(state))
            smallest = float(np.prod(extent) / cells) ** (1.0 / world.dim)
            self._grid = CellGrid(cell=max(self._distance, smallest))
        earlier = copy.copy(state)
        earlier.columns = state.columns | {"position": before}
        self._grid.begin(earlier, world)
        self._grid.sort_now()
        return self._grid.cell_list

    def _check_reach(self, state: AgentState, cells: CellList, moves: Moves, world: World) -> None:
        if 4.0 * moves.largest < world.shortest_period:
            return
        farthest = cells.order[moves.extent == moves.largest]
        row = int(farthest[np.argmin(state.id[farthest])])
        raise ModelError(
            f"agent {int(state.id[row])} made a step of {moves.largest - 0.5 * self._distance:.3g} m while encounters "
            f"are watched within {self._distance:g} m; where space repeats every {world.shortest_period:g} m, the "
            f"distance and two such steps must be less than half of that: use a shorter distance, a shorter dt or a "
            f"larger world"
        )
