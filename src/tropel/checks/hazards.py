"""Hazards with a setting that has no effect: they should be planned around, and no planner does so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tropel.checks.finding import Finding, named
from tropel.contracts.offers import OfferedField, offered
from tropel.events.ground import AddHazard

if TYPE_CHECKING:
    from tropel.simulation import Simulation


def check_hazards(sim: Simulation) -> Iterator[Finding]:
    """Hazards that should be planned around although no planner has fields on cells, in which they block cells."""
    here = [name for name in sim.world.hazards.names if sim.world.hazards[name].replan]
    later = [event.name for _, _, event in sim.events if isinstance(event, AddHazard) and event.replan]
    wanted = [*here, *later]
    if not wanted or offered(sim.planners.values(), OfferedField):
        return
    planners = sorted({type(planner).__name__ for planner in sim.planners.values()})
    several = len(wanted) > 1
    yield Finding(
        code="hazard_not_planned",
        message=f"{named('hazard', wanted)} {'have' if several else 'has'} replan = true, but no planner here plans "
        f"around hazards ({', '.join(planners)})",
        remedy="plan with FlowField, Harmonic or PathPlans, or leave replan out: people keep away from hazards anyway",
        severity="note",
    )
