"""A tour: visitors follow a guide through two rooms; when the guide is called away, one of them leads on."""

import shapely

import tropel
from tropel import events

world = tropel.World(
    shapely.box(0, 0, 24, 10),
    walls=[[(12, 0), (12, 6)]],
    exits={"out": shapely.box(23, 1, 24, 3)},
    rooms={"gallery": shapely.box(13, 6, 19, 10)},
    targets={"statue": (6.0, 8.0)},
)
tour = tropel.Group(
    "tour",
    count=12,
    region=shapely.box(1, 1, 6, 5),
    goal="statue",
    then=["gallery", (20.0, 5.0), "out"],
    leader="central",
)
sim = tropel.Simulation(world, tour, seed=7)
sim.at(8.0, events.SetLeader(group="tour", leader="nearest"))
sim.at(14.0, lambda sim: sim.remove_agents(ids=[int(sim.population.bonds.own_leader[0])]))
summary = sim.run(until="empty", limit=120.0)
assert len(sim.agents) == 0
print(f"{sim.population.departed} of 12 left; the last one after {summary.evacuation_time:.0f} s")
