"""Path-plan layers for a lattice crowd: one per goal, laid on the ground for the local layer to read.

Banerjee, Abukmail & Kraemer, SIMULATION 85 (2009), sections 3 to 6. The cells are those people stand on
(`world/lattice_cells.py`), the layers those of `flow_layer.py`. Doors, static obstacles and permanent hazards change
the layers by repair; everything that passes is a filter on top (`world/terrain.py`).

Agents with other models may follow the same plan; for them it is a flow field on coarse cells.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.grid_moves import FAR
from tropel.agents.state import NO_GOAL, AgentState
from tropel.planning.flow_field import FlowField
from tropel.planning.flow_field import Terrain as TerrainFactor
from tropel.planning.laid_layers import LaidLayers
from tropel.world import World
from tropel.world.lattice_cells import lattice_cells
from tropel.world.raster import Raster
from tropel.world.terrain import Terrain
from tropel.world.user_layers import Layer


class PathPlans(FlowField):
    """Lay the shortest ways to all goals on the ground; 2D.

    `cell` [m] must be that of the lattice. `gamma` is the discount per cell of way: how much nearer a cell must be to
    make up for a neighbour more. Above 0.78 a neighbour outweighs any progress. `equal_moves` counts diagonal moves
    like straight ones (the paper's MDP instead of its semi-MDP), `corner_cutting` allows them past a blocked cell.
    `terrain` makes ways longer, as for `FlowField`. `layers` are layers of the user's own, by name; others can be added
    and removed later.
    """

    def __init__(
        self,
        *,
        cell: float = 0.4,
        gamma: float = 0.6,
        equal_moves: bool = False,
        corner_cutting: bool = False,
        terrain: TerrainFactor | None = None,
        layers: Mapping[str, Layer | Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(
            cell=cell,
            clearance=0.5 * cell,
            gamma=gamma,
            equal_moves=equal_moves,
            corner_cutting=corner_cutting,
            terrain=terrain,
        )
        self.layers = LaidLayers(layers or {})

    @property
    def parameters(self) -> str:
        return f"{super().parameters}, layers=({self.layers.parameters})"

    def draw(self, world: World) -> Raster:
        return lattice_cells(world, self.cell)

    def prepare(self, state: AgentState, world: World, seed: int) -> None:
        super().prepare(state, world, seed)
        self.layers.begin()
        self._lay()
        self._lay_layers(state)
        self._warn_of_the_lost(state)

    def lay(self, state: AgentState, members: NDArray[np.int64], out: NDArray[np.float64]) -> None:
        """Bring the layers up to date for these agents; the local layer reads them from the ground."""
        known = [id(plan) for plan in self._plans.values()]
        self._keep_up()
        goals = np.flatnonzero(np.bincount(state.goal[members] - NO_GOAL)) + NO_GOAL if len(members) else np.empty(0)
        self._add_plans([int(goal) for goal in goals.tolist() if goal not in self._plans])
        if known != [id(plan) for plan in self._plans.values()]:
            self._lay()
        self._lay_layers(state)

    def state(self) -> dict[str, NDArray[Any]]:
        return self.layers.state()

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        self.layers.restore(stored)

    def _lay_layers(self, state: AgentState) -> None:
        world = self._known()[0]
        assert world.terrain is not None
        self.layers.lay(world.terrain, state.group_names, world.time)

    def _lay(self) -> None:
        """Publish the layers: all in one array, of which each `FlowLayer` has its own part to repair."""
        world, raster = self._known()
        layers = {goal: plan.field.solver for goal, plan in self._plans.items()}
        ground = world.terrain
        if ground is None or any(layer.units.base is not ground.units for layer in layers.values()):
            units = np.empty((len(layers), *raster.shape), dtype=np.int64)
            for row, layer in enumerate(layers.values()):
                units[row] = layer.units
                layer.units = units[row]
            filters = {} if ground is None else ground.filters
            crowd = None if ground is None else ground.crowd
            ground = Terrain(log_gamma=self._log_gamma, units=units, filters=filters, crowd=crowd)
        ground.raster = raster
        ground.moves = next(iter(layers.values())).moves if layers else np.zeros(raster.shape, dtype=np.uint8)
        ground.plan_of_goal = {goal: row for row, goal in enumerate(layers)}
        world.terrain = ground

    def _warn_of_the_lost(self, state: AgentState) -> None:
        """Say how many agents have no way to their goal as the world is now, and where they are."""
        raster = self._known()[1]
        for goal, plan in self._plans.items():
            rows = np.flatnonzero(state.goal == goal)
            index = raster.index_of(state.position[rows])
            lost = rows[plan.field.solver.units[index[:, 0], index[:, 1]] >= FAR]
            if lost.size:
                low, high = state.position[lost].min(axis=0), state.position[lost].max(axis=0)
                warnings.warn(
                    f"{lost.size} of {rows.size} agents have no way to '{self._name(goal)}' as the world is now; they "
                    f"stand between ({low[0]:.4g}, {low[1]:.4g}) and ({high[0]:.4g}, {high[1]:.4g}) and wait there",
                    stacklevel=2,
                )
