"""A small swarm in periodic space for tests: a model in plain NumPy that takes nearest images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import tropel
from tropel.agents.state import Steered
from tropel.contracts import ModelDeclaration, Moment


class Swarm(tropel.Model):
    """Fly on, turned a little by all who are near: away from them, and towards where they go."""

    declares = ModelDeclaration(periodic_space=True)

    def __init__(self) -> None:
        self.parameters = "tests"
        self._period: NDArray[np.float64] = np.empty(0)

    def prepare(self, moment: Moment) -> None:
        self._period = moment.world.period

    def steer(self, moment: Moment, out: Steered) -> None:
        state, members = moment.state, moment.members
        indptr, indices = moment.near.csr()
        own = np.repeat(np.arange(len(state)), np.diff(indptr))
        offset = state.position[indices] - state.position[own]
        length = np.where(self._period > 0.0, self._period, 1.0)
        offset -= self._period * np.round(offset / length)
        away2 = (offset**2).sum(axis=1) + 0.05
        # Weights that end smoothly at the sense radius: who comes into sight a rounding later changes nothing.
        weight = np.maximum(1.0 - away2 / state.sense_radius[own] ** 2, 0.0) ** 2
        pull = weight[:, None] * (0.2 * (state.velocity[indices] - state.velocity[own]) - offset / away2[:, None])
        turn = np.zeros_like(state.position)
        np.add.at(turn, own, pull)
        velocity = state.heading * state.desired_speed[:, None] + 0.5 * turn + 0.3 * moment.directions
        fast = np.linalg.norm(velocity, axis=1, keepdims=True)
        velocity *= state.desired_speed[:, None] / np.maximum(fast, 1e-9)
        out.velocity[members] = velocity[members]
        out.heading[members] = velocity[members] / state.desired_speed[members, None]


def scattered_headings(sim: tropel.Simulation, seed: int) -> tropel.Simulation:
    """Everybody flies somewhere else."""
    heading = np.random.default_rng(seed).normal(size=sim.agents.position.shape)
    sim.agents.heading[:] = heading / np.linalg.norm(heading, axis=1, keepdims=True)
    sim.agents.velocity[:] = sim.agents.heading * sim.agents.desired_speed[:, None]
    return sim


def apart(a: NDArray[np.float64], b: NDArray[np.float64], world: tropel.World) -> NDArray[np.float64]:
    """Distances of places, over whatever seam is nearest."""
    gap = a - b
    gap = gap - world.period * np.round(gap / np.where(world.period > 0.0, world.period, 1.0))
    return np.asarray(np.linalg.norm(gap, axis=-1))
