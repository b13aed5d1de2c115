"""Finding all neighbours from scratch: the uniform grid next to scipy's cKDTree.

Agents are spread at random over a square or cube, with about 15 neighbours each within the sense radius. Our side is
`sense` and `csr`: sorting the agents into cells and listing the neighbours of each. The other side is building the tree
and `query_pairs` into an array, which finds each pair once, while ours lists it for both agents. Every round has a few
sets of new positions. One side works through them after the other, so that both find their own memory in the caches, as
they would step after step. The best time counts. Times per pair are per listed neighbour for both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np

from tropel._kernels.compile import threads_restored
from tropel.agents.state import AgentState, Floats
from tropel.bench.result import BenchResult, Progress
from tropel.broad_phase import CellGrid
from tropel.contracts import Moment
from tropel.environment import Grid
from tropel.errors import ModelError
from tropel.world import World

_NEIGHBOURS = 15.0
_SENSE_RADIUS = 1.0
#: Sets of positions in a round.
_SETS = 3


@dataclass(frozen=True, kw_only=True)
class Case:
    """A number of agents in 2 or 3 dimensions, and the number of rounds; `label` names the ratio."""

    label: str
    agents: int
    dim: int
    rounds: int


CASES = (
    Case(label="10k", agents=10_000, dim=2, rounds=10),
    Case(label="100k", agents=100_000, dim=2, rounds=4),
    Case(label="1m", agents=1_000_000, dim=2, rounds=2),
    Case(label="3d_100k", agents=100_000, dim=3, rounds=3),
)


def measure(progress: Progress, cases: Sequence[Case] = CASES) -> BenchResult:
    """Measure every case on one thread and on all threads."""
    result = BenchResult(name="neighbours")
    total = sum(case.rounds for case in cases)
    done = 0
    with threads_restored():
        for case in cases:
            what = f"{case.agents:,} agents in {case.dim}D"
            contest = _Contest(case)
            for _ in range(case.rounds):
                progress(what, done, total)
                contest.round()
                done += 1
            progress(what, done, total)
            result.rows.extend(contest.rows())
            result.ratios[f"ckdtree_over_ours_{case.label}"] = result.rows[-1]["ckdtree_over_ours"]
    return result


class _Contest:
    """One case: keeps the best time of each side."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.threads = sorted({1, numba.config.NUMBA_NUM_THREADS})  # type: ignore[attr-defined]
        ball = math.pi if case.dim == 2 else 4.0 / 3.0 * math.pi
        self.edge = _SENSE_RADIUS * (case.agents * ball / _NEIGHBOURS) ** (1.0 / case.dim)
        high = [self.edge] * case.dim
        self.world = World(bounds=(0.0, 0.0, *high)) if case.dim == 2 else World.box([0.0] * 3, high)
        self.state = AgentState(case.dim)
        self.state.add(case.agents, {"sense_radius": _SENSE_RADIUS})
        self.rng = np.random.default_rng(case.agents)
        self.grids = {count: (Grid(), CellGrid()) for count in self.threads}
        self.ours = dict.fromkeys(self.threads, math.inf)
        self.theirs = math.inf
        self.listed = 0
        # Compilation and the first allocation happen here; a simulation pays for them once, not in every step.
        self.sets = [np.empty_like(self.state.position) for _ in range(_SETS)]
        self._scatter()
        for count in self.threads:
            self._sense(self.sets[0], count)

    def _scatter(self) -> None:
        for positions in self.sets:
            positions[:] = self.edge * self.rng.random(positions.shape)

    def _sense(self, positions: Floats, threads: int) -> int:
        numba.set_num_threads(threads)
        self.state.columns["position"] = positions
        grid, cells = self.grids[threads]
        cells.begin(self.state, self.world)
        return len(grid.sense(Moment.of(self.state, self.world, cells=cells)).csr().indices)

    def round(self) -> None:
        self._scatter()
        listed: list[int] = []
        for count in self.threads:
            listed = []
            for positions in self.sets:
                begun = time.perf_counter()
                listed.append(self._sense(positions, count))
                self.ours[count] = min(self.ours[count], time.perf_counter() - begun)
        for positions, found in zip(self.sets, listed, strict=True):
            begun = time.perf_counter()
            pairs = len(_pairs_by_tree(positions))
            self.theirs = min(self.theirs, time.perf_counter() - begun)
            if 2 * pairs != found:
                raise ModelError(
                    f"the grid lists {found} neighbours and cKDTree finds {pairs} pairs among {self.case.agents} "
                    f"agents in {self.case.dim}D; a benchmark of wrong results means nothing"
                )
        self.listed = listed[-1]

    def rows(self) -> list[dict[str, float | int]]:
        agents = self.case.agents
        return [
            {
                "dim": self.case.dim,
                "agents": agents,
                "neighbours": self.listed / agents,
                "threads": count,
                "ours_ns_per_agent": self.ours[count] / agents * 1e9,
                "ours_ns_per_pair": self.ours[count] / self.listed * 1e9,
                "ckdtree_ns_per_agent": self.theirs / agents * 1e9,
                "ckdtree_ns_per_pair": self.theirs / self.listed * 1e9,
                "ckdtree_over_ours": self.theirs / self.ours[count],
            }
            for count in self.threads
        ]


def _pairs_by_tree(position: Floats) -> np.ndarray:
    from scipy.spatial import cKDTree

    pairs: np.ndarray = cKDTree(position).query_pairs(_SENSE_RADIUS, output_type="ndarray")
    return pairs
