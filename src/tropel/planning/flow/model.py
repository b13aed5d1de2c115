"""Flow fields: the shortest path to the goal from everywhere, from path plans.

Continuous agents follow the direction in which the path length falls fastest, which never leads into a wall or round in
a circle. If a door or a static obstacle changes, the plans are repaired, not solved again.
"""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.agents.state import CHOSEN_EXIT
from tropel.contracts import Declaration
from tropel.errors import ParameterError
from tropel.foundation.arguments import Length, checked_arguments, numbers_in
from tropel.foundation.quantities import Quantity
from tropel.planning.fields.field import GridField
from tropel.planning.fields.planner import Clearance, FieldPlanner
from tropel.planning.flow.path_plan import DEAREST_GROUND, Discount, PathPlan, checked_log, solve_path_plans
from tropel.world import World
from tropel.world.influence import with_path_costs
from tropel.world.raster import Raster, planned_hazards

#: A factor per cell of the raster, or a function from points (N, 2) [m] to factors (N,).
TerrainFactor = ArrayLike | Callable[[NDArray[np.float64]], ArrayLike]

HAZARD_COST = Quantity(
    name="hazard_cost",
    low=0.0,
    high=1000.0,
    about="how much longer paths near hazards count; 0 to ignore the outer radius",
)


class FlowField(FieldPlanner):
    """Follow the shortest path to the goal; 2D.

    `gamma` is the discount per cell in the values of the plan (it does not change the path). `equal_moves` counts
    diagonal moves like straight ones (MDP instead of semi-MDP), `corner_cutting` allows them past a blocked cell.
    `terrain` makes paths longer: a factor of at least 1 per cell, or a function of points; agents then do not leave the
    field for a goal in sight. Paths near hazards that planners avoid (`replan`) count as longer too: where the value of
    the ground is x, from 0 at the inner radius to 1 at the outer, 1 + `hazard_cost` (1/x - 1) times their length. With
    `streams`, people that others slow down walk around corners side by side instead of all aiming at the corner. With
    `choose_exits`, people to the nearest exit take another one when that is sooner, for the queue before the nearest;
    where the fields to all exits would need more than 1 GB, they take the nearest. Solving is faster than reading from
    disk, so the cache is off by default.
    """

    @checked_arguments
    def __init__(
        self,
        *,
        cell: Length = 0.2,
        clearance: Clearance = 0.2,
        line_of_sight: bool = True,
        cache: bool = False,
        gamma: Discount = 0.6,
        equal_moves: bool = False,
        corner_cutting: bool = False,
        terrain: TerrainFactor | None = None,
        hazard_cost: Annotated[float, HAZARD_COST] = 4.0,
        streams: bool = True,
        choose_exits: bool = True,
    ) -> None:
        super().__init__(cell=cell, clearance=clearance, line_of_sight=line_of_sight, cache=cache)
        self.gamma = float(gamma)
        self._log_gamma = checked_log(gamma)
        self.equal_moves = bool(equal_moves)
        self.corner_cutting = bool(corner_cutting)
        is_function = callable(terrain) and not isinstance(terrain, type)
        if terrain is not None and not is_function and numbers_in(terrain) is None:
            raise ParameterError(
                f"{type(self).__name__}: terrain must be a factor per cell or a function of points, "
                f"not {reprlib.repr(terrain)}"
            )
        self.terrain = terrain
        self.hazard_cost = float(hazard_cost)
        self.streams = bool(streams)
        self.choose_exits = bool(choose_exits)
        if choose_exits:
            self.declares = Declaration(memory=(CHOSEN_EXIT,))
        if cache and callable(terrain):
            raise ParameterError("FlowField: a function of terrain cannot be recognised on disk; use cache = false")

    @property
    def parameters(self) -> str:
        ground = self.terrain
        if ground is not None and not callable(ground):
            ground = hashlib.sha256(np.asarray(ground, dtype=np.float64).tobytes()).hexdigest()
        return (
            f"{super().parameters}, gamma={self.gamma!r}, equal_moves={self.equal_moves!r}, "
            f"corner_cutting={self.corner_cutting!r}, terrain={'function' if callable(ground) else ground}, "
            f"hazard_cost={self.hazard_cost!r}, streams={self.streams!r}, choose_exits={self.choose_exits!r}"
        )

    def bytes_per_cell(self, dim: int) -> float:
        # The field, the memory for straightening it, the plan that it is repaired from, and the streams.
        return super().bytes_per_cell(dim) + 12.0 + 26.0 + (1.0 if self.streams else 0.0)

    def goes_straight(self, field: GridField) -> bool:
        return self.line_of_sight and self.terrain is None

    def draw(self, world: World) -> Raster:
        raster = super().draw(world)
        return with_path_costs(raster, self.without_hazards(world), world, self.hazard_cost)

    def what_is_drawn(self, world: World) -> tuple[bytes, ...]:
        if self.publishes_ground():
            return super().what_is_drawn(world)  # what hazards cost is in the filters of the ground
        planned = planned_hazards(world, step=self.cell)
        return *super().what_is_drawn(world), planned.outer.tobytes(), planned.intensity.tobytes()

    def solve(self, raster: Raster, goal: NDArray[np.bool_]) -> GridField:
        return self.solve_many(raster, [goal])[0]

    def solve_many(self, raster: Raster, goals: Sequence[NDArray[np.bool_]]) -> list[GridField]:
        if raster.dim != 2:
            raise ParameterError("FlowField plans in 2D; in a 3D box use Direct, or harmonic fields")
        plans = solve_path_plans(
            raster.free,
            goals,
            equal_moves=self.equal_moves,
            corner_cutting=self.corner_cutting,
            terrain=self._factors(raster),
        )
        return [self._field(raster, plan) for plan in plans]

    def repair(self, field: GridField, raster: Raster, goal: NDArray[np.bool_]) -> GridField:
        plan = field.solver
        if not isinstance(plan, PathPlan):
            return self.solve(raster, goal)
        costs_changed = field.raster.cost is not None or raster.cost is not None
        terrain = self._factors(raster) if costs_changed else None
        if costs_changed and terrain is None:
            terrain = np.ones(raster.shape)
        plan.change(free=raster.free, goal=goal, terrain=terrain)
        return self._field(raster, plan)

    def _field(self, raster: Raster, plan: PathPlan) -> GridField:
        # Copies: a repair changes the plan in place, and callers that have a field keep it unchanged.
        return GridField(
            raster=raster,
            goal=plan.goal.copy(),
            value=plan.log_value(self.gamma),
            vectors=plan.vectors.copy(),
            metres_per_value=raster.cell / self._log_gamma,
            straighten=self.terrain is None,
            solver=plan,
        )

    def _factors(self, raster: Raster) -> ArrayLike | None:
        """What paths cost in each cell: terrain times hazards; None if all ground is plain."""
        terrain = self._terrain_on(raster)
        if raster.cost is None or terrain is None:
            return raster.cost if terrain is None else terrain
        return np.minimum(np.asarray(terrain, dtype=np.float64) * raster.cost, DEAREST_GROUND)

    def _terrain_on(self, raster: Raster) -> ArrayLike | None:
        if not callable(self.terrain):
            return self.terrain
        index = np.argwhere(np.ones(raster.shape, dtype=np.bool_))
        factors = np.asarray(self.terrain(raster.centre(index)), dtype=np.float64)
        if factors.shape != (len(index),):
            raise ParameterError(
                f"FlowField: terrain got {len(index)} points and must return as many factors, not {factors.shape}"
            )
        return factors.reshape(raster.shape)
