"""One call of a steering model for agents that are described by arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tropel import World
from tropel.agents.state import AgentState, Steered
from tropel.contracts import Moment
from tropel.environment.grid import Grid

PLAIN = World(bounds=(-60, -60, 60, 60))


def steered(
    model: Any, position: Any, directions: Any, *, world: World = PLAIN, dt: float = 0.1, **fields: Any
) -> Steered:
    """One look at a crowd: what the model writes."""
    position = np.asarray(position, dtype=np.float64)
    state = AgentState(2, model.all_columns)
    state.add(len(position), {"position": position, **fields})
    moment = Moment.of(state, world, environment=Grid(), directions=np.asarray(directions, dtype=np.float64), dt=dt)
    model.prepare(moment)
    out = Steered.like(state, ())
    model.steer(moment, out)
    return out
