"""ORCA on the circle of the RVO2 library: time per agent and step, compared with RVO2 and with a search tree alone.

Agents stand on a circle, about as close as they can, and walk to the opposite point, with the parameters of RVO2's
example "Circle". Whole steps count: planning, sensing, steering, moving. RVO2's time is that of `do_step`, without
setting preferred velocities, on one thread. It is measured where its Python package `pyrvo` is installed, which no
extra requires. Its wheel is not compiled for speed (docs/measurements.md). The search tree is scipy's: build it, and
find the ten nearest of each agent.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numba
import numpy as np
from scipy.spatial import cKDTree

from tropel._kernels.compile import threads_restored
from tropel.agents.groups import Group
from tropel.agents.state import Floats
from tropel.bench.result import BenchResult, Progress
from tropel.contracts import Guidance, Moment, Planner
from tropel.local.orca.model import ORCA
from tropel.simulation import Simulation
from tropel.world import World

AGENTS = 10_000
ROUNDS = 9
#: Steps before the first round, and in each round.
_SETTLE, _STEPS = 20, 4

# The parameters of RVO2's example "Circle".
RADIUS, SENSE_RADIUS, NEIGHBOURS, HORIZON, TOP_SPEED, DT = 1.5, 15.0, 10, 10.0, 2.0, 0.25
#: Distance of neighbours on the circle; the example has 5 m, with only six others within reach [m].
SPACING = 2.05 * RADIUS

OURS, RVO2, TREE = "ORCA", "RVO2", "cKDTree, nearest only"


class ToOpposite(Planner):
    """Straight to the opposite point of the circle, slower in the last metre."""

    def __init__(self, start: Floats) -> None:
        self._goals = -start

    def direct(self, moment: Moment, out: Guidance) -> None:
        rows, state = moment.members, moment.state
        out.directions[rows] = wanted(self._goals[state.id[rows]], state.position[rows])


def wanted(goals: Floats, position: Floats) -> Floats:
    """The preferred velocities."""
    way = goals - position
    return np.asarray(way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1.0))


def circle(agents: int) -> Floats:
    """Where agents begin."""
    ring, bearing = SPACING * agents / (2.0 * math.pi), 2.0 * math.pi * np.arange(agents) / agents
    return ring * np.column_stack([np.cos(bearing), np.sin(bearing)])


def simulation(start: Floats) -> Simulation:
    """Ours, before the first step."""
    edge = float(np.abs(start).max()) + 50.0
    crowd = Group("swappers", positions=start, radius=RADIUS, desired_speed=1.0, sense_radius=SENSE_RADIUS, goal="none")
    model = ORCA(time_horizon=HORIZON, time_horizon_obstacles=HORIZON, max_neighbours=NEIGHBOURS, speed_limit=TOP_SPEED)
    return Simulation(
        World(bounds=(-edge, -edge, edge, edge)), crowd, planning=ToOpposite(start), local=model, dt=DT, threads=1,
        watch_collisions=False,
    )  # fmt: skip


class Rvo2Crowd:
    """The same agents in RVO2."""

    def __init__(self, start: Floats) -> None:
        self._sim = importlib.import_module("pyrvo").RVOSimulator()
        self._sim.set_time_step(DT)
        self._sim.set_agent_defaults(SENSE_RADIUS, NEIGHBOURS, HORIZON, HORIZON, RADIUS, TOP_SPEED)
        self._goals = -start
        for place in start:
            self._sim.add_agent((float(place[0]), float(place[1])))

    @property
    def position(self) -> Floats:
        return np.array([self._sim.get_agent_position(k).to_tuple() for k in range(len(self._goals))])

    def choose(self) -> None:
        """Set the preferred velocities, which is not timed."""
        for k, (vx, vy) in enumerate(wanted(self._goals, self.position)):
            self._sim.set_agent_pref_velocity(k, (float(vx), float(vy)))

    def step(self) -> None:
        self._sim.do_step()


@dataclass(kw_only=True)
class _Timed:
    """Something that is measured in every round, and its shortest time in each [s]."""

    model: str
    threads: int
    step: Callable[[], Any]
    before: Callable[[], Any] = lambda: None
    rounds: list[float] = field(default_factory=list)

    def round(self) -> None:
        best = math.inf
        for _ in range(_STEPS):
            self.before()
            begun = time.perf_counter()
            self.step()
            best = min(best, time.perf_counter() - begun)
        self.rounds.append(best)

    def row(self, agents: int) -> dict[str, Any]:
        return {
            "model": self.model,
            "agents": agents,
            "threads": self.threads,
            "us_per_agent_step": min(self.rounds) / agents * 1e6,
        }


def measure(progress: Progress, agents: int = AGENTS, rounds: int = ROUNDS) -> BenchResult:
    """Time all in turn, in every round."""
    result = BenchResult(name="orca")
    start = circle(agents)
    progress("agents begin to walk", 0, rounds + 1)
    with threads_restored():
        sim = simulation(start)
        for _ in range(_SETTLE):
            sim.step()
        place = sim.agents.position.copy()
        most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
        timed = [
            _Timed(model=OURS, threads=n, step=sim.step, before=partial(setattr, sim, "threads", n))
            for n in sorted({1, most})
        ]
        timed.append(_Timed(model=TREE, threads=1, step=lambda: cKDTree(place).query(place, k=NEIGHBOURS + 1)))
        try:
            theirs = Rvo2Crowd(start)
            timed.append(_Timed(model=RVO2, threads=1, step=theirs.step, before=theirs.choose))
        except ImportError:
            result.notes.append("RVO2 is not measured: its package is not installed (pip install pyrvo)")
        for done in range(rounds):
            progress("all in turn", done + 1, rounds + 1)
            for one in timed:
                one.round()
        progress("done", rounds + 1, rounds + 1)
    result.rows.extend(one.row(agents) for one in timed)
    ours = np.array(timed[0].rounds)
    for name, model in (("ckdtree", TREE), ("rvo2", RVO2)):
        for one in timed:
            if one.model == model:
                result.ratios[f"{name}_over_ours_circle"] = float(np.median(np.array(one.rounds) / ours))
    return result
