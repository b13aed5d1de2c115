"""Steering models that are wrong in ways the cases of `tropel.verification` must notice."""

from __future__ import annotations

import numpy as np

from tropel.agents.state import Steered
from tropel.contracts import Model, Moment
from tropel.local.lattice.model import Lattice


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


class Snail(Ghost):
    """Walks less than half as fast as it should."""

    speedup = 0.4


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


class Late(Ghost):
    """Starts three seconds late."""

    def steer(self, moment: Moment, out: Steered) -> None:
        super().steer(moment, out)
        members = moment.members
        out.velocity[members[moment.time < moment.state.stage_until[members] + 3.0]] = 0.0


class Punctual(Ghost):
    """Everybody starts after 50 s, whatever their reaction time."""

    def steer(self, moment: Moment, out: Steered) -> None:
        members = moment.members
        velocity = np.where(moment.time > 50.0, 1.0, 0.0) * np.array([1.0, 0.0])
        out.velocity[members] = velocity


class Alike(Ghost):
    """Everybody walks at 1.25 m/s, whatever their own speed."""

    def steer(self, moment: Moment, out: Steered) -> None:
        out.velocity[moment.members] = 1.25 * moment.directions[moment.members]


class Westward(Ghost):
    """Walks west, wherever it should go."""

    def steer(self, moment: Moment, out: Steered) -> None:
        out.velocity[moment.members] = -1.0, 0.0


class Reluctant(Ghost):
    """Walks at a quarter of its speed around the corner of `rimea_15`."""

    def steer(self, moment: Moment, out: Steered) -> None:
        super().steer(moment, out)
        place = moment.state.position[moment.members]
        at_corner = (place[:, 0] > 18.0) & (place[:, 0] < 26.0) & (place[:, 1] > -6.0)
        # Only where there is a corner: a corridor that goes straight on is as free as it was.
        bent = moment.world.bounds[0, 1] < -1.0
        out.velocity[moment.members[at_corner & bent]] *= 0.25


class Gatherer(Ghost):
    """People gather for a minute where no queue should form."""

    where = (18.5, 20.3)

    def steer(self, moment: Moment, out: Steered) -> None:
        super().steer(moment, out)
        members = moment.members
        x = moment.state.position[members, 0]
        held = (x > self.where[0]) & (x < self.where[1]) & (moment.time < 60.0)
        out.velocity[members[held]] = 0.0


class CorridorGatherer(Gatherer):
    """The same in the corridor of `nist_5_1`."""

    where = (10.5, 12.5)


class Patient(Ghost):
    """Stands for half a minute and then runs, so that it takes as long whatever the exits."""

    def steer(self, moment: Moment, out: Steered) -> None:
        super().steer(moment, out)
        out.velocity[moment.members] *= 0.0 if moment.time < 30.0 else 10.0


class Estranged(Lattice):
    """Knows families, but does not care for them."""

    def __init__(self) -> None:
        super().__init__(family_strength=0.0)


class Faulty(Ghost):
    """Raises an error."""

    def steer(self, moment: Moment, out: Steered) -> None:
        raise ZeroDivisionError("no such luck")
