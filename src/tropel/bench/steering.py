"""Steering: how fast a step is, next to JuPedSim, and how well crowds get through four difficult scenes.

The scenes' measures and parameters are the same in both parts: default models, people of radius 0.2 m who notice others
up to ten radii away. An RVO2 library needed 886 s for the circle and let bodies overlap by a fifth; that is a figure
from another run, of simulated time, which does not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tropel._kernels.compile import threads_restored
from tropel.bench.result import BenchResult, Progress
from tropel.bench.steering_models import MODELS, OURS
from tropel.bench.steering_quality import Quality, watch
from tropel.bench.steering_scenes import SCENES, SceneMaker
from tropel.bench.steering_speed import CASES, ROUNDS, Case, Contest, flatness

#: Simulated time that an RVO2 library needed until everybody had changed places on the circle [s].
_RVO2_CIRCLE = 886.0
_WHAT_IS_TIMED = (
    "CFSM: collision-free speed model. Whole steps are timed; ours do not watch for collisions, nor does JuPedSim."
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
    """Figures of our model of which more is better; a scene that never finished has taken for ever."""
    ratios: dict[str, float] = {}
    if "circle" in ours:
        finish = ours["circle"].finish
        ratios["rvo2_time_over_ours_circle"] = 0.0 if finish is None else _RVO2_CIRCLE / finish
        ratios["closest_approach_circle"] = ours["circle"].closest_approach
    if ours:
        ratios["share_arrived_worst"] = min(quality.arrived for quality in ours.values())
        ratios["closest_approach_worst"] = min(quality.closest_approach for quality in ours.values())
    return ratios
