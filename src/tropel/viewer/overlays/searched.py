"""What squads have searched: the parts of rooms that somebody of them has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tropel.viewer.overlays.cells import GroundPicture, colour_square, draw_picture, shares
from tropel.viewer.overlays.overlay import Overlay

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: Shares of the scale for parts that nobody has seen, and for those that somebody has.
_UNSEEN, _SEEN = 0.1, 0.7


def searched_picture(sim: Simulation, selected: int | None = None) -> GroundPicture | None:
    """The rooms that squads search: which parts have been seen. None before anybody searches."""
    squads = sim.population.squads
    if squads is None or not squads.rooms.places:
        return None
    rooms, floor = squads.rooms, squads.floor
    seen = rooms.seen_by(list(squads.told))
    values = np.full(seen.shape, np.nan)
    for place in rooms.places:
        parts = floor.parts(place)
        values[parts] = np.where(seen[parts], _SEEN, _UNSEEN)
    shape = floor.raster.shape
    known, block = shares(np.isfinite(values).reshape(shape))
    total, _ = shares(np.nan_to_num(values).reshape(shape))
    done = [name for name, share in sim.squads.searched().items() if share == 1.0]
    return GroundPicture(
        values=np.where(known > 0.0, total / np.maximum(known, 1e-12), np.nan),
        origin=floor.raster.origin.copy(),
        cell=floor.raster.cell * block,
        low=0.0,
        high=1.0,
        about=f"{len(done)} of {len(rooms.places)} rooms searched",
    )


def _legend(seen: GroundPicture | None) -> str:
    if seen is None:
        return "Nobody searches yet."
    return f"{seen.about}  \n{colour_square(_SEEN)} seen {colour_square(_UNSEEN)} not seen yet"


SEARCHED = Overlay(
    name="searched",
    title="searched rooms",
    look=searched_picture,
    draw=draw_picture,
    legend=_legend,
    covers_ground=True,
    fits=lambda sim: sim.population.squads is not None,
)
