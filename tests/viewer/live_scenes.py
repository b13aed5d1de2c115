"""Small simulations for the viewer's tests, and a way to wait for one that runs in its thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from tropel import FlowField, Group, Hazard, Obstacle, Seek, Simulation, Target, World
from tropel.viewer.live.run import FASTEST, LiveRun

#: The walls between the two rooms stand here; the door is in the middle of them [m].
DOOR = (10.0, 5.0)


def two_rooms(seed: int = 3, *, count: int = 40, title: str = "two rooms") -> Simulation:
    """Two rooms with a door between them; everybody is in the left one, the exit is in the right."""
    world = World(
        [(0.0, 0.0), (20.0, 0.0), (20.0, 10.0), (0.0, 10.0)],
        walls=[[(10.0, 0.0), (10.0, 4.0)], [(10.0, 6.0), (10.0, 10.0)]],
        doors={"middle": [(10.0, 4.0), (10.0, 6.0)]},
        exits={"east": [(19.0, 3.0), (20.0, 3.0), (20.0, 7.0), (19.0, 7.0)]},
        regions={"left": [(1.0, 1.0), (9.0, 1.0), (9.0, 9.0), (1.0, 9.0)]},
        obstacles={"pillar": Obstacle(radius=0.5, position=(14.0, 5.0))},
        targets={"corner": Target(position=(2.0, 2.0))},
    )
    world.set_door("middle", open=True)
    group = Group("people", count=count, region="left", radius=0.2, desired_speed=1.3)
    return Simulation(world, group, planning=FlowField(), local=Seek(), dt=0.1, seed=seed, threads=1, title=title)


def box(seed: int = 1) -> Simulation:
    """Space, with somebody flying in it."""
    world = World.box(
        (0.0, 0.0, 0.0),
        (10.0, 8.0, 6.0),
        obstacles={"rock": Obstacle(radius=1.0, position=(5.0, 4.0, 3.0))},
        hazards={"storm": Hazard(inner=0.5, position=(8.0, 6.0, 4.0))},
        targets={"nest": Target(position=(9.0, 4.0, 3.0))},
    )
    return Simulation(world, Group("birds", count=20, goal="nest"), dt=0.1, seed=seed, threads=1)


@contextmanager
def living(sim: Simulation, **options: Any) -> Iterator[LiveRun]:
    """A live run, as fast as it goes unless told otherwise, that is stopped at the end."""
    live = LiveRun(sim, **{"speed": FASTEST, **options})
    live.start()
    try:
        yield live
    finally:
        live.stop()
        live.join(60.0)
        assert not live.alive


def wait_for_step(live: LiveRun, step: int, *, seconds: float = 240.0) -> None:
    """Until the simulation has come to a step; the first one may have kernels to compile."""
    deadline = perf_counter() + seconds
    while live.ask(lambda sim: sim.step_number, seconds=seconds) < step:
        assert live.alive, "the simulation's thread is not there any more"
        assert not live.error, live.error
        assert perf_counter() < deadline, f"step {step} was not reached within {seconds} s"
