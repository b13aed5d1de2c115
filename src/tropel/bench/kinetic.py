"""Keeping neighbourhoods up to date: `Kinetic` next to the grid, which finds everything anew, and to scipy.

People (or birds) at one per square metre (cubic metre) wander at 1.3 m/s within their square (cube). In every step all
sides get the same positions: ours repairs the triangulation and updates the near lists, the grid sorts and lists
everybody anew, scipy's cKDTree finds all pairs, and scipy's Delaunay triangulates anew. Everything is on one thread.
Sorting agents into cells counts for the grid in every step, and for ours in the steps that fill lists from cells. Times
are means over the steps, after a few steps that fill lists and caches: lists are filled now and then, all at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial import Delaunay, cKDTree

from tropel._kernels.arrays import as_ragged
from tropel._kernels.compile import threads_restored
from tropel.agents.groups import Group
from tropel.agents.state import AgentState, Floats
from tropel.bench.result import BenchResult, Progress
from tropel.broad_phase import CellGrid
from tropel.contracts import Model, Moment
from tropel.environment.auto import Crowd, grid_lists_take, kinetic_lists_take
from tropel.environment.grid import Grid
from tropel.environment.kinetic.model import Kinetic
from tropel.errors import ModelError
from tropel.local.flocking.model import Flocking
from tropel.local.seek import Seek
from tropel.simulation import Simulation
from tropel.world import World

_SPEED = 1.3
_SETTLE = 4
#: Standard deviation of how much people turn in a second [rad].
_TURN = 1.0


@dataclass(frozen=True, kw_only=True)
class Case:
    """A crowd; `label` names its ratios."""

    label: str
    agents: int
    dt: float
    radius: float
    dim: int = 2
    moving: float = 1.0  #: share of the agents that move
    steps: int = 12
    peers: bool = True  #: whether scipy is measured too


CASES = (
    Case(label="1k_dt01", agents=1_000, dt=0.1, radius=3.0, steps=40),
    Case(label="1k_dt001", agents=1_000, dt=0.01, radius=3.0, steps=40),
    Case(label="10k", agents=10_000, dt=0.1, radius=3.0, steps=32),
    Case(label="dt005", agents=10_000, dt=0.05, radius=2.0, steps=32),
    Case(label="dt002", agents=10_000, dt=0.02, radius=3.0, steps=40),
    Case(label="dt001", agents=10_000, dt=0.01, radius=3.0, steps=60),
    Case(label="r10_dt001", agents=10_000, dt=0.01, radius=10.0, steps=40, peers=False),
    Case(label="idle", agents=10_000, dt=0.1, radius=3.0, moving=0.01, steps=40, peers=False),
    Case(label="100k", agents=100_000, dt=0.1, radius=3.0, steps=14),
    Case(label="100k_dt001", agents=100_000, dt=0.01, radius=3.0, steps=14, peers=False),
    # A displacement of 0.03 of the spacing in each step.
    Case(label="3d_1k", agents=1_000, dt=0.03 / _SPEED, radius=1.5, dim=3, steps=40),
    Case(label="3d_10k", agents=10_000, dt=0.03 / _SPEED, radius=1.5, dim=3),
    Case(label="3d_idle", agents=10_000, dt=0.03 / _SPEED, radius=1.5, dim=3, moving=0.01, steps=24, peers=False),
    Case(label="3d_100k", agents=100_000, dt=0.03 / _SPEED, radius=1.5, dim=3, steps=6, peers=False),
)


@dataclass(frozen=True, kw_only=True)
class WholeSteps:
    """A simulation of such a crowd, on the grid and with Kinetic."""

    label: str
    model: Callable[[], Model]
    agents: int
    radius: float
    dt: float = 0.05
    moving: float = 1.0
    steps: int = 12


SIMULATIONS = (
    WholeSteps(label="seek", model=Seek, agents=10_000, radius=3.0),
    WholeSteps(label="flocking", model=Flocking, agents=10_000, radius=3.0),
    WholeSteps(label="seek_idle", model=Seek, agents=10_000, radius=3.0, moving=0.01),
)

#: Cases of one density and time step whose cost per agent should not depend on how many there are.
_FLAT = ("1k_dt01", "10k", "100k")


def measure(
    progress: Progress, cases: Sequence[Case] = CASES, simulations: Sequence[WholeSteps] = SIMULATIONS
) -> BenchResult:
    """Measure every case."""
    result = BenchResult(name="kinetic")
    total = sum(steps + _SETTLE for steps in [each.steps for each in cases] + [each.steps for each in simulations])
    done = 0
    rows: dict[str, dict[str, Any]] = {}
    with threads_restored(1):
        for case in cases:
            contest = _Contest(case)
            for step in range(case.steps + _SETTLE):
                progress(f"{case.agents:,} agents in {case.dim}D, dt {case.dt:.3g} s", done, total)
                contest.step(timed=step >= _SETTLE)
                done += 1
            rows[case.label] = contest.row()
            result.rows.append(rows[case.label])
            result.ratios.update(contest.ratios())
        for told in simulations:
            progress(f"whole steps, {told.label}", done, total)
            result.ratios[f"grid_over_ours_step_{told.label}"] = _compare_steps(told)
            done += told.steps + _SETTLE
    result.ratios["auto_is_right"] = sum(map(_auto_is_right, cases, result.rows)) / max(len(cases), 1)
    if all(label in rows for label in _FLAT):
        for name, column in (("triangulation", "triangulation_ns"), ("total", "ours_ns")):
            costs = [rows[label][column] for label in _FLAT]
            result.ratios[f"flat_1k_to_100k_{name}"] = min(costs) / max(costs)
    progress("done", total, total)
    result.notes.append(
        "grid_over_ours compares whole near lists; scipy_over_ours compares the triangulation alone with a new one; "
        "grid_over_ours_step compares whole steps of a simulation; auto_is_right is the share of cases in which Auto "
        "takes what is faster, or no more than a tenth slower."
    )
    return result


def _auto_is_right(case: Case, row: dict[str, Any]) -> bool:
    """Whether the rule of `Auto` takes what was faster, or hardly slower."""
    crowd = Crowd(
        agents=case.agents, dim=case.dim, density=1.0, radius=case.radius, move=_SPEED * case.dt, moving=case.moving
    )
    takes_grid = grid_lists_take(crowd) <= kinetic_lists_take(crowd)
    taken, other = (row["grid_ns"], row["ours_ns"]) if takes_grid else (row["ours_ns"], row["grid_ns"])
    return bool(taken <= 1.1 * other)


def _compare_steps(told: WholeSteps) -> float:
    """Time of whole steps on the grid over that with Kinetic, one after the other in turns."""
    edge = math.sqrt(told.agents)
    place = edge * np.random.default_rng(told.agents).random((told.agents, 2))
    movers = max(round(told.moving * told.agents), 1)
    sims = []
    for environment in (Grid(), Kinetic()):
        world = World.box((0.0, 0.0), (edge, edge), open=True, targets={"far": (1e4, 0.5 * edge)})
        groups = [Group("go", positions=place[:movers], goal="far", sense_radius=told.radius)]
        if movers < told.agents:
            groups.append(Group("stay", positions=place[movers:], goal="none", sense_radius=told.radius))
        sims.append(
            Simulation(
                world,
                groups,
                environment=environment,
                local=told.model(),
                dt=told.dt,
                threads=1,
                watch_collisions=False,
            )
        )
    times = _Times()
    for step in range(told.steps + _SETTLE):
        for name, sim in zip(("grid", "ours"), sims, strict=True):
            times.take(name, sim.step, timed=step >= _SETTLE)
    return times.seconds["grid"] / times.seconds["ours"]


@dataclass
class _Times:
    """Seconds that each thing took, in all timed steps together."""

    seconds: dict[str, float] = field(default_factory=dict)

    def take(self, what: str, function: Callable[[], Any], *, timed: bool) -> Any:
        begun = time.thread_time()
        outcome = function()
        if timed:
            self.add(what, time.thread_time() - begun)
        return outcome

    def add(self, what: str, seconds: float) -> None:
        self.seconds[what] = self.seconds.get(what, 0.0) + seconds


class _Contest:
    """One case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.edge = case.agents ** (1.0 / case.dim)
        high = [self.edge] * case.dim
        self.world = World(bounds=(0.0, 0.0, *high)) if case.dim == 2 else World.box([0.0] * 3, high)
        self.rng = np.random.default_rng(case.agents)
        self.state = AgentState(case.dim)
        self.state.add(case.agents, {"sense_radius": case.radius})
        self.state.position[:] = self.edge * self.rng.random((case.agents, case.dim))
        self.heading = self.rng.normal(size=(case.agents, case.dim))
        self.kinetic, self.grid, self.cells = Kinetic(), Grid(), CellGrid()
        self.times = _Times()
        self.report = self.kinetic.last

    def step(self, *, timed: bool) -> None:
        self._wander()
        take, state = self.times.take, self.state
        moment = self._moment()
        sorted_before = self.times.seconds.get("sort", 0.0)
        take("sort", lambda: moment.cells.cell_list, timed=timed)
        near = take("triangulation", lambda: self.kinetic.sense(moment), timed=timed)
        ours = take("lists", lambda: near.lists(state.sense_radius), timed=timed)
        if timed and self.kinetic.work.filled:
            self.times.add("own sort", self.times.seconds["sort"] - sorted_before)
        self.report = self.kinetic.last
        grid = take("grid", lambda: self.grid.sense(moment).csr(), timed=timed)
        if len(grid.indices) != (listed := int(as_ragged(ours).length.sum())):
            raise ModelError(
                f"'{self.case.label}': the grid lists {len(grid.indices)} neighbours and Kinetic {listed}; "
                f"a benchmark of wrong results means nothing"
            )
        if self.case.peers:
            place = state.position
            take("tree", lambda: cKDTree(place).query_pairs(self.case.radius, output_type="ndarray"), timed=timed)
            take("scipy", lambda: Delaunay(place), timed=timed)

    def _moment(self) -> Moment:
        self.cells.begin(self.state, self.world)
        return Moment.of(self.state, self.world, cells=self.cells)

    def _wander(self) -> None:
        """Move everybody who moves, and turn them a little; they turn back at the border."""
        case, place = self.case, self.state.position
        movers = slice(0, max(round(case.moving * case.agents), 1))
        heading = self.heading[movers]
        heading += self.rng.normal(0.0, _TURN * math.sqrt(case.dt), heading.shape)
        heading /= np.linalg.norm(heading, axis=1, keepdims=True)
        ahead = place[movers] + _SPEED * case.dt * heading
        heading[(ahead < 0.0) | (ahead > self.edge)] *= -1.0
        moved: Floats = place.copy()
        moved[movers] = place[movers] + _SPEED * case.dt * heading
        self.state.columns["position"] = moved

    def row(self) -> dict[str, Any]:
        case, report = self.case, self.report
        taken = {name: 1e9 / case.agents * seconds / case.steps for name, seconds in self.times.seconds.items()}
        return {
            "dim": case.dim,
            "agents": case.agents,
            "dt_s": case.dt,
            "radius_m": case.radius,
            "moving": case.moving,
            "looked_at": report.looked_at / max(report.certificates, 1),
            "flips_per_agent": report.flips / case.agents,
            "triangulation_ns": taken["triangulation"],
            "lists_ns": taken["lists"] + taken.get("own sort", 0.0),
            "ours_ns": taken["triangulation"] + taken["lists"] + taken.get("own sort", 0.0),
            "grid_ns": taken["grid"] + taken["sort"],
            "ckdtree_ns": taken.get("tree"),
            "delaunay_ns": taken.get("scipy"),
        }

    def ratios(self) -> dict[str, float]:
        row, label = self.row(), self.case.label
        found = {f"grid_over_ours_{label}": row["grid_ns"] / row["ours_ns"]}
        if row["delaunay_ns"] is not None:
            found[f"scipy_over_ours_{label}"] = row["delaunay_ns"] / row["triangulation_ns"]
        return found
