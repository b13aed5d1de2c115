"""How fast an agent of the dynamical model would turn for every way it might face: phi' over phi, the phase portrait
of GAME figures 1 to 3. Where the curve falls through zero the heading settles, where it rises it is driven away.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState, Steered
from tropel.contracts import Moment
from tropel.errors import ParameterError
from tropel.local.dynamical import Dynamical

Floats = NDArray[np.float64]


class TurnRateCurve(NamedTuple):
    """A row per heading; turn rates in rad/s, counter-clockwise above zero."""

    heading: Floats  #: phi [rad]
    target: Floats  #: f_tar
    obstacles: Floats  #: f_obs, summed over the classes
    weight_target: Floats
    weight_obstacles: Floats  #: of the first class, which is that of all obstacles unless they are weighed apart
    turn_rate: Floats  #: phi': what the agent does, without noise and before agility filters it

    def balances(self, *, stable: bool = True) -> Floats:
        """Headings [rad] at which phi' passes zero, falling (stable) or rising (unstable)."""
        now, after = self.turn_rate[:-1], self.turn_rate[1:]
        at = np.flatnonzero((now > 0) & (after <= 0) if stable else (now < 0) & (after >= 0))
        share = now[at] / (now[at] - after[at])
        return self.heading[at] + share * (self.heading[at + 1] - self.heading[at])


def turn_rate_curve(model: Dynamical, moment: Moment, *, agent: int, headings: Floats) -> TurnRateCurve:
    """The curve of the agent in row `agent` for headings [rad], given what `Dynamical.steer` is given. In 2D.

    Every heading is tried from the weights that the agent has now, so where target on and target off are both stable,
    the curve is the one of the agent's past; apart from that weights are those of the fixed point, whatever the
    `weight_memory`. Nothing of the state is changed.
    """
    directions = moment.directions
    if moment.state.dim != 2:
        raise ParameterError("a curve over one angle is drawn in 2D only; this state has 3 dimensions")
    parameters = {field.name: getattr(model.parameters, field.name) for field in fields(model.parameters)}
    parameters |= {"noise": 0.0, "weight_memory": 0.0}
    weighed = Dynamical(**parameters)
    summed = Dynamical(**{**parameters, "competition": False})
    to_target = directions[agent] / max(float(np.linalg.norm(directions[agent])), 1e-300)
    target = model.parameters.attraction * (np.cos(headings) * to_target[1] - np.sin(headings) * to_target[0])
    competing = _turn(weighed, moment, agent=agent, headings=headings)
    plain = _turn(summed, moment, agent=agent, headings=headings)
    return TurnRateCurve(headings, target, plain[:, 0] - target, competing[:, 1], competing[:, 2], competing[:, 0])


def _turn(model: Dynamical, moment: Moment, *, agent: int, headings: Floats) -> Floats:
    """Turn rate, weight of the target and of the first class, a row per heading."""
    state = moment.state
    facing = AgentState(state.dim, model.all_columns)
    facing.columns = {**state.columns, "heading": state.heading.copy(), "agility": np.ones(len(state))}
    out = Steered.like(facing, model.memory_names)
    tried = replace(moment, state=facing, members=np.array([agent], dtype=np.int64), step=0)
    found = np.empty((len(headings), 3))
    for k, phi in enumerate(headings):
        facing.heading[agent] = np.cos(phi), np.sin(phi)
        model.steer(tried, out)
        found[k] = (
            out.memory["turn_rate"][agent, 0],
            out.memory["weight_target"][agent],
            out.memory["weights"][agent, 0],
        )
    return found
