"""The uniform grid: exact neighbours within per-agent radii, in 2D and 3D."""

from __future__ import annotations

import numpy as np

from tropel._kernels.arrays import Csr
from tropel._kernels.neighbours import Neighbours
from tropel.agents.state import Floats
from tropel.contracts import Environment, EnvironmentDeclaration, Moment, Near
from tropel.contracts.near import runs_of_cells
from tropel.environment.neighbour_lists import NeighbourLists
from tropel.foundation.arguments import Length, checked_arguments


class Grid(Environment):
    """All agents within the sense radius are near, walls or not; found in the cells that the engine sorts agents into.

    `cell` is the edge of these cells [m], the median sense radius when left out.
    """

    @checked_arguments
    def __init__(self, *, cell: Length | None = None) -> None:
        self.declares = EnvironmentDeclaration(periodic_space=True, cell=cell)
        self.parameters = {"cell": cell}
        self._neighbours = NeighbourLists()

    def sense(self, moment: Moment) -> Near:
        """The agents, walls and obstacles near each agent now."""
        return GridNear(moment, self._neighbours)


class GridNear(Near):
    """Kernels walk the cells around an agent; neighbour lists are only built on request."""

    def __init__(self, moment: Moment, neighbours: NeighbourLists) -> None:
        super().__init__(moment)
        self._lists = neighbours
        self._runs: Neighbours | None = None

    def neighbours(self, radius: Floats | None = None) -> Neighbours:
        self.check_phase()
        if self._runs is None:
            self._runs = runs_of_cells(self.cells.cell_list)
        return self._runs

    def lists(self, radius: Floats) -> Csr:
        cells = self.cells.sorting.sorted
        if radius is not self.state.sense_radius:
            cells = cells._replace(sense_radius=np.ascontiguousarray(radius[cells.order]))
        return self._lists.build(cells)

    def csr(self) -> Csr:
        # The lists are built in the canonical order.
        self.check_phase()
        if self._csr is None:
            self._csr = self.lists(self.state.sense_radius)
        return self._csr
