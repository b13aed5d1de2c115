"""Jolted by a collision: whoever bumps into somebody or something hesitates, and gets angry or afraid (LAYERS §3).

Jolt J is a number in [0, 1] per agent: 1 when its body begins to overlap another body or an obstacle (the column
`collided` becomes 1), and fading from then on within `fade`. The desired speed is the agent's own times 1 - hesitate ·
J. With `anger` above zero the share anger · J of the gap between courage and 1 is closed; below zero the share |anger|
· J of the courage is lost. As with tiredness, each step multiplies by the ratio of now and before, so that the own
values need not be remembered. The habit `Recoil` makes people step back while J is high.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tropel.agents.state import JOLT, Column
from tropel.contracts import Decided, Decision, Declaration, Moment
from tropel.errors import named_parameters
from tropel.foundation.quantities import number

#: Whoever was in contact in the last step is not jolted again, or two bodies that overlap would never part.
IN_CONTACT = Column(name="in_contact", dtype="uint8", high=1, about="1 if it collided in the last step but one")


@named_parameters
@dataclass(frozen=True, kw_only=True)
class JoltedParameters:
    """What a collision does to people, and for how long."""

    hesitate: float = number(0.8, low=0.0, high=0.99, about="part of the desired speed that is lost at first")
    anger: float = number(
        0.0, low=-0.99, high=0.99, about="part of the gap to a courage of 1 that is closed; below zero, courage is lost"
    )
    fade: float = number(1.5, above=0.0, unit="s", about="time constant with which it is over")


class Jolted(Decision):
    """People that collide hesitate for a moment, and get angry or afraid."""

    def __init__(self, **parameters: float) -> None:
        self.parameters = JoltedParameters(**parameters)
        p = self.parameters
        sets = (*(("desired_speed",) if p.hesitate else ()), *(("courage",) if p.anger else ()))
        self.declares = Declaration(memory=(JOLT, IN_CONTACT), periodic_space=True, sets=sets, answers_collisions=True)

    def decide(self, moment: Moment, out: Decided) -> None:
        p, rows, state = self.parameters, moment.members, moment.state
        before = state.columns[JOLT.name][rows]
        collided = state.collided[rows]
        begins = (collided != 0) & (state.columns[IN_CONTACT.name][rows] == 0)
        after = np.where(begins, 1.0, before * np.exp(-moment.dt / p.fade))
        out.memory[JOLT.name][rows] = after
        out.memory[IN_CONTACT.name][rows] = collided
        if p.hesitate:
            ratio = (1.0 - p.hesitate * after) / (1.0 - p.hesitate * before)
            out.attributes["desired_speed"][rows] = state.desired_speed[rows] * ratio
        if p.anger:
            courage = state.columns["courage"][rows]
            ratio = (1.0 - abs(p.anger) * after) / (1.0 - abs(p.anger) * before)
            changed = 1.0 - (1.0 - courage) * ratio if p.anger > 0.0 else courage * ratio
            out.attributes["courage"][rows] = np.clip(changed, 0.0, 1.0)
