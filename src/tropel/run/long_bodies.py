"""Agents whose bodies are more than a disc: what they look like, by group, and which of their columns show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tropel.contracts.offers import OfferedMobility

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: Columns that show how such a body is, besides place and heading.
SHOWN = ("lean", "steer", "crank", "fallen")


def long_bodies(sim: Simulation) -> dict[str, dict[str, Any]]:
    """Kind, length, width and radius of the wheels [m] of the bodies in each group that has such bodies."""
    found = {}
    for name, model in zip(sim.groups, sim.layers.models, strict=False):
        for offer in model.offers():
            if isinstance(offer, OfferedMobility):
                found[name] = {
                    "kind": offer.kind,
                    "length": offer.length,
                    "width": offer.width,
                    "wheel": offer.wheel,
                }
    return found


def shown_columns(sim: Simulation) -> tuple[str, ...]:
    """The columns that a recording should hold in addition; none if all bodies are discs."""
    return tuple(name for name in SHOWN if name in sim.agents.columns) if long_bodies(sim) else ()
