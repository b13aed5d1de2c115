"""What riders cost: decisions of ten thousand, full physics beside the map, and a thousand of whom twenty are physical.

- `100ms_over_decide_10k`: the tick of 100 ms beside the decisions of 10,000 riders, one per 30 m².
- `full_over_map`: seconds per rider-second in the physics engine beside those of riders who follow their map.
- `realtime_1000`: simulated over wall-clock time of 980 riders by map and 20 in the physics engine, whole steps.
"""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import Any

import shapely

from tropel.agents.groups import Group
from tropel.bench.result import BenchResult, Progress
from tropel.local.mobility_map.model import Riders
from tropel.planning.path import FollowPath
from tropel.simulation import Simulation
from tropel.world import World

_DT = 0.1
_AREA = 30.0  #: per rider [m²]
_ROUNDS = 8
_FULL = 20


def measure(progress: Progress) -> BenchResult:
    """Run the benchmark; without MuJoCo only the first ratio is measured."""
    rows: list[dict[str, Any]] = []
    ratios: dict[str, float] = {}
    notes: list[str] = []
    progress("decisions of 10,000", 0, 3)
    sim = _street({"map": 10_000})
    local = _per_step(sim, lambda: sim.timing.seconds["local"])
    rows.append({"riders": 10_000, "physical": 0, "local_ms": 1e3 * local})
    ratios["100ms_over_decide_10k"] = 0.1 / local
    try:
        progress("full physics", 1, 3)
        alone, by_map = _street({"full": _FULL}), _street({"map": 1_000})
        full = _per_step(alone, lambda: alone.timing.seconds["local"]) / _FULL
        cheap = _per_step(by_map, lambda: by_map.timing.seconds["local"]) / 1_000
        rows.append({"riders": _FULL, "physical": _FULL, "local_ms": 1e3 * full * _FULL})
        rows.append({"riders": 1_000, "physical": 0, "local_ms": 1e3 * cheap * 1_000})
        ratios["full_over_map"] = full / cheap
        progress("a thousand, of whom twenty are physical", 2, 3)
        mixed = _street({"map": 1_000 - _FULL, "full": _FULL})
        whole = _per_step(mixed, lambda: mixed.timing.total)
        rows.append({"riders": 1_000, "physical": _FULL, "local_ms": 1e3 * whole})
        ratios["realtime_1000"] = _DT / whole
    except ImportError as error:
        notes.append(f"no full physics: {error}")
    return BenchResult(name="riders", rows=rows, ratios=ratios, notes=notes)


def _street(counts: dict[str, int]) -> Simulation:
    """Riders of some kinds of physics on roads side by side, each with room."""
    groups, planners, models = [], {}, {}
    low = 0.0
    for name, count in counts.items():
        width = max(20.0, (_AREA * count) ** 0.5)
        length = _AREA * count / width
        groups.append(
            Group(name, count=count, goal="none", radius=0.3, region=shapely.box(0, low, length, low + width))
        )
        middle = low + 0.5 * width
        planners[name] = FollowPath([(0.0, middle), (100_000.0, middle)], smooth=False, width=width)
        models[name] = Riders(physics=name, t_max=2.2, ratio=0.3)
        low += width + 50.0
    return Simulation(World(bounds=(0, 0, 2_000, 2_000)), groups, planning=planners, local=models, dt=_DT, seed=1)


def _per_step(sim: Simulation, clock: Any) -> float:
    """The median time of a step [s], by a clock of the simulation."""
    for _ in range(3):
        sim.step()
    spent = []
    for _ in range(_ROUNDS):
        before, begun = clock(), perf_counter()
        sim.step()
        spent.append(min(clock() - before, perf_counter() - begun))
    return statistics.median(spent)
