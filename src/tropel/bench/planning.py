"""Planning: flow fields beside Dijkstra of scipy, repairs beside fresh solves, harmonic fields beside a direct solver.

Everything runs on one thread but the sampling. The maps are squares with 12 % of the cells in random blocks and the
goal in the middle, the maze is one corridor that goes to and fro. Results are compared before times are believed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tropel.bench.planning_maps import blocks_map, changed_cells, distances_by_scipy, long_maze, usable_share
from tropel.bench.planning_maps import potential_by_scipy as direct_solution
from tropel.bench.result import BenchResult, Progress
from tropel.errors import ModelError
from tropel.planning.flow_field import FlowField
from tropel.planning.flow_layer import FlowLayer
from tropel.planning.harmonic import Harmonic
from tropel.world import World
from tropel.world.raster import Raster

Bools = NDArray[np.bool_]

#: What sampling a field for the agents of the case may take [s].
_SAMPLING_BUDGET = 5e-3
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
        with _threads(numba.config.NUMBA_NUM_THREADS if part is _sampling else 1):  # type: ignore[attr-defined]
            part(result, chosen)
    progress("done", len(parts), len(parts))
    result.notes.append(
        "Compact edits turn one square at a random place, as an obstacle or a door does; scattered ones turn single "
        "cells all over the map. Times of repairs and fresh solves are means over all edits."
    )
    return result


def _flow(result: BenchResult, sizes: Sizes) -> None:
    free, goal = blocks_map(sizes.flow)
    ours, layer = _best(sizes.rounds, lambda: FlowLayer(free, goal))
    theirs, distance = _best(1, lambda: distances_by_scipy(free, goal))
    if not np.allclose(layer.distance, distance, rtol=1e-7):
        raise ModelError("the flow field's lengths differ from scipy's; a benchmark of wrong results means nothing")
    result.rows.append(_row(f"flow field {sizes.flow}²", ours, "scipy dijkstra", theirs))
    result.ratios[f"scipy_over_ours_{sizes.flow}"] = theirs / ours


def _repairs(result: BenchResult, sizes: Sizes) -> None:
    free, goal = blocks_map(sizes.flow)
    layer = FlowLayer(free, goal)
    rng = np.random.default_rng(4)
    for share, label in ((0.001, ""), (0.01, "_1pct"), (0.1, "_10pct")):
        for kind in ("compact", "scattered"):
            fresh = repaired = 0.0
            for _ in range(sizes.edits):
                edited = changed_cells(free, goal, share, kind, rng)
                fresh_time, wanted = _best(1, partial(FlowLayer, edited, goal))
                # A repair changes the layer in place, so it can be timed once.
                repair_time, _ = _best(1, partial(layer.change, free=edited))
                if not (_same(layer.units, wanted.units) and _same(layer.vectors, wanted.vectors)):
                    raise ModelError(f"a repair of {share:.1%} {kind} cells differs from a fresh solve")
                layer.change(free=free)
                fresh, repaired = fresh + fresh_time, repaired + repair_time
            what = f"repair {share:.1%}, {kind}"
            result.rows.append(_row(what, repaired / sizes.edits, "fresh solve", fresh / sizes.edits))
            scattered = "_scattered" if kind == "scattered" else ""
            result.ratios[f"fresh_over_repair_{sizes.flow}{label}{scattered}"] = fresh / repaired


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.tobytes() == other.tobytes()


def _harmonic_beside_direct(result: BenchResult, sizes: Sizes) -> None:
    raster, goal = _case(sizes.direct)
    planner = Harmonic(cell=_CELL, cache=False)
    ours, field = _best(sizes.rounds, lambda: planner.solve(raster, goal))
    theirs, potential = _best(1, lambda: direct_solution(raster.free, goal))
    near = potential > 1e-6  # further away the direct solution has lost its figures
    if not np.allclose(field.value[near], np.log(potential[near]), rtol=1e-3, atol=1e-3):
        raise ModelError("the harmonic field differs from scipy's direct solution near the goal")
    result.rows.append(_row(f"harmonic {sizes.direct}²", ours, "scipy spsolve", theirs))
    result.ratios[f"spsolve_over_ours_{sizes.direct}"] = theirs / ours


def _harmonic_large(result: BenchResult, sizes: Sizes) -> None:
    raster, goal = _case(sizes.harmonic)
    planner = Harmonic(cell=_CELL, cache=False)
    seconds, field = _best(1, lambda: planner.solve(raster, goal))
    share = usable_share(field.value, field.vectors, raster.free, goal)
    result.rows.append({"what": f"harmonic {sizes.harmonic}²", "ours_ms": 1e3 * seconds, "usable_share": share})
    result.ratios[f"usable_share_harmonic_{sizes.harmonic}"] = share


def _maze(result: BenchResult, sizes: Sizes) -> None:
    free, goal = long_maze(sizes.maze, sizes.corridors)
    raster = _raster(free)
    seconds, field = _best(1, lambda: Harmonic(cell=_CELL, cache=False).solve(raster, goal))
    share = usable_share(field.value, field.vectors, free, goal)
    what = f"harmonic, {sizes.corridors} corridors on {sizes.maze}²"
    result.rows.append({"what": what, "ours_ms": 1e3 * seconds, "usable_share": share})
    result.ratios["usable_share_maze"] = share


def _sampling(result: BenchResult, sizes: Sizes) -> None:
    from scipy.ndimage import map_coordinates

    raster, goal = _case(sizes.flow)
    field = FlowField(cell=_CELL).solve(raster, goal)
    world = World(bounds=(0.0, 0.0, sizes.flow * _CELL, sizes.flow * _CELL))
    cells = np.argwhere(field.reachable)
    rng = np.random.default_rng(1)
    positions = raster.centre(cells[rng.integers(len(cells), size=sizes.agents)])
    positions += _CELL * (rng.random(positions.shape) - 0.5)
    ours, _ = _best(10 * sizes.rounds, lambda: field.sample(positions, world))
    place = ((positions - raster.origin) / _CELL - 0.5).T[::-1]
    theirs, _ = _best(
        sizes.rounds, lambda: [map_coordinates(field.vectors[..., k], place, order=1, mode="nearest") for k in (0, 1)]
    )
    result.rows.append(_row(f"sampling for {sizes.agents:,} agents", ours, "scipy map_coordinates", theirs))
    result.ratios[f"map_coordinates_over_ours_{sizes.agents // 1000}k"] = theirs / ours
    result.ratios[f"5ms_over_sampling_{sizes.agents // 1000}k"] = _SAMPLING_BUDGET / ours


# What they share ------------------------------------------------------------------------------------------------


def _case(size: int) -> tuple[Raster, Bools]:
    free, goal = blocks_map(size)
    return _raster(free), goal


def _raster(free: Bools) -> Raster:
    return Raster(origin=np.zeros(2), cell=_CELL, free=free)


def _best(rounds: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest of some times [s], and what came out."""
    best, outcome = np.inf, None
    for _ in range(rounds):
        begun = time.perf_counter()
        outcome = work()
        best = min(best, time.perf_counter() - begun)
    return best, outcome


def _row(what: str, ours: float, other: str, theirs: float) -> dict[str, Any]:
    return {
        "what": what,
        "ours_ms": 1e3 * ours,
        "beside": other,
        "theirs_ms": 1e3 * theirs,
        "theirs_over_ours": theirs / ours,
    }


def _compile() -> None:
    raster, goal = _case(64)
    for share in (0.001, 0.1):
        edited = changed_cells(raster.free, goal, share, "scattered", np.random.default_rng(0))
        FlowLayer(raster.free, goal).change(free=edited)
    field = FlowField(cell=_CELL).solve(raster, goal)
    Harmonic(cell=_CELL, cache=False).solve(raster, goal)
    field.sample(np.full((4, 2), 3.0), World(bounds=(0.0, 0.0, 64 * _CELL, 64 * _CELL)))


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = numba.get_num_threads()
    numba.set_num_threads(count)
    try:
        yield
    finally:
        numba.set_num_threads(before)
