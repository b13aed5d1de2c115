"""Congestions of a crowd on cells: how strongly places are shunned because a bottleneck is full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tropel.planning.congestion import CongestionWatch, filter_name
from tropel.planning.path_plans import PathPlans
from tropel.viewer.ground_picture import GroundPicture, draw_picture, picture_legend, shares
from tropel.viewer.overlays import Overlay
from tropel.viewer.overlays_field import field_planners

if TYPE_CHECKING:
    from tropel.simulation import Simulation


def path_plans(sim: Simulation) -> Iterator[PathPlans]:
    """The planners that lay path plans on the ground, each once."""
    found = (planner for planner in field_planners(sim.planners.values()) if isinstance(planner, PathPlans))
    return iter({id(planner): planner for planner in found}.values())


def watches(sim: Simulation) -> list[CongestionWatch]:
    """What counts people at bottlenecks."""
    return [planner.watch for planner in path_plans(sim) if planner.watch is not None]


def congestion_picture(sim: Simulation, selected: int | None = None) -> GroundPicture | None:
    """By how much congestions lower the worth of cells: 1 is a veto. None while nothing is congested."""
    terrain = sim.world.terrain
    if terrain is None:
        return None
    names = {filter_name(bottleneck) for watch in watches(sim) for bottleneck in watch.bottlenecks}
    placed = [terrain.filters[name] for name in sorted(names & terrain.filters.keys())]
    if not placed:
        return None
    worth = np.zeros(terrain.raster.shape)
    for each in placed:
        rows, columns = each.log_value.shape
        worth[each.row : each.row + rows, each.column : each.column + columns] += each.log_value
    shunned, block = shares(np.where(terrain.raster.free, 1.0 - np.exp(worth), 0.0))
    return GroundPicture(
        values=np.where(shunned > 0.0, shunned, np.nan),
        origin=terrain.raster.origin.copy(),
        cell=terrain.raster.cell * block,
        low=0.0,
        high=1.0,
        about=f"Part of a place's worth that congestions take ({len(placed)} now)",
    )


def _congestion_legend(seen: GroundPicture | None) -> str:
    return "No bottleneck is congested." if seen is None else picture_legend(seen)


CONGESTION = Overlay(
    name="congestion",
    title="congestion",
    look=congestion_picture,
    draw=draw_picture,
    legend=_congestion_legend,
    covers_ground=True,
    fits=lambda sim: bool(watches(sim)),
)
