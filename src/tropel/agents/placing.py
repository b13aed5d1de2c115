"""Where newcomers may stand; each model declares one of these."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.spawn import spawn_positions
from tropel.world import World

Floats = NDArray[np.float64]


class Placing:
    """Anywhere in a region where a body has room. Models with agents in special places declare another one."""

    #: The radius that all bodies get, whatever was declared for them [m]; None if each has its own.
    body: float | None = None

    def settle(self, world: World, positions: Floats, *, who: str, taken: Floats, taken_radius: Floats) -> Floats:
        """Where agents with these given positions, which are inside the world, will stand."""
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
