"""Congestions of a crowd on cells: how strongly places are shunned because a bottleneck is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tropel.offers import OfferedCongestion, offered
from tropel.viewer.ground_picture import GroundPicture, draw_picture, picture_legend, shares
from tropel.viewer.overlays import Overlay

if TYPE_CHECKING:
    from tropel.simulation import Simulation


def congestion_picture(sim: Simulation, selected: int | None = None) -> GroundPicture | None:
    """By how much congestions lower the worth of cells: 1 is a veto. None while nothing is congested."""
    congestions = offered(sim.planners.values(), OfferedCongestion)
    placed = [each for congestion in congestions for each in congestion.filters()]
    if not placed:
        return None
    raster = congestions[0].raster()
    worth = np.zeros(raster.shape)
    for each in placed:
        rows, columns = each.log_value.shape
        worth[each.row : each.row + rows, each.column : each.column + columns] += each.log_value
    shunned, block = shares(np.where(raster.free, 1.0 - np.exp(worth), 0.0))
    return GroundPicture(
        values=np.where(shunned > 0.0, shunned, np.nan),
        origin=raster.origin.copy(),
        cell=raster.cell * block,
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
    fits=lambda sim: bool(offered(sim.planners.values(), OfferedCongestion)),
)
