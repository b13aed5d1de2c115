"""Steering: how fast a step is compared with JuPedSim, and how well crowds get through four difficult scenes.

Quality means how many agents arrive and when, their detours, and which bodies overlapped. Both parts use default
models and people of radius 0.2 m who sense others up to ten radii away. An RVO2 library needed 886 s for the circle and
let bodies overlap by a fifth. That figure comes from another run, but it is simulated time, which does not depend on
the machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from tropel._kernels.compile import threads_restored
from tropel.agents.state import Floats
from tropel.bench.result import BenchResult, Progress
from tropel.bench.steering_scenes import SCENES, SceneMaker, SteeringTask
from tropel.bench.steering_speed import CASES, MODELS, OURS, ROUNDS, Case, Contest, flatness

#: Steps between two progress reports.
_TELL_EVERY = 50


@dataclass(frozen=True, kw_only=True)
class Quality:
    """The outcome of a scene."""

    arrived: float  #: share of the agents that were at their goals in the end
    finish: float | None  #: when all had arrived [s]; None if that did not happen within the scene's limit
    path_over_shortest: float | None  #: mean over the agents that arrived; None if none did
    closest_approach: float  #: smallest distance of two centres at any time, over the sum of their radii
    overlapping_pairs: float  #: share of all pairs of agents that ever overlapped
    deepest_overlap: float  #: of two agents [m]

    def row(self) -> dict[str, Any]:
        """The row of a table; column names have units."""
        return {
            "arrived": self.arrived,
            "finish_s": self.finish,
            "path_over_shortest": self.path_over_shortest,
            "closest_approach": self.closest_approach,
            "overlapping_pairs": self.overlapping_pairs,
            "deepest_overlap_m": self.deepest_overlap,
        }


def watch(scene: SteeringTask, told: Callable[[float], None] | None = None) -> Quality:
    """Run a scene until all have arrived, or to its limit; `told` gets the simulated time [s] now and then."""
    sim = scene.sim
    agents = len(scene.shortest)
    radius = sim.agents.radius.copy()
    walked, at_arrival = np.zeros(agents), np.full(agents, math.nan)
    approach = ClosestApproach()
    there = scene.arrived()
    while not there.all() and sim.time < scene.limit:
        ids, before = sim.agents.id.copy(), sim.agents.position.copy()
        move = sim.dt * np.linalg.norm(sim.agents.velocity, axis=1)
        sim.guarded_step()
        stayed = np.isin(ids, sim.agents.id, assume_unique=True)
        after = sim.agents.position
        # The last move of agents that have just left is not known; it was about as long as the one before.
        move[stayed] = np.linalg.norm(after - before[stayed], axis=1)
        walked[ids] += move
        approach.look(before[stayed], after, sim.agents.radius)
        there = scene.arrived()
        fresh = there & np.isnan(at_arrival)
        at_arrival[fresh] = walked[fresh]
        if told is not None and sim.step_number % _TELL_EVERY == 0:
            told(sim.time)
    detour = (at_arrival / scene.shortest)[there]
    log = sim.collisions
    met = log.id_b >= 0
    a, b, depth = log.id_a[met], log.id_b[met], log.depth[met]
    in_touch = 1.0 - depth / (radius[a] + radius[b])
    return Quality(
        arrived=float(there.mean()),
        finish=sim.time if there.all() else None,
        path_over_shortest=float(detour.mean()) if len(detour) else None,
        closest_approach=min(approach.closest, float(in_touch.min(initial=math.inf))),
        overlapping_pairs=len(np.unique(np.column_stack([a, b]), axis=0)) / max(agents * (agents - 1) // 2, 1),
        deepest_overlap=float(depth.max(initial=0.0)),
    )


class ClosestApproach:
    """Smallest distance of two centres over the sum of their radii, at any time, with uniform motion within a step."""

    def __init__(self) -> None:
        self.closest = math.inf

    def look(self, before: Floats, after: Floats, radius: Floats) -> None:
        """Take a step into account. Only pairs that may come closer than any before are compared."""
        if len(before) < 2:
            return
        move = after - before
        longest = float(np.linalg.norm(move, axis=1).max())
        if math.isinf(self.closest):
            a, b = np.triu_indices(len(before), k=1)
        else:
            reach = self.closest * 2.0 * float(radius.max()) + 2.0 * longest
            a, b = cKDTree(before).query_pairs(reach, output_type="ndarray").T
        if len(a) == 0:
            return
        apart, drift = before[b] - before[a], move[b] - move[a]
        drift2 = (drift * drift).sum(axis=1)
        toward = -(apart * drift).sum(axis=1)
        when = np.clip(np.divide(toward, drift2, out=np.zeros(len(a)), where=drift2 > 0.0), 0.0, 1.0)
        nearest = np.linalg.norm(apart + when[:, None] * drift, axis=1) / (radius[a] + radius[b])
        self.closest = min(self.closest, float(nearest.min()))


#: Simulated time that an RVO2 library needed until all agents had changed places on the circle [s].
_RVO2_CIRCLE = 886.0
_WHAT_IS_TIMED = (
    "CFSM: collision-free speed model. Whole steps are timed; neither ours nor JuPedSim's watch for collisions."
)


def measure(
    progress: Progress,
    cases: Sequence[Case] = CASES,
    rounds: int = ROUNDS,
    scenes: Mapping[str, SceneMaker] = SCENES,
    models: Sequence[str] = tuple(MODELS),
) -> BenchResult:
    """Time the cases, then run every scene with every model."""
    result = BenchResult(name="steering")
    total = len(cases) + rounds + len(scenes) * len(models)
    with threads_restored():
        contests: list[Contest] = []
        for case in cases:
            progress(f"speed, {case.label}: the crowd begins to walk", len(contests), total)
            contests.append(Contest(case))
        for done in range(rounds):
            progress("speed, all crowds in turn", len(cases) + done, total)
            for contest in contests:
                contest.round()
        for contest in contests:
            result.rows.extend(contest.rows())
            result.ratios.update(contest.ratios())
        result.ratios.update(flatness(contests))
        result.notes.append(_WHAT_IS_TIMED)
        result.notes.extend(dict.fromkeys(contest.note for contest in contests if contest.note))
        contests.clear()
        runs: dict[tuple[str, str], Quality] = {}
        for scene, maker in scenes.items():
            for model in models:
                done = len(cases) + rounds + len(runs)
                tell = partial(_tell, progress, f"{scene}, {model}", done, total)
                tell(0.0)
                runs[scene, model] = watch(maker(MODELS[model]()), tell)
        progress("done", total, total)
    if runs:
        result.more["quality"] = [{"scene": s, "model": m, **quality.row()} for (s, m), quality in runs.items()]
    result.ratios.update(_quality_ratios({s: quality for (s, m), quality in runs.items() if m == OURS}))
    return result


def _tell(progress: Progress, what: str, done: int, total: int, now: float) -> None:
    progress(f"{what}: t = {now:.0f} s", done, total)


def _quality_ratios(ours: Mapping[str, Quality]) -> dict[str, float]:
    """Figures of our model of which more is better; a scene that never finished counts as infinitely slow."""
    ratios: dict[str, float] = {}
    if "circle" in ours:
        finish = ours["circle"].finish
        ratios["rvo2_time_over_ours_circle"] = 0.0 if finish is None else _RVO2_CIRCLE / finish
        ratios["closest_approach_circle"] = ours["circle"].closest_approach
    if ours:
        ratios["share_arrived_worst"] = min(quality.arrived for quality in ours.values())
        ratios["closest_approach_worst"] = min(quality.closest_approach for quality in ours.values())
    return ratios
