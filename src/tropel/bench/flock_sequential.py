"""The flocking model of the public comparisons of agent-based frameworks, in its public settings, beside Mesa's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from tropel.agents.groups import Group
from tropel.analysis import polarisation
from tropel.bench.peer_mesa import MesaFlock
from tropel.bench.result import Row
from tropel.errors import MissingExtraError
from tropel.local.sequential_flock import SequentialFlock
from tropel.simulation import Simulation
from tropel.world import World


@dataclass(frozen=True, kw_only=True)
class PublicSetting:
    """So many birds that see as far as `vision` on a square torus, with a speed of 1 and steps of 1."""

    agents: int
    side: float
    vision: float
    steps: int = 100
    mesa_steps: int = 0  #: how many steps Mesa is given; 0 for none


PUBLIC_SETTINGS = (
    PublicSetting(agents=400, side=150.0, vision=15.0, mesa_steps=20),
    PublicSetting(agents=80_000, side=400.0, vision=5.0),
)


def sequential_flock(setting: PublicSetting, *, seed: int = 1) -> Simulation:
    """Birds at random places that fly in random directions at first."""
    world = World.box((0.0, 0.0), (setting.side, setting.side), periodic=True)
    places = np.random.default_rng(seed).uniform(0.0, setting.side, (setting.agents, 2))
    birds = Group("birds", positions=places, sense_radius=setting.vision, desired_speed=1.0, radius=1e-3, goal="none")
    return Simulation(world, birds, local=SequentialFlock(), dt=1.0, seed=seed)


def sequential_row(setting: PublicSetting) -> Row:
    """Times of a setting: the best of three runs where that takes no time; steps count whole."""
    # Kernels are compiled here.
    sequential_flock(setting).step()
    seconds = []
    for _ in range(3 if setting.agents <= 1000 else 1):
        sim = sequential_flock(setting)
        begin = _neighbours(sim)
        begun = perf_counter()
        for _ in range(setting.steps):
            sim.step()
        seconds.append(perf_counter() - begun)
    best = min(seconds)
    row: Row = {
        "agents": setting.agents,
        "torus": f"{setting.side:g}²",
        "vision": setting.vision,
        "steps": setting.steps,
        "seconds": best,
        "ns_per_agent_step": 1e9 * best / setting.steps / setting.agents,
        "neighbours_first": begin,
        "neighbours_last": _neighbours(sim),
        "polarisation_last": polarisation(sim.agents.heading),
    }
    theirs = mesa_seconds(setting, steps=setting.mesa_steps)
    if theirs is not None:
        row["mesa_ns_per_agent_step"] = 1e9 * theirs / setting.agents
        row["mesa_over_ours"] = theirs * setting.steps / best
    return row


def sequential_seconds(setting: PublicSetting, *, steps: int) -> float:
    """Time of the best of some steps."""
    return _best_step(sequential_flock(setting).step, steps)


def mesa_seconds(setting: PublicSetting, *, steps: int) -> float | None:
    """Time of the best of some of Mesa's steps; None where Mesa is not installed or not asked for."""
    if steps == 0:
        return None
    try:
        flock = MesaFlock(agents=setting.agents, side=setting.side, vision=setting.vision)
    except MissingExtraError:
        return None
    return _best_step(flock.step, steps)


def _best_step(step: Callable[[], None], steps: int) -> float:
    """The least time of some steps after the first [s]."""
    step()
    seconds = []
    for _ in range(steps):
        begun = perf_counter()
        step()
        seconds.append(perf_counter() - begun)
    return min(seconds)


def _neighbours(sim: Simulation) -> float:
    return len(sim.sense().csr().indices) / len(sim.agents)
