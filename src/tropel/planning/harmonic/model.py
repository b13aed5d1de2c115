"""Harmonic planning: follow the gradient of a function without local maxima, LAYERS section 6 and A.2.

On the raster of the world, u is 1 at the target and each free cell is the mean of the cells beside it. There are two
kinds of walls:

"fixed", as in the paper (there the potential 1 - u is 0 at the target and 1 on walls): u is 0 on walls and on the
border. Streams keep away from walls and follow the middle of passages; wide ways are preferred to narrow ones.

"reflecting": walls do not count (zero normal derivative). Then u would be 1 everywhere, so a little of it is lost on
the way: (laplace - 1/decay_length²) u = 0. This is the chance that a walker who wanders at random arrives before it
tires. Far from the target -log u grows by 1 per decay_length along the shortest way, with corners rounded to that
scale; the shorter the decay length, the straighter the ways. With a very long one 1 - u is proportional to the mean
time of arrival, the other useful choice here, where streams divide among doors as a fluid would. Streams run along
walls and do not avoid them; a cell always has a neighbour better by a factor of 1 + (cell/decay_length)²/(2 dim).

Hazards that planners avoid (`replan`) block their inner disc like a wall. Their outer radius changes nothing: a cost of
paths would be a loss per cell, which is not harmonic, and streams divide around the disc anyway.

u falls by exp(-pi) per width of a passage and soon is smaller than any double, so what is solved for and kept is log u.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.foundation.arguments import Length, checked_arguments
from tropel.planning.fields.field import GridField
from tropel.planning.fields.planner import Clearance, FieldPlanner
from tropel.planning.harmonic.field import LONGEST_DECAY, SHORTEST_DECAY, check_walls, solve_harmonic
from tropel.planning.harmonic.vectors import unit_vectors
from tropel.world.raster import Raster


class Harmonic(FieldPlanner):
    """Follow a harmonic field to the goal.

    `walls` is "fixed" (streams in the middle of passages) or "reflecting" (short ways along walls, with corners rounded
    to the `decay_length` [m]); the others are those of every field: `cell` [m], `clearance` [m], `line_of_sight`,
    `cache`.
    """

    @checked_arguments
    def __init__(
        self,
        *,
        walls: str = "fixed",
        decay_length: Length = 5.0,
        cell: Length = 0.2,
        clearance: Clearance = 0.2,
        line_of_sight: bool = True,
        cache: bool = True,
    ) -> None:
        super().__init__(cell=cell, clearance=clearance, line_of_sight=line_of_sight, cache=cache)
        check_walls(walls)
        if not SHORTEST_DECAY * cell <= decay_length <= LONGEST_DECAY * cell:
            raise ParameterError(
                f"Harmonic: decay_length must be a length from {SHORTEST_DECAY:g} to {LONGEST_DECAY:g} cells "
                f"({SHORTEST_DECAY * cell:g} to {LONGEST_DECAY * cell:g} m), not {decay_length!r} m"
            )
        self.walls = walls
        self.decay_length = float(decay_length)

    def solve(self, raster: Raster, goal: NDArray[np.bool_]) -> GridField:
        """The field that leads to the cells where `goal` is true."""
        log_u = solve_harmonic(raster.free, goal, walls=self.walls, decay_length=self.decay_length / raster.cell)
        vectors = unit_vectors(log_u, goal, mirrored=self.walls == "reflecting")
        return GridField(raster=raster, goal=goal, value=log_u, vectors=vectors)

    @property
    def parameters(self) -> str:
        own = f"walls={self.walls!r}" + (f", decay_length={self.decay_length!r}" if self.walls != "fixed" else "")
        return f"{super().parameters}, {own}"
