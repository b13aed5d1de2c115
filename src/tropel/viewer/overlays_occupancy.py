"""The occupancy layer of a crowd on cells: which cells somebody stands in, as the crowd itself reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tropel.local.lattice import Lattice
from tropel.local.lattice_ground import BORDER
from tropel.viewer.ground_picture import GroundPicture, colour_square, draw_picture, picture_legend, shares
from tropel.viewer.overlays import Overlay

if TYPE_CHECKING:
    from tropel.simulation import Simulation


def _crowd(sim: Simulation) -> Lattice | None:
    return next((model for model in sim.layers.models if isinstance(model, Lattice)), None)


def occupancy_picture(sim: Simulation, selected: int | None = None) -> GroundPicture | None:
    """The layer after the last step; bodies of others and moving obstacles are in it as that step found them."""
    crowd, terrain = _crowd(sim), sim.world.terrain
    if crowd is None or terrain is None:
        return None
    rows, columns = terrain.raster.shape
    around = (rows + 2 * BORDER, columns + 2 * BORDER)
    layer = crowd.occupied[: around[0] * around[1]].reshape(around)[BORDER:-BORDER, BORDER:-BORDER]
    taken, block = shares(layer != 0)
    if not taken.any():
        return None
    return GroundPicture(
        values=np.where(taken > 0.0, taken, np.nan),
        origin=terrain.raster.origin.copy(),
        cell=terrain.raster.cell * block,
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
    fits=lambda sim: _crowd(sim) is not None,
)
