"""The lattice crowd: whole steps of a simulation, compared with the same decisions written in NumPy.

A frame is a step in which every living agent decides: dt is the time of a straight move. The maps are open squares with
a goal in each corner. People start in the middle, by default one per square metre, and nobody arrives during the
measurement. The cost of people leaving in every frame is measured separately.
"""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import dataclass
from time import perf_counter

import numba
import numpy as np
import shapely
from numpy.typing import NDArray

from tropel._kernels.grid_moves import FAR, STRAIGHT
from tropel.agents.groups import Group
from tropel.bench.result import BenchResult, Progress, Row
from tropel.local.lattice.model import Lattice
from tropel.planning.path_plans.model import PathPlans
from tropel.simulation import Simulation
from tropel.world import Target, World

# The alternative is a straightforward frame of the paper in NumPy alone: occupancy and its influence over the whole
# map, the best of eight cells by the product of their values, random ties and random winners. All agents move one cell
# per frame, straight or diagonal.

_STEPS = np.array([(0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)])


class NumpyLattice:
    """Agents on cells (row, column) with a goal each, and a value map per goal with a border of vetoed cells."""

    def __init__(
        self, cells: NDArray[np.int64], goal: NDArray[np.int64], layers: NDArray[np.float64], seed: int
    ) -> None:
        self.cells = cells + 1
        self.goal = goal
        #: Logarithms, -inf on the border.
        self.layers = np.pad(layers, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        self.rng = np.random.default_rng(seed)

    def frame(self) -> int:
        """Let all agents decide once; returns how many moved."""
        occupied = np.zeros(self.layers.shape[1:], dtype=np.int64)
        occupied[self.cells[:, 0], self.cells[:, 1]] = 1
        around = np.zeros_like(occupied)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                around += np.roll(occupied, (dy, dx), axis=(0, 1))
        candidates = self.cells[:, None, :] + _STEPS
        rows, columns = candidates[..., 0], candidates[..., 1]
        worth = self.layers[self.goal[:, None], rows, columns] + np.log(0.5) * around[rows, columns]
        worth[occupied[rows, columns] == 1] = -np.inf
        best = worth.max(axis=1, keepdims=True)
        tied = np.where(worth == best, self.rng.random(worth.shape), -1.0)
        choice = tied.argmax(axis=1)
        wanted = candidates[np.arange(len(choice)), choice]
        number = wanted[:, 0] * len(occupied[0]) + wanted[:, 1]
        order = np.lexsort((self.rng.random(len(number)), number))
        first = np.append(True, np.diff(number[order]) != 0)
        goes = np.zeros(len(order), dtype=np.bool_)
        goes[order[first]] = True
        goes &= worth.max(axis=1) > -np.inf
        self.cells[goes] = wanted[goes]
        return int(goes.sum())


_CELL = 0.4
_SPEED = 1.34
#: All agents start at least this far from the edge [m], which takes 60 frames to walk.
_BORDER = 25.0
_CORNERS = ("south west", "south east", "north west", "north east")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of all measurements."""

    agents: tuple[int, ...] = (10_000, 20_000, 100_000, 1_000_000)
    density: float = 1.0  #: [1/m²]
    agent_steps: int = 4_000_000  #: per measurement
    fewest_frames: int = 10
    most_frames: int = 60
    passes: int = 3  #: over all sizes, of which the fastest counts: other load on a machine comes and goes
    compared: int = 20_000  #: agents in the comparison with NumPy
    rounds: int = 7
    weighed: int = 100_000  #: agents whose memory is measured


def measure(progress: Progress, sizes: Sizes | None = None) -> BenchResult:
    """Measure frames of all sizes on one thread and on all, then the comparison and the memory."""
    chosen = sizes or Sizes()
    most = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    result = BenchResult(name="lattice")
    cases = [(agents, threads) for agents in chosen.agents for threads in dict.fromkeys((1, most))]
    measured = chosen.passes * len(cases)
    total = measured + 2
    fastest: dict[tuple[int, int], Row] = {}
    for done in range(measured):
        case = agents, threads = cases[done % len(cases)]
        progress(f"{agents:,} agents on {threads} thread{'s' * (threads > 1)}", done, total)
        row = _frames(agents, threads, chosen)
        if case not in fastest or row["ns_per_agent_step"] < fastest[case]["ns_per_agent_step"]:
            fastest[case] = row
    result.rows.extend(fastest.values())
    leaving = _frames(chosen.compared, most, chosen, border=0.0)
    progress("compared with NumPy", measured, total)
    result.ratios[f"numpy_over_ours_{_short(chosen.compared)}"] = _beside_numpy(chosen, result, most)
    progress("memory", measured + 1, total)
    per_agent = _bytes_per_agent(chosen)
    progress("done", total, total)
    on_most = {row["agents"]: row for row in result.rows if row.get("threads") == most and "frames_per_second" in row}
    for agents, wanted in ((20_000, 500.0), (1_000_000, 10.0)):
        if agents in on_most:
            ratio = on_most[agents]["frames_per_second"] / wanted
            result.ratios[f"fps_over_{wanted:.0f}_{_short(agents)}"] = ratio
    costs = [row["ns_per_agent_step"] for row in on_most.values()]
    result.ratios[f"flat_{_short(min(on_most))}_to_{_short(max(on_most))}"] = min(costs) / max(costs)
    result.ratios["250_bytes_over_ours"] = 250.0 / per_agent
    result.rows.append(leaving)
    result.notes.append(
        f"Whole steps of a simulation: planning, decisions, conflicts, walls and exits. {per_agent:.0f} bytes per "
        f"agent besides the path plans. Times are medians over frames from a random start, before crowds gather, of "
        f"the fastest of {chosen.passes} passes. In the last row people leave in every frame."
    )
    return result


def crowd_in_a_square(
    agents: int,
    *,
    side: float | None = None,
    threads: int | None = None,
    density: float = 1.0,
    seed: int = 1,
    border: float = _BORDER,
) -> Simulation:
    """People at random positions in an open square, a quarter of them heading for each corner.

    They start at least `border` [m] from the edge, so that nobody arrives for a while.
    """
    inner = math.ceil(math.sqrt(agents / density) / _CELL) * _CELL if side is None else side
    whole = inner + 2.0 * border
    places = ((0.5, 0.5), (whole - 0.5, 0.5), (0.5, whole - 0.5), (whole - 0.5, whole - 0.5))
    targets = {
        name: Target(position=place, radius=0.5, absorbs=True) for name, place in zip(_CORNERS, places, strict=True)
    }
    world = World(shapely.box(0.0, 0.0, whole, whole), targets=targets)
    middle = shapely.box(border, border, border + inner, border + inner)
    groups = [Group(name, count=agents // 4, goal=name, desired_speed=_SPEED, region=middle) for name in _CORNERS]
    return Simulation(
        world,
        groups,
        planning=PathPlans(cell=_CELL),
        local=Lattice(cell=_CELL, headway=0.0),  # the rule that NumPy computes here
        dt=_CELL / _SPEED,
        seed=seed,
        threads=threads,
    )


def _frames(agents: int, threads: int, sizes: Sizes, *, border: float = _BORDER) -> Row:
    sim = crowd_in_a_square(agents, threads=threads, density=sizes.density, border=border)
    model = sim.all_layers()[-1]
    assert isinstance(model, Lattice)
    frames = min(max(sizes.agent_steps // agents, sizes.fewest_frames), sizes.most_frames)
    sim.step()
    seconds, decisions, moves, present = np.empty(frames), 0, 0, 0
    for k in range(frames):
        present += len(sim.agents)
        begin = perf_counter()
        sim.step()
        seconds[k] = perf_counter() - begin
        decisions += model.decisions
        moves += model.moves
    middle = float(np.median(seconds))
    side = float(sim.world.bounds[1][0])
    inner = side - 2.0 * border
    return {
        "agents": agents,
        "threads": threads,
        "frames_per_second": 1.0 / middle,
        "ns_per_agent_step": 1e9 * middle * frames / present,
        "decisions_per_frame": decisions / frames,
        "moves_per_frame": moves / frames,
        "density_per_m2": agents / inner**2,
        "goals": len(_CORNERS),
        "leaving_per_frame": (agents - len(sim.agents)) / (frames + 1),
        "map": f"{round(side / _CELL)}²",
    }


def _beside_numpy(sizes: Sizes, result: BenchResult, threads: int) -> float:
    """How much faster a frame of ours is than NumPy's: the median over rounds in which both are timed."""
    sim = crowd_in_a_square(sizes.compared, threads=threads, density=sizes.density)
    sim.step()
    terrain = sim.ground
    assert terrain is not None
    layers = np.where(terrain.units < FAR, terrain.units * (terrain.log_gamma / STRAIGHT), -np.inf)
    plan = np.array([terrain.plan_of_goal[int(goal)] for goal in sim.agents.goal])
    other = NumpyLattice(terrain.raster.index_of(sim.agents.position), plan, layers, seed=1)
    ours, theirs = np.empty(sizes.rounds), np.empty(sizes.rounds)
    for k in range(sizes.rounds):
        begin = perf_counter()
        sim.step()
        middle = perf_counter()
        other.frame()
        ours[k], theirs[k] = middle - begin, perf_counter() - middle
    ratio = float(np.median(theirs / ours))
    result.rows.append(
        {
            "agents": sizes.compared,
            "threads": 1,
            "frames_per_second": None,
            "ns_per_agent_step": 1e9 * float(np.median(theirs)) / sizes.compared,
            "map": "NumPy",
        }
    )
    return ratio


def _bytes_per_agent(sizes: Sizes) -> float:
    """Memory per agent while the simulation runs: the difference when twice as many are on the same map."""
    side = math.ceil(math.sqrt(2 * sizes.weighed / sizes.density) / _CELL) * _CELL
    peaks = []
    for agents in (sizes.weighed, 2 * sizes.weighed):
        tracemalloc.start()
        sim = crowd_in_a_square(agents, side=side)
        sim.step()
        tracemalloc.reset_peak()
        for _ in range(3):
            sim.step()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        del sim
    return (peaks[1] - peaks[0]) / sizes.weighed


def _short(count: int) -> str:
    return f"{count // 1_000_000}m" if count % 1_000_000 == 0 else f"{count // 1000}k"
