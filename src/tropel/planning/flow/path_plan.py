"""Path plans: the value of every cell for one goal, solved exactly in one pass and repaired after changes.

Banerjee, Abukmail & Kraemer, "Layered intelligence for agent-based crowd simulation", Simulation 85, 2009, sec. 3
(there "path-plan layer"): value iteration for a Markov decision process with moves to the eight neighbours,

    V(s) = max over a of  gamma^t(a) V(T(s, a)),     V = 1 on the goal,

with t = 1 for every move (MDP) or √2 for diagonal ones (semi-MDP). Moves always succeed, so the fixed point is
V = gamma^distance, and one best-first pass from the goal finds it (Dijkstra). V underflows on large maps; log V does
not. The policy is argmax over a of V(T(s, a)), with ties broken by a fixed order.
"""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel._kernels.compile import threads_restored, use_threads
from tropel._kernels.grid_moves import (
    DIAGONAL,
    FAR,
    MOVE_X,
    MOVE_Y,
    PLAIN,
    STRAIGHT,
    MoveCosts,
    all_best_moves,
    all_downhill,
    all_moves,
    downhill_around,
    moves_around,
)
from tropel.errors import ParameterError
from tropel.foundation.arguments import numbers_in
from tropel.foundation.long_work import report
from tropel.foundation.quantities import Quantity
from tropel.planning.flow import solver as grid_flow

#: In measurements, repair costs as much as a fresh solve once it has touched about a third of the cells, or an eighth
#: if the changed cells are scattered. Given up at half of that, it never costs more than one and a half fresh solves.
_MOST_TOUCHED, _MOST_SCATTERED = 1 / 6, 1 / 16
#: If more than this share of cells has changed, no repair is tried. It gains a third at best. If the change cuts off
#: large parts, so that a fresh solve has little to do, an abandoned repair costs more than that.
_MOST_CHANGED = 0.05
#: Cells with more cells around them than this are scattered: a single one has 8, a square almost none.
_SCATTERED = 2.0
#: The most expensive ground, as a multiple of plain ground.
DEAREST_GROUND = 1000.0
#: Steps (x, y) of the moves that a policy names by number.
MOVES = np.stack([MOVE_X, MOVE_Y], axis=1)


@dataclass(frozen=True, kw_only=True)
class Change:
    """The result of a change to a plan."""

    cells: int  #: number of changed cells
    touched: int  #: number of cells whose path was examined again; all of them after a fresh solve
    fresh: bool  #: whether a fresh solve was cheaper


class PathPlan:
    """The shortest paths from all free cells to one goal."""

    units: NDArray[np.int64]  #: lengths in units of 1 / STRAIGHT cells, FAR if none

    def __init__(
        self,
        free: NDArray[np.bool_],
        goal: NDArray[np.bool_],
        *,
        equal_moves: bool = False,
        corner_cutting: bool = False,
        terrain: ArrayLike | None = None,
    ) -> None:
        """`equal_moves` makes diagonal moves as long as straight ones (MDP) instead of √2 (semi-MDP).

        A diagonal move needs both cells next to it free, unless `corner_cutting`. `terrain` is a factor per cell, at
        least 1, that makes paths over it longer; it is rounded to 1/1024.
        """
        self._begin(free, goal, equal_moves, corner_cutting, terrain)
        self.units = np.empty(self.free.shape, dtype=np.int64)
        self._solve()

    def _begin(
        self,
        free: NDArray[np.bool_],
        goal: NDArray[np.bool_],
        equal_moves: bool,
        corner_cutting: bool,
        terrain: ArrayLike | None,
    ) -> None:
        self.free = np.array(free, dtype=np.bool_, order="C")
        if self.free.ndim != 2 or self.free.size == 0:
            raise ParameterError(f"path plans need cells (ny, nx), not an array of shape {self.free.shape}")
        if self.free.size >= 2**31:
            raise ParameterError(f"path plans can have at most 2^31 cells, not {self.free.size}; use larger cells")
        self.corner_cutting = bool(corner_cutting)
        self.equal_moves = bool(equal_moves)
        self._moves = np.empty(self.free.size, dtype=np.uint8)
        all_moves(self.free, self.corner_cutting, self._moves)
        self._terrain = _stored_terrain(terrain, self.free.shape)
        self._seen = np.zeros(self.free.size, dtype=np.uint8)
        self._set_goal(goal)
        self.vectors = np.empty((*self.free.shape, 2), dtype=np.float32)  #: unit vectors (x, y) for continuous motion

    def _set_goal(self, goal: NDArray[np.bool_]) -> None:
        if goal.shape != self.free.shape:
            raise ParameterError(f"the goal must be cells {self.free.shape} like the raster, not {goal.shape}")
        self._wanted_goal = np.array(goal, dtype=np.bool_, order="C")
        self.goal = self._wanted_goal & self.free
        self._is_goal = self.goal.reshape(-1).view(np.uint8)

    @property
    def _ground(self) -> MoveCosts:
        diagonal = STRAIGHT if self.equal_moves else DIAGONAL
        most = int(self._terrain.max()) if self._terrain.size else PLAIN
        return MoveCosts(self._moves, self._terrain, self.free.shape[1], diagonal, diagonal * most // PLAIN + 1)

    def _solve(self) -> None:
        grid_flow.solve(self._ground, np.flatnonzero(self._is_goal), self.units.reshape(-1))
        self._point_downhill()

    def _point_downhill(self) -> None:
        all_downhill(self._ground, self.units.reshape(-1), self.vectors.reshape(-1, 2))

    # Results ----------------------------------------------------------------------------------------------------

    @property
    def moves(self) -> NDArray[np.uint8]:
        """The moves each cell allows: bit m for row m of `MOVES`."""
        return self._moves.reshape(self.free.shape)

    @property
    def longest_move(self) -> int:
        """Length of the most expensive move, in the units of `units`."""
        return self._ground.dearest

    @property
    def distance(self) -> NDArray[np.float64]:
        """Length of the shortest path in cells (times terrain), inf where there is none."""
        return np.where(self.units < FAR, self.units / STRAIGHT, np.inf)

    def log_value(self, gamma: float) -> NDArray[np.float64]:
        """Logarithm of the normalised value gamma^distance: 0 on the goal, -inf where there is no path."""
        return self.distance * checked_log(gamma)

    def policy(self) -> NDArray[np.uint8]:
        """Number of the best move (a row of `MOVES`) per cell, 8 to stay on the goal, 255 where there is no path."""
        moves = np.empty(self.free.shape, dtype=np.uint8)
        all_best_moves(self._ground, self.units.reshape(-1), moves.reshape(-1))
        return moves

    # Changes ----------------------------------------------------------------------------------------------------

    def change(
        self,
        *,
        free: NDArray[np.bool_] | None = None,
        goal: NDArray[np.bool_] | None = None,
        terrain: ArrayLike | None = None,
        most_touched: float | None = None,
    ) -> Change:
        """Switch to other cells, another goal or terrain, in place: by repair, or by a fresh solve if that is cheaper.

        Either way the result has the bits of a fresh solve. Repair is given up when it touches more than the share
        `most_touched` of all cells (by default when a fresh solve is cheaper); with 1 it never is.
        """
        for what, given in (("cells", free), ("goal", goal)):
            if given is not None and given.shape != self.free.shape:
                raise ParameterError(f"the {what} must stay {self.free.shape}, not {given.shape}")
        before, dearest = self._terrain, self._ground.dearest
        parts = []
        if free is not None:
            parts.append(_differing(self.free, free))
        if goal is not None:
            parts.append(_differing(self._wanted_goal, goal))
        if terrain is not None:
            self._terrain = _stored_terrain(terrain, self.free.shape)
            if not before.size:
                before = np.full(self.free.size, PLAIN, dtype=np.int32)
            parts.append(np.flatnonzero(self._terrain != before))
        cells = parts[0] if len(parts) == 1 else np.unique(np.concatenate([np.empty(0, dtype=np.int64), *parts]))
        if not cells.size:
            return Change(cells=0, touched=0, fresh=False)
        lost_goals = self._write(cells, free, goal)
        # If a goal cell was lost, nearly every cell would be examined twice.
        if most_touched is not None or not lost_goals:
            touched = self._repair(cells, before, dearest, most_touched)
            if touched is not None:
                return Change(cells=cells.size, touched=touched, fresh=False)
        all_moves(self.free, self.corner_cutting, self._moves)
        self._solve()
        return Change(cells=cells.size, touched=self.free.size, fresh=True)

    def _write(self, cells: NDArray[np.int64], free: NDArray[np.bool_] | None, goal: NDArray[np.bool_] | None) -> bool:
        """Apply the changes in these cells; returns whether one of them is no longer a goal."""
        for own, given in ((self.free, free), (self._wanted_goal, goal)):
            if given is not None:
                own.reshape(-1)[cells] = given.reshape(-1)[cells]
        was = self.goal.reshape(-1)[cells]
        now = self._wanted_goal.reshape(-1)[cells] & self.free.reshape(-1)[cells]
        self.goal.reshape(-1)[cells] = now
        return bool((was > now).any())

    def _repair(
        self, cells: NDArray[np.int64], before: NDArray[np.int32], dearest: int, most_touched: float | None
    ) -> int | None:
        """Repair around these cells; None if a fresh solve is cheaper, which then must follow."""
        if most_touched is None and cells.size > _MOST_CHANGED * self.free.size:
            return None
        near = np.empty(9 * cells.size, dtype=np.int64)
        near = near[: moves_around(cells, self.free, self.corner_cutting, self._moves, self._seen, near)]
        if most_touched is None:
            most_touched = _MOST_SCATTERED if near.size > (1.0 + _SCATTERED) * cells.size else _MOST_TOUCHED
        # Cells are noted every time they are touched, so a limit of all cells must mean no limit.
        limit = int(most_touched * self.free.size) if most_touched < 1.0 else 2**62
        if near.size > limit:
            return None
        ground = self._ground._replace(dearest=max(dearest, self._ground.dearest))
        units = self.units.reshape(-1)
        changed, count = grid_flow.repair(ground, before, near, self._is_goal, units, limit)
        if count < 0:
            return None
        around = np.concatenate([near, changed[:count]])
        downhill_around(around, ground, units, self.vectors.reshape(-1, 2), self._seen)
        return int(around.size)


def solve_path_plans(
    free: NDArray[np.bool_],
    goals: Sequence[NDArray[np.bool_]],
    *,
    equal_moves: bool = False,
    corner_cutting: bool = False,
    terrain: ArrayLike | None = None,
) -> list[PathPlan]:
    """One plan per goal, solved in parallel."""
    plans = []
    for goal in goals:
        plan = PathPlan.__new__(PathPlan)
        plan._begin(free, goal, equal_moves, corner_cutting, terrain)
        plans.append(plan)
    if not plans:
        return []
    cells = [np.flatnonzero(plan._is_goal) for plan in plans]
    start = np.concatenate([[0], np.cumsum([len(each) for each in cells])]).astype(np.int64)
    units = np.empty((len(plans), plans[0].free.size), dtype=np.int64)
    with threads_restored():
        use_threads(os.cpu_count() or 1, agents=plans[0].free.size)
        numbers, ground = np.concatenate(cells).astype(np.int64), plans[0]._ground
        # A few at a time, because a kernel cannot report its progress.
        together = 4 * (os.cpu_count() or 1)
        for first in range(0, len(plans), together):
            report("shortest paths to goals", first, len(plans))
            some = slice(first, first + together)
            grid_flow.solve_all(ground, numbers, start[first : first + together + 1], units[some])
        for plan, row in zip(plans, units, strict=True):
            plan.units = row.reshape(plan.free.shape)
            plan._point_downhill()
    return plans


def _differing(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Numbers of the cells that differ, compared eight at a time because most are equal."""
    a, b = one.reshape(-1), np.ascontiguousarray(other, dtype=np.bool_).reshape(-1)
    whole = a.size // 8 * 8
    words = np.flatnonzero(a[:whole].view(np.uint64) != b[:whole].view(np.uint64))
    cells = np.concatenate([(words[:, None] * 8 + np.arange(8)).reshape(-1), np.arange(whole, a.size)])
    return cells[a[cells] != b[cells]].astype(np.int64)


#: The discount per cell of path length.
DISCOUNT = Quantity(name="gamma", above=0.0, below=1.0)
Discount = Annotated[float, DISCOUNT]


def checked_log(gamma: float) -> float:
    """The logarithm of a discount between 0 and 1."""
    DISCOUNT.check(gamma, "a field")
    return math.log(gamma)


def _stored_terrain(terrain: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Terrain in 1024ths, row by row; empty if there is none."""
    if terrain is None:
        return np.empty(0, dtype=np.int32)
    factor = numbers_in(terrain)
    if factor is None:
        raise ParameterError(f"terrain must be a factor per cell {shape}, not {reprlib.repr(terrain)}")
    if factor.shape != shape:
        raise ParameterError(f"terrain must be a factor per cell {shape}, not {factor.shape}")
    fits = (factor >= 1.0) & (factor <= DEAREST_GROUND)
    if not fits.all():
        iy, ix = (int(i) for i in np.argwhere(~fits)[0])
        raise ParameterError(
            f"terrain factors must be between 1 (plain ground) and {DEAREST_GROUND:g}, but cell [{iy}, {ix}] has "
            f"{factor[iy, ix]:g}; block cells that cannot be walked on"
        )
    return np.round(factor * PLAIN).astype(np.int32).reshape(-1)
