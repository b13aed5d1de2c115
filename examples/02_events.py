"""Things that change while people walk: a door, an obstacle, newcomers, a hurry, and an event of one's own."""

import shapely

import tropel
from tropel import events

world = tropel.World(
    "POLYGON ((0 0, 30 0, 30 10, 0 10, 0 0))",
    exits={"west": shapely.box(0, 4, 1, 6), "east": shapely.box(29, 4, 30, 6)},
    doors={"gate": tropel.Door([(20, 0), (20, 10)], open=True)},
    regions={"middle": shapely.box(8, 1, 18, 9)},
    obstacles={"cart": tropel.Obstacle(radius=0.6, motion=tropel.Waypoints(points=[(5, 2), (5, 8)], speed=0.5))},
)
crowd = tropel.Group("crowd", count=60, region="middle", delay=tropel.Uniform(0.0, 5.0))
sim = tropel.Simulation(
    world, [crowd, tropel.Source("crowd", rate=1.0, region="middle", total=20, goal="west")], seed=1
)

sim.at(1.0, events.CloseDoor(door="gate"))
sim.at(1.0, events.SetGoal(goal="west"))
sim.at(10.0, events.AddObstacle(name="barrier", radius=0.5, position=(3.0, 5.0)))
sim.at(12.0, events.SetParameter(name="desired_speed", value=tropel.Normal(1.8, 0.2), group="crowd"))
sim.at(15.0, lambda sim: print(f"t = {sim.time:.0f} s: {len(sim.agents)} people are still inside"))

print(sim.run(until="empty", limit=120).exits)
