"""The occupancy layer of a crowd on cells: which cells somebody stands in, as the crowd itself reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tropel.offers import OfferedOccupancy, offered
from tropel.viewer.ground_picture import GroundPicture, colour_square, draw_picture, picture_legend, shares
from tropel.viewer.overlays import Overlay

if TYPE_CHECKING:
    from tropel.simulation import Simulation


def _crowds(sim: Simulation) -> list[OfferedOccupancy]:
    return offered(sim.layers.models, OfferedOccupancy)


def occupancy_picture(sim: Simulation, selected: int | None = None) -> GroundPicture | None:
    """The layer after the last step; bodies of others and moving obstacles are in it as that step found them."""
    crowds = _crowds(sim)
    if not crowds:
        return None
    raster = crowds[0].raster()
    taken, block = shares(crowds[0].occupied())
    if not taken.any():
        return None
    return GroundPicture(
        values=np.where(taken > 0.0, taken, np.nan),
        origin=raster.origin.copy(),
        cell=raster.cell * block,
        low=0.0,
        high=1.0,
        about=f"Share of cells that are taken, in blocks of {block} × {block}",
    )


def _occupancy_legend(seen: GroundPicture | None) -> str:
    if seen is None or (seen.values < 1.0).any():
        return picture_legend(seen)
    return f"{colour_square(1.0)} cells where somebody is"


OCCUPANCY = Overlay(
    name="occupancy",
    title="occupied cells",
    look=occupancy_picture,
    draw=draw_picture,
    legend=_occupancy_legend,
    covers_ground=True,
    fits=lambda sim: bool(_crowds(sim)),
)
