"""Tired with distance: whoever has come far moves slower, and in a more clumsy way (LAYERS §3).

Tiredness T is a number in [0, 1] per agent. Over a distance ds it approaches 1, and at rest it fades within `recovery`:

    T ← 1 - (1 - T) exp(-ds / distance)                on the move
    T ← T exp(-dt / recovery)                          standing

The desired speed is the agent's own times 1 - (1 - speed) T, so that `speed` is what is left of it in the end. Agility
falls in the same way, and the gap between mass and 1 does. Each step multiplies by the ratio of this factor now and
before, so that the agent's own value need not be remembered and other changes of it, by events or rules, add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import Column
from tropel.contracts import Decided, Decision, Declaration, Moment
from tropel.errors import named_parameters
from tropel.foundation.quantities import number

TIREDNESS = Column(name="tiredness", low=0.0, high=1.0, about="0 fresh, 1 as tired as can be")
#: Whoever moves slower than this share of its desired speed rests.
_AT_REST = 0.05
#: Nobody loses all of something, or none could ever come back.
_LEAST = 0.01


@named_parameters
@dataclass(frozen=True, kw_only=True)
class TiredParameters:
    """How fast and how much people tire."""

    distance: float = number(500.0, above=0.0, unit="m", about="after which 63 % of the tiredness is there")
    speed: float = number(0.6, low=_LEAST, high=1.0, about="what is left of the desired speed in the end")
    agility: float = number(1.0, low=_LEAST, high=1.0, about="what is left of the agility in the end")
    mass: float = number(0.0, low=0.0, high=1.0 - _LEAST, about="part of the gap to a mass of 1 that is closed")
    recovery: float | None = number(
        None, above=0.0, unit="s", optional=True, about="time constant of tiredness at rest; nobody recovers without"
    )


class Tired(Decision):
    """People become slower with the distance that they have covered, and recover at rest."""

    def __init__(self, **parameters: float | None) -> None:
        self.parameters = TiredParameters(**parameters)  # type: ignore[arg-type]
        p = self.parameters
        shares = {"desired_speed": p.speed, "agility": p.agility}
        self._shares = {name: share for name, share in shares.items() if share < 1.0}
        sets = (*self._shares, *(("mass",) if p.mass else ()))
        self.declares = Declaration(memory=(TIREDNESS,), periodic_space=True, sets=sets)

    def decide(self, moment: Moment, out: Decided) -> None:
        p, rows = self.parameters, moment.members
        state = moment.state
        velocity = state.velocity[rows]
        speed = np.sqrt(np.einsum("ij,ij->i", velocity, velocity))
        before = state.columns[TIREDNESS.name][rows]
        after = 1.0 - (1.0 - before) * np.exp(-moment.dt / p.distance * speed)
        if p.recovery is not None:
            at_rest = speed < _AT_REST * state.desired_speed[rows]
            after = np.where(at_rest, before * np.exp(-moment.dt / p.recovery), after)
        out.memory[TIREDNESS.name][rows] = after
        for name, share in self._shares.items():
            out.attributes[name][rows] = state.columns[name][rows] * _ratio(1.0 - share, before, after)
        if p.mass:
            gap = 1.0 - state.columns["mass"][rows]
            out.attributes["mass"][rows] = np.clip(1.0 - gap * _ratio(p.mass, before, after), 0.0, 1.0)


def _ratio(part: float, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((1.0 - part * after) / (1.0 - part * before))
