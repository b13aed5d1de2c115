"""`check_neighbours` accepts environments that keep their promises and names the promise that one breaks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

import tropel
from tropel._kernels.arrays import Csr
from tropel._kernels.neighbours import Neighbours
from tropel.agents.state import AgentState
from tropel.broad_phase import CellGrid
from tropel.contracts import Moment, Near
from tropel.testing import ContractViolation, check_neighbours

Floats = NDArray[np.float64]


class Seen(Near):
    """A neighbourhood with some of its parts replaced."""

    def __init__(self, near: Near, **replaced: Any) -> None:
        self.__dict__ |= near.__dict__
        for name in ("lists", "neighbours", "csr", "walls_csr", "obstacles_csr"):
            setattr(self, name, replaced.get(name, getattr(near, name)))

    def lists(self, radius: Floats) -> Csr:
        raise AssertionError("replaced above")


class ChangedLists(tropel.Grid):
    """The grid with its lists of neighbours changed by `change`."""

    def sense(self, moment: Moment) -> Any:
        near = super().sense(moment)
        indptr, indices = near.csr()
        lists = [indices[a:b].copy() for a, b in itertools.pairwise(indptr)]
        changed = [np.asarray(self.change(row, found, moment.state), dtype=np.int32) for row, found in enumerate(lists)]
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

    def known_to(self, row: int, state: AgentState, world: tropel.World) -> NDArray[np.int64]:
        return np.sort(_three_nearest(state, row))


class ShowsOthers(ThreeNearest):
    """A page would show everybody within the sense radius."""

    known_to = tropel.Grid.known_to


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
    def sense(self, moment: Moment) -> Any:
        near = super().sense(moment)
        return Seen(near, csr=lambda: (near.csr()[0], near.csr()[1].astype(float)))


class ReturnsNothing(tropel.Grid):
    def sense(self, moment: Moment) -> Any:
        super().sense(moment)


class ReturnsLists(tropel.Grid):
    def sense(self, moment: Moment) -> Any:
        return super().sense(moment).csr()


class ReturnsALookalike(tropel.Grid):
    """Something that has all that a neighbourhood has, but for one."""

    def sense(self, moment: Moment) -> Any:
        near = super().sense(moment)
        names = ("state", "world", "cells", "reach", "lists", "neighbours", "csr", "walls", "obstacles", "walls_csr")
        return SimpleNamespace(**{name: getattr(near, name) for name in names})


class SeesNoWalls(tropel.Grid):
    def sense(self, moment: Moment) -> Any:
        nothing = Csr(np.zeros(len(moment.state) + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
        return Seen(super().sense(moment), walls_csr=lambda: nothing)


class SeesNoObstacles(tropel.Grid):
    def sense(self, moment: Moment) -> Any:
        nothing = Csr(np.zeros(len(moment.state) + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
        return Seen(super().sense(moment), obstacles_csr=lambda: nothing)


class OldRadii(tropel.Grid):
    """Sorted copies of a column that are not true."""

    def sense(self, moment: Moment) -> Any:
        near = super().sense(moment)
        cells = near.neighbours()
        return Seen(near, neighbours=lambda: cells._replace(radius=cells.radius + 0.1))


class ShuffledCells(tropel.Grid):
    """A sort by cell that is not stable."""

    def sense(self, moment: Moment) -> Any:
        near = super().sense(moment)
        cells = near.neighbours()
        order = cells.order.copy()
        for first, last in zip(cells.cell_start[:-1], cells.cell_start[1:], strict=True):
            order[first:last] = order[first:last][::-1]
        return Seen(near, neighbours=lambda: cells._replace(order=order))


class SensesOnce(tropel.Grid):
    """Keeps what it has seen first."""

    kept: Any = None

    def sense(self, moment: Moment) -> Any:
        if self.kept is None or len(self.kept.csr()[0]) != len(moment.state) + 1:
            near = super().sense(moment)
            indptr, indices = (part.copy() for part in near.csr())
            cells = Neighbours(*(np.array(part) for part in near.neighbours()))
            walls, obstacles = (Csr(*(p.copy() for p in part)) for part in (near.walls_csr(), near.obstacles_csr()))
            self.kept = Seen(
                near,
                csr=lambda: Csr(indptr, indices),
                neighbours=lambda: cells,
                walls_csr=lambda: walls,
                obstacles_csr=lambda: obstacles,
            )
        return self.kept


class NudgesPeople(tropel.Grid):
    def sense(self, moment: Moment) -> Any:
        near = super().sense(moment)
        near.csr()
        moment.state.velocity[:1] += 1.0
        return near


class OwnCells(tropel.Grid):
    """Sorts agents into cells of its own, chosen by whoever is there when it is first asked."""

    own: CellGrid | None = None

    def sense(self, moment: Moment) -> Near:
        if self.own is None:
            self.own = CellGrid()
        self.own.begin(moment.state, moment.world)
        return super().sense(replace(moment, cells=self.own))

    def state(self) -> dict[str, NDArray[Any]]:
        return {} if self.own is None else self.own.state()

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        self.own = CellGrid()
        self.own.restore(stored)


class ForgetsItsCells(OwnCells):
    """Chooses its cells anew after a resume, by whoever is there then."""

    def state(self) -> dict[str, NDArray[Any]]:
        return {}


class NewCellsEachTime(tropel.Grid):
    """The order of neighbours depends on how often it was asked."""

    asked = 0

    def sense(self, moment: Moment) -> Near:
        self.asked += 1
        cells = CellGrid.of(moment.state, moment.world, cell=1.0 + 0.1 * self.asked)
        return super().sense(replace(moment, cells=cells))


class CellsByThreads(tropel.Grid):
    def sense(self, moment: Moment) -> Near:
        cells = CellGrid.of(moment.state, moment.world, cell=1.0 + numba.get_num_threads())
        return super().sense(replace(moment, cells=cells))


class BruteNear(Near):
    """What a user may write first: lists, in any order."""

    def lists(self, radius: Floats) -> Csr:
        apart2 = sum((x[:, None] - x[None, :]) ** 2 for x in self.state.position.T)
        near = apart2 <= (radius**2)[:, None]
        np.fill_diagonal(near, False)
        rows, met = np.nonzero(near[:, ::-1])
        start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(near)))]).astype(np.int64)
        return Csr(start, (len(near) - 1 - met).astype(np.int32))


class Brute(tropel.Environment):
    def sense(self, moment: Moment) -> Near:
        return BruteNear(moment)


class WrongTable(Brute):
    """Kernels would walk others than those who are listed."""

    def sense(self, moment: Moment) -> Near:
        class Wrong(BruteNear):
            def neighbours(self, radius: Floats | None = None) -> Neighbours:
                table = super().neighbours(radius)
                met = table.met.copy()
                first = (
                    slice(int(table.list_start[17]), int(table.list_start[18])) if len(self.state) > 17 else slice(0)
                )
                met[first] = met[first][::-1]
                return table._replace(met=met)

        return Wrong(moment)


class ForgetsOneInTheTable(Brute):
    """Kernels would miss somebody who is listed."""

    def sense(self, moment: Moment) -> Near:
        class Short(BruteNear):
            def neighbours(self, radius: Floats | None = None) -> Neighbours:
                table = super().neighbours(radius)
                start = table.list_start.copy()
                start[18:19] -= 1
                return table._replace(list_start=start)

        return Short(moment)


class NeedsSomebody(tropel.Grid):
    def sense(self, moment: Moment) -> Any:
        moment.state.sense_radius.max()
        return super().sense(moment)


@pytest.mark.parametrize(
    "environment",
    [
        tropel.Grid(),
        tropel.Grid(cell=0.7),
        tropel.Grid(cell=50.0),
        tropel.Grid,
        ChangedLists(),
        OwnCells(),
    ],
)
def test_environments_that_keep_their_promises_pass(environment: Any) -> None:
    check_neighbours(environment)


@pytest.mark.parametrize(
    ("environment", "promise"),
    [
        (
            LosesOne,
            r"lists exactly the agents that are near, but for row 17 \(agent 20\) row \d+ \(agent \d+\) is missing",
        ),
        (CountsItself, "listed wrongly|by cell, then by id"),
        (ListsTwice, "each once"),
        (HasLittleRoom, "all agents clumped together: .*lists exactly the agents that are near"),
        (SensedByOthers, "lists exactly the agents that are near"),
        (Unordered, "by cell, then by id"),
        (ById, "by cell, then by id"),
        (OutOfRange, "indices run from .* to 205, but there are only 205"),
        (ThreeNearest, "lists exactly the agents that are near"),
        (FloatLists, "not integers"),
        (ReturnsNothing, "sense returns a Near, but it returned NoneType; extend tropel.contracts.Near"),
        (ReturnsLists, "sense returns a Near, but it returned Csr"),
        (ReturnsALookalike, "sense returns a Near, but it returned SimpleNamespace"),
        (SeesNoWalls, "lists the walls within the sense radius"),
        (SeesNoObstacles, "lists the obstacles within the sense radius"),
        (OldRadii, "cells.radius is a sorted copy"),
        (ShuffledCells, "agents of a cell are in the order of their ids"),
        (SensesOnce, "all agents clumped together"),
        (NudgesPeople, "inputs are not changed|cells.velocity is a sorted copy"),
        (ForgetsItsCells, "the same lists in the same order.*sensed after restore"),
        (NewCellsEachTime, "the same lists in the same order.*sensed again"),
        (CellsByThreads, "the same lists in the same order.*sensed on 2 threads instead of 1"),
        (WrongTable, r"row 17 \(agent 20\)"),
        (ForgetsOneInTheTable, r"row 17 \(agent 20\)"),
        (NeedsSomebody, "without agents: it must work there"),
    ],
)
def test_a_broken_promise_is_named(environment: Callable[[], Any], promise: str) -> None:
    with pytest.raises(ContractViolation, match=promise):
        check_neighbours(environment())


def test_an_environment_that_has_nothing_but_lists_passes() -> None:
    hall = tropel.World(shapely.box(0, 0, 10, 10), walls=[[(2, 2), (8, 2)]])
    box = tropel.World.box((0, 0, 0), (6, 6, 6), obstacles={"b": tropel.Obstacle(radius=1.0, position=(3, 3, 3))})
    for world in (hall, box):
        check_neighbours(Brute(), world=world, agents=[tropel.Group("people", count=120, sense_radius=1.5)])


def test_another_rule_of_who_is_near_can_be_given() -> None:
    world = tropel.World(shapely.box(0, 0, 10, 10), walls=[[(2, 2), (8, 2)]])
    agents = [tropel.Group("people", count=60)]
    check_neighbours(ThreeNearest(), rule=three_nearest, world=world, agents=agents)
    with pytest.raises(ContractViolation, match="override known_to"):
        check_neighbours(ShowsOthers(), rule=three_nearest, world=world, agents=agents)
    with pytest.raises(ContractViolation, match="in the given 2D world"):
        check_neighbours(tropel.Grid(), rule=three_nearest, world=world, agents=agents)


def test_open_doors_are_no_walls() -> None:
    doors = {"open": tropel.Door([(5, 0), (5, 10)], open=True), "shut": tropel.Door([(7, 0), (7, 10)])}
    world = tropel.World(shapely.box(0, 0, 10, 10), doors=doors)
    check_neighbours(tropel.Grid(), world=world, agents=[tropel.Group("people", count=40)])
