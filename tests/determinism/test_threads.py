"""The same bits on any number of threads."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import shapely

import tropel
from tropel._kernels.compile import SMALL_RUN

COUNT = 3_200
STEPS = 12


def plaza(*, threads: int) -> tropel.Simulation:
    world = tropel.World(
        shapely.box(0, 0, 80, 50) - shapely.box(30, 20, 40, 30),
        exits={"east": shapely.box(79, 20, 80, 30), "north": shapely.box(10, 49, 20, 50)},
        obstacles={
            "pillar": tropel.Obstacle(radius=1.0, position=(60, 25)),
            "cart": tropel.Obstacle(radius=0.5, motion=tropel.Orbit(center=(20, 20), radius=5, period=10)),
        },
    )
    crowd = tropel.Group("crowd", count=COUNT, radius=tropel.Uniform(0.15, 0.22), sense_radius=tropel.Uniform(1.0, 3.0))
    source = tropel.Source("crowd", rate=30.0, region=shapely.box(50, 5, 60, 15), arrivals="random")
    return tropel.Simulation(world, [crowd, source], dt=0.1, seed=3, threads=threads)


def swarm(*, threads: int) -> tropel.Simulation:
    world = tropel.World.box(
        (0, 0, 0),
        (20, 20, 15),
        obstacles={"ball": tropel.Obstacle(radius=2.0, position=(10, 10, 7))},
        targets={"nest": tropel.Target(position=(18, 18, 13), radius=3.0, absorbs=True)},
    )
    group = tropel.Group("swarm", count=COUNT, goal="nest", radius=0.1, sense_radius=tropel.Uniform(0.6, 1.6))
    return tropel.Simulation(world, group, dt=0.1, seed=3, threads=threads)


def run(build: object, threads: int) -> tuple[tropel.Simulation, set[int]]:
    assert callable(build)
    sim = build(threads=threads)
    used: set[int] = set()
    sim.run(until=STEPS * 0.1, progress=lambda _: used.add(numba.get_num_threads()))
    return sim, used


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
@pytest.mark.parametrize("build", [plaza, swarm])
def test_one_thread_and_two_give_the_same_hash(build: object) -> None:
    alone, used_alone = run(build, 1)
    together, used_together = run(build, 2)
    assert used_alone == {1}
    assert used_together == {2}
    assert len(together.agents) > SMALL_RUN
    assert len(together.population.departures()["id"]) > 0
    assert together.state_hash() == alone.state_hash()


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
def test_two_threads_really_share_a_step() -> None:
    """Kernels that are told to use two threads do: otherwise comparing them with one would prove nothing."""

    @numba.njit(parallel=True)
    def who_did_it(work, out):
        for k in numba.prange(out.size):
            value = 0.0
            for _ in range(work):
                value = np.sin(value + k)
            out[k] = numba.get_thread_id() + 0.0 * value

    sim = plaza(threads=2)
    sim.step()
    out = np.zeros(64)
    # On a loaded machine the second thread may come too late for short work.
    for work in (1_000, 10_000, 100_000, 1_000_000):
        who_did_it(work, out)
        if len(np.unique(out)) == 2:
            break
    assert len(np.unique(out)) == 2


def test_few_agents_use_one_thread_and_get_the_same_as_on_many() -> None:
    world = tropel.World(shapely.box(0, 0, 10, 10), exits={"out": shapely.box(9, 4, 10, 6)})
    hashes = []
    for threads in (1, 2, 64):
        sim = tropel.Simulation(world, tropel.Group("few", count=30), threads=threads, seed=1)
        sim.run(until=1.0)
        assert numba.get_num_threads() == 1
        hashes.append(sim.state_hash())
    assert len(set(hashes)) == 1
