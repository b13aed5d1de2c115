"""Draw a venue with a few lines of NumPy, read it as a floor plan, and empty it: the stadium of `tropel demo stadium`.

A pixel is a cell of the lattice crowd, 0.4 m wide. Around the pitch lie two tiers of seats, every second ring of cells
a row to walk in. Aisles lead down or up to a gangway between the tiers, and tunnels (vomitories) through the upper tier
from there to the concourse, which has gates on all four sides.
"""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import NDArray
from PIL import Image

import tropel
from tropel.world.maps import read_plan

PITCH = (300, 210)  # all lengths in cells
LOWER, GANGWAY, UPPER = 46, 10, 48
CONCOURSE, GATE = 20, 14
AISLE, TUNNEL, APART = 6, 12, 44
CELL = 0.4
EXITS = {"north": (0, 158, 115), "east": (0, 114, 178), "south": (213, 94, 0), "west": (204, 121, 167)}


def stadium(pitch: tuple[int, int] = PITCH) -> NDArray[np.uint8]:
    """The floor plan (height, width, 3): white can be walked on, black not, colours are exits."""
    stand = LOWER + GANGWAY + UPPER
    around = stand + CONCOURSE + 4
    width, height = pitch[0] + 2 * around, pitch[1] + 2 * around
    # From the edge of the pitch outwards, and along it from its middle.
    x, y = np.arange(width) - (width - 1) / 2, np.arange(height) - (height - 1) / 2
    out_x, out_y = np.maximum(np.abs(x) - pitch[0] / 2 + 0.5, 0), np.maximum(np.abs(y) - pitch[1] / 2 + 0.5, 0)
    out = np.maximum(out_x[None, :], out_y[:, None])
    beside = out_x[None, :] > out_y[:, None]  # the pitch, east or west of it
    along = np.where(beside, np.abs(y)[:, None], np.abs(x)[None, :])
    length = np.where(beside, pitch[1], pitch[0]) / 2

    seats = (out > 0) & (out <= stand)
    gangway = (out > LOWER) & (out <= LOWER + GANGWAY)
    corner = (out_x[None, :] > 0) & (out_y[:, None] > 0)
    from_tunnel = np.abs(along % APART - APART / 2)
    aisle = ~corner & (from_tunnel > (APART - AISLE) / 2)
    aisle |= corner & (np.abs(out_x[None, :] - out_y[:, None]) <= AISLE / 2 + 1)
    aisle |= corner & (along < length + AISLE)
    row = (out % 2 == 0) & (out > 0)
    free = seats & (row | aisle | gangway)

    concourse = (out > stand + 1) & (out <= stand + 1 + CONCOURSE)
    free |= concourse
    through = ~corner & (along < length - TUNNEL) & (out > LOWER + GANGWAY) & (out <= stand + 1)
    free &= ~through | (from_tunnel > TUNNEL / 2 + 1)
    free |= through & (from_tunnel < TUNNEL / 2)
    # The corners have no tunnel: their aisle is as wide as one, and open at its upper end.
    free |= corner & (np.abs(out_x[None, :] - out_y[:, None]) < TUNNEL / 2) & (out > LOWER) & (out <= stand + 1)

    plan = np.where(free, 255, 0).astype(np.uint8)[..., None].repeat(3, axis=2)
    gate = ~corner & (out > stand + 1 + CONCOURSE) & (out < around)
    gate &= np.abs(along % (length / 2) - length / 4) < GATE / 2
    sides = {"north": ~beside & (y < 0)[:, None], "south": ~beside & (y > 0)[:, None]}
    sides |= {"east": beside & (x > 0)[None, :], "west": beside & (x < 0)[None, :]}
    for name, side in sides.items():
        plan[gate & side] = EXITS[name]
    return plan


def main() -> None:
    Image.fromarray(stadium()).save("stadium.png", optimize=True)
    colours = {name: "#{:02x}{:02x}{:02x}".format(*colour) for name, colour in EXITS.items()}
    world = read_plan("stadium.png", scale=CELL, exits=colours).world()
    block = shapely.box(80.0, 150.0, 110.0, 190.0)
    fans = tropel.Group("fans", count=2000, region=block)
    sim = tropel.Simulation(world, fans, planning=tropel.PathPlans(), local=tropel.Lattice(), dt=0.29, seed=1)
    summary = sim.run(until="empty", limit=600)
    print(f"{world.walkable.area:.0f} m² to walk on; one block of 2000 is out after {summary.evacuation_time:.0f} s")
    print(summary.exits)


if __name__ == "__main__":
    main()
