"""Roads that are too sharp for those who ride on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tropel.checks.finding import Finding, at
from tropel.contracts.offers import OfferedMobility, OfferedRoad, offered

if TYPE_CHECKING:
    from tropel.simulation import Simulation


def check_roads(sim: Simulation) -> Iterator[Finding]:
    """Bends that are sharper than the fan of the character that shall follow them."""
    for name, planner, model in zip(sim.groups, sim.layers.planners, sim.layers.models, strict=False):
        for road in offered([planner], OfferedRoad):
            for rider in offered([model], OfferedMobility):
                worst = int(np.argmax(np.abs(road.curvature)))
                bend = float(np.abs(road.curvature[worst]))
                if bend > rider.sharpest:
                    place = road.points[worst]
                    yield Finding(
                        code="road_too_sharp",
                        message=f"the road of group '{name}' bends with a radius of {1.0 / bend:.3g} m at {at(place)}, "
                        f"but '{rider.character}' needs {1.0 / rider.sharpest:.3g} m at {rider.speed:g} m/s",
                        remedy="move the points there apart, or let a slower character ride",
                        group=name,
                        place=tuple(float(c) for c in place),
                    )
