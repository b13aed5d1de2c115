"""`check_neighbours` accepts environments that keep their promises and names the promise that one breaks."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

import tropel
from tropel._kernels.csr import Csr
from tropel.agents.state import AgentState
from tropel.testing import ContractViolation, check_neighbours

Lists = tuple[NDArray[Any], NDArray[Any]]


class Seen:
    """A neighbourhood with some of its parts replaced."""

    def __init__(self, near: Any, **replaced: Any) -> None:
        self._near = near
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        if name in self._replaced:
            return self._replaced[name]
        if name == "missing" or name in self._replaced.get("missing", ()):
            raise AttributeError(name)
        return getattr(self._near, name)


class ChangedLists(tropel.Grid):
    """The grid with its lists of neighbours changed by `change`."""

    def sense(self, state: Any, world: Any) -> Any:
        near = super().sense(state, world)
        indptr, indices = near.csr()
        lists = [indices[a:b].copy() for a, b in itertools.pairwise(indptr)]
        changed = [np.asarray(self.change(row, found, state), dtype=np.int32) for row, found in enumerate(lists)]
        starts = np.concatenate([[0], np.cumsum([len(found) for found in changed])]).astype(np.int64)
        joined = np.concatenate(changed) if changed else np.empty(0, dtype=np.int32)
        return Seen(near, csr=lambda: Csr(starts, joined))

    def change(self, row: int, found: NDArray[Any], state: AgentState) -> Any:
        return found


class LosesOne(ChangedLists):
    def change(self, row: int, found: NDArray[Any], state: AgentState) -> Any:
        return found[1:] if row == 17 else found


class CountsItself(ChangedLists):
    def change(self, row: int, found: NDArray[Any], state: AgentState) -> Any:
        return np.append(found, row) if row == 17 else found


class ListsTwice(ChangedLists):
    def change(self, row: int, found: NDArray[Any], state: AgentState) -> Any:
        return np.append(found, found[-1:]) if row == 17 else found


class HasLittleRoom(ChangedLists):
    """Right as long as nobody has many neighbours."""

    def change(self, row: int, found: NDArray[Any], state: AgentState) -> Any:
        return found[:120]


class SensedByOthers(ChangedLists):
    """Takes the sense radius of the one who is sensed."""

    def change(self, row: int, found: NDArray[Any], state: AgentState) -> Any:
        apart = np.linalg.norm(state.position - state.position[row], axis=1)
        return [j for j in found if apart[j] <= state.sense_radius[j]]


class Unordered(ChangedLists):
    def change(self, row: int, found: NDArray[Any], state: AgentState) -> Any:
        return found[::-1]


class ById(ChangedLists):
    def change(self, row: int, found: NDArray[Any], state: AgentState) -> Any:
        return np.sort(found)


class OutOfRange(ChangedLists):
    def change(self, row: int, found: NDArray[Any], state: AgentState) -> Any:
        return np.append(found, len(state)) if row == 0 else found


class ThreeNearest(ChangedLists):
    """Another idea of who is near; right in itself."""

    def change(self, row: int, found: NDArray[Any], state: AgentState) -> Any:
        return found[np.isin(found, _three_nearest(state, row))]


def _three_nearest(state: AgentState, row: int) -> NDArray[np.int64]:
    apart = ((state.position - state.position[row]) ** 2).sum(axis=1)
    apart[row] = np.inf
    apart[apart > state.sense_radius[row] ** 2] = np.inf
    nearest = np.argsort(apart, kind="stable")[:3]
    return nearest[np.isfinite(apart[nearest])]


def three_nearest(state: AgentState, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    near = np.zeros((len(rows), len(state)), dtype=bool)
    for k, row in enumerate(rows):
        near[k, _three_nearest(state, int(row))] = True
    return near


class FloatLists(tropel.Grid):
    def sense(self, state: Any, world: Any) -> Any:
        near = super().sense(state, world)
        return Seen(near, csr=lambda: (near.csr()[0], near.csr()[1].astype(float)))


class WithoutCells(tropel.Grid):
    def sense(self, state: Any, world: Any) -> Any:
        return Seen(super().sense(state, world), missing=("cells",))


class WithoutWalls(tropel.Grid):
    def sense(self, state: Any, world: Any) -> Any:
        return Seen(super().sense(state, world), missing=("walls_csr",))


class SeesNoWalls(tropel.Grid):
    def sense(self, state: Any, world: Any) -> Any:
        nothing = Csr(np.zeros(len(state) + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
        return Seen(super().sense(state, world), walls_csr=lambda: nothing)


class SeesNoObstacles(tropel.Grid):
    def sense(self, state: Any, world: Any) -> Any:
        nothing = Csr(np.zeros(len(state) + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
        return Seen(super().sense(state, world), obstacles_csr=lambda: nothing)


class OldRadii(tropel.Grid):
    """Sorted copies of a column that are not true."""

    def sense(self, state: Any, world: Any) -> Any:
        near = super().sense(state, world)
        cells = near.cells
        return Seen(near, cells=cells._replace(radius=cells.radius + 0.1))


class ShuffledCells(tropel.Grid):
    """A sort by cell that is not stable."""

    def sense(self, state: Any, world: Any) -> Any:
        near = super().sense(state, world)
        cells = near.cells
        order = cells.order.copy()
        for first, last in zip(cells.cell_start[:-1], cells.cell_start[1:], strict=True):
            order[first:last] = order[first:last][::-1]
        return Seen(near, cells=cells._replace(order=order))


class SensesOnce(tropel.Grid):
    """Keeps what it has seen first."""

    kept: Any = None

    def sense(self, state: Any, world: Any) -> Any:
        if self.kept is None or len(self.kept.csr()[0]) != len(state) + 1:
            near = super().sense(state, world)
            indptr, indices = (part.copy() for part in near.csr())
            cells = type(near.cells)(*(np.array(part) for part in near.cells))
            walls, obstacles = (Csr(*(p.copy() for p in part)) for part in (near.walls_csr(), near.obstacles_csr()))
            self.kept = Seen(
                near,
                csr=lambda: Csr(indptr, indices),
                cells=cells,
                walls_csr=lambda: walls,
                obstacles_csr=lambda: obstacles,
            )
        return self.kept


class NudgesPeople(tropel.Grid):
    def sense(self, state: Any, world: Any) -> Any:
        near = super().sense(state, world)
        near.csr()
        state.velocity[:1] += 1.0
        return near


class ForgetsItsCells(tropel.Grid):
    """Chooses its cells anew after a resume, by whoever is there then."""

    def state(self) -> dict[str, NDArray[Any]]:
        return {}


class NewCellsEachTime(tropel.Grid):
    """The order of neighbours depends on how often it was asked."""

    asked = 0

    def sense(self, state: Any, world: Any) -> Any:
        self.asked += 1
        self.cell = 1.0 + 0.1 * self.asked
        self.allocate(state, world)
        return super().sense(state, world)


class CellsByThreads(tropel.Grid):
    def sense(self, state: Any, world: Any) -> Any:
        self.cell = 1.0 + numba.get_num_threads()
        self.allocate(state, world)
        return super().sense(state, world)


class NeedsSomebody(tropel.Grid):
    def sense(self, state: Any, world: Any) -> Any:
        state.sense_radius.max()
        return super().sense(state, world)


@pytest.mark.parametrize(
    "environment", [tropel.Grid(), tropel.Grid(cell=0.7), tropel.Grid(cell=50.0), tropel.Grid, ChangedLists()]
)
def test_environments_that_keep_their_promises_pass(environment: Any) -> None:
    check_neighbours(environment)


@pytest.mark.parametrize(
    ("environment", "promise"),
    [
        (LosesOne, r"lists exactly those who are near, but for row 17 \(agent 20\) row \d+ \(agent \d+\) is missing"),
        (CountsItself, "listed wrongly|by cell, then by id"),
        (ListsTwice, "each once"),
        (HasLittleRoom, "everybody clumped together: .*lists exactly those who are near"),
        (SensedByOthers, "lists exactly those who are near"),
        (Unordered, "by cell, then by id"),
        (ById, "by cell, then by id"),
        (OutOfRange, "indices run from .* to 205, and there are 205"),
        (ThreeNearest, "lists exactly those who are near"),
        (FloatLists, "not integers"),
        (WithoutCells, "has cells, but that is missing"),
        (WithoutWalls, r"has walls_csr\(\), but that is missing"),
        (SeesNoWalls, "lists the walls within the sense radius"),
        (SeesNoObstacles, "lists the obstacles within the sense radius"),
        (OldRadii, "cells.radius is a sorted copy"),
        (ShuffledCells, "agents of a cell are in the order of their ids"),
        (SensesOnce, "everybody clumped together"),
        (NudgesPeople, "what it is given stays as it is|cells.velocity is a sorted copy"),
        (ForgetsItsCells, "the same lists in the same order.*sensed after restore"),
        (NewCellsEachTime, "the same lists in the same order.*sensed again"),
        (CellsByThreads, "the same lists in the same order.*sensed on 2 threads instead of 1"),
        (NeedsSomebody, "without agents: it must work there"),
    ],
)
def test_a_broken_promise_is_named(environment: Callable[[], Any], promise: str) -> None:
    with pytest.raises(ContractViolation, match=promise):
        check_neighbours(environment())


def test_another_rule_of_who_is_near_can_be_given() -> None:
    world = tropel.World(shapely.box(0, 0, 10, 10), walls=[[(2, 2), (8, 2)]])
    agents = [tropel.Group("people", count=60)]
    check_neighbours(ThreeNearest(), rule=three_nearest, world=world, agents=agents)
    with pytest.raises(ContractViolation, match="in the given 2D world"):
        check_neighbours(tropel.Grid(), rule=three_nearest, world=world, agents=agents)


def test_open_doors_are_no_walls() -> None:
    doors = {"open": tropel.Door([(5, 0), (5, 10)], open=True), "shut": tropel.Door([(7, 0), (7, 10)])}
    world = tropel.World(shapely.box(0, 0, 10, 10), doors=doors)
    check_neighbours(tropel.Grid(), world=world, agents=[tropel.Group("people", count=40)])
