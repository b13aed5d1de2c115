"""Where newcomers may stand: asked of their model, which declares one of these."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.spawn import spawn_positions
from tropel.world import World

Floats = NDArray[np.float64]


class Placing:
    """Anywhere in a region where a body has room. Models whose agents stand in special places declare another one."""

    #: The radius that bodies have, whatever they were to have [m]; None where each has its own.
    body: float | None = None

    def settle(self, world: World, positions: Floats, *, who: str, taken: Floats, taken_radius: Floats) -> Floats:
        """Where those stand who were given these positions, which are inside of the world."""
        return positions

    def find(
        self,
        world: World,
        *,
        radius: Floats,
        region: Any,
        seed: int,
        who: str,
        taken: Floats,
        taken_radius: Floats,
        first_draw: int,
        partial: bool,
    ) -> Floats:
        """Places in a region for bodies with these radii, clear of those `taken`; fewer are enough if `partial`."""
        return spawn_positions(
            world,
            count=len(radius),
            radius=radius,
            region=region,
            seed=seed,
            who=who,
            taken=taken,
            taken_radius=taken_radius,
            first_draw=first_draw,
            partial=partial,
        )


ANYWHERE = Placing()
