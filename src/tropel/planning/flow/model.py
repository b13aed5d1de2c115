"""Flow fields: the shortest path to the goal from everywhere, from path plans.

Continuous agents follow the direction in which the path length falls fastest, which never leads into a wall or round in
a circle. If a door or a static obstacle changes, the plans are repaired, not solved again.
"""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.errors import ParameterError
from tropel.foundation.arguments import Length, checked_arguments, numbers_in
from tropel.planning.fields.field import GridField
from tropel.planning.fields.planner import Clearance, FieldPlanner
from tropel.planning.flow.path_plan import Discount, PathPlan, checked_log, solve_path_plans
from tropel.world.raster import Raster

#: A factor per cell of the raster, or a function from points (N, 2) [m] to factors (N,).
TerrainFactor = ArrayLike | Callable[[NDArray[np.float64]], ArrayLike]


class FlowField(FieldPlanner):
    """Follow the shortest path to the goal; 2D.

    `gamma` is the discount per cell in the values of the plan (it does not change the path). `equal_moves` counts
    diagonal moves like straight ones (MDP instead of semi-MDP), `corner_cutting` allows them past a blocked cell.
    `terrain` makes paths longer: a factor of at least 1 per cell, or a function of points; agents then do not leave the
    field for a goal in sight. Solving is faster than reading from disk, so the cache is off by default.
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
        if cache and callable(terrain):
            raise ParameterError("FlowField: a function of terrain cannot be recognised on disk; use cache = false")

    @property
    def parameters(self) -> str:
        ground = self.terrain
        if ground is not None and not callable(ground):
            ground = hashlib.sha256(np.asarray(ground, dtype=np.float64).tobytes()).hexdigest()
        return (
            f"{super().parameters}, gamma={self.gamma!r}, equal_moves={self.equal_moves!r}, "
            f"corner_cutting={self.corner_cutting!r}, terrain={'function' if callable(ground) else ground}"
        )

    def bytes_per_cell(self, dim: int) -> float:
        # The field, the memory for straightening it, and the plan that it is repaired from.
        return super().bytes_per_cell(dim) + 12.0 + 26.0

    def goes_straight(self, field: GridField) -> bool:
        return self.line_of_sight and self.terrain is None

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
        plan.change(free=raster.free, goal=goal)
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
        if not callable(self.terrain):
            return self.terrain
        index = np.argwhere(np.ones(raster.shape, dtype=np.bool_))
        factors = np.asarray(self.terrain(raster.centre(index)), dtype=np.float64)
        if factors.shape != (len(index),):
            raise ParameterError(
                f"FlowField: terrain got {len(index)} points and must return as many factors, not {factors.shape}"
            )
        return factors.reshape(raster.shape)
