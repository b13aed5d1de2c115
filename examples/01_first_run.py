"""A hall with one exit, recorded for PedPy and JuPedSim's tools."""

import shapely

import tropel

hall = shapely.box(0, 0, 20, 12)
world = tropel.World(hall, exits={"east": shapely.box(19, 5, 20, 7)})
visitors = tropel.Group("visitors", count=80, region=shapely.box(1, 1, 10, 11), desired_speed=tropel.Normal(1.34, 0.26))
sim = tropel.Simulation(
    world, visitors, planning=tropel.Direct(), environment=tropel.Grid(), local=tropel.Seek(), dt=0.05, seed=7
)
summary = sim.run(until="empty", limit=300, record="hall.sqlite")
print(f"{summary.evacuated} people left within {summary.evacuation_time:.1f} s")
