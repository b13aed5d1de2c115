"""Scenes in which everything happens at once, and a command line that runs them in another process.

python busy_scenes.py SCENE THREADS FROM TO [CHECKPOINT_IN] [CHECKPOINT_OUT]     ("-" for none)
"""

from __future__ import annotations

import math
import sys
from typing import Any

import shapely

from tropel import (
    Direct,
    Door,
    Grid,
    Group,
    Hazard,
    Normal,
    Obstacle,
    Orbit,
    Seek,
    Simulation,
    Source,
    Target,
    Uniform,
    Waypoints,
    World,
    events,
)

DT = 0.05
MANY = 3_200


def to_and_fro(time: float) -> tuple[float, float]:
    return 14.0 + 3.0 * math.sin(time), 10.5


def up_and_down(time: float) -> tuple[float, float, float]:
    return 7.0, 7.0, 4.0 + 2.0 * math.cos(time)


def schedule_more(sim: Simulation) -> None:
    """A function as an event, which itself schedules an event."""
    sim.at(sim.time + 0.1, events.SetParameter(name="desired_speed", value=Uniform(0.8, 1.2), group="visitors"))


def slow_down(sim: Simulation) -> None:
    sim.set_parameter("desired_speed", 0.9, group="walkers")


def hall(*, threads: int | None = None, seed: int = 5, dt: float = DT, **layers: Any) -> Simulation:
    """2D: doors, exits, obstacles and targets that move in every way, sources, delays, distributions, all events."""
    world = World(
        shapely.box(0, 0, 22, 14) - shapely.box(9, 5, 11, 8),
        walls=[shapely.LineString([(4, 9), (8, 11)])],
        exits={"east": shapely.box(21, 5, 22, 8), "west": shapely.box(0, 1, 1, 3)},
        doors={"north": Door([(11, 8), (11, 14)]), "south": Door([(11, 0), (11, 5)], open=True)},
        regions={"lobby": shapely.box(1, 4, 8, 8), "lounge": shapely.box(13, 9, 21, 13)},
        obstacles={
            "pillar": Obstacle(radius=0.5, position=(15, 4)),
            "robot": Obstacle(radius=0.4, motion=Waypoints(points=((12, 2), (20, 2), (20, 4)), speed=0.9)),
            "cart": Obstacle(radius=0.4, motion=Orbit(center=(5, 5), radius=1.5, period=9.0)),
            "swing": Obstacle(radius=0.3, motion=to_and_fro),
        },
        targets={
            "stall": Target(position=(3, 12), radius=0.5),
            "desk": Target(position=(18, 11), radius=0.8, absorbs=True),
            "guide": Target(motion=to_and_fro, radius=0.4),
        },
        hazards={
            "stove": Hazard(inner=0.3, position=(3.0, 6.0), growth=0.15, largest=1.0, kind="fire"),
            "leak": Hazard(inner=0.4, motion=Orbit(center=(17, 7), radius=1.0, period=7.0), kind="gas", deadly=False),
        },
    )
    agents = [
        Group("walkers", count=60, desired_speed=Normal(1.3, 0.2, low=0.5), delay=Uniform(0.0, 4.0)),
        Group("visitors", count=40, goal="nearest target", radius=Uniform(0.15, 0.25), sense_radius=Uniform(1.0, 3.0)),
        Group("followers", count=20, region="lobby", goal="guide", radius=0.15),
        Source(
            "walkers", rate=8.0, region="lobby", total=30, arrivals="random", desired_speed=Normal(1.2, 0.3, low=0.4)
        ),
        Source("latecomers", rate=3.0, region="lounge", begin=1.0, end=4.0, goal="west", delay=Uniform(0.0, 1.0)),
    ]
    given = {"planning": Direct(), "environment": Grid(), "local": Seek(), **layers}
    return Simulation(world, agents, dt=dt, seed=seed, threads=threads, **given)


def busy_hall(*, threads: int | None = None, seed: int = 5) -> Simulation:
    sim = hall(threads=threads, seed=seed)
    for time, event in (
        (0.3, events.OpenDoor(door="north")),
        (0.7, events.CloseExit(exit="west")),
        (1.0, events.AddObstacle(name="barrier", radius=0.4, position=(19, 6))),
        (1.0, events.MoveObstacle(name="pillar", position=(15.5, 4.5))),
        (1.1, events.AddHazard(name="blast", inner=1.0, position=(16, 11), type="explosion", until=3.1)),
        (1.3, events.SetParameter(name="desired_speed", value=Normal(1.0, 0.1, low=0.5), group="visitors")),
        (1.5, schedule_more),
        (1.8, events.AddTarget(name="late", motion=Orbit(center=(16, 3), radius=1.0, period=5.0))),
        (2.0, events.SetGoal(goal="late", group="followers")),
        (2.1, events.CloseDoor(door="south")),
        # From here on after the checkpoint of most tests.
        (2.6, events.RemoveObstacle(name="barrier")),
        (2.7, events.GrowHazard(name="blast", inner=1.5, outer=4.0)),
        (2.7, events.MoveHazard(name="leak", position=(17.0, 5.0))),
        (2.8, events.AddObstacle(name="drone", radius=0.3, motion=Orbit(center=(5, 11), radius=1.0, period=4.0))),
        (3.0, events.AddAgents(group="visitors", count=7, region="lounge", goal="stall", delay=Uniform(0.0, 1.0))),
        (3.2, slow_down),
        (3.4, events.RemoveHazard(name="stove")),
        (3.5, events.OpenExit(exit="west")),
        (3.6, events.MoveTarget(name="guide", position=(2.0, 2.0))),
        (4.0, events.RemoveAgents(group="visitors", region="lobby")),
        (4.2, events.OpenDoor(door="south")),
        (4.5, events.SetGoal(goal="nearest exit", group="followers")),
    ):
        sim.at(time, event)
    return sim


def busy_box(*, threads: int | None = None, seed: int = 5) -> Simulation:
    """3D: the same in a box, as far as there is a third dimension to it."""
    world = World.box(
        (0, 0, 0),
        (10, 10, 8),
        obstacles={
            "ball": Obstacle(radius=0.8, position=(5, 5, 4)),
            "comet": Obstacle(radius=0.4, motion=Orbit(center=(5, 5, 2), radius=2.5, period=6.0)),
            "lift": Obstacle(radius=0.4, motion=Waypoints(points=((2, 8, 1), (2, 8, 7)), speed=1.2)),
        },
        targets={
            "nest": Target(position=(8.5, 8.5, 6.5), radius=0.8, absorbs=True),
            "lure": Target(motion=up_and_down, radius=0.4),
        },
        regions={"floor": ((0, 0, 0), (10, 10, 3))},
        hazards={"spark": Hazard(inner=0.5, position=(6.0, 5.0, 2.0), growth=0.3)},
    )
    agents = [
        Group("swarm", count=60, goal="nest", desired_speed=Normal(1.5, 0.3, low=0.5), delay=Uniform(0.0, 3.0)),
        Group("hunters", count=30, goal="lure", radius=Uniform(0.1, 0.2), sense_radius=Uniform(0.8, 2.0)),
        Source("swarm", rate=10.0, region="floor", arrivals="random", total=25, goal="nest"),
    ]
    sim = Simulation(world, agents, dt=DT, seed=seed, threads=threads)
    for time, event in (
        (0.8, events.AddObstacle(name="rock", radius=0.5, position=(7, 3, 3))),
        (1.6, events.SetParameter(name="desired_speed", value=Uniform(0.9, 1.4), group="hunters")),
        (2.2, events.MoveTarget(name="lure", position=(2.0, 2.0, 2.0))),
        (2.9, events.RemoveObstacle(name="rock")),
        (3.4, events.AddAgents(group="hunters", count=5, region="floor", goal="lure")),
        (4.1, events.SetGoal(goal="nearest target")),
    ):
        sim.at(time, event)
    return sim


def plaza(*, threads: int | None = None, seed: int = 3) -> Simulation:
    """2D, so many agents that all threads are used."""
    world = World(
        shapely.box(0, 0, 80, 50) - shapely.box(30, 20, 40, 30),
        exits={"east": shapely.box(79, 20, 80, 30), "north": shapely.box(10, 49, 20, 50)},
        obstacles={
            "pillar": Obstacle(radius=1.0, position=(60, 25)),
            "cart": Obstacle(radius=0.5, motion=Orbit(center=(20, 20), radius=5, period=10)),
        },
        hazards={"fire": Hazard(inner=1.0, position=(50, 25), growth=0.5)},
    )
    crowd = Group("crowd", count=MANY, radius=Uniform(0.15, 0.22), sense_radius=Uniform(1.0, 3.0))
    source = Source("crowd", rate=30.0, region=shapely.box(50, 5, 60, 15), arrivals="random")
    return Simulation(world, [crowd, source], dt=0.1, seed=seed, threads=threads)


def swarm(*, threads: int | None = None, seed: int = 3) -> Simulation:
    """3D, so many agents that all threads are used."""
    world = World.box(
        (0, 0, 0),
        (20, 20, 15),
        obstacles={"ball": Obstacle(radius=2.0, position=(10, 10, 7))},
        targets={"nest": Target(position=(18, 18, 13), radius=3.0, absorbs=True)},
    )
    group = Group("swarm", count=MANY, goal="nest", radius=0.1, sense_radius=Uniform(0.6, 1.6))
    return Simulation(world, group, dt=0.1, seed=seed, threads=threads)


SCENES = {"hall": busy_hall, "box": busy_box}
CROWDS = {"plaza": plaza, "swarm": swarm}


def steps(sim: Simulation, until: int) -> Simulation:
    """Step on to a step number."""
    while sim.step_number < until:
        sim.step()
    return sim


def main(scene: str, threads: str, first: str, last: str, checkpoint_in: str = "-", checkpoint_out: str = "-") -> None:
    sim = (SCENES | CROWDS)[scene](threads=int(threads))
    if checkpoint_in != "-":
        sim.restore(checkpoint_in)
    assert sim.step_number == int(first)
    steps(sim, int(last))
    if checkpoint_out != "-":
        sim.save(checkpoint_out)
    print(sim.state_hash())


if __name__ == "__main__":
    main(*sys.argv[1:])
