"""Recoil: whoever has just collided steps back from where it was heading, for as long as the jolt lasts.

The decision `Jolted` keeps the jolt of each agent, which is 1 after a collision and fades. While it is above `above`,
the planned direction becomes `back` times the opposite of the heading. Models that turn gradually, such as `Dynamical`,
turn away instead of stepping back, unless they bump into something exactly ahead.
"""

from __future__ import annotations

from typing import Annotated

from tropel.agents.state import JOLT, Floats
from tropel.contracts import Declaration, Habit, Moment
from tropel.errors import ParameterError
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity

ABOVE = Quantity(name="above", low=0.0, high=1.0, about="people step back while their jolt is larger than this")
BACK = Quantity(name="back", low=0.0, high=1.0, about="share of the desired speed with which they step back")


class Recoil(Habit):
    """People step back for a moment after a collision; needs the decision `Jolted`."""

    declares = Declaration(periodic_space=True)

    @checked_arguments
    def __init__(self, *, above: Annotated[float, ABOVE] = 0.7, back: Annotated[float, BACK] = 1.0) -> None:
        self.parameters = {"above": above, "back": back}
        self.above, self.back = above, back

    def prepare(self, moment: Moment) -> None:
        if JOLT.name not in moment.state.columns:
            raise ParameterError(
                "Recoil: nobody notices collisions; let agents decide with Jolted, in a file  "
                'decisions = [{ model = "jolted" }]'
            )

    def adjust(self, moment: Moment, directions: Floats) -> None:
        rows = moment.members[moment.state.columns[JOLT.name][moment.members] > self.above]
        directions[rows] = -self.back * moment.state.heading[rows]
