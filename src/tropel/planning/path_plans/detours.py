"""Detours: agents plan around the wait at congested bottlenecks.

The paper's congestion only repels agents from a full bottleneck (`congestion.py`). Their path plan still leads there,
so they come to rest on a ring around the crowd, where the pull of the plan and the repulsion are equal. They wait on
the ring until the door is nearly empty, the door runs dry, and few go to another one: evacuations take longer than
without any avoidance.

Here agents compare the times that both paths take. Someone who arrives at a queue of N waits

    N / (flow · width)      seconds,

and could walk that time multiplied by their speed instead. So the ground of the queue counts as that much longer: each
of its cells by the same factor, which makes the whole wait count at its end and none of it at the door. A second path
plan per goal with this ground replaces the first while a bottleneck is congested. Agents in the queue stay if most of
it is behind them. As more of them turn to other doors, queues there grow too, until all paths take equally long.

The queue of a bottleneck is made of the cells in its square from which the plan leads through it: those who have passed
it do not count. Waits are in whole seconds, so that plans are seldom repaired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tropel.planning.flow.path_plan import PathPlan
from tropel.planning.path_plans.bottlenecks import Bottleneck, onward_cells
from tropel.world.raster import Raster

#: Speed at which a wait becomes a length [m/s].
_SPEED = 1.34
#: The ground of a queue counts as longer by this factor at most; then path lengths still fit into 32 bits.
_MOST = 64.0
#: The longest ground that plans allow.
_LONGEST = 1000.0


class Detours:
    """A second path plan per goal, on which queues at congested bottlenecks make paths longer."""

    def __init__(self, *, area: float) -> None:
        self._area = area
        self.clear()

    def clear(self) -> None:
        """Forget everything: the plans have changed."""
        self._goals: dict[int, PathPlan] = {}
        self._plans: dict[int, PathPlan] = {}
        self._queues: dict[int, list[NDArray[np.int64]]] = {}
        self._waits: tuple[int, ...] = ()

    def begin(
        self,
        plans: Mapping[int, PathPlan],
        bottlenecks: Sequence[Bottleneck],
        raster: Raster,
        terrain: NDArray[np.float64] | None,
    ) -> None:
        """Find the queues of these bottlenecks, on the way to each goal; `terrain` are the factors of the plans."""
        self.clear()
        self._goals = dict(plans)
        self._terrain = np.ones(raster.shape) if terrain is None else terrain
        for goal, plan in plans.items():
            onward = onward_cells(plan.units, plan.moves)
            self._queues[goal] = [queue_cells(each, onward, raster, self._area) for each in bottlenecks]

    @property
    def plans(self) -> dict[int, PathPlan]:
        """The plans by goal, none while nobody has to wait."""
        return self._plans if any(self._waits) else {}

    def queues(self) -> list[NDArray[np.int64]]:
        """The numbers of the cells in the queue of each bottleneck, to whatever goal."""
        return [np.unique(np.concatenate(each)) for each in zip(*self._queues.values(), strict=True)]

    def update(self, waits: Sequence[int]) -> bool:
        """Plan with these waits [s] at the bottlenecks. Returns whether the plans are other ones now."""
        if tuple(waits) == self._waits or (not any(waits) and not any(self._waits)):
            return False
        self._waits = tuple(waits)
        if any(waits):
            for goal, plan in self._goals.items():
                self._plan(goal, plan)
        return True

    def _plan(self, goal: int, plan: PathPlan) -> None:
        factor = np.ones(plan.free.size)
        for cells, wait in zip(self._queues[goal], self._waits, strict=True):
            # Half of the square's side lies before the bottleneck.
            longer = min(1.0 + wait * _SPEED / (0.5 * self._area), _MOST)
            factor[cells] = np.maximum(factor[cells], longer)
        terrain = np.minimum(self._terrain * factor.reshape(self._terrain.shape), _LONGEST)
        if goal in self._plans:
            self._plans[goal].change(terrain=terrain)
        else:
            self._plans[goal] = PathPlan(
                plan.free, plan.goal, equal_moves=plan.equal_moves, corner_cutting=plan.corner_cutting, terrain=terrain
            )


def queue_cells(bottleneck: Bottleneck, onward: NDArray[np.int64], raster: Raster, area: float) -> NDArray[np.int64]:
    """Numbers of the cells in the square around a bottleneck from which the plan leads through it.

    `onward` (cells,) is the number of the cell that the plan moves to from each cell.
    """
    through = _gate(bottleneck, raster)
    square = _cells_in(raster, np.array(bottleneck.position) - 0.5 * area, np.array(bottleneck.position) + 0.5 * area)
    before = square[~through[square]]
    for _ in range(2 * int(area / raster.cell) + 2):
        through[before] |= through[onward[before]]
    return before[through[before]]


def _gate(bottleneck: Bottleneck, raster: Raster) -> NDArray[np.bool_]:
    """The cells (cells,) on the line across the passage; those around its cell if there are no walls on both sides."""
    ends = np.array(bottleneck.passage or (bottleneck.position, bottleneck.position))
    near = (0.71 if bottleneck.passage else 1.5) * raster.cell
    cells = _cells_in(raster, ends.min(axis=0) - near, ends.max(axis=0) + near)
    centre = raster.centre(np.stack(np.divmod(cells, raster.shape[1]), axis=1))
    along = ends[1] - ends[0]
    share = np.clip((centre - ends[0]) @ along / max(float(along @ along), 1e-12), 0.0, 1.0)
    away = np.linalg.norm(centre - ends[0] - share[:, None] * along, axis=1)
    gate = np.zeros(raster.free.size, dtype=np.bool_)
    gate[cells[away <= near]] = True
    return gate


def _cells_in(raster: Raster, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.int64]:
    """Numbers of the free cells with their centres in a box."""
    (first, left), (last, right) = raster.index_of(np.stack([low, high])).tolist()
    cells = np.argwhere(raster.free[first : last + 1, left : right + 1]) + np.array([first, left])
    centre = raster.centre(cells)
    inside = ((centre >= low) & (centre <= high)).all(axis=1)
    return np.asarray(cells[inside, 0] * raster.shape[1] + cells[inside, 1])
