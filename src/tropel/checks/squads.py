"""Missions that cannot be fulfilled: rooms to search or to hold that squads cannot walk to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tropel.agents.squads.rooms import NONE
from tropel.agents.squads.verbs import Hold, Search
from tropel.checks.finding import Finding
from tropel.checks.later import Later
from tropel.world.places import Place, find_place

if TYPE_CHECKING:
    from tropel.simulation import Simulation


def check_squads(sim: Simulation, later: Later) -> Iterator[Finding]:
    """Rooms in missions that nobody can walk to now, unless something will open the way."""
    squads = sim.population.squads
    if squads is None or later.doors or later.obstacles or later.function is not None:
        return
    squads.floor.keep_up()
    for number in squads.told:
        rows = squads.living(sim.agents, number)
        led = rows[sim.agents.agenda[rows] != NONE]
        if not len(led):
            continue
        walk = squads.floor.walk(sim.agents.position[led[0]]).reshape(-1)
        for place in _rooms(sim, int(sim.agents.agenda[led[0]])):
            parts = squads.floor.parts(place)
            if not np.isfinite(walk[parts]).any():
                why = "no way leads there" if len(parts) else "there is no spot in it where somebody could stand"
                yield Finding(
                    code="room_out_of_reach",
                    message=f"squad '{sim.groups[number]}' is told to search or hold the {place}, but {why}",
                    remedy="open a door to it, or leave it out",
                    group=sim.groups[number],
                )


def _rooms(sim: Simulation, agenda: int) -> list[Place]:
    """The rooms that a list of stages names, each once."""
    found: dict[Place, None] = {}
    for stage in sim.population.agendas[agenda].stages:
        if isinstance(stage, Hold | Search):
            found |= dict.fromkeys(find_place(sim.world, told, "mission") for told in stage.places())
    return list(found)
