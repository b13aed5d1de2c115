"""The same bits on any number of threads."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pytest
import shapely
from busy_scenes import plaza, swarm

import tropel
from tropel._kernels.compile import SMALL_RUN
from two_threads import needs_two_threads

STEPS = 12


def run(build: Callable[..., tropel.Simulation], threads: int) -> tuple[tropel.Simulation, set[int]]:
    """Run for some steps; returns the numbers of threads that kernels were told to use."""
    sim = build(threads=threads)
    used: set[int] = set()
    sim.run(until=STEPS * 0.1, progress=lambda _: used.add(numba.get_num_threads()))
    return sim, used


@needs_two_threads
@pytest.mark.parametrize("build", [plaza, swarm])
def test_one_thread_and_two_give_the_same_hash(build: Callable[..., tropel.Simulation]) -> None:
    alone, used_alone = run(build, 1)
    together, used_together = run(build, 2)
    assert used_alone == {1}
    assert used_together == {2}
    assert len(together.agents) > SMALL_RUN
    assert len(together.population.departures()["id"]) > 0
    assert together.state_hash() == alone.state_hash()


@needs_two_threads
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
