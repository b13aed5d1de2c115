"""CROWD's figures that need no measuring: 3 (flow fields), 7 (hazards), 9 (bottlenecks), 10 (congestion).

In reading order: the hall of the figures on any number of cells, its flow fields, and value iteration to compare them
with; the panels and counts of each figure; drawing them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.figures.cells import CellsPanel, bottleneck_names, draw_bottlenecks, draw_cells
from tropel.figures.congestion import CrowdAtBottleneck, draw_congestion
from tropel.planning.flow.path_plan import MOVES, PathPlan
from tropel.planning.path_plans.bottlenecks import find_bottlenecks
from tropel.planning.path_plans.congestion import CongestionWatch
from tropel.planning.path_plans.model import PathPlans
from tropel.scenario.loading import Scenario, load_builtin
from tropel.scenario.schema import LayerSpec
from tropel.simulation import Simulation
from tropel.world.influence import influence_filter
from tropel.world.raster import lattice_cells

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

#: Shares of the map's side: where the hall begins, how far its outer doors are from the middle ones, and their width.
_HALL, _DOORS_APART, _DOOR = 0.25, 0.155, 0.08


def six_door_hall(size: int, *, wall: int = 1) -> Bools:
    """Free cells of a square with a blocked rim and a hall inside, with three doors to the east and to the west."""
    if size < 30:
        raise ParameterError(f"a hall with six doors needs a map of at least 30 cells, not {size}")
    free = np.ones((size, size), dtype=np.bool_)
    free[[0, -1]] = free[:, [0, -1]] = False
    begin = round(_HALL * size)
    end, middle, door = size - begin, (size - 1) / 2, max(round(_DOOR * size), 3)
    inner = slice(begin + wall, end - wall)
    hall = np.zeros_like(free)
    hall[begin:end, begin:end] = True
    hall[inner, inner] = False
    rows = np.arange(size)
    for centre in (middle, middle - _DOORS_APART * size, middle + _DOORS_APART * size):
        through = np.abs(rows - centre) < door / 2
        hall[through, begin : begin + wall] = hall[through, end - wall : end] = False
    return free & ~hall


def corner_goals(size: int) -> list[Bools]:
    """A goal cell in each corner: south west, south east, north west, north east."""
    goals = []
    for row, column in ((1, 1), (1, size - 2), (size - 2, 1), (size - 2, size - 2)):
        goal = np.zeros((size, size), dtype=np.bool_)
        goal[row, column] = True
        goals.append(goal)
    return goals


def best_moves(plan: PathPlan) -> NDArray[np.int64]:
    """Every best move (row, column, dx, dy) to a neighbour; agents draw among those of their cell."""
    units = np.where(np.isfinite(plan.distance), plan.units, np.iinfo(np.int64).max)
    beside = np.full((8, *units.shape), np.iinfo(np.int64).max)
    for move, (dx, dy) in enumerate(MOVES.tolist()):
        rows, columns = np.nonzero((plan.moves >> move) & 1)
        beside[move, rows, columns] = units[rows + dy, columns + dx]
    best = (beside == beside.min(axis=0)) & np.isfinite(plan.distance) & ~plan.goal
    which, row, column = np.nonzero(best)
    return np.concatenate([np.stack([row, column], axis=1), MOVES[which]], axis=1)


def value_iteration(free: Bools, goal: Bools, *, gamma: float, equal_moves: bool = False) -> tuple[Floats, int]:
    """V of every cell by sweeps over all cells until none changes (Algorithm 1 of the paper), and how many sweeps."""
    value = np.zeros(free.shape)
    value[goal & free] = 1.0
    moves = _allowed_moves(free, equal_moves)
    sweeps = 0
    while True:
        new = value.copy()
        for here, there, allowed, time in moves:
            np.maximum(new[here], np.where(allowed, gamma**time * value[there], 0.0), out=new[here])
        sweeps += 1
        if np.array_equal(new, value):
            return value, sweeps
        value = new


def _allowed_moves(
    free: Bools, equal_moves: bool
) -> Sequence[tuple[tuple[slice, slice], tuple[slice, slice], Bools, float]]:
    """For each move: the cells it starts from, the cells it leads to, whether it is allowed there, and its time."""
    ny, nx = free.shape
    moves = []
    for dx, dy in MOVES.tolist():
        here = (slice(max(-dy, 0), ny - max(dy, 0)), slice(max(-dx, 0), nx - max(dx, 0)))
        there = (slice(max(dy, 0), ny + min(dy, 0)), slice(max(dx, 0), nx + min(dx, 0)))
        allowed = free[here] & free[there]
        if dx and dy:
            allowed &= free[here[0], there[1]] & free[there[0], here[1]]
        moves.append((here, there, allowed, 1.0 if equal_moves else math.hypot(dx, dy)))
    return moves


#: Two hazards next to walls of the hall: x, y and inner radius [m]; the outer radius is four times that.
FIG7_HAZARDS = ((18.4, 27.4, 1.6), (35.0, 38.6, 2.0))
#: Maps whose bottlenecks figure 9 shows.
FIG9_SCENES = ("crowd_fig2", "crowd_fig10")
#: Thresholds in people, as in the paper, with which the queue at A raises false alarms at B.
PLAIN_COUNTS = {"high": 36.0, "low": 18.0, "area": 6.0, "every": 5, "scaled": False, "replan": False}
#: Thresholds by width, with agents repelled as in the paper instead of planning around the wait.
PAPER_RULE = {"high": 16.0, "low": 8.0, "area": 6.0, "every": 5, "replan": False}


def flow_panels(size: int = 36) -> list[CellsPanel]:
    """Figure 3: the best moves to the north-east corner, without and with the √2."""
    free, goal = six_door_hall(size), corner_goals(size)[3]
    titles = {True: "(a) all moves take the same time", False: "(b) diagonal moves take √2"}
    return [
        CellsPanel(title=title, free=free, goal=goal, moves=best_moves(PathPlan(free, goal, equal_moves=equal_moves)))
        for equal_moves, title in titles.items()
    ]


def influence_panels() -> list[CellsPanel]:
    """Figure 7: the influence of two hazards on the cells around them, through walls and clipped by them."""
    raster = lattice_cells(load_builtin("crowd_fig2").world())
    panels = []
    for clipped, title in ((False, "(a) equation 4 alone reaches through walls"), (True, "(b) clipped by walls")):
        worth = np.ones(raster.shape)
        for x, y, inner in FIG7_HAZARDS:
            laid = influence_filter(raster, (x, y), inner, 4.0 * inner, 1.0, clipped=clipped)
            assert laid is not None
            rows, columns = laid.log_value.shape
            worth[laid.row : laid.row + rows, laid.column : laid.column + columns] *= np.exp(laid.log_value)
        circles = [(x / raster.cell, y / raster.cell, inner / raster.cell) for x, y, inner in FIG7_HAZARDS]
        panels.append(CellsPanel(title=title, free=raster.free, worth=worth, circles=circles))
    return panels


@dataclass(frozen=True, kw_only=True)
class DoorUse:
    """Figure 10: the counts at the doors, and how many agents took the wide one."""

    crowds: list[CrowdAtBottleneck]  #: at A, then at B; none if congestion is not watched
    share_of_b: float
    time: float  #: until all agents had arrived [s]


def door_use(congestion: Mapping[str, Any] | bool | None = None, *, seed: int | None = None) -> DoorUse:
    """Run crowd_fig10 with other thresholds, or without avoidance (False); by default as the scene specifies."""
    scenario = load_builtin("crowd_fig10")
    if congestion is not None:
        layer = LayerSpec.model_validate({"model": "path_plans", "congestion": congestion})
        scenario = replace(scenario, spec=scenario.spec.model_copy(update={"planning": layer}))
    sim = scenario.build(seed=seed)
    watch = _watch(sim)
    if watch is not None:
        watch.keep_history = True
    wall, through = 18.2, np.zeros(sim.agents.next_id, dtype=np.int64)
    while len(sim.agents) and sim.time < scenario.spec.limit:
        sim.step()
        position = sim.agents.position
        passed = (position[:, 0] > wall) & (through[sim.agents.id] == 0)
        # The line between the two doors: the agents have just come through one of them.
        through[sim.agents.id[passed]] = np.where(position[passed, 1] > 4.8, 2, 1)
    crowds = [] if watch is None else crowds_at(watch, scenario.spec.dt)
    return DoorUse(crowds=crowds, share_of_b=float(np.mean(through == 2)), time=sim.time)


def crowds_at(watch: CongestionWatch, dt: float) -> list[CrowdAtBottleneck]:
    """The counts at each bottleneck, in order."""
    crowds = []
    for name, each in zip(bottleneck_names(watch.bottlenecks), watch.bottlenecks, strict=True):
        looks, (high, low) = watch.looks(each), watch.thresholds(each)
        crowds.append(
            CrowdAtBottleneck(
                name=f"{name}, {each.width:.1f} m wide",
                times=looks.steps.astype(np.float64) * dt,
                counts=looks.counts,
                congested=looks.congested,
                high=high,
                low=low,
            )
        )
    return crowds


def _watch(sim: Simulation) -> CongestionWatch | None:
    (planner,) = [layer for layer in sim.all_layers() if isinstance(layer, PathPlans)]
    return planner.watch


# Drawing --------------------------------------------------------------------------------------------------------


def draw_flow_fields(path: Path) -> list[Path]:
    about = "every move as good as the best one of its cell: blue goes east, orange west, black neither; green: goal"
    return [draw_cells(flow_panels(), path, title="Flow fields of the two methods on 36 × 36 cells", about=about)]


def draw_influences(path: Path) -> list[Path]:
    about = "circles: inner radii, where nobody survives; the influence ends at four times that radius; walls are white"
    title = "Influence of two hazards"
    return [draw_cells(influence_panels(), path, title=title, about=about, worth_means="value of a cell")]


def draw_bottleneck_maps(path: Path) -> list[Path]:
    drawn = []
    for number, name in enumerate(FIG9_SCENES, start=1):
        scenario = load_builtin(name)
        sim = scenario.build(threads=1)
        assert sim.ground is not None
        found = find_bottlenecks(sim.ground)
        file = path.with_name(f"{path.stem}_{number}.png")
        drawn.append(draw_bottlenecks(sim.scene, found, file, title=f"Bottlenecks: {_lower(scenario)}"))
    return drawn


def draw_door_use(path: Path) -> list[Path]:
    crowds = []
    for said, congestion in (("thresholds by width", PAPER_RULE), ("plain counts", PLAIN_COUNTS)):
        crowds += [replace(crowd, name=f"{crowd.name}: {said}") for crowd in door_use(congestion).crowds]
    return [draw_congestion(crowds, path, title="People at the narrow door A and the wide door B")]


def _lower(scenario: Scenario) -> str:
    title = scenario.spec.title or scenario.name
    return title[0].lower() + title[1:]
