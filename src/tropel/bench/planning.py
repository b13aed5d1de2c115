"""Planning: flow fields beside Dijkstra of scipy, repairs beside fresh solves, harmonic fields beside a direct solver.

Everything runs on one thread but the sampling. The maps are squares with 12 % of the cells in random blocks and the
goal in the middle, the maze is one corridor that goes to and fro. Results are compared before times are believed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import threads_restored
from tropel.bench.planning_maps import blocks_map, changed_cells, distances_by_scipy, long_maze, usable_share
from tropel.bench.planning_maps import potential_by_scipy as direct_solution
from tropel.bench.planning_sampling import in_turns, measure_sampling, pair_row, timed
from tropel.bench.result import BenchResult, Progress
from tropel.errors import ModelError
from tropel.planning.flow.model import FlowField
from tropel.planning.flow.path_plan import PathPlan
from tropel.planning.harmonic import Harmonic
from tropel.world import World
from tropel.world.raster import Raster

Bools = NDArray[np.bool_]

_CELL = 0.2


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large everything is."""

    flow: int = 1200
    harmonic: int = 1024
    direct: int = 512  #: a harmonic field beside scipy's direct solver, which takes 9 s for the large one
    maze: int = 512
    corridors: int = 40
    agents: int = 100_000
    rounds: int = 3
    edits: int = 12  #: of each kind; how much a repair costs depends on where it is


def measure(progress: Progress, sizes: Sizes | None = None) -> BenchResult:
    """Measure every part."""
    chosen = sizes or Sizes()
    result = BenchResult(name="planning")
    parts: list[tuple[str, Callable[[BenchResult, Sizes], None]]] = [
        ("a flow field", _flow),
        ("repairs", _repairs),
        ("a harmonic field beside a direct solver", _harmonic_beside_direct),
        ("a large harmonic field", _harmonic_large),
        ("a long maze", _maze),
        ("sampling", _sampling),
    ]
    # Compiling is paid once and not with every plan.
    progress("compiling", 0, len(parts))
    _compile()
    for done, (what, part) in enumerate(parts):
        progress(what, done, len(parts))
        with threads_restored(numba.config.NUMBA_NUM_THREADS if part is _sampling else 1):  # type: ignore[attr-defined]
            part(result, chosen)
    progress("done", len(parts), len(parts))
    result.notes.append(
        "Compact edits turn one square at a random place, as an obstacle or a door does; scattered ones turn single "
        "cells all over the map. Times of repairs and fresh solves are means over all edits, and the least ratio is "
        "that of the worst edit. Other ratios are medians over rounds in which both are timed."
    )
    return result


def _flow(result: BenchResult, sizes: Sizes) -> None:
    free, goal = blocks_map(sizes.flow)
    pair = in_turns(sizes.rounds, partial(PathPlan, free, goal), partial(distances_by_scipy, free, goal))
    if not np.allclose(pair.our_outcome.distance, pair.their_outcome, rtol=1e-7):
        raise ModelError("the flow field's lengths differ from scipy's; a benchmark of wrong results means nothing")
    result.rows.append(pair.row(f"flow field {sizes.flow}²", "scipy dijkstra"))
    result.ratios[f"scipy_over_ours_{sizes.flow}"] = pair.ratio


def _repairs(result: BenchResult, sizes: Sizes) -> None:
    free, goal = blocks_map(sizes.flow)
    plan = PathPlan(free, goal)
    rng = np.random.default_rng(4)
    for share, label in ((0.001, ""), (0.01, "_1pct"), (0.1, "_10pct")):
        for kind in ("compact", "scattered"):
            fresh, repaired = np.empty(sizes.edits), np.empty(sizes.edits)
            for k in range(sizes.edits):
                edited = changed_cells(free, goal, share, kind, rng)
                fresh[k], wanted = timed(partial(PathPlan, edited, goal))
                # A repair changes the plan in place, so it can be timed once.
                repaired[k], _ = timed(partial(plan.change, free=edited))
                if not (_same(plan.units, wanted.units) and _same(plan.vectors, wanted.vectors)):
                    raise ModelError(f"a repair of {share:.1%} {kind} cells differs from a fresh solve")
                plan.change(free=free)
            ratio = float(fresh.mean() / repaired.mean())
            row = pair_row(f"repair {share:.1%}, {kind}", repaired.mean(), "fresh solve", fresh.mean(), ratio)
            result.rows.append({**row, "least_ratio": float((fresh / repaired).min())})
            scattered = "_scattered" if kind == "scattered" else ""
            result.ratios[f"fresh_over_repair_{sizes.flow}{label}{scattered}"] = ratio


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.tobytes() == other.tobytes()


def _harmonic_beside_direct(result: BenchResult, sizes: Sizes) -> None:
    raster, goal = _case(sizes.direct)
    planner = Harmonic(cell=_CELL, cache=False)
    pair = in_turns(sizes.rounds, partial(planner.solve, raster, goal), partial(direct_solution, raster.free, goal))
    field, potential = pair.our_outcome, pair.their_outcome
    near = potential > 1e-6  # further away the direct solution has lost its figures
    if not np.allclose(field.value[near], np.log(potential[near]), rtol=1e-3, atol=1e-3):
        raise ModelError("the harmonic field differs from scipy's direct solution near the goal")
    result.rows.append(pair.row(f"harmonic {sizes.direct}²", "scipy spsolve"))
    result.ratios[f"spsolve_over_ours_{sizes.direct}"] = pair.ratio


def _harmonic_large(result: BenchResult, sizes: Sizes) -> None:
    raster, goal = _case(sizes.harmonic)
    planner = Harmonic(cell=_CELL, cache=False)
    seconds, field = timed(partial(planner.solve, raster, goal))
    share = usable_share(field.value, field.vectors, raster.free, goal)
    result.rows.append({"what": f"harmonic {sizes.harmonic}²", "ours_ms": 1e3 * seconds, "usable_share": share})
    result.ratios[f"usable_share_harmonic_{sizes.harmonic}"] = share


def _maze(result: BenchResult, sizes: Sizes) -> None:
    free, goal = long_maze(sizes.maze, sizes.corridors)
    raster = _raster(free)
    planner = Harmonic(cell=_CELL, cache=False)
    pair = in_turns(sizes.rounds, partial(planner.solve, raster, goal), partial(direct_solution, free, goal))
    share = usable_share(pair.our_outcome.value, pair.our_outcome.vectors, free, goal)
    what = f"harmonic, {sizes.corridors} corridors on {sizes.maze}²"
    result.rows.append({**pair.row(what, "scipy spsolve, of which most underflows"), "usable_share": share})
    result.ratios["spsolve_over_ours_maze"] = pair.ratio
    result.ratios["usable_share_maze"] = share


def _sampling(result: BenchResult, sizes: Sizes) -> None:
    measure_sampling(result, _case(sizes.flow)[0], sizes.agents, sizes.rounds)


# What they share ------------------------------------------------------------------------------------------------


def _case(size: int) -> tuple[Raster, Bools]:
    free, goal = blocks_map(size)
    return _raster(free), goal


def _raster(free: Bools) -> Raster:
    return Raster(origin=np.zeros(2), cell=_CELL, free=free)


def _compile() -> None:
    raster, goal = _case(64)
    for share in (0.001, 0.1):
        edited = changed_cells(raster.free, goal, share, "scattered", np.random.default_rng(0))
        PathPlan(raster.free, goal).change(free=edited)
    field = FlowField(cell=_CELL).solve(raster, goal)
    Harmonic(cell=_CELL, cache=False).solve(raster, goal)
    field.sample(np.full((4, 2), 3.0), World(bounds=(0.0, 0.0, 64 * _CELL, 64 * _CELL)))
