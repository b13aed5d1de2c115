"""Straight to the goal: an assigned place or point, or the nearest exit or target; targets may move.

The smallest planner. It ignores walls, so a U-shaped room traps agents that follow it; fields do not have that flaw.
"""

from __future__ import annotations

from tropel.agents.towards_goal import towards_goal
from tropel.contracts import Declaration, Guidance, Moment, Planner


class Direct(Planner):
    """Go straight to the goal in the agents' `goal` column; stand if there is none.

    In periodic space the path crosses the seam if that is shorter.
    """

    declares = Declaration(periodic_space=True)

    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write a unit vector (or zero) for each member."""
        towards_goal(moment.state, moment.members, moment.world.goals(), out.directions)
