"""Agents that go straight on whatever is in their way, and encounters by plain NumPy, without tropel's kernels."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel import Group, Simulation, World
from tropel.agents.state import Steered
from tropel.contracts import Model, ModelDeclaration, Moment

Floats = NDArray[np.float64]
DT = 0.1


class Straight(Model):
    """Everybody goes on with the velocity it is given by id, through whoever is there."""

    declares = ModelDeclaration(bodies_may_overlap=True, periodic_space=True)

    def __init__(self, velocity: Any) -> None:
        self.velocity = np.asarray(velocity, dtype=np.float64)
        self.parameters = {"velocity": self.velocity.tolist()}

    def steer(self, moment: Moment, out: Steered) -> None:
        out.velocity[moment.members] = self.velocity[moment.state.id[moment.members]]


class Jittery(Model):
    """Everybody goes somewhere else in every step, by id and step, at most with the given speed."""

    declares = ModelDeclaration(bodies_may_overlap=True, periodic_space=True)

    def __init__(self, most: float, seed: int) -> None:
        self.most, self.seed = most, seed
        self.parameters = {"most": most, "seed": seed}

    def steer(self, moment: Moment, out: Steered) -> None:
        random = np.random.default_rng([self.seed, moment.step])
        count, dim = moment.state.next_id, moment.state.dim
        velocity = random.uniform(-self.most, self.most, (count, dim)) / np.sqrt(dim)
        out.velocity[moment.members] = velocity[moment.state.id[moment.members]]


def empty(size: float = 20.0, dim: int = 2, **more: Any) -> World:
    return World.box([0.0] * dim, [size] * dim, **more)


def straight(positions: Any, velocity: Any, *, world: World | None = None, **of_group: Any) -> Simulation:
    group = Group("a", positions=positions, goal="none", **of_group)
    world = world or empty(dim=np.shape(positions)[1])
    return Simulation(world, group, local=Straight(velocity), dt=DT)


# By plain NumPy -----------------------------------------------------------------------------------------------------


@dataclass
class Expected:
    """An encounter as brute force finds it."""

    begin: float
    end: float
    closest: float
    touched: float
    touching: float


def intervals(offsets: Floats, limit: float, dt: float) -> list[tuple[float, float]]:
    """When a pair with these offsets at each step is within a distance, by the roots of polynomials."""
    found: list[list[float]] = []
    for step, (d, e) in enumerate(itertools.pairwise(offsets)):
        m = e - d
        if np.linalg.norm(d) > limit + np.linalg.norm(m):
            continue
        roots = np.roots([m @ m, 2.0 * d @ m, d @ d - limit**2]) if m @ m > 0 else np.array([])
        # A double root may come out as a pair of complex numbers.
        cuts = sorted(t.real for t in roots if abs(t.imag) < 1e-9 and 0.0 < t.real < 1.0)
        edges = [0.0, *cuts, 1.0]
        for low, high in itertools.pairwise(edges):
            if high > low and np.linalg.norm(d + 0.5 * (low + high) * m) <= limit:
                begin, end = (step + low) * dt, (step + high) * dt
                if found and abs(found[-1][1] - begin) < 1e-12:
                    found[-1][1] = end
                else:
                    found.append([begin, end])
    return [(begin, end) for begin, end in found]


def brute_force(path: Floats, radius: Floats, distance: float, dt: float, period: float) -> dict[Any, list[Expected]]:
    """Encounters by pair of a path (steps + 1, agents, dim); open ends are nan."""
    result: dict[Any, list[Expected]] = {}
    last = (len(path) - 1) * dt
    for i, j in itertools.combinations(range(path.shape[1]), 2):
        offsets = path[:, j] - path[:, i]
        if period:
            # Unwrapped: from step to step the offset changes by the short way.
            first = offsets[0] - period * np.round(offsets[0] / period)
            change = np.diff(offsets, axis=0)
            change -= period * np.round(change / period)
            offsets = first + np.concatenate([np.zeros((1, path.shape[2])), np.cumsum(change, axis=0)])
        images = itertools.product((-2, -1, 0, 1, 2), repeat=path.shape[2]) if period else [(0,) * path.shape[2]]
        mine = []
        for image in images:
            seen = offsets + period * np.array(image)
            step = np.linalg.norm(np.diff(seen, axis=0), axis=1).max()
            if np.linalg.norm(seen, axis=1).min() > distance + step:
                continue  # this image is never near
            touches = intervals(seen, radius[i] + radius[j], dt)
            for begin, end in intervals(seen, distance, dt):
                inside = [(b, e) for b, e in touches if b >= begin - 1e-9 and e <= end + 1e-9]
                times = np.linspace(begin, end, 4001)
                at = np.array([np.interp(times, dt * np.arange(len(path)), axis) for axis in seen.T])
                mine.append(
                    Expected(
                        begin=begin,
                        end=np.nan if abs(end - last) < 1e-12 else end,
                        closest=float(np.linalg.norm(at, axis=0).min()),
                        touched=inside[0][0] if inside else np.nan,
                        touching=sum(e - b for b, e in inside),
                    )
                )
        if mine:
            result[i, j] = sorted(mine, key=lambda each: each.begin)
    return result
