"""How many people per square metre there are, counted in squares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.viewer.ground_picture import MOST_PIXELS, GroundPicture, draw_picture, picture_legend
from tropel.viewer.overlays import Overlay

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Floats = NDArray[np.float64]

#: Squares that people are counted in [m], and the density that has the darkest colour [1/m²].
_SQUARE = 1.0
_DENSE = 4.0


def density_picture(sim: Simulation, selected: int | None = None) -> GroundPicture | None:
    """The living in each square of the world."""
    living = sim.agents.dead == 0
    return density_of(sim.agents.position[living], sim.world.bounds)


def density_of(position: Floats, bounds: Floats) -> GroundPicture | None:
    """How many of these places are in each square between two corners; None if there are none."""
    if not len(position):
        return None
    low, high = bounds
    square = max(_SQUARE, float((high - low).max()) / MOST_PIXELS)
    columns, rows = np.maximum(np.ceil((high - low) / square - 1e-9).astype(np.int64), 1).tolist()
    cell = np.floor((position - low) / square).astype(np.int64)
    number = np.clip(cell[:, 1], 0, rows - 1) * columns + np.clip(cell[:, 0], 0, columns - 1)
    counts = np.bincount(number, minlength=rows * columns).reshape(rows, columns)
    return GroundPicture(
        values=np.where(counts > 0, counts / square**2, np.nan),
        origin=np.array(low, dtype=np.float64),
        cell=square,
        low=0.0,
        high=_DENSE,
        about=f"People per m², in squares of {square:.3g} m",
        unit="or more",
        beyond_walls=True,
    )


def is_plan(sim: Simulation) -> bool:
    return sim.world.dim == 2


DENSITY = Overlay(
    name="density",
    title="density",
    look=density_picture,
    draw=draw_picture,
    legend=picture_legend,
    covers_ground=True,
    fits=is_plan,
)
