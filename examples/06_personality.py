"""People with a character: presets by name, a mixture, fatigue, adrenaline, and a function called every second."""

import numpy as np
import shapely

import tropel
from tropel import events

world = tropel.World(
    shapely.box(0, 0, 40, 16),
    exits={"east": shapely.box(39, 5, 40, 11)},
    obstacles={f"pillar {k}": tropel.Obstacle(radius=0.6, position=(22, 2 + 4 * k)) for k in range(4)},
    regions={"hall": shapely.box(1, 1, 14, 15)},
)
groups = [
    tropel.Group("visitors", count=40, region="hall", personality={"cautious": 0.7, "hasty": 0.3}),
    tropel.Group("porters", count=10, region="hall", personality="heavy", parameters={"courage": 0.8}),
]
sim = tropel.Simulation(world, groups, local=tropel.Dynamical(d0_base=0.6), dt=0.1, seed=6)

sim.at(2.0, events.Tire(over=60.0, speed=0.7, group="porters"))
sim.at(8.0, events.Alarm(fade=10.0, group="visitors"))
sim.at(8.0, events.Drift(name="sense_radius", to=5.0, over=5.0))


def note_speed(sim):
    visitors = sim.agents.group == sim.groups.index("visitors")
    speeds.append(float(np.mean(sim.agents.desired_speed[visitors])) if visitors.any() else 0.0)


speeds = []
sim.every(1.0, note_speed)
summary = sim.run(until="empty", limit=120)
print(f"{summary.evacuated} people left within {summary.evacuation_time:.0f} s")
print(f"visitors wanted to walk at {speeds[7]:.2f} m/s before the alarm and at {speeds[8]:.2f} m/s right after it")
