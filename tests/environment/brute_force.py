"""An environment that compares everybody with everybody, in plain NumPy: it knows no cells and no kernels."""

from __future__ import annotations

import numpy as np

from tropel._kernels.csr import Csr
from tropel.agents.state import Floats
from tropel.contracts import Environment, EnvironmentDeclaration, Moment, Near
from tropel.contracts.near import as_lists


class BruteForce(Environment):
    """Who is within the radius is near."""

    declares = EnvironmentDeclaration(periodic_space=True)

    def sense(self, moment: Moment) -> Near:
        return _Compared(moment)


class _Compared(Near):
    def lists(self, radius: Floats) -> Csr:
        offset = self.state.position[None, :, :] - self.state.position[:, None, :]
        for axis, period in enumerate(self.world.period):
            if period > 0.0:
                offset[..., axis] -= period * np.round(offset[..., axis] / period)
        near = (offset**2).sum(axis=2) <= (radius**2)[:, None]
        return as_lists([np.flatnonzero(row) for row in near])
