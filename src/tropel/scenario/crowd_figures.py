"""CROWD's figures that need no measuring: 3 (flow fields), 7 (hazards), 9 (bottlenecks), 10 (congestion)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tropel.pictures.bottleneck_picture import bottleneck_names, draw_bottlenecks
from tropel.pictures.cells_picture import CellsPanel, draw_cells
from tropel.pictures.congestion_plot import CrowdAtBottleneck, draw_congestion
from tropel.planning.bottlenecks import find_bottlenecks
from tropel.planning.congestion import CongestionWatch
from tropel.planning.flow_layer import FlowLayer
from tropel.planning.path_plans import PathPlans
from tropel.scenario.crowd_maps import best_moves, corner_goals, six_door_hall
from tropel.scenario.loading import Scenario, load_builtin
from tropel.scenario.schema import LayerSpec
from tropel.simulation import Simulation
from tropel.world.influence import influence_filter
from tropel.world.lattice_cells import lattice_cells

#: Two hazards beside walls of the hall: x, y and inner radius [m]; the outer radius is four times that.
FIG7_HAZARDS = ((18.4, 27.4, 1.6), (35.0, 38.6, 2.0))
#: Maps whose bottlenecks figure 9 shows.
FIG9_SCENES = ("crowd_fig2", "crowd_fig10")
#: Thresholds in persons, as in the paper, under which the queue at A raises false alarms at B.
PLAIN_COUNTS = {"high": 36.0, "low": 18.0, "area": 6.0, "every": 5, "scaled": False}


def flow_panels(size: int = 36) -> list[CellsPanel]:
    """Figure 3: the best moves to the north-east corner, without and with the √2."""
    free, goal = six_door_hall(size), corner_goals(size)[3]
    titles = {True: "(a) all moves take the same time", False: "(b) diagonal moves take √2"}
    return [
        CellsPanel(title=title, free=free, goal=goal, moves=best_moves(FlowLayer(free, goal, equal_moves=equal_moves)))
        for equal_moves, title in titles.items()
    ]


def influence_panels() -> list[CellsPanel]:
    """Figure 7: what two hazards make of the cells around them, through walls and clipped by them."""
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
    """Figure 10: what was counted at the doors, and how many took the wide one."""

    crowds: list[CrowdAtBottleneck]  #: at A, then at B; none where congestion is not watched
    share_of_b: float
    time: float  #: until everybody had arrived [s]


def door_use(congestion: Mapping[str, Any] | bool | None = None, *, seed: int | None = None) -> DoorUse:
    """Run crowd_fig10 with other thresholds, or without avoidance (False); as the scene says when left out."""
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
        # Between the doors, which everybody has just come through.
        through[sim.agents.id[passed]] = np.where(position[passed, 1] > 4.8, 2, 1)
    crowds = [] if watch is None else crowds_at(watch, scenario.spec.dt)
    return DoorUse(crowds=crowds, share_of_b=float(np.mean(through == 2)), time=sim.time)


def crowds_at(watch: CongestionWatch, dt: float) -> list[CrowdAtBottleneck]:
    """What was counted at each bottleneck, in their order."""
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
    about = (
        "every move that is as good as the best of its cell: blue goes east, orange west, black neither; green: goal"
    )
    return [draw_cells(flow_panels(), path, title="Flow fields of the two methods on 36 × 36 cells", about=about)]


def draw_influences(path: Path) -> list[Path]:
    about = "circles: inner radii, where nobody survives; the influence ends at four times that; walls are white"
    title = "Influence of two hazards"
    return [draw_cells(influence_panels(), path, title=title, about=about, worth_means="what a cell is worth")]


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
    for said, congestion in (("thresholds by width", None), ("plain counts", PLAIN_COUNTS)):
        crowds += [replace(crowd, name=f"{crowd.name}: {said}") for crowd in door_use(congestion).crowds]
    return [draw_congestion(crowds, path, title="People at the narrow door A and the wide door B")]


def _lower(scenario: Scenario) -> str:
    title = scenario.spec.title or scenario.name
    return title[0].lower() + title[1:]
