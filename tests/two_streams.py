"""Two streams of people that meet in a corridor, for tests of models that should let them pass."""

from __future__ import annotations

from typing import Any

import shapely

from tropel import Group, Normal, Simulation, World

PEOPLE = Normal(1.34, 0.26, low=0.5)  #: walking speeds [m/s]


def counterflow(against: int, *, seed: int, local: Any = None, limit: float = 240.0) -> tuple[float, int]:
    """When the last of 50 people has crossed a corridor of 2 m against others, and how many of all never arrive."""
    area = shapely.union_all([shapely.box(0, 0, 8, 8), shapely.box(8, 3, 18, 5), shapely.box(18, 0, 26, 8)])
    world = World(area, exits={"east": shapely.box(25, 0, 26, 8), "west": shapely.box(0, 0, 1, 8)})
    groups = [Group("right", count=50, region=shapely.box(1.2, 0, 7.8, 8), goal="east", desired_speed=PEOPLE)]
    if against:
        west = shapely.box(18.2, 0, 24.8, 8)
        groups.append(Group("left", count=against, region=west, goal="west", desired_speed=PEOPLE))
    sim = Simulation(world, groups, local=local, seed=seed, threads=1)
    while (sim.agents.group == 0).any() and sim.time < limit:
        sim.step()
    return sim.time, len(sim.agents)
