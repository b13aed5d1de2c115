"""Straight to the goal: an assigned exit or target, or the nearest one; targets may move.

The smallest planner. It sees no walls, so a U-shaped room traps whoever follows it; the fields do not have that flaw.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState
from tropel.agents.towards_goal import towards_goal
from tropel.world import World


class Direct:
    """Go straight to the goal in the agents' `goal` column; stand where there is none.

    In periodic space the way may lead over the seam, if that is shorter.
    """

    periodic_space = True

    def __init__(self) -> None:
        self._world: World | None = None

    def prepare(self, state: AgentState, world: World, seed: int) -> None:
        """Called once before the first step."""
        self._world = world

    def direct(self, state: AgentState, members: NDArray[np.int64], out: NDArray[np.float64]) -> None:
        """Write a unit vector (or zero) into the rows of `members`."""
        if self._world is None:
            raise RuntimeError("Direct.prepare(state, world) must be called before direct()")
        towards_goal(state.position, state.goal, members, self._world.goals(), out)
