"""Asking a field which way to go for a whole crowd, beside scipy's interpolation of the same vectors.

People are spread over all free cells and numbered by place, as large crowds are; once more in random order, which is
the worst that people who have mixed can come to. Times are medians: a step is not the best of many.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.spawn import by_place
from tropel.agents.state import AgentState
from tropel.bench.result import BenchResult, Row
from tropel.contracts import Guidance, Moment
from tropel.errors import ModelError
from tropel.planning.fields.field import GridField
from tropel.planning.flow.model import FlowField
from tropel.world import Target, World
from tropel.world.raster import Raster

# Times of two ways to do the same, taken in turns.


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Best times [s], the median over the rounds of how often ours was faster, and what came out last."""

    ours: float
    theirs: float
    ratio: float
    our_outcome: Any
    their_outcome: Any

    def row(self, what: str, beside: str) -> Row:
        """A row of a benchmark's result."""
        return pair_row(what, self.ours, beside, self.theirs, self.ratio)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """How long it takes [s], and what comes out."""
    begun = time.perf_counter()
    outcome = work()
    return time.perf_counter() - begun, outcome


def in_turns(rounds: int, ours: Callable[[], Any], theirs: Callable[[], Any]) -> Pair:
    """Time both in every round, so that a machine that is busy for a while slows down both."""
    our_times, their_times = np.empty(rounds), np.empty(rounds)
    our_outcome = their_outcome = None
    for k in range(rounds):
        our_times[k], our_outcome = timed(ours)
        their_times[k], their_outcome = timed(theirs)
    return Pair(
        ours=float(our_times.min()),
        theirs=float(their_times.min()),
        ratio=float(np.median(their_times / our_times)),
        our_outcome=our_outcome,
        their_outcome=their_outcome,
    )


def pair_row(what: str, ours: float, beside: str, theirs: float, ratio: float) -> Row:
    """The row of two times [s] and their ratio."""
    return {
        "what": what,
        "ours_ms": 1e3 * ours,
        "beside": beside,
        "theirs_ms": 1e3 * theirs,
        "theirs_over_ours": ratio,
    }


Floats = NDArray[np.float64]

#: What directions for the crowd may take [s].
_BUDGET = 5e-3
#: Rounds per round of the slower parts of the benchmark.
_ROUNDS = 10


class _Drawn(FlowField):
    """A flow field on a raster that is there already."""

    def __init__(self, raster: Raster) -> None:
        super().__init__(cell=raster.cell)
        self._given = raster

    def draw(self, world: World) -> Raster:
        return self._given


def measure_sampling(result: BenchResult, raster: Raster, agents: int, rounds: int) -> None:
    """Rows and ratios of `GridField.sample` and `FieldPlanner.direct`; the goal is in the middle."""
    ny, nx = raster.shape
    middle = (float(raster.origin[0]) + nx * raster.cell / 2.0, float(raster.origin[1]) + ny * raster.cell / 2.0)
    corner = raster.origin + raster.cell * np.array([nx, ny])
    world = World(bounds=(*raster.origin, *corner), targets={"goal": Target(position=middle, radius=2.0 * raster.cell)})
    planner = _Drawn(raster)
    state = AgentState(2)
    planner.prepare(Moment.of(state, world))
    field = planner.field("goal")
    mixed = _spread(field, agents)
    placed = by_place(mixed)
    state.add(agents, {"position": placed, "goal": world.goal_numbers["goal"]})
    label = f"{agents // 1000}k"

    vectors = field.directions()
    pair = in_turns(
        _ROUNDS * rounds,
        partial(field.sample, placed, world),
        partial(_by_scipy, vectors, placed, raster),
    )
    _check(pair.our_outcome, pair.their_outcome, placed, field)
    result.rows.append(pair.row(f"sampling for {agents:,} agents", "scipy map_coordinates"))
    result.ratios[f"map_coordinates_over_ours_{label}"] = pair.ratio

    moment, out = Moment.of(state, world), Guidance(directions=np.empty((agents, 2)))
    for what, work, name in (
        ("sampling", partial(field.sample, placed, world), f"5ms_over_sampling_{label}"),
        ("sampling in random order", partial(field.sample, mixed, world), f"5ms_over_sampling_{label}_mixed"),
        ("a planner's directions", partial(planner.direct, moment, out), f"5ms_over_directions_{label}"),
    ):
        work()  # sight and straightened vectors are found when somebody first comes to a cell
        typical = float(np.median([timed(work)[0] for _ in range(_ROUNDS * rounds)]))
        result.rows.append({"what": f"{what}, {agents:,} agents, median", "ours_ms": 1e3 * typical})
        result.ratios[name] = _BUDGET / typical


def _spread(field: GridField, agents: int) -> Floats:
    """Points all over the cells with a way to the goal, in random order."""
    rng = np.random.default_rng(1)
    cells = np.argwhere(field.reachable)
    points = field.raster.centre(cells[rng.integers(len(cells), size=agents)])
    return np.asarray(points + field.raster.cell * (rng.random(points.shape) - 0.5))


def _by_scipy(vectors: NDArray[np.floating], points: Floats, raster: Raster) -> Floats:
    from scipy.ndimage import map_coordinates

    place = ((points - raster.origin) / raster.cell - 0.5).T[::-1]
    return np.stack([map_coordinates(vectors[..., k], place, order=1, mode="nearest") for k in (0, 1)], axis=-1)


def _check(ours: Floats, theirs: Floats, points: Floats, field: GridField) -> None:
    """In the open both must agree; beside walls and the goal ours leaves cells out, and so where vectors cancel."""
    inside = field.raster.free & ~field.goal
    for axis in (0, 1):
        inside = inside & np.roll(inside, 1, axis) & np.roll(inside, -1, axis)
    length = np.linalg.norm(theirs, axis=1)
    index = np.clip(((points - field.raster.origin) / field.raster.cell).astype(np.int64), 0, None)
    open_places = inside[index[:, 1], index[:, 0]] & (length > 0.5)
    if not open_places.any():
        return
    if not np.allclose(ours[open_places], (theirs / length.clip(1e-9)[:, None])[open_places], atol=1e-5):
        raise ModelError("sampled directions differ from scipy's; a benchmark of wrong results means nothing")
