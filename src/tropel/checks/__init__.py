"""Checks of a simulation that can be built but will not do what its author wants.

`check_simulation` looks at a simulation before it runs: people without a path to their goals, exits that never open, a
walkable area in several pieces, absurd numbers, regions outside the building. `standstill` looks at one that runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tropel.checks.area import check_area, check_regions
from tropel.checks.finding import Finding, FindingWarning, tell
from tropel.checks.goals import check_goals
from tropel.checks.hazards import check_hazards
from tropel.checks.later import scheduled_changes
from tropel.checks.numbers import check_numbers
from tropel.checks.reach import check_reach
from tropel.checks.roads import check_roads
from tropel.checks.squads import check_squads
from tropel.checks.stages import check_stages
from tropel.checks.tasks import check_tasks

if TYPE_CHECKING:
    from tropel.simulation import Simulation

__all__ = ["Finding", "FindingWarning", "check_simulation", "tell"]


def check_simulation(sim: Simulation) -> list[Finding]:
    """Everything that looks wrong in a simulation as it is now; warnings come before notes."""
    if not np.isfinite(sim.agents.position).all():
        return []  # the next step says who is nowhere
    later = scheduled_changes(sim)
    found = [
        *check_goals(sim, later),
        *check_stages(sim),
        *check_squads(sim, later),
        *check_tasks(sim),
        *check_reach(sim, later),
        *check_area(sim),
        *check_regions(sim),
        *check_numbers(sim, later),
        *check_hazards(sim),
        *check_roads(sim),
    ]
    return sorted(found, key=lambda finding: finding.severity != "warning")
