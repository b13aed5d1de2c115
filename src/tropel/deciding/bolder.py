"""Bolder when it counts: whoever has a critical task lets itself get closer to obstacles (LAYERS §3).

A stage that is marked `critical` has to succeed whatever it costs. Boldness B is a number in [0, 1] per agent that
approaches 1 during such a stage, within `rise`, and fades in others, within `fade`. It closes the share `courage · B`
of the gap between the agent's own courage and 1, and multiplies the desired speed by 1 + (speed - 1) B. As with
tiredness, each step multiplies by the ratio of now and before, so that the own values need not be remembered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tropel.agents.state import Column
from tropel.contracts import Decided, Decision, Declaration, Moment
from tropel.errors import named_parameters
from tropel.foundation.quantities import number

BOLDNESS = Column(name="boldness", low=0.0, high=1.0, about="0 as usual, 1 as bold as a critical task makes it")


@named_parameters
@dataclass(frozen=True, kw_only=True)
class BolderParameters:
    """How bold people become, and how fast."""

    courage: float = number(0.8, low=0.0, high=0.99, about="part of the gap to a courage of 1 that is closed")
    speed: float = number(1.0, low=0.1, high=10.0, about="times the desired speed")
    rise: float = number(1.0, above=0.0, unit="s", about="time constant with which boldness comes")
    fade: float = number(5.0, above=0.0, unit="s", about="time constant with which it goes")


class Bolder(Decision):
    """People become braver, and faster if wanted, while their task is critical."""

    def __init__(self, **parameters: float) -> None:
        self.parameters = BolderParameters(**parameters)
        p = self.parameters
        sets = (*(("courage",) if p.courage else ()), *(("desired_speed",) if p.speed != 1.0 else ()))
        self.declares = Declaration(memory=(BOLDNESS,), periodic_space=True, sets=sets)

    def decide(self, moment: Moment, out: Decided) -> None:
        p, rows, state = self.parameters, moment.members, moment.state
        critical = state.critical[rows] != 0
        before = state.columns[BOLDNESS.name][rows]
        rising = 1.0 - (1.0 - before) * np.exp(-moment.dt / p.rise)
        after = np.where(critical, rising, before * np.exp(-moment.dt / p.fade))
        out.memory[BOLDNESS.name][rows] = after
        if p.courage:
            gap = 1.0 - state.columns["courage"][rows]
            gap = gap * ((1.0 - p.courage * after) / (1.0 - p.courage * before))
            out.attributes["courage"][rows] = np.clip(1.0 - gap, 0.0, 1.0)
        if p.speed != 1.0:
            ratio = (1.0 + (p.speed - 1.0) * after) / (1.0 + (p.speed - 1.0) * before)
            out.attributes["desired_speed"][rows] = state.desired_speed[rows] * ratio
