"""Alternatives for the flock benchmark: a bare loop over our cell list, NumPy with cKDTree, and Mesa's example.

The bare loop is what the hardware allows a plain program: for every agent the sums over its neighbours that the three
basic rules need, and nothing else. It knows no seams, groups or angles, and moves no agent. It has no branches and is
compiled with `fastmath`, so that the compiler may add in any order, and so in vectors. Our kernels do without
`fastmath`, to get the same bits everywhere. Without `fastmath` the loop takes 190 ns per agent instead of 100, with
branches 300, so it would not be a limit to compare with.

Mesa's boid example is used as it is in the package (`mesa.examples.basic.boid_flockers`). Mesa is an optional extra:
`pip install 'tropel[bench]'`.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import CellList, cell_run, cell_window
from tropel.agents.groups import Group
from tropel.analysis import polarisation
from tropel.bench.result import Row
from tropel.errors import MissingExtraError
from tropel.local.sequential_flock.model import SequentialFlock
from tropel.simulation import Simulation
from tropel.world import World

_EXAMPLE = "mesa.examples.basic.boid_flockers.model"


class MesaFlock:
    """Boids with a sense radius of `vision` on a torus; everything else is as in the example."""

    def __init__(self, *, agents: int, side: float, vision: float, separation: float = 1.0, seed: int = 1) -> None:
        self._model = _example()(
            population_size=agents, width=side, height=side, vision=vision, separation=separation, seed=seed
        )

    def step(self) -> None:
        """Move all agents forward by one step."""
        self._model.step()


def mesa_version() -> str:
    return str(importlib.import_module("mesa").__version__)


def _example() -> Any:
    try:
        with warnings.catch_warnings():
            # Its experimental space warns on import that it is experimental.
            warnings.simplefilter("ignore")
            return importlib.import_module(_EXAMPLE).BoidFlockers
    except ImportError as error:
        raise MissingExtraError("the comparison with Mesa", "bench") from error


Floats = NDArray[np.float64]

#: Agents per unit of parallel work.
_CHUNK = 512
#: Per agent: number of neighbours, sum of offsets, of velocities, and of offsets weighted for separation.
SUMS = 7
#: Smaller squared distances count as this one: the distance of an agent to itself is zero.
_TINY = 1e-290


@numba.njit(fastmath=True, error_model="numpy", nogil=True)
def _sum_some(first, last, cells, close, sums):
    limit = close * close
    inverse = 1.0 / limit
    position, velocity = cells.position, cells.velocity
    for own in range(first, last):
        i = np.uint64(own)
        x, y = position[0, i], position[1, i]
        radius = cells.sense_radius[i]
        reach = radius * radius
        count = tx = ty = vx = vy = sx = sy = 0.0
        x0, x1, y0, y1, _, _ = cell_window(cells, x, y, 0.0, radius)
        for cy in range(y0, y1 + 1):
            begin, end = cell_run(cells, x0, x1, cy, 0)
            for k in range(begin, end):
                dx, dy = position[0, k] - x, position[1, k] - y
                away = dx * dx + dy * dy
                seen = 1.0 if away <= reach else 0.0
                push = (1.0 if away < limit else 0.0) * (1.0 / max(away, _TINY) - inverse)
                count += seen
                tx += seen * dx
                ty += seen * dy
                vx += seen * velocity[0, k]
                vy += seen * velocity[1, k]
                sx += push * dx
                sy += push * dy
        # The agent itself was counted too.
        sums[i, 0] = count - 1.0
        sums[i, 1], sums[i, 2] = tx, ty
        sums[i, 3], sums[i, 4] = vx - velocity[0, i], vy - velocity[1, i]
        sums[i, 5], sums[i, 6] = sx, sy


@numba.njit(parallel=True, fastmath=True, error_model="numpy", nogil=True)
def _sum_all(cells, close, sums):
    count = sums.shape[0]
    for chunk in numba.prange((count + _CHUNK - 1) // _CHUNK):
        _sum_some(chunk * _CHUNK, min((chunk + 1) * _CHUNK, count), cells, close, sums)


def bare_sums(cells: CellList, close: float, sums: Floats) -> None:
    """Write the sums of all agents, in the order of cells, into `sums` (N, SUMS); `close` is separation's distance."""
    _sum_all(cells, close, sums)


class NumpyFlock:
    """Boids in open 2D space by the three basic rules of `Flocking`, as you would write them with NumPy and cKDTree."""

    def __init__(
        self,
        *,
        sense_radius: float,
        separation_distance: float,
        separation: float,
        cohesion: float,
        alignment: float,
        top_speed: float,
        least_speed: float,
        max_force: float,
        dt: float,
    ) -> None:
        self.radius, self.close = sense_radius, separation_distance
        self.weights = (separation, cohesion, alignment)
        self.slowest, self.fastest, self.max_force, self.dt = least_speed * top_speed, top_speed, max_force, dt
        self.position = self.velocity = np.empty((0, 2))
        self.pairs = 0  #: neighbours in the last step, each pair counted twice

    def place(self, position: Floats, velocity: Floats) -> None:
        self.position, self.velocity = position.copy(), velocity.copy()

    def step(self) -> None:
        """Move all agents forward by dt."""
        from scipy.spatial import cKDTree

        separation, cohesion, alignment = self.weights
        pairs = cKDTree(self.position).query_pairs(self.radius, output_type="ndarray")
        i = np.concatenate([pairs[:, 0], pairs[:, 1]])
        j = np.concatenate([pairs[:, 1], pairs[:, 0]])
        offset = self.position[j] - self.position[i]
        away2 = (offset**2).sum(axis=1)
        push = np.where(away2 < self.close**2, 1.0 / away2 - 1.0 / self.close**2, 0.0)
        seen = np.bincount(i, minlength=len(self.position))[:, None]
        count = np.maximum(seen, 1)
        force = -separation * self.close * self._sum(i, push[:, None] * offset)
        force += cohesion * self._sum(i, offset) / count / self.radius
        force += alignment * (seen > 0) * (self._sum(i, self.velocity[j]) / count - self.velocity) / self.fastest
        strength = np.linalg.norm(force, axis=1, keepdims=True)
        force *= np.minimum(1.0, self.max_force / np.maximum(strength, 1e-300))
        velocity = self.velocity + self.dt * force
        speed = np.linalg.norm(velocity, axis=1, keepdims=True)
        self.velocity = velocity * (np.clip(speed, self.slowest, self.fastest) / speed)
        self.position = self.position + self.dt * self.velocity
        self.pairs = len(i)

    def _sum(self, i: NDArray[np.int64], values: Floats) -> Floats:
        size = len(self.position)
        return np.stack([np.bincount(i, weights=column, minlength=size) for column in values.T], axis=1)


# The flocking model that public comparisons of agent-based frameworks use, in its public settings, next to Mesa's.
@dataclass(frozen=True, kw_only=True)
class PublicSetting:
    """Birds with a sense radius of `vision` on a square torus, with a speed of 1 and steps of 1."""

    agents: int
    side: float
    vision: float
    steps: int = 100
    mesa_steps: int = 0  #: number of steps for Mesa; 0 for none


PUBLIC_SETTINGS = (
    PublicSetting(agents=400, side=150.0, vision=15.0, mesa_steps=20),
    PublicSetting(agents=80_000, side=400.0, vision=5.0),
)


def sequential_flock(setting: PublicSetting, *, seed: int = 1) -> Simulation:
    """Birds at random positions with random initial directions."""
    world = World.box((0.0, 0.0), (setting.side, setting.side), periodic=True)
    places = np.random.default_rng(seed).uniform(0.0, setting.side, (setting.agents, 2))
    birds = Group("birds", positions=places, sense_radius=setting.vision, desired_speed=1.0, radius=1e-3, goal="none")
    return Simulation(world, birds, local=SequentialFlock(), dt=1.0, seed=seed)


def sequential_row(setting: PublicSetting) -> Row:
    """Times of a setting: the best of three runs if they are quick; whole steps count."""
    # Kernels are compiled here.
    sequential_flock(setting).step()
    seconds = []
    for _ in range(3 if setting.agents <= 1000 else 1):
        sim = sequential_flock(setting)
        begin = _neighbours(sim)
        begun = perf_counter()
        for _ in range(setting.steps):
            sim.step()
        seconds.append(perf_counter() - begun)
    best = min(seconds)
    row: Row = {
        "agents": setting.agents,
        "torus": f"{setting.side:g}²",
        "vision": setting.vision,
        "steps": setting.steps,
        "seconds": best,
        "ns_per_agent_step": 1e9 * best / setting.steps / setting.agents,
        "neighbours_first": begin,
        "neighbours_last": _neighbours(sim),
        "polarisation_last": polarisation(sim.agents.heading),
    }
    theirs = mesa_seconds(setting, steps=setting.mesa_steps)
    if theirs is not None:
        row["mesa_ns_per_agent_step"] = 1e9 * theirs / setting.agents
        row["mesa_over_ours"] = theirs * setting.steps / best
    return row


def sequential_seconds(setting: PublicSetting, *, steps: int) -> float:
    """Time of the best of several steps [s]."""
    return _best_step(sequential_flock(setting).step, steps)


def mesa_seconds(setting: PublicSetting, *, steps: int) -> float | None:
    """Time of the best of several of Mesa's steps [s]; None if Mesa is not installed or not wanted."""
    if steps == 0:
        return None
    try:
        flock = MesaFlock(agents=setting.agents, side=setting.side, vision=setting.vision)
    except MissingExtraError:
        return None
    return _best_step(flock.step, steps)


def _best_step(step: Callable[[], None], steps: int) -> float:
    """The shortest of several steps after the first [s]."""
    step()
    seconds = []
    for _ in range(steps):
        begun = perf_counter()
        step()
        seconds.append(perf_counter() - begun)
    return min(seconds)


def _neighbours(sim: Simulation) -> float:
    return len(sim.sense().csr().indices) / len(sim.agents)
