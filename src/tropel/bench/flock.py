"""Flocks at constant density: whole steps of a simulation, compared with a bare loop, NumPy and cKDTree, and Mesa.

Boids start at random positions in an open square (for Mesa: on a torus) with random directions and about 15 neighbours.
Flocks clump, so boids get more and more neighbours. Each measurement is therefore a short burst of steps from a new
random start. In a round, all sides make their bursts one after another. The best step of each is shown; ratios are
medians over the rounds.

Our side is `Simulation.step`: sorting, the three basic rules, moving, checking exits. The bare loop does the same
sorting (`sense`) and then only sums over neighbours. The times of rules and sums alone, without the sorting, are shown
too. Times per pair are per neighbour within the sense radius, not per candidate.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numba
import numpy as np

from tropel._kernels.compile import threads_restored, use_threads
from tropel.agents.groups import Group
from tropel.agents.state import Floats
from tropel.bench.flock_peers import (
    PUBLIC_SETTINGS,
    SUMS,
    NumpyFlock,
    PublicSetting,
    bare_sums,
    mesa_seconds,
    mesa_version,
    sequential_row,
    sequential_seconds,
)
from tropel.bench.result import BenchResult, Progress, Row
from tropel.errors import ModelError
from tropel.local.flocking.model import Flocking
from tropel.simulation import Simulation
from tropel.world import World

_NEIGHBOURS = 15.0
_SENSE_RADIUS = 1.0
_CLOSE = 0.5
_TOP_SPEED = 1.0
_DT = 0.1
_RULES = {"separation": 1.0, "cohesion": 0.6, "alignment": 1.2, "max_force": 4.0, "least_speed": 0.5}
#: What is switched on besides the three basic rules: parameters of the model, and the number of groups.
_EXTRAS: dict[str, tuple[dict[str, Any], int]] = {
    "angle": ({"blind_angle": math.pi / 2}, 1),
    "nearest 7": ({"nearest": 7}, 1),
    "two groups that join": ({}, 2),
    "two groups that avoid": ({"join": [], "avoid": ["flock 0", "flock 1"]}, 2),
}


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of all measurements."""

    agents: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    steps: int = 4  #: in a burst, after one unmeasured step
    rounds: int = 5
    numpy: int = 100_000  #: agents in the NumPy flock
    mesa: tuple[int, ...] = (1_000, 10_000)
    mesa_steps: int = 3
    extras: int = 100_000  #: agents that see by angle, by number or by group
    public: tuple[PublicSetting, ...] = PUBLIC_SETTINGS


def measure(progress: Progress, sizes: Sizes | None = None) -> BenchResult:
    """Measure everything, in rounds in which the sides take turns."""
    chosen = sizes or Sizes()
    result = BenchResult(name="flock")
    total = len(chosen.agents) + chosen.rounds + len(_EXTRAS) + 1 + len(chosen.mesa) + len(chosen.public)
    done = 0

    def tell(what: str) -> None:
        nonlocal done
        progress(what, done, total)
        done += 1

    with threads_restored():
        contests = []
        for agents in chosen.agents:
            tell(f"{agents:,} boids")
            contests.append(_Contest(agents))
        for number in range(chosen.rounds):
            tell(f"round {number + 1}")
            for contest in contests:
                contest.round(chosen.steps)
        for contest in contests:
            result.rows.extend(contest.rows())
            result.ratios.update(contest.ratios())
        result.ratios.update(_flatness(contests))
        contests.clear()
        _add_numpy(chosen, result, tell)
        for agents in chosen.mesa:
            _add_mesa(agents, chosen, result, tell)
        if importlib.util.find_spec("mesa") is None:
            result.notes.append("Mesa is not installed; pip install 'tropel[bench]' installs its boids.")
        result.more["on top of the three rules"] = _extras(chosen, tell)
        result.more["public comparison, one after the other"] = []
        for setting in chosen.public:
            tell(f"sequential, {setting.agents:,} birds")
            result.more["public comparison, one after the other"].append(sequential_row(setting))
    progress("done", total, total)
    result.notes.append(
        "Whole steps from random starts, before flocks clump. Per pair: per neighbour within the sense radius. The "
        "bare loop: the same cell list, only sums over neighbours. NumPy runs on one thread; ratios compare with ours "
        "on all threads unless they are named otherwise. The public comparison: 100 whole steps, in which flocks clump."
    )
    return result


class Boids:
    """Our flock, which can be reset to a random start."""

    def __init__(self, agents: int, *, threads: int, groups: int = 1, periodic: bool = False, **more: Any) -> None:
        self.side = math.sqrt(agents * math.pi / _NEIGHBOURS) * _SENSE_RADIUS
        self.rng = np.random.default_rng(agents)
        world = World.box((0.0, 0.0), (self.side, self.side), periodic=periodic, open=not periodic)
        model = Flocking(separation_distance=_CLOSE, **(_RULES | more))
        flocks = [
            Group(
                f"flock {k}",
                positions=self.rng.uniform(0.0, self.side, (agents // groups, 2)),
                sense_radius=_SENSE_RADIUS,
                desired_speed=_TOP_SPEED,
                radius=1e-3,
                goal="none",
            )
            for k in range(groups)
        ]
        self.sim = Simulation(world, flocks, local=model, dt=_DT, seed=1, threads=threads)

    def scatter(self) -> None:
        """New random positions and directions, at three quarters of the top speed."""
        agents = self.sim.agents
        agents.position[:] = self.rng.uniform(0.0, self.side, agents.position.shape)
        angle = self.rng.uniform(0.0, 2.0 * math.pi, len(agents))
        agents.heading[:] = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        agents.velocity[:] = 0.75 * _TOP_SPEED * agents.heading

    def neighbours(self) -> float:
        """Mean number of neighbours within the sense radius."""
        return len(self.sim.sense().csr().indices) / len(self.sim.agents)


@dataclass
class _Best:
    """The best time of each round [s]."""

    rounds: list[float] = field(default_factory=list)

    def burst(self, steps: int, step: Callable[[], None]) -> None:
        self.rounds.append(min(_seconds(step) for _ in range(steps)))

    @property
    def best(self) -> float:
        return min(self.rounds)


def _seconds(work: Callable[[], None]) -> float:
    begun = perf_counter()
    work()
    return perf_counter() - begun


class _Contest:
    """Our flock and the bare loop with the same number of agents, on one thread and on all."""

    def __init__(self, agents: int) -> None:
        self.agents = agents
        self.threads = sorted({1, int(numba.config.NUMBA_NUM_THREADS)})  # type: ignore[attr-defined]
        self.ours = {count: _Best() for count in self.threads}
        self.rules = {count: _Best() for count in self.threads}
        self.bare = {count: _Best() for count in self.threads}
        self.bare_rules = {count: _Best() for count in self.threads}
        self.boids = Boids(agents, threads=1)
        self.sums = np.empty((agents, SUMS))
        self.boids.scatter()
        self.neighbours = self.boids.neighbours()
        # Compilation and the first allocation happen here; a simulation pays for them once, not in every step.
        for _ in range(2):
            self.boids.sim.step()
            self._bare()

    def round(self, steps: int) -> None:
        """A burst on each number of threads, each from a new random start."""
        for count in self.threads:
            self.boids.scatter()
            self.boids.sim.threads = count
            self.boids.sim.step()
            self._burst(count, steps)

    def _burst(self, threads: int, steps: int) -> None:
        sim = self.boids.sim
        whole, local, bare, loop = (np.empty(steps) for _ in range(4))
        for k in range(steps):
            before = sim.timing.seconds["local"]
            whole[k] = _seconds(sim.step)
            local[k] = sim.timing.seconds["local"] - before
            use_threads(threads, self.agents)
            bare[k], loop[k] = self._bare()
        for kept, found in ((self.ours, whole), (self.rules, local), (self.bare, bare), (self.bare_rules, loop)):
            kept[threads].rounds.append(float(found.min()))

    def _bare(self) -> tuple[float, float]:
        """Time of sorting plus the bare loop, and of the loop alone [s]."""
        sim = self.boids.sim
        begun = perf_counter()
        cells = sim.moment().cells.cell_list
        middle = perf_counter()
        bare_sums(cells, _CLOSE, self.sums)
        end = perf_counter()
        return end - begun, end - middle

    def rows(self) -> list[Row]:
        per_agent = 1e9 / self.agents
        return [
            {
                "agents": self.agents,
                "threads": count,
                "neighbours": self.neighbours,
                "step_ms": 1e3 * self.ours[count].best,
                "ns_per_agent_step": per_agent * self.ours[count].best,
                "ns_per_pair": per_agent * self.ours[count].best / self.neighbours,
                "rules_ns_per_agent": per_agent * self.rules[count].best,
                "bare_ns_per_agent": per_agent * self.bare[count].best,
                "bare_loop_ns_per_agent": per_agent * self.bare_rules[count].best,
                "bare_over_ours": _median_ratio(self.bare[count], self.ours[count]),
            }
            for count in self.threads
        ]

    def ratios(self) -> dict[str, float]:
        """The bare loop over ours on all threads: whole steps, and rules alone; a million also against 0.08 s."""
        most, label = max(self.threads), _short(self.agents)
        found = {
            f"reference_over_ours_{label}": _median_ratio(self.bare[most], self.ours[most]),
            f"reference_over_ours_{label}_rules_alone": _median_ratio(self.bare_rules[most], self.rules[most]),
        }
        if self.agents == 1_000_000:
            found["80ms_over_ours_1m"] = 0.08 / self.ours[most].best
        return found


def _median_ratio(theirs: _Best, ours: _Best) -> float:
    return float(np.median(np.array(theirs.rounds) / np.array(ours.rounds)))


def _flatness(contests: list[_Contest]) -> dict[str, float]:
    """Smallest over largest cost per agent, on one thread and on all: 1 is flat."""
    if len(contests) < 2:
        return {}
    name = f"flat_{_short(contests[0].agents)}_to_{_short(contests[-1].agents)}"
    found = {}
    for threads in contests[0].threads:
        costs = np.array([np.array(contest.ours[threads].rounds) / contest.agents for contest in contests])
        ratio = float(np.median(costs.min(axis=0) / costs.max(axis=0)))
        found[name if threads == 1 else f"{name}_{threads}_threads"] = ratio
    return found


def _add_numpy(sizes: Sizes, result: BenchResult, tell: Callable[[str], None]) -> None:
    """The NumPy flock compared with ours on all threads and on one, from the same start; paths must be the same."""
    tell(f"{sizes.numpy:,} boids compared with NumPy")
    boids = Boids(sizes.numpy, threads=1)
    other = NumpyFlock(sense_radius=_SENSE_RADIUS, separation_distance=_CLOSE, top_speed=_TOP_SPEED, dt=_DT, **_RULES)
    most = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    ours = {threads: _Best() for threads in sorted({1, most})}
    theirs = _Best()
    boids.scatter()
    boids.sim.step()
    for _ in range(max(sizes.rounds // 2, 1)):
        for threads, best in ours.items():
            boids.scatter()
            other.place(boids.sim.agents.position, boids.sim.agents.velocity)
            boids.sim.threads = threads
            best.burst(sizes.steps, boids.sim.step)
        theirs.burst(sizes.steps, other.step)
        check_same_flight(boids.sim.agents.position, other.position, moved=_DT * _TOP_SPEED * sizes.steps)
    result.rows.append(
        {
            "agents": sizes.numpy,
            "threads": 1,
            "neighbours": other.pairs / sizes.numpy,
            "step_ms": 1e3 * theirs.best,
            "ns_per_agent_step": 1e9 * theirs.best / sizes.numpy,
            "ns_per_pair": 1e9 * theirs.best / other.pairs,
            "what": "NumPy and cKDTree",
        }
    )
    name = f"numpy_over_ours_{_short(sizes.numpy)}"
    result.ratios[name] = _median_ratio(theirs, ours[most])
    result.ratios[f"{name}_1_thread"] = _median_ratio(theirs, ours[1])


def check_same_flight(ours: Floats, theirs: Floats, *, moved: float) -> None:
    """The same rules must move boids along the same paths in both programs; otherwise times mean nothing."""
    apart = float(np.linalg.norm(ours - theirs, axis=1).max())
    if not apart <= 1e-6 * moved:
        raise ModelError(
            f"boids that flew {moved:.3g} m in NumPy are up to {apart:.3g} m away from where the same rules moved them "
            f"here; a comparison of different motions means nothing"
        )


def _add_mesa(agents: int, sizes: Sizes, result: BenchResult, tell: Callable[[str], None]) -> None:
    """Mesa's example compared with ours on one thread, both on a torus with about 15 neighbours: our flock, and the one
    that follows Mesa's own rules, agent by agent."""
    tell(f"{agents:,} boids compared with Mesa")
    side = 100.0
    setting = PublicSetting(agents=agents, side=side, vision=side * math.sqrt(_NEIGHBOURS / math.pi / agents))
    theirs = mesa_seconds(setting, steps=sizes.mesa_steps)
    boids = Boids(agents, threads=1, periodic=True)
    ours = _Best()
    for _ in range(sizes.rounds):
        boids.scatter()
        boids.sim.step()
        ours.burst(10 * sizes.steps, boids.sim.step)
    boids.scatter()
    row: Row = {
        "agents": agents,
        "threads": 1,
        "neighbours": boids.neighbours(),
        "step_ms": 1e3 * ours.best,
        "ns_per_agent_step": 1e9 * ours.best / agents,
    }
    result.rows.append(row)
    if theirs is None:
        return
    seconds = {"step_ms": 1e3 * theirs, "ns_per_agent_step": 1e9 * theirs / agents}
    result.rows.append({"agents": agents, "threads": 1, **seconds, "what": f"Mesa {mesa_version()}"})
    name = f"mesa_over_ours_{_short(agents)}"
    result.ratios[name] = theirs / ours.best
    result.ratios[f"{name}_by_its_rules"] = theirs / sequential_seconds(setting, steps=10 * sizes.mesa_steps)


def _extras(sizes: Sizes, tell: Callable[[str], None]) -> list[Row]:
    """The cost of angle, number of neighbours and groups on top of the three rules, on one thread."""
    plain = Boids(sizes.extras, threads=1)
    rows: list[Row] = []
    for name, (parameters, groups) in _EXTRAS.items():
        tell(name)
        more = Boids(sizes.extras, threads=1, groups=groups, **parameters)
        times = {"plain": _Best(), name: _Best()}
        for boids in (plain, more):
            boids.scatter()
            boids.sim.step()
        for _ in range(max(sizes.rounds - 2, 1)):
            for best, boids in zip(times.values(), (plain, more), strict=True):
                boids.scatter()
                boids.sim.step()
                best.burst(sizes.steps, boids.sim.step)
        rows.append(
            {
                "with": name,
                "agents": sizes.extras,
                "threads": 1,
                "ns_per_agent_step": 1e9 * times[name].best / sizes.extras,
                "ns_on_top": 1e9 * (times[name].best - times["plain"].best) / sizes.extras,
                "times_the_three_rules": _median_ratio(times[name], times["plain"]),
            }
        )
    return rows


def _short(count: int) -> str:
    return f"{count // 1_000_000}m" if count % 1_000_000 == 0 else f"{count // 1000}k"
