"""Steering models that are wrong in ways the tests of `tropel.verification` must notice."""

from __future__ import annotations

import numpy as np

from tropel.agents.state import Steered
from tropel.contracts import Model, Moment


class Ghost(Model):
    """Walks as planned, whoever is there."""

    speedup = 1.0

    def steer(self, moment: Moment, out: Steered) -> None:
        members = moment.members
        out.velocity[members] = self.speedup * moment.directions[members] * moment.state.desired_speed[members, None]


class Sprinter(Ghost):
    """Walks twice as fast as it should."""

    speedup = 2.0


class Dawdler(Ghost):
    """Walks three quarters as fast as it should."""

    speedup = 0.75


class Stander(Ghost):
    """Never moves."""

    speedup = 0.0


class Jumper(Ghost):
    """Once puts somebody elsewhere, over the wall and back, which no steering model may do."""

    def steer(self, moment: Moment, out: Steered) -> None:
        super().steer(moment, out)
        if moment.step == 20:
            moment.state.position[0] = (11.0, 5.0)


class Uphill(Ghost):
    """Walks the faster the more people are near."""

    def steer(self, moment: Moment, out: Steered) -> None:
        super().steer(moment, out)
        crowding = np.diff(moment.near.csr().indptr)[moment.members] / 28.0
        out.velocity[moment.members] *= np.minimum(0.5 + 0.3 * crowding, 1.5)[:, None]
