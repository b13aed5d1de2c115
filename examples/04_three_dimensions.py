"""Flyers in a box follow a target on a circle between balls; 3D runs are recorded as Parquet."""

import tropel

world = tropel.World.box(
    (0, 0, 0),
    (20, 20, 10),
    obstacles={"ball": tropel.Obstacle(radius=2.0, position=(10, 10, 5))},
    targets={"lantern": tropel.Target(motion=tropel.Orbit(center=(10, 10, 5), radius=7, period=25))},
)
flyers = tropel.Group("flyers", count=100, goal="lantern", radius=0.15, sense_radius=2.0, desired_speed=2.0)
sim = tropel.Simulation(world, flyers, dt=0.05, seed=2)
sim.run(until=15.0, record="swarm.parquet")
with tropel.read_trajectory("swarm.parquet") as trajectory:
    print(trajectory, trajectory.frame(100).position.mean(axis=0))
